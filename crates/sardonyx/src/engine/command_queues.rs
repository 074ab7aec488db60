//! Queues of commands, as DRAMsim3 has them. Accesses move, one a cycle, from the queues of their
//! channel to that of their bank or rank: reads, or writes while a drain lasts. Queues take turns on the
//! command bus, and the first access of a queue goes whose next command may. So what the data bus is
//! turned for goes on until there is no more of it.

use super::channel::{Acted, Channel, Issued, NEVER, ProgrammingTime, Slots, Transaction, column};
use super::constraints::{ACT, Banks, MOST, PRE, READ, WRITE};
use super::queue::QueueEntry;
use crate::medium::params::{CommandsOf, MediumParams, PagePolicy, Queues, Scheduler};
use crate::plan::command::CommandKind;
use crate::plan::steps::Step;

/// A command that may go, and the number of its access in its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub queue: usize,
    pub at: usize,
    pub command: usize,
}

pub(crate) struct CommandQueues {
    /// Reads and writes that hold slots of their channel's queues, each in order of arrival.
    waiting: [Vec<QueueEntry>; 2],
    queues: Vec<Vec<QueueEntry>>,
    /// The queues that are not empty.
    occupied: u64,
    entries: usize,
    /// The queue of each bank. Queues take turns in the order of ranks, of bank groups, and of the banks of these.
    queue_of: Vec<usize>,
    /// The queue whose turn it is.
    turn: usize,
    /// Accesses to an open row after which the oldest access of another row closes it.
    most_hits: u32,
    /// Writes that are still to move in this drain.
    drains: usize,
    /// Whether a command of a row and one of a column may go in a cycle.
    row_bus: bool,
}

impl CommandQueues {
    /// The queues of a channel, if the medium has them.
    pub fn of(params: &MediumParams) -> Option<CommandQueues> {
        let (ranks, banks) = (params.geometry.ranks, params.geometry.banks);
        let groups = params.groups.count;
        let queue_of = |bank: u64| match params.command_queues.of {
            CommandsOf::Bank => {
                let (rank, within) = (bank / banks, bank % banks);
                rank * banks + within % groups * (banks / groups) + within / groups
            }
            CommandsOf::Rank => bank / banks,
        };
        let queue_of: Vec<_> = (0..ranks * banks)
            .map(|bank| queue_of(bank) as usize)
            .collect();
        let queues = queue_of.iter().max().map_or(0, |last| last + 1);
        (params.command_queues.entries > 0).then(|| CommandQueues {
            waiting: [Vec::new(), Vec::new()],
            queues: vec![Vec::new(); queues],
            occupied: 0,
            entries: params.command_queues.entries,
            queue_of,
            turn: 0,
            most_hits: match params.queues.scheduler {
                Scheduler::FrFcfsCap { starvation } => starvation,
                _ => u32::MAX,
            },
            drains: 0,
            row_bus: params.row_bus,
        })
    }

    pub fn insert(&mut self, bank: usize, entry: QueueEntry) {
        let waiting = &mut self.waiting[usize::from(entry.slots != Slots::Read)];
        // A write that had to wait for its line may become visible after younger ones.
        let at = waiting.partition_point(|before| before.sequence < entry.sequence);
        let bank = bank as u8;
        waiting.insert(at, QueueEntry { bank, ..entry });
    }

    /// Whether an access is in a queue of commands.
    pub fn has_moved(&self) -> bool {
        self.occupied != 0
    }

    /// Ready writes that wait in the channel's queue.
    pub fn writes(&self) -> usize {
        self.waiting[1].len()
    }

    pub fn drains(&self) -> bool {
        self.drains > 0
    }

    /// Moves the oldest access whose queue has room, a write in a drain and a read otherwise, and returns it with the
    /// channel's queue that it leaves. A drain begins when the queue of writes is `full`, or when no command is queued and
    /// there are more than a few writes or they are `forced`; it takes all that are ready then.
    pub fn move_one(&mut self, full: bool, forced: bool, of: &Queues) -> Option<(Step, Slots)> {
        let writes = self.writes();
        self.drains = self.drains.min(writes);
        if self.drains == 0 && writes > 0 {
            let some = forced || of.idle_writes && writes > of.low_watermark;
            if full || some && !self.has_moved() {
                self.drains = writes;
            }
        }
        let direction = usize::from(self.drains > 0);
        let queue = |entry: &QueueEntry| self.queue_of[entry.bank as usize];
        let room = |entry: &QueueEntry| self.queues[queue(entry)].len() < self.entries;
        let at = self.waiting[direction].iter().position(room)?;
        self.drains -= direction;
        let entry = self.waiting[direction].remove(at);
        let queue = self.queue_of[entry.bank as usize];
        self.queues[queue].push(entry);
        self.occupied |= 1 << queue;
        Some((entry.step, entry.slots))
    }

    /// The commands that the accesses of a queue need next, in the order of these. A bank's oldest alone closes its open
    /// row: when nobody wants it any more, or after the most accesses.
    fn wanted(&self, banks: &Banks, queue: usize) -> impl Iterator<Item = Ready> {
        let entries = &self.queues[queue][..];
        let of = move |(at, entry): (usize, &QueueEntry)| {
            let bank = entry.bank as usize;
            let oldest = || entries[..at].iter().all(|before| before.bank != entry.bank);
            let command = match banks.open_row(bank) {
                Some(row) if row == entry.row => match entry.slots {
                    Slots::Read => READ,
                    _ => WRITE,
                },
                None if oldest() => ACT,
                Some(row) if oldest() => {
                    let wants = |other: &QueueEntry| other.bank == entry.bank && other.row == row;
                    let closes = banks.hits(bank) >= self.most_hits || !entries.iter().any(wants);
                    closes.then_some(PRE)?
                }
                _ => return None,
            };
            Some(Ready { queue, at, command })
        };
        let refreshing = banks.refreshing();
        let quiet = move |next: &Ready| refreshing >> entries[next.at].bank & 1 == 0;
        entries.iter().enumerate().filter_map(of).filter(quiet)
    }

