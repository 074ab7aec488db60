//! What each kind of operation does to the caches and to memory below them.

use super::{Need, Player, PlayerHead};
use crate::line::{Line, Logical, Virtual};
use crate::machine::agent::Waiter;
use crate::machine::caches::WriteBack;
use crate::machine::error::RunError;
use crate::machine::ops::{Mark, Op, OpKind};
use crate::machine::port::Port;
use crate::plan::Step;

/// Hints are given this many operations ahead: first for the look-up, then for a miss.
const FAR_AHEAD: usize = 12;
const AHEAD: usize = 6;

struct Done {
    instructions: u64,
    asked: bool,
    missed: bool,
}

impl Done {
    fn after(instructions: u64) -> Done {
        Done {
            instructions,
            asked: false,
            missed: false,
        }
    }

    fn asked(self) -> Done {
        Done {
            asked: true,
            ..self
        }
    }

    fn access(self, missed: bool) -> Done {
        Done {
            missed,
            asked: missed,
            ..self
        }
    }
}

impl Player<'_> {
    /// Does the head operation, fetched at tick `fetch`, if nothing prevents it. Returns whether memory was asked for
    /// anything.
    pub(super) fn play(&mut self, port: &mut Port, fetch: u64) -> Result<bool, RunError> {
        let op = self.batch.ops()[self.next];
        let line = match op.kind.has_line() {
            true => self.locate(port, op.line)?,
            false => Logical(0),
        };
        let Some(done) = self.act(port, op, line, fetch) else {
            return Ok(false);
        };
        let waited = fetch - (self.at * self.window.slot + self.fetch_lag);
        match op.kind {
            OpKind::Fence => self.waits.fence += waited,
            _ => self.waits.load += waited,
        }
        self.fetch_lag += waited;
        self.fetched = fetch + done.instructions.saturating_sub(1) * self.window.slot;
        self.at += done.instructions;
        self.count(op.kind, done.missed);
        self.need = Need::Nothing;
        self.next += 1;
        if self.next == self.batch.ops().len() {
            self.refill(fetch)?;
            self.touch_first(port);
        } else {
            self.at += u64::from(self.batch.ops()[self.next].gap);
            self.touch_ahead(port);
        }
        self.settle();
        let evicted = port.operation_done(self.core, self.time(fetch));
        Ok(done.asked || evicted)
    }

    /// Does the work of the operation; `None` if it has to wait and will be tried again.
    #[inline]
    fn act(&mut self, port: &mut Port, op: Op, line: Logical, fetch: u64) -> Option<Done> {
        Some(match op.kind {
            OpKind::Load { len, .. } => {
                let missed = self.load(port, line, fetch)?;
                Done::after(words(len)).access(missed)
            }
            OpKind::LoadPast => Done::after(1).access(self.load_past(port, line, fetch)?),
            OpKind::Store { .. } | OpKind::StoreLine { .. } => {
                if port.is_protected(self.core, op.line) {
                    self.fault(fetch);
                    return None;
                }
                let (missed, logged) = self.store(port, op.kind, line, fetch)?;
                let instructions = match op.kind {
                    OpKind::Store { len, .. } => words(len),
                    _ => 1,
                };
                let done = Done::after(instructions).access(missed);
                Done {
                    asked: missed || logged,
                    ..done
                }
            }
            OpKind::NonTemporal { .. }
            | OpKind::WriteBack
            | OpKind::Flush
            | OpKind::CounterWriteBack => {
                if !self.persist(port, op.kind, line, fetch) {
                    return None;
                }
                Done::after(1).asked()
            }
            OpKind::Fence => {
                port.fenced(self.core, self.time(fetch));
                Done::after(1)
            }
            OpKind::TxBegin => {
                port.tx_begin(self.core, op.line.0, self.time(fetch));
                Done::after(1).asked()
            }
            OpKind::TxEnd => {
                if !port.takes() {
                    self.head = PlayerHead::Stalled(fetch);
                    return None;
                }
                port.tx_end(self.core, self.time(fetch));
                self.unaccepted += 1;
                Done::after(1).asked()
            }
            OpKind::Depend => Done::after(0),
            OpKind::Doorbell => {
                port.ring(op.line.0 as usize, self.time(fetch));
                Done::after(1).asked()
            }
            OpKind::Lock => {
                if !port.lock(self.core, op.line.0) {
                    (self.head, self.need) = (PlayerHead::Blocked, Need::Lock);
                    return None;
                }
                Done::after(1)
            }
            OpKind::Unlock => {
                port.unlock(self.core, op.line.0, self.time(fetch));
                Done::after(1).asked()
            }
            OpKind::Mark(phase) => {
                let transaction = op.line.0;
                let mark = Mark { transaction, phase };
                port.mark(self.core, mark, self.time(fetch));
                Done::after(0)
            }
        })
    }

    #[inline]
    fn locate(&self, port: &mut Port, line: Virtual) -> Result<Logical, RunError> {
        port.translate(self.core, line)
            .map_err(|why| RunError::Memory {
                trace: self.source.name().to_owned(),
                why,
            })
    }

    #[inline]
    fn touch_ahead(&self, port: &mut Port) {
        if let Some(line) = self.touched(self.next + FAR_AHEAD) {
            port.touch_cache_ahead(self.core, line);
        }
        if let Some(line) = self.touched(self.next + AHEAD) {
            port.touch_miss_ahead(self.core, line);
        }
    }

    fn touch_first(&self, port: &mut Port) {
        for line in (0..FAR_AHEAD).filter_map(|at| self.touched(at)) {
            port.touch_cache_ahead(self.core, line);
        }
        for line in (0..AHEAD).filter_map(|at| self.touched(at)) {
            port.touch_miss_ahead(self.core, line);
        }
    }

    /// The line of an operation of the batch; `None` for a repetition of the line before.
    #[inline]
    fn touched(&self, at: usize) -> Option<Virtual> {
        let ops = self.batch.ops();
        let op = ops.get(at)?;
        let again = at > 0 && ops[at - 1].line == op.line;
        (op.kind.has_line() && !again).then_some(op.line)
    }

    /// Loads a line and returns whether it missed; `None` if the load has to wait.
    #[inline]
    fn load(&mut self, port: &mut Port, line: Logical, fetch: u64) -> Option<bool> {
        match port.caches().find(self.core, line) {
            Some(hit) if hit.filling == 0 => {
                let latency = self.latency[hit.level as usize];
                self.hit_in(latency);
                self.loaded = self.loaded.max(fetch + latency);
                if latency > self.window.ticks() {
                    self.window.push(self.at, fetch, Some(fetch + latency));
                }
                Some(false)
            }
            Some(hit) => {
                let waiter = self.waiter(true, false, fetch);
                port.join(waiter, hit);
                self.wait_for_load(fetch);
                Some(false)
            }
            None => {
                if !self.may_miss(port, fetch, Need::Mshr) {
                    return None;
                }
                let waiter = self.waiter(true, true, fetch);
                port.fetch(waiter, line, self.time(fetch));
                self.mshrs.take();
                self.wait_for_load(fetch);
                Some(true)
            }
        }
    }

    fn load_past(&mut self, port: &mut Port, line: Logical, fetch: u64) -> Option<bool> {
        let asks = port.would_ask(line);
        if asks && !self.may_miss(port, fetch, Need::Mshr) {
            return None;
        }
        let waiter = self.waiter(true, asks, fetch);
        if port.probe(waiter, line, self.time(fetch)) {
            let back = fetch + self.latency[2];
            self.waits.access += self.latency[2];
            self.loaded = self.loaded.max(back);
            if self.latency[2] > self.window.ticks() {
                self.window.push(self.at, fetch, Some(back));
            }
            return Some(false);
        }
        if asks {
            self.mshrs.take();
        }
        self.wait_for_load(fetch);
        Some(asks)
    }

    /// Stores to a line as [`Player::load`] loads one. Also returns whether the line's old content went to a log.
    #[inline]
    fn store(
        &mut self,
        port: &mut Port,
        kind: OpKind,
        line: Logical,
        fetch: u64,
    ) -> Option<(bool, bool)> {
        let mut missed = false;
        let found = port.caches().find(self.core, line);
        let hit = match found {
            Some(hit) => hit,
            None => {
                if !self.may_miss(port, fetch, Need::StoreQueue) {
                    return None;
                }
                missed = true;
                let waiter = self.waiter(false, true, fetch);
                let hit = port.fetch(waiter, line, self.time(fetch));
                self.mshrs.take();
                self.stores_out += 1;
                hit
            }
        };
        let logged = port.must_log(self.core, line);
        if logged {
            if !missed && !port.takes() {
                self.head = PlayerHead::Stalled(fetch);
                return None;
            }
            port.log_old(self.core, line, hit, self.time(fetch));
        }
        let (from, bytes, atomic) = match kind {
            OpKind::Store {
                from,
                len,
                atomic,
                bytes,
            } => (from, self.batch.bytes(bytes, len), atomic),
            OpKind::StoreLine { bytes } => (0, &self.batch.line(bytes)[..], false),
            _ => unreachable!("only stores store"),
        };
        port.caches().store(self.core, hit, from, bytes, atomic);
        port.stored(line, hit, self.time(fetch));
        if self.watched {
            let line = self.batch.ops()[self.next].line;
            self.source.stored(line, from, bytes);
        }
        if found.is_some_and(|hit| hit.filling == 0) {
            self.hit_in(self.latency[hit.level as usize]);
        }
        Some((missed, logged))
    }

    fn persist(&mut self, port: &mut Port, kind: OpKind, line: Logical, fetch: u64) -> bool {
        let clean = match kind {
            OpKind::WriteBack | OpKind::Flush => !port.caches().is_dirty(line),
            _ => false,
        };
        let below = clean && port.flushes_below();
        if (!clean || below) && !port.takes() {
            self.head = PlayerHead::Stalled(fetch);
            return false;
        }
        let arrival = self.time(fetch);
        let written = match kind {
            OpKind::WriteBack => port.caches().write_back(line),
            OpKind::Flush => port.caches().flush(line),
            OpKind::NonTemporal { bytes } => {
                port.caches().flush(line); // every byte of it is written anew
                Some(past_the_caches(line, self.batch.line(bytes)))
            }
            _ => None,
        };
        self.unaccepted += match (kind, written) {
            (OpKind::CounterWriteBack, _) => {
                port.write_counters(self.core, line, arrival);
                1
            }
            (_, Some(written)) => {
                port.write(self.core, &written, arrival);
                1
            }
            // It left the processor unflushed.
            (_, None) if below => {
                port.flush_below(self.core, line, arrival);
                1
            }
            // Its last write may still be on its way.
            (_, None) => port.join_writes(self.core, line),
        };
        true
    }

    fn waiter(&mut self, load: bool, first: bool, since: u64) -> Waiter {
        self.counts.timed += 1;
        Waiter {
            since,
            core: self.core,
            load: load.then_some(self.window.upcoming()),
            first,
        }
    }

    /// Books a load or store that has found its line, `latency` ticks away.
    #[inline]
    fn hit_in(&mut self, latency: u64) {
        self.counts.timed += 1;
        self.waits.access += latency;
    }

    fn wait_for_load(&mut self, fetch: u64) {
        self.loads_out += 1;
        self.window.push(self.at, fetch, None);
    }

    #[inline]
    fn count(&mut self, kind: OpKind, missed: bool) {
        match kind {
            OpKind::Depend
            | OpKind::Doorbell
            | OpKind::Lock
            | OpKind::Unlock
            | OpKind::Mark(_)
            | OpKind::TxBegin
            | OpKind::TxEnd => return,
            OpKind::Load { .. }
            | OpKind::LoadPast
            | OpKind::Store { .. }
            | OpKind::StoreLine { .. } => {
                self.counts.accesses += 1;
                self.counts.misses += u64::from(missed);
            }
            _ => {}
        }
        self.counts.operations += 1;
    }
}

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
