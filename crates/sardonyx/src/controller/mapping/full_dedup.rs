//! Full deduplication: every line has a fingerprint, which is looked up in an index in the medium that
//! knows every content there; the line is written if its content is new. Which fingerprint, and what
//! is done before the verdict, a [`Fingerprint`] says. Source: ESD (HPCA 2023) Sec. II, of its rivals.

use std::marker::PhantomData;

use super::amt::{FREE_PLACES, PLACES, When, placement};
use super::figures::{
    self, AMT_HIT_RATE, COLLISIONS, DUPLICATE_WRITES, LEAKED_LINES, METADATA_BYTES,
    METADATA_BYTES_IN_USE, METADATA_BYTES_PER_LINE,
};
use super::index::{BEYOND_BUCKET, BEYOND_GONE, DIGEST_BYTES, Digest, FULL_COUNT, INDEX, Match};
use super::places::{FRESH, PAST, RETIRED, REUSE};
use super::references::References;
use super::tables::{INVERSE, Tables};
use super::{COLLISION, DUPLICATE, SHARING};
use crate::controller::layers::{About, Guarantee, Limit, Mapping, Reached};
use crate::controller::metadata_cache::SETS;
use crate::controller::{Class, Encryption, Figures, Layer, Storey, Top, Write, stands_on_below};
use crate::figures::{Figure, figures};
use crate::line::{Line, Logical, Place};
use crate::mechanisms::{Mechanism, mechanisms};
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::plan::{At, Fetched, Plan, Step, Stored};
use crate::settings::{AnyKey, Settings, keys};
use crate::stats::Cause;

keys! {
    KEPT: usize = int("full_dedup.digest_bytes", (1, DIGEST_BYTES as u64), DIGEST_BYTES as u64),
        Source("each fingerprint's own length, which is at most that"),
        "Bytes of a fingerprint that are kept; fewer make contents collide"
        under |by| by.collisions.then_some(1);
}

figures! { "Deduplication";
    INDEX_HIT_RATE: Ratio More "fingerprint_cache_hit_rate",
        "share of look-ups in the cache of the fingerprint index that hit";
    FOUND_IN_CACHE: Count Neither "duplicates_found_in_cache", "duplicates whose fingerprint was on chip";
    FOUND_IN_MEDIUM: Count Neither "duplicates_found_in_medium",
        "duplicates whose fingerprint was read from the medium";
}

mechanisms! {
    KNOWN_ON_CHIP = "duplicates known on chip", least 30;
    KNOWN_IN_MEDIUM = "duplicates known in the medium", least 30;
}

/// The differences between full deduplications.
pub trait Fingerprint: Send + Sized + 'static {
    /// The parameters of the fingerprint, in addition to those of every full deduplication.
    const KEYS: &'static [&'static dyn AnyKey];
    /// The figures of the fingerprint, in addition to those of every full deduplication.
    const FIGURES: &'static [&'static Figure] = &[];
    /// The mechanisms of the fingerprint. By default these are full buckets, and counts that stay full.
    const MECHANISMS: &'static [&'static Mechanism] = &[&FULL_COUNT, &BEYOND_BUCKET, &BEYOND_GONE];
    /// The unit that computes the fingerprint.
    const UNIT: Unit;
    /// Whether it guesses, before the verdict, if a line is a duplicate.
    const GUESSES: bool;

    /// Builds the fingerprint and the tables. `sound` tables survive a power cut.
    fn build(settings: &Settings, sound: bool, layout: &mut Layout) -> (Self, Tables);

    /// The fingerprint of `data`.
    fn digest(&self, data: &Line) -> Digest;

    /// Whether an entry with the fingerprint and this count may be shared once more.
    fn may_share(&self, _count: References) -> bool {
        true
    }

    /// Whether the contents are compared before they are taken for the same.
    fn compares(&self) -> bool {
        true
    }

    /// Whether the next line is guessed to be new, and so encrypted ahead of the verdict.
    fn guesses_new(&self) -> bool {
        false
    }

    /// Learns whether the guess was right: `duplicate` is the verdict on the line.
    fn learn(&mut self, _guessed_new: bool, _duplicate: bool, _plan: &mut Plan) {}

    /// Bytes of metadata for each line, in `tables` with an entry for every line.
    fn bytes_per_line(&self, tables: &Tables) -> f64;

    /// Forgets the figures of the fingerprint.
    fn forget_figures(&mut self) {}

    /// Adds the figures of the fingerprint.
    fn figures(&self, _out: &mut Figures) {}
}

