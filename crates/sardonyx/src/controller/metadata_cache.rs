//! A set-associative write-back LRU cache of the lines of a table in the medium.
//! It holds the real bytes that the controller's SRAM would; what a line means is its owner's.
//! Left out: any policy but LRU, and any persistence but the write-back.

use sardonyx_prefetch::prefetch;

use super::params::CacheParams;
use crate::line::{LINE_BYTES, Line, Place, ZERO_LINE};
use crate::medium::params::Unit;
use crate::plan::{At, Plan, Queue, Step, Stored};

struct Entry {
    line: Line,
    /// When the line was there.
    fetched: Step,
    /// When all updates of it may leave the chip.
    ripe: Step,
}

/// Where a line is in the cache; good until the next [`MetadataCache::get`].
#[derive(Clone, Copy, Debug)]
pub struct Got {
    slot: usize,
    /// When the line is there.
    pub at: Step,
    /// It needed no access to the medium.
    pub hit: bool,
}

/// The cache.
pub struct MetadataCache {
    unit: Unit,
    queue: Queue,
    ways: usize,
    sets: u64,
    tags: Vec<u64>, // place + 1; 0 is empty
    used: Vec<u64>,
    /// The 8-byte words of each line that differ from the medium's; apart, because a victim's entry has
    /// long left the host's caches.
    dirty: Vec<u8>,
    entries: Vec<Entry>,
    clock: u64,
    lookups: u64,
    hits: u64,
}

impl MetadataCache {
    /// An empty cache, looked up by `unit`, whose write-backs wait in `queue`.
    pub fn new(params: CacheParams, unit: Unit, queue: Queue) -> MetadataCache {
        let ways = params.ways.max(1);
        let sets = (params.bytes / LINE_BYTES as u64 / ways as u64).max(1);
        let slots = sets as usize * ways;
        let blank = || Entry {
            line: ZERO_LINE,
            fetched: Step::PAST,
            ripe: Step::PAST,
        };
        MetadataCache {
            unit,
            queue,
            ways,
            sets,
            tags: vec![0; slots],
            used: vec![0; slots],
            dirty: vec![0; slots],
            entries: (0..slots).map(|_| blank()).collect(),
            clock: 0,
            lookups: 0,
            hits: 0,
        }
    }

    /// Looks up the line at `place`; on a miss fetches it and writes its dirty victim back.
    pub fn get(&mut self, place: Place, after: Step, plan: &mut Plan) -> Got {
        let got = self.revisit(place, after, plan);
        self.lookups += 1;
        self.hits += u64::from(got.hit);
        got
    }

    /// The same, by a request that has counted its look-up of this line already.
    pub fn revisit(&mut self, place: Place, after: Step, plan: &mut Plan) -> Got {
        let look = plan.unit(self.unit, after);
        self.clock += 1;
        let first = self.set(place);
        if let Some(slot) = self.find(first, place) {
            self.used[slot] = self.clock;
            let at = plan.both(look, self.entries[slot].fetched);
            return Got {
                slot,
                at,
                hit: true,
            };
        }
        let slot = self.victim(first);
        self.write_back(slot, Step::PAST, plan);
        let read = plan.read(place, look);
        self.tags[slot] = place.0 + 1;
        self.used[slot] = self.clock;
        self.entries[slot] = Entry {
            line: read.value.unwrap_or(ZERO_LINE),
            fetched: read.at,
            ripe: read.at,
        };
        self.dirty[slot] = 0;
        Got {
            slot,
            at: read.at,
            hit: false,
        }
    }

    /// The bytes of a line just looked up.
    pub fn line(&self, got: Got) -> &Line {
        &self.entries[got.slot].line
    }

    /// Changes bytes of a line just looked up; they may leave the chip after `ripe`.
    pub fn set_bytes(&mut self, got: Got, from: usize, bytes: &[u8], ripe: Step, plan: &mut Plan) {
        self.set_bytes_drained(got, from, bytes, (ripe, ripe), plan);
    }

    /// The same; a platform that drains the cache at a power cut does so after `drained`.
    pub fn set_bytes_drained(
        &mut self,
        got: Got,
        from: usize,
        bytes: &[u8],
        (ripe, drained): (Step, Step),
        plan: &mut Plan,
    ) {
        let entry = &mut self.entries[got.slot];
        entry.line[from..from + bytes.len()].copy_from_slice(bytes);
        for word in from / 8..=(from + bytes.len() - 1) / 8 {
            self.dirty[got.slot] |= 1 << word;
        }
        entry.ripe = plan.both(entry.ripe, ripe);
        let words = (from / 8..=(from + bytes.len() - 1) / 8).fold(0, |all, word| all | 1 << word);
        plan.on_chip(Place(self.tags[got.slot] - 1), &entry.line, words, drained);
    }

    /// The words of a line just looked up that differ from the medium's.
    pub fn dirty(&self, got: Got) -> u8 {
        self.dirty[got.slot]
    }

    /// Says that the 8-byte words in `words` are on their way to the medium by themselves.
    pub fn clean(&mut self, got: Got, words: u8) {
        self.dirty[got.slot] &= !words;
    }

    /// The line at `place` if it is cached, and nothing done in hardware.
    pub fn peek(&self, place: Place) -> Option<&Line> {
        let slot = self.find(self.set(place), place)?;
        Some(&self.entries[slot].line)
    }

    /// Fetches what a look-up of `place` will touch into the host's caches; no effect on results.
    pub fn touch_ahead(&self, place: Place, plan: &Plan) {
        let first = self.set(place);
        let slot = self.find(first, place).unwrap_or_else(|| {
            plan.touch_ahead(place);
            self.victim(first)
        });
        prefetch(&self.entries[slot]);
    }

    #[inline]
    fn victim(&self, first: usize) -> usize {
        let set = first..first + self.ways;
        let oldest = set.min_by_key(|slot| self.used[*slot]);
        oldest.expect("a set has ways")
    }

    /// Writes the line at `place` back if it is here and dirty; if not, waits for what has been
    /// evicted or written back of it and is still on its way.
    pub fn persist(&mut self, place: Place, after: Step, plan: &mut Plan) -> Stored {
        let slot = self.find(self.set(place), place);
        match slot.filter(|slot| self.dirty[*slot] != 0) {
            Some(slot) => self.write_back(slot, after, plan),
            None => {
                let under_way = plan.under_way(place);
                Stored {
                    accepted: plan.both(under_way.accepted, after),
                    done: plan.both(under_way.done, after),
                }
            }
        }
    }

    /// Writes all dirty lines back.
    pub fn flush(&mut self, plan: &mut Plan) {
        for slot in 0..self.entries.len() {
            self.write_back(slot, Step::PAST, plan);
        }
    }

    /// Starts counting look-ups anew.
    pub fn forget_figures(&mut self) {
        (self.lookups, self.hits) = (0, 0);
    }

    /// The part of the look-ups that needed no access to the medium.
    pub fn hit_rate(&self) -> f64 {
        rate(self.hits, self.lookups)
    }

    fn write_back(&mut self, slot: usize, gate: Step, plan: &mut Plan) -> Stored {
        let words = std::mem::take(&mut self.dirty[slot]);
        if words == 0 {
            return Stored::at(gate);
        }
        let entry = &self.entries[slot];
        let place = Place(self.tags[slot] - 1);
        let data = At::new(&entry.line, entry.ripe);
        plan.write_words(place, data, words, None, gate, self.queue)
    }

    #[inline]
    fn set(&self, place: Place) -> usize {
        spread(place.0, self.sets) as usize * self.ways
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
