//! A core's reorder window and its misses in flight (MSHRs), in ticks of 1/width ps. Both kinds of
//! core stand on them; `docs/inside/core-model.md` has the equations.

use std::collections::VecDeque;

use crate::medium::params::CoreParams;
use crate::units::Time;

struct Miss {
    at: u64,
    fetched: u64,
    back: Option<u64>,
}

pub(super) struct ReorderWindow {
    /// Ticks in a picosecond, which is also the number of slots in a cycle.
    pub width: u64,
    /// Ticks from one instruction to the next: as many as a cycle has picoseconds.
    pub slot: u64,
    size: u64,
    /// The lag of retirement behind full speed, due to loads that the window has passed.
    retire_lag: u64,
    /// Loads that may still matter, oldest first, and the number of the first.
    misses: VecDeque<Miss>,
    first: u64,
}

impl ReorderWindow {
    /// An empty window. A size smaller than the width counts as the width, a width of 0 as 1.
    pub fn new(params: &CoreParams) -> ReorderWindow {
        let width = params.width.max(1);
        ReorderWindow {
            width,
            slot: params.clock.ps(),
            size: params.window.max(width),
            retire_lag: 0,
            misses: VecDeque::new(),
            first: 0,
        }
    }

    pub fn ticks(&self) -> u64 {
        self.size * self.slot
    }

    pub fn upcoming(&self) -> u64 {
        self.first + self.misses.len() as u64
    }

    /// Adds a load with `at` instructions before it, and the tick at which its data are usable if that is known.
    pub fn push(&mut self, at: u64, fetched: u64, back: Option<u64>) {
        self.misses.push_back(Miss { at, fetched, back });
    }

    /// Notes that the data of load number `id` are usable at `back`.
    ///
    /// # Panics
    /// If it is not in flight.
    pub fn answered(&mut self, id: u64, back: u64) {
        let miss = id.checked_sub(self.first);
        let miss = miss.and_then(|i| self.misses.get_mut(usize::try_from(i).ok()?));
        let miss = miss.expect("an answer to a load that is in flight");
        assert!(miss.back.is_none(), "one answer to a load");
        miss.back = Some(back);
    }

    /// Moves the window up to instruction `at`. By the window's size everything before it must have retired; returns
    /// the least lag of fetch that this demands, `None` while it depends on an answer.
    #[inline]
    pub fn pass(&mut self, at: u64) -> Option<u64> {
        while let Some(miss) = self.misses.front() {
            if miss.at + self.size > at {
                break;
            }
            let back = miss.back?;
            self.retire_lag = self.retire_lag.max(self.lag_of(miss, back));
            self.misses.pop_front();
            self.first += 1;
        }
        Some(self.retire_lag.saturating_sub(self.ticks()))
    }

    /// The lag of retirement behind full speed, as far as answers tell.
    pub fn lag(&self) -> u64 {
        self.misses.iter().fold(self.retire_lag, |lag, miss| {
            lag.max(self.lag_of(miss, miss.back.unwrap_or(0)))
        })
    }

    /// The lag that this load causes: it retires not before its data are there, nor less than a cycle after fetch.
    fn lag_of(&self, miss: &Miss, back: u64) -> u64 {
        (miss.fetched + self.width * self.slot).max(back) - miss.at * self.slot
    }

    #[inline]
    pub fn time(&self, ticks: u64) -> Time {
        Time::from_ps(ticks.div_ceil(self.width))
    }
}

/// The miss-status holding registers, which limit the misses in flight.
pub(super) struct Mshrs {
    count: usize,
    out: usize,
    /// The ticks at which registers become free whose miss has its answer, in order.
    releases: VecDeque<u64>,
}

impl Mshrs {
    /// A set of free registers. A number of 0 counts as 1.
    pub fn new(params: &CoreParams) -> Mshrs {
        Mshrs {
            count: params.mshrs.max(1),
            out: 0,
            releases: VecDeque::new(),
        }
    }

    pub fn out(&self) -> usize {
        self.out
    }

    /// Forgets registers that are free at `tick`, because nobody will ask about an earlier tick.
    pub fn forget(&mut self, tick: u64) {
        while self.releases.front().is_some_and(|&free| free <= tick) {
            self.releases.pop_front();
        }
    }

    pub fn take(&mut self) {
        self.out += 1;
    }

    pub fn release(&mut self, tick: u64) {
        self.out -= 1;
        let place = self.releases.partition_point(|&free| free <= tick);
        self.releases.insert(place, tick);
    }

    /// The first tick from `tick` on at which a register is free; `None` while that depends on an answer.
    pub fn free(&self, tick: u64) -> Option<u64> {
        let free = self.releases.partition_point(|&free| free <= tick);
        if self.out + self.releases.len() - free < self.count {
            return Some(tick);
        }
        // Answers come in the order of their times, so none can be before the first known.
        self.releases.get(free).copied()
    }
}
