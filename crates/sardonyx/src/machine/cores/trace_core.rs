//! A trace-driven core: reorder window, fetch and retire bandwidth, misses in flight; no pipeline.
//!
//! It never steps: the times of an access follow from those of the few accesses before it, exactly.
//! Inside, time is in ticks of 1/width ps, so that the time of one instruction is a whole number.

use super::window::{Mshrs, ReorderWindow};
use crate::line::Virtual;
use crate::machine::agent::{Agent, AgentAnswer, CoreFigures, Passing, Turn};
use crate::machine::error::RunError;
use crate::machine::page_table::OutOfMemory;
use crate::machine::port::Port;
use crate::machine::streams::{Access, LOOK_AHEAD, Stream};
use crate::medium::params::CoreParams;
use crate::stats::Direction;
use crate::trace::GapUnit;
use crate::units::Time;

/// A read that a core has in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadId(pub u64);

/// The access that [`TraceCore::take`] gave away.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// The access.
    pub access: Access,
    /// For a read, the name that [`TraceCore::read_done`] wants.
    pub read: Option<ReadId>,
}

enum TraceHead {
    Ready(u64),
    Blocked,
    End,
}

/// Converts a trace's gaps to slots, exactly: the part that does not fill a slot carries over.
struct Pace {
    slots: u128,
    of: u128,
    rest: u128,
    /// Slots that reach beyond the end of the engine's clock. A gap of so many ends the run.
    most: u128,
}

impl Pace {
    /// Gives an instruction one slot, a cycle of the trace's clock as many as fit in its length, and a cycle of an
    /// unknown clock as many as one of this core.
    fn new(unit: GapUnit, clock_khz: Option<u64>, window: &ReorderWindow) -> Pace {
        let (slots, of) = match (unit, clock_khz) {
            (GapUnit::Instructions, _) => (1, 1),
            (GapUnit::Cycles, None) => (window.width, 1),
            // 10^9 / kHz are the picoseconds of a trace's cycle, slot / width those of a slot.
            (GapUnit::Cycles, Some(khz)) => (1_000_000_000 * window.width, khz * window.slot),
        };
        Pace {
            slots: u128::from(slots),
            of: u128::from(of),
            rest: 0,
            most: (1 << 61) / u128::from(window.slot.max(1)),
        }
    }

    fn slots(&mut self, gap: u64) -> u64 {
        let all = u128::from(gap) * self.slots + self.rest;
        self.rest = all % self.of;
        (all / self.of).min(self.most) as u64
    }
}

/// A core that plays its stream.
pub struct TraceCore {
    core: usize,
    stream: Stream,
    window: ReorderWindow,
    mshrs: Mshrs,
    cache_ticks: u64,
    pace: Pace,
    unit: GapUnit,
    /// Instructions before the head access (of a trace that counts cycles: slots, and reads).
    at: u64,
    /// Gap instructions between the last access taken and the head.
    gap: u64,
    head: TraceHead,
    /// Whether other threads of its recording come before the head.
    held: bool,
    /// Ticks at which the last of these had come.
    freed: u64,
    /// The lag of fetch behind full speed since time 0.
    fetch_lag: u64,
    fetched: u64,
    written: u64,
    passed: bool,
    line: Virtual,
    /// Instructions of skipped accesses, up to the access before the head.
    over: u64,
}

impl TraceCore {
    /// Core number `core` at time 0 before the first access of `stream`.
    ///
    /// A window smaller than the width counts as the width, no width and no MSHRs as one.
    pub fn new(core: usize, params: &CoreParams, stream: Stream) -> TraceCore {
        let (window, unit) = (ReorderWindow::new(params), stream.gap_unit());
        let mut core = TraceCore {
            core,
            pace: Pace::new(unit, stream.clock_khz(), &window),
            cache_ticks: params.cache_latency.ps() * window.width,
            mshrs: Mshrs::new(params),
            stream,
            window,
            unit,
            at: 0,
            gap: 0,
            head: TraceHead::Blocked,
            held: false,
            freed: 0,
            fetch_lag: 0,
            fetched: 0,
            written: 0,
            passed: false,
            line: Virtual(0),
            over: 0,
        };
        core.advance();
        core
    }

    /// The time at which the head access can be presented; `None` while that depends on a read in flight, and at the
    /// end. Once it is known it stays, and it is never before the last [`TraceCore::read_done`].
    #[inline]
    pub fn next_arrival(&self) -> Option<Time> {
        match self.head {
            TraceHead::Ready(fetch) => Some(self.time(fetch)),
            TraceHead::Blocked | TraceHead::End => None,
        }
    }

