//! The options of an exploration: where the power is cut, what survives a cut, how thoroughly each cut is checked, and
//! which attacks are made.

use crate::history::{History, HistoryError, Result};
use crate::platform::{Platform, Tear};
use sardonyx::controller::designs::Stack;
use sardonyx::controller::layers::Refuses;

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
    /// At the end of one short later life in this many everything is checked, and of the others what they changed; 1: of
    /// every one.
    pub full_life_in: u64,
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
            full_life_in: 8,
            tear: Tear::Lines,
            attacks: None,
            threads: 0,
        }
    }
}

sardonyx::names::named! {
    /// What the attacker does.
    Attack {
        /// He inverts one bit of a line or of what lies beside it, or the same bit of two words.
        Tamper = "tamper",
        /// He lets two lines change places, each with its MAC.
        Splice = "splice",
        /// He puts back what a line was at an earlier look, with its MAC, its counter's line and that one's MAC, and all nodes.
        Replay = "replay",
        /// He puts back what all lines of a region were, with their MACs, and all nodes.
        Region = "region",
        /// He puts back all that the medium held at an earlier look.
        Rollback = "rollback",
    }
}

sardonyx::names::named! {
    /// When he does it.
    When {
        /// After a power cut, before the recovery.
        Off = "off",
        /// While the recovery goes on that follows.
        Recovering = "recovering",
        /// Between two requests of a controller that has recovered.
        Running = "running",
    }
}

impl Attack {
    pub fn is_refused_by(self, promises: Refuses) -> bool {
        match self {
            Attack::Tamper => promises.tamper,
            Attack::Splice => promises.splice,
            Attack::Replay | Attack::Region => promises.replay,
            Attack::Rollback => promises.rollback,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attacks {
    /// Cuts at which the attacker looks, spread evenly over the run.
    pub looks: u64,
    /// Attacks of each kind at each of these cuts, and as many in the run that follows.
    pub each: u64,
    pub one: Option<OneAttack>,
}

/// One attack, by the numbers that draw it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneAttack {
    pub look: u64,
    pub when: When,
    pub kind: Attack,
    /// The number among the attacks of that kind at that look, from 0 on.
    pub number: u64,
}

impl Attacks {
    pub const USUAL: Attacks = Attacks {
        looks: 10,
        each: 8,
        one: None,
    };

    /// The attacks of a plan over `stack` if the user names none: [`USUAL`](Self::USUAL) if it has integrity.
    pub fn unless_said(stack: &Stack) -> Option<Attacks> {
        (stack.integrity.power_fail.is_some()).then_some(Attacks::USUAL)
    }
}
