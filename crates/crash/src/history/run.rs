//! What was run: a design, its programs and a seed, as reports have it.

use serde::Serialize;

use crate::history::History;
use sardonyx::workload::ProgramSpec;

/// What was run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Run {
    /// The design's name.
    pub design: String,
    /// The program's name.
    pub program: String,
    /// The mistake in the program's own log, if any.
    pub mutant: Option<&'static str>,
    /// Cores; each has a program.
    pub cores: usize,
    /// Who shares lines of counters: [`sardonyx::workload::Sharing`].
    pub sharing: &'static str,
    /// Transactions of a core.
    pub transactions: u64,
    /// Bytes of a transaction's item.
    pub transaction_bytes: u64,
    /// Bytes of each structure.
    pub footprint_bytes: u64,
    /// The seed of evictions, delays and sampled cuts.
    pub seed: u64,
}

impl Run {
    pub(crate) fn of(design: &str, spec: &ProgramSpec, cores: usize, seed: u64) -> Run {
        Run {
            design: design.into(),
            program: spec.name.clone(),
            mutant: spec.durability.mutant().map(|mutant| mutant.name()),
            cores,
            sharing: spec.sharing.name(),
            transactions: spec.transactions,
            transaction_bytes: spec.item_bytes,
            footprint_bytes: spec.footprint,
            seed,
        }
    }

    /// The run that `history` is of.
    pub fn recorded(history: &History) -> Run {
        let programs = &history.programs;
        Run::of(
            &history.design,
            &programs[0].spec,
            programs.len(),
            history.seed,
        )
    }
}
