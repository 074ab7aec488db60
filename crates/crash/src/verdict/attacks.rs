//! The outcome of attacks, as reports have it. The names of the fields are those of `sardonyx crash --json`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::attacker::enumerated::EnumeratedAttacks;
use crate::attacker::outcome::{Attacked, UndetectedAttack};
use crate::options::{Attacks, OneAttack};
use crate::verdict::told::{DrawnAttack, Told};
use crate::violation::Kind;
use sardonyx::controller::layers::Refuses;

#[derive(Clone, Debug, Serialize)]
pub struct AttackReport {
    pub cuts: u64,
    /// Cuts whose honest recovery was refused, or after which an honest run was refused.
    pub honest_refused: u64,
    /// Undetected attacks that the integrity promises to notice.
    pub unkept: u64,
    pub rows: Vec<AttackRow>,
    /// Attacks of which none is drawn, on a few lines in a memory that holds nothing else.
    pub enumerated: Vec<EnumeratedAttacks>,
}

#[derive(Clone, Debug, Serialize)]
pub struct AttackRow {
    /// The time: with the power off, while recovering, or in a run.
    pub when: &'static str,
    pub kind: &'static str,
    pub promised: bool,
    pub tried: u64,
    pub refused: u64,
    pub harmless: u64,
    pub undetected: u64,
    pub regions: BTreeMap<&'static str, u64>,
    pub first: Option<Told>,
}

impl Attacked {
    /// The outcome as `sardonyx crash --json` has it, over a stack that promises `promises`.
    pub fn report(&self, promises: Refuses) -> AttackReport {
        let rows = self.each().map(|(when, kind, came)| AttackRow {
            when: when.name(),
            kind: kind.name(),
            promised: kind.is_refused_by(promises),
            tried: came.tried,
            refused: came.refused,
            harmless: came.harmless,
            undetected: came.undetected,
            regions: came.regions.clone(),
            first: came.first.as_ref().map(|first| first.told(came.undetected)),
        });
        AttackReport {
            cuts: self.cuts,
            honest_refused: self.honest_refused,
            unkept: self.unkept(promises),
            rows: rows.collect(),
            enumerated: self.enumerated.clone(),
        }
    }

    /// The first undetected attacks that `promises` says are noticed, as violations.
    pub fn violations(&self, promises: Refuses) -> impl Iterator<Item = Told> {
        let unkept = self.enumerated.iter().filter(|each| each.is_unkept());
        let unkept = unkept.map(EnumeratedAttacks::told);
        let promised = self
            .each()
            .filter(move |(_, kind, _)| kind.is_refused_by(promises));
        let drawn = promised.filter_map(|(_, _, came)| {
            let first = came.first.as_ref()?;
            Some(first.told(came.undetected))
        });
        drawn.chain(unkept)
    }
}

impl EnumeratedAttacks {
    fn told(&self) -> Told {
        let first = self.first.clone().unwrap_or_default();
        let what = format!("undetected-attack: {}, of {}", self.kind, self.what);
        Told {
            kind: Kind::Undetected.name(),
            about: Kind::Undetected.about(),
            count: self.undetected,
            history: vec![what, format!("  {first}")],
            what: first,
            ..Told::default()
        }
    }
}

impl UndetectedAttack {
    fn told(&self, count: u64) -> Told {
        let (run, pass) = self.run.clone().unzip();
        let Attacks { looks, each, .. } = self.asked;
        let OneAttack {
            look,
            when,
            kind,
            number,
        } = self.one;
        Told {
            kind: Kind::Undetected.name(),
            about: Kind::Undetected.about(),
            count,
            seed: run.as_ref().map_or(0, |run| run.seed),
            cut: Some(self.position),
            recovery_cut: None,
            core: None,
            line: None,
            place: None,
            what: self.story[0].clone(),
            history: self.story.clone(),
            run,
            pass,
            attack: Some(DrawnAttack {
                looks,
                each,
                look,
                when: when.name(),
                kind: kind.name(),
                number,
            }),
            script: None,
            shortened: None,
        }
    }
}
