//! Persistent programs for Python: their names as sources of a run.
//! Left out: any logic; `sardonyx::workload` and `sardonyx::workload::timed` have it.
use pyo3::prelude::*;
use sardonyx::config::Machine;
use sardonyx::workload::{self, DurabilityKind, ProgramSpec, timed};
use serde_json::{Value, json};

use crate::SardonyxError;

/// What marks a program where a trace's path may stand.
const PROGRAM: &str = "program:";

fn bad(error: impl std::fmt::Display) -> PyErr {
    SardonyxError::new_err(error.to_string())
}

/// The program of `program:NAME:ITEM_BYTES:FOOTPRINT:TRANSACTIONS:SEED`; `None` for anything else.
pub fn spec(source: &str) -> PyResult<Option<ProgramSpec>> {
    let Some(rest) = source.strip_prefix(PROGRAM) else {
        return Ok(None);
    };
    let parts: Vec<&str> = rest.split(':').collect();
    let numbers = parts[1..].iter().map(|part| part.parse().ok());
    let Some([item_bytes, footprint, transactions, seed]) = numbers
        .collect::<Option<Vec<u64>>>()
        .and_then(|numbers| <[u64; 4]>::try_from(numbers).ok())
    else {
        return Err(bad(format!(
            "{source}: is not of the form {PROGRAM}NAME:ITEM_BYTES:FOOTPRINT:TRANSACTIONS:SEED; \
             give whole numbers"
        )));
    };
    let spec = ProgramSpec {
        name: parts[0].to_owned(),
        item_bytes,
        footprint,
        transactions,
        seed,
        durability: DurabilityKind::default(),
    };
    spec.build().map_err(bad)?;
    Ok(Some(spec))
}

/// What a program is, where a trace's facts may stand.
pub fn info(spec: &ProgramSpec) -> Value {
    let known = workload::all().iter().find(|known| known.name == spec.name);
    json!({
        "program": spec.name,
        "description": known.map(|known| known.line),
        "transaction_bytes": spec.item_bytes,
        "footprint_bytes": spec.footprint,
        "transactions": spec.transactions,
        "seed": spec.seed,
    })
}

/// An error unless the program of `source` fits on `cores` cores of the machine.
#[pyfunction]
pub fn check_program(
    source: &str,
    machine: &str,
    overrides: Vec<(String, String)>,
    cores: usize,
) -> PyResult<()> {
    let Some(spec) = spec(source)? else {
        return Err(bad(format!("{source}: is no program")));
    };
    let machine = Machine::load(machine, &overrides).map_err(bad)?;
    timed::check(&machine, &spec, cores).map_err(bad)
}
