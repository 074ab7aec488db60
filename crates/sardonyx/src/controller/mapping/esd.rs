//! ESD: the memory's own check bits are the fingerprint, looked up on chip only, and a similar line
//! is read and compared before it is shared. Source: ESD (HPCA 2023) Sec. III.
//! Left out: a persistent fingerprint table, which is the point of the design.

use super::amt::{Amt, AmtEntry, ENTRY, FREE_PLACES, PLACES, When, placement};
use super::efit::{EFIT, Efit, POLICY, REFRESH_BY, REFRESH_EVERY, Similar};
use super::figures::{
    self, AMT_HIT_RATE, COLLISIONS, DUPLICATE_WRITES, LEAKED_LINES, METADATA_BYTES,
    METADATA_BYTES_IN_USE, METADATA_BYTES_PER_LINE,
};
use super::fsdedup::PrefetchCache;
use super::places::{Allocator, FRESH, PAST, Paged, RETIRED, REUSE};
use super::references::{Left, References};
use super::{COLLISION as COLLIDED, DUPLICATE, FULL_MEDIUM, OWN_AGAIN, SHARING};
use crate::controller::layers::{About, Design, File, Guarantee, Limit, Mapping, Reached};
use crate::controller::metadata_cache::{MetadataCache, Replacement, SETS};
use crate::controller::{
    Class, Encryption, Figures, Layer, Persist, Storey, Top, Write, stands_on_below,
};
use crate::ecc::{self, Matrix};
use crate::exhausted::Exhausted;
use crate::figures::{Amount, figures};
use crate::line::{LINE_BYTES, Line, Logical, Place};
use crate::mechanisms::mechanisms;
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::plan::{At, Fetched, Plan, Queue, Step, Stored};
use crate::settings::{AnyKey, Settings, keys, words};
use crate::stats::Cause;

/// The fate of an EFIT entry whose check bits match but whose content does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collision {
    /// The old entry stays, the new line is not entered.
    Keep,
    /// The new line takes the entry.
    Replace,
    /// Both stay, as two entries with the same check bits.
    Multi,
}

words!(Collision { "keep" => Keep, "replace" => Replace, "multi" => Multi });

/// The fate of an overwritten line's old place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaim {
    /// A persistent count beside the AMT tells when nobody refers to it any more.
    Counted,
    /// It is never used again; the leak is counted (the paper is silent).
    Paper,
}

words!(Reclaim { "counted" => Counted, "paper" => Paper });

/// How EFIT learns that a place is free, so that its entry names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forget {
    /// With the last mapping of the place.
    AtOnce,
    /// When an equal line is found there: a count of no references says that the place is free.
    OnCompare,
}

words!(Forget { "at-once" => AtOnce, "on-compare" => OnCompare });

keys! {
    MATRIX: Matrix = word("esd.matrix", "truncated-hamming"),
        Assumed("ESD does not name the code; PageForge names truncated Hamming with parity"),
        "The code whose check bits are the fingerprint";
    COLLISION: Collision = word("esd.collision", "keep"),
        Assumed("ESD does not say what becomes of an entry whose content differs"),
        "What becomes of an entry whose check bits match and whose content does not";
    RECLAIM: Reclaim = word("esd.reclaim", "counted"),
        Assumed("ESD is silent; its own reading never reuses a place and so cannot run for ever"),
        "What becomes of the old place of an overwritten line";
    FORGET: Forget = word("esd.forget", "at-once"),
        Assumed("ESD's entries (Fig. 7) are found by check bits alone; `at-once` takes an index from places to entries \
                 beside them, some 200 KB on chip that Table I does not have and no figure counts"),
        "When EFIT gives up the entry of a freed place; needs `esd.reclaim` = `counted`";
    REFER_MAX: u8 = int("esd.refer_max", (1, 255), 255), // referH is one byte
        Source("ESD Sec. III-D"), "Largest referH; a duplicate beyond it is written again"
        under |by| by.limits.then_some(2);
    AMT_POLICY: Replacement = word("esd.amt_policy", "lru"),
        Assumed("ESD Sec. III-B keeps hot items, such as those with high reference counts, and names no policy"),
        "Which line a full set of the AMT cache gives up";
}

keys! {
    AMT_CACHE = cache("esd.amt_", LINE_BYTES, 524_288),
        Source("ESD Table I"), "AMT cache", "Ways of the AMT cache";
}

