//! A set-associative write-back cache of the lines of a table in the medium, LRU unless its owner
//! says otherwise. It holds the real bytes that the controller's SRAM would; what a line means is its
//! owner's. Left out: any persistence but the write-back.

use sardonyx_base::prefetch;

use crate::figures::Amount;
use crate::line::{LINE_BYTES, Line, Place, ZERO_LINE};
use crate::mechanisms::mechanisms;
use crate::medium::params::Unit;
use crate::plan::journal::Domain;
use crate::plan::{At, Plan, Queue, Step, Stored};
use crate::settings::{CacheKey, CacheParams, Settings, keys, words};

/// The line that a full set gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// The line with the lowest reference count, and the least recent of those: least reference count used (ESD III-D).
    Lrcu,
    /// The least recently used line.
    Lru,
}

words!(Replacement { "lrcu" => Lrcu, "lru" => Lru });

/// The set of a cache or table on chip that a key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sets {
    /// The set is chosen by a hash of the key.
    Hashed,
    /// The set is the key modulo the number of sets.
    Modulo,
}

words!(Sets { "hashed" => Hashed, "modulo" => Modulo });

mechanisms! {
    METADATA_EVICTION = "metadata evictions", least 30;
    METADATA_WRITE_BACK = "metadata write-backs", least 30;
}

