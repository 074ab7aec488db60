//! What exploring has shown, as JSON: the same for programs as for people.

use serde_json::{Value, json};

use super::explain::explain;
use super::explore::{Explored, Options, explore};
use super::history::{History, HistoryError};
use super::stages::{Stage, stages};
use super::violation::Violation;
use crate::config::Machine;
use crate::controller::designs::Guarantee;
use crate::mechanisms::{Exercised, Mechanism};
use crate::workload::ProgramSpec;

/// A run and how to cut it.
#[derive(Clone, Debug)]
pub struct Question {
    /// The machine, before its medium is cut down.
    pub machine: Machine,
    /// The design's name.
    pub design: String,
    /// One program a core.
    pub specs: Vec<ProgramSpec>,
    /// The seed from which evictions, delays and sampled cuts are drawn.
    pub seed: u64,
    /// How to explore.
    pub options: Options,
}

impl Question {
    /// What is to be run.
    pub fn facts(&self) -> Value {
        facts(&self.design, &self.specs[0], self.specs.len(), self.seed)
    }

    /// Runs the programs and cuts the power; `None` if `progress`, told the cuts done and in all, has
    /// ended it.
    ///
    /// # Errors
    /// The design or a program does not exist, the run has no such cuts, or does not fit in memory.
    pub fn look(
        &self,
        progress: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<Option<(History, Explored)>, HistoryError> {
        self.memory()?;
        let history = History::record(&self.machine, &self.design, &self.specs, self.seed)?;
        self.options.cuts.check(&history)?;
        let cuts = self.options.cuts.count(&history);
        let tell = |done| progress(done, cuts);
        let explored = explore(&history, &self.options, &tell);
        Ok(explored.map(|explored| (history, explored)))
    }

    /// Runs the programs, cuts the power, and gives what `sardonyx crash --once --json` has of it.
    ///
    /// # Errors
    /// As [`Question::look`].
    pub fn answer(
        &self,
        progress: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<Option<Value>, HistoryError> {
        let started = std::time::Instant::now();
        let Some((history, explored)) = self.look(progress)? else {
            return Ok(None);
        };
        let mut answer = describe(&history, &explored);
        answer["platform"] = json!(self.options.platform.name());
        answer["tear"] = json!(self.options.tear.name());
        answer["seconds"] = json!(started.elapsed().as_secs_f64());
        Ok(Some(answer))
    }

    /// Runs the programs, cuts the power everywhere, and counts what each stage of a transaction
    /// has shown; `None` if `progress` has ended it. Which cuts and recoveries [`Options`] ask for
    /// does not matter.
    ///
    /// # Errors
    /// The design or a program does not exist.
    pub fn stages(
        &self,
        progress: &dyn Fn(u64, u64) -> bool,
    ) -> Result<Option<Value>, HistoryError> {
        let history = History::record(&self.machine, &self.design, &self.specs, self.seed)?;
        let cuts = history.positions();
        let platform = self.options.platform;
        let Some(shown) = stages(&history, platform, &|done| progress(done, cuts)) else {
            return Ok(None);
        };
        let mut answer = run(&history);
        answer["platform"] = json!(platform.name());
        answer["cuts"] = json!(cuts);
        let each = Stage::ALL.iter().zip(shown).map(|(stage, shown)| {
            let mut row = json!(shown);
            row["stage"] = json!(stage.name());
            row
        });
        answer["stages"] = each.collect();
        Ok(Some(answer))
    }
}

/// What was run.
pub fn run(history: &History) -> Value {
    let programs = &history.programs;
    facts(
        &history.design,
        &programs[0].spec,
        programs.len(),
        history.seed,
    )
}

fn facts(design: &str, spec: &ProgramSpec, cores: usize, seed: u64) -> Value {
    json!({
        "design": design,
        "program": spec.name,
        "mutant": spec.durability.mutant().map(|mutant| mutant.name()),
        "cores": cores,
        "sharing": spec.sharing.name(),
        "transactions": spec.transactions,
        "transaction_bytes": spec.item_bytes,
        "footprint_bytes": spec.footprint,
        "seed": seed,
    })
}

/// How often the run has used each mechanism.
pub fn exercised(history: &History, explored: &Explored) -> Exercised {
    let mut exercised = history.exercised();
    exercised.add(Mechanism::NextLife, explored.covered.recovery_cuts);
    exercised.add(Mechanism::Undone, explored.covered.undone);
    exercised
}

/// The same in JSON, by name.
pub fn exercised_json(exercised: &Exercised) -> Value {
    let each = Mechanism::ALL.iter();
    let each = each.map(|mechanism| (mechanism.name().to_owned(), json!(exercised.of(*mechanism))));
    Value::Object(each.collect())
}

fn describe(history: &History, explored: &Explored) -> Value {
    let (covered, tally) = (explored.covered, &explored.tally);
    let broken = !tally.kinds.is_empty();
    let verdict = match (broken, history.guarantee) {
        (false, _) => "holds",
        (true, Guarantee::Nothing) => "caught",
        (true, _) => "broken",
    };
    let violations = tally.kinds.values();
    let violations = violations.map(|(count, first)| violation(history, *count, first));
    let mut answer = run(history);
    for (key, value) in [
        ("guarantee", json!(history.guarantee.name())),
        ("positions", json!(history.positions())),
        ("cuts", json!(covered.cuts)),
        ("distinct_states", json!(covered.states)),
        ("checked_in_full", json!(covered.full)),
        ("recovery_cuts", json!(covered.recovery_cuts)),
        ("lost_cuts", json!(tally.lost.count)),
        ("secret_cuts", json!(tally.secret.count)),
        ("exercised", exercised_json(&exercised(history, explored))),
        ("verdict", json!(verdict)),
        ("fails", json!(verdict == "broken")),
        ("violations", violations.collect()),
    ] {
        answer[key] = value;
    }
    answer
}

/// A violation that came `count` times, for programs and people.
pub fn violation(history: &History, count: u64, violation: &Violation) -> Value {
    json!({
        "kind": violation.kind.name(),
        "about": if violation.kind.is_secrecy() { "secrecy" } else { "recoverability" },
        "count": count,
        "seed": history.seed,
        "cut": violation.position,
        "recovery_cut": violation.later_cuts.first(),
        "core": violation.core,
        "line": violation.line,
        "place": violation.place.map(|place| place.0),
        "what": violation.what,
        "history": explain(history, violation),
    })
}
