//! A core that plays operations against its caches: reorder window, fetch and retire bandwidth,
//! misses in flight, stores that wait, fences. As [`super::Core`] it never steps: when an operation is
//! fetched follows from a few before it, in ticks of 1/width ps. `docs/core-model.md` has the equations.

use std::collections::VecDeque;

use super::{Batch, CpuError, Hit, Mark, Op, OpKind, OpSource, WriteBack};
use crate::line::{Line, Logical};
use crate::medium::params::{CachesParams, CoreParams};
use crate::plan::Step;
use crate::units::Time;

/// What a core stands on: the caches, and memory below them.
pub trait Below {
    /// The caches of all cores.
    fn caches(&mut self) -> &mut super::Caches;

    /// Whether memory takes a request now.
    fn takes(&self) -> bool;

    /// The present: never after the operation that asks, unless that has waited for memory.
    fn now(&self) -> Time;

    /// Reads a line that missed into the caches; `waiter` will be told.
    fn fetch(&mut self, waiter: Waiter, line: Logical, arrival: Time) -> Hit;

    /// `waiter` will be told when the read that brings `hit` is answered.
    fn join(&mut self, waiter: Waiter, hit: Hit);

    /// Writes a line; `core` will be told when it is accepted.
    fn write(&mut self, core: usize, written: &WriteBack, arrival: Time);

    /// Writes of `line` that are not accepted yet, of which `core` will now be told when they are.
    fn join_writes(&mut self, core: usize, line: Logical) -> usize;

    /// When memory next does something.
    fn next_event(&self) -> Time;

    /// An operation on `line` is some way off: what the host needs to look it up is fetched into the
    /// host's caches, without waiting for it. No effect on results.
    fn touch_ahead(&self, line: Logical);

    /// The same, closer, for what the host needs if the line has to come from memory.
    fn touch_miss_ahead(&mut self, line: Logical);

    /// Writes the counters of `line` back; `core` will be told when they are accepted.
    fn write_counters(&mut self, core: usize, line: Logical, arrival: Time);

    /// A fence of `core` has passed.
    fn fenced(&mut self, _core: usize, _at: Time) {}

    /// A transaction of `core` is at `mark`.
    fn mark(&mut self, _core: usize, _mark: Mark, _at: Time) {}
}

/// How many operations ahead hints are given, of the look-up and then of a miss.
const FAR_AHEAD: usize = 12;
const AHEAD: usize = 6;

/// Who waits for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The core.
    pub core: usize,
    /// Which of its loads, if a load.
    pub load: Option<u64>,
    /// It brought the miss about, and so holds an MSHR.
    pub first: bool,
}

