//! A core that plays operations against its caches: reorder window, fetch and retire bandwidth,
//! misses in flight, stores that wait, fences. As [`super::TraceCore`] it never steps: when an operation is
//! fetched follows from a few before it, in ticks of 1/width ps. `docs/inside/core-model.md` has the equations.

mod operations;
mod waiting;

use super::window::{Mshrs, ReorderWindow};
use crate::config::Machine;
use crate::line::Virtual;
use crate::machine::agent::{Agent, AgentAnswer, CoreFigures, Counts, Turn, Waiter};
use crate::machine::error::RunError;
use crate::machine::ops::{Batch, OpSource};
use crate::machine::port::Port;
use crate::units::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlayerHead {
    Ready(u64),
    /// The operation was fetched at this tick, but memory has no room for it.
    Stalled(u64),
    Blocked,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    Mshr,
    StoreQueue,
    Lock,
}

/// A core that plays its operations.
pub struct Player<'s> {
    core: usize,
    source: Box<dyn OpSource + 's>,
    batch: Batch,
    next: usize,
    window: ReorderWindow,
    mshrs: Mshrs,
    store_queue: usize,
    /// Ticks to the answer of each level. The last one is also on the way of lines from memory.
    latency: [u64; 3],
    /// The number of instructions before the head operation.
    at: u64,
    fetch_lag: u64,
    fetched: u64,
    head: PlayerHead,
    need: Need,
    loads_out: usize,
    stores_out: usize,
    loaded: u64,
    /// The number of writes that are not accepted, and the time by which all others were known to be.
    unaccepted: usize,
    persistent: u64,
    counts: Counts,
    waits: Waits,
    watched: bool,
}

#[derive(Default)]
struct Waits {
    fence: u64,
    load: u64,
    memory: u64,
    /// The time of loads and stores until their lines are in L1.
    access: u64,
}

impl<'s> Player<'s> {
    /// Core number `core` of `machine` at time 0, before the first operation of `source`.
    ///
    /// # Errors
    /// The first operations are broken.
    pub fn new(
        core: usize,
        machine: &Machine,
        source: Box<dyn OpSource + 's>,
    ) -> Result<Player<'s>, RunError> {
        let (params, caches) = (&machine.core, &machine.caches);
        let window = ReorderWindow::new(params);
        let width = window.width;
        let l1 = caches.l1.latency.ps() * width;
        let l2 = match caches.l2.bytes {
            0 => l1,
            _ => l1 + caches.l2.latency.ps() * width,
        };
        let mut player = Player {
            core,
            watched: source.watches_stores(),
            source,
            batch: Batch::default(),
            next: 0,
            window,
            mshrs: Mshrs::new(params),
            store_queue: params.store_queue.max(1),
            latency: [l1, l2, l2 + caches.llc.latency.ps() * width],
            at: 0,
            fetch_lag: 0,
            fetched: 0,
            head: PlayerHead::Blocked,
            need: Need::Nothing,
            loads_out: 0,
            stores_out: 0,
            loaded: 0,
            unaccepted: 0,
            persistent: 0,
            counts: Counts::default(),
            waits: Waits::default(),
        };
        player.refill(0)?;
        player.settle();
        Ok(player)
    }

    fn line_came(&mut self, waiter: Waiter, now: Time) {
        let now = now.ps() * self.window.width;
        // While memory had nothing to do but to wait for writes that nobody forced, the core ran on: it may join a read
        // later than the drain that its waiting forces in the end begins.
        let back = (now + self.latency[2]).max(waiter.since);
        self.waits.access += back - waiter.since;
        if waiter.first {
            self.mshrs.release(back);
        }
        match waiter.load {
            Some(id) => {
                self.loads_out -= 1;
                self.loaded = self.loaded.max(back);
                self.window.answered(id, back);
            }
            None => {
                self.stores_out -= 1;
                self.persistent = self.persistent.max(back);
                if self.need == Need::StoreQueue {
                    self.not_before(now);
                }
            }
        }
        self.unblock();
    }

    fn has_lock(&mut self, now: Time) {
        self.need = Need::Nothing;
        self.not_before(now.ps() * self.window.width + self.latency[2]);
        self.unblock();
    }

    fn accepted(&mut self, now: Time) {
        self.unaccepted -= 1;
        let known = now.ps() * self.window.width + self.latency[2];
        self.persistent = self.persistent.max(known);
        self.unblock();
    }

    /// The time at which everything before the head operation was retired, as far as answers tell.
    fn retire_time(&self) -> Time {
        let lag = self.window.lag();
        let last = self.at.saturating_sub(1);
        let retired = (last * self.window.slot + lag).max(self.fetched);
        self.time(retired.max(self.loaded))
    }

    /// Traps the head operation, a store: the source's handler goes first.
    fn fault(&mut self, fetch: u64) {
        let line = self.batch.ops()[self.next].line;
        let mut batch = Batch::default();
        self.source.fault(self.time(fetch), line, &mut batch);
        batch.append(&self.batch, self.next);
        (self.batch, self.next) = (batch, 0);
        self.at += u64::from(self.batch.ops()[0].gap);
        self.need = Need::Nothing;
        self.settle();
    }

    fn refill(&mut self, fetch: u64) -> Result<(), RunError> {
        let now = self.time(fetch);
        self.next = 0;
        self.batch.clear();
        let mut more = true;
        while more && self.batch.ops().is_empty() {
            more = self.source.refill(now, &mut self.batch)?;
        }
        let gap = match self.batch.ops().first() {
            Some(op) => op.gap,
            None => self.batch.trailing_gap(),
        };
        self.at += u64::from(gap);
        Ok(())
    }
}

