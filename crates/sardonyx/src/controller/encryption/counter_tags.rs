//! A counter cache whose counters come one at a time, each with its line (SCA's co-located design
//! with a counter cache): eight counters share a tag, each is there or not. Nothing is ever dirty.
//! Left out: the counters' values, which the medium's newest view has.

use crate::controller::metadata_cache::SetIndex;
use crate::figures::Amount;
use crate::line::{LINE_BYTES, Place};
use crate::plan::Step;
use crate::settings::{CacheParams, Settings};

const PER_TAG: u64 = 8;

#[derive(Clone, Copy, Default)]
struct TagEntry {
    /// The number of the eight lines whose counters these are, plus one; 0 is empty.
    tag: u64,
    used: u64,
    fetched: [Option<Step>; PER_TAG as usize],
}

/// A set-associative cache of counters with least-recently-used replacement.
pub struct CounterTags {
    ways: usize,
    sets: SetIndex,
    entries: Vec<TagEntry>,
    clock: u64,
    lookups: u64,
    hits: u64,
}

impl CounterTags {
    /// An empty cache of `params.bytes / 8` counters.
    pub fn new(params: CacheParams, settings: &Settings) -> CounterTags {
        let ways = params.ways.max(1);
        let sets = (params.bytes / LINE_BYTES as u64 / ways as u64).max(1);
        CounterTags {
            ways,
            sets: SetIndex::new(sets, settings),
            entries: vec![TagEntry::default(); sets as usize * ways],
            clock: 0,
            lookups: 0,
            hits: 0,
        }
    }

    /// Looks up the counter of `a`, and returns the step after which it is there.
    pub fn find(&mut self, a: Place) -> Option<Step> {
        self.lookups += 1;
        self.clock += 1;
        let clock = self.clock;
        let entry = self.set(a).iter_mut().find(|e| e.tag == tag(a))?;
        entry.used = clock;
        let fetched = entry.fetched[(a.0 % PER_TAG) as usize];
        self.hits += u64::from(fetched.is_some());
        fetched
    }

    /// Notes that the counter of `a` is there after `at`.
    pub fn insert(&mut self, a: Place, at: Step) {
        self.clock += 1;
        let clock = self.clock;
        let set = self.set(a);
        let known = set.iter().position(|e| e.tag == tag(a));
        let oldest = || (0..set.len()).min_by_key(|way| set[*way].used);
        let way = known.or_else(oldest).expect("a set has ways");
        if known.is_none() {
            set[way] = TagEntry::default();
            set[way].tag = tag(a);
        }
        set[way].used = clock;
        set[way].fetched[(a.0 % PER_TAG) as usize] = Some(at);
    }

    /// The share of look-ups that needed no access to the medium.
    pub fn hits(&self) -> Amount {
        Amount::Part {
            of: self.lookups,
            part: self.hits,
        }
    }

    /// Counts look-ups from zero again.
    pub fn forget_figures(&mut self) {
        (self.lookups, self.hits) = (0, 0);
    }

    fn set(&mut self, a: Place) -> &mut [TagEntry] {
        let first = self.sets.of(a.0 / PER_TAG) * self.ways;
        &mut self.entries[first..first + self.ways]
    }
}

fn tag(a: Place) -> u64 {
    a.0 / PER_TAG + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbours_counter_is_not_there_and_the_oldest_eight_go() {
        let (bytes, ways) = (128, 2);
        let mut cache = CounterTags::new(CacheParams { bytes, ways }, &Settings::default());
        cache.insert(Place(3), Step::PAST);
        assert_eq!(cache.find(Place(3)), Some(Step::PAST));
        assert_eq!(cache.find(Place(4)), None);
        cache.insert(Place(80), Step::PAST);
        cache.find(Place(3));
        cache.insert(Place(160), Step::PAST);
        assert!(cache.find(Place(3)).is_some() && cache.find(Place(80)).is_none());
        assert_eq!(cache.hits().number(), Some(3.0 / 5.0));
    }
}
