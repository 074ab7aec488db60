//! Where the operations of a run come from, as `python/sardonyx/runs/sources.py` states it in JSON.
//! Left out: any logic; `sardonyx::trace` and `sardonyx::workload` open and check.
use pyo3::PyResult;
use sardonyx::trace::{self, Spec, Synth};
use sardonyx::workload::{self, DurabilityKind, ProgramSpec, Sharing};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bad;

/// What Python may name as the source of a run.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// A trace file, ended after `limit` records.
    Trace { path: String, limit: Option<u64> },
    /// A rung of the locality ladder, of `records` records, ended after `limit`.
    Synth {
        name: String,
        records: Option<u64>,
        seed: u64,
        limit: Option<u64>,
    },
    /// A persistent program.
    Program(Program),
}

/// A program with its sizes in bytes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    pub name: String,
    pub item_bytes: u64,
    pub footprint: u64,
    pub transactions: u64,
    pub seed: u64,
}

impl Source {
    /// The trace, from its beginning; a program has none.
    pub fn open(&self) -> PyResult<trace::Source> {
        let (source, limit) = match self {
            Source::Trace { path, limit } => (trace::Source::open(path).map_err(bad)?, limit),
            Source::Synth {
                name,
                records,
                seed,
                limit,
            } => {
                let mut ladder = trace::locality_ladder().into_iter();
                let spec = ladder.find(|spec| spec.name == *name);
                let spec = spec.ok_or_else(|| bad(format!("there is no generator `{name}`")))?;
                let records = records.unwrap_or(spec.records);
                let synth = Synth::new(Spec { records, ..spec }, *seed).map_err(bad)?;
                (trace::Source::from(synth), limit)
            }
            Source::Program(program) => {
                return Err(bad(format!("{}: is no trace", program.name)));
            }
        };
        Ok(source.limit(limit.unwrap_or(u64::MAX)))
    }
}

impl Program {
    pub fn spec(&self, durability: DurabilityKind) -> ProgramSpec {
        ProgramSpec {
            name: self.name.clone(),
            item_bytes: self.item_bytes,
            footprint: self.footprint,
            transactions: self.transactions,
            seed: self.seed,
            durability,
            sharing: Sharing::Apart,
        }
    }

    /// What it is, where a trace's facts may stand; an error if it cannot be built.
    pub fn info(&self) -> PyResult<Value> {
        self.spec(DurabilityKind::default()).build().map_err(bad)?;
        let known = workload::all().iter().find(|known| known.name == self.name);
        Ok(json!({
            "program": self.name,
            "description": known.map(|known| known.line),
            "transaction_bytes": self.item_bytes,
            "footprint_bytes": self.footprint,
            "transactions": self.transactions,
            "seed": self.seed,
        }))
    }
}
