//! Traces for Python: look at one, check, convert, generate and cut. All answer in JSON.
//! Each call releases the interpreter's lock and tells its progress; a cancelled one unwinds.
//! Left out: any logic; `sardonyx::trace` has it.
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pyo3::prelude::*;
use sardonyx::ecc::FINGERPRINTS;
use sardonyx::trace::{self, ImportOptions, Spec, TraceError};
use serde_json::json;

use crate::asked::traces::TraceConvert;
use crate::progress::Progress;
use crate::sources::Source;
use crate::{bad, read};

/// The payload of the unwinding of a call that the user cancelled.
struct Cancelled;

type ProgressCallback<'a> = &'a mut dyn FnMut(u64, u64);

/// Runs `work` without the interpreter's lock, and passes its progress to `progress`.
fn detached<T: Send>(
    py: Python<'_>,
    progress: Option<&Progress>,
    work: impl FnOnce(ProgressCallback<'_>) -> Result<T, TraceError> + Send,
) -> PyResult<T> {
    let listener = Progress::listener(progress);
    let mut tell = move |done, total| {
        if !listener(done, total) {
            resume_unwind(Box::new(Cancelled));
        }
    };
    // The state that the unwinding leaves is dropped here, so nothing half-done is read again.
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(|| work(&mut tell))));
    match outcome {
        Ok(result) => result.map_err(bad),
        Err(panic) if panic.is::<Cancelled>() => Err(bad("cancelled")),
        Err(bug) => resume_unwind(bug),
    }
}

fn answer(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(bad)
}

/// What is in a source.
#[pyfunction]
pub fn trace_info(
    py: Python<'_>,
    source_json: &str,
    progress: Option<&Progress>,
) -> PyResult<String> {
    match read(source_json)? {
        Source::Program(program) => Ok(program.info()?.to_string()),
        mix @ Source::Mix(_) => {
            let each = mix.members().iter().map(|one| {
                let source = one.open()?;
                Ok((source.name().to_owned(), source.requests().map_err(bad)?))
            });
            let each = each.collect::<PyResult<Vec<_>>>()?;
            let requests: u64 = each.iter().map(|(_, requests)| requests).sum();
            let names: Vec<String> = each.into_iter().map(|(name, _)| name).collect();
            Ok(json!({"mix": names, "requests": requests}).to_string())
        }
        source => {
            let source = source.open()?;
            answer(&detached(py, progress, |tell| {
                trace::info(source, &FINGERPRINTS, tell)
            })?)
        }
    }
}

/// Every row of a trace looked at.
#[pyfunction]
pub fn trace_check(
    py: Python<'_>,
    path: &str,
    max_problems: usize,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let check = |tell: ProgressCallback<'_>| trace::check(path, max_problems, u64::MAX, tell);
    answer(&detached(py, progress, check)?)
}

/// Another simulator's trace to ours, ours to another's, or ours written again.
#[pyfunction]
pub fn trace_convert(py: Python<'_>, asked: &str, progress: Option<&Progress>) -> PyResult<String> {
    let asked: TraceConvert = read(asked)?;
    let (src, dst) = (&asked.source, &*asked.target);
    match asked.formats().map_err(bad)? {
        (None, None) => {
            let copy = |tell: ProgressCallback<'_>| trace::copy(src, dst, tell);
            Ok(json!({"records": detached(py, progress, copy)?}).to_string())
        }
        (Some(foreign), _) => {
            let mut options = ImportOptions {
                fill: asked.fill().map_err(bad)?,
                seed: asked.seed,
                clock_mhz: asked.clock_mhz,
                ..ImportOptions::default()
            };
            options.levels = asked.levels().map_err(bad)?.unwrap_or(options.levels);
            let import =
                |tell: ProgressCallback<'_>| trace::import(src, dst, foreign, &options, tell);
            answer(&detached(py, progress, import)?)
        }
        (None, Some(foreign)) => {
            let source = trace::Source::open(src).map_err(bad)?;
            let export = |tell: ProgressCallback<'_>| trace::export(source, dst, foreign, tell);
            let exported = detached(py, progress, export)?;
            let (records, left_out) = (exported.requests, exported.left_out);
            Ok(json!({"records": records, "left_out": left_out}).to_string())
        }
    }
}

/// A trace with stated statistics.
#[pyfunction]
pub fn trace_synth(
    py: Python<'_>,
    spec_json: &str,
    dst: &str,
    seed: u64,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let spec: Spec = serde_json::from_str(spec_json).map_err(|error| {
        bad(format!(
            "the specification: {error}; see docs/simulator/trace-format.md"
        ))
    })?;
    let synth = |tell: ProgressCallback<'_>| trace::synth_to_file(spec, seed, dst, tell);
    Ok(json!({"records": detached(py, progress, synth)?}).to_string())
}

/// A stretch of a trace.
#[pyfunction]
pub fn trace_cut(
    py: Python<'_>,
    src: &str,
    dst: &str,
    skip: u64,
    limit: Option<u64>,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let limit = limit.unwrap_or(u64::MAX);
    let cut = |tell: ProgressCallback<'_>| trace::cut(src, dst, skip, limit, tell);
    Ok(json!({"records": detached(py, progress, cut)?}).to_string())
}

/// Traces of several programs as one.
#[pyfunction]
pub fn trace_mix(
    py: Python<'_>,
    sources: Vec<String>,
    dst: &str,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let mix = |tell: ProgressCallback<'_>| trace::mix(&sources, dst, tell);
    Ok(json!({"records": detached(py, progress, mix)?}).to_string())
}

/// The specifications of the locality ladder.
#[pyfunction]
pub fn ladder() -> PyResult<String> {
    answer(&trace::locality_ladder())
}
