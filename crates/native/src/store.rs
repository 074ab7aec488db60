//! Deduplicating stores for Python: one design on one workload. Answers in JSON.
//! Left out: any logic; `sardonyx_store` has it.
use pyo3::prelude::*;
use sardonyx_store::{Asked, Comparison, DESIGNS, Question};

use crate::progress::Progress;
use crate::{bad, read};

/// Every design: its name, its keys, what is assumed, its figures.
#[pyfunction]
pub fn store_designs() -> PyResult<String> {
    serde_json::to_string(DESIGNS).map_err(bad)
}

/// All keys of a design that is asked for with their values, as pairs; an error if one makes no sense.
#[pyfunction]
pub fn store_keys(design_json: &str) -> PyResult<String> {
    let asked: Asked = read(design_json)?;
    let keys = asked.keys().map_err(bad)?;
    serde_json::to_string(keys.shown()).map_err(bad)
}

/// The runs of a comparison, a question each.
#[pyfunction]
pub fn store_runs(asked: &str) -> PyResult<String> {
    let runs = read::<Comparison>(asked)?.runs().map_err(bad)?;
    serde_json::to_string(&runs).map_err(bad)
}

/// Runs a question.
#[pyfunction]
pub fn store(py: Python<'_>, question_json: &str, progress: Option<&Progress>) -> PyResult<String> {
    let question: Question = read(question_json)?;
    let tell = Progress::listener(progress);
    let answer = py.detach(|| question.answer(&tell)).map_err(bad)?;
    Ok(answer.to_string())
}

/// An error unless a question can be answered.
#[pyfunction]
pub fn check_store(question_json: &str) -> PyResult<()> {
    read::<Question>(question_json)?.check().map_err(bad)
}
