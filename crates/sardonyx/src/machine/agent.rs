//! What acts on a machine's memory, on the one clock of its [`super::System`]: cores, and modules beside the memory
//! controller that read and write on their own.

use super::{Port, RunError};
use crate::line::Virtual;
use crate::units::Time;

/// A source of accesses to the machine's memory.
pub trait Agent: Send {
    /// The agent's name in reports: the trace or the program that it runs.
    fn name(&self) -> &str;

    /// The time of the agent's next act; `None` while that depends on an answer, and at the end.
    fn next_turn(&self) -> Option<Turn>;

    /// Lets the agent act for as long as its acts come before `limit`, at which another agent's turn comes. The first
    /// act may have waited for memory.
    ///
    /// # Errors
    /// Its trace is broken further on, or does not fit in memory.
    fn run(&mut self, port: &mut Port, limit: Time) -> Result<(), RunError>;

    /// Tells the agent that something it has asked for is there.
    fn answered(&mut self, answer: AgentAnswer);

    /// Whether everything was done and answered.
    fn finished(&self) -> bool;

    /// The agent's figures so far, as far as answers tell.
    fn figures(&self) -> CoreFigures;

    /// The agent's last act, and the line of that, as its trace or program numbers them.
    fn last(&self) -> (String, Option<Virtual>) {
        ("a request".to_owned(), None)
    }

    /// The agent as one that can do without a clock for a while, if it can.
    fn passing(&mut self) -> Option<&mut dyn Passing> {
        None
    }
}

/// An agent that can skip its next accesses without a clock, while nothing is in flight.
pub trait Passing {
    /// Skips the next accesses, at most `most`: memory changes as if they had been made, and no time passes. Returns
    /// how many were skipped.
    ///
    /// # Errors
    /// Its trace is broken further on, or does not fit in memory.
    fn pass(&mut self, port: &mut Port, most: u64) -> Result<u64, RunError>;

    /// Instructions before the next access, including those that were skipped; `None` if the trace counts cycles.
    fn gone(&self) -> Option<u64>;

    /// Continues in time, from `now` on.
    fn resume(&mut self, now: Time);
}

/// The next turn of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The time of its next act.
    pub time: Time,
    /// Whether the act must wait until memory takes a request, if that is later.
    pub needs_memory: bool,
    /// Of agents that act at the same time the one with the least precedence goes first, then the one with the lower
    /// number.
    pub precedence: Time,
}

/// An answer to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentAnswer {
    /// The line that `.0` waited for has come, at `.1`.
    Line(Waiter, Time),
    /// A write, or a write-back of counters, has been in the persistence domain since this time.
    Accepted(Time),
    /// A core has rung the agent's doorbell at this time: a module's, or that of a core that waits for it.
    Rung(Time),
}

/// The agent that waits for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The agent's number.
    pub core: usize,
    /// The number of its load, if it is a load.
    pub load: Option<u64>,
    /// Whether the agent caused the miss, and so holds an MSHR.
    pub first: bool,
    /// The tick of the agent at which it asked.
    pub since: u64,
}

/// The work of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreFigures {
    /// Instructions before the core's next operation, at the end all of them; `None` if its trace counts cycles.
    pub instructions: Option<u64>,
    /// When everything before its next operation had retired.
    pub retired: Time,
    /// Fences and flushes of its trace that carry no traffic below the caches.
    pub skipped: u64,
    /// Counts of its operations, if it executes loads and stores with simulated caches.
    pub executed: Option<Counts>,
}

/// Counts of a core that executes loads and stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Loads, stores, flushes, counter write-backs and fences.
    pub operations: u64,
    /// Loads and stores.
    pub accesses: u64,
    /// Accesses that went to memory.
    pub misses: u64,
    /// Accesses whose time to their line in L1 is known: all but stores to a line that is on its way.
    pub timed: u64,
    /// The sum of the times of these accesses.
    pub access_latency: Time,
    /// The time for which fences delayed fetch.
    pub fence_wait: Time,
    /// The time for which loads delayed fetch: for their values, for room in the window, for an MSHR.
    pub load_wait: Time,
    /// The time for which memory delayed fetch because it took no request.
    pub memory_wait: Time,
}