/// The published mapping, and one that survives a power cut. In that one a write is accepted when its line, its counter
/// and then its mapping are, and a recovery rebuilds the other tables from the mappings.
pub const fn layers<F: Fingerprint>(published: &'static str, sound: &'static str) -> [Mapping; 2] {
    [
        Mapping {
            about: about::<F>(
                published,
                "mappings not written back on demand are lost; counts are trusted and may be wrong",
            ),
            build: |settings, below, layout| FullDedup::<F>::build(settings, false, below, layout),
            guarantee: Guarantee::on_demand,
            placement: |_, layout| placement(false, layout),
            shows: SHOWS,
            zeros_apart: false,
            beside: None,
        },
        Mapping {
            about: about::<F>(
                sound,
                "every mapping persists with its line; the other tables are made anew from the contents",
            ),
            build: |settings, below, layout| FullDedup::<F>::build(settings, true, below, layout),
            guarantee: |below| below,
            placement: |_, layout| placement(false, layout),
            shows: SHOWS,
            zeros_apart: false,
            beside: None,
        },
    ]
}

/// Regions that reveal fingerprints: they lie in the index under no key, and the position of an entry is made of its
/// fingerprint.
const SHOWS: &[&str] = &[INDEX, INVERSE];

const LIMITS: &[Limit] = &[
    PLACES,
    FREE_PLACES,
    Limit {
        name: "counts of references in the index",
        bits: 8,
        begins: None,
        pads: false,
        reached: Reached::Pressed,
    },
    Limit::unreached(
        "entries beyond a full bucket of the index",
        8,
        "it takes 255 contents whose fingerprints share a bucket",
    ),
];

const fn about<F: Fingerprint>(name: &'static str, cut: &'static str) -> About {
    About {
        name,
        keys: FullDedupKeys::<F>::ALL,
        units: const { &[F::UNIT, Unit::Compare, Unit::Fingerprints, Unit::Metadata] },
        figures: const { &[figures::FIGURES, FIGURES, F::FIGURES] },
        cut,
        tries: const { &[SHARING, MECHANISMS, F::MECHANISMS] },
        limits: LIMITS,
    }
}

/// The keys of a fingerprint and those of every full deduplication, in one list.
struct FullDedupKeys<F>(PhantomData<F>);

impl<F: Fingerprint> FullDedupKeys<F> {
    const SHARED: [&'static dyn AnyKey; 6] = [&KEPT, &REUSE, &FRESH, &RETIRED, &PAST, &SETS];
    const ROOM: [&'static dyn AnyKey; 32] = {
        let mut keys: [&'static dyn AnyKey; 32] = [&KEPT; 32];
        let mut at = 0;
        while at < F::KEYS.len() {
            keys[at] = F::KEYS[at];
            at += 1;
        }
        while at < F::KEYS.len() + Self::SHARED.len() {
            keys[at] = Self::SHARED[at - F::KEYS.len()];
            at += 1;
        }
        keys
    };
    const ALL: &'static [&'static dyn AnyKey] =
        Self::ROOM.split_at(F::KEYS.len() + Self::SHARED.len()).0;
}

#[derive(Default)]
struct FullDedupCounts {
    in_cache: u64,
    in_medium: u64,
    collisions: u64,
}

struct FullDedup<F> {
    fingerprint: F,
    tables: Tables,
    /// Bytes of a fingerprint that the index keeps.
    kept: usize,
    counts: FullDedupCounts,
    below: Encryption,
}

impl<F: Fingerprint> FullDedup<F> {
    fn build(settings: &Settings, sound: bool, below: Encryption, layout: &mut Layout) -> Top {
        let (fingerprint, tables) = F::build(settings, sound, layout);
        Box::new(FullDedup {
            fingerprint,
            tables,
            kept: settings.get(&KEPT),
            counts: FullDedupCounts::default(),
            below,
        })
    }

    /// Searches for the content of `data`: returns its entry, if there is one, and the step after which the result is
    /// known.
    fn find(&mut self, digest: At<Digest>, data: &Line, plan: &mut Plan) -> At<Option<Match>> {
        let index = &mut self.tables.index;
        let mut search = index.search(digest.value, digest.at);
        while let Some(found) = index.next(&mut search, plan) {
            if found.count.is_full() {
                plan.exercise(&FULL_COUNT);
            }
            if !self.fingerprint.may_share(found.count) {
                continue;
            }
            if self.fingerprint.compares() {
                let mut plan = plan.because(Cause::Compare);
                let stored = self
                    .below
                    .read(found.place, Class::Data, found.at, &mut plan);
                search.at = plan.unit(Unit::Compare, stored.at);
                if stored.value.as_ref() != Some(data) {
                    self.counts.collisions += 1;
                    plan.exercise(&COLLISION);
                    continue;
                }
            }
            plan.exercise(&DUPLICATE);
            let (known, counted) = match found.cached.hit {
                true => (&KNOWN_ON_CHIP, &mut self.counts.in_cache),
                false => (&KNOWN_IN_MEDIUM, &mut self.counts.in_medium),
            };
            *counted += 1;
            plan.exercise(known);
            return At::new(Some(found), search.at);
        }
        At::new(None, search.at)
    }
}

impl<F: Fingerprint> Storey for FullDedup<F> {
    stands_on_below!();

