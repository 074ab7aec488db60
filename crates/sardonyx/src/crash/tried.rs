//! What a plan has shown, as `sardonyx crash --json` has it.

use serde::Serialize;

use super::attacked::AttackReport;
use super::report::{Told, Verdict};
use super::rests::Lack;
use crate::mechanisms::{Exercised, Reached};

/// What a plan has shown; the names of the fields are those of `sardonyx crash --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    /// The design's name.
    pub design: String,
    /// The program's name.
    pub program: String,
    /// A mistake of the program's own log, if there is one in it.
    pub mutant: Option<&'static str>,
    /// The first seed of the plan.
    pub seed: u64,
    /// What reserve power drains.
    pub platform: &'static str,
    /// What of a line that is being accepted is atomic.
    pub tear: &'static str,
    /// What the design promises.
    pub guarantee: &'static str,
    /// Runs.
    pub runs: u64,
    /// Positions at which their power could be cut.
    pub positions: u64,
    /// Cuts.
    pub cuts: u64,
    /// Different states among them.
    pub distinct_states: u64,
    /// Cuts at which every line was looked at.
    pub checked_in_full: u64,
    /// Cuts of later lives.
    pub recovery_cuts: u64,
    /// Cuts that break recoverability.
    pub lost_cuts: u64,
    /// Cuts that break secrecy.
    pub secret_cuts: u64,
    /// How often each mechanism was used.
    pub exercised: Exercised,
    /// How far the runs have come.
    pub reached: Reached,
    /// Mechanisms and values that the verdict has to rest on.
    pub required: Vec<&'static str>,
    /// Those of them of which there was too little.
    pub not_exercised: Vec<&'static str>,
    /// The same, with how much there was and would have to be, and the options that may keep it so.
    pub lacks: Vec<Lack>,
    /// What they say together.
    pub verdict: Verdict,
    /// What it says that for only, because options have taken away what it would else rest on.
    pub narrowed: Vec<&'static str>,
    /// Whether that is an error.
    pub fails: bool,
    /// Limits of its layers that no run of a plan comes to, each with why.
    pub not_reached: Vec<(&'static str, &'static str)>,
    /// Regions in which it shows what contents are by a digest under no key.
    pub shows: &'static [&'static str],
    /// What came of attacks, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attacks: Option<AttackReport>,
    /// The first violation of each kind.
    pub violations: Vec<Told>,
    /// The plan's passes.
    pub passes: Vec<Row>,
    /// How long it took.
    pub seconds: f64,
}

/// One pass of a plan, and what its runs have shown.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The program's name.
    pub program: String,
    /// Cores of the first run.
    pub cores: usize,
    /// Who shares lines of counters.
    pub sharing: &'static str,
    /// Bytes of a transaction's item.
    pub transaction_bytes: u64,
    /// Bytes of a structure.
    pub footprint_bytes: u64,
    /// Transactions of a core.
    pub transactions: u64,
    /// The settings that make it, over the machine's.
    pub settings: Vec<(String, String)>,
    /// The seed of the first run.
    pub seed: u64,
    /// Runs.
    pub runs: u64,
    /// Positions at which their power could be cut.
    pub positions: u64,
    /// Cuts.
    pub cuts: u64,
    /// Different states among them.
    pub distinct_states: u64,
    /// Cuts of later lives.
    pub recovery_cuts: u64,
    /// Cuts that break recoverability.
    pub lost_cuts: u64,
    /// Cuts that break secrecy.
    pub secret_cuts: u64,
    /// How often each mechanism was used.
    pub exercised: Exercised,
    /// How far they have come.
    pub reached: Reached,
}
