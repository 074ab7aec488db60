//! The options of an exploration: where the power is cut, what survives a cut, and how thoroughly each cut is checked.

use crate::attacker::report::Attacks;
use crate::history::{History, HistoryError, Result};
use crate::platform::{Platform, Tear};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cuts {
    All,
    /// This many positions, drawn from the seed.
    Sample(u64),
    One(u64),
}

impl Cuts {
    /// Checks that `history` has these cuts.
    ///
    /// # Errors
    /// A position beyond its last, or more cuts to draw than it has positions.
    pub fn check(self, history: &History) -> Result<()> {
        let there = history.positions();
        let last = there - 1;
        match self {
            Cuts::One(position) if position > last => Err(HistoryError::Cuts(format!(
                "cut {position}: the run has positions 0 to {last}; give one of them"
            ))),
            Cuts::Sample(count) if count > there => Err(HistoryError::Cuts(format!(
                "{count} cuts: the run has {there} positions; ask for fewer, or for all"
            ))),
            _ => Ok(()),
        }
    }

    pub(crate) fn at_most(self, positions: u64) -> Cuts {
        match self {
            Cuts::Sample(count) => Cuts::Sample(count.min(positions)),
            Cuts::All | Cuts::One(_) => self,
        }
    }

    pub fn count(self, history: &History) -> u64 {
        match self {
            Cuts::All => history.positions(),
            Cuts::Sample(count) => count,
            Cuts::One(_) => 1,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub platform: Platform,
    pub cuts: Cuts,
    /// One state in this many is followed by a later life, which is cut at every position; 0: none.
    pub recovery_cuts: u64,
    /// One position in this many is checked in full, and the others by what the cut has changed; 1: every position.
    pub full_one_in: u64,
    /// The part of a line that a cut leaves whole while the line is being accepted.
    pub tear: Tear,
    pub attacks: Option<Attacks>,
    /// The number of threads; 0 stands for one on each processor.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            platform: Platform::Adr,
            cuts: Cuts::All,
            recovery_cuts: 256,
            full_one_in: 509,
            tear: Tear::Lines,
            attacks: None,
            threads: 0,
        }
    }
}
