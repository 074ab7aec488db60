//! Array writes that a read interrupts (Qureshi et al., HPCA 2010): which are under way in a channel's banks, where one
//! may stop, and what is left of it. The channel sends the commands.
//!
//! A bank keeps the line and the place of its write until the write is done, so resuming takes no data and no open row.

use super::channel::Transaction;
use super::constraints::MOST;
use crate::medium::pausing::PausingParams;
use crate::plan::command::CommandKind;

/// Counts of interrupted array writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interruptions {
    /// Writes that paused, each time counted.
    pub paused: u64,
    /// Writes that were cancelled, each time counted.
    pub cancelled: u64,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Under {
    pub access: Transaction,
    pub begins: u64,
    /// The cycle in which the array has the data, unless the write is interrupted.
    pub ends: u64,
    pub whole: u64,
    pub left: u64,
    pub times: u64,
    /// The cycle in which the access would be done without its last interruption.
    pub done: u64,
    /// The cycles at which the bank's commands might go without this write, and those before which it holds them back.
    pub before: [u64; 4],
    pub held: [u64; 3],
    pub closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stop {
    pub kind: CommandKind,
    pub at: u64,
    /// Cycles by which the bank's array is free earlier.
    pub cut: u64,
    pub lost: f64,
    left: u64,
}

pub(super) struct Pausing {
    params: PausingParams,
    banks: [Under; MOST],
    /// Banks whose array write is under way, and banks whose write is interrupted.
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

    pub fn writing(&self) -> u64 {
        self.writing
    }

    pub fn interrupted(&self) -> u64 {
        self.interrupted
    }

    pub fn of(&self, bank: usize) -> &Under {
        &self.banks[bank % MOST]
    }

    pub fn begin(&mut self, bank: usize, begins: u64, cycles: u64, under: Under) {
        self.writing |= 1 << bank;
        self.banks[bank % MOST] = Under {
            begins,
            ends: begins + cycles,
            whole: cycles,
            ..under
        };
    }

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

    /// The stop that the bank's write makes if it is told to at `cycle`; `None` if it should rather end, or may not be
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
        // A write can pause only at the end of an iteration.
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

    /// The cycle after `cycle` from which on the bank's write may be told to stop; `None` if it never may.
    pub fn next_stop(&self, bank: usize, cycle: u64) -> Option<u64> {
        let at = self.of(bank).begins.max(cycle + 1);
        self.stop(bank, at).map(|_| at)
    }

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

    /// Resumes the bank's write at `cycle`. The caller fills in how the write holds the bank back and when its access
    /// is done.
    pub fn resume(&mut self, bank: usize, cycle: u64) -> &mut Under {
        self.interrupted &= !(1 << bank);
        self.writing |= 1 << bank;
        let under = &mut self.banks[bank % MOST];
        (under.begins, under.ends) = (cycle, cycle + under.left);
        under
    }
}
