//! One channel: its queues, banks and buses. At every memory-clock cycle in which something can
//! happen it selects at most one queued access for an idle bank and issues at most one command.
//!
//! A bank is data: for every command the earliest cycle at which it may issue (`constraints.rs`). The
//! policy is [`Channel::act`], top to bottom.

use super::active_queue::ActiveQueue;
use super::buffer::{Blocks, Buffer};
use super::command_queues::CommandQueues;
use super::constraints::{ACT, Banks, MOST, PRE, READ, WRITE};
use super::pausing::{Interruptions, Pausing, Under};
use super::queue::{Lists, NONE, QueueEntry};
use crate::line::Place;
use crate::medium::mapping::Decoder;
use crate::medium::params::{MediumParams, PagePolicy, Queues, Scheduler};
use crate::plan::command::{Command, CommandKind};
use crate::plan::steps::Step;

pub(crate) const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Slots {
    #[default]
    Read = 0,
    Write = 1,
    CounterWrite = 2,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Transaction {
    pub step: Step,
    pub place: u64,
    pub row: u64,
    pub bank: usize,
    pub direction: usize,
    pub hit: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Issued {
    pub bank: usize,
    pub done: u64,
}

/// Programs the cells of a write that is issued, and returns the cycles of its array write.
pub(crate) type ProgrammingTime<'p> = &'p mut dyn FnMut(&Transaction) -> u64;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acted {
    pub cycle: u64,
    /// The access that has left its queue.
    pub selected: Option<(Step, Slots)>,
    pub issued: Option<Issued>,
    pub drained: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Turned {
    /// The write will not be done when it would have been, and the share `lost` of it has to be repeated.
    Stopped {
        access: Transaction,
        lost: f64,
        last: bool,
    },
    /// The write continues from the cycle `from`. Without the interruption it would have been done at `was_done`.
    Resumed {
        access: Transaction,
        done: u64,
        from: u64,
        was_done: u64,
    },
}

pub(crate) struct Channel {
    index: u32,
    clock: u64,
    decoder: Decoder,
    pub(super) queues: Queues,
    /// Banks that refreshes keep closed.
    closed: u64,
    lists: [Lists; 2],
    pub(super) used: [usize; 3],
    capacity: [usize; 3],
    /// Writes that hold a slot but may not be issued yet.
    unready: usize,
    pub(super) counters: usize,
    pub(super) draining: bool,
    /// Queued writes go although neither a watermark nor idleness asks for it, because the caller waits.
    pub forced_drain: bool,
    /// The input has ended: writes go whenever no read is queued.
    pub input_ended: bool,
    pub(super) banks: Banks,
    /// Replaces the banks, if the memory module has a buffer.
    buffer: Option<Box<Buffer>>,
    /// Either replaces the lists: queues of commands, or a queue whose accesses become active.
    pub(super) command_queues: Option<Box<CommandQueues>>,
    pub(super) active: Option<Box<ActiveQueue>>,
    is_replaced: bool,
    /// State of array writes that reads may interrupt, if the medium allows that.
    pausing: Option<Box<Pausing>>,
    pub turned: Option<Turned>,
    pub(super) transactions: [Transaction; MOST],
    pub(super) busy: u64,
    turn: u32,
    pub next_act: u64,
    pub issued: Option<Vec<Command>>,
}

impl Channel {
    pub fn new(index: usize, params: &MediumParams) -> Channel {
        let queues = params.queues.clone();
        let banks = Banks::new(params);
        Channel {
            index: index as u32,
            clock: params.timing.clock.ps(),
            decoder: Decoder::new(&params.geometry, params.mapping),
            capacity: [queues.reads, queues.writes, queues.counter_writes],
            queues,
            closed: 0,
            lists: [Lists::new(), Lists::new()],
            used: [0; 3],
            unready: 0,
            counters: 0,
            draining: false,
            forced_drain: false,
            input_ended: false,
            transactions: [Transaction::default(); MOST],
            busy: 0,
            turn: 0,
            next_act: NEVER,
            banks,
            buffer: params
                .buffer
                .map(|buffer| Box::new(Buffer::new(buffer, &params.timing, index))),
            command_queues: CommandQueues::of(params).map(Box::new),
            active: ActiveQueue::of(params).map(Box::new),
            is_replaced: params.is_special() && params.buffer.is_none(),
            pausing: params
                .pausing
                .map(|pausing| Box::new(Pausing::new(pausing))),
            turned: None,
            issued: None,
        }
    }

    #[inline]
    pub fn transaction(&self, bank: usize) -> &Transaction {
        &self.transactions[bank % MOST]
    }

    /// Whether `count` slots are free. A group larger than its queue is let in when the queue is empty; the part that
    /// does not fit waits at its source, where hardware would hold it.
    #[inline]
    pub fn has_slots(&self, slots: Slots, count: usize) -> bool {
        let (used, capacity) = (self.used[slots as usize], self.capacity[slots as usize]);
        let closed = slots != Slots::Read && self.draining && !self.queues.refill_in_drain;
        (used + count <= capacity || used == 0) && !closed
    }

    #[inline]
    pub fn take_slots(&mut self, slots: Slots, count: usize) -> bool {
        if !self.has_slots(slots, count) {
            return false;
        }
        self.used[slots as usize] += count;
        if slots != Slots::Read {
            self.unready += count;
        }
        true
    }

    pub(super) fn has_counter_queue(&self) -> bool {
        self.capacity[2] > 0
    }

    pub fn has_work(&self) -> bool {
        let buffered = self.buffer.as_ref().is_some_and(|buffer| buffer.has_work());
        let moved = self.is_replaced && self.has_moved();
        self.busy | self.interrupted::<true>() != 0 || self.used != [0; 3] || buffered || moved
    }

    pub fn has_writes(&self) -> bool {
        self.lists[WRITE_LIST].len() > 0 || self.is_replaced && self.has_writes_elsewhere()
    }

    /// Makes an access that holds a slot visible to the scheduler. Accesses of one line are issued in the order of
    /// `sequence`.
    ///
    /// Returns whether the scheduler should run: an access to a busy bank cannot be selected yet.
    #[inline]
    pub fn insert(&mut self, step: Step, place: Place, slots: Slots, sequence: u64) -> bool {
        let direction = usize::from(slots != Slots::Read);
        if direction == WRITE_LIST {
            self.unready -= 1;
            self.counters += usize::from(slots == Slots::CounterWrite);
        }
        let (bank, row) = self.decoder.bank_and_row(place.in_medium());
        let place = place.0;
        let entry = QueueEntry {
            step,
            place,
            row,
            slots,
            sequence,
            ..QueueEntry::default()
        };
        if self.is_replaced {
            return self.insert_elsewhere(bank, entry);
        }
        self.lists[direction].insert(bank, entry, self.banks.open_row(bank));
        // The beginning or the end of a drain changes which list goes first, so the scheduler runs although the bank is
        // busy.
        let turns = match self.draining {
            true => self.unready > 0 || self.drain_is_over(),
            false => self.drain_is_due(),
        };
        turns || self.busy >> bank & 1 == 0
    }

    /// Acts in the cycle that is due: at most one selection and one command. While no access can be selected, rows are
    /// only closed and opened. That affects nobody else, so the channel continues with the next such cycle, up to
    /// `limit` (picoseconds). A `SPECIAL` channel acts in one cycle only: `program` gives the time of a write's cells
    /// if it varies, and reads may interrupt array writes, by a command that goes before all others. A plain channel
    /// has no code for that.
    ///
    /// The order within a cycle: refreshes that are due; the selection, so that a command for the new access may go in
    /// this cycle; an interruption or a resumption; one command.
    #[inline(always)]
    pub fn act<const SPECIAL: bool>(
        &mut self,
        limit: u64,
        mut program: Option<ProgrammingTime>,
    ) -> Acted {
        let mut outcome = Acted {
            cycle: self.next_act,
            ..Acted::default()
        };
        loop {
            let cycle = outcome.cycle;
            if SPECIAL && let Some(pausing) = &mut self.pausing {
                pausing.expire(cycle);
            }
            self.refresh(cycle);
            self.closed = self.banks.closed_by_refreshes(cycle);
            let only_commands = self.nothing_to_select();
            if !only_commands {
                let draining = self.draining;
                outcome.selected = self.select::<SPECIAL>();
                outcome.drained = draining && !self.draining && !self.queues.refill_in_drain;
            }
            // An interruption takes the cycle of the command bus that another command would have had.
            if SPECIAL && self.pausing.is_some() && self.banks.bus_is_free(cycle) {
                let stopped = self.stop_a_write(cycle);
                self.turned = stopped.or_else(|| self.resume_a_write(cycle));
            }
            outcome.issued = self.issue(cycle, &mut program);
            if SPECIAL {
                let next = self.next_action::<SPECIAL>(cycle);
                self.next_act = next.min(self.next_turn(cycle));
                return outcome;
            }
            if !only_commands || outcome.issued.is_some() {
                self.next_act = self.next_action::<SPECIAL>(cycle);
                return outcome;
            }
            self.next_act = self.next_command::<SPECIAL>(cycle);
            if self.next_act.saturating_mul(self.clock) > limit {
                return outcome;
            }
            outcome.cycle = self.next_act;
        }
    }

    #[cold]
    pub fn act_specially(&mut self, program: Option<ProgrammingTime>) -> Acted {
        match (&self.buffer, &self.command_queues, &self.active) {
            (Some(_), _, _) => self.act_buffered(),
            (_, Some(_), _) => self.act_in_command_queues(program),
            (_, _, Some(_)) => self.act_with_active(program),
            (None, None, None) => self.act::<true>(0, program),
        }
    }

    /// Banks for which a read has been selected while their array write is under way; none while writes go first.
    fn read_wanted(&self) -> u64 {
        let Some(pausing) = self.pausing.as_ref().filter(|_| !self.draining) else {
            return 0;
        };
        let of_reads = |bank: &usize| self.transactions[*bank].direction == READ_LIST;
        let banks = bits(pausing.writing() & self.busy).filter(of_reads);
        banks.fold(0, |banks, bank| banks | 1 << bank)
    }

    fn stop_a_write(&mut self, cycle: u64) -> Option<Turned> {
        let wanted = self.read_wanted();
        let pausing = self.pausing.as_mut()?;
        let (bank, stop) =
            bits(wanted).find_map(|bank| Some((bank, pausing.stop(bank, cycle)?)))?;
        pausing.interrupt(bank, &stop);
        let Under {
            access,
            before,
            held,
            closed,
            ..
        } = *pausing.of(bank);
        let last = pausing.is_last(bank);
        // The bank is free as many cycles earlier as the array write lasts less.
        self.banks
            .hold(bank, before, held.map(|from| from - stop.cut), closed);
        // The read was selected while the write held its bank back.
        self.banks.want_again(bank);
        self.banks.send(cycle);
        self.note(bank, cycle, stop.kind, access.place, stop.at);
        // A share of 0 is a pause: the cells keep what is programmed, and only the rest is repeated.
        let lost = stop.lost;
        Some(Turned::Stopped { access, lost, last })
    }

    /// Resumes an interrupted write whose bank could be precharged and has no read to serve.
    fn resume_a_write(&mut self, cycle: u64) -> Option<Turned> {
        let pausing = self.pausing.as_mut()?;
        let reads = match self.draining {
            true => 0,
            false => self.lists[READ_LIST].banks() & !self.banks.refreshing(),
        };
        // A drain gives writes the banks, so queued reads hold back no write that has to be completed.
        let mut quiet = bits(pausing.interrupted() & !self.busy & !reads);
        let bank = quiet.find(|bank| self.banks.next(*bank)[PRE] <= cycle)?;
        let under = pausing.resume(bank, cycle);
        under.before = self.banks.next(bank);
        under.held = self.banks.held_by_array(under.ends);
        under.closed = self.banks.open_row(bank).is_none();
        let was_done = std::mem::replace(&mut under.done, under.ends + self.banks.after_array());
        let (access, done) = (under.access, under.done);
        let (before, held, closed) = (under.before, under.held, under.closed);
        self.banks.hold(bank, before, held, closed);
        self.banks.send(cycle);
        self.note(bank, cycle, CommandKind::Resume, access.place, done);
        Some(Turned::Resumed {
            access,
            done,
            from: cycle,
            was_done,
        })
    }

    /// The next cycle after `cycle` in which an array write may be interrupted, may continue, or ends.
    fn next_turn(&self, cycle: u64) -> u64 {
        let Some(pausing) = &self.pausing else {
            return NEVER;
        };
        let ends = bits(pausing.writing()).map(|bank| pausing.of(bank).ends);
        let stops = bits(self.read_wanted()).filter_map(|bank| pausing.next_stop(bank, cycle));
        let quiet = bits(pausing.interrupted() & !self.busy);
        let resumes = quiet.map(|bank| self.banks.next(bank)[PRE].max(cycle + 1));
        let next = ends.chain(stops).chain(resumes).min();
        next.map_or(NEVER, |next| next.max(cycle + 1))
    }

    #[inline]
    fn interrupted<const SPECIAL: bool>(&self) -> u64 {
        let pausing = self.pausing.as_ref().filter(|_| SPECIAL);
        pausing.map_or(0, |pausing| pausing.interrupted())
    }

    /// Banks that take no access of `list` now though they are not busy. A write that waited in such a bank for another
    /// write would keep reads from interrupting that one.
    #[inline]
    fn held<const SPECIAL: bool>(&self, list: usize) -> u64 {
        match self.pausing.as_ref().filter(|_| SPECIAL) {
            Some(pausing) if list == WRITE_LIST && !self.draining => {
                pausing.interrupted() | pausing.writing()
            }
            Some(pausing) if list == WRITE_LIST => pausing.interrupted(),
            _ => 0,
        }
    }

    pub fn active(&self, cycle: u64) -> u64 {
        self.banks.active(cycle)
    }

    pub fn forget_active(&mut self, cycle: u64) {
        self.banks.forget_active(cycle);
    }

    pub fn interruptions(&self) -> Option<Interruptions> {
        self.pausing.as_ref().map(|pausing| pausing.count)
    }

    pub fn forget_interruptions(&mut self) {
        if let Some(pausing) = &mut self.pausing {
            pausing.count = Interruptions::default();
        }
    }

    /// Acts for a module with a buffer: at most one access is handed to the buffer, and at most one comes back.
    fn act_buffered(&mut self) -> Acted {
        let cycle = self.next_act;
        let draining = self.draining;
        self.watermarks();
        let (first, second) = self.directions();
        let wanted = |list: &usize| self.lists[*list].len() > 0;
        let list = [Some(first), second].into_iter().flatten().find(wanted);
        let mut outcome = Acted {
            cycle,
            drained: draining && !self.draining && !self.queues.refill_in_drain,
            ..Acted::default()
        };
        let buffer = self.buffer.as_mut().expect("there is one");
        outcome.issued = buffer.act(cycle).map(|(access, done)| {
            self.transactions[0] = access; // no bank has one: they are behind the buffer
            Issued { bank: 0, done }
        });
        let mut next = buffer.next(cycle);
        if let Some(list) = list {
            if buffer.takes_from(list) <= cycle {
                let entry = self.lists[list].oldest(u64::MAX);
                let (step, place) = self.lists[list].access(entry);
                let access = Transaction {
                    step,
                    place,
                    direction: list,
                    ..Transaction::default()
                };
                if buffer.take(cycle, access).is_some() {
                    let entry = self.lists[list].remove(entry, None);
                    self.used[entry.slots as usize] -= 1;
                    self.counters -= usize::from(entry.slots == Slots::CounterWrite);
                    outcome.selected = Some((entry.step, entry.slots));
                }
            }
            next = next
                .min(buffer.next(cycle))
                .min(buffer.takes_from(list).max(cycle + 1));
        } else if self.draining {
            next = cycle + 1; // the drain is over, and nothing will follow to notice it
        }
        self.next_act = next;
        outcome
    }

    pub fn blocks(&self) -> Option<Blocks> {
        self.buffer.as_ref().map(|buffer| buffer.blocks)
    }

    pub fn forget_blocks(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.blocks = Blocks::default();
        }
    }

    /// Whether some bank is busy and no queued access is for an idle one.
    #[inline]
    fn nothing_to_select(&self) -> bool {
        let waiting = self.lists[READ_LIST].banks() | self.lists[WRITE_LIST].banks();
        self.busy != 0 && waiting & !self.busy & !self.banks.refreshing() == 0
    }

    #[inline(always)]
    fn next_action<const SPECIAL: bool>(&self, cycle: u64) -> u64 {
        let selection = match self.nothing_to_select() {
            true => None,
            false => self.next_selection::<SPECIAL>(cycle),
        };
        selection.unwrap_or_else(|| self.next_command::<SPECIAL>(cycle))
    }

    #[inline(always)]
    fn next_command<const SPECIAL: bool>(&self, cycle: u64) -> u64 {
        let busy = self.busy | self.interrupted::<SPECIAL>();
        let next = self.banks.next_refresh(busy);
        next.min(self.banks.next_command()).max(cycle + 1)
    }

    /// The next cycle in which an access can be selected, or in which the scheduler's state changes; `None` if only a
    /// command can bring that about.
    #[inline(always)]
    fn next_selection<const SPECIAL: bool>(&self, cycle: u64) -> Option<u64> {
        if self.draining && self.drain_is_over() && self.busy == 0 {
            return Some(cycle + 1); // the drain is over, and no command will follow to notice it
        }
        let idle = !self.busy & !self.banks.refreshing();
        let (first, second) = self.directions();
        let selectable =
            |list: usize| self.lists[list].banks() & idle & !self.held::<SPECIAL>(list) != 0;
        if selectable(first) || second.is_some_and(selectable) {
            return Some(cycle + 1);
        }
        let wanted = |list: usize| self.lists[list].len() > 0;
        if self.busy == 0 && !wanted(first) && !second.is_some_and(wanted) {
            return Some(NEVER); // refreshes alone need no event: they are made up for later
        }
        None
    }

    /// The list that goes first, and the one that goes if the first has nothing for an idle bank.
    fn directions(&self) -> (usize, Option<usize>) {
        if self.draining || self.drain_is_due() {
            // Lets reads through if a write that holds a slot may wait for one of them.
            let reads = self.unready > 0 || self.writes_wait_for_refreshes();
            return (WRITE_LIST, reads.then_some(READ_LIST));
        }
        let idle = self.lists[READ_LIST].len() == 0;
        if idle && (self.queues.idle_writes || self.forced_drain || self.input_ended) {
            return (WRITE_LIST, None);
        }
        (READ_LIST, None)
    }

    /// Whether refreshes keep the banks of all queued writes closed, and others are open: reads go on there.
    fn writes_wait_for_refreshes(&self) -> bool {
        let (closed, wanted) = (self.closed, self.lists[WRITE_LIST].banks());
        closed != 0 && wanted & !closed == 0 && (closed.count_ones() as usize) < self.banks.count()
    }

    /// Counts ready writes only: a write that waits for a read must not stop that read. A full counter queue starts a
    /// drain too, because groups wait for it however few data writes are queued.
    fn drain_is_due(&self) -> bool {
        self.lists[WRITE_LIST].len() >= self.queues.high_watermark
            || self.has_counter_queue() && self.counters >= self.queues.counter_writes
    }

    fn drain_is_over(&self) -> bool {
        self.lists[WRITE_LIST].len() <= self.queues.low_watermark
            && self.counters <= self.queues.counter_writes / 2
    }

    /// Selects an access for an idle bank. Watermarks are checked only when an access is queued for an idle bank or no
    /// bank is busy. A drain therefore ends with the first bank that could take another access, as in NVMain, and until
    /// then the write queue may be closed to new writes.
    #[inline(always)]
    fn select<const SPECIAL: bool>(&mut self) -> Option<(Step, Slots)> {
        self.watermarks();
        let (mut list, mut second) = self.directions();
        loop {
            match self.choose::<SPECIAL>(list) {
                NONE => list = second.take()?,
                entry => return Some(self.begin(list, entry)),
            }
        }
    }

    #[inline]
    fn watermarks(&mut self) {
        if self.drain_is_due() {
            self.draining = true;
        } else if self.drain_is_over() {
            self.draining = false;
        }
        if self.lists[WRITE_LIST].len() == 0 {
            self.forced_drain = false;
        }
    }

    /// Chooses the access of `list` that goes next: starved accesses first, then row hits, row conflicts and closed
    /// banks, and the oldest of each class.
    #[inline(always)]
    fn choose<const SPECIAL: bool>(&self, list: usize) -> u16 {
        let lists = &self.lists[list];
        let mut banks = lists.banks() & !self.banks.refreshing();
        let starvation = match self.queues.scheduler {
            Scheduler::FrFcfs => u32::MAX,
            Scheduler::FrFcfsCap { starvation } => starvation,
            Scheduler::Fcfs => {
                // In strict order nothing passes the oldest access, though its bank be busy. Only accesses to banks
                // that wait for a refresh are passed.
                let entry = lists.oldest(banks);
                let taken = self.busy | self.held::<SPECIAL>(list);
                let free = entry != NONE && taken >> lists.bank(entry) & 1 == 0;
                return if free { entry } else { NONE };
            }
        };
        banks &= !(self.busy | self.held::<SPECIAL>(list));
        let mut best = (u64::MAX, NONE);
        while banks != 0 {
            let bank = banks.trailing_zeros() as usize;
            banks &= banks - 1;
            let (hit, head) = (lists.hit(bank), lists.head(bank));
            let (class, entry) = match self.banks.open_row(bank) {
                None => (3, head),
                Some(row) if self.banks.hits(bank) >= starvation => match lists.miss(bank, row) {
                    NONE => (1, hit),
                    miss => (0, miss),
                },
                Some(_) if hit != NONE => (1, hit),
                Some(_) => (2, head),
            };
            // The class stands above the age, so the least key is the oldest access of the best class.
            let key = class << CLASS_SHIFT | lists.sequence(entry);
            if key < best.0 {
                best = (key, entry);
            }
        }
        best.1
    }

    #[inline(always)]
    fn begin(&mut self, list: usize, entry: u16) -> (Step, Slots) {
        let bank = self.lists[list].bank(entry);
        let entry = self.lists[list].remove(entry, self.banks.open_row(bank));
        self.used[entry.slots as usize] -= 1;
        self.counters -= usize::from(entry.slots == Slots::CounterWrite);
        let open = self.banks.open_row(bank);
        let hit = open == Some(entry.row);
        let command = match open {
            _ if hit => column(list),
            None => ACT,
            Some(_) => PRE,
        };
        self.banks.aim(bank, entry.row);
        self.banks.want(bank, command);
        // The selection decides which queued accesses count as row hits: the activate for the new row will follow in
        // any case.
        if !hit {
            for lists in &mut self.lists {
                lists.row_changed(bank, entry.row);
            }
        }
        self.transactions[bank % MOST] = Transaction {
            step: entry.step,
            place: entry.place,
            row: entry.row,
            bank,
            direction: list,
            hit,
        };
        self.busy |= 1 << bank;
        (entry.step, entry.slots)
    }

    #[inline(always)]
    fn issue(&mut self, cycle: u64, program: &mut Option<ProgrammingTime>) -> Option<Issued> {
        let (bank, command) = self.banks.legal(cycle, self.turn)?;
        // Banks take turns: without that the lowest numbers would have the command bus.
        self.turn += 1;
        if self.turn == self.banks.count() as u32 {
            self.turn = 0;
        }
        if command == PRE {
            self.banks.precharge(bank, cycle);
            self.note(bank, cycle, CommandKind::Precharge, 0, 0);
            return None;
        }
        if command == ACT {
            let Transaction { row, direction, .. } = self.transactions[bank % MOST];
            let column = column(direction);
            self.banks.activate(bank, cycle, column);
            self.note(bank, cycle, CommandKind::Activate { row }, 0, 0);
            return None;
        }
        let closes = self.queues.page == PagePolicy::Closed
            && self.lists.iter().all(|lists| lists.hit(bank) == NONE);
        Some(self.access(bank, command, cycle, closes, program))
    }

    /// Issues the column command of a bank's access.
    #[inline(always)]
    pub(super) fn access(
        &mut self,
        bank: usize,
        command: usize,
        cycle: u64,
        closes: bool,
        program: &mut Option<ProgrammingTime>,
    ) -> Issued {
        let access = &self.transactions[bank % MOST];
        let (row, place) = (access.row, access.place);
        // Data-dependent programming gives each write its own tWP, which the column command uses.
        if let (WRITE, Some(program)) = (command, program) {
            self.banks.array_write(program(access));
        }
        // Should a read interrupt this write, the bank is as free as it was before.
        let before = self.banks.next(bank);
        let done = self.banks.access(bank, command, cycle, closes);
        if let (WRITE, Some(pausing)) = (command, &mut self.pausing) {
            let (lead, cycles) = self.banks.array();
            let under = Under {
                access: self.transactions[bank % MOST],
                done,
                before,
                held: self.banks.held_by_write(cycle),
                closed: closes,
                ..Under::default()
            };
            pausing.begin(bank, cycle + lead, cycles, under);
        }
        if closes {
            for lists in &mut self.lists {
                lists.row_closed(bank);
            }
        }
        // From here on the timing alone holds the bank back: its next access may be selected while the data move.
        self.busy &= !(1 << bank);
        self.note(bank, cycle, column_kind(command, row, closes), place, done);
        Issued { bank, done }
    }

    /// Issues the refreshes that are due. A refresh that fell due while the channel was idle gets the time at which it
    /// could have gone; the next one goes when its banks are quiet.
    #[inline]
    pub fn refresh(&mut self, cycle: u64) {
        if self.banks.refreshes() {
            self.refresh_due(cycle);
        }
    }

    fn refresh_due(&mut self, cycle: u64) {
        // An interrupted write has to be completed before its bank is refreshed.
        let busy = self.busy | self.interrupted::<true>();
        if self.issued.is_none()
            && busy == 0
            && let Some(settled) = self.banks.long_idle(cycle)
        {
            // Nobody hears of the commands, and one period of an idle channel is like the next.
            self.make_up(settled, busy);
            let before = self.banks.left_by_refreshes(settled);
            let later = settled + self.banks.refresh_period();
            self.make_up(later, busy);
            if before.is_some() && before == self.banks.left_by_refreshes(later) {
                self.banks.skip_periods(cycle);
            }
        }
        self.make_up(cycle, busy);
    }

    fn make_up(&mut self, cycle: u64, busy: u64) {
        while let Some((banks, at, kind)) = self.banks.refresh(cycle, busy) {
            let first = banks.start;
            if kind != CommandKind::Refresh {
                for bank in banks {
                    for lists in &mut self.lists {
                        lists.row_closed(bank);
                    }
                }
            }
            self.note(first, at, kind, 0, 0);
        }
    }

    /// The number of the command's bank among those of all ranks.
    pub fn number_of(&self, command: &Command) -> usize {
        command.rank as usize * self.banks.per_rank() + command.bank as usize
    }

    #[inline]
    pub(super) fn note(
        &mut self,
        bank: usize,
        cycle: u64,
        kind: CommandKind,
        place: u64,
        done: u64,
    ) {
        let per_rank = self.banks.per_rank();
        let channel = self.index;
        if let Some(issued) = &mut self.issued {
            issued.push(Command {
                cycle,
                channel,
                rank: (bank / per_rank) as u32,
                bank: (bank % per_rank) as u32,
                kind,
                place: Place(place).in_medium(),
                done,
            });
        }
    }
}

/// The class of an access stands above its place in the order of arrival. Fewer accesses than this power of two arrive.
const CLASS_SHIFT: u32 = 60;

const READ_LIST: usize = 0;
const WRITE_LIST: usize = 1;

fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then_some(set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        bit
    })
}

pub(super) fn column_kind(command: usize, row: u64, auto_precharge: bool) -> CommandKind {
    match command {
        READ => CommandKind::Read {
            row,
            auto_precharge,
        },
        _ => CommandKind::Write {
            row,
            auto_precharge,
        },
    }
}

pub(super) fn column(list: usize) -> usize {
    match list {
        READ_LIST => READ,
        _ => WRITE,
    }
}
