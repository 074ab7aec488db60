//! What a player stands on, told in its terms.

use super::{Hit, Mark, WriteBack};
use crate::line::Logical;
use crate::units::Time;

/// What a core stands on: the caches, and memory below them.
pub trait Below {
    /// The caches of all cores.
    fn caches(&mut self) -> &mut super::Caches;

    /// Whether memory takes a request now.
    fn takes(&self) -> bool;

    /// The present: never after the operation that asks, unless that has waited for memory.
    fn now(&self) -> Time;

    /// Reads a line that missed into the caches; `waiter` will be told.
    fn fetch(&mut self, waiter: Waiter, line: Logical, arrival: Time) -> Hit;

    /// `waiter` will be told when the read that brings `hit` is answered.
    fn join(&mut self, waiter: Waiter, hit: Hit);

    /// Writes a line; `core` will be told when it is accepted.
    fn write(&mut self, core: usize, written: &WriteBack, arrival: Time);

    /// Writes of `line` that are not accepted yet, of which `core` will now be told when they are.
    fn join_writes(&mut self, core: usize, line: Logical) -> usize;

    /// When memory next does something.
    fn next_event(&self) -> Time;

    /// An operation on `line` is some way off: what the host needs to look it up is fetched into the
    /// host's caches, without waiting for it. No effect on results.
    fn touch_ahead(&self, line: Logical);

    /// The same, closer, for what the host needs if the line has to come from memory.
    fn touch_miss_ahead(&mut self, line: Logical);

    /// Writes the counters of `line` back; `core` will be told when they are accepted.
    fn write_counters(&mut self, core: usize, line: Logical, arrival: Time);

    /// A fence of `core` has passed.
    fn fenced(&mut self, _core: usize, _at: Time) {}

    /// A transaction of `core` is at `mark`.
    fn mark(&mut self, _core: usize, _mark: Mark, _at: Time) {}
}

/// Who waits for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The core.
    pub core: usize,
    /// Which of its loads, if a load.
    pub load: Option<u64>,
    /// It brought the miss about, and so holds an MSHR.
    pub first: bool,
}
