//! The caches against memory as one map and LRU lists that are searched from end to end.

use std::collections::HashMap;

use proptest::prelude::*;
use sardonyx::line::{Line, Logical, ZERO_LINE};
use sardonyx::machine::{Caches, HitLevel};
use sardonyx::medium::params::{CacheLevel, CachesParams};
use sardonyx::plan::Step;
use sardonyx::units::Time;

/// A level by the book: lines of each set, the least recent first.
struct Lists {
    ways: usize,
    sets: Vec<Vec<u64>>,
}

impl Lists {
    fn new(level: CacheLevel) -> Lists {
        let sets = level.bytes as usize / 64 / level.ways;
        Lists {
            ways: level.ways,
            sets: vec![Vec::new(); sets],
        }
    }

    fn set(&mut self, line: u64) -> &mut Vec<u64> {
        let sets = self.sets.len() as u64;
        &mut self.sets[(line % sets) as usize]
    }

    fn remove(&mut self, line: u64) -> bool {
        let set = self.set(line);
        let before = set.len();
        set.retain(|l| *l != line);
        set.len() < before
    }

    fn put(&mut self, line: u64) -> Option<u64> {
        let ways = self.ways;
        let set = self.set(line);
        set.push(line);
        (set.len() > ways).then(|| set.remove(0))
    }

    fn renew(&mut self, line: u64) -> bool {
        let there = self.remove(line);
        if there {
            self.put(line);
        }
        there
    }
}

struct Book {
    l1: Vec<Lists>,
    l2: Vec<Lists>,
    llc: Lists,
    newest: HashMap<u64, Line>,
    memory: HashMap<u64, Line>,
    dirty: HashMap<u64, bool>,
}

impl Book {
    fn level(&mut self, core: usize, line: u64) -> Option<HitLevel> {
        if self.l1[core].renew(line) {
            return Some(HitLevel::L1);
        }
        let level = if self.l2.get_mut(core).is_some_and(|l2| l2.renew(line)) {
            HitLevel::L2
        } else if self.llc.renew(line) {
            self.l2.get_mut(core).map(|l2| l2.put(line));
            HitLevel::Llc
        } else {
            return None;
        };
        self.l1[core].put(line);
        Some(level)
    }

    fn drop_private(&mut self, line: u64, but: Option<usize>) {
        for core in (0..self.l1.len()).filter(|core| Some(*core) != but) {
            self.l1[core].remove(line);
            self.l2.get_mut(core).map(|l2| l2.remove(line));
        }
    }

