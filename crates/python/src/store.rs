//! Deduplicating stores for Python: one design on one workload. Answers in JSON.
//! Left out: any logic; `sardonyx_store` has it.
use pyo3::prelude::*;
use sardonyx_store::Question;

use crate::progress::Progress;
use crate::{bad, read};

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