const KEYS: &[&dyn AnyKey] = &[
    &EFIT,
    &MATRIX,
    &POLICY,
    &COLLISION,
    &RECLAIM,
    &FORGET,
    &REFER_MAX,
    &REFRESH_EVERY,
    &REFRESH_BY,
    &AMT_CACHE,
    &AMT_POLICY,
    &REUSE,
    &FRESH,
    &RETIRED,
    &PAST,
    &SETS,
];

figures! { "Deduplication";
    EFIT_LOOKUPS: Count Neither "efit_lookups", "look-ups in ESD's fingerprint table on chip";
    EFIT_HIT_RATE: Ratio More "efit_hit_rate", "share of them that hit";
    SATURATED_REWRITES: Count Less "saturated_rewrites",
        "writes that hit there and were stored anew, `referH` being full";
}

mechanisms! {
    SATURATED = "duplicates beyond a full referH", least 30, by &[("esd.refer_max", 1)];
    ENTRY_LEFT = "entries that leave EFIT", least 30, by &[("esd.efit_bytes", 14), ("esd.efit_ways", 1)];
    REFRESHED = "refreshes of EFIT", least 1, by &[("esd.refresh_every", 2)];
}

const LIMITS: &[Limit] = &[
    PLACES,
    FREE_PLACES,
    Limit {
        name: "referH",
        bits: 8,
        begins: None,
        pads: false,
        reached: Reached::Pressed,
    },
    Limit::unreached(
        "counts of references beside the AMT",
        8,
        "EFIT is empty after each start, and referH, as wide, is full before a count is",
    ),
];

/// ESD's mapping, or one that differs in what it builds and promises.
pub(super) const fn mapping(
    name: &'static str,
    build: fn(&Settings, Encryption, &mut Layout) -> Top,
    guarantee: fn(Guarantee) -> Guarantee,
    cut: &'static str,
) -> Mapping {
    Mapping {
        about: About {
            name,
            keys: KEYS,
            units: &[Unit::Fingerprints, Unit::Compare, Unit::Metadata],
            figures: &[figures::FIGURES, FIGURES],
            cut,
            tries: &[SHARING, MECHANISMS],
            limits: LIMITS,
        },
        build,
        guarantee,
        placement: |settings, layout| placement(settings.get(&RECLAIM) == Reclaim::Counted, layout),
        shows: &[],
        zeros_apart: false,
        beside: Some("its ECC, by which the design finds duplicates"),
    }
}

/// The layers and designs of this file.
pub static FILE: File<Mapping> = File {
    layers: &[
        mapping(
            "esd",
            |settings, below, layout| {
                Box::new(Esd::new(settings, Persistence::OnDemand, below, layout))
            },
            Guarantee::on_demand,
            "mappings not written back on demand are lost; counts are counted anew from the mappings",
        ),
        mapping(
            "esd-as-published",
            |settings, below, layout| {
                Box::new(Esd::new(settings, Persistence::Evicted, below, layout))
            },
            |_| Guarantee::Nothing,
            "mappings that the cache has not evicted are lost; counts are counted anew from the mappings",
        ),
        mapping(
            "esd-sound",
            |settings, below, layout| {
                Box::new(Esd::new(settings, Persistence::Always, below, layout))
            },
            |below| below,
            "every mapping persists with its line; counts are counted anew from the mappings",
        ),
    ],
    designs: &[
        Design {
            name: "esd",
            source: "ESD (HPCA 2023)",
            line: "deduplication by the memory's own check bits, looked up on chip only",
            stack: "esd+per-line",
        },
        Design {
            name: "esd-as-published",
            source: "ESD (HPCA 2023), its silence on persistence taken at its word",
            line: "esd whose mappings leave the chip only when they are evicted",
            stack: "esd-as-published+per-line",
        },
        Design {
            name: "esd-sound",
            source: "ESD (HPCA 2023), made to survive a power cut",
            line: "esd whose mappings persist with the lines that they describe",
            stack: "esd-sound+fca",
        },
    ],
};

#[derive(Default)]
struct EsdCounts {
    lookups: u64,
    hits: u64,
    duplicates: u64,
    collisions: u64,
    rewrites: u64,
}

/// The outcome of the search for a content, and for a unique line the change of EFIT.
enum SearchOutcome {
    Duplicate(Similar),
    /// The line is unique and is not entered.
    Unique,
    New(u64),
    Instead(Similar),
}

