//! Where the operations of a run come from, as `python/sardonyx/runs/sources.py` states it in JSON.
//! Left out: any logic; `sardonyx::trace` and `sardonyx::workload` open and check.
use pyo3::PyResult;
use sardonyx::controller::designs::Stack;
use sardonyx::trace::{self, Spec, Synth};
use sardonyx::workload::{self, DurabilityKind, ProgramSpec, Sharing};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bad;

/// What Python may name as the source of a run.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// A trace file, ended after `limit` records, or as many in its `middle`.
    Trace {
        path: String,
        limit: Option<u64>,
        middle: bool,
    },
    /// A rung of the locality ladder, of `records` records, ended after `limit`.
    Synth {
        name: String,
        records: Option<u64>,
        seed: u64,
        limit: Option<u64>,
        middle: bool,
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
    /// Whether the program keeps an undo log where the hardware keeps none.
    #[serde(default = "yes")]
    pub software_log: bool,
}

/// What makes a program's transactions durable on `design`: its hardware, else the program's own log;
/// nothing if it keeps none either.
pub fn durability(design: &str, software_log: bool) -> PyResult<DurabilityKind> {
    let stack = Stack::named(design).map_err(bad)?;
    Ok(match software_log {
        true => DurabilityKind::on(&stack),
        false => DurabilityKind::Hardware,
    })
}

/// What JSON that does not say means.
pub fn yes() -> bool {
    true
}

impl Source {
    /// The trace for the core `copy` of several with contents of their own: a generated one has a seed of
    /// its own there.
    pub fn open_copy(&self, copy: u32) -> PyResult<trace::Source> {
        match self {
            Source::Synth {
                name,
                records,
                seed,
                limit,
                middle,
            } => Source::Synth {
                name: name.clone(),
                records: *records,
                seed: seed.wrapping_add(u64::from(copy)),
                limit: *limit,
                middle: *middle,
            }
            .open(),
            _ => self.open(),
        }
    }

    /// The trace, from its beginning; a program has none.
    pub fn open(&self) -> PyResult<trace::Source> {
        let (source, limit, middle) = match self {
            Source::Trace {
                path,
                limit,
                middle,
            } => (trace::Source::open(path).map_err(bad)?, limit, middle),
            Source::Synth {
                name,
                records,
                seed,
                limit,
                middle,
            } => {
                let mut ladder = trace::locality_ladder().into_iter();
                let spec = ladder.find(|spec| spec.name == *name);
                let spec = spec.ok_or_else(|| bad(format!("there is no generator `{name}`")))?;
                let records = records.unwrap_or(spec.records);
                let synth = Synth::new(Spec { records, ..spec }, *seed).map_err(bad)?;
                (trace::Source::from(synth), limit, middle)
            }
            Source::Program(program) => {
                return Err(bad(format!("{}: is no trace", program.name)));
            }
        };
        Ok(match (limit, middle) {
            (None, _) => source,
            (Some(limit), false) => source.limit(*limit),
            (Some(limit), true) => source.middle(*limit).map_err(bad)?,
        })
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
