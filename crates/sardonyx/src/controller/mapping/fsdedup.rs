//! FSDedup: ESD with a prefetch cache on chip for the lines that it compares, and a refresh that ages only fingerprints
//! that are not found. Source: FSDedup (ACM TOS 2024), abstract; what that leaves open is *assumed*.
//! Left out: what its text says beyond the abstract.

use super::efit::{EFIT, Efit, POLICY, Refresh};
use super::esd::{
    self, AMT_CACHE, AMT_POLICY, COLLISION, Esd, FORGET, MATRIX, Persistence, RECLAIM, REFER_MAX,
    mapping,
};
use super::places::{FRESH, PAST, RETIRED, REUSE};
use super::{SHARING, figures};
use crate::controller::layers::{Design, File, Guarantee, Mapping};
use crate::controller::metadata_cache::{SETS, SetIndex};
use crate::controller::{Class, Encryption, Figures, Top};
use crate::figures::{Amount, figures};
use crate::line::{LINE_BYTES, Line, Place, ZERO_LINE};
use crate::mechanisms::mechanisms;
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::plan::{At, Fetched, Plan, Step};
use crate::settings::{AnyKey, CacheParams, Settings, keys, words};

/// The lines that enter the prefetch cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Those that were read to be compared.
    Compared,
    /// Those, and lines that are stored and get a fingerprint.
    Stored,
}

words!(Fill { "compared" => Compared, "stored" => Stored });

keys! {
    PREFETCH = cache("fsdedup.prefetch_", LINE_BYTES, 65_536),
        Assumed("the abstract gives no size: an eighth of ESD's EFIT"), "Prefetch cache", "Ways of the prefetch cache"
        in Between("16384", "524288", "a quarter of it, and as much as ESD's EFIT");
}

keys! {
    FILL: Fill = word("fsdedup.fill", "compared"),
        Assumed("the abstract says that the cache saves reads of comparisons, not what enters it"),
        "What enters the prefetch cache: lines read to be `compared`, or those and lines `stored` with a fingerprint";
    REFRESH_EVERY: u64 = int("fsdedup.refresh_every", (0, 1 << 60), 65_536),
        Assumed("the abstract gives no period"),
        "EFIT look-ups between two refreshes, which halve `referH` of entries not found since the last one; 0 for none"
        in Between("16384", "1048576", "half of the 37,449 entries of ESD's EFIT, and what is assumed of ESD's own refresh")
        under |by| by.limits.then_some(32);
}

const KEYS: &[&dyn AnyKey] = &[
    &EFIT,
    &MATRIX,
    &POLICY,
    &COLLISION,
    &RECLAIM,
    &FORGET,
    &REFER_MAX,
    &PREFETCH,
    &FILL,
    &REFRESH_EVERY,
    &AMT_CACHE,
    &AMT_POLICY,
    &REUSE,
    &FRESH,
    &RETIRED,
    &PAST,
    &SETS,
];

figures! { "Deduplication";
    PREFETCH_HIT_RATE: Ratio More "prefetch_hit_rate", "share of FSDedup's comparisons with a line on chip";
}

mechanisms! {
    PREFETCHED = "comparisons with a line on chip", least 30;
}

const fn variant(
    name: &'static str,
    build: fn(&Settings, Encryption, &mut Layout) -> Top,
    guarantee: fn(Guarantee) -> Guarantee,
    cut: &'static str,
) -> Mapping {
    let mut variant = mapping(name, build, guarantee, cut);
    variant.about.keys = KEYS;
    variant.about.figures = &[figures::FIGURES, esd::FIGURES, FIGURES];
    variant.about.tries = &[SHARING, esd::MECHANISMS, MECHANISMS];
    variant
}

/// The layers and designs of this file.
pub static FILE: File<Mapping> = File {
    layers: &[
        variant(
            "fsdedup",
            |settings, below, layout| build(settings, Persistence::OnDemand, below, layout),
            Guarantee::on_demand,
            "mappings not written back on demand are lost; counts are counted anew from the mappings",
        ),
        variant(
            "fsdedup-sound",
            |settings, below, layout| build(settings, Persistence::Always, below, layout),
            |below| below,
            "every mapping persists with its line; counts are counted anew from the mappings",
        ),
    ],
    designs: &[
        Design {
            name: "fsdedup",
            source: "FSDedup (ACM TOS 2024)",
            line: "esd that keeps lines to compare on chip, and ages fingerprints that are not found",
            stack: "fsdedup+per-line",
        },
        Design {
            name: "fsdedup-sound",
            source: "FSDedup (ACM TOS 2024), made to survive a power cut",
            line: "fsdedup whose mappings persist with the lines that they describe",
            stack: "fsdedup-sound+fca",
        },
    ],
};

