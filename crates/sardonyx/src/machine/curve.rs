//! A memory under a steady load: bandwidth and latency at one rate of requests, like the curves measured on machines.
//! The number of outstanding requests is limited; below the limit, requests come at the rate. Left out: cores and
//! caches, whose own limits are not the memory's.

use sardonyx_base::random::SplitMix64;

use super::requester::Requester;
use crate::config::Machine;
use crate::controller::designs::UnknownDesign;
use crate::exhausted::Exhausted;
use crate::latency::Latencies;
use crate::line::{LINE_BYTES, Logical};
use crate::stats::Direction;
use crate::units::Time;

/// The choice of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Streams of consecutive lines. Half of them (at least one) read, the others write.
    Streams(u32),
    /// Any line, each with the same probability.
    Random,
}

/// A steady load.
#[derive(Clone, Copy, Debug)]
pub struct SteadyLoad {
    /// Reads in each 1,000 requests, spread evenly.
    pub reads_per_mille: u32,
    /// Picoseconds from one request to the next; 0 sends requests as fast as they are answered.
    pub interval_ps: f64,
    /// Requests that may be unanswered (reads) or unaccepted (writes), at most.
    pub outstanding: usize,
    /// The pattern of the lines.
    pub pattern: Pattern,
    /// The number of lines that are touched, at most.
    pub lines: u64,
    /// Requests that count, after half as many that do not.
    pub requests: u64,
    /// The seed of addresses and contents.
    pub seed: u64,
}

/// The result of a load.
#[derive(Clone, Debug)]
pub struct Point {
    /// Bytes read and written a second.
    pub bytes_per_second: f64,
    /// The latency of reads, from asking to the answer.
    pub reads: Latencies,
    /// The latency of writes, from asking to the acceptance.
    pub writes: Latencies,
    /// The mean number of outstanding requests.
    pub outstanding: f64,
}

/// The reason why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum CurveError {
    /// The design does not exist.
    #[error(transparent)]
    Design(#[from] UnknownDesign),
    /// The run could not go on.
    #[error("{design}: {why}")]
    Exhausted {
        /// The name of the design.
        design: String,
        /// The shortage.
        why: Exhausted,
    },
}

/// Runs one load on a design of a machine.
///
/// # Errors
/// There is no such design, or the run cannot go on.
pub fn point(machine: &Machine, design: &str, load: &SteadyLoad) -> Result<Point, CurveError> {
    let mut run = CurveRun {
        requester: Requester::new(machine, design, load.seed)?,
        addresses: AddressStream::from_load(load),
        load,
        asked: 0,
        waiting: 0,
        counted_from: None,
        counted: 0,
        last: Time::ZERO,
        point: Point {
            bytes_per_second: 0.0,
            reads: Latencies::new(),
            writes: Latencies::new(),
            outstanding: 0.0,
        },
        due: 0.0,
    };
    run.play();
    run.requester.check(design)?;
    Ok(run.ended())
}

#[derive(Clone, Copy)]
struct Asked {
    at: Time,
    counts: bool,
    kind: Direction,
}

struct CurveRun<'l> {
    requester: Requester<Asked>,
    addresses: AddressStream,
    load: &'l SteadyLoad,
    asked: u64,
    waiting: usize,
    counted_from: Option<Time>,
    counted: u64,
    last: Time,
    point: Point,
    due: f64,
}

impl CurveRun<'_> {
    fn play(&mut self) {
        let all = self.load.requests + self.load.requests / 2;
        while self.counted < self.load.requests && self.requester.memory.failure().is_none() {
            // It goes on asking until the last that counts is answered, so that none of them sees a quiet memory.
            let memory = &self.requester.memory;
            let due = Time::from_ps(self.due as u64).max(memory.now());
            let may_ask = self.waiting < self.load.outstanding && memory.accepts();
            if may_ask && memory.next_event() > due {
                self.ask(
                    due,
                    self.asked >= all - self.load.requests && self.asked < all,
                );
                continue;
            }
            let until = if may_ask { due } else { Time::NEVER };
            for (asked, at) in self.requester.wait(until) {
                self.take(asked, at);
            }
        }
    }

    fn ask(&mut self, now: Time, counts: bool) {
        // A request that was due while there was no room is made when there is.
        self.due = self.due.max(now.ps() as f64 - self.load.interval_ps) + self.load.interval_ps;
        let share = u64::from(self.load.reads_per_mille);
        let kind = match (self.asked + 1) * share / 1000 > self.asked * share / 1000 {
            true => Direction::Read,
            false => Direction::Write,
        };
        self.asked += 1;
        self.waiting += 1;
        if counts && self.counted_from.is_none() {
            self.counted_from = Some(now);
        }
        let line = self.addresses.next(kind, &mut self.requester.draw);
        let asked = Asked {
            at: now,
            counts,
            kind,
        };
        self.requester.ask((now, 0, counts), kind, line, asked);
    }

    fn take(&mut self, asked: Asked, at: Time) {
        self.waiting -= 1;
        if asked.counts {
            self.counted += 1;
            self.last = self.last.max(at);
            let latencies = match asked.kind {
                Direction::Read => &mut self.point.reads,
                Direction::Write => &mut self.point.writes,
            };
            latencies.record(at - asked.at);
        }
    }

    fn ended(mut self) -> Point {
        let began = self.counted_from.unwrap_or(Time::ZERO);
        let seconds = (self.last - began).ps() as f64 * 1e-12;
        let waited = self.point.reads.sum_ps() + self.point.writes.sum_ps();
        self.point.bytes_per_second = (self.counted * LINE_BYTES as u64) as f64 / seconds;
        self.point.outstanding = waited as f64 * 1e-12 / seconds;
        self.point
    }
}

struct AddressStream {
    pattern: Pattern,
    lines: u64,
    at: [Vec<u64>; 2],
    turn: [usize; 2],
}

impl AddressStream {
    fn from_load(load: &SteadyLoad) -> AddressStream {
        let streams = match load.pattern {
            Pattern::Streams(streams) => (streams as usize / 2).max(1),
            Pattern::Random => 0,
        };
        // Streams begin at odd distances, so that they do not all meet in one bank.
        let share = load.lines / (2 * streams as u64).max(1);
        let begins = |side: u64| {
            let begin = |stream: u64| (2 * stream + side) * share + (2 * stream + side) * 37;
            (0..streams as u64).map(begin).collect()
        };
        AddressStream {
            pattern: load.pattern,
            lines: load.lines,
            at: [begins(0), begins(1)],
            turn: [0; 2],
        }
    }

    fn next(&mut self, kind: Direction, draw: &mut SplitMix64) -> Logical {
        if self.pattern == Pattern::Random {
            return Logical(draw.below(self.lines));
        }
        let side = usize::from(kind == Direction::Write);
        let streams = &mut self.at[side];
        let stream = self.turn[side] % streams.len();
        self.turn[side] += 1;
        streams[stream] += 1;
        Logical(streams[stream] % self.lines)
    }
}
