//! The effective configuration, as TOML that reads back to the same machine and as a flat map.
//! Timings are written in cycles, with the nanoseconds beside them.
//! Left out: where a file's values came from, except that the assumed ones keep their mark.

use std::fmt::Write;

use serde_json::{Map, Number};

use super::keys;
use super::{Machine, Range};
use crate::medium::near::is_of_medium;
use crate::settings::{Allowed, Value};

pub(super) fn literal(value: Value) -> String {
    match value {
        Value::Int(n) => n.to_string(),
        Value::Time(time) => time.ns().to_string(),
        Value::Energy(energy) => energy.nj().to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Word(word) => format!("\"{word}\""),
    }
}

pub(super) fn toml(machine: &Machine) -> String {
    let mut out = String::new();
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "name = {}", quoted(&machine.name));
    let _ = writeln!(out, "source = {}", quoted(&machine.source));
    let mut section = "";
    for key in keys::all() {
        let Some(value) = machine.settings.find(key.name) else {
            continue;
        };
        let (parent, name) = key.split();
        if parent != section {
            let _ = writeln!(out, "\n[{parent}]");
            section = parent;
            if parent == "medium.geometry" {
                let bytes = machine.capacity_bytes();
                let gib = bytes as f64 / (1u64 << 30) as f64;
                let _ = writeln!(out, "# {bytes} bytes, {gib} GiB");
            }
        }
        let _ = write!(out, "{name} = {}", literal(value));
        let mut notes = Vec::new();
        if let (Allowed::Cycles { .. }, Value::Int(cycles)) = (key.kind, value) {
            let near = machine.engine.near.as_deref();
            let near = near.filter(|_| is_of_medium(key.name));
            let medium = near.unwrap_or(&machine.engine.medium);
            notes.push((medium.timing.clock * cycles).to_string());
        }
        let mut assumed = machine.assumed.iter();
        if assumed.any(|assumed| assumed.parameter == key.name) {
            notes.push("assumed".to_owned());
        }
        if !notes.is_empty() {
            let _ = write!(out, "  # {}", notes.join(", "));
        }
        out.push('\n');
    }
    if !machine.assumed.is_empty() {
        out.push_str("\n[assumed]\n");
        for assumed in &machine.assumed {
            let (parameter, why) = (quoted(&assumed.parameter), quoted(&assumed.why));
            let written = match &assumed.range {
                Some(Range::Between {
                    low,
                    high,
                    why: range,
                    ..
                }) => {
                    format!(
                        "{{ why = {why}, low = {low}, high = {high}, range = {} }}",
                        quoted(range)
                    )
                }
                Some(Range::Inert(inert)) => {
                    format!("{{ why = {why}, inert = {} }}", quoted(inert))
                }
                Some(Range::Others(_)) | None => why,
            };
            let _ = writeln!(out, "{parameter} = {written}");
        }
    }
    out
}

/// A key's value as it stands in an answer: nanoseconds, nanojoules, and words as they are.
pub fn document(value: Value) -> serde_json::Value {
    match value {
        Value::Int(n) => n.into(),
        Value::Time(time) => float(time.ns()),
        Value::Energy(energy) => float(energy.nj()),
        Value::Bool(flag) => flag.into(),
        Value::Word(word) => word.into(),
    }
}

pub(super) fn parameters(machine: &Machine) -> Map<String, serde_json::Value> {
    let pairs = keys::all().filter_map(|key| {
        Some((
            key.name.to_owned(),
            document(machine.settings.find(key.name)?),
        ))
    });
    pairs.collect()
}

fn float(value: f64) -> serde_json::Value {
    Number::from_f64(value).map_or(serde_json::Value::Null, serde_json::Value::Number)
}
