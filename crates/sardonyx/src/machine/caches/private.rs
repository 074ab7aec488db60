//! One core's private level: tags in order of use, and where the last level holds each line's bytes.
//! Left out: bytes and dirt, of which the last level has the only copy.

use crate::medium::params::CacheLevel;

/// The log bit of a line: the core's transaction has logged it.
const LOGGED: u32 = 1 << 31;

pub(super) struct Private {
    sets: Sets,
    /// Tags: line + 1, 0 for none. The most recent of a set comes first.
    tags: Vec<u64>,
    slots: Vec<u32>,
}

impl Private {
    pub fn new(level: CacheLevel) -> Private {
        let sets = Sets::new(level);
        Private {
            tags: vec![0; sets.slots()],
            slots: vec![0; sets.slots()],
            sets,
        }
    }

    /// The last level's slot of `line`, if this level has it. The line becomes the most recent.
    #[inline]
    pub fn find(&mut self, line: u64) -> Option<u32> {
        let first = self.sets.first(line);
        let tags = &mut self.tags[first..first + self.sets.ways];
        let way = tags.iter().position(|tag| *tag == line + 1)?;
        if way == 0 {
            return Some(self.slots[first] & !LOGGED);
        }
        to_front(&mut tags[..=way]);
        let slots = &mut self.slots[first..=first + way];
        to_front(slots);
        Some(slots[0] & !LOGGED)
    }

    pub fn insert(&mut self, line: u64, slot: u32) {
        let first = self.sets.first(line);
        let set = first..first + self.sets.ways;
        let (tags, slots) = (&mut self.tags[set.clone()], &mut self.slots[set]);
        let way = tags.iter().position(|tag| *tag == 0);
        let way = way.unwrap_or(tags.len() - 1);
        to_front(&mut tags[..=way]);
        to_front(&mut slots[..=way]);
        (tags[0], slots[0]) = (line + 1, slot);
    }

    /// Whether the log bit of `line` is set. The line has just been found here or taken.
    pub fn is_logged(&self, line: u64) -> bool {
        let first = self.sets.first(line);
        debug_assert_eq!(self.tags[first], line + 1);
        self.slots[first] & LOGGED != 0
    }

    pub fn set_logged(&mut self, line: u64) {
        let first = self.sets.first(line);
        debug_assert_eq!(self.tags[first], line + 1);
        self.slots[first] |= LOGGED;
    }

    pub fn clear_logged(&mut self) {
        for slot in &mut self.slots {
            *slot &= !LOGGED;
        }
    }

    pub fn remove(&mut self, line: u64) {
        let first = self.sets.first(line);
        let tags = &mut self.tags[first..first + self.sets.ways];
        if let Some(way) = tags.iter().position(|tag| *tag == line + 1) {
            tags[way] = 0;
            tags[way..].rotate_left(1);
            self.slots[first + way..first + self.sets.ways].rotate_left(1);
        }
    }
}

/// Moves the last of a few to the front: `rotate_right(1)` without its care for long slices.
#[inline]
fn to_front<T: Copy>(of: &mut [T]) {
    let Some(&last) = of.last() else { return };
    for at in (1..of.len()).rev() {
        of[at] = of[at - 1];
    }
    of[0] = last;
}

pub(super) struct Sets {
    pub ways: usize,
    sets: u64,
    power_of_two: bool,
}

impl Sets {
    pub fn new(level: CacheLevel) -> Sets {
        let ways = level.ways.max(1);
        let sets = (level.bytes / crate::line::LINE_BYTES as u64 / ways as u64).max(1);
        Sets {
            ways,
            sets,
            power_of_two: sets.is_power_of_two(),
        }
    }

    pub fn slots(&self) -> usize {
        self.sets as usize * self.ways
    }

    #[inline]
    pub fn first(&self, line: u64) -> usize {
        let set = match self.power_of_two {
            true => line & (self.sets - 1),
            false => line % self.sets,
        };
        set as usize * self.ways
    }
}