fn build(
    settings: &Settings,
    persistence: Persistence,
    below: Encryption,
    layout: &mut Layout,
) -> Top {
    let mut esd = Esd::new(settings, persistence, below, layout);
    esd.efit = Efit::new(settings).refreshing(settings.get(&REFRESH_EVERY), Refresh::HalveCold);
    esd.prefetched = PrefetchCache::new(settings);
    Box::new(esd)
}

/// Lines in clear on chip, by their places; the least recently compared of a set leaves.
pub(super) struct PrefetchCache {
    fill: Fill,
    ways: usize,
    sets: SetIndex,
    /// The place of each line + 1; 0 where there is none.
    tags: Vec<u64>,
    stamps: Vec<u64>,
    lines: Vec<Line>,
    /// The steps after which the lines are there.
    there: Vec<Step>,
    clock: u64,
    lookups: u64,
    hits: u64,
}

impl PrefetchCache {
    /// ESD has none.
    pub fn none() -> PrefetchCache {
        let (settings, nothing) = (Settings::default(), CacheParams { bytes: 0, ways: 0 });
        PrefetchCache::sized(nothing, &settings)
    }

    fn new(settings: &Settings) -> PrefetchCache {
        PrefetchCache::sized(settings.cache(&PREFETCH), settings)
    }

    fn sized(size: CacheParams, settings: &Settings) -> PrefetchCache {
        let slots = size.bytes as usize / LINE_BYTES;
        let sets = slots / size.ways.max(1);
        PrefetchCache {
            fill: settings.get(&FILL),
            ways: size.ways,
            sets: SetIndex::new(sets as u64, settings),
            tags: vec![0; slots],
            stamps: vec![0; slots],
            lines: vec![ZERO_LINE; slots],
            there: vec![Step::PAST; slots],
            clock: 0,
            lookups: 0,
            hits: 0,
        }
    }

    /// Reads the line at `place` to compare it: here, or through `below`, and then it stays here.
    pub fn read(
        &mut self,
        place: Place,
        below: &mut Encryption,
        after: Step,
        plan: &mut Plan,
    ) -> Fetched {
        if self.tags.is_empty() {
            return below.read(place, Class::Data, after, plan);
        }
        let look = plan.unit(Unit::Metadata, after);
        self.lookups += 1;
        if let Some(slot) = self.slot(place) {
            plan.exercise(&PREFETCHED);
            self.hits += 1;
            self.clock += 1;
            self.stamps[slot] = self.clock;
            return At::new(Some(self.lines[slot]), plan.both(look, self.there[slot]));
        }
        let read = below.read(place, Class::Data, look, plan);
        if let Some(line) = &read.value {
            self.keep(place, At::new(line, read.at));
        }
        read
    }

    /// Hears that `place` holds `data` from now on, which has got a fingerprint or not.
    pub fn stored(&mut self, place: Place, data: At<&Line>, has_fingerprint: bool) {
        if self.tags.is_empty() {
            return;
        }
        if let Some(slot) = self.slot(place) {
            (self.tags[slot], self.stamps[slot]) = (0, 0);
        }
        if has_fingerprint && self.fill == Fill::Stored {
            self.keep(place, data);
        }
    }

    /// Keeps a line that is not here.
    fn keep(&mut self, place: Place, line: At<&Line>) {
        let first = self.first(place);
        let oldest = (first..first + self.ways).min_by_key(|slot| self.stamps[*slot]);
        let slot = oldest.expect("a set has ways");
        self.clock += 1;
        self.tags[slot] = place.0 + 1;
        self.stamps[slot] = self.clock;
        self.lines[slot] = *line.value;
        self.there[slot] = line.at;
    }

    fn slot(&self, place: Place) -> Option<usize> {
        let first = self.first(place);
        let tags = &self.tags[first..first + self.ways];
        let way = tags.iter().position(|tag| *tag == place.0 + 1)?;
        Some(first + way)
    }

    fn first(&self, place: Place) -> usize {
        self.sets.of(place.0) * self.ways
    }

    /// Counts look-ups from zero again.
    pub fn forget_figures(&mut self) {
        (self.lookups, self.hits) = (0, 0);
    }

    /// The share of comparisons that found their line here, where there is a cache.
    pub fn figures(&self, out: &mut Figures) {
        if !self.tags.is_empty() {
            let (of, part) = (self.lookups, self.hits);
            out.put(&PREFETCH_HIT_RATE, Amount::Part { of, part });
        }
    }
}