/// The moment when a mapping leaves the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Persistence {
    /// When it is evicted, whatever the program asks for, because the paper says no more. This takes a platform for
    /// granted that drains the cache at a power cut.
    Evicted,
    /// It also leaves with a counter-atomic write, and when the program writes metadata back.
    OnDemand,
    /// It always leaves with its line. A write is accepted when its line, its counter and then its mapping are; a place
    /// is reused when its last unmapping is accepted.
    Always,
}

pub(super) struct Esd {
    matrix: Matrix,
    collision: Collision,
    reclaim: Reclaim,
    forget: Forget,
    refer_max: u8,
    pub(super) efit: Efit,
    amt: Amt,
    places: Allocator,
    /// Logical lines at each place where hardware keeps no count. Only figures use it.
    lines_at: Paged<u32>,
    leaked: u64,
    counts: EsdCounts,
    pub(super) prefetched: PrefetchCache,
    persistence: Persistence,
    below: Encryption,
}

impl Esd {
    pub(super) fn new(
        settings: &Settings,
        persistence: Persistence,
        below: Encryption,
        layout: &mut Layout,
    ) -> Esd {
        let reclaim = settings.get(&RECLAIM);
        let cache = MetadataCache::new(&AMT_CACHE, Unit::Metadata, Queue::Data, settings)
            .replacing(settings.get(&AMT_POLICY));
        Esd {
            matrix: settings.get(&MATRIX),
            collision: settings.get(&COLLISION),
            reclaim,
            forget: settings.get(&FORGET),
            refer_max: settings.get(&REFER_MAX),
            efit: Efit::new(settings),
            amt: Amt::new(reclaim == Reclaim::Counted, cache, layout),
            places: Allocator::new(layout.data_lines(), settings),
            lines_at: Paged::default(),
            leaked: 0,
            counts: EsdCounts::default(),
            prefetched: PrefetchCache::none(),
            persistence,
            below,
        }
    }

    /// The order that a write below has to keep, and the order of its mapping.
    fn demands(&self, order: Persist) -> (Persist, Persist) {
        match self.persistence {
            Persistence::Evicted => (order, Persist::Relaxed),
            Persistence::OnDemand => (order, order),
            Persistence::Always => (Persist::CounterAtomic, Persist::CounterAtomic),
        }
    }

    /// Searches for the content in the medium, and returns the step after which the outcome is known.
    fn search(&mut self, data: At<&Line>, plan: &mut Plan) -> At<SearchOutcome> {
        let check = ecc::check_word(self.matrix, data.value); // free: it came with the line
        let look = plan.unit(Unit::Fingerprints, data.at);
        if self.efit.tick() {
            plan.exercise(&REFRESHED);
        }
        self.counts.lookups += 1;
        let mut known = look;
        let (mut similar, mut last, mut full) = (self.efit.find(check, None), None, None);
        self.counts.hits += u64::from(similar.is_some());
        while let Some(hit) = similar {
            // An entry that cannot count another reference is not compared.
            if hit.refer >= self.refer_max {
                full = Some(hit);
            } else {
                let mut plan = plan.because(Cause::Compare);
                let after = plan.both(known, hit.at);
                let stored = self
                    .prefetched
                    .read(hit.place, &mut self.below, after, &mut plan);
                known = plan.unit(Unit::Compare, stored.at);
                if stored.value.as_ref() == Some(data.value) {
                    return At::new(SearchOutcome::Duplicate(hit), known);
                }
                self.counts.collisions += 1;
                plan.exercise(&COLLIDED);
                last = Some(hit);
            }
            similar = self.efit.find(check, Some(hit));
        }
        if full.is_some() {
            self.counts.rewrites += 1;
            plan.exercise(&SATURATED);
        }
        let found = match (full, last, self.collision) {
            (Some(hit), _, _) => SearchOutcome::Instead(hit),
            (None, None, _) | (None, _, Collision::Multi) => SearchOutcome::New(check),
            (None, Some(_), Collision::Keep) => SearchOutcome::Unique,
            (None, Some(hit), Collision::Replace) => SearchOutcome::Instead(hit),
        };
        At::new(found, known)
    }

    /// Whether nothing refers to the place of an entry any more, and the step after which that is known. The mapping in
    /// `entry` may have left the cache meanwhile.
    fn is_freed(
        &mut self,
        hit: Similar,
        entry: &mut AmtEntry,
        after: Step,
        plan: &mut Plan,
    ) -> At<bool> {
        if self.forget == Forget::AtOnce || self.reclaim == Reclaim::Paper {
            return At::new(false, after);
        }
        let count = self.amt.count(hit.place, after, plan);
        let known = plan.both(after, count.cached.at);
        let table = self.amt.table_line(entry.line);
        let mut plan = plan.because(Cause::Mapping);
        entry.cached = self.amt.cache.revisit(table, after, &mut plan);
        At::new(count.refer == References::NONE, known)
    }

