//! Traces for Python: look at one, check, convert, generate and cut. All answer in JSON.
//! Each call releases the interpreter's lock and tells its progress; a cancelled one unwinds.
//! Left out: any logic; `sardonyx::trace` has it.
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::str::FromStr;
use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use sardonyx::trace::{self, Format, ImportOptions, Source, Spec, Synth, TraceError};
use serde_json::json;

use crate::SardonyxError;
use crate::programs;
use crate::progress::Progress;

/// What marks a generated trace where a path may stand.
const SYNTH: &str = "synth:";
/// The name of our own format in a conversion.
const OWN_FORMAT: &str = "sardonyx";

/// Carried by the unwinding of a call that somebody cancelled.
struct Cancelled;

type Told<'a> = &'a mut dyn FnMut(u64, u64);

fn bad(error: impl std::fmt::Display) -> PyErr {
    SardonyxError::new_err(error.to_string())
}

/// `work` without the interpreter's lock, its progress told to `progress`.
fn detached<T: Send>(
    py: Python<'_>,
    progress: Option<&Progress>,
    work: impl FnOnce(Told<'_>) -> Result<T, TraceError> + Send,
) -> PyResult<T> {
    let counts = progress.map(|progress| progress.counts.clone());
    let mut tell = move |done, total| {
        let Some(counts) = &counts else { return };
        counts.done.store(done, Ordering::Relaxed);
        counts.total.store(total, Ordering::Relaxed);
        if counts.cancelled.load(Ordering::Relaxed) {
            resume_unwind(Box::new(Cancelled));
        }
    };
    // What unwinds is dropped here: nothing half-done is looked at again.
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(|| work(&mut tell))));
    match outcome {
        Ok(result) => result.map_err(bad),
        Err(panic) => Err(cancelled(panic)),
    }
}

fn cancelled(panic: Box<dyn Any + Send>) -> PyErr {
    match panic.downcast::<Cancelled>() {
        Ok(_) => bad("cancelled"),
        Err(bug) => resume_unwind(bug),
    }
}

/// A trace file, or `synth:NAME[:RECORDS[:SEED]]` for a rung of the locality ladder.
pub fn source(name: &str, limit: Option<u64>) -> PyResult<Source> {
    let source = match name.strip_prefix(SYNTH) {
        None => Source::open(name).map_err(bad)?,
        Some(rung) => Source::from(generator(name, rung)?),
    };
    Ok(match limit {
        Some(limit) => source.limit(limit),
        None => source,
    })
}

