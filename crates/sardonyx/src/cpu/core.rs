//! A trace-driven core: reorder window, fetch and retire bandwidth, misses in flight; no pipeline.
//!
//! It never steps: the times of an access follow from those of the few accesses before it, exactly.
//! Inside, time is in ticks of 1/width ps, so that the time of one instruction is a whole number.

use std::collections::VecDeque;

use super::{Access, CpuError, Kind, Stream};
use crate::medium::params::CoreParams;
use crate::trace::GapUnit;
use crate::units::Time;

/// A read that a core has in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadId(pub u64);

/// What [`Core::take`] gave away.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// The access.
    pub access: Access,
    /// For a read, what [`Core::read_done`] wants to be told.
    pub read: Option<ReadId>,
}

/// A read from its fetch to its retirement.
struct Miss {
    /// Instructions before it.
    at: u64,
    fetched: u64,
    /// When its data are usable.
    back: Option<u64>,
}

/// What stands at the end of what has been taken.
enum Head {
    /// An access, fetched at this tick.
    Ready(u64),
    /// An access that waits for a read in flight.
    Blocked,
    /// Nothing: the trace is over, and everything fetched.
    End,
}

/// One core, playing its stream.
pub struct Core {
    stream: Stream,
    /// Ticks in a picosecond; also slots in a cycle.
    width: u64,
    /// Ticks from one instruction to the next: as many as a cycle has picoseconds.
    slot: u64,
    window: u64,
    mshrs: usize,
    cache_ticks: u64,
    slots_per_gap: u64,
    unit: GapUnit,
    /// Instructions before the head access (of a trace that counts cycles: slots, and reads).
    at: u64,
    /// Gap instructions between the last access taken and the head.
    gap: u64,
    head: Head,
    /// By how much fetch lags behind full speed since time 0.
    fetch_lag: u64,
    /// The same for retirement, of reads that the window has left behind.
    retire_lag: u64,
    /// When the last instruction before the head was fetched.
    fetched: u64,
    /// When the last write was taken.
    written: u64,
    /// Reads that may still matter to the window, oldest first, and the number of the first.
    misses: VecDeque<Miss>,
    first: u64,
    /// Reads without an answer, and when MSHRs whose read has one become free, in order.
    unanswered: usize,
    releases: VecDeque<u64>,
}

impl Core {
    /// A core at time 0 before the first access of `stream`, whose gaps count `unit`.
    ///
    /// A window smaller than the width counts as the width, no width and no MSHRs as one.
    pub fn new(params: &CoreParams, unit: GapUnit, stream: Stream) -> Core {
        let width = params.width.max(1);
        let mut core = Core {
            stream,
            width,
            slot: params.clock.ps(),
            window: params.window.max(width),
            mshrs: params.mshrs.max(1),
            cache_ticks: params.cache_latency.ps() * width,
            slots_per_gap: match unit {
                GapUnit::Instructions => 1,
                GapUnit::Cycles => width,
            },
            unit,
            at: 0,
            gap: 0,
            head: Head::Blocked,
            fetch_lag: 0,
            retire_lag: 0,
            fetched: 0,
            written: 0,
            misses: VecDeque::new(),
            first: 0,
            unanswered: 0,
            releases: VecDeque::new(),
        };
        core.advance();
        core
    }

    /// When the head access can be presented; `None` while that hangs on a read in flight, and at
    /// the end. Once it is known it stays, and it is never before the last [`Core::read_done`].
    #[inline]
    pub fn next_arrival(&self) -> Option<Time> {
        match self.head {
            Head::Ready(fetch) => Some(self.time(fetch)),
            Head::Blocked | Head::End => None,
        }
    }

    /// The access `k` after the head.
    #[inline]
    pub fn peek(&self, k: usize) -> Option<&Access> {
        self.stream.peek(k)
    }

    /// Gives away the head access at `now`; later than [`Core::next_arrival`] if memory did not take it
    /// at once, which delays all that follows.
    ///
    /// # Errors
    /// The trace is broken further on, or does not fit in memory.
    ///
    /// # Panics
    /// If there is no head access at `now`.
    pub fn take(&mut self, now: Time) -> Result<Taken, CpuError> {
        let Head::Ready(mut fetch) = self.head else {
            panic!("a core with no access to give was asked for one");
        };
        assert!(
            now >= self.time(fetch),
            "an access taken before it was there"
        );
        if now > self.time(fetch) {
            fetch = now.ps() * self.width;
        }
        self.fetch_lag = fetch - self.at * self.slot;
        let access = self.stream.next_access()?;
        let access = access.expect("a head access is in the stream");
        let read = match access.kind {
            Kind::Read => {
                while self.releases.front().is_some_and(|&free| free <= fetch) {
                    self.releases.pop_front();
                }
                self.unanswered += 1;
                self.misses.push_back(Miss {
                    at: self.at,
                    fetched: fetch,
                    back: None,
                });
                self.fetched = fetch;
                self.at += 1;
                Some(ReadId(self.first + self.misses.len() as u64 - 1))
            }
            Kind::Write => {
                self.written = fetch;
                None
            }
        };
        self.advance();
        Ok(Taken { access, read })
    }

