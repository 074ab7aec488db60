//! The queues of Ramulator 2.1. An access whose row has been opened for it leaves its queue then, becomes *active*, and
//! goes before all others; nobody closes its row. Otherwise the oldest access goes whose next command may, of the
//! reads or of the writes, never of both. A line may be several bursts, each an entry with commands of its own.
//!
//! LPDDR's activates have a second command, and its data clock, which stops between bursts, one that starts it.

use super::channel::{
    Acted, Channel, Issued, NEVER, ProgrammingTime, Slots, Transaction, column, column_kind,
};
use super::constraints::{ACT, Banks, MOST, PRE, READ, WRITE};
use super::queue::QueueEntry;
use crate::medium::params::{ActiveParams, MediumParams, PagePolicy, Queues};
use crate::plan::command::CommandKind;
use crate::plan::steps::Step;

/// A bus for commands of rows, and one for those of columns. A bus for both is used as both.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bus {
    Both,
    Columns,
    Rows,
}

/// The buses of a channel, in the order in which they are used in a cycle.
const ONE: &[Bus] = &[Bus::Both];
const TWO: &[Bus] = &[Bus::Columns, Bus::Rows];

fn is_column(command: usize) -> bool {
    [READ, WRITE].contains(&command)
}

impl Bus {
    fn takes(self, command: usize) -> bool {
        self == Bus::Both || is_column(command) == (self == Bus::Columns)
    }
}

/// An entry of one of the lists, and its command that may go.
#[derive(Clone, Copy)]
struct Candidate {
    list: usize,
    at: usize,
    command: usize,
}

const READS: usize = 0;
const WRITES: usize = 1;
const ACTIVE: usize = 2;

pub(crate) struct ActiveQueue {
    params: ActiveParams,
    buses: &'static [Bus],
    /// The cycle from which on each bus is free.
    free: [u64; 2],
    /// Reads, writes, and those that are active, each in order of arrival. Accesses that came in one cycle become active
    /// in the order of their activates.
    lists: [Vec<QueueEntry>; 3],
    batch: u16,
    writing: bool,
    /// An access whose activate needs its second command, by a cycle.
    activating: Option<(QueueEntry, u64)>,
    /// The cycle until which the data clock runs, and the number of the access that it has been started for.
    clock_until: u64,
    started_for: Option<u64>,
    /// From a read and from a write to the end of its burst.
    bursts_end: [u64; 2],
    /// The stack of each bank, counted through all ranks, and the cycle from which on others may be read.
    stack_of: Vec<usize>,
    others_read: Vec<u64>,
    /// Bursts that have left each queue, modulo those of a line, from one less on: the slot of a line is free with the
    /// first entry, as its first burst may enter there then.
    freed: [u64; 3],
    /// Accesses that have left their queue and have not been told of.
    left: Vec<(Step, Slots)>,
}

impl ActiveQueue {
    /// The queue of a channel, if the medium has one.
    pub fn of(medium: &MediumParams) -> Option<ActiveQueue> {
        let params = medium.active?;
        let timing = &medium.timing;
        let burst = timing.tBURST / params.bursts;
        let (banks, stacks) = (medium.geometry.banks, params.stacks);
        let stack = |bank: u64| bank / banks * stacks + bank % medium.groups.count % stacks;
        let ranks = medium.geometry.ranks;
        Some(ActiveQueue {
            params,
            buses: if medium.row_bus { TWO } else { ONE },
            free: [0; 2],
            lists: Default::default(),
            batch: 0,
            writing: false,
            activating: None,
            clock_until: if params.data_clock == 0 { NEVER } else { 0 },
            started_for: None,
            bursts_end: [timing.tCL + burst, timing.tCWD + burst],
            stack_of: (0..ranks * banks)
                .map(|bank| stack(bank) as usize)
                .collect(),
            others_read: vec![0; (ranks * stacks) as usize],
            freed: [params.bursts - 1; 3],
            left: Vec::new(),
        })
    }