fn generator(whole: &str, rung: &str) -> PyResult<Synth> {
    let number = |text: Option<&str>| {
        text.map(u64::from_str).transpose().map_err(|_| {
            bad(format!(
                "{whole}: is not of the form {SYNTH}NAME[:RECORDS[:SEED]]; give numbers"
            ))
        })
    };
    let mut parts = rung.splitn(3, ':');
    let name = parts.next().unwrap_or_default();
    let (records, seed) = (number(parts.next())?, number(parts.next())?);
    let ladder = trace::locality_ladder();
    let names = || {
        ladder
            .iter()
            .map(|spec| spec.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let Some(spec) = ladder.iter().find(|spec| spec.name == name) else {
        return Err(bad(format!(
            "{whole}: there is no generator `{name}`; known: {}",
            names()
        )));
    };
    let records = records.unwrap_or(spec.records);
    Synth::new(
        Spec {
            records,
            ..spec.clone()
        },
        seed.unwrap_or(0),
    )
    .map_err(bad)
}

fn answer(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(bad)
}

/// What is in a trace.
#[pyfunction]
#[pyo3(signature = (trace, limit, progress))]
pub fn trace_info(
    py: Python<'_>,
    trace: &str,
    limit: Option<u64>,
    progress: Option<&Progress>,
) -> PyResult<String> {
    if let Some(spec) = programs::spec(trace)? {
        return answer(&programs::info(&spec));
    }
    let source = source(trace, limit)?;
    answer(&detached(py, progress, |tell| trace::info(source, tell))?)
}

/// Every row of a trace looked at.
#[pyfunction]
#[pyo3(signature = (path, max_problems, progress))]
pub fn trace_check(
    py: Python<'_>,
    path: &str,
    max_problems: usize,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let check = |tell: Told<'_>| trace::check(path, max_problems, u64::MAX, tell);
    answer(&detached(py, progress, check)?)
}

/// Another simulator's trace to ours, or ours to NVMain's.
#[pyfunction]
#[pyo3(signature = (src, dst, from_format, to_format, data, seed, clock_mhz, levels, progress))]
#[allow(clippy::too_many_arguments)] // Python's keywords, not positions to remember
pub fn trace_convert(
    py: Python<'_>,
    src: &str,
    dst: &str,
    from_format: &str,
    to_format: &str,
    data: &str,
    seed: u64,
    clock_mhz: Option<f64>,
    levels: Option<Vec<u64>>,
    progress: Option<&Progress>,
) -> PyResult<String> {
    match (from_format, to_format) {
        (OWN_FORMAT, "nvmain") => {
            let source = source(src, None)?;
            let export = |tell: Told<'_>| trace::export_nvmain(source, dst, tell);
            let exported = detached(py, progress, export)?;
            let (records, left_out) = (exported.requests, exported.left_out);
            Ok(json!({"records": records, "left_out": left_out}).to_string())
        }
        (foreign, OWN_FORMAT) if foreign != OWN_FORMAT => {
            let format: Format = foreign.parse().map_err(bad)?;
            let fill = data.parse().map_err(bad)?;
            let defaults = ImportOptions::default();
            let options = ImportOptions {
                fill,
                seed,
                clock_mhz,
                levels: levels.unwrap_or(defaults.levels),
                ..ImportOptions::default()
            };
            let import = |tell: Told<'_>| trace::import(src, dst, format, &options, tell);
            Ok(json!({"records": detached(py, progress, import)?}).to_string())
        }
        _ => Err(bad(format!(
            "{src}: {from_format} cannot become {to_format}; one of the two must be {OWN_FORMAT}, \
             and it can become nvmain only"
        ))),
    }
}

/// A trace with stated statistics.
#[pyfunction]
#[pyo3(signature = (spec_json, dst, seed, progress))]
pub fn trace_synth(
    py: Python<'_>,
    spec_json: &str,
    dst: &str,
    seed: u64,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let spec: Spec = serde_json::from_str(spec_json).map_err(|error| {
        bad(format!(
            "the specification: {error}; see docs/trace-format.md"
        ))
    })?;
    let synth = |tell: Told<'_>| trace::synth_to_file(spec, seed, dst, tell);
    Ok(json!({"records": detached(py, progress, synth)?}).to_string())
}

/// A stretch of a trace.
#[pyfunction]
#[pyo3(signature = (src, dst, skip, limit, progress))]
pub fn trace_cut(
    py: Python<'_>,
    src: &str,
    dst: &str,
    skip: u64,
    limit: Option<u64>,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let limit = limit.unwrap_or(u64::MAX);
    let cut = |tell: Told<'_>| trace::cut(src, dst, skip, limit, tell);
    Ok(json!({"records": detached(py, progress, cut)?}).to_string())
}

/// Traces of several programs as one.
#[pyfunction]
#[pyo3(signature = (sources, dst, progress))]
pub fn trace_mix(
    py: Python<'_>,
    sources: Vec<String>,
    dst: &str,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let mix = |tell: Told<'_>| trace::mix(&sources, dst, tell);
    Ok(json!({"records": detached(py, progress, mix)?}).to_string())
}

/// The specifications of the locality ladder.
#[pyfunction]
pub fn ladder() -> PyResult<String> {
    answer(&trace::locality_ladder())
}
