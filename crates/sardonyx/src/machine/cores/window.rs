//! A core's reorder window and its misses in flight (MSHRs), in ticks of 1/width ps. Both kinds of
//! core stand on them; `docs/inside/core-model.md` has the equations.

use std::collections::VecDeque;

use crate::medium::params::CoreParams;
use crate::units::Time;

/// A load from its fetch to its retirement.
struct Miss {
    /// Instructions before it.
    at: u64,
    fetched: u64,
    back: Option<u64>,
}

/// The reorder window: loads that may still hold up what comes after them.
pub(super) struct ReorderWindow {
    /// Ticks in a picosecond; also slots in a cycle.
    pub width: u64,
    /// Ticks from one instruction to the next: as many as a cycle has picoseconds.
    pub slot: u64,
    size: u64,
    /// By how much retirement lags behind full speed, of loads that the window has left behind.
    retire_lag: u64,
    /// Loads that may still matter, oldest first, and the number of the first.
    misses: VecDeque<Miss>,
    first: u64,
}

impl ReorderWindow {
    /// An empty window; one smaller than the width counts as the width, no width as one.
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

    /// Ticks that fetch takes through a whole window.
    pub fn ticks(&self) -> u64 {
        self.size * self.slot
    }

    /// The number of the load that [`Window::push`] takes next.
    pub fn upcoming(&self) -> u64 {
        self.first + self.misses.len() as u64
    }

    /// A load with `at` instructions before it, and when its data are usable if that is known.
    pub fn push(&mut self, at: u64, fetched: u64, back: Option<u64>) {
        self.misses.push_back(Miss { at, fetched, back });
    }

    /// The data of load number `id` are usable at `back`.
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

    /// Reaches up to instruction `at`, before which by the window's size everything must have retired;
    /// gives the least lag of fetch that this asks for, `None` while it hangs on an answer.
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

    /// By how much retirement lags behind full speed, as far as answers tell.
    pub fn lag(&self) -> u64 {
        self.misses.iter().fold(self.retire_lag, |lag, miss| {
            lag.max(self.lag_of(miss, miss.back.unwrap_or(0)))
        })
    }

    /// The lag that this load causes: not before its data, nor less than a cycle after fetch.
    fn lag_of(&self, miss: &Miss, back: u64) -> u64 {
        (miss.fetched + self.width * self.slot).max(back) - miss.at * self.slot
    }

    /// A tick as the rest of the simulator counts time.
    #[inline]
    pub fn time(&self, ticks: u64) -> Time {
        Time::from_ps(ticks.div_ceil(self.width))
    }
}

/// Miss-status holding registers: how many misses may be in flight.
pub(super) struct Mshrs {
    count: usize,
    out: usize,
    /// When those whose miss has its answer become free, in order.
    releases: VecDeque<u64>,
}

impl Mshrs {
    /// All free; none counts as one.
    pub fn new(params: &CoreParams) -> Mshrs {
        Mshrs {
            count: params.mshrs.max(1),
            out: 0,
            releases: VecDeque::new(),
        }
    }

    /// Misses without an answer.
    pub fn out(&self) -> usize {
        self.out
    }

    /// Those that are free at `tick` need not be remembered: nothing will be asked of before.
    pub fn forget(&mut self, tick: u64) {
        while self.releases.front().is_some_and(|&free| free <= tick) {
            self.releases.pop_front();
        }
    }

    /// One more miss is in flight.
    pub fn take(&mut self) {
        self.out += 1;
    }

    /// A miss has its answer, and its register is free at `tick`.
    pub fn release(&mut self, tick: u64) {
        self.out -= 1;
        let place = self.releases.partition_point(|&free| free <= tick);
        self.releases.insert(place, tick);
    }

    /// The first tick from `tick` on at which one is free; `None` while that hangs on an answer.
    pub fn free(&self, tick: u64) -> Option<u64> {
        let free = self.releases.partition_point(|&free| free <= tick);
        if self.out + self.releases.len() - free < self.count {
            return Some(tick);
        }
        // Answers come in the order of their times, so none can be before the first known.
        self.releases.get(free).copied()
    }
}