    pub fn insert(&mut self, bank: usize, entry: QueueEntry) {
        let list = usize::from(entry.slots != Slots::Read);
        let entry = QueueEntry {
            bank: bank as u8,
            before: self.batch, // without lists of banks
            ..entry
        };
        for _ in 0..self.params.bursts {
            self.put(list, entry);
        }
    }

    fn put(&mut self, list: usize, entry: QueueEntry) {
        // A write that had to wait for its line may become visible after younger ones.
        let at = self.lists[list].partition_point(|other| {
            let together = list == ACTIVE && other.before == entry.before;
            other.sequence <= entry.sequence || together
        });
        self.lists[list].insert(at, entry);
    }

    /// Whether nothing waits, or is active, or is still to be told of. The entries of a line's last bursts may be free
    /// before these have gone.
    pub fn is_empty(&self) -> bool {
        let lists = self.lists.iter().all(Vec::is_empty);
        lists && self.activating.is_none() && self.left.is_empty()
    }

    /// Ready writes that wait in the channel's queue.
    pub fn writes(&self) -> usize {
        self.lists[WRITES].len()
    }

    /// The banks of accesses that are active, or about to be.
    fn held_banks(&self) -> u64 {
        let activating = self.activating.iter().map(|(entry, _)| entry);
        let held = self.lists[ACTIVE].iter().chain(activating);
        held.fold(0, |banks, entry| banks | 1 << entry.bank)
    }

    /// The list that goes: writes from the high watermark on, or without a read; reads at the low one, if there is any.
    fn direction(&mut self, full: bool, of: &Queues) -> usize {
        let (reads, writes) = (self.lists[READS].len(), self.lists[WRITES].len());
        let bursts = self.params.bursts as usize;
        let limit = match self.writing {
            false => of.high_watermark * bursts,
            true => of.low_watermark * bursts + 1,
        };
        self.writing = writes >= limit || reads == 0 || full;
        usize::from(self.writing)
    }

    /// The first entry of a list whose next command may go at `cycle`; otherwise the earliest cycle at which one may.
    fn first_ready(
        &self,
        list: usize,
        bus: Bus,
        banks: &Banks,
        cycle: u64,
    ) -> Result<Candidate, u64> {
        let held = self.held_banks();
        let mut earliest = NEVER;
        for (at, entry) in self.lists[list].iter().enumerate() {
            let bank = entry.bank as usize;
            let command = match banks.open_row(bank) {
                Some(row) if row == entry.row => column(usize::from(entry.slots != Slots::Read)),
                None if self.activating.is_none() => ACT,
                Some(_) if held >> bank & 1 == 0 => PRE,
                _ => continue,
            };
            if !bus.takes(command) {
                continue;
            }
            let ready = self.ready(bank, command, banks, cycle);
            if ready <= cycle {
                return Ok(Candidate { list, at, command });
            }
            earliest = earliest.min(ready);
        }
        Err(earliest)
    }

    /// The earliest cycle at which the bank may have `command`, at a rising edge unless it is a precharge.
    fn ready(&self, bank: usize, command: usize, banks: &Banks, cycle: u64) -> u64 {
        let mut ready = banks.ready(bank, command);
        let stacks = self.params.stacks as usize;
        if stacks > 1 && command == READ {
            let own = self.stack_of[bank];
            let of_rank = own / stacks * stacks..(own / stacks + 1) * stacks;
            for other in of_rank.filter(|stack| *stack != own) {
                ready = ready.max(self.others_read[other]);
            }
        }
        match self.params.rising_edges && command != PRE {
            true => ready.max(cycle) | 1,
            false => ready,
        }
    }

