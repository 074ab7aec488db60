//! A memory under a steady load, for Python: one point of a curve. Answers in JSON.
use pyo3::prelude::*;
use sardonyx::config::Machine;
use sardonyx::latency::Latencies;
use sardonyx::machine::accesses::{self, Operation, Order};
use sardonyx::machine::curve::{self, Pattern, SteadyLoad};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::layers::settled;
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
    let ran = py.detach(|| {
        let machine = Machine::load(&asked.machine, &asked.overrides).map_err(bad)?;
        fits(&machine, asked.bytes)?;
        let load = SteadyLoad {
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
    });
    settled(&asked.design, ran)
}

/// A load of threads on a design of a machine with some of its keys set: `operation` and `order` by name, accesses of
/// `access_bytes` each, of every thread `outstanding` lines under way at most. `bytes` are touched, at most.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessesQuestion {
    design: String,
    machine: String,
    #[serde(default)]
    overrides: Vec<(String, String)>,
    operation: String,
    order: String,
    threads: usize,
    access_bytes: u64,
    outstanding: usize,
    shuffled: bool,
    fenced: bool,
    bytes: u64,
    requests: u64,
    seed: u64,
}

/// Bandwidth, latencies and write amplification under one load of threads.
#[pyfunction]
pub fn accesses_point(py: Python<'_>, question_json: &str) -> PyResult<String> {
    let asked: AccessesQuestion = read(question_json)?;
    let ran = py.detach(|| {
        let machine = Machine::load(&asked.machine, &asked.overrides).map_err(bad)?;
        fits(&machine, asked.bytes)?;
        let operation = Operation::ALL.into_iter().find(|known| known.name() == asked.operation);
        let order = Order::ALL.into_iter().find(|known| known.name() == asked.order);
        let (Some(operation), Some(order)) = (operation, order) else {
            return Err(bad(format!(
                "{} in the order {}: operations are read, write and store, orders sequential, random and halves",
                asked.operation, asked.order
            )));
        };
        let (access, lines) = (asked.access_bytes / 64, asked.bytes / 64);
        let share = lines / asked.threads.max(1) as u64;
        if access == 0 || asked.threads == 0 || share < access || asked.outstanding == 0 {
            return Err(bad(format!(
                "{} threads with accesses of {} bytes in {} bytes: give each thread a line under way and room for an access",
                asked.threads, asked.access_bytes, asked.bytes
            )));
        }
        let load = accesses::Load {
            operation,
            order,
            threads: asked.threads,
            access,
            outstanding: asked.outstanding,
            shuffled: asked.shuffled,
            fenced: asked.fenced,
            lines,
            requests: asked.requests,
            seed: asked.seed,
        };
        let point = accesses::point(&machine, &asked.design, &load).map_err(bad)?;
        let lines = machine.engine.medium.buffer.map_or(1, |buffer| buffer.lines);
        let amplification = point.blocks.and_then(|(written, blocks)| {
            (written > 0).then(|| (blocks.writes * lines) as f64 / written as f64)
        });
        Ok(json!({
            "bytes_per_second": point.bytes_per_second,
            "line": times(&point.line),
            "access": times(&point.access),
            "blocks_read": point.blocks.map(|blocks| blocks.1.reads),
            "blocks_written": point.blocks.map(|blocks| blocks.1.writes),
            "write_amplification": amplification,
        })
        .to_string())
    });
    settled(&asked.design, ran)
}

fn fits(machine: &Machine, bytes: u64) -> PyResult<()> {
    if bytes > machine.capacity_bytes() {
        return Err(bad(format!(
            "{}: {bytes} bytes are to be touched, and it holds {}; give fewer",
            machine.name,
            machine.capacity_bytes()
        )));
    }
    Ok(())
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
