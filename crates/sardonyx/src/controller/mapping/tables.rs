//! What a full deduplication keeps beside its index: the mapping table, the inverse table (place →
//! bucket of its entry), the free map if it has one, and the places. Source: DeWrite (MICRO 2018)
//! names the four; layouts are ours. Left out: fingerprints and when to look for them.

mod rebuild;

use super::amt::{Amt, ENTRY, SATURATED, number, number_bytes};
use super::index::{Digest, Index, Match};
use super::places::Allocator;
use crate::beyond::Beyond;
use crate::controller::metadata_cache::{Got, MetadataCache};
use crate::controller::params::CacheParams;
use crate::controller::{Encryption, Persist};
use crate::line::{Logical, Place};
use crate::medium::layout::{Layout, Region};
use crate::medium::params::Unit;
use crate::plan::{Plan, Queue, Step, Stored};
use crate::stats::Cause;

const PER_LINE: u64 = 12;
const BITS: u64 = 512;

/// The tables and their caches.
pub struct Tables {
    /// Fingerprint → place.
    pub index: Index,
    /// Logical line → place.
    pub amt: Amt,
    inverse: Region,
    free_map: Option<Region>,
    /// The cache that mapping, inverse table and free map share.
    pub cache: MetadataCache,
    /// Which places are free.
    pub places: Allocator,
    /// Places whose count is full: never freed again.
    pub leaked: u64,
    /// Mappings persist with their lines, and nothing but they is believed after a power cut.
    pub sound: bool,
}

impl Tables {
    /// Tables for the data lines of `layout`.
    pub fn new(index: Index, cache: CacheParams, free_map: bool, layout: &mut Layout) -> Tables {
        let lines = layout.data_lines();
        Tables {
            index,
            amt: Amt::new(false, layout),
            inverse: layout.reserve("inverse", lines.div_ceil(PER_LINE)),
            free_map: free_map.then(|| layout.reserve("free-map", lines.div_ceil(BITS))),
            cache: MetadataCache::new(cache, Unit::Metadata, Queue::Data),
            places: Allocator::new(lines),
            leaked: 0,
            sound: false,
        }
    }

    /// What a write must keep below.
    pub fn demand(&self, order: Persist) -> Persist {
        match self.sound {
            true => Persist::CounterAtomic,
            false => order,
        }
    }

    /// When the old place of `line`, just mapped elsewhere, may be written again.
    fn unmapped(&mut self, line: Logical, mapped: Step, plan: &mut Plan) -> Step {
        if !self.sound {
            return mapped;
        }
        let (table, mut plan) = (self.amt.table_line(line), plan.because(Cause::Mapping));
        let stored = self.cache.persist(table, mapped, &mut plan);
        plan.both(stored.accepted, mapped)
    }

    /// `line` shares the content that was found.
    pub fn share(
        &mut self,
        (line, got): (Logical, Got),
        old: Option<Place>,
        found: &Match,
        (decided, ripe): (Step, Step),
        plan: &mut Plan,
    ) -> Stored {
        let mapped = plan.because(Cause::Mapping).both(got.at, ripe);
        if old == Some(found.place) {
            return Stored::at(mapped);
        }
        let steps = (decided, mapped);
        let place = found.place;
        self.amt
            .set(&mut self.cache, (line, got), place, steps, plan);
        let count = self.index.refer(found, mapped, plan);
        self.leaked += u64::from(count == SATURATED && found.count != SATURATED);
        let unmapped = self.unmapped(line, mapped, plan);
        if let Some(old) = old {
            self.unrefer(old, (decided, unmapped), plan);
        }
        Stored::at(unmapped)
    }

    /// A free place for `line`, the step before which it must not be written, and what of the
    /// mapping look-up is still true: in a full medium the line gives its old place up first.
    pub fn allocate(
        &mut self,
        line: Logical,
        (old, got): (Option<Place>, Got),
        decided: Step,
        plan: &mut Plan,
    ) -> (Place, Step, Option<Place>, Got) {
        let home = Place(line.0);
        if let Some((place, gate)) = self.places.allocate(home) {
            return (place, gate, old, got);
        }
        if let Some(old) = old {
            self.unrefer(old, (decided, decided), plan);
        }
        let free = self.places.allocate(home);
        let full = Beyond::medium_full("give the machine more rows");
        let (place, gate) = free.unwrap_or_else(|| full.raise());
        let table = self.amt.table_line(line);
        let mut plan = plan.because(Cause::Mapping);
        (
            place,
            gate,
            None,
            self.cache.revisit(table, decided, &mut plan),
        )
    }

