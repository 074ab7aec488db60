//! Runs for Python: one design over one trace, and which designs there are. Answers in JSON.
//! The interpreter's lock is released while a run goes on; a cancelled one ends with an error.
use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use sardonyx::config::Machine;
use sardonyx::controller::designs as registry;
use sardonyx::sim::{self, Options, outcome};
use serde_json::{Map, Value, json};

use crate::SardonyxError;
use crate::progress::Progress;
use crate::{programs, traces};

fn bad(error: impl std::fmt::Display) -> PyErr {
    SardonyxError::new_err(error.to_string())
}

/// One run of a design over a trace.
#[pyfunction]
#[pyo3(signature = (trace, design, machine, overrides, limit, warmup, copies, distinct, progress))]
#[allow(clippy::too_many_arguments)] // the stub names them; Python passes them by keyword
pub fn simulate(
    py: Python<'_>,
    trace: &str,
    design: &str,
    machine: &str,
    overrides: Vec<(String, String)>,
    limit: Option<u64>,
    warmup: u64,
    copies: u32,
    distinct: bool,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let program = programs::spec(trace)?;
    let copies = copies.max(1);
    let sources = match program {
        Some(_) => Vec::new(),
        None => {
            let sources = (0..copies).map(|_| traces::source(trace, limit));
            sources.collect::<PyResult<Vec<_>>>()?
        }
    };
    let total: u64 = match &program {
        Some(spec) => spec.transactions * u64::from(copies),
        None => sources.iter().filter_map(|source| source.total()).sum(),
    };
    let counts = progress.map(|progress| progress.counts.clone());
    if let Some(counts) = &counts {
        counts.total.store(total, Ordering::Relaxed);
    }
    let mut tell = |done| {
        let Some(counts) = &counts else { return true };
        counts.done.store(done, Ordering::Relaxed);
        !counts.cancelled.load(Ordering::Relaxed)
    };
    py.detach(|| {
        let machine = Machine::load(machine, &overrides).map_err(bad)?;
        let options = Options { warmup, distinct };
        let outcome = match &program {
            Some(spec) => {
                let cores = copies as usize;
                sim::programs::run(&machine, design, spec, cores, warmup, &mut (), &mut tell)
            }
            None => sim::traces::run(&machine, design, sources, options, &mut tell),
        };
        let outcome = outcome.map_err(bad)?;
        let variant = overrides.iter().map(|(key, value)| {
            let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
            (key.clone(), value)
        });
        Ok(json!({
            "trace": trace,
            "design": design,
            "machine": machine.name,
            "copies": copies,
            "variant": variant.collect::<Map<String, Value>>(),
            "metrics": outcome.metrics,
            "causes": outcome.causes,
            "write_latency_cdf": outcome.write_latency_cdf,
            "read_latency_cdf": outcome.read_latency_cdf,
            "assumed": outcome::assumed(&machine, design, outcome.from_the_core),
        })
        .to_string())
    })
}

/// Every design: `name`, `source` and `line`.
#[pyfunction]
pub fn designs() -> String {
    let designs = registry::all()
        .map(|design| json!({"name": design.name, "source": design.source, "line": design.line}));
    Value::from_iter(designs).to_string()
}
