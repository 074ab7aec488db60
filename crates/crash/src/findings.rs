//! The findings of an exploration: how much it has checked, and what was wrong.

use crate::secrecy::widths::Widths;
use crate::violation::Tally;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    pub cuts: u64,
    /// Cuts that left bytes which no earlier cut left: states.
    pub states: u64,
    pub full: u64,
    /// States from which a hardware log put lines back.
    pub undone: u64,
    /// States from which an integrity's recovery wrote nodes that memory had otherwise.
    pub restored: u64,
    /// States in which a recovery found no place for a line that it puts back.
    pub no_room: u64,
    pub recovery_cuts: u64,
    /// Times that requests of the run were handled with other contents and written to the same places.
    pub masked: u64,
    /// Lives that followed one another, the first not counted, at most.
    pub later_lives: u64,
    /// Later lives in all, and those at whose end everything was checked.
    pub lived: u64,
    pub lived_full: u64,
    /// Transactions that a core has committed in a later life, at most.
    pub later_run: u64,
    /// Lines near zero that were written, and unwritten lines that were read, without a run.
    pub near_zero: u64,
    pub unwritten: u64,
    /// Writes of endurance lives.
    pub endured: u64,
}

impl Covered {
    pub fn add(&mut self, other: Covered) {
        self.cuts += other.cuts;
        self.states += other.states;
        self.full += other.full;
        self.undone += other.undone;
        self.restored += other.restored;
        self.no_room += other.no_room;
        self.recovery_cuts += other.recovery_cuts;
        self.masked += other.masked;
        self.near_zero += other.near_zero;
        self.unwritten += other.unwritten;
        self.endured += other.endured;
        self.later_run = self.later_run.max(other.later_run);
        self.lived += other.lived;
        self.lived_full += other.lived_full;
        self.later_lives = self.later_lives.max(other.later_lives);
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExploredCuts {
    pub covered: Covered,
    pub tally: Tally,
    pub widths: Widths,
}
