//! Transactions whose log entries wait on chip: their registers, their buckets, and the entries that a cut leaves of
//! them. Left out: how entries outlive a cut ([`Outliving`]); which of them wait, and what a recovery does with them.

use super::buckets::{self, Buckets, FoundRegisters, NO_REGISTERS, RegisterLines};
use super::pending::{
    self, DROPPED, Dumped, EntryPlaces, HALF, HalfLine, Outliving, PENDING_MOST, PER_LINE,
    QUEUE_BYTES, Queued, SPILLED, Which,
};
use super::undo::{BUCKETS_MOST, ENTRIES, REGISTER_BYTES, TRANSACTIONS, TRANSACTIONS_MOST};
use crate::controller::{Class, Figures, Persist, Top, Write};
use crate::line::{LINE_BYTES, Line, Logical, ZERO_LINE};
use crate::medium::layout::Layout;
use crate::plan::storey::Unfinished;
use crate::plan::{At, Plan, Queue, Step, Stored};
use crate::settings::Settings;
use crate::stats::Cause;

/// A transaction under way.
#[derive(Default)]
pub struct Owner {
    core: u32,
    /// The number of the core's transaction; 0 for none.
    pub transaction: u64,
    /// The number among all of the log, from the first entry on; before, that of the registers' last transaction.
    pub number: u64,
    /// Its buckets, oldest first.
    pub buckets: Vec<u16>,
    /// Entries that have a place.
    pub entries: u64,
    /// The step after which all entries so far outlive a cut.
    pub durable: Step,
    /// The lines that it has logged.
    pub logged: Vec<Logical>,
}

/// Counts of lines and of entries, of half a line each.
#[derive(Default)]
pub struct EntryCounts {
    /// Lines that were logged.
    pub lines: u64,
    /// Entries that were never written.
    pub dropped: u64,
    /// Entries that found no room on chip.
    pub spilled: u64,
    /// Entries that wait.
    pub waiting: u64,
    /// Entries that waited at one time, at most.
    pub most: u64,
}

impl EntryCounts {
    /// Forgets what was counted; what waits still does.
    pub fn forget(&mut self) {
        *self = EntryCounts {
            waiting: self.waiting,
            ..EntryCounts::default()
        };
    }
}

/// The lines that recovery writes for a transaction that a cut found, in order.
pub type LeftBy<P> =
    fn(&Owners<P>, &FoundRegisters, &Dumped, &mut Plan) -> Vec<(Logical, At<Line>)>;

/// All transactions of a log.
pub struct Owners<P> {
    /// The places of entries.
    pub entries: EntryPlaces,
    /// Whoever has entries outlive a cut.
    pub pending: P,
    /// The places of registers.
    pub registers: RegisterLines,
    /// The buckets.
    pub buckets: Buckets,
    slots: Vec<Owner>,
    /// The registers that are taken first, and the step from which on those of each slot may be overwritten.
    turn: usize,
    free: Vec<Step>,
    /// The number of the next transaction that logs something.
    next: u64,
    /// Transactions under way at one time, at most.
    pub most: u64,
}

impl<P: Outliving> Owners<P> {
    /// No transaction yet. A queue of so many slots holds entries, `per_line` for each line that is logged.
    pub fn new(
        settings: &Settings,
        layout: &mut Layout,
        (queue, per_line): (u64, u64),
        pending: impl FnOnce(EntryPlaces) -> P,
    ) -> Owners<P> {
        let (transactions, buckets) = (settings.get(&TRANSACTIONS), Buckets::new(settings));
        let entries = EntryPlaces::new(settings, (queue, per_line), layout);
        Owners {
            pending: pending(entries.clone()),
            entries,
            registers: RegisterLines::new(layout, transactions, buckets.all, u64::MAX),
            buckets,
            slots: (0..transactions).map(|_| Owner::default()).collect(),
            turn: 0,
            free: (0..transactions).map(|_| Step::PAST).collect(),
            next: settings.get(&pending::FIRST_NUMBER),
            most: 0,
        }
    }

    /// The number of registers.
    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// Begins a transaction; fails the plan if no registers are free.
    pub fn begin(&mut self, core: u32, transaction: u64, plan: &mut Plan) {
        let count = self.slots.len();
        let mut turns = (0..count).map(|turn| (self.turn + turn) % count);
        let Some(slot) = turns.find(|slot| self.slots[*slot].transaction == 0) else {
            return plan.fail(NO_REGISTERS);
        };
        self.turn = slot + 1;
        self.slots[slot] = Owner {
            core,
            transaction,
            number: self.slots[slot].number,
            durable: self.free[slot],
            ..Owner::default()
        };
        let under_way = self.slots.iter().filter(|slot| slot.transaction != 0);
        self.most = self.most.max(under_way.count() as u64);
    }

    /// The registers of the transaction of `core`, if it has one under way.
    pub fn of_core(&self, core: u32) -> Option<usize> {
        let of_core = |slot: &Owner| slot.transaction != 0 && slot.core == core;
        self.slots.iter().position(of_core)
    }