    /// `line` lies at `place`, just written; `digest` is entered unless there is none (a log line).
    pub fn keep(
        &mut self,
        (line, got): (Logical, Got),
        (old, place): (Option<Place>, Place),
        digest: Option<Digest>,
        (decided, kept): (Step, Stored),
        plan: &mut Plan,
    ) -> Stored {
        let mapped = plan.because(Cause::Mapping).both(got.at, kept.accepted);
        let steps = (decided, mapped);
        self.amt
            .set(&mut self.cache, (line, got), place, steps, plan);
        let bucket = digest.map(|digest| self.index.insert(digest, place, steps, plan));
        let mut reclaim = plan.because(Cause::Reclaim);
        let (at, from) = self.inverse_spot(place);
        let got = self.cache.get(at, decided, &mut reclaim);
        let bytes = bucket.map_or([0; ENTRY], number_bytes);
        if self.cache.line(got)[from..from + ENTRY] != bytes {
            self.cache
                .set_bytes(got, from, &bytes, mapped, &mut reclaim);
        }
        drop(reclaim);
        self.mark(place, true, steps, plan);
        let unmapped = self.unmapped(line, mapped, plan);
        if let Some(old) = old {
            self.unrefer(old, (decided, unmapped), plan);
        }
        Stored {
            accepted: unmapped,
            done: plan.both(kept.done, unmapped),
        }
    }

    fn unrefer(&mut self, place: Place, steps: (Step, Step), plan: &mut Plan) {
        let (at, from) = self.inverse_spot(place);
        let mut reclaim = plan.because(Cause::Reclaim);
        let got = self.cache.get(at, steps.0, &mut reclaim);
        let bucket = number(self.cache.line(got), from);
        drop(reclaim);
        // No entry: a log line, which nobody shares.
        let steps = (got.at, steps.1);
        let last = bucket.is_none_or(|bucket| self.index.unrefer(bucket, place, steps, plan));
        if last {
            self.mark(place, false, steps, plan);
            self.places.free(place, steps.1, plan);
        } else {
            self.places.let_go(place, steps.1, plan);
        }
    }

    fn mark(&mut self, place: Place, used: bool, steps: (Step, Step), plan: &mut Plan) {
        let Some(map) = &self.free_map else { return };
        let mut plan = plan.because(Cause::Reclaim);
        let got = self.cache.get(map.line(place.0 / BITS), steps.0, &mut plan);
        let (byte, bit) = ((place.0 % BITS / 8) as usize, 1 << (place.0 % 8));
        let old = self.cache.line(got)[byte];
        let new = [if used { old | bit } else { old & !bit }];
        self.cache.set_bytes(got, byte, &new, steps.1, &mut plan);
    }

    /// Bytes that a line of memory has in these tables if each has an entry for every line: mapping,
    /// inverse table and index. The free map's bit and the buckets' padding are left out.
    pub fn bytes_per_line(&self) -> u64 {
        2 * ENTRY as u64 + self.index.entry_bytes() as u64
    }

    /// Bytes of the entries in use: as many mappings as lines, the rest as many as contents.
    pub fn bytes_in_use(&self) -> u64 {
        let entries = self.index.entries() * self.index.entry_bytes() as u64;
        let (mappings, places) = (self.amt.mapped(), self.places.in_use());
        let free_map = self.free_map.as_ref().map_or(0, |_| mappings.div_ceil(8));
        ENTRY as u64 * (mappings + places) + entries + free_map
    }

    fn inverse_spot(&self, place: Place) -> (Place, usize) {
        let line = self.inverse.line(place.0 / PER_LINE);
        (line, (place.0 % PER_LINE) as usize * ENTRY)
    }

    /// A counter-atomic write of `line` is accepted when its mapping is, too.
    pub fn demanded(
        &mut self,
        line: Logical,
        stored: Stored,
        order: Persist,
        plan: &mut Plan,
    ) -> Stored {
        if order == Persist::Relaxed {
            return stored;
        }
        let (table, mut plan) = (self.amt.table_line(line), plan.because(Cause::Mapping));
        let map = self.cache.persist(table, stored.accepted, &mut plan);
        Stored {
            accepted: plan.both(map.accepted, stored.accepted),
            done: plan.both(map.done, stored.done),
        }
    }

    /// Writes back what belongs to `line`, in these tables and below.
    pub fn persist(
        &mut self,
        line: Logical,
        after: Step,
        below: &mut Encryption,
        plan: &mut Plan,
    ) -> Stored {
        let cache = &mut self.cache;
        self.amt.persist_span(cache, below, (line, after), plan)
    }

    /// Writes all dirty lines back.
    pub fn flush(&mut self, plan: &mut Plan) {
        self.cache.flush(&mut plan.because(Cause::Mapping));
        self.index.cache.flush(&mut plan.because(Cause::Lookup));
    }

    /// Learns from the bytes which places are free.
    pub fn recover(&mut self, plan: &mut Plan) {
        let places = &mut self.places;
        self.amt.scan(plan, |_, place| places.take(place));
        let mut entries = 0;
        for place in plan.written(&self.inverse) {
            let index = place.0 - self.inverse.first.0;
            let line = plan.peek(place).expect("it has been written");
            for number_in in 0..PER_LINE {
                let place = Place(index * PER_LINE + number_in);
                let Some(bucket) = number(&line, number_in as usize * ENTRY) else {
                    continue;
                };
                let here = self.index.peek(bucket, plan);
                let Some((_, count)) = here.iter().find(|(known, _)| *known == place) else {
                    continue; // of an owner long gone
                };
                entries += 1;
                self.leaked += u64::from(*count == SATURATED);
                self.places.take(place); // its entry may still be found, so it stays
            }
        }
        self.index.set_entries(entries);
    }

    /// Starts counting anew.
    pub fn forget_figures(&mut self) {
        self.cache.forget_figures();
        self.index.cache.forget_figures();
    }
}
