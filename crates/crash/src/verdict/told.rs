//! A violation as reports have it: the first of its kind, with the numbers that make it again.

use serde::Serialize;

use crate::explanation::explain;
use crate::history::History;
use crate::history::run::Run;
use crate::verdict::shrink::{Shrunk, Size};
use crate::violation::{Kind, Violation};
use sardonyx::plan::script::Script;

/// The attack that was drawn, by the numbers that draw it again.
#[derive(Clone, Debug, Serialize)]
pub struct DrawnAttack {
    pub looks: u64,
    pub each: u64,
    pub look: u64,
    pub when: &'static str,
    pub kind: &'static str,
    /// The number among the attacks of that kind at that look.
    pub number: u64,
}

/// The first violation of a kind, as reports have it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Told {
    pub kind: &'static str,
    pub about: &'static str,
    pub count: u64,
    pub seed: u64,
    pub cut: Option<u64>,
    /// The position of the cut in the later life, if the violation shows there.
    pub recovery_cut: Option<u64>,
    pub core: Option<usize>,
    pub line: Option<u64>,
    pub place: Option<u64>,
    pub what: String,
    pub history: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass: Option<usize>,
    /// The attack, if nobody noticed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attack: Option<DrawnAttack>,
    /// The evictions, delays and pauses of that run, if the seed does not draw them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<Script>,
    /// The size of the history as found and as shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shortened: Option<[Size; 2]>,
}

impl Told {
    pub(crate) fn shortened(self, reduced: &Shrunk) -> Told {
        let (history, violation) = (&reduced.history, &reduced.violation);
        let mut told = Told {
            run: Some(Run::recorded(history)),
            pass: self.pass,
            script: reduced.question.script.clone(),
            shortened: Some([reduced.from, reduced.to]),
            ..Told::from_violation(history, self.count, violation)
        };
        told.history.splice(1..1, reduced.story());
        told
    }

    pub fn ended(run: Run, what: &str) -> Told {
        Told {
            kind: Kind::RunEnded.name(),
            about: Kind::RunEnded.about(),
            count: 1,
            seed: run.seed,
            what: what.into(),
            history: vec![what.into()],
            run: Some(run),
            ..Told::default()
        }
    }

    /// The first violation of its kind, of `count` in all.
    pub fn from_violation(history: &History, count: u64, violation: &Violation) -> Told {
        Told {
            kind: violation.kind.name(),
            about: violation.kind.about(),
            count,
            seed: history.seed,
            cut: Some(violation.position),
            recovery_cut: violation.later_cuts.first().copied(),
            core: violation.core,
            line: violation.line,
            place: violation.place.map(|place| place.0),
            what: violation.what.clone(),
            history: explain(history, violation),
            ..Told::default()
        }
    }
}
