//! What acts on a machine's memory, on the one clock of its [`super::System`]: cores, and modules beside the memory
//! controller that read and write on their own.

use super::{Port, RunError};
use crate::line::Virtual;
use crate::units::Time;

/// Something that acts on the machine's memory.
pub trait Agent: Send {
    /// What reports call it: the trace or the program that it runs.
    fn name(&self) -> &str;

    /// When it can go on; `None` while that hangs on an answer, and at its end.
    fn next_turn(&self) -> Option<Turn>;

    /// Acts, for as long as its acts come before `limit`, at which somebody else goes on. The first act may
    /// have waited for memory.
    ///
    /// # Errors
    /// Its trace is broken further on, or does not fit in memory.
    fn run(&mut self, port: &mut Port, limit: Time) -> Result<(), RunError>;

    /// Something that it has asked for is there.
    fn answered(&mut self, answer: AgentAnswer);

    /// Whether everything was done and answered.
    fn finished(&self) -> bool;

    /// What it has done so far, as far as answers tell.
    fn figures(&self) -> CoreFigures;

    /// What it has done last, and the line of that, as its trace or program numbers them.
    fn last(&self) -> (String, Option<Virtual>) {
        ("a request".to_owned(), None)
    }

    /// The agent as one that can do without a clock for a while, if it can.
    fn passing(&mut self) -> Option<&mut dyn Passing> {
        None
    }
}

/// An agent that can skip what comes next without a clock, while nothing is in flight.
pub trait Passing {
    /// Goes over its next accesses, `most` of them at most: memory changes as if they had been, and no time
    /// passes. How many there were.
    ///
    /// # Errors
    /// Its trace is broken further on, or does not fit in memory.
    fn pass(&mut self, port: &mut Port, most: u64) -> Result<u64, RunError>;

    /// Instructions before its next access, those gone over included; `None` if its trace counts cycles.
    fn gone(&self) -> Option<u64>;

    /// Goes on in time, from `now` on.
    fn resume(&mut self, now: Time);
}

/// When an agent can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The time of its next act.
    pub time: Time,
    /// Whether it must wait until memory takes a request, if that is later.
    pub needs_memory: bool,
    /// Of agents that act at the same time, the one with the least precedence goes first, then the one with the lower
    /// number.
    pub precedence: Time,
}

/// What an agent is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentAnswer {
    /// The line that `.0` waited for has come, at `.1`.
    Line(Waiter, Time),
    /// A write, or a write-back of counters, is in the persistence domain since then.
    Accepted(Time),
    /// A core has rung its doorbell, then.
    Rung(Time),
}

/// The agent that waits for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The agent.
    pub core: usize,
    /// The number of its load, if it is a load.
    pub load: Option<u64>,
    /// Whether it caused the miss, and so holds an MSHR.
    pub first: bool,
    /// When it asked, in the agent's own ticks.
    pub since: u64,
}

/// What a core has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreFigures {
    /// Instructions before its next operation, at the end all instructions; `None` if its trace counts cycles.
    pub instructions: Option<u64>,
    /// When everything before its next operation had retired.
    pub retired: Time,
    /// Fences and flushes of its trace that carry no traffic below the caches.
    pub skipped: u64,
    /// What it has executed, if it executes loads and stores with simulated caches.
    pub executed: Option<Counts>,
}

/// What a core that executes loads and stores has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Loads, stores, flushes, counter write-backs and fences.
    pub operations: u64,
    /// Loads and stores.
    pub accesses: u64,
    /// Of these, those that went to memory.
    pub misses: u64,
    /// Accesses whose time to their line in L1 is known: all but stores to a line that is on its way.
    pub timed: u64,
    /// The sum of these times.
    pub access_latency: Time,
    /// The time for which fences delayed fetch.
    pub fence_wait: Time,
    /// The time for which loads delayed fetch: for their values, for room in the window, for an MSHR.
    pub load_wait: Time,
    /// The time for which memory delayed fetch because it took no request.
    pub memory_wait: Time,
}
