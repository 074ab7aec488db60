//! A memory under threads that each access it as fast as it answers, as benchmarks of memory modules do: accesses of
//! some lines, one after another or anywhere, with a limited number of a thread's lines in flight. Left out: cores and
//! caches; a core's limit is the number of lines that it may have in flight.

use std::collections::VecDeque;

use super::curve::CurveError;
use super::requester::Requester;
use crate::config::Machine;
use crate::engine::Blocks;
use crate::latency::Latencies;
use crate::line::{LINE_BYTES, Logical};
use crate::stats::Direction;
use crate::units::Time;

crate::names::named! {
    /// What a thread does with a line.
    Operation {
        /// Reads it.
        Read = "read",
        /// Writes it past the caches; it is done when the write is accepted.
        Write = "write",
        /// Reads it into the caches, and writes it back when it has come.
        Store = "store",
    }
}

crate::names::named! {
    /// Where a thread's next access goes.
    Order {
        /// Behind the one before, in the thread's own part of the memory.
        Sequential = "sequential",
        /// Anywhere, at a multiple of its size.
        Random = "random",
        /// The first halves of all 256-byte blocks, then their second halves, and again from the beginning.
        Halves = "halves",
    }
}

/// A load of several threads.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The operation.
    pub operation: Operation,
    /// The order of the accesses.
    pub order: Order,
    /// The number of threads. They take turns.
    pub threads: usize,
    /// The number of lines in one access.
    pub access: u64,
    /// Lines of a thread that may be unanswered (reads) or unaccepted (writes), at most.
    pub outstanding: usize,
    /// Whether a thread's lines reach the memory in any order and threads take no turns; otherwise both are in order.
    pub shuffled: bool,
    /// Whether a thread's next access begins only when its last one is over.
    pub fenced: bool,
    /// The number of lines that are touched, at most.
    pub lines: u64,
    /// Lines that count, after half as many that do not.
    pub requests: u64,
    /// The seed of addresses and contents.
    pub seed: u64,
}

/// The result of a load.
#[derive(Clone, Debug)]
pub struct Point {
    /// Bytes accessed a second.
    pub bytes_per_second: f64,
    /// The latency of a line, from asking for it to the answer or the acceptance.
    pub line: Latencies,
    /// The latency of an access, from the first line asked for to the last answered.
    pub access: Latencies,
    /// Lines that the counted part has written to the module, and the work of the cells meanwhile; `None` without a
    /// buffer.
    pub blocks: Option<(u64, Blocks)>,
}

/// Runs one load on a design of a machine.
///
/// # Errors
/// There is no such design, or the run cannot go on.
pub fn point(machine: &Machine, design: &str, load: &Load) -> Result<Point, CurveError> {
    let share = load.lines / load.threads as u64;
    let thread = |number: usize| AccessThread {
        at: number as u64 * share,
        ..AccessThread::default()
    };
    let mut run = AccessRun {
        requester: Requester::new(machine, design, load.seed)?,
        load,
        share,
        threads: (0..load.threads).map(thread).collect(),
        done: 0,
        began: None,
        point: Point {
            bytes_per_second: 0.0,
            line: Latencies::new(),
            access: Latencies::new(),
            blocks: None,
        },
    };
    run.play();
    run.requester.check(design)?;
    Ok(run.ended())
}

#[derive(Clone, Default)]
struct AccessThread {
    at: u64,
    left: u64,
    waiting: usize,
    began: Time,
    window: Vec<(u64, Time)>,
    stores: VecDeque<(u64, Time)>,
}

#[derive(Clone, Copy)]
struct LineInFlight {
    thread: usize,
    line: u64,
    began: Time,
    is_read: bool,
}

struct AccessRun<'l> {
    requester: Requester<LineInFlight>,
    load: &'l Load,
    share: u64,
    threads: Vec<AccessThread>,
    done: u64,
    began: Option<(Time, Option<Blocks>)>,
    point: Point,
}

