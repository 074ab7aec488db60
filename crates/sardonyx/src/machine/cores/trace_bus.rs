//! A memory bus that a trace was taken at: each request arrives at its stamp, whatever became of those before. A full
//! queue delays its admission and nothing else.

use crate::line::Virtual;
use crate::machine::agent::{Agent, AgentAnswer, CoreFigures, Passing, Turn};
use crate::machine::error::RunError;
use crate::machine::page_table::OutOfMemory;
use crate::machine::port::Port;
use crate::machine::streams::{Access, LOOK_AHEAD, Stream};
use crate::stats::Direction;
use crate::units::Time;

/// Picoseconds beyond the end of the engine's clock. A moment there ends the run.
const BEYOND: u64 = 1 << 61;
/// Accesses are announced to the controller this far ahead, for the host's caches.
const HINT_AHEAD: usize = 12;
const _: () = assert!(HINT_AHEAD <= LOOK_AHEAD);

/// Plays the requests of one trace at their stamps.
pub struct TraceBus {
    core: usize,
    stream: Stream,
    period: Period,
    cycles: u64,
    /// The time that a sample has put between the stamps and the run's clock.
    shift: u64,
    reads: u64,
    in_flight: u64,
    /// Whether requests have gone by without a clock.
    passed: bool,
    done: Time,
    line: Virtual,
}

struct Period {
    ps: u64,
    of: u64,
}

impl TraceBus {
    /// Plays `stream` as source number `core`. Its trace counts cycles of its own clock, or else of a core's of
    /// `clock`.
    pub fn new(core: usize, clock: Time, stream: Stream) -> TraceBus {
        let period = match stream.clock_khz() {
            Some(khz) => Period {
                ps: 1_000_000_000,
                of: khz,
            },
            None => Period {
                ps: clock.ps(),
                of: 1,
            },
        };
        TraceBus {
            core,
            period,
            stream,
            cycles: 0,
            shift: 0,
            reads: 0,
            in_flight: 0,
            passed: false,
            done: Time::ZERO,
            line: Virtual(0),
        }
    }

    /// The moment of so many cycles, rounded down to a picosecond.
    fn stamp(&self, cycles: u64) -> u64 {
        let ps = u128::from(cycles) * u128::from(self.period.ps) / u128::from(self.period.of);
        ps.min(u128::from(BEYOND)) as u64
    }

    fn arrival(&self) -> Option<Time> {
        let gap = self.stream.peek(0)?.gap;
        let ps = self.stamp(self.cycles.saturating_add(gap)) + self.shift;
        Some(Time::from_ps(ps))
    }

    fn take(&mut self) -> Result<Access, RunError> {
        let access = self.stream.next_access()?;
        let access = access.expect("a head access is in the stream");
        self.cycles = self.cycles.saturating_add(access.gap);
        self.line = access.line;
        Ok(access)
    }

    fn out_of(&self, why: OutOfMemory) -> RunError {
        RunError::Memory {
            trace: self.stream.name().to_owned(),
            why,
        }
    }
}

impl Agent for TraceBus {
    fn name(&self) -> &str {
        self.stream.name()
    }

    fn next_turn(&self) -> Option<Turn> {
        let time = self.arrival()?;
        Some(Turn {
            time,
            needs_memory: true,
            precedence: time,
        })
    }

    fn run(&mut self, port: &mut Port, _limit: Time) -> Result<(), RunError> {
        let arrival = self.arrival().expect("a head access");
        let access = self.take()?;
        if let Some(ahead) = self.stream.peek(HINT_AHEAD) {
            port.touch_memory_ahead(self.core, ahead.line);
        }
        let line = port.translate(self.core, access.line);
        let line = line.map_err(|why| self.out_of(why))?;
        self.done = self.done.max(arrival).max(port.now());
        match access.kind {
            Direction::Read => {
                port.preload(line, access.held());
                port.read_past_caches(self.core, self.reads, line, arrival);
                self.reads += 1;
                self.in_flight += 1;
            }
            Direction::Write => port.write_past_caches(self.core, line, &access.data, arrival),
        }
        Ok(())
    }

    fn answered(&mut self, answer: AgentAnswer) {
        if let AgentAnswer::Line(_, at) = answer {
            self.in_flight -= 1;
            self.done = self.done.max(at);
        }
    }

    fn finished(&self) -> bool {
        self.stream.peek(0).is_none() && self.in_flight == 0
    }

    fn last(&self) -> (String, Option<Virtual>) {
        (format!("record {}", self.stream.taken()), Some(self.line))
    }

    fn figures(&self) -> CoreFigures {
        CoreFigures {
            instructions: None,
            retired: self.done,
            skipped: self.stream.skipped(),
            executed: None,
        }
    }

    fn passing(&mut self) -> Option<&mut dyn Passing> {
        Some(self)
    }
}

impl Passing for TraceBus {
    fn pass(&mut self, port: &mut Port, most: u64) -> Result<u64, RunError> {
        let mut passed = 0;
        while passed < most && self.stream.peek(0).is_some() {
            let access = self.take()?;
            let line = port.translate(self.core, access.line);
            let line = line.map_err(|why| self.out_of(why))?;
            match access.kind {
                Direction::Read => {
                    port.preload(line, access.held());
                    port.pass_read(line);
                }
                Direction::Write => port.pass_write(line, &access.data),
            }
            self.passed = true;
            passed += 1;
            if port.is_wrong() {
                break;
            }
        }
        Ok(passed)
    }

    fn gone(&self) -> Option<u64> {
        None
    }

    /// Schedules the next request as long after `now` as it comes after the last skipped one.
    fn resume(&mut self, now: Time) {
        if std::mem::take(&mut self.passed) {
            self.shift = now.ps().saturating_sub(self.stamp(self.cycles));
        }
    }
}
