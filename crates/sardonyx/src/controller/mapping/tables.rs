//! What a full deduplication keeps beside its index: the mapping table, the inverse table (place →
//! bucket of its entry), the free map if it has one, and the places. Source: DeWrite (MICRO 2018)
//! names the four; layouts are ours. Left out: fingerprints and when to look for them.

mod rebuild;

use super::amt::{Amt, AmtEntry, ENTRY, When, number, number_bytes};
use super::index::{Digest, Entry, Index, Match};
use super::places::Allocator;
use super::{FULL_MEDIUM, OWN_AGAIN};
use crate::controller::Persist;
use crate::controller::metadata_cache::MetadataCache;
use crate::exhausted::Exhausted;
use crate::line::{Logical, Place, ZERO_LINE};
use crate::medium::layout::{Layout, Region};
use crate::medium::params::Unit;
use crate::plan::{Plan, Queue, Step, Stored};
use crate::settings::{CacheKey, Settings};
use crate::stats::Cause;

/// The name of the inverse table's region.
pub const INVERSE: &str = "inverse";
const PER_LINE: u64 = 12;
const BITS: u64 = 512;

/// A place for a line.
pub struct Room {
    /// The free place in the medium that the line gets.
    pub place: Place,
    /// The step before which the place must not be written: the unmapping of its old owners.
    pub unmapped: Step,
    /// The part of the line's mapping look-up that is still valid.
    entry: AmtEntry,
}

/// The tables and their caches.
pub struct Tables {
    /// Fingerprint → place.
    pub index: Index,
    /// Logical line → place. Its cache also serves the inverse table and the free map.
    pub amt: Amt,
    inverse: Region,
    free_map: Option<Region>,
    /// The allocation of places.
    pub places: Allocator,
    /// Places whose count is full: never freed again.
    pub leaked: u64,
    /// Whether mappings persist with their lines, so that a recovery believes them and nothing else.
    pub sound: bool,
}

impl Tables {
    /// Tables for the data lines of `layout`.
    pub fn new(
        index: Index,
        cache: &CacheKey,
        free_map: bool,
        sound: bool,
        settings: &Settings,
        layout: &mut Layout,
    ) -> Tables {
        let lines = layout.data_lines();
        let cache = MetadataCache::new(cache, Unit::Metadata, Queue::Data, settings);
        Tables {
            index,
            amt: Amt::new(false, cache, layout),
            inverse: layout.reserve(INVERSE, lines.div_ceil(PER_LINE)),
            free_map: free_map.then(|| layout.reserve("free-map", lines.div_ceil(BITS))),
            places: Allocator::new(lines, settings),
            leaked: 0,
            sound,
        }
    }

    /// The order that a write has to keep below.
    pub fn demand(&self, order: Persist) -> Persist {
        match self.sound {
            true => Persist::CounterAtomic,
            false => order,
        }
    }

    /// Makes the line of `entry` share the content that was found.
    pub fn share(&mut self, entry: AmtEntry, found: &Match, when: When, plan: &mut Plan) -> Stored {
        let decided = when.decided;
        let ripe = plan
            .because(Cause::Mapping)
            .both(entry.cached.at, when.ripe);
        if entry.place == Some(found.place) {
            plan.exercise(&OWN_AGAIN);
            return Stored::at(ripe);
        }
        let when = When { decided, ripe };
        self.amt.set(&entry, found.place, when, plan);
        let count = self.index.refer(found, ripe, plan);
        self.leaked += u64::from(count.is_full() && !found.count.is_full());
        Stored::at(self.leave(&entry, when, plan))
    }

    /// Removes the line of `entry`, just mapped elsewhere, from its old place. Returns the step after which that place
    /// may be written again.
    fn leave(&mut self, entry: &AmtEntry, when: When, plan: &mut Plan) -> Step {
        let order = self.demand(Persist::Relaxed);
        let mapped = Stored::at(when.ripe);
        let ripe = self.amt.persist(entry.line, mapped, order, plan).accepted;
        if let Some(old) = entry.place {
            self.unrefer(old, When { ripe, ..when }, plan);
        }
        ripe
    }

    /// Allocates a place for the line of `entry`. In a full medium the line gives its old place up first.
    pub fn allocate(&mut self, mut entry: AmtEntry, decided: Step, plan: &mut Plan) -> Room {
        let home = Place(entry.line.0);
        let mut free = self.places.allocate(home, plan);
        if free.is_none() {
            if let Some(old) = entry.place {
                plan.exercise(&FULL_MEDIUM);
                self.unrefer(old, When::at(decided), plan);
            }
            free = self.places.allocate(home, plan);
            let (table, mut plan) = (
                self.amt.table_line(entry.line),
                plan.because(Cause::Mapping),
            );
            // The old place's tables may have pushed the mapping's line out of the cache.
            entry.cached = self.amt.cache.revisit(table, decided, &mut plan);
            entry.place = None;
        }
        let (place, unmapped) = free.unwrap_or_else(|| {
            plan.fail(Exhausted::medium_full("give the machine more rows"));
            (home, Step::PAST)
        });
        Room {
            place,
            unmapped,
            entry,
        }
    }

