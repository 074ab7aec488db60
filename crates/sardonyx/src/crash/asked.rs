//! What is asked of an exploration: where the power is cut, what survives that, how thoroughly is looked.

use super::attacked::Attacks;
use super::history::{History, HistoryError};
use super::platform::{Platform, Tear};

/// At which positions of a history the power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// At every position.
    All,
    /// At so many positions, drawn from the seed.
    Sample(u64),
    /// At this position alone.
    One(u64),
}

impl Cuts {
    /// An error, with the remedy, unless `history` has such cuts.
    ///
    /// # Errors
    /// A position beyond its last, or more cuts to draw than it has positions.
    pub fn check(self, history: &History) -> Result<(), HistoryError> {
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

    /// The same, of those that are drawn at most so many.
    pub(super) fn at_most(self, positions: u64) -> Cuts {
        match self {
            Cuts::Sample(count) => Cuts::Sample(count.min(positions)),
            Cuts::All | Cuts::One(_) => self,
        }
    }

    /// How many positions of `history` are cut.
    pub fn count(self, history: &History) -> u64 {
        match self {
            Cuts::All => history.positions(),
            Cuts::Sample(count) => count,
            Cuts::One(_) => 1,
        }
    }
}

/// How to explore.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What reserve power drains.
    pub platform: Platform,
    /// Which cuts.
    pub cuts: Cuts,
    /// From one state in so many life goes on, and is cut at every position as well; 0: from none.
    pub recovery_cuts: u64,
    /// One position in so many is looked at in full, whatever the cut has changed; 1 for each.
    pub full_one_in: u64,
    /// What of a line that is being accepted is atomic.
    pub tear: Tear,
    /// The attacks on each run, if it is attacked.
    pub attacks: Option<Attacks>,
    /// Threads; 0 for one a processor.
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
