//! GDDR's second window of activates: at most 32 of a rank.

use std::collections::VecDeque;

/// The activates of a rank in a window.
const MOST: usize = 32;

pub(super) struct ManyActivates {
    window: u64,
    /// The last activates of each rank, fewer than the window may have.
    last: Vec<VecDeque<u64>>,
}

impl ManyActivates {
    /// Of a window of so many cycles, if there is one.
    pub fn of(window: u64, ranks: u64) -> Option<Box<ManyActivates>> {
        let last = vec![VecDeque::new(); ranks as usize];
        (window > 0).then(|| Box::new(ManyActivates { window, last }))
    }

    /// Notes an activate, and returns the earliest cycle of the rank's next as far as the window is concerned.
    pub fn next(&mut self, rank: usize, cycle: u64) -> u64 {
        let last = &mut self.last[rank];
        last.push_back(cycle);
        match last.len() == MOST {
            true => last.pop_front().map_or(0, |first| first + self.window),
            false => 0,
        }
    }
}