    /// Maps the line of `entry` to `place`, where it has just been written if it is `fresh`, and updates the
    /// references. A mapping that must persist with its line is written back at once.
    fn remap(
        &mut self,
        entry: AmtEntry,
        place: Place,
        fresh: bool,
        when: When,
        order: Persist,
        plan: &mut Plan,
    ) -> Stored {
        let (line, decided) = (entry.line, when.decided);
        let ripe = plan
            .because(Cause::Mapping)
            .both(entry.cached.at, when.ripe);
        if entry.place == Some(place) && !fresh {
            // Its own content again (a fresh one: the place that it has given up in a full medium).
            plan.exercise(&OWN_AGAIN);
            return self.amt.persist(line, Stored::at(ripe), order, plan);
        }
        let when = When { decided, ripe };
        self.amt.set(&entry, place, when, plan);
        if self.reclaim == Reclaim::Paper {
            // The place was counted as leaked when its last line left it; a new duplicate uses it again.
            let lines = self.lines_at.at(place.0);
            self.leaked -= u64::from(*lines == 0 && !fresh);
            *lines += 1;
            if let Some(old) = entry.place {
                let lines = self.lines_at.at(old.0);
                *lines = lines.saturating_sub(1);
                self.leaked += u64::from(*lines == 0);
            }
            return self.amt.persist(line, Stored::at(ripe), order, plan);
        }
        let count = self.amt.count(place, decided, plan);
        let refer = match fresh {
            true => References::ONE,
            false => count.refer.one_more(),
        };
        if refer != count.refer {
            self.leaked += u64::from(refer.is_full());
            self.amt.set_count(count, refer, ripe, plan);
        }
        let stored = self.amt.persist(line, Stored::at(ripe), order, plan);
        if let Some(old) = entry.place {
            self.unrefer(old, decided, stored.accepted, plan);
        }
        stored
    }

    fn unrefer(&mut self, place: Place, after: Step, unmapped: Step, plan: &mut Plan) {
        let count = self.amt.count(place, after, plan);
        let Left::Some(less) = count.refer.one_less() else {
            return; // the place stays used
        };
        self.amt.set_count(count, less, unmapped, plan);
        if less == References::NONE {
            if self.forget == Forget::AtOnce {
                self.efit.forget(place);
            }
            self.places.free(place, unmapped, plan);
        } else {
            self.places.let_go(place, unmapped, plan);
        }
    }

    fn remedy(&self) -> &'static str {
        match self.reclaim {
            Reclaim::Counted => "give the machine more rows",
            Reclaim::Paper => {
                "esd.reclaim = \"paper\" never uses a place again; set \"counted\", or give the \
                 machine more rows"
            }
        }
    }
}

impl Storey for Esd {
    stands_on_below!();

    fn flush(&mut self, plan: &mut Plan) {
        self.amt.cache.flush(&mut plan.because(Cause::Mapping));
    }

    fn recover(&mut self, plan: &mut Plan) {
        let (places, lines_at) = (&mut self.places, &mut self.lines_at);
        self.amt.scan(plan, |_, place| {
            places.take(place);
            *lines_at.at(place.0) += 1;
        });
        if self.reclaim == Reclaim::Counted {
            self.amt.recount(&self.lines_at, plan);
        }
    }

    fn forget_figures(&mut self) {
        self.counts = EsdCounts::default();
        self.amt.cache.forget_figures();
        self.prefetched.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        let mapped = self.amt.mapped() as f64;
        let bytes = self.amt.bytes_per_line();
        let counted = self.reclaim == Reclaim::Counted;
        let counts = if counted { self.places.in_use() } else { 0 };
        let in_use = ENTRY as f64 * mapped + counts as f64;
        let counts = &self.counts;
        out.put(&DUPLICATE_WRITES, counts.duplicates as f64);
        out.put(&EFIT_LOOKUPS, counts.lookups as f64);
        let hits = Amount::Part {
            of: counts.lookups,
            part: counts.hits,
        };
        out.put(&EFIT_HIT_RATE, hits);
        out.put(&COLLISIONS, counts.collisions as f64);
        out.put(&SATURATED_REWRITES, counts.rewrites as f64);
        out.put(&AMT_HIT_RATE, self.amt.cache.hits());
        out.put(&METADATA_BYTES, bytes * mapped);
        out.put(&METADATA_BYTES_PER_LINE, bytes);
        out.put(&METADATA_BYTES_IN_USE, in_use);
        out.put(&LEAKED_LINES, self.leaked as f64);
        self.prefetched.figures(out);
    }
}