    /// Gives the head access away at `now`. If memory did not take it at [`TraceCore::next_arrival`], all that follows
    /// is delayed.
    ///
    /// # Errors
    /// The trace is broken further on.
    ///
    /// # Panics
    /// If there is no head access at `now`.
    pub fn take(&mut self, now: Time) -> Result<Taken, RunError> {
        let TraceHead::Ready(mut fetch) = self.head else {
            panic!("a core with no access to give was asked for one");
        };
        assert!(
            now >= self.time(fetch),
            "an access taken before it was there"
        );
        if now > self.time(fetch) {
            fetch = now.ps() * self.window.width;
        }
        self.fetch_lag = fetch - self.at * self.window.slot;
        let access = self.stream.next_access()?;
        let access = access.expect("a head access is in the stream");
        self.line = access.line;
        let read = match access.kind {
            Direction::Read => {
                self.mshrs.forget(fetch);
                self.mshrs.take();
                let id = self.window.upcoming();
                self.window.push(self.at, fetch, None);
                self.fetched = fetch;
                self.at += 1;
                Some(ReadId(id))
            }
            Direction::Write => {
                self.written = fetch;
                None
            }
        };
        self.advance();
        Ok(Taken { access, read })
    }

    /// Takes the answer to read `id` at `now`, to which the caches' latency is added. Answers come in the order of
    /// their times.
    ///
    /// # Panics
    /// If the read is not in flight.
    pub fn read_done(&mut self, id: ReadId, now: Time) {
        let back = now.ps() * self.window.width + self.cache_ticks;
        self.window.answered(id.0, back);
        self.mshrs.release(back);
        if matches!(self.head, TraceHead::Blocked) {
            self.settle();
        }
    }

    /// Instructions before the head access, at the end all of them; `None` if the trace counts cycles and nobody knows.
    pub fn instructions(&self) -> Option<u64> {
        (self.unit == GapUnit::Instructions).then_some(self.at)
    }

    /// The time at which all instructions before the head have retired and the last write has been taken, as far as
    /// answers tell. At the end it is the time that the core took.
    pub fn retire_time(&self) -> Time {
        if self.at == 0 {
            return self.time(self.written);
        }
        let last = self.at - 1;
        let retired = (last * self.window.slot + self.window.lag())
            .max(self.fetched + self.window.width * self.window.slot);
        self.time(retired.max(self.written))
    }

    /// Goes on at `now`, because an access of another thread that comes before the head has been issued, or the head has
    /// been read. The head does not arrive earlier, so the wait is no latency of memory.
    fn release(&mut self, now: Time) {
        self.freed = now.ps() * self.window.width;
        if self.stream.peek(0).is_some() {
            self.held = self.stream.must_wait();
            self.settle();
        } else {
            self.stream.take_share();
            self.advance();
        }
    }

    fn advance(&mut self) {
        self.held = self.stream.must_wait();
        let gap = match self.stream.peek(0) {
            Some(access) => access.gap,
            None if self.held => {
                self.head = TraceHead::Blocked;
                return;
            }
            None => self.stream.trailing_gap(),
        };
        self.gap = self.pace.slots(gap);
        self.at += self.gap;
        self.settle();
    }

    /// Computes when the head is fetched, if the answers so far tell.
    fn settle(&mut self) {
        self.head = TraceHead::Blocked;
        if self.held {
            return;
        }
        if self.gap > 0 {
            if !self.pass_window(self.at - 1) {
                return;
            }
            self.fetched = (self.at - 1) * self.window.slot + self.fetch_lag;
        }
        let Some(access) = self.stream.peek(0) else {
            self.head = TraceHead::End;
            return;
        };
        let kind = access.kind;
        if !self.pass_window(self.at) {
            return;
        }
        let mut fetch = (self.at * self.window.slot + self.fetch_lag).max(self.freed);
        if kind == Direction::Read {
            match self.mshrs.free(fetch) {
                Some(free) => fetch = free,
                None => return,
            }
        }
        self.head = TraceHead::Ready(fetch);
    }

    /// Lets the window reach up to instruction `at`; false while that depends on an answer.
    fn pass_window(&mut self, at: u64) -> bool {
        let Some(reach) = self.window.pass(at) else {
            return false;
        };
        self.fetch_lag = self.fetch_lag.max(reach);
        true
    }

