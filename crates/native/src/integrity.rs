//! The schemes of integrity for Python: what each promises, and the room that it takes. Answers in JSON.

use pyo3::prelude::*;
use sardonyx::config::Machine;
use sardonyx::controller::designs::{self, Stack};
use sardonyx::line::LINE_BYTES;
use sardonyx::medium::layout::Layout;
use sardonyx_crash::{Attack, Filled, restart};
use serde_json::{Value, json};

use crate::bad;

/// A recovery is tried on at most this many lines: more do not fit in a host's memory.
const MOST_LINES: u64 = 1 << 24;

/// Every scheme: `name`; `line`, what a power cut finds of it; of each attack whether it `refuses` that.
#[pyfunction]
pub fn integrities() -> String {
    let schemes = designs::integrities().map(|scheme| {
        let refuses = Attack::ALL.map(|kind| (kind.name(), kind.is_refused_by(scheme.promises)));
        let refuses: serde_json::Map<String, Value> = refuses
            .into_iter()
            .map(|(kind, refused)| (kind.to_owned(), refused.into()))
            .collect();
        json!({"name": scheme.about.name, "line": scheme.about.cut, "refuses": refuses})
    });
    Value::from(schemes.collect::<Vec<Value>>()).to_string()
}

/// The room that the integrity of `design` takes on `machine`: bytes of the medium by region in `regions`,
/// `register_bytes` that a power cut keeps and `cache_bytes` on chip; beside `data_bytes`.
#[pyfunction]
pub fn integrity_room(
    design: &str,
    machine: &str,
    overrides: Vec<(String, String)>,
) -> PyResult<String> {
    let machine = Machine::load(machine, &overrides).map_err(bad)?;
    let stack = Stack::under(design, &machine.settings).map_err(bad)?;
    let mut layout = Layout::new(machine.engine.medium.geometry.lines());
    stack.build(&machine.settings, &mut layout);
    let plain = design.split('@').next().expect("there is a first part");
    let mut without = Layout::new(machine.engine.medium.geometry.lines());
    let bare = Stack::named(&format!("{plain}@none")).map_err(bad)?;
    bare.build(&machine.settings, &mut without);
    let kept = stack
        .integrity
        .power_fail
        .map(|make| make(&machine.settings, &layout));
    let register = kept.as_ref().and_then(|kept| kept.on_chip());
    let own = layout.regions().iter().filter(|region| {
        without.region(region.name).is_none()
            && register.is_none_or(|register| register.name != region.name)
    });
    let line = LINE_BYTES as u64;
    let regions: serde_json::Map<String, Value> = own
        .map(|region| (region.name.to_owned(), (region.lines * line).into()))
        .collect();
    let caches = stack.integrity.about.keys.iter();
    let caches = caches.filter_map(|key| key.cache());
    let caches = caches.map(|key| machine.settings.cache(key).bytes);
    Ok(json!({
        "data_bytes": layout.data_lines() * line,
        "regions": regions,
    "register_bytes": (stack.integrity.registers)(&machine.settings),
        "cache_bytes": caches.sum::<u64>(),
    })
    .to_string())
}

/// What the recovery of the integrity of `design` does after a cut, counted in the recovery itself: `reads` and
/// `writes` of lines, `hashes`, and `time_ns` by the engine on `machine`. The medium has `lines` lines of data;
/// `written` of them were written and all was written back, and then `since` lines drawn among them; `dirty` lines
/// of what integrity keeps had not been written back.
#[pyfunction]
pub fn integrity_recovery(
    py: Python<'_>,
    design: &str,
    machine: &str,
    overrides: Vec<(String, String)>,
    lines: u64,
    written: u64,
    since: u64,
) -> PyResult<String> {
    let machine = Machine::load(machine, &overrides).map_err(bad)?;
    if written > lines || lines > MOST_LINES {
        return Err(bad(format!(
            "{written} of {lines} lines: a recovery is tried on up to {MOST_LINES} lines, of which all can be written"
        )));
    }
    let filled = Filled {
        lines,
        written,
        since,
    };
    let found = py
        .detach(|| restart(&machine, design, filled))
        .map_err(bad)?;
    Ok(json!({
        "lines": lines,
        "written": written,
        "since": since,
        "reads": found.reads,
        "hashes": found.hashes,
        "writes": found.writes,
        "time_ns": found.time.ns(),
        "dirty": found.dirty,
        "refused": found.refused,
    })
    .to_string())
}
