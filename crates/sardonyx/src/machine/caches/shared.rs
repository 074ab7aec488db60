//! The shared last level: the bytes of every line that any core has, and who has it.

use sardonyx_base::prefetch;

use super::private::Sets;
use crate::line::{LINE_BYTES, Line};
use crate::medium::params::CacheLevel;
use crate::plan::Step;

#[derive(Clone, Copy)]
pub(super) struct State {
    pub sharers: u64,
    pub at: Step,
    /// The read that brings the line, by the reader's own name; 0 for none.
    pub filling: u32,
    pub dirty: bool,
    pub atomic: bool,
}

const EMPTY: State = State {
    sharers: 0,
    at: Step::PAST,
    filling: 0,
    dirty: false,
    atomic: false,
};

pub(super) struct Shared {
    sets: Sets,
    /// Tags: line + 1, 0 for none.
    tags: Vec<u64>,
    used: Vec<u64>,
    states: Vec<State>,
    bytes: Vec<u8>,
    clock: u64,
}

impl Shared {
    pub fn new(level: CacheLevel) -> Shared {
        let sets = Sets::new(level);
        let slots = sets.slots();
        Shared {
            sets,
            tags: vec![0; slots],
            used: vec![0; slots],
            states: vec![EMPTY; slots],
            bytes: vec![0; slots * LINE_BYTES],
            clock: 0,
        }
    }

    /// The slot of `line`, without any change.
    #[inline]
    pub fn peek(&self, line: u64) -> Option<u32> {
        let first = self.sets.first(line);
        let tags = &self.tags[first..first + self.sets.ways];
        let way = tags.iter().position(|tag| *tag == line + 1)?;
        Some((first + way) as u32)
    }

    #[inline]
    pub fn touch_ahead(&self, line: u64) {
        let first = self.sets.first(line);
        for at in (first..first + self.sets.ways).step_by(LINE_BYTES / size_of::<u64>()) {
            prefetch(&self.tags[at]);
            prefetch(&self.used[at]);
        }
    }

    /// Whether `line` is here. Prefetches its bytes if it is, else the bytes that it will replace.
    #[inline]
    pub fn touch_hit_ahead(&self, line: u64) -> bool {
        let found = self.peek(line);
        let slot = found.unwrap_or_else(|| self.victim(line));
        prefetch(self.bytes(slot));
        prefetch(self.state(slot));
        found.is_some()
    }

    /// The slot of `line`, which becomes the most recent.
    pub fn find(&mut self, line: u64) -> Option<u32> {
        let slot = self.peek(line)?;
        self.touch(slot);
        Some(slot)
    }

    /// The slot that `line` will take: an empty one, or that of the least recent line.
    pub fn victim(&self, line: u64) -> u32 {
        let first = self.sets.first(line);
        let set = first..first + self.sets.ways;
        let oldest = set.min_by_key(|slot| match self.tags[*slot] {
            0 => 0,
            _ => self.used[*slot],
        });
        oldest.expect("a set has ways") as u32
    }

    pub fn put(&mut self, slot: u32, line: u64, bytes: &Line, at: Step, filling: u32) {
        self.tags[slot as usize] = line + 1;
        self.states[slot as usize] = State {
            at,
            filling,
            ..EMPTY
        };
        *self.bytes_mut(slot) = *bytes;
        self.touch(slot);
    }

    pub fn clear(&mut self, slot: u32) {
        self.tags[slot as usize] = 0;
    }

    #[inline]
    pub fn tag(&self, slot: u32) -> Option<u64> {
        self.tags[slot as usize].checked_sub(1)
    }

    #[inline]
    pub fn state(&self, slot: u32) -> &State {
        &self.states[slot as usize]
    }

    #[inline]
    pub fn state_mut(&mut self, slot: u32) -> &mut State {
        &mut self.states[slot as usize]
    }

    #[inline]
    pub fn bytes(&self, slot: u32) -> &Line {
        &self.bytes.as_chunks::<LINE_BYTES>().0[slot as usize]
    }

    #[inline]
    pub fn bytes_mut(&mut self, slot: u32) -> &mut Line {
        &mut self.bytes.as_chunks_mut::<LINE_BYTES>().0[slot as usize]
    }

    pub fn occupied(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let tags = self.tags.iter().enumerate();
        tags.filter_map(|(slot, tag)| Some((slot as u32, tag.checked_sub(1)?)))
    }

    fn touch(&mut self, slot: u32) {
        self.clock += 1;
        self.used[slot as usize] = self.clock;
    }
}
