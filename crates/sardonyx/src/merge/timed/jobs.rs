//! What modules beside the cores are to do: the host rings a module and looks now and then whether it is done.

use crate::config::Machine;
use crate::units::Time;

/// Modules that compare pages for the thread.
#[derive(Clone, Debug)]
pub struct ModuleCosts {
    /// What they are called.
    pub name: &'static str,
    /// How many; each compares a candidate page.
    pub count: usize,
    /// Between two looks whether one is done.
    pub poll: Time,
    /// Instructions of a call of a module's functions, and for an entry beside it.
    pub call: u32,
    /// Those for an entry.
    pub entry: u32,
    /// A request's way through the on-chip network, and an answer's from another controller.
    pub network: Time,
    /// What a pair of lines takes when both are there.
    pub compare: Time,
    /// A module keeps the candidate's lines that it has read.
    pub keeps: bool,
    /// They are at the on-chip network and in no memory controller.
    pub outside: bool,
}

/// Instructions that a core of `machine` executes in so many nanoseconds.
pub fn instructions(machine: &Machine, ns: u64) -> u32 {
    let width = machine.core.width.max(1);
    (ns * 1_000 * width / machine.core.clock.ps()) as u32
}

/// What a filling of the table has a module do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Frames to compare, and how many lines until they differ or end.
    pub pairs: Vec<((u64, u64), u8)>,
    /// Lines for the key alone.
    pub keys: Vec<u64>,
}

/// The modules' jobs.
#[derive(Debug)]
pub struct Jobs {
    /// What the modules cost.
    pub costs: ModuleCosts,
    /// What each is to do.
    given: Vec<Option<Job>>,
    /// When each was done with it.
    finished: Vec<Option<Time>>,
}

impl Jobs {
    /// None yet.
    pub fn new(costs: ModuleCosts) -> Jobs {
        Jobs {
            given: vec![None; costs.count],
            finished: vec![None; costs.count],
            costs,
        }
    }

    /// The module that works for a lane of the thread.
    pub fn module_of(&self, lane: usize) -> usize {
        lane % self.given.len()
    }

    /// Gives a module something to do.
    pub fn give(&mut self, module: usize, job: Job) {
        (self.given[module], self.finished[module]) = (Some(job), None);
    }

    /// The module's bell has rung: what it is to do.
    pub fn take(&mut self, module: usize) -> Job {
        self.given[module].take().expect("a bell for a job")
    }

    /// The module was done then.
    pub fn finish(&mut self, module: usize, at: Time) {
        self.finished[module] = Some(at);
    }

    /// Whether the module is done with what it was given.
    pub fn is_done(&self, module: usize, now: Time) -> bool {
        self.finished[module].is_some_and(|at| at <= now)
    }
}
