//! Machines for Python: `machines()` lists the presets, `machine()` gives one, checked.
//! Both answer in JSON; `python/sardonyx/_core.pyi` states the shapes.
//! Left out: any logic; `sardonyx::config` reads and checks.
use pyo3::prelude::*;
use sardonyx::config;
use serde_json::json;

use crate::bad;

/// `[{"name", "source"}]` of every preset, the default first.
#[pyfunction]
pub fn machines() -> String {
    let presets = config::presets().iter();
    let list = presets.map(|preset| json!({"name": preset.name, "source": preset.source()}));
    serde_json::Value::Array(list.collect()).to_string()
}

/// `{"name", "source", "toml", "capacity_bytes", "parameters", "assumed"}` of a preset or a file.
#[pyfunction]
pub fn machine(name_or_path: &str, overrides: Vec<(String, String)>) -> PyResult<String> {
    let machine = config::Machine::load(name_or_path, &overrides).map_err(bad)?;
    Ok(document(&machine).to_string())
}

/// A machine as Python reads it.
pub fn document(machine: &config::Machine) -> serde_json::Value {
    let assumed = machine.assumed.iter().map(|assumed| {
        json!({
            "parameter": assumed.parameter,
            "value": assumed.value,
            "why": assumed.why,
            "range": assumed.range.as_ref().map(config::Range::document),
        })
    });
    json!({
        "name": machine.name,
        "source": machine.source,
        "toml": machine.to_toml(),
        "capacity_bytes": machine.capacity_bytes(),
        "parameters": machine.parameters(),
        "assumed": assumed.collect::<Vec<_>>(),
    })
}
