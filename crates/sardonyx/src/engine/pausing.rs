//! Array writes that a read interrupts (Qureshi et al., HPCA 2010): which are under way in a channel's banks, where one
//! may stop, and what is left of it. The channel sends the commands.
//!
//! A bank keeps the line and the place of its write until the write is done, so resuming takes no data and no open row.

use super::channel::Transaction;
use super::constraints::MOST;
use crate::medium::pausing::PausingParams;
use crate::plan::command::CommandKind;

/// How often array writes were interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interruptions {
    /// Times that a write paused.
    pub paused: u64,
    /// Times that a write was cancelled.
    pub cancelled: u64,
}

/// A bank's array write.
#[derive(Clone, Copy, Default)]
pub(super) struct Under {
    pub access: Transaction,
    /// The cycle in which it begins, or goes on.
    pub begins: u64,
    /// The cycle in which the array has it, unless it is interrupted.
    pub ends: u64,
    /// Cycles that it takes in all.
    pub whole: u64,
    /// Cycles that are left, while it is interrupted.
    pub left: u64,
    /// Interruptions until now.
    pub times: u64,
    /// The cycle in which the access would be done without the last interruption.
    pub done: u64,
    /// When the bank's commands might go without this write, and how it holds them back.
    pub before: [u64; 4],
    pub held: [u64; 3],
    /// The bank closes itself when it can.
    pub closed: bool,
}

/// Where a write stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stop {
    /// Pause or cancel.
    pub kind: CommandKind,
    /// The cycle from which on the bank is free.
    pub at: u64,
    /// Cycles by which its array is free earlier.
    pub cut: u64,
    /// The share of the write that is lost.
    pub lost: f64,
    left: u64,
}

pub(super) struct Pausing {
    params: PausingParams,
    banks: [Under; MOST],
    /// Banks whose array write is under way, and those whose write is interrupted.
    writing: u64,
    interrupted: u64,
    pub count: Interruptions,
}

impl Pausing {
    pub fn new(params: PausingParams) -> Pausing {
        Pausing {
            params,
            banks: [Under::default(); MOST],
            writing: 0,
            interrupted: 0,
            count: Interruptions::default(),
        }
    }

    /// Banks whose array write is under way.
    pub fn writing(&self) -> u64 {
        self.writing
    }

    /// Banks whose write is interrupted.
    pub fn interrupted(&self) -> u64 {
        self.interrupted
    }

    pub fn of(&self, bank: usize) -> &Under {
        &self.banks[bank % MOST]
    }

    /// Begins the array write of a bank at cycle `begins`, for `cycles`.
    pub fn begin(&mut self, bank: usize, begins: u64, cycles: u64, under: Under) {
        self.writing |= 1 << bank;
        self.banks[bank % MOST] = Under {
            begins,
            ends: begins + cycles,
            whole: cycles,
            ..under
        };
    }

    /// Forgets the writes that have ended by `cycle`.
    pub fn expire(&mut self, cycle: u64) {
        let mut banks = self.writing;
        while banks != 0 {
            let bank = banks.trailing_zeros() as usize;
            banks &= banks - 1;
            if self.of(bank).ends <= cycle {
                self.writing &= !(1 << bank);
            }
        }
    }

    /// Where the bank's write stops if it is told to at `cycle`; `None` if it should rather end, or may not be
    /// interrupted.
    pub fn stop(&self, bank: usize, cycle: u64) -> Option<Stop> {
        let under = self.of(bank);
        if cycle < under.begins || cycle >= under.ends || under.times >= self.params.times {
            return None;
        }
        let rest = under.ends - cycle;
        let progress = under.whole - rest;
        if progress * 100 < self.params.threshold * under.whole {
            return Some(Stop {
                kind: CommandKind::Cancel,
                at: cycle,
                cut: rest,
                lost: progress as f64 / under.whole as f64,
                left: under.whole,
            });
        }
        let iteration = under.whole.div_ceil(self.params.iterations);
        let stops = progress.next_multiple_of(iteration);
        (self.params.pauses && stops < under.whole).then(|| Stop {
            kind: CommandKind::Pause,
            at: cycle + (stops - progress),
            cut: under.whole - stops,
            lost: 0.0,
            left: under.whole - stops,
        })
    }

    /// The cycle after `cycle` from which on the bank's write may be told to stop; `None` if never.
    pub fn next_stop(&self, bank: usize, cycle: u64) -> Option<u64> {
        let at = self.of(bank).begins.max(cycle + 1);
        self.stop(bank, at).map(|_| at)
    }

    /// Whether the bank's write may not be interrupted again.
    pub fn is_last(&self, bank: usize) -> bool {
        self.of(bank).times >= self.params.times
    }

    pub fn interrupt(&mut self, bank: usize, stop: &Stop) {
        self.writing &= !(1 << bank);
        self.interrupted |= 1 << bank;
        let under = &mut self.banks[bank % MOST];
        under.times += 1;
        under.left = stop.left;
        match stop.kind {
            CommandKind::Cancel => self.count.cancelled += 1,
            _ => self.count.paused += 1,
        }
    }

    /// Resumes the bank's write at `cycle`; returns how that holds the bank back, and when the write is done.
    pub fn resume(&mut self, bank: usize, cycle: u64) -> &mut Under {
        self.interrupted &= !(1 << bank);
        self.writing |= 1 << bank;
        let under = &mut self.banks[bank % MOST];
        (under.begins, under.ends) = (cycle, cycle + under.left);
        under
    }
}
