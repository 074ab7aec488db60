//! What an exploration has found: how much it has looked at, and what was wrong.

use super::violation::Tally;

/// How much has been looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// Cuts: positions.
    pub cuts: u64,
    /// Of them, with bytes that no earlier cut left.
    pub states: u64,
    /// Of those, looked at in full.
    pub full: u64,
    /// Of the states, those from which a hardware log put lines back.
    pub undone: u64,
    /// Of those, whose recovery found no place for a line that it puts back.
    pub no_room: u64,
    /// Cuts within the lives that follow: of recoveries, and of transactions after them.
    pub recovery_cuts: u64,
    /// Times that the run's requests were handled with other contents, and written to the same places.
    pub masked: u64,
    /// Lives after the first, one after the other, at most.
    pub later_lives: u64,
}

impl Covered {
    /// Adds what `other` has looked at.
    pub fn add(&mut self, other: Covered) {
        self.cuts += other.cuts;
        self.states += other.states;
        self.full += other.full;
        self.undone += other.undone;
        self.no_room += other.no_room;
        self.recovery_cuts += other.recovery_cuts;
        self.masked += other.masked;
        self.later_lives = self.later_lives.max(other.later_lives);
    }
}

/// What exploring has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// What has been looked at.
    pub covered: Covered,
    /// Violations by kind, with the first of each.
    pub tally: Tally,
}