    /// The transaction of the registers `slot`.
    pub fn owner(&mut self, slot: usize) -> &mut Owner {
        &mut self.slots[slot]
    }

    /// Ends the transaction of the registers `slot`, and returns it. They may be overwritten after `free`.
    pub fn end(&mut self, slot: usize) -> Owner {
        let number = self.slots[slot].number;
        let kept = Owner {
            number,
            ..Owner::default()
        };
        std::mem::replace(&mut self.slots[slot], kept)
    }

    /// Has the registers `slot` say after `ripe` that they have no transaction, and takes its buckets back.
    pub fn clear(&mut self, slot: usize, ended: Owner, ripe: Step, plan: &mut Plan) -> Step {
        let none = buckets::dumped(0, 0, &[], ended.number);
        // Its lines are locked no more since their entries outlive a cut, and may be by the core's next transaction.
        let done = plan.registers(self.registers.place(slot), &none, ripe, &[]);
        self.buckets.give(ended.buckets, done);
        self.free[slot] = done;
        done
    }

    /// Gives the next `count` entries of the registers `slot` their places. Returns the number of the first; `None` if the
    /// log has no room.
    pub fn reserve(&mut self, slot: usize, count: u64, plan: &mut Plan) -> Option<u64> {
        let this = &mut self.slots[slot];
        if this.entries == this.buckets.len() as u64 * self.entries.per_bucket {
            let (_, gate) = self.buckets.take(&mut this.buckets, plan)?;
            if this.entries == 0 {
                this.number = self.next;
                self.next += 1;
            }
            let named = buckets::dumped(this.transaction, 0, &this.buckets, this.number);
            let ripe = plan.both(this.durable, gate);
            this.durable = plan.registers(self.registers.place(slot), &named, ripe, &[]);
        }
        let index = this.entries;
        this.entries += count;
        Some(index)
    }

    /// Puts `entry`, number `index` of the registers `slot`, whose content exists after `at`, into the queue's slot
    /// `queued`, which is free after `room`. A transaction's entries outlive a cut in their order.
    pub fn put(
        &mut self,
        slot: usize,
        index: u64,
        entry: &HalfLine,
        at: Step,
        (queued, room): (u64, Step),
        plan: &mut Plan,
    ) -> Queued {
        let this = &mut self.slots[slot];
        let place = self.entries.place_in(&this.buckets, index);
        let number = this.number;
        let plain = entry.plain(Which { number, index });
        let from = plan.upcoming();
        let mut log = plan.because(Cause::Log);
        let sealed = (self.entries).seal(place, number, At::new(&plain, at), &mut log);
        let ripe = log.both(sealed.at, room);
        let ripe = log.both(ripe, this.durable);
        let is_last = entry.half + 1 == PER_LINE;
        let unlocked: &[Logical] = if is_last { &[entry.line] } else { &[] };
        let queued = Queued {
            slot: queued,
            place,
            number,
            sealed,
            kept: ripe,
        };
        this.durable = self.pending.wait(&queued, ripe, unlocked, &mut log);
        log.logged(from, &plain);
        Queued {
            kept: this.durable,
            ..queued
        }
    }

    /// Writes `entry`, number `index` of the registers `slot`, whose content exists after `at`, past the queue.
    pub fn leave(
        &mut self,
        slot: usize,
        index: u64,
        entry: &HalfLine,
        at: Step,
        plan: &mut Plan,
    ) -> Stored {
        let this = &mut self.slots[slot];
        let (place, number) = (self.entries.place_in(&this.buckets, index), this.number);
        let plain = entry.plain(Which { number, index });
        let from = plan.upcoming();
        let mut log = plan.because(Cause::Log);
        let sealed = (self.entries).seal(place, number, At::new(&plain, at), &mut log);
        let queued = Queued {
            slot: 0,
            place,
            number,
            sealed,
            kept: log.both(this.durable, sealed.at),
        };
        let stored = self.pending.leave(&queued, &mut log);
        log.logged(from, &plain);
        stored
    }

    /// Learns the numbers that transactions have had.
    pub fn recover(&mut self, plan: &mut Plan) {
        let mut last = 0;
        for (slot, owner) in self.slots.iter_mut().enumerate() {
            owner.number = self.registers.number(slot, plan);
            last = last.max(owner.number);
        }
        if last > 0 {
            self.next = self.pending.next_number(last);
        }
    }

