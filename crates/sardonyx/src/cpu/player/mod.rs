//! A core that plays operations against its caches: reorder window, fetch and retire bandwidth,
//! misses in flight, stores that wait, fences. As [`super::Core`] it never steps: when an operation is
//! fetched follows from a few before it, in ticks of 1/width ps. `docs/core-model.md` has the equations.

mod doing;
mod waiting;

use super::window::{Mshrs, Window};
use super::{Batch, Below, CpuError, OpSource, Waiter};
use crate::medium::params::{CachesParams, CoreParams};
use crate::units::Time;

/// What stands at the end of what has been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    /// An operation, fetched at this tick.
    Ready(u64),
    /// The same, but memory does not take what it needs.
    Stalled(u64),
    /// An operation that waits for an answer.
    Blocked,
    /// Nothing.
    End,
}

/// What the head operation was found to need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    Mshr,
    StoreQueue,
}

/// What a core has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Loads, stores, flushes, counter write-backs and fences.
    pub operations: u64,
    /// Loads and stores.
    pub accesses: u64,
    /// Of them, those that went to memory.
    pub misses: u64,
    /// By how much fences delayed fetch.
    pub fence_wait: Time,
    /// By how much loads delayed it: for their values, for room in the window, for an MSHR.
    pub load_wait: Time,
    /// By how much memory that took nothing delayed it.
    pub memory_wait: Time,
}

/// One core, playing its operations.
pub struct Player {
    core: usize,
    source: Box<dyn OpSource>,
    batch: Batch,
    next: usize,
    window: Window,
    mshrs: Mshrs,
    store_queue: usize,
    /// Ticks to the answer of each level; the last also lies on the way from memory.
    latency: [u64; 3],
    /// Instructions before the head operation.
    at: u64,
    fetch_lag: u64,
    fetched: u64,
    head: Head,
    need: Need,
    /// Loads and stores without an answer.
    loads_out: usize,
    stores_out: usize,
    /// When all loads answered so far are usable.
    loaded: u64,
    /// Writes that are not accepted, and when all others were known to be.
    unaccepted: usize,
    persistent: u64,
    counts: Counts,
    waits: Waits,
}

/// What has delayed fetch, in ticks.
#[derive(Default)]
struct Waits {
    fence: u64,
    load: u64,
    memory: u64,
}

impl Player {
    /// Core number `core` at time 0 before the first operation of `source`.
    ///
    /// # Errors
    /// The first operations are broken.
    pub fn new(
        core: usize,
        params: &CoreParams,
        caches: &CachesParams,
        source: Box<dyn OpSource>,
    ) -> Result<Player, CpuError> {
        let window = Window::new(params);
        let width = window.width;
        let l1 = caches.l1.latency.ps() * width;
        let l2 = match caches.l2.bytes {
            0 => l1,
            _ => l1 + caches.l2.latency.ps() * width,
        };
        let mut player = Player {
            core,
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
            head: Head::Blocked,
            need: Need::Nothing,
            loads_out: 0,
            stores_out: 0,
            loaded: 0,
            unaccepted: 0,
            persistent: 0,
            counts: Counts::default(),
            waits: Waits::default(),
        };
        player.refill()?;
        player.settle();
        Ok(player)
    }

    /// When the head operation is fetched, and whether it then waits for memory to take something;
    /// `None` while that hangs on an answer, and at the end.
    #[inline]
    pub fn next_time(&self) -> Option<(Time, bool)> {
        match self.head {
            Head::Ready(fetch) => Some((self.time(fetch), false)),
            Head::Stalled(fetch) => Some((self.time(fetch), true)),
            Head::Blocked | Head::End => None,
        }
    }

    /// Plays operations fetched before `limit`, until one waits. The first may have been stalled.
    ///
    /// # Errors
    /// Operations further on are broken.
    pub fn run(&mut self, below: &mut impl Below, limit: Time) -> Result<(), CpuError> {
        if let Head::Stalled(fetch) = self.head {
            // Memory has not taken it until now, which delays all that follows.
            let now = fetch.max(below.now().ps() * self.window.width);
            self.head = Head::Ready(now);
            self.fetch_lag = now - self.at * self.window.slot;
            self.waits.memory += now - fetch;
            self.play(below, now)?;
        }
        // What memory is asked for brings its next event nearer.
        let mut limit = limit.min(below.next_event());
        while let Head::Ready(fetch) = self.head {
            if self.time(fetch) >= limit {
                return Ok(());
            }
            if self.play(below, fetch)? {
                limit = limit.min(below.next_event());
            }
        }
        Ok(())
    }

    /// A line that `waiter` waited for has come from memory at `now`.
    pub fn line_came(&mut self, waiter: Waiter, now: Time) {
        let now = now.ps() * self.window.width;
        let back = now + self.latency[2];
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
        self.answered();
    }

    /// One of the writes that a fence waits for is accepted at `now`.
    pub fn accepted(&mut self, now: Time) {
        self.unaccepted -= 1;
        let known = now.ps() * self.window.width + self.latency[2];
        self.persistent = self.persistent.max(known);
        self.answered();
    }

    /// Instructions before the head operation, at the end all.
    pub fn instructions(&self) -> u64 {
        self.at
    }

    /// Whether everything was played and answered.
    pub fn finished(&self) -> bool {
        let out = self.loads_out + self.stores_out + self.unaccepted;
        self.head == Head::End && out == 0
    }

    /// When everything before the head operation was retired, as far as answers tell.
    pub fn retire_time(&self) -> Time {
        let lag = self.window.lag();
        let last = self.at.saturating_sub(1);
        let retired = (last * self.window.slot + lag).max(self.fetched);
        self.time(retired.max(self.loaded))
    }

    /// What it has done.
    pub fn counts(&self) -> Counts {
        Counts {
            fence_wait: self.time(self.waits.fence),
            load_wait: self.time(self.waits.load),
            memory_wait: self.time(self.waits.memory),
            ..self.counts
        }
    }

    /// Where the operations come from.
    pub fn source(&self) -> &dyn OpSource {
        &*self.source
    }

    /// Gets more operations.
    pub(super) fn refill(&mut self) -> Result<(), CpuError> {
        self.next = 0;
        self.batch.clear();
        let mut more = true;
        while more && self.batch.ops().is_empty() {
            more = self.source.refill(&mut self.batch)?;
        }
        let gap = match self.batch.ops().first() {
            Some(op) => op.gap,
            None => self.batch.trailing_gap(),
        };
        self.at += u64::from(gap);
        Ok(())
    }
}