keys! {
    SETS: Sets = word("metadata.sets", "hashed"),
        Assumed("no paper says how a table on chip chooses an entry's set"),
        "Set of an entry of EFIT, a metadata cache or a counter cache: by a hash, or the number modulo the sets";
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SetIndex {
    sets: u64,
    by: Sets,
}

impl SetIndex {
    pub fn new(sets: u64, settings: &Settings) -> SetIndex {
        let by = settings.get(&SETS);
        SetIndex { sets, by }
    }

    #[inline]
    pub fn of(self, key: u64) -> usize {
        let set = match self.by {
            Sets::Hashed => spread(key, self.sets),
            Sets::Modulo => key % self.sets,
        };
        set as usize
    }
}

/// A line's bytes, aligned to one cache line of the host.
#[derive(Clone)]
#[repr(align(64))]
struct Aligned(Line);

#[derive(Clone, Copy)]
struct Times {
    fetched: Step,
    ripe: Step,
}

/// In a line's worth, the number of its look-ups stands above the time of the last one.
const LOOKUP: u64 = 1 << 56;
const MOST_LOOKUPS: u64 = u8::MAX as u64 * LOOKUP;

/// The position of a line after a look-up. It is valid until the next [`MetadataCache::get`].
#[derive(Clone, Copy, Debug)]
pub struct Lookup {
    slot: usize,
    /// The step after which the line is in the cache.
    pub at: Step,
    /// The line was in the cache, so that no access to the medium was needed.
    pub hit: bool,
}

/// A write-back cache of metadata lines on chip.
pub struct MetadataCache {
    unit: Unit,
    queue: Queue,
    ways: usize,
    sets: SetIndex,
    tags: Vec<u64>, // place + 1; 0 is empty
    /// The time when each line was used last and, above it if the policy counts, the number of its look-ups. The least
    /// worth is evicted first.
    worth: Vec<u64>,
    lookup: u64,
    /// The 8-byte words of each line that differ from the medium's. They are kept apart, because a victim's entry has
    /// long left the host's caches.
    dirty: Vec<u8>,
    lines: Vec<Aligned>,
    times: Vec<Times>,
    clock: u64,
    lookups: u64,
    hits: u64,
}

impl MetadataCache {
    /// The empty cache of `key`, looked up by `unit`, whose write-backs wait in `queue`.
    pub fn new(key: &CacheKey, unit: Unit, queue: Queue, settings: &Settings) -> MetadataCache {
        MetadataCache::sized(settings.cache(key), unit, queue, settings)
    }

    fn sized(params: CacheParams, unit: Unit, queue: Queue, settings: &Settings) -> MetadataCache {
        let ways = params.ways.max(1);
        let sets = (params.bytes / LINE_BYTES as u64 / ways as u64).max(1);
        let slots = sets as usize * ways;
        let past = Times {
            fetched: Step::PAST,
            ripe: Step::PAST,
        };
        MetadataCache {
            unit,
            queue,
            ways,
            sets: SetIndex::new(sets, settings),
            tags: vec![0; slots],
            worth: vec![0; slots],
            lookup: 0,
            dirty: vec![0; slots],
            lines: vec![Aligned(ZERO_LINE); slots],
            times: vec![past; slots],
            clock: 0,
            lookups: 0,
            hits: 0,
        }
    }

    /// Lets `policy` choose victims. References are look-ups since the line came, up to 255.
    pub fn replacing(mut self, policy: Replacement) -> MetadataCache {
        self.lookup = match policy {
            Replacement::Lru => 0,
            Replacement::Lrcu => LOOKUP,
        };
        self
    }

    /// Looks up the line at `place`; on a miss fetches it and writes its dirty victim back.
    pub fn get(&mut self, place: Place, after: Step, plan: &mut Plan) -> Lookup {
        let cached = self.revisit(place, after, plan);
        self.lookups += 1;
        self.hits += u64::from(cached.hit);
        cached
    }

    /// Looks up the line at `place` like [`MetadataCache::get`], for a request that has counted its look-up already.
    pub fn revisit(&mut self, place: Place, after: Step, plan: &mut Plan) -> Lookup {
        let look = plan.unit(self.unit, after);
        self.clock += 1;
        let first = self.set(place);
        if let Some(slot) = self.find(first, place) {
            let lookups = self.worth[slot] & MOST_LOOKUPS;
            self.worth[slot] = lookups.saturating_add(self.lookup) & MOST_LOOKUPS | self.clock;
            let at = plan.both(look, self.times[slot].fetched);
            return Lookup {
                slot,
                at,
                hit: true,
            };
        }
        let slot = self.victim(first);
        if self.dirty[slot] != 0 {
            plan.exercise(&METADATA_EVICTION);
        }
        self.write_back(slot, Step::PAST, plan);
        let read = plan.read(place, look);
        self.tags[slot] = place.0 + 1;
        self.worth[slot] = self.lookup | self.clock;
        self.lines[slot].0 = read.value.unwrap_or(ZERO_LINE);
        self.times[slot] = Times {
            fetched: read.at,
            ripe: read.at,
        };
        self.dirty[slot] = 0;
        Lookup {
            slot,
            at: read.at,
            hit: false,
        }
    }

    /// The line that leaves if the line at `place` is looked up now.
    pub fn displaced_by(&self, place: Place) -> Option<Place> {
        let first = self.set(place);
        let comes = self.find(first, place).is_none();
        let tag = comes.then(|| self.tags[self.victim(first)])?;
        tag.checked_sub(1).map(Place)
    }

    /// The bytes of a line just looked up.
    pub fn line(&self, cached: Lookup) -> &Line {
        &self.lines[cached.slot].0
    }

    /// Changes bytes of a line just looked up; they may leave the chip after `ripe`.
    pub fn set_bytes(
        &mut self,
        cached: Lookup,
        from: usize,
        bytes: &[u8],
        ripe: Step,
        plan: &mut Plan,
    ) {
        self.set_bytes_drained(cached, from, bytes, ripe, ripe, plan);
    }

    /// Changes bytes as [`MetadataCache::set_bytes`] does. A platform that drains the cache at a power cut does so
    /// after `drained`.
    pub fn set_bytes_drained(
        &mut self,
        cached: Lookup,
        from: usize,
        bytes: &[u8],
        ripe: Step,
        drained: Step,
        plan: &mut Plan,
    ) {
        let line = &mut self.lines[cached.slot].0;
        line[from..from + bytes.len()].copy_from_slice(bytes);
        let words = (from / 8..=(from + bytes.len() - 1) / 8).fold(0, |all, word| all | 1 << word);
        self.dirty[cached.slot] |= words;
        let times = &mut self.times[cached.slot];
        times.ripe = plan.both(times.ripe, ripe);
        let place = Place(self.tags[cached.slot] - 1);
        let bytes = from..from + bytes.len();
        plan.on_chip(place, line, bytes, drained, Domain::Cache);
    }

    /// The words, a bit each, in which a line just looked up differs from the medium's.
    pub fn dirty(&self, cached: Lookup) -> u8 {
        self.dirty[cached.slot]
    }

    /// Whether the line at `place` is cached and differs from the medium's.
    pub fn is_dirty(&self, place: Place) -> bool {
        let slot = self.find(self.set(place), place);
        slot.is_some_and(|slot| self.dirty[slot] != 0)
    }

    /// Notes that the 8-byte words in `words` are on their way to the medium by themselves.
    pub fn clean(&mut self, cached: Lookup, words: u8) {
        self.dirty[cached.slot] &= !words;
    }

    /// The step after which all updates of the line at `place` may leave the chip, if it is cached.
    pub fn ripe_at(&self, place: Place) -> Step {
        let slot = self.find(self.set(place), place);
        slot.map_or(Step::PAST, |slot| self.times[slot].ripe)
    }

    /// The cache's slot of a line just looked up.
    pub fn slot(&self, cached: Lookup) -> usize {
        cached.slot
    }

    /// Replaces the line at `place`, if it is cached, by `line`, which goes to the medium by other means.
    pub fn renew(&mut self, place: Place, line: &Line, ripe: Step) {
        if let Some(slot) = self.find(self.set(place), place) {
            self.lines[slot].0 = *line;
            self.dirty[slot] = 0;
            self.times[slot].ripe = ripe;
        }
    }

    /// The line at `place` if it is cached. Hardware does nothing for this.
    pub fn peek(&self, place: Place) -> Option<&Line> {
        let slot = self.find(self.set(place), place)?;
        Some(&self.lines[slot].0)
    }

    /// The newest line at `place`, in the cache or not. Hardware does nothing for this.
    pub fn newest(&self, place: Place, plan: &Plan) -> Line {
        let cached = self.peek(place).copied();
        cached.or_else(|| plan.peek(place)).unwrap_or(ZERO_LINE)
    }

    /// Changes the line at `place`, in the medium and in the cache if it is there, to what memory has held all the time
    /// ([`Plan::preload`]).
    pub fn preload(&mut self, place: Place, plan: &mut Plan, change: impl Fn(&mut Line)) {
        if let Some(slot) = self.find(self.set(place), place) {
            change(&mut self.lines[slot].0);
        }
        plan.preload(place, None, change);
    }

    /// Prefetches into the host's caches what a look-up of `place` will touch. No effect on results.
    pub fn touch_ahead(&self, place: Place, plan: &Plan) {
        let first = self.set(place);
        let slot = self.find(first, place).unwrap_or_else(|| {
            plan.touch_ahead(place);
            self.victim(first)
        });
        prefetch(&self.lines[slot]);
        prefetch(&self.times[slot]);
    }

    #[inline]
    fn victim(&self, first: usize) -> usize {
        let set = self.worth[first..first + self.ways].iter().zip(first..);
        let least = set.min_by_key(|(worth, _)| **worth);
        least.expect("a set has ways").1
    }

    /// Writes the line at `place` back if it is cached and dirty; otherwise waits for its earlier write-backs that are
    /// in flight.
    pub fn persist(&mut self, place: Place, after: Step, plan: &mut Plan) -> Stored {
        let slot = self.find(self.set(place), place);
        match slot.filter(|slot| self.dirty[*slot] != 0) {
            Some(slot) => {
                plan.exercise(&METADATA_WRITE_BACK);
                self.write_back(slot, after, plan)
            }
            None => {
                let under_way = plan.under_way(place);
                under_way.and(Stored::at(after), plan)
            }
        }
    }

    /// Writes all dirty lines back.
    pub fn flush(&mut self, plan: &mut Plan) {
        for slot in 0..self.lines.len() {
            self.write_back(slot, Step::PAST, plan);
        }
    }

    /// The share of the look-ups that needed no access to the medium.
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

    fn write_back(&mut self, slot: usize, gate: Step, plan: &mut Plan) -> Stored {
        let words = std::mem::take(&mut self.dirty[slot]);
        if words == 0 {
            return Stored::at(gate);
        }
        let place = Place(self.tags[slot] - 1);
        let data = At::new(&self.lines[slot].0, self.times[slot].ripe);
        plan.write_back(place, data, words, gate, self.queue)
    }

    #[inline]
    fn set(&self, place: Place) -> usize {
        self.sets.of(place.0) * self.ways
    }

    #[inline]
    fn find(&self, first: usize, place: Place) -> Option<usize> {
        let tags = &self.tags[first..first + self.ways];
        let way = tags.iter().position(|tag| *tag == place.0 + 1)?;
        Some(first + way)
    }
}

/// Spreads `key` over `0..buckets` by multiplication.
#[inline]
pub(crate) fn spread(key: u64, buckets: u64) -> u64 {
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((u128::from(hash) * u128::from(buckets)) >> 64) as u64
}

/// `part` of `whole`, 0 of nothing.
pub(crate) fn rate(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => part as f64 / whole as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::image::Image;

    /// Checks victims against a searched list: the lines present, how often each was looked up, and when last.
    #[test]
    fn victims_are_those_that_the_policy_names() {
        let (ways, places) = (4, 7);
        for policy in [Replacement::Lru, Replacement::Lrcu] {
            let bytes = (ways * LINE_BYTES) as u64;
            let params = CacheParams { bytes, ways };
            let settings = Settings::default();
            let cache = MetadataCache::sized(params, Unit::Metadata, Queue::Data, &settings);
            let mut cache = cache.replacing(policy);
            let mut plan = Plan::new(Image::new(), true);
            let mut model: Vec<(u64, u32, u32)> = Vec::new(); // place, look-ups, the last
            let (mut random, mut hits) = (1u64, 0);
            for now in 1..4000 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                // A place is looked up the oftener the lower it is, the first more than 255 times.
                let place = (random >> 33) % places * ((random >> 50) % places) / places;
                let known = model.iter().position(|(known, ..)| *known == place);
                let cached = cache.get(Place(place), Step::PAST, &mut plan);
                assert_eq!(cached.hit, known.is_some());
                hits += u32::from(cached.hit);
                match known {
                    Some(at) => {
                        let (_, lookups, last) = &mut model[at];
                        (*lookups, *last) = ((*lookups + 1).min(255), now);
                    }
                    None => {
                        let worth = |(_, lookups, last): &(u64, u32, u32)| match policy {
                            Replacement::Lru => (0, *last),
                            Replacement::Lrcu => (*lookups, *last),
                        };
                        if model.len() == ways {
                            let victim = (0..ways).min_by_key(|at| worth(&model[*at]));
                            model.swap_remove(victim.unwrap());
                        }
                        model.push((place, 1, now));
                    }
                }
            }
            assert!(hits > 1000 && hits < 3900, "{hits}");
        }
    }
}