    /// The line of which the entries `index` and the next, of the transaction that `found` names, are the halves; `None`
    /// if one of them is nowhere.
    pub fn line(
        &self,
        found: &FoundRegisters,
        index: u64,
        dumped: &Dumped,
        plan: &mut Plan,
    ) -> Option<(Logical, At<Line>)> {
        let number = found.number;
        let mut half = |index| {
            let place = self.entries.place_in(&found.buckets, index);
            let which = Which { number, index };
            self.pending.read(place, which, dumped, plan)
        };
        let (first, second) = (half(index)?, half(index + 1)?);
        let mut line = ZERO_LINE;
        line[..HALF].copy_from_slice(&first.value.data);
        line[HALF..].copy_from_slice(&second.value.data);
        let at = plan.both(first.at, second.at);
        Some((first.value.line, At::new(line, at)))
    }

    /// The old lines of the transaction that `found` names, oldest first, by the number of their first entry; each line
    /// has `per_line` entries. A line whose entries are not all there is locked.
    pub fn old_lines(
        &self,
        found: &FoundRegisters,
        per_line: u64,
        dumped: &Dumped,
        plan: &mut Plan,
    ) -> Vec<(u64, Logical, At<Line>)> {
        let all = found.buckets.len() as u64 * self.entries.per_bucket;
        let indices = (0..all).step_by(per_line as usize);
        let lines = indices.map_while(|index| {
            let (line, old) = self.line(found, index, dumped, plan)?;
            Some((index, line, old))
        });
        lines.collect()
    }

    /// Writes over `below`, which has `lines` lines, what `left_by` says of each transaction that a cut found: committed
    /// ones first, in their order, because those under way have changed only lines of theirs, later. Returns the lines.
    pub fn write_left(
        &mut self,
        lines: u64,
        below: &mut Top,
        left_by: LeftBy<P>,
        plan: &mut Plan,
    ) -> Vec<Logical> {
        let mut plan = plan.because(Cause::Log);
        let dumped = self.pending.dumped(&mut plan);
        let mut found = Vec::new();
        for slot in 0..self.count() {
            let registers = self.registers.found(slot, &mut plan);
            found.extend(registers.map(|registers| (slot, registers)));
        }
        found.sort_by_key(|(_, found)| found.headers.wrapping_sub(1));
        let (mut restored, mut accepted) = (Vec::new(), Step::PAST);
        for (_, found) in &found {
            let left = left_by(self, found, &dumped, &mut plan).into_iter();
            for (line, data) in left.filter(|(line, _)| line.0 < lines) {
                plan.handled(line, &data.value, Class::Data, Persist::CounterAtomic);
                let write = Write {
                    order: Persist::CounterAtomic,
                    ..Write::new(line, At::new(&data.value, data.at))
                };
                let stored = below.write(write, &mut plan);
                accepted = plan.both(accepted, stored.accepted);
                restored.push(line);
            }
        }
        // Registers are cleared in this order too, or the next recovery would write an older commit over a newer one.
        for (slot, _) in &found {
            accepted = self.forget(*slot, accepted, &mut plan);
        }
        self.buckets.ready = accepted;
        restored
    }

    /// The figures of a log whose queue has this many bytes.
    pub fn figures(&self, counts: &EntryCounts, queue_bytes: usize, out: &mut Figures) {
        out.put(&ENTRIES, counts.lines as f64);
        out.put(&DROPPED, counts.dropped as f64);
        out.put(&SPILLED, counts.spilled as f64);
        out.put(&PENDING_MOST, counts.most as f64);
        out.put(&BUCKETS_MOST, self.buckets.most as f64);
        out.put(&TRANSACTIONS_MOST, self.most as f64);
        out.put(&REGISTER_BYTES, (self.count() * LINE_BYTES) as f64);
        out.put(&QUEUE_BYTES, queue_bytes as f64);
    }

    /// The transactions that a cut found, as a log tells them.
    pub fn unfinished(&self, per_line: u64, plan: &mut Plan) -> Vec<Unfinished> {
        let dumped = self.pending.dumped(plan);
        let mut unfinished = Vec::new();
        for slot in 0..self.slots.len() {
            let Some(found) = self.registers.found(slot, plan) else {
                continue;
            };
            let mut buckets: Vec<_> = found.buckets.iter().map(|one| (*one, Vec::new())).collect();
            for (index, line, old) in self.old_lines(&found, per_line, &dumped, plan) {
                let bucket = &mut buckets[(index / self.entries.per_bucket) as usize];
                bucket.1.push((line, old.value));
            }
            unfinished.push(Unfinished {
                registers: slot as u64,
                transaction: found.transaction,
                headers: found.headers,
                buckets,
            });
        }
        unfinished
    }

    /// Forgets what was counted; state stays.
    pub fn forget_figures(&mut self) {
        (self.most, self.buckets.most) = (0, 0);
    }

    /// Has the registers `slot` forget, in memory and after `gate`, the transaction that a cut found: by one word, so that
    /// a torn line is of a transaction as before, or of none. Returns when that is accepted.
    pub fn forget(&self, slot: usize, gate: Step, plan: &mut Plan) -> Step {
        let (place, none) = (self.registers.place(slot), At::past(&ZERO_LINE));
        plan.write_words(place, none, 1, None, gate, Queue::Data)
            .accepted
    }
}