    fn flush(&mut self, plan: &mut Plan) {
        self.tables.flush(plan);
    }

    fn recover(&mut self, plan: &mut Plan) {
        match self.tables.sound {
            true => {
                let digest = |data: &Line| self.fingerprint.digest(data).first(self.kept);
                self.tables.rebuild(&mut self.below, digest, plan);
            }
            false => self.tables.recover(plan),
        }
    }

    fn forget_figures(&mut self) {
        self.counts = FullDedupCounts::default();
        self.fingerprint.forget_figures();
        self.tables.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        let (tables, counts) = (&self.tables, &self.counts);
        let duplicates = counts.in_cache + counts.in_medium;
        out.put(&DUPLICATE_WRITES, duplicates as f64);
        out.put(&FOUND_IN_CACHE, counts.in_cache as f64);
        out.put(&FOUND_IN_MEDIUM, counts.in_medium as f64);
        out.put(&COLLISIONS, counts.collisions as f64);
        out.put(&INDEX_HIT_RATE, tables.index.cache.hits());
        out.put(&AMT_HIT_RATE, tables.amt.cache.hits());
        out.put(&LEAKED_LINES, tables.leaked as f64);
        self.fingerprint.figures(out);
        let per_line = self.fingerprint.bytes_per_line(tables);
        out.put(&METADATA_BYTES, tables.amt.mapped() as f64 * per_line);
        out.put(&METADATA_BYTES_PER_LINE, per_line);
        out.put(&METADATA_BYTES_IN_USE, tables.bytes_in_use() as f64);
    }
}

impl<F: Fingerprint> Layer for FullDedup<F> {
    type Addr = Logical;

    fn read(&mut self, a: Logical, class: Class, after: Step, plan: &mut Plan) -> Fetched {
        let amt = &mut self.tables.amt;
        amt.read(&mut self.below, a, class, after, plan)
    }

    fn write(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        let order = self.tables.demand(write.order);
        let (line, data) = (write.at, write.data);
        let entry = self.tables.amt.find(line, data.at, plan);
        let (mut digest, mut known, mut ahead) = (None, data.at, false);
        if write.class == Class::Data {
            ahead = self.fingerprint.guesses_new();
            let fingerprint = self.fingerprint.digest(data.value).first(self.kept);
            let hashed = plan.because(Cause::Fingerprint).unit(F::UNIT, data.at);
            let found = self.find(At::new(fingerprint, hashed), data.value, plan);
            (digest, known) = (Some(fingerprint), found.at);
            self.fingerprint.learn(ahead, found.value.is_some(), plan);
            if let Some(found) = found.value {
                if ahead {
                    self.below.discard_encryption(Place(line.0), data.at, plan);
                }
                let ripe = plan.both(known, write.gate);
                let when = When {
                    decided: known,
                    ripe,
                };
                let shared = self.tables.share(entry, &found, when, plan);
                return self.tables.amt.persist(line, shared, order, plan);
            }
        }
        let room = self.tables.allocate(entry, known, plan);
        let mut gate = plan.both(write.gate, room.unmapped);
        // A line encrypted ahead of the verdict must not be written before it.
        if F::GUESSES {
            gate = plan.both(gate, known);
        }
        let ready = if ahead { data.at } else { known };
        let data = At::new(data.value, ready);
        let below = Write {
            data,
            gate,
            order,
            ..write.to(room.place)
        };
        let kept = self.below.write(below, plan);
        let stored = self.tables.keep(&room, digest, known, kept, plan);
        self.tables.amt.persist(line, stored, order, plan)
    }

    fn persist_metadata(&mut self, a: Logical, after: Step, plan: &mut Plan) -> Stored {
        let amt = &mut self.tables.amt;
        amt.persist_span(&mut self.below, a, after, plan)
    }

    /// The index knows every content, so equal ones share a place.
    fn preload(&mut self, a: Logical, data: &Line, plan: &mut Plan) -> bool {
        if self.tables.amt.peek(a, plan).is_some() {
            return false;
        }
        let digest = self.fingerprint.digest(data).first(self.kept);
        let same = self.tables.index.peek(digest, plan).into_iter();
        let mut same = same.filter(|(entry, _)| self.fingerprint.may_share(entry.count));
        if let Some(shared) = same.find(|(_, place)| {
            !self.fingerprint.compares() || self.below.peek(*place, plan).as_ref() == Some(data)
        }) {
            self.tables.preload_shared(a, shared, plan);
            return true;
        }
        let Some(place) = self.tables.places.preload(Place(a.0), plan) else {
            return false;
        };
        let held = self.below.preload(place, data, plan);
        if held {
            self.tables.places.take(place);
            self.tables.preload(a, digest, place, plan);
        }
        held
    }

    fn hint(&self, a: Logical, plan: &Plan) {
        self.tables.amt.hint(&self.below, a, plan);
    }
}