    /// The column command that the data clock has been started for.
    fn started(&self, banks: &Banks, cycle: u64) -> Option<Result<Candidate, u64>> {
        let sequence = self.started_for?;
        for list in [ACTIVE, READS, WRITES] {
            let mut entries = self.lists[list].iter();
            if let Some(at) = entries.position(|entry| entry.sequence == sequence) {
                let entry = &self.lists[list][at];
                let command = column(usize::from(entry.slots != Slots::Read));
                let ready = self.ready(entry.bank as usize, command, banks, cycle);
                return Some(match ready <= cycle {
                    true => Ok(Candidate { list, at, command }),
                    false => Err(ready),
                });
            }
        }
        None
    }

    fn bank(&self, of: Candidate) -> u8 {
        self.lists[of.list][of.at].bank
    }

    /// Takes an entry to which its activate goes out of its queue. A row is then opened for all bursts of its line.
    fn activate(&mut self, from: Candidate, cycle: u64) -> QueueEntry {
        let entry = self.lists[from.list].remove(from.at);
        for other in self.lists.iter_mut().flatten() {
            other.opened |= other.sequence == entry.sequence;
        }
        let opened = QueueEntry {
            opened: true,
            ..entry
        };
        match self.params.second_activate {
            0 => self.put(ACTIVE, opened),
            within => self.activating = Some((opened, cycle + within)),
        }
        opened
    }

    /// Whether a list has a burst of this entry's line.
    fn has_more(&self, of: &QueueEntry) -> bool {
        let activating = self.activating.iter().map(|(entry, _)| entry);
        let mut others = self.lists.iter().flatten().chain(activating);
        others.any(|other| other.sequence == of.sequence)
    }

    /// The access of which is told that it has left its queue: the one that is `done` while it is known, or the first.
    fn tell(&mut self, done: Option<Step>) -> Option<(Step, Slots)> {
        let first = self.left.first()?;
        let of_done = self.left.iter().find(|left| Some(left.0) == done);
        let told = *of_done.unwrap_or(first);
        self.left.retain(|left| left.0 != told.0);
        Some(told)
    }

    fn wants(&self, bank: u8, row: u64) -> bool {
        let mut all = self.lists.iter().flatten();
        all.any(|entry| entry.bank == bank && entry.row == row)
    }

    /// Keeps a command's bus for as long as it takes.
    fn take_bus(&mut self, bus: Bus, command: usize, cycle: u64) {
        let [activate, precharge, column] = self.params.bus_cycles;
        let cycles = match command {
            ACT => activate,
            PRE => precharge,
            _ => column,
        };
        self.free[usize::from(bus == Bus::Columns)] = cycle + cycles;
    }

    fn is_due(&self, cycle: u64) -> bool {
        self.activating.is_some_and(|(_, by)| by <= cycle)
    }
}

impl Channel {
    #[cold]
    pub(super) fn insert_elsewhere(&mut self, bank: usize, entry: QueueEntry) -> bool {
        match (&mut self.command_queues, &mut self.active) {
            (Some(queues), _) => queues.insert(bank, entry),
            (None, queue) => queue.as_mut().expect("there is one").insert(bank, entry),
        }
        true
    }

    #[cold]
    pub(super) fn has_moved(&self) -> bool {
        let (queues, queue) = (self.command_queues.as_ref(), self.active.as_ref());
        queues.is_some_and(|queues| queues.has_moved())
            || queue.is_some_and(|queue| !queue.is_empty())
    }

    #[cold]
    pub(super) fn has_writes_elsewhere(&self) -> bool {
        let (queues, queue) = (self.command_queues.as_ref(), self.active.as_ref());
        queues.is_some_and(|queues| queues.writes() > 0)
            || queue.is_some_and(|queue| queue.writes() > 0)
    }

    #[inline]
    fn queue(&mut self) -> &mut ActiveQueue {
        self.active.as_mut().expect("there is one")
    }

