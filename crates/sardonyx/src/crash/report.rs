//! What exploring has shown, as JSON: the same for programs as for people.

use serde_json::{Value, json};

use super::explain::explain;
use super::explore::{Explored, Options, explore};
use super::history::{History, HistoryError};
use super::platform::Platform;
use super::stages::{Shown, Stage, stages};
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
        let spec = history.programs[0].spec();
        let each = Stage::ALL.iter().zip(shown).map(stage);
        Ok(Some(json!({
            "design": history.design,
            "program": spec.name,
            "mutant": spec.durability.mutant().map(|mutant| mutant.name()),
            "cores": history.programs.len(),
            "transactions": spec.transactions,
            "seed": history.seed,
            "platform": platform.name(),
            "cuts": cuts,
            "stages": each.collect::<Vec<Value>>(),
        })))
    }
}

fn stage((stage, shown): (&Stage, Shown)) -> Value {
    json!({
        "stage": stage.name(),
        "cuts": shown.cuts,
        "backup_usable": shown.backup_usable,
        "data_usable": shown.data_usable,
        "takes_backup": shown.takes_backup,
        "takes_data": shown.takes_data,
        "recovered": shown.recovered,
    })
}

fn describe(history: &History, explored: &Explored) -> Value {
    let covered = explored.covered;
    let spec = history.programs[0].spec();
    let recoverability = explored.tally.count(false);
    let secrecy = explored.tally.count(true);
    json!({
        "design": history.design,
        "guarantee": history.guarantee.name(),
        "program": spec.name,
        "mutant": spec.durability.mutant().map(|mutant| mutant.name()),
        "cores": history.programs.len(),
        "transactions": spec.transactions,
        "transaction_bytes": spec.item_bytes,
        "footprint_bytes": spec.footprint,
        "seed": history.seed,
        "positions": history.positions(),
        "cuts": covered.cuts,
        "distinct_states": covered.states,
        "checked_in_full": covered.full,
        "recovery_cuts": covered.recovery_cuts,
        "recoverability_violations": recoverability,
        "secrecy_violations": secrecy,
        "fails": history.guarantee != Guarantee::Nothing && recoverability + secrecy > 0,
        "violations": violations(history, &explored.tally),
    })
}

fn violations(history: &History, tally: &Tally) -> Vec<Value> {
    let first = |violation: &Violation| {
        let (count, _) = &tally.kinds[&violation.kind];
        json!({
            "kind": violation.kind.name(),
            "about": if violation.kind.is_secrecy() { "secrecy" } else { "recoverability" },
            "count": count,
            "seed": history.seed,
            "cut": violation.position,
            "recovery_cut": violation.recovery_cut,
            "core": violation.core,
            "line": violation.line,
            "place": violation.place.map(|place| place.0),
            "what": violation.what,
            "history": explain(history, violation),
        })
    };
    tally.first().map(first).collect()
}

impl Platform {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        let known = Platform::ALL.iter().find(|(_, platform)| *platform == self);
        known.expect("all are listed").0
    }
}
