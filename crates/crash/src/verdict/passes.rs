//! The result of a plan, as `sardonyx crash run --json` has it.

use serde::Serialize;

use crate::verdict::attacks::AttackReport;
use crate::verdict::coverage::{Lack, by_name};
use crate::verdict::report::Verdict;
use crate::verdict::told::Told;
use sardonyx::mechanisms::{Exercised, Reached};

/// The result of a plan; the names of the fields are those of `sardonyx crash run --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    pub design: String,
    pub program: String,
    /// The mistake in the program's own log, if any.
    pub mutant: Option<&'static str>,
    pub seed: u64,
    pub platform: &'static str,
    pub tear: &'static str,
    pub guarantee: &'static str,
    pub runs: u64,
    /// Positions of these runs at which the power could be cut.
    pub positions: u64,
    pub cuts: u64,
    pub distinct_states: u64,
    pub checked_in_full: u64,
    pub recovery_cuts: u64,
    /// Lives that followed a cut, and those at whose end everything was checked; of the others, what they changed.
    pub later_lives: u64,
    pub later_lives_in_full: u64,
    pub lost_cuts: u64,
    pub secret_cuts: u64,
    #[serde(serialize_with = "by_name")]
    pub exercised: Exercised,
    pub reached: Reached,
    /// Mechanisms and values that the verdict has to rest on.
    pub required: Vec<&'static str>,
    /// The mechanisms and values of `required` of which there was too little.
    pub not_exercised: Vec<&'static str>,
    /// The amounts behind `not_exercised`: how much there was, how much is needed, and the options that may prevent it.
    pub lacks: Vec<Lack>,
    pub verdict: Verdict,
    /// The limits of the verdict, because options have removed some of what it would rest on.
    pub narrowed: Vec<&'static str>,
    pub fails: bool,
    /// Limits of the layers that no run of a plan reaches, each with the reason.
    pub not_reached: Vec<(&'static str, &'static str)>,
    /// Regions that an integrity writes and whose words have changed too rarely to judge how wide they are.
    pub widths_not_judged: Vec<&'static str>,
    /// Regions in which the design shows a digest of contents under no key.
    pub shows: &'static [&'static str],
    /// What followed the plan, if it was to go on until nothing lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub further: Option<Further>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attacks: Option<AttackReport>,
    pub violations: Vec<Told>,
    pub passes: Vec<Row>,
    pub seconds: f64,
}

/// What came after a plan that lacked something. The names of the fields are those of `sardonyx crash run --json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Further {
    pub rounds: usize,
    /// The options that were left out, and those that were given instead.
    pub without: Vec<String>,
    pub with: Vec<String>,
    /// The programs of these rounds.
    pub programs: Vec<String>,
}

/// One pass of a plan, with what its runs have shown.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub program: String,
    pub cores: usize,
    pub sharing: &'static str,
    pub transaction_bytes: u64,
    pub footprint_bytes: u64,
    pub transactions: u64,
    /// The pass's settings that differ from the machine's, without those that have no effect there.
    pub settings: Vec<(String, String)>,
    pub seed: u64,
    pub runs: u64,
    /// Positions of these runs at which the power could be cut.
    pub positions: u64,
    pub cuts: u64,
    pub distinct_states: u64,
    pub recovery_cuts: u64,
    pub lost_cuts: u64,
    pub secret_cuts: u64,
    #[serde(serialize_with = "by_name")]
    pub exercised: Exercised,
    pub reached: Reached,
}
