//! A memory under a steady load, for Python: one point of a curve. Answers in JSON.
use pyo3::prelude::*;
use sardonyx::config::Machine;
use sardonyx::latency::Latencies;
use sardonyx::machine::curve::{self, Load, Pattern};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{bad, read};

/// A load on a design of a machine with some of its keys set. Of 1,000 requests `reads_per_mille` are reads;
/// they come at `bytes_per_second`, or as fast as they are answered if that is null, with `outstanding` of them
/// at most. `streams` of 0 draws any line; else so many streams of lines follow one another. `bytes` are
/// touched, at most.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CurveQuestion {
    design: String,
    machine: String,
    #[serde(default)]
    overrides: Vec<(String, String)>,
    reads_per_mille: u32,
    #[serde(default)]
    bytes_per_second: Option<f64>,
    outstanding: usize,
    streams: u32,
    bytes: u64,
    requests: u64,
    seed: u64,
}

/// Bandwidth and latencies at one load.
#[pyfunction]
pub fn curve_point(py: Python<'_>, question_json: &str) -> PyResult<String> {
    let asked: CurveQuestion = read(question_json)?;
    py.detach(|| {
        let machine = Machine::load(&asked.machine, &asked.overrides).map_err(bad)?;
        if asked.bytes > machine.capacity_bytes() {
            return Err(bad(format!(
                "{}: {} bytes are to be touched, and it holds {}; give fewer",
                machine.name,
                asked.bytes,
                machine.capacity_bytes()
            )));
        }
        let load = Load {
            reads_per_mille: asked.reads_per_mille,
            interval_ps: asked.bytes_per_second.map_or(0.0, |rate| 64e12 / rate),
            outstanding: asked.outstanding,
            pattern: match asked.streams {
                0 => Pattern::Random,
                streams => Pattern::Streams(streams),
            },
            lines: asked.bytes / 64,
            requests: asked.requests,
            seed: asked.seed,
        };
        let point = curve::point(&machine, &asked.design, &load).map_err(bad)?;
        Ok(json!({
            "bytes_per_second": point.bytes_per_second,
            "outstanding": point.outstanding,
            "read": times(&point.reads),
            "write": times(&point.writes),
        })
        .to_string())
    })
}

fn times(latencies: &Latencies) -> Value {
    let ns = |time: Option<sardonyx::units::Time>| time.map(|time| time.ns());
    json!({
        "requests": latencies.count(),
        "mean_ns": latencies.mean_ns(),
        "p50_ns": ns(latencies.p50()),
        "p99_ns": ns(latencies.p99()),
    })
}
