//! ESD's fingerprint table, on chip only: check bits → a place that had such content, with a small
//! reference count that decides what stays. Source: ESD (HPCA 2023) Sec. III-B and III-D.
//! Left out: what a hit is worth; only comparing the bytes tells.

use rustc_hash::FxHashMap;

use crate::controller::metadata_cache::{Replacement, SetIndex};
use crate::line::Place;
use crate::plan::Step;
use crate::settings::{Settings, keys};

keys! {
    EFIT = cache("esd.efit_", ENTRY_BYTES, 524_288),
        Source("ESD Table I"), "EFIT, at 14 bytes an entry", "Ways of an EFIT set";
}

keys! {
    POLICY: Replacement = word("esd.policy", "lrcu"),
        Source("ESD Sec. III-D"), "Which entry a full EFIT set gives up";
    REFRESH_EVERY: u64 = int("esd.refresh_every", (0, 1 << 60), 1_048_576),
        Assumed("ESD Sec. III-D gives no period"),
        "EFIT look-ups between two refreshes; 0 for none"
        in Between("65536", "16777216", "from twice the 37,449 entries of Table I's EFIT, so that each is seen, to one refresh in a recording of 16 million writes")
        under |by| by.limits.then_some(32);
    REFRESH_BY: u8 = int("esd.refresh_by", (0, 255), 1),
        Assumed("ESD Sec. III-D gives no amount"), "What a refresh subtracts from every referH"
        in Between("1", "16", "referH is one byte (ESD Fig. 9): 16 forget its largest in 16 refreshes");
}

/// Bytes of an entry: check bits 8, place 4 + 1, count 1 (ESD Fig. 9).
const ENTRY_BYTES: u64 = 14;
const NONE: Place = Place(u64::MAX);

/// What a refresh does to `referH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// Every entry loses so much.
    Subtract(u8),
    /// Entries that were not found since the last refresh lose half.
    HalveCold,
}

#[derive(Clone, Copy)]
struct EfitEntry {
    place: Place,
    stamp: u64,
    at: Step,
    refer: u8,
}

/// An entry whose check bits match.
#[derive(Clone, Copy, Debug)]
pub struct Similar {
    slot: usize,
    /// The place of content with these check bits.
    pub place: Place,
    /// The step after which the entry exists.
    pub at: Step,
    /// The number of recent references to the content, `referH`, from 0 to 255.
    pub refer: u8,
}

/// The fingerprint table on chip.
pub struct Efit {
    policy: Replacement,
    refresh_every: u64,
    refresh: Refresh,
    ways: usize,
    sets: SetIndex,
    checks: Vec<u64>,
    entries: Vec<EfitEntry>,
    /// The entry for each place, to be dropped when the place is freed.
    of_place: FxHashMap<u64, u32>,
    clock: u64,
}

impl Efit {
    /// An empty table.
    pub fn new(settings: &Settings) -> Efit {
        let size = settings.cache(&EFIT);
        let ways = size.ways.max(1);
        let sets = (size.bytes / ENTRY_BYTES / ways as u64).max(1);
        let slots = sets as usize * ways;
        let blank = EfitEntry {
            place: NONE,
            stamp: 0,
            at: Step::PAST,
            refer: 0,
        };
        Efit {
            policy: settings.get(&POLICY),
            refresh_every: settings.get(&REFRESH_EVERY),
            refresh: Refresh::Subtract(settings.get(&REFRESH_BY)),
            ways,
            sets: SetIndex::new(sets, settings),
            checks: vec![0; slots],
            entries: vec![blank; slots],
            of_place: FxHashMap::with_capacity_and_hasher(slots, Default::default()),
            clock: 0,
        }
    }

    /// Refreshes otherwise: so, every so many look-ups.
    pub fn refreshing(self, every: u64, refresh: Refresh) -> Efit {
        Efit {
            refresh_every: every,
            refresh,
            ..self
        }
    }

    /// Counts a look-up. At regular intervals it ages all entries, and returns whether it did.
    pub fn tick(&mut self) -> bool {
        self.clock += 1;
        let is_due = self.refresh_every != 0 && self.clock.is_multiple_of(self.refresh_every);
        if is_due {
            let last = self.clock - self.refresh_every;
            for entry in &mut self.entries {
                entry.refer = match self.refresh {
                    Refresh::Subtract(by) => entry.refer.saturating_sub(by),
                    Refresh::HalveCold if entry.stamp < last => entry.refer / 2,
                    Refresh::HalveCold => entry.refer,
                };
            }
        }
        is_due
    }

    /// The first entry with these check bits, or the next one after `previous`.
    #[inline]
    pub fn find(&self, check: u64, previous: Option<Similar>) -> Option<Similar> {
        let first = self.first(check);
        let from = previous.map_or(first, |similar| similar.slot + 1);
        let slot = (from..first + self.ways)
            .find(|slot| self.checks[*slot] == check && self.entries[*slot].place != NONE)?;
        let entry = &self.entries[slot];
        Some(Similar {
            slot,
            place: entry.place,
            at: entry.at,
            refer: entry.refer,
        })
    }

    /// Counts one more reference to this entry's place.
    pub fn refer(&mut self, similar: Similar) {
        let entry = &mut self.entries[similar.slot];
        entry.refer = entry.refer.saturating_add(1);
        entry.stamp = self.clock;
    }

    /// Makes the entry name another place from now on.
    pub fn replace(&mut self, similar: Similar, place: Place, at: Step) {
        let check = self.checks[similar.slot];
        self.fill(similar.slot, check, place, at);
    }

    /// Enters content with these check bits over the least useful entry of its set. Returns whether that entry was in
    /// use.
    pub fn insert(&mut self, check: u64, place: Place, at: Step) -> bool {
        let first = self.first(check);
        let worth = |slot: &usize| {
            let entry = &self.entries[*slot];
            let refer = match self.policy {
                Replacement::Lrcu => entry.refer,
                Replacement::Lru => 0,
            };
            (entry.place != NONE, refer, entry.stamp)
        };
        let slot = (first..first + self.ways)
            .min_by_key(worth)
            .expect("a set has ways");
        let leaves = self.entries[slot].place != NONE;
        self.fill(slot, check, place, at);
        leaves
    }

    /// Drops the entry of `place`, to which nobody may refer any more.
    pub fn forget(&mut self, place: Place) {
        if let Some(slot) = self.of_place.remove(&place.0) {
            self.entries[slot as usize].place = NONE;
        }
    }

    fn fill(&mut self, slot: usize, check: u64, place: Place, at: Step) {
        let old = self.entries[slot].place;
        if old != NONE {
            self.of_place.remove(&old.0);
        }
        self.of_place.insert(place.0, slot as u32);
        self.checks[slot] = check;
        self.entries[slot] = EfitEntry {
            place,
            stamp: self.clock,
            at,
            refer: 1,
        };
    }

    #[inline]
    fn first(&self, check: u64) -> usize {
        self.sets.of(check) * self.ways
    }
}