/// A load from its fetch to its retirement.
struct Miss {
    /// Instructions before it.
    at: u64,
    fetched: u64,
    /// When its data are usable.
    back: Option<u64>,
}

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
    width: u64,
    /// Ticks from one instruction to the next.
    slot: u64,
    window: u64,
    mshrs: usize,
    store_queue: usize,
    /// Ticks to the answer of each level; the last also lies on the way from memory.
    latency: [u64; 3],
    /// Instructions before the head operation.
    at: u64,
    fetch_lag: u64,
    retire_lag: u64,
    fetched: u64,
    misses: VecDeque<Miss>,
    first: u64,
    head: Head,
    need: Need,
    /// Loads and stores without an answer, those of them that hold an MSHR, and when MSHRs whose miss
    /// has its answer become free, in order.
    loads_out: usize,
    stores_out: usize,
    misses_out: usize,
    releases: VecDeque<u64>,
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
        let width = params.width.max(1);
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
            width,
            slot: params.clock.ps(),
            window: params.window.max(width),
            mshrs: params.mshrs.max(1),
            store_queue: params.store_queue.max(1),
            latency: [l1, l2, l2 + caches.llc.latency.ps() * width],
            at: 0,
            fetch_lag: 0,
            retire_lag: 0,
            fetched: 0,
            misses: VecDeque::new(),
            first: 0,
            head: Head::Blocked,
            need: Need::Nothing,
            loads_out: 0,
            stores_out: 0,
            misses_out: 0,
            releases: VecDeque::new(),
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
            let now = fetch.max(below.now().ps() * self.width);
            self.head = Head::Ready(now);
            self.fetch_lag = now - self.at * self.slot;
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
        let now = now.ps() * self.width;
        let back = now + self.latency[2];
        if waiter.first {
            self.misses_out -= 1;
            let place = self.releases.partition_point(|&free| free <= back);
            self.releases.insert(place, back);
        }
        match waiter.load {
            Some(id) => {
                self.loads_out -= 1;
                self.loaded = self.loaded.max(back);
                self.misses[(id - self.first) as usize].back = Some(back);
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
        let known = now.ps() * self.width + self.latency[2];
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
        let lag = self.misses.iter().fold(self.retire_lag, |lag, miss| {
            lag.max(self.lag_of(miss, miss.back.unwrap_or(0)))
        });
        let last = self.at.saturating_sub(1);
        let retired = (last * self.slot + lag).max(self.fetched);
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

    /// Does the head operation, fetched at tick `fetch`, if nothing is in its way; says whether
    /// memory was asked for something.
    fn play(&mut self, below: &mut impl Below, fetch: u64) -> Result<bool, CpuError> {
        let op = self.batch.ops()[self.next];
        let mut asked = false;
        let instructions = match op.kind {
            OpKind::Load { len, .. } => {
                match self.load(below, op.line, fetch) {
                    Some(missed) => asked = missed,
                    None => return Ok(false),
                }
                words(len)
            }
            OpKind::Store { .. } | OpKind::StoreLine { .. } => {
                match self.store(below, op, fetch) {
                    Some(missed) => asked = missed,
                    None => return Ok(false),
                }
                match op.kind {
                    OpKind::Store { len, .. } => words(len),
                    _ => 1,
                }
            }
            OpKind::NonTemporal { .. }
            | OpKind::WriteBack
            | OpKind::Flush
            | OpKind::CounterWriteBack => {
                if !self.persist(below, op, fetch) {
                    return Ok(false);
                }
                asked = true;
                1
            }
            OpKind::Fence => {
                below.fenced(self.core, self.time(fetch));
                1
            }
            OpKind::Depend => 0,
            OpKind::Mark(phase) => {
                let transaction = op.line.0;
                let mark = Mark { transaction, phase };
                below.mark(self.core, mark, self.time(fetch));
                0
            }
        };
        let waited = fetch - (self.at * self.slot + self.fetch_lag);
        match op.kind {
            OpKind::Fence => self.waits.fence += waited,
            _ => self.waits.load += waited,
        }
        self.fetch_lag += waited;
        self.fetched = fetch + instructions.saturating_sub(1) * self.slot;
        self.at += instructions;
        self.count(op.kind, asked);
        self.need = Need::Nothing;
        self.next += 1;
        if self.next == self.batch.ops().len() {
            self.refill()?;
        } else {
            self.at += u64::from(self.batch.ops()[self.next].gap);
            self.touch_ahead(below);
        }
        self.settle();
        Ok(asked)
    }

    /// Hints of operations to come in this batch, one for several in a row on one line.
    #[inline]
    fn touch_ahead(&self, below: &mut impl Below) {
        let ops = self.batch.ops();
        let line = |at: usize| {
            let op = ops.get(at)?;
            let new = op.kind.has_line() && ops[at - 1].line != op.line;
            new.then_some(op.line)
        };
        if let Some(line) = line(self.next + FAR_AHEAD) {
            below.touch_ahead(line);
        }
        if let Some(line) = line(self.next + AHEAD) {
            below.touch_miss_ahead(line);
        }
    }

    /// Whether it missed; `None` if it has to wait.
    #[inline]
    fn load(&mut self, below: &mut impl Below, line: Logical, fetch: u64) -> Option<bool> {
        match below.caches().find(self.core, line) {
            Some(hit) if hit.filling == 0 => {
                let latency = self.latency[hit.level as usize];
                self.loaded = self.loaded.max(fetch + latency);
                if latency > self.window * self.slot {
                    self.misses.push_back(Miss {
                        at: self.at,
                        fetched: fetch,
                        back: Some(fetch + latency),
                    });
                }
                Some(false)
            }
            Some(hit) => {
                let waiter = self.waiter(true, false);
                below.join(waiter, hit);
                self.wait_for_load(fetch);
                Some(false)
            }
            None => {
                if !self.may_miss(below, fetch, Need::Mshr) {
                    return None;
                }
                let waiter = self.waiter(true, true);
                below.fetch(waiter, line, self.time(fetch));
                self.misses_out += 1;
                self.wait_for_load(fetch);
                Some(true)
            }
        }
    }

    /// As [`Player::load`].
    #[inline]
    fn store(&mut self, below: &mut impl Below, op: Op, fetch: u64) -> Option<bool> {
        let mut missed = false;
        let hit = match below.caches().find(self.core, op.line) {
            Some(hit) => hit,
            None => {
                if !self.may_miss(below, fetch, Need::StoreQueue) {
                    return None;
                }
                missed = true;
                let waiter = self.waiter(false, true);
                let hit = below.fetch(waiter, op.line, self.time(fetch));
                self.misses_out += 1;
                self.stores_out += 1;
                hit
            }
        };
        let (from, bytes, atomic) = match op.kind {
            OpKind::Store {
                from,
                len,
                atomic,
                bytes,
            } => (from, self.batch.bytes(bytes, len), atomic),
            OpKind::StoreLine { bytes } => (0, &self.batch.line(bytes)[..], false),
            _ => unreachable!("only stores store"),
        };
        below.caches().store(self.core, hit, from, bytes, atomic);
        Some(missed)
    }

    /// Operations that write something back.
    fn persist(&mut self, below: &mut impl Below, op: Op, fetch: u64) -> bool {
        let clean = match op.kind {
            OpKind::WriteBack | OpKind::Flush => !below.caches().is_dirty(op.line),
            _ => false,
        };
        if !clean && !below.takes() {
            self.head = Head::Stalled(fetch);
            return false;
        }
        let arrival = self.time(fetch);
        let written = match op.kind {
            OpKind::WriteBack => below.caches().write_back(op.line),
            OpKind::Flush => below.caches().flush(op.line),
            OpKind::NonTemporal { bytes } => {
                below.caches().flush(op.line); // every byte of it is written anew
                Some(past_the_caches(op.line, self.batch.line(bytes)))
            }
            _ => None,
        };
        self.unaccepted += match (op.kind, written) {
            (OpKind::CounterWriteBack, _) => {
                below.write_counters(self.core, op.line, arrival);
                1
            }
            (_, Some(written)) => {
                below.write(self.core, &written, arrival);
                1
            }
            // Its last write may still be on its way.
            (_, None) => below.join_writes(self.core, op.line),
        };
        true
    }

    /// Whether a miss can go to memory now; if not, says why the head waits.
    fn may_miss(&mut self, below: &impl Below, fetch: u64, need: Need) -> bool {
        self.need = need;
        self.settle();
        if self.head != Head::Ready(fetch) {
            return false;
        }
        if !below.takes() {
            self.head = Head::Stalled(fetch);
            return false;
        }
        while self.releases.front().is_some_and(|&free| free <= fetch) {
            self.releases.pop_front();
        }
        true
    }

    fn waiter(&self, load: bool, first: bool) -> Waiter {
        Waiter {
            core: self.core,
            load: load.then_some(self.first + self.misses.len() as u64),
            first,
        }
    }

    fn wait_for_load(&mut self, fetch: u64) {
        self.loads_out += 1;
        self.misses.push_back(Miss {
            at: self.at,
            fetched: fetch,
            back: None,
        });
    }

    #[inline]
    fn count(&mut self, kind: OpKind, asked: bool) {
        match kind {
            OpKind::Depend | OpKind::Mark(_) => return,
            OpKind::Load { .. } | OpKind::Store { .. } | OpKind::StoreLine { .. } => {
                self.counts.accesses += 1;
                self.counts.misses += u64::from(asked);
            }
            _ => {}
        }
        self.counts.operations += 1;
    }

    /// Gets more operations.
    fn refill(&mut self) -> Result<(), CpuError> {
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

    fn answered(&mut self) {
        if self.head == Head::Blocked {
            self.settle();
        }
    }

    /// Finds out when the head is fetched, if the answers so far tell.
    #[inline]
    fn settle(&mut self) {
        self.head = Head::Blocked;
        let Some(op) = self.batch.ops().get(self.next) else {
            if self.at == 0 || self.pass_window(self.at - 1) {
                self.head = Head::End;
                let reach = self.at.saturating_sub(1) * self.slot + self.fetch_lag;
                self.fetched = self.fetched.max(reach);
            }
            return;
        };
        let kind = op.kind;
        if !self.pass_window(self.at) {
            return;
        }
        let mut fetch = self.at * self.slot + self.fetch_lag;
        match kind {
            OpKind::Depend if self.loads_out > 0 => return,
            OpKind::Depend => fetch = fetch.max(self.loaded),
            OpKind::Fence if self.unaccepted + self.stores_out > 0 => return,
            OpKind::Fence => fetch = fetch.max(self.persistent),
            _ => {}
        }
        if self.need == Need::StoreQueue && self.stores_out >= self.store_queue {
            return;
        }
        if self.need != Need::Nothing {
            let free = self.releases.partition_point(|&free| free <= fetch);
            if self.misses_out + self.releases.len() - free >= self.mshrs {
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
    #[inline]
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
        if reach > self.fetch_lag {
            self.waits.load += reach - self.fetch_lag;
            self.fetch_lag = reach;
        }
        true
    }

    fn lag_of(&self, miss: &Miss, back: u64) -> u64 {
        (miss.fetched + self.width * self.slot).max(back) - miss.at * self.slot
    }

    fn not_before(&mut self, tick: u64) {
        let lag = tick.saturating_sub(self.at * self.slot);
        self.waits.load += lag.saturating_sub(self.fetch_lag);
        self.fetch_lag = self.fetch_lag.max(lag);
    }

    #[inline]
    fn time(&self, ticks: u64) -> Time {
        Time::from_ps(ticks.div_ceil(self.width))
    }
}

/// Instructions that move `len` bytes, eight each.
#[inline]
fn words(len: u8) -> u64 {
    u64::from(len.div_ceil(8))
}

fn past_the_caches(line: Logical, data: &Line) -> WriteBack {
    WriteBack {
        line,
        data: *data,
        at: Step::PAST,
        atomic: false,
    }
}