    /// Memory has answered read `id` at `now`; the caches' latency comes on top. Answers are told in the
    /// order of their times.
    ///
    /// # Panics
    /// If the read is not in flight.
    pub fn read_done(&mut self, id: ReadId, now: Time) {
        let back = now.ps() * self.width + self.cache_ticks;
        let miss = id.0.checked_sub(self.first);
        let miss = miss.and_then(|i| self.misses.get_mut(usize::try_from(i).ok()?));
        let miss = miss.expect("an answer to a read that is in flight");
        assert!(miss.back.is_none(), "one answer to a read");
        miss.back = Some(back);
        self.unanswered -= 1;
        let place = self.releases.partition_point(|&free| free <= back);
        self.releases.insert(place, back);
        if matches!(self.head, Head::Blocked) {
            self.settle();
        }
    }

    /// Instructions before the head access, at the end all; `None` if the trace counts cycles, because
    /// then nobody knows.
    pub fn instructions(&self) -> Option<u64> {
        (self.unit == GapUnit::Instructions).then_some(self.at)
    }

    /// Whether everything was taken and answered.
    pub fn finished(&self) -> bool {
        matches!(self.head, Head::End) && self.unanswered == 0
    }

    /// When all instructions before the head have retired and the last write has been taken, as far
    /// as answers tell; at the end, how long the core took.
    pub fn retire_time(&self) -> Time {
        if self.at == 0 {
            return self.time(self.written);
        }
        let last = self.at - 1;
        let lag = self.misses.iter().fold(self.retire_lag, |lag, miss| {
            lag.max(self.lag_of(miss, miss.back.unwrap_or(0)))
        });
        let retired = (last * self.slot + lag).max(self.fetched + self.width * self.slot);
        self.time(retired.max(self.written))
    }

    /// The stream, for its counts.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Goes to the next access.
    fn advance(&mut self) {
        let gap = match self.stream.peek(0) {
            Some(access) => access.gap,
            None => self.stream.trailing_gap(),
        };
        self.gap = gap * self.slots_per_gap;
        self.at += self.gap;
        self.settle();
    }

    /// Finds out when the head is fetched, if the answers so far tell.
    fn settle(&mut self) {
        self.head = Head::Blocked;
        if self.gap > 0 {
            if !self.pass_window(self.at - 1) {
                return;
            }
            self.fetched = (self.at - 1) * self.slot + self.fetch_lag;
        }
        let Some(access) = self.stream.peek(0) else {
            self.head = Head::End;
            return;
        };
        let kind = access.kind;
        if !self.pass_window(self.at) {
            return;
        }
        let mut fetch = self.at * self.slot + self.fetch_lag;
        if kind == Kind::Read {
            let free = self.releases.partition_point(|&free| free <= fetch);
            if self.unanswered + self.releases.len() - free >= self.mshrs {
                // Answers come in the order of their times, so none can be before the first known.
                let Some(&first) = self.releases.get(free) else {
                    return;
                };
                fetch = first;
            }
        }
        self.head = Head::Ready(fetch);
    }

    /// Lets the window reach up to instruction `at`: everything `window` before it must have retired.
    fn pass_window(&mut self, at: u64) -> bool {
        while let Some(miss) = self.misses.front() {
            if miss.at + self.window > at {
                break;
            }
            let Some(back) = miss.back else {
                return false;
            };
            self.retire_lag = self.retire_lag.max(self.lag_of(miss, back));
            self.misses.pop_front();
            self.first += 1;
        }
        let reach = self.retire_lag.saturating_sub(self.window * self.slot);
        self.fetch_lag = self.fetch_lag.max(reach);
        true
    }

    /// The retirement's lag that this read causes: not before its data, nor less than a cycle after fetch.
    fn lag_of(&self, miss: &Miss, back: u64) -> u64 {
        (miss.fetched + self.width * self.slot).max(back) - miss.at * self.slot
    }

    fn time(&self, ticks: u64) -> Time {
        Time::from_ps(ticks.div_ceil(self.width))
    }
}
