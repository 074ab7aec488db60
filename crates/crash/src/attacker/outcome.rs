//! The outcome of attacks: counts by kind, compared with what the integrity of the stack promises, and the first
//! undetected attack of each kind. Left out: the attacker himself ([`crate::attacker`]).

use std::collections::BTreeMap;

use crate::attacker::enumerated::EnumeratedAttacks;
use crate::history::run::Run;
use crate::options::{Attack, Attacks, OneAttack, When};
use sardonyx::controller::layers::Refuses;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Came {
    pub tried: u64,
    /// Attacks that a recovery or a read refused.
    pub refused: u64,
    /// Attacks after which programs read what they would have read anyway.
    pub harmless: u64,
    /// Attacks after which programs read something else, and nothing was refused.
    pub undetected: u64,
    /// Attacks by the region whose line was changed.
    pub regions: BTreeMap<&'static str, u64>,
    pub first: Option<UndetectedAttack>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndetectedAttack {
    pub asked: Attacks,
    pub one: OneAttack,
    pub position: u64,
    pub story: Vec<String>,
    pub run: Option<(Run, usize)>,
}

#[derive(Clone, Debug, Default)]
pub struct Attacked {
    pub cuts: u64,
    /// Cuts whose honest recovery was refused, or after which an honest run was refused; such cuts are not attacked.
    pub honest_refused: u64,
    /// The outcome of each kind, in the order of [`When::ALL`] and [`Attack::ALL`].
    pub came: [[Came; Attack::ALL.len()]; When::ALL.len()],
    /// Attacks that are the same for any run.
    pub enumerated: Vec<EnumeratedAttacks>,
}

impl Attacked {
    pub fn of(&self, when: When, attack: Attack) -> &Came {
        &self.came[when as usize][attack as usize]
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = (When, Attack, &Came)> {
        let pairs = When::ALL
            .into_iter()
            .flat_map(|when| Attack::ALL.map(|kind| (when, kind)));
        pairs.map(|(when, kind)| (when, kind, self.of(when, kind)))
    }

    pub fn fewest(&self) -> u64 {
        let tried = self.each().map(|(_, _, came)| came.tried);
        tried.min().unwrap_or(0)
    }

    pub fn unkept(&self, promises: Refuses) -> u64 {
        let promised = self
            .each()
            .filter(|(_, kind, _)| kind.is_refused_by(promises));
        let drawn: u64 = promised.map(|(_, _, came)| came.undetected).sum();
        let unkept = self.enumerated.iter().filter(|each| each.is_unkept());
        drawn + unkept.map(|each| each.undetected).sum::<u64>()
    }

    pub fn undetected(&self) -> u64 {
        self.each().map(|(_, _, came)| came.undetected).sum()
    }

    /// Adds the outcome of the attacks on another history, later in the plan.
    pub fn append(&mut self, other: &Attacked) {
        self.cuts += other.cuts;
        self.honest_refused += other.honest_refused;
        let all = self.came.iter_mut().flatten();
        for (came, more) in all.zip(other.came.iter().flatten()) {
            came.tried += more.tried;
            came.refused += more.refused;
            came.harmless += more.harmless;
            came.undetected += more.undetected;
            for (region, count) in &more.regions {
                *came.regions.entry(region).or_default() += count;
            }
            if came.first.is_none() {
                came.first = more.first.clone();
            }
        }
    }

    /// Gives each first attack its run and the number of its pass.
    pub fn was_in(&mut self, run: &Run, pass: usize) {
        for came in self.came.iter_mut().flatten() {
            if let Some(first) = &mut came.first {
                first.run = Some((run.clone(), pass));
            }
        }
    }
}