impl AccessRun<'_> {
    fn play(&mut self) {
        let uncounted = self.load.requests / 2;
        let mut turn = 0;
        while self.done < uncounted + self.load.requests
            && self.requester.memory.failure().is_none()
        {
            let mut any = false;
            let threads = self.threads.len();
            if self.load.shuffled {
                turn = self.requester.draw.below(threads as u64) as usize;
            }
            for thread in (0..threads).map(|n| (n + turn) % threads) {
                if self.requester.memory.accepts() {
                    any |= self.ask(thread);
                }
            }
            turn += 1;
            if any {
                continue;
            }
            for (asked, at) in self.requester.wait(Time::NEVER) {
                self.take(asked, at);
            }
            if self.began.is_none() && self.done >= uncounted {
                self.began = Some((self.requester.memory.now(), self.requester.memory.blocks()));
            }
        }
    }

    fn ask(&mut self, thread: usize) -> bool {
        let now = self.requester.memory.now();
        if let Some((line, began)) = self.threads[thread].stores.pop_front() {
            self.request(thread, line, began, false);
            return true;
        }
        while self.threads[thread].waiting < self.load.outstanding {
            let held = &self.threads[thread];
            if held.left == 0 {
                if self.load.fenced && held.waiting > 0 {
                    break;
                }
                self.begin_access(thread, now);
            }
            let held = &mut self.threads[thread];
            held.window.push((held.at, now));
            held.at += 1;
            held.left -= 1;
            held.waiting += 1;
        }
        let window = &mut self.threads[thread].window;
        let next = match window.len() as u64 {
            0 => return false,
            lines if self.load.shuffled => self.requester.draw.below(lines) as usize,
            _ => 0,
        };
        let (line, began) = window.remove(next);
        self.request(thread, line, began, self.load.operation != Operation::Write);
        true
    }

    fn begin_access(&mut self, thread: usize, now: Time) {
        let Load { access, lines, .. } = *self.load;
        let first = thread as u64 * self.share;
        let draw = &mut self.requester.draw;
        let held = &mut self.threads[thread];
        (held.left, held.began) = (access, now);
        match self.load.order {
            Order::Sequential if held.at + access > first + self.share => held.at = first,
            Order::Sequential => {}
            Order::Random => held.at = draw.below(lines / access) * access,
            Order::Halves => {
                // After two lines of a block come two of the next; after the last block the other halves.
                if held.at.is_multiple_of(2) && held.at > first {
                    held.at += 2;
                }
                if held.at >= first + self.share {
                    let second = (held.at - first) % 4 == 2;
                    held.at = first + if second { 0 } else { 2 };
                }
            }
        }
    }

    fn request(&mut self, thread: usize, line: u64, began: Time, is_read: bool) {
        let asked = LineInFlight {
            thread,
            line,
            began,
            is_read,
        };
        let kind = match is_read {
            true => Direction::Read,
            false => Direction::Write,
        };
        let request = (
            self.requester.memory.now(),
            thread as u32,
            self.began.is_some(),
        );
        self.requester.ask(request, kind, Logical(line), asked);
    }

    fn take(&mut self, asked: LineInFlight, at: Time) {
        let thread = &mut self.threads[asked.thread];
        if asked.is_read && self.load.operation == Operation::Store {
            thread.stores.push_back((asked.line, asked.began));
            return;
        }
        thread.waiting -= 1;
        self.done += 1;
        if self.began.is_some() {
            self.point.line.record(at - asked.began);
            if thread.waiting == 0 && thread.left == 0 {
                self.point.access.record(at - thread.began);
            }
        }
    }

    fn ended(mut self) -> Point {
        let (began, before) = self.began.expect("counting has begun");
        let seconds = (self.requester.memory.now() - began).ps() as f64 * 1e-12;
        let lines = self.point.line.count();
        self.point.bytes_per_second = (lines * LINE_BYTES as u64) as f64 / seconds;
        if let (Some(before), Some(after)) = (before, self.requester.memory.blocks()) {
            let written = match self.load.operation {
                Operation::Read => 0,
                Operation::Write | Operation::Store => lines,
            };
            let meanwhile = Blocks {
                reads: after.reads - before.reads,
                writes: after.writes - before.writes,
            };
            self.point.blocks = Some((written, meanwhile));
        }
        self.point
    }
}