impl Layer for Esd {
    type Addr = Logical;

    fn read(&mut self, a: Logical, class: Class, after: Step, plan: &mut Plan) -> Fetched {
        self.amt.read(&mut self.below, a, class, after, plan)
    }

    fn write(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        let (line, data) = (write.at, write.data);
        let (order, mapping) = self.demands(write.order);
        let mut entry = self.amt.find(line, data.at, plan);
        let mut found = match write.class {
            Class::Data => self.search(data, plan),
            Class::Log => At::new(SearchOutcome::Unique, data.at),
        };
        if let SearchOutcome::Duplicate(hit) = found.value {
            let freed = self.is_freed(hit, &mut entry, found.at, plan);
            found.at = freed.at;
            if freed.value {
                found.value = SearchOutcome::Instead(hit);
            }
        }
        let decided = found.at;
        if let SearchOutcome::Duplicate(hit) = found.value {
            let place = hit.place;
            self.efit.refer(hit);
            self.counts.duplicates += 1;
            plan.exercise(&DUPLICATE);
            // The demand moves to the mapping.
            let ripe = plan.both(decided, write.gate);
            let when = When { decided, ripe };
            return self.remap(entry, place, false, when, mapping, plan);
        }
        let home = Place(line.0);
        let mut free = self.places.allocate(home, plan);
        if let (None, Some(place), Reclaim::Counted) = (free, entry.place, self.reclaim) {
            plan.exercise(&FULL_MEDIUM);
            self.unrefer(place, decided, decided, plan);
            free = self.places.allocate(home, plan);
            let table = self.amt.table_line(line);
            let mut plan = plan.because(Cause::Mapping);
            entry.cached = self.amt.cache.revisit(table, decided, &mut plan);
            entry.place = None;
        }
        let (place, unmapped) = free.unwrap_or_else(|| {
            plan.fail(Exhausted::medium_full(self.remedy()));
            (home, Step::PAST)
        });
        let gate = plan.both(write.gate, unmapped);
        let below = Write {
            data: At::new(data.value, decided),
            gate,
            order,
            ..write.to(place)
        };
        let kept = self.below.write(below, plan);
        let has_fingerprint = !matches!(found.value, SearchOutcome::Unique);
        self.prefetched.stored(place, below.data, has_fingerprint);
        match found.value {
            SearchOutcome::Duplicate(_) | SearchOutcome::Unique => {}
            SearchOutcome::New(check) => {
                if self.efit.insert(check, place, decided) {
                    plan.exercise(&ENTRY_LEFT);
                }
            }
            SearchOutcome::Instead(hit) => self.efit.replace(hit, place, decided),
        }
        let ripe = kept.accepted;
        let when = When { decided, ripe };
        let mapped = self.remap(entry, place, true, when, mapping, plan);
        Stored {
            accepted: mapped.accepted,
            done: plan.both(kept.done, mapped.done),
        }
    }

    fn persist_metadata(&mut self, a: Logical, after: Step, plan: &mut Plan) -> Stored {
        if self.persistence == Persistence::Evicted {
            return Stored::at(after);
        }
        self.amt.persist_span(&mut self.below, a, after, plan)
    }

    /// Every content lies where it would without deduplication: EFIT has long forgotten what was equal (*assumed*).
    fn preload(&mut self, a: Logical, data: &Line, plan: &mut Plan) -> bool {
        if self.amt.peek(a, plan).is_some() {
            return false;
        }
        let Some(place) = self.places.preload(Place(a.0), plan) else {
            return false;
        };
        if !self.below.preload(place, data, plan) {
            return false;
        }
        self.places.take(place);
        self.amt.preload(a, place, plan);
        match self.reclaim {
            Reclaim::Counted => self.amt.preload_count(place, plan),
            Reclaim::Paper => *self.lines_at.at(place.0) += 1,
        }
        true
    }

    fn hint(&self, a: Logical, plan: &Plan) {
        self.amt.hint(&self.below, a, plan);
    }
}
