//! What each kind of operation does to the caches and to memory below them.

use super::{Head, Need, Player};
use crate::cpu::{Below, CpuError, Mark, Op, OpKind, Waiter, WriteBack};
use crate::line::{Line, Logical};
use crate::plan::Step;

/// How many operations ahead hints are given, of the look-up and then of a miss.
const FAR_AHEAD: usize = 12;
const AHEAD: usize = 6;

impl Player {
    /// Does the head operation, fetched at tick `fetch`, if nothing is in its way; says whether
    /// memory was asked for something.
    pub(super) fn play(&mut self, below: &mut impl Below, fetch: u64) -> Result<bool, CpuError> {
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
        let waited = fetch - (self.at * self.window.slot + self.fetch_lag);
        match op.kind {
            OpKind::Fence => self.waits.fence += waited,
            _ => self.waits.load += waited,
        }
        self.fetch_lag += waited;
        self.fetched = fetch + instructions.saturating_sub(1) * self.window.slot;
        self.at += instructions;
        self.count(op.kind, asked);
        self.need = Need::Nothing;
        self.next += 1;
        if self.next == self.batch.ops().len() {
            self.refill()?;
            self.touch_first(below);
        } else {
            self.at += u64::from(self.batch.ops()[self.next].gap);
            self.touch_ahead(below);
        }
        self.settle();
        Ok(asked)
    }

    /// Hints of operations to come in this batch.
    #[inline]
    fn touch_ahead(&self, below: &mut impl Below) {
        if let Some(line) = self.touched(self.next + FAR_AHEAD) {
            below.touch_ahead(line);
        }
        if let Some(line) = self.touched(self.next + AHEAD) {
            below.touch_miss_ahead(line);
        }
    }

    /// Hints of the first operations of a batch, which nothing came before.
    fn touch_first(&self, below: &mut impl Below) {
        for line in (0..FAR_AHEAD).filter_map(|at| self.touched(at)) {
            below.touch_ahead(line);
        }
        for line in (0..AHEAD).filter_map(|at| self.touched(at)) {
            below.touch_miss_ahead(line);
        }
    }

    /// The line of an operation of the batch; none for another in a row on the same line.
    #[inline]
    fn touched(&self, at: usize) -> Option<Logical> {
        let ops = self.batch.ops();
        let op = ops.get(at)?;
        let again = at > 0 && ops[at - 1].line == op.line;
        (op.kind.has_line() && !again).then_some(op.line)
    }

    /// Whether it missed; `None` if it has to wait.
    #[inline]
    fn load(&mut self, below: &mut impl Below, line: Logical, fetch: u64) -> Option<bool> {
        match below.caches().find(self.core, line) {
            Some(hit) if hit.filling == 0 => {
                let latency = self.latency[hit.level as usize];
                self.loaded = self.loaded.max(fetch + latency);
                if latency > self.window.ticks() {
                    self.window.push(self.at, fetch, Some(fetch + latency));
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
                self.mshrs.take();
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
                self.mshrs.take();
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

    fn waiter(&self, load: bool, first: bool) -> Waiter {
        Waiter {
            core: self.core,
            load: load.then_some(self.window.upcoming()),
            first,
        }
    }

    fn wait_for_load(&mut self, fetch: u64) {
        self.loads_out += 1;
        self.window.push(self.at, fetch, None);
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
