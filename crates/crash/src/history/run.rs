//! The description of a run as reports have it: a design, its programs and a seed.

use serde::Serialize;

use crate::history::History;
use sardonyx_workload::ProgramSpec;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Run {
    pub design: String,
    pub program: String,
    /// The mistake in the program's own log, if any.
    pub mutant: Option<&'static str>,
    pub cores: usize,
    /// The way in which programs share lines of counters: [`sardonyx_workload::Sharing`].
    pub sharing: &'static str,
    pub transactions: u64,
    pub transaction_bytes: u64,
    pub footprint_bytes: u64,
    /// The seed of evictions, delays and sampled cuts.
    pub seed: u64,
}

impl Run {
    pub(crate) fn new(design: &str, spec: &ProgramSpec, cores: usize, seed: u64) -> Run {
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

    pub fn recorded(history: &History) -> Run {
        let programs = &history.programs;
        Run::new(
            &history.design,
            &programs[0].spec,
            programs.len(),
            history.seed,
        )
    }
}