impl Agent for Player<'_> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn next_turn(&self) -> Option<Turn> {
        let (fetch, needs_memory) = match self.head {
            PlayerHead::Ready(fetch) => (fetch, false),
            PlayerHead::Stalled(fetch) => (fetch, true),
            PlayerHead::Blocked | PlayerHead::End => return None,
        };
        Some(Turn {
            time: self.time(fetch),
            needs_memory,
            precedence: Time::ZERO,
        })
    }

    fn run(&mut self, port: &mut Port, limit: Time) -> Result<(), RunError> {
        if let PlayerHead::Stalled(fetch) = self.head {
            // Memory has not taken it until now, which delays all that follows.
            let now = fetch.max(port.now().ps() * self.window.width);
            self.head = PlayerHead::Ready(now);
            self.fetch_lag = now - self.at * self.window.slot;
            self.waits.memory += now - fetch;
            if self.batch.ops()[self.next].kind.is_access() {
                self.waits.access += now - fetch;
            }
            self.play(port, now)?;
            if port.is_wrong() {
                return Ok(());
            }
        }
        // What memory is asked for brings its next event nearer.
        let mut limit = limit.min(port.next_event());
        while let PlayerHead::Ready(fetch) = self.head {
            if self.time(fetch) >= limit {
                return Ok(());
            }
            if self.play(port, fetch)? {
                limit = limit.min(port.next_event());
                if port.rings() || port.is_answered() || port.is_wrong() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn answered(&mut self, answer: AgentAnswer) {
        match answer {
            AgentAnswer::Line(waiter, at) => self.line_came(waiter, at),
            AgentAnswer::Accepted(at) => self.accepted(at),
            AgentAnswer::Rung(at) => self.has_lock(at),
        }
    }

    fn finished(&self) -> bool {
        let out = self.loads_out + self.stores_out + self.unaccepted;
        self.head == PlayerHead::End && out == 0
    }

    fn last(&self) -> (String, Option<Virtual>) {
        (format!("operation {}", self.counts.operations), None)
    }

    fn figures(&self) -> CoreFigures {
        CoreFigures {
            instructions: Some(self.at),
            retired: self.retire_time(),
            skipped: 0,
            executed: Some(Counts {
                access_latency: self.time(self.waits.access),
                fence_wait: self.time(self.waits.fence),
                load_wait: self.time(self.waits.load),
                memory_wait: self.time(self.waits.memory),
                ..self.counts
            }),
        }
    }
}