    /// Enters the line that asked for `room` and was `kept` there. Its `digest` is entered too, if there is one: a log
    /// line has none.
    pub fn keep(
        &mut self,
        room: &Room,
        digest: Option<Digest>,
        decided: Step,
        kept: Stored,
        plan: &mut Plan,
    ) -> Stored {
        let (place, entry) = (room.place, &room.entry);
        let ripe = plan
            .because(Cause::Mapping)
            .both(entry.cached.at, kept.accepted);
        let when = When { decided, ripe };
        self.amt.set(entry, place, when, plan);
        let bucket = digest.map(|digest| self.index.insert(digest, place, when, plan));
        let mut reclaim = plan.because(Cause::Reclaim);
        let (at, from) = self.inverse_spot(place);
        let cached = self.amt.cache.get(at, decided, &mut reclaim);
        let bytes = bucket.map_or([0; ENTRY], number_bytes);
        if self.amt.cache.line(cached)[from..from + ENTRY] != bytes {
            self.amt
                .cache
                .set_bytes(cached, from, &bytes, ripe, &mut reclaim);
        }
        drop(reclaim);
        self.mark(place, true, when, plan);
        let accepted = self.leave(entry, when, plan);
        let done = plan.both(kept.done, accepted);
        Stored { accepted, done }
    }

    /// Makes `line` share the content of `entry` at `place`, as it has since before the run.
    pub fn preload_shared(
        &mut self,
        line: Logical,
        (entry, place): (Entry, Place),
        plan: &mut Plan,
    ) {
        self.amt.preload(line, place, plan);
        let count = self.index.preload_reference(entry, plan);
        self.leaked += u64::from(count.is_full() && !entry.count.is_full());
    }

    /// Enters `line`, whose content, with this `digest`, has been at `place` since before the run.
    pub fn preload(&mut self, line: Logical, digest: Digest, place: Place, plan: &mut Plan) {
        self.amt.preload(line, place, plan);
        let bucket = self.index.preload(digest, place, plan);
        let (at, from) = self.inverse_spot(place);
        let bytes = bucket.map_or([0; ENTRY], number_bytes);
        self.amt.cache.preload(at, plan, |inverse| {
            inverse[from..from + ENTRY].copy_from_slice(&bytes);
        });
        if let Some(map) = &self.free_map {
            let (byte, bit) = ((place.0 % BITS / 8) as usize, 1 << (place.0 % 8));
            let at = map.line(place.0 / BITS);
            self.amt.cache.preload(at, plan, |map| map[byte] |= bit);
        }
    }

    fn unrefer(&mut self, place: Place, when: When, plan: &mut Plan) {
        let (at, from) = self.inverse_spot(place);
        let mut reclaim = plan.because(Cause::Reclaim);
        let cached = self.amt.cache.get(at, when.decided, &mut reclaim);
        let bucket = number(self.amt.cache.line(cached), from);
        drop(reclaim);
        // No entry: a log line, which nobody shares.
        let when = When {
            decided: cached.at,
            ..when
        };
        let last = bucket.is_none_or(|bucket| self.index.unrefer(bucket, place, when, plan));
        if last {
            self.mark(place, false, when, plan);
            self.places.free(place, when.ripe, plan);
        } else {
            self.places.let_go(place, when.ripe, plan);
        }
    }

    fn mark(&mut self, place: Place, used: bool, when: When, plan: &mut Plan) {
        let Some(map) = &self.free_map else { return };
        let mut plan = plan.because(Cause::Reclaim);
        let line = map.line(place.0 / BITS);
        let cached = self.amt.cache.get(line, when.decided, &mut plan);
        let (byte, bit) = ((place.0 % BITS / 8) as usize, 1 << (place.0 % 8));
        let old = self.amt.cache.line(cached)[byte];
        let new = [if used { old | bit } else { old & !bit }];
        let ripe = when.ripe;
        self.amt
            .cache
            .set_bytes(cached, byte, &new, ripe, &mut plan);
    }

    /// Bytes of these tables for each line of memory, if each has an entry for every line: mapping, inverse table and
    /// index. The free map's bit and the buckets' padding are left out.
    pub fn bytes_per_line(&self) -> u64 {
        2 * ENTRY as u64 + self.index.entry_bytes() as u64
    }

    /// Bytes of the entries in use. Mappings count by lines, all others by contents.
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

    /// Writes all dirty lines back.
    pub fn flush(&mut self, plan: &mut Plan) {
        self.amt.cache.flush(&mut plan.because(Cause::Mapping));
        self.index.cache.flush(&mut plan.because(Cause::Lookup));
    }

    /// Learns from the medium's bytes which places are free.
    pub fn recover(&mut self, plan: &mut Plan) {
        let places = &mut self.places;
        self.amt.scan(plan, |_, place| places.take(place));
        let mut entries = 0;
        for place in plan.written(&self.inverse) {
            let index = place.0 - self.inverse.first.0;
            let line = plan.scan(place).unwrap_or(ZERO_LINE);
            for number_in in 0..PER_LINE {
                let place = Place(index * PER_LINE + number_in);
                let Some(bucket) = number(&line, number_in as usize * ENTRY) else {
                    continue;
                };
                let here = self.index.scan(bucket, plan);
                let Some((_, count)) = here.iter().find(|(known, _)| *known == place) else {
                    continue; // of an owner long gone
                };
                entries += 1;
                self.leaked += u64::from(count.is_full());
                self.places.take(place); // its entry may still be found, so it stays
            }
        }
        self.index.set_entries(entries);
    }

    /// Counts figures from zero again.
    pub fn forget_figures(&mut self) {
        self.amt.cache.forget_figures();
        self.index.cache.forget_figures();
    }
}
