//! The jobs of modules beside the cores: the host starts a module and polls now and then whether it has finished.

use sardonyx::config::Machine;
use sardonyx::units::Time;

#[derive(Clone, Debug)]
pub struct ModuleCosts {
    pub name: &'static str,
    /// The number of modules, each of which compares one candidate page at a time.
    pub count: usize,
    pub poll: Time,
    /// Instructions of a call of a module's functions, without those for an entry.
    pub call: u32,
    pub entry: u32,
    /// The time from the bell to the first request.
    pub start: Time,
    /// The time through the on-chip network, of a request, and of an answer from another controller.
    pub network: Time,
    /// The time to compare a pair of lines after both have come.
    pub compare: Time,
    /// The time that a line for a key takes after it has come.
    pub key_line: Time,
    /// The pairs of lines, or lines for a key, that it asks for at once.
    pub ahead: u8,
    /// Set if the module keeps the lines of the candidate that it has read.
    pub keeps: bool,
    pub outside: bool,
    /// Set if it makes single comparisons and checksums for the thread, and not those of a Scan Table.
    pub offloads: bool,
}

pub fn instructions(machine: &Machine, ns: u64) -> u32 {
    let width = machine.core.width.max(1);
    (ns * 1_000 * width / machine.core.clock.ps()) as u32
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleJob {
    /// Pairs of frames to compare, with the number of lines until they differ or end.
    pub pairs: Vec<((u64, u64), u8)>,
    pub keys: Vec<u64>,
}

#[derive(Debug)]
pub struct Jobs {
    pub costs: ModuleCosts,
    given: Vec<Option<ModuleJob>>,
    finished: Vec<Option<Time>>,
}

impl Jobs {
    pub fn new(costs: ModuleCosts) -> Jobs {
        Jobs {
            given: vec![None; costs.count],
            finished: vec![None; costs.count],
            costs,
        }
    }

    pub fn module_of(&self, lane: usize) -> usize {
        lane % self.given.len()
    }

    pub fn give(&mut self, module: usize, job: ModuleJob) {
        (self.given[module], self.finished[module]) = (Some(job), None);
    }

    pub fn take(&mut self, module: usize) -> ModuleJob {
        self.given[module].take().expect("a bell for a job")
    }

    pub fn finish(&mut self, module: usize, at: Time) {
        self.finished[module] = Some(at);
    }

    pub fn is_done(&self, module: usize, now: Time) -> bool {
        self.finished[module].is_some_and(|at| at <= now)
    }
}
