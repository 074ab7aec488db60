//! What exploring has shown, as JSON: the same for programs as for people.

use serde_json::{Value, json};

use super::explain::explain;
use super::explore::{Explored, Options, explore};
use super::history::{History, HistoryError};
use super::stages::{Stage, stages};
use super::violation::{Tally, Violation};
use crate::config::Machine;
use crate::controller::designs::Guarantee;
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
    /// Of evictions, delays and samples.
    pub seed: u64,
    /// How to explore.
    pub options: Options,
}

impl Question {
    /// Runs the programs, cuts the power, and says what was found; `None` if `progress`, told the
    /// cuts done and in all, has ended it.
    ///
    /// # Errors
    /// The design or a program does not exist, or the run has no such cuts.
    pub fn answer(
        &self,
        progress: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<Option<Value>, HistoryError> {
        let history = History::record(&self.machine, &self.design, &self.specs, self.seed)?;
        self.options.cuts.check(&history)?;
        let cuts = self.options.cuts.count(&history);
        let started = std::time::Instant::now();
        let tell = |done| progress(done, cuts);
        let Some(explored) = explore(&history, &self.options, &tell) else {
            return Ok(None);
        };
        let took = started.elapsed().as_secs_f64();
        let mut answer = describe(&history, &explored);
        answer["platform"] = json!(self.options.platform.name());
        answer["cuts_per_second"] = json!(explored.covered.cuts as f64 / took);
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
fn run(history: &History) -> Value {
    let spec = &history.programs[0].spec;
    json!({
        "design": history.design,
        "program": spec.name,
        "mutant": spec.durability.mutant().map(|mutant| mutant.name()),
        "cores": history.programs.len(),
        "transactions": spec.transactions,
        "seed": history.seed,
    })
}

fn describe(history: &History, explored: &Explored) -> Value {
    let covered = explored.covered;
    let spec = &history.programs[0].spec;
    let recoverability = explored.tally.count(false);
    let secrecy = explored.tally.count(true);
    let fails = history.guarantee != Guarantee::Nothing && recoverability + secrecy > 0;
    let mut answer = run(history);
    for (key, value) in [
        ("guarantee", json!(history.guarantee.name())),
        ("transaction_bytes", json!(spec.item_bytes)),
        ("footprint_bytes", json!(spec.footprint)),
        ("positions", json!(history.positions())),
        ("cuts", json!(covered.cuts)),
        ("distinct_states", json!(covered.states)),
        ("checked_in_full", json!(covered.full)),
        ("recovery_cuts", json!(covered.recovery_cuts)),
        ("recoverability_violations", json!(recoverability)),
        ("secrecy_violations", json!(secrecy)),
        ("fails", json!(fails)),
        ("violations", violations(history, &explored.tally)),
    ] {
        answer[key] = value;
    }
    answer
}

fn violations(history: &History, tally: &Tally) -> Value {
    let first = |(count, violation): &(u64, Violation)| {
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
    };
    tally.kinds.values().map(first).collect()
}