    /// Acts with an [`ActiveQueue`]: a command for each free bus, first one of a column and then one of a row.
    pub(super) fn act_with_active(&mut self, mut program: Option<ProgrammingTime>) -> Acted {
        let cycle = self.next_act;
        let mut outcome = Acted {
            cycle,
            ..Acted::default()
        };
        let queue = self.queue();
        queue.batch = queue.batch.wrapping_add(1);
        let buses = queue.buses;
        if buses.len() > 1 {
            self.refresh_first(cycle);
        }
        let (mut earliest, mut sent) = (NEVER, None);
        for bus in buses {
            let free = self.queue().free[usize::from(*bus == Bus::Columns)];
            if cycle < free {
                earliest = earliest.min(free);
                continue;
            }
            let candidate = match self.candidate(cycle, *bus) {
                Ok(candidate) => candidate,
                Err(at) => {
                    earliest = earliest.min(at);
                    continue;
                }
            };
            let bank = self.queue().bank(candidate);
            if sent == Some(bank) {
                continue; // a bank takes one command a cycle
            }
            self.queue().take_bus(*bus, candidate.command, cycle);
            let issued = self.send_active(cycle, candidate, &mut program);
            outcome.issued = outcome.issued.or(issued);
            sent = Some(bank);
        }
        let done = outcome
            .issued
            .map(|issued| self.transactions[issued.bank % MOST].step);
        outcome.selected = self.queue().tell(done);
        self.after_active(cycle, earliest, sent.is_some());
        outcome
    }

    /// Refreshes what is due, and returns the cycle from which on rows may have other commands.
    fn refresh_first(&mut self, cycle: u64) -> u64 {
        self.refresh(cycle);
        let used = self.banks.bus_free();
        let free = &mut self.queue().free[0];
        if used > cycle {
            *free = used.max(*free);
        }
        *free
    }

    /// Says when the channel acts next.
    fn after_active(&mut self, cycle: u64, earliest: u64, sent: bool) {
        let queue = self.active.as_ref().expect("there is one");
        self.forced_drain &= queue.writes() > 0;
        self.busy = queue.held_banks();
        let rows = queue.free[0].max(cycle);
        if rows > cycle {
            self.banks.send(rows - 1); // refreshes have the rows' bus too
        }
        self.next_act = match (queue.is_empty(), sent || !queue.left.is_empty()) {
            (true, _) => NEVER,
            (_, true) => cycle + 1,
            _ => earliest
                .min(self.banks.next_refresh(self.busy))
                .max(cycle + 1),
        };
    }

    /// What goes on a bus at `cycle`, or when something may: active accesses first; then refreshes, which hold all others
    /// back while they wait; then reads, or writes.
    fn candidate(&mut self, cycle: u64, bus: Bus) -> Result<Candidate, u64> {
        let queue = self.active.as_mut().expect("there is one");
        if let Some(started) = queue.started(&self.banks, cycle) {
            return started;
        }
        if queue.is_due(cycle) {
            return self.second_activate(cycle);
        }
        let active = queue.first_ready(ACTIVE, bus, &self.banks, cycle);
        let found = match active {
            Ok(candidate) => Ok(candidate),
            Err(earliest) => self.of_queues(cycle, bus).map_err(|at| at.min(earliest)),
        };
        match found {
            Ok(candidate) => self.with_clock(candidate, cycle),
            Err(_) if self.queue().activating.is_some() => self.second_activate(cycle),
            Err(_) => found,
        }
    }

    /// The same without active accesses.
    fn of_queues(&mut self, cycle: u64, bus: Bus) -> Result<Candidate, u64> {
        if bus == Bus::Both {
            let free = self.refresh_first(cycle);
            if cycle < free {
                return Err(free);
            }
        }
        if self.banks.refreshing() != 0 {
            return Err(NEVER);
        }
        let full = self.has_counter_queue() && self.counters >= self.queues.counter_writes;
        let queue = self.active.as_mut().expect("there is one");
        let list = queue.direction(full, &self.queues);
        queue.first_ready(list, bus, &self.banks, cycle)
    }

    /// Sends the second command of an activate. Its access becomes active.
    fn second_activate(&mut self, cycle: u64) -> Result<Candidate, u64> {
        let queue = self.queue();
        if let Some((entry, _)) = queue.activating.take() {
            queue.put(ACTIVE, entry);
        }
        queue.take_bus(Bus::Both, ACT, cycle);
        Err(cycle + 1)
    }