    pub fn entry(&self, next: Ready) -> &QueueEntry {
        &self.queues[next.queue][next.at]
    }

    /// The command that goes at `cycle`, of the first queue from the one on whose turn it is that has one; otherwise
    /// the earliest cycle at which one may go.
    pub fn first_ready(&mut self, banks: &Banks, cycle: u64) -> Result<Ready, u64> {
        let mut earliest = NEVER;
        let before = (1 << self.turn) - 1;
        for mut queues in [self.occupied & !before, self.occupied & before] {
            while queues != 0 {
                let queue = queues.trailing_zeros() as usize;
                queues &= queues - 1;
                let found = self.wanted(banks, queue).find(|next| {
                    let ready = banks.ready(self.entry(*next).bank as usize, next.command);
                    earliest = earliest.min(ready);
                    ready <= cycle
                });
                if let Some(next) = found {
                    self.turn = (queue + 1) % self.queues.len();
                    return Ok(next);
                }
            }
        }
        Err(earliest)
    }

    pub fn remove(&mut self, next: Ready) {
        self.queues[next.queue].remove(next.at);
        if self.queues[next.queue].is_empty() {
            self.occupied &= !(1 << next.queue);
        }
    }
}

impl Channel {
    /// Acts where banks have queues of their own: at most one access moves to its bank's, and at most one command goes.
    pub(super) fn act_in_command_queues(&mut self, mut program: Option<ProgrammingTime>) -> Acted {
        let cycle = self.next_act;
        self.refresh(cycle);
        let full = self.used[Slots::Write as usize] >= self.queues.high_watermark
            || self.has_counter_queue() && self.counters >= self.queues.counter_writes;
        let forced = self.forced_drain || self.input_ended;
        let queues = self.command_queues.as_mut().expect("there are some");
        let moved = queues.move_one(full, forced, &self.queues);
        let draining = std::mem::replace(&mut self.draining, queues.drains());
        self.forced_drain &= queues.writes() > 0;
        let mut outcome = Acted {
            cycle,
            selected: moved,
            drained: draining && !self.draining && !self.queues.refill_in_drain,
            ..Acted::default()
        };
        if let Some((_, slots)) = moved {
            self.used[slots as usize] -= 1;
            self.counters -= usize::from(slots == Slots::CounterWrite);
        }
        let next = match self.banks.bus_is_free(cycle) {
            true => queues.first_ready(&self.banks, cycle),
            false => Err(cycle + 1),
        };
        self.next_act = match next {
            Ok(next) => {
                let first = (queues.entry(next).bank, next.command);
                outcome.issued = self.send(cycle, next, &mut program);
                let second = self.send_second(cycle, first, &mut program);
                outcome.issued = second.or(outcome.issued);
                cycle + 1
            }
            Err(_) if moved.is_some() => cycle + 1,
            Err(NEVER) if !queues.has_moved() => NEVER,
            Err(ready) => ready.min(self.banks.next_refresh(0)).max(cycle + 1),
        };
        outcome
    }

    /// Sends the next command in the cycle of `first` as well, if it is for the other bus (one of rows beside one of
    /// columns) and for another bank. If it is not, its turn is over, as in DRAMsim3.
    fn send_second(
        &mut self,
        cycle: u64,
        (bank, first): (u8, usize),
        program: &mut Option<ProgrammingTime>,
    ) -> Option<Issued> {
        let is_column = |command| [READ, WRITE].contains(&command);
        let queues = self
            .command_queues
            .as_mut()
            .filter(|queues| queues.row_bus)?;
        let second = queues.first_ready(&self.banks, cycle).ok()?;
        if is_column(first) == is_column(second.command) || queues.entry(second).bank == bank {
            return None;
        }
        self.send(cycle, second, program)
    }

    /// Sends the command of a bank's queue: it closes or opens the bank's row, or it is an access, which leaves.
    fn send(
        &mut self,
        cycle: u64,
        next: Ready,
        program: &mut Option<ProgrammingTime>,
    ) -> Option<Issued> {
        let queues = self.command_queues.as_mut().expect("there are some");
        let (entry, command) = (*queues.entry(next), next.command);
        let bank = entry.bank as usize;
        match command {
            PRE => {
                self.banks.precharge(bank, cycle);
                self.banks.close(bank);
                self.note(bank, cycle, CommandKind::Precharge, 0, 0);
            }
            ACT => {
                self.banks.aim(bank, entry.row);
                let column = column(usize::from(entry.slots != Slots::Read));
                self.banks.activate(bank, cycle, column);
                self.note(bank, cycle, CommandKind::Activate { row: entry.row }, 0, 0);
            }
            _ => {
                queues.remove(next);
                self.transactions[bank % MOST] = Transaction {
                    step: entry.step,
                    place: entry.place,
                    row: entry.row,
                    bank,
                    direction: usize::from(entry.slots != Slots::Read),
                    hit: self.banks.hits(bank) > 0,
                };
                self.banks.aim(bank, entry.row);
                let closes = self.queues.page == PagePolicy::Closed;
                return Some(self.access(bank, command, cycle, closes, program));
            }
        }
        None
    }
}