    fn time(&self, ticks: u64) -> Time {
        self.window.time(ticks)
    }

    fn out_of(&self, why: OutOfMemory) -> RunError {
        RunError::Memory {
            trace: self.stream.name().to_owned(),
            why,
        }
    }
}

/// Accesses are announced to the controller this far ahead, for the host's caches.
const HINT_AHEAD: usize = 12;
const _: () = assert!(HINT_AHEAD <= LOOK_AHEAD);

/// Sends accesses straight to memory, one a turn. Of accesses that have waited for memory, the one that arrived first
/// goes first.
impl Agent for TraceCore {
    fn name(&self) -> &str {
        self.stream.name()
    }

    fn next_turn(&self) -> Option<Turn> {
        let time = self.next_arrival()?;
        Some(Turn {
            time,
            needs_memory: true,
            precedence: time,
        })
    }

    fn run(&mut self, port: &mut Port, _limit: Time) -> Result<(), RunError> {
        let arrival = self.next_arrival().expect("a head access");
        let now = arrival.max(port.now());
        let taken = self.take(now)?;
        for other in self.stream.freed() {
            port.ring(other, now);
        }
        if let Some(ahead) = self.stream.peek(HINT_AHEAD) {
            port.touch_memory_ahead(self.core, ahead.line);
        }
        let place = port.translate(self.core, taken.access.line);
        let line = place.map_err(|why| self.out_of(why))?;
        match taken.read {
            Some(id) => {
                port.preload(line, taken.access.held());
                port.read_past_caches(self.core, id.0, line, arrival);
            }
            None => port.write_past_caches(self.core, line, &taken.access.data, arrival),
        }
        Ok(())
    }

    fn answered(&mut self, answer: AgentAnswer) {
        match answer {
            AgentAnswer::Line(waiter, at) => {
                self.read_done(ReadId(waiter.load.expect("a read")), at);
            }
            AgentAnswer::Rung(at) => self.release(at),
            AgentAnswer::Accepted(_) => {}
        }
    }

    fn finished(&self) -> bool {
        matches!(self.head, TraceHead::End) && self.mshrs.out() == 0
    }

    fn last(&self) -> (String, Option<Virtual>) {
        let of = self.stream.thread();
        let of = of.map_or_else(String::new, |thread| format!(" of thread {thread}"));
        (
            format!("record {}{of}", self.stream.taken()),
            Some(self.line),
        )
    }

    fn figures(&self) -> CoreFigures {
        CoreFigures {
            instructions: self.instructions(),
            retired: self.retire_time(),
            skipped: self.stream.skipped(),
            executed: None,
        }
    }

    fn passing(&mut self) -> Option<&mut dyn Passing> {
        // Without a clock the cores take turns, which is not the recorded order.
        match self.stream.thread() {
            Some(_) => None,
            None => Some(self),
        }
    }
}

/// Sends accesses straight to memory without a clock too. Their instructions take no time.
impl Passing for TraceCore {
    fn pass(&mut self, port: &mut Port, most: u64) -> Result<u64, RunError> {
        let mut passed = 0;
        while passed < most
            && let Some(access) = self.stream.next_access()?
        {
            if let Some(ahead) = self.stream.peek(HINT_AHEAD) {
                port.touch_memory_ahead(self.core, ahead.line);
            }
            let place = port.translate(self.core, access.line);
            let line = place.map_err(|why| self.out_of(why))?;
            match access.kind {
                Direction::Read => {
                    port.preload(line, access.held());
                    port.pass_read(line);
                }
                Direction::Write => port.pass_write(line, &access.data),
            }
            // The gap before the head was counted when it became that.
            self.over += if self.passed { access.gap } else { 0 };
            self.over += u64::from(access.kind == Direction::Read);
            self.passed = true;
            passed += 1;
            if port.is_wrong() {
                self.line = access.line;
                break;
            }
        }
        Ok(passed)
    }

    fn gone(&self) -> Option<u64> {
        let next = self.stream.peek(0).map(|access| access.gap);
        let gap = match self.passed {
            true => next.unwrap_or_else(|| self.stream.trailing_gap()),
            false => 0,
        };
        Some(self.instructions()? + self.over + gap)
    }

    fn resume(&mut self, now: Time) {
        if std::mem::take(&mut self.passed) {
            let ticks = now.ps() * self.window.width;
            let lag = ticks.saturating_sub(self.at * self.window.slot);
            self.fetch_lag = self.fetch_lag.max(lag);
            self.advance();
        }
    }
}