    /// Lets a column command go only if the data clock runs; else the clock is started for it.
    fn with_clock(&mut self, candidate: Candidate, cycle: u64) -> Result<Candidate, u64> {
        let queue = self.queue();
        if !is_column(candidate.command) || cycle < queue.clock_until {
            return Ok(candidate);
        }
        // The column command follows at once, so an activate that is nearly due goes first.
        let [.., column] = queue.params.bus_cycles;
        if queue.is_due(cycle + column) {
            return self.second_activate(cycle);
        }
        let entry = &queue.lists[candidate.list][candidate.at];
        queue.started_for = Some(entry.sequence);
        queue.take_bus(Bus::Both, candidate.command, cycle);
        Err(cycle + 1)
    }

    /// Gives back the entry of a burst that has left its queue.
    fn leaves(&mut self, entry: &QueueEntry) {
        let queue = self.queue();
        queue.left.push((entry.step, entry.slots));
        let freed = &mut queue.freed[entry.slots as usize];
        *freed += 1;
        if *freed == queue.params.bursts {
            *freed = 0;
            self.used[entry.slots as usize] -= 1;
            self.counters -= usize::from(entry.slots == Slots::CounterWrite);
        }
    }

    /// Sends a command: it closes or opens a row, or it is an access, which leaves.
    fn send_active(
        &mut self,
        cycle: u64,
        of: Candidate,
        program: &mut Option<ProgrammingTime>,
    ) -> Option<Issued> {
        let queue = self.queue();
        if of.command == PRE {
            let bank = queue.lists[of.list][of.at].bank as usize;
            self.banks.precharge(bank, cycle);
            self.banks.close(bank);
            self.note(bank, cycle, CommandKind::Precharge, 0, 0);
            return None;
        }
        let entry = match of.command {
            ACT => queue.activate(of, cycle),
            _ => queue.lists[of.list].remove(of.at),
        };
        if of.list != ACTIVE {
            self.leaves(&entry);
        }
        let (bank, row) = (entry.bank as usize, entry.row);
        self.banks.aim(bank, row);
        if of.command == ACT {
            let column = column(usize::from(entry.slots != Slots::Read));
            self.banks.activate(bank, cycle, column);
            let reopens = cycle + self.queue().params.reopens;
            self.banks.keep_closed(bank, reopens);
            self.note(bank, cycle, CommandKind::Activate { row }, 0, 0);
            return None;
        }
        self.send_burst(cycle, of.command, &entry, program)
    }

    /// Sends a column command. The access is done with the last burst of its line.
    fn send_burst(
        &mut self,
        cycle: u64,
        command: usize,
        entry: &QueueEntry,
        program: &mut Option<ProgrammingTime>,
    ) -> Option<Issued> {
        let closed = self.queues.page == PagePolicy::Closed;
        let queue = self.queue();
        let direction = usize::from(command == WRITE);
        queue.started_for = None;
        if queue.params.data_clock > 0 {
            let until = cycle + queue.bursts_end[direction] + queue.params.data_clock;
            queue.clock_until = queue.clock_until.max(until);
        }
        let (bank, row) = (entry.bank as usize, entry.row);
        if command == READ {
            queue.others_read[queue.stack_of[bank]] = cycle + queue.params.between_stacks;
        }
        let (more, closes) = (
            queue.has_more(entry),
            closed && !queue.wants(entry.bank, row),
        );
        self.transactions[bank % MOST] = Transaction {
            step: entry.step,
            place: entry.place,
            row,
            bank,
            direction,
            hit: !entry.opened,
        };
        if more {
            let done = self.banks.access(bank, command, cycle, false);
            let kind = column_kind(command, row, false);
            self.note(bank, cycle, kind, entry.place, done);
            return None;
        }
        Some(self.access(bank, command, cycle, closes, program))
    }
}