    /// The line that had to go, and its mark if it was dirty.
    fn fill(&mut self, core: usize, line: u64) -> Option<(u64, bool)> {
        let gone = self.llc.put(line);
        if let Some(gone) = gone {
            self.drop_private(gone, None);
        }
        self.l1[core].put(line);
        self.l2.get_mut(core).map(|l2| l2.put(line));
        gone.and_then(|gone| Some((gone, self.dirty.remove(&gone)?)))
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Load,
    Store {
        from: u8,
        len: u8,
        value: u8,
        atomic: bool,
    },
    WriteBack,
    Flush,
}

fn act() -> impl Strategy<Value = Act> {
    let store = (0..64u8, 1..9u8, any::<u8>(), prop::bool::weighted(0.2));
    let store = store.prop_map(|(from, len, value, atomic)| Act::Store {
        from,
        len: len.min(64 - from),
        value,
        atomic,
    });
    prop_oneof![
        4 => Just(Act::Load),
        4 => store,
        1 => Just(Act::WriteBack),
        1 => Just(Act::Flush),
    ]
}

fn level(sets: u64, ways: usize) -> CacheLevel {
    CacheLevel {
        bytes: sets * ways as u64 * 64,
        ways,
        latency: Time::ZERO,
    }
}

fn params() -> impl Strategy<Value = CachesParams> {
    let sizes = (1..3u64, 1..4usize, 0..3u64, 1..4usize, 1..6u64, 2..9usize);
    sizes.prop_map(|(s1, w1, s2, w2, s3, w3)| CachesParams {
        l1: level(s1, w1),
        l2: level(s2, w2),
        llc: level(s3, w3),
    })
}

proptest! {
    #![proptest_config(sardonyx_property::cases(400))]

    /// Breaks if a store is lost or seen late, a dirty line is dropped or written twice, a mark does
    /// not travel, a level's recency is wrong, or a private copy outlives another core's store.
    #[test]
    fn loads_see_stores_and_evictions_are_lru(
        params in params(),
        acts in prop::collection::vec((0..3usize, 0..40u64, act()), 1..400),
    ) {
        let mut caches = Caches::new(&params, 3);
        let lists = |level: CacheLevel| (0..3).map(|_| Lists::new(level)).collect::<Vec<_>>();
        let mut book = Book {
            l1: lists(params.l1),
            l2: if params.l2.bytes > 0 { lists(params.l2) } else { Vec::new() },
            llc: Lists::new(params.llc),
            newest: HashMap::new(),
            memory: HashMap::new(),
            dirty: HashMap::new(),
        };
        for (core, line, act) in acts {
            let at = Logical(line);
            match act {
                Act::Load | Act::Store { .. } => {
                    let found = caches.find(core, at);
                    prop_assert_eq!(found.map(|hit| hit.level), book.level(core, line));
                    let hit = found.unwrap_or_else(|| {
                        let data = book.memory.get(&line).copied().unwrap_or(ZERO_LINE);
                        let (hit, gone) = caches.fill(core, at, &data, Step::PAST, 0);
                        let expected = book.fill(core, line);
                        assert_eq!(gone.map(|gone| (gone.line.0, gone.atomic)), expected);
                        if let Some(gone) = gone {
                            assert_eq!(Some(&gone.data), book.newest.get(&gone.line.0));
                            book.memory.insert(gone.line.0, gone.data);
                        }
                        hit
                    });
                    let newest = book.newest.entry(line).or_insert(ZERO_LINE);
                    prop_assert_eq!(caches.line(hit), &*newest);
                    if let Act::Store { from, len, value, atomic } = act {
                        let bytes = vec![value; usize::from(len)];
                        caches.store(core, hit, from, &bytes, atomic);
                        newest[usize::from(from)..usize::from(from + len)].copy_from_slice(&bytes);
                        *book.dirty.entry(line).or_insert(false) |= atomic;
                        book.drop_private(line, Some(core));
                    }
                }
                Act::WriteBack | Act::Flush => {
                    let written = match act {
                        Act::Flush => {
                            book.drop_private(line, None);
                            book.llc.remove(line);
                            caches.flush(at)
                        }
                        _ => caches.write_back(at),
                    };
                    prop_assert_eq!(written.map(|w| w.atomic), book.dirty.remove(&line));
                    if let Some(written) = written {
                        prop_assert_eq!(Some(&written.data), book.newest.get(&line));
                        book.memory.insert(line, written.data);
                    }
                }
            }
        }
        let left: Vec<u64> = caches.dirty_lines().iter().map(|dirty| dirty.line.0).collect();
        let mut expected: Vec<u64> = book.dirty.keys().copied().collect();
        expected.sort_unstable();
        prop_assert_eq!(left, expected);
    }
}

/// Breaks if a line's read is forgotten, or told of a line that has come again by another read.
#[test]
fn a_hit_tells_the_read_that_brings_the_line() {
    let params = CachesParams {
        l1: level(1, 1),
        llc: level(1, 1),
        ..CachesParams::default()
    };
    let mut caches = Caches::new(&params, 1);
    caches.fill(0, Logical(1), &ZERO_LINE, Step::PAST, 5);
    assert_eq!(caches.find(0, Logical(1)).unwrap().filling, 5);
    caches.fill(0, Logical(2), &ZERO_LINE, Step::PAST, 6);
    caches.fill(0, Logical(1), &ZERO_LINE, Step::PAST, 7);
    caches.filled(Logical(1), 5);
    assert_eq!(caches.find(0, Logical(1)).unwrap().filling, 7);
    caches.filled(Logical(1), 7);
    assert_eq!(caches.find(0, Logical(1)).unwrap().filling, 0);
}
