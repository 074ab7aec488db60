//! What deduplication would save, for Python.
use pyo3::prelude::*;
use sardonyx_estimate::{Question, estimate, plan};
use serde::Serialize;

use crate::progress::Progress;
use crate::{bad, read};

/// What is known of a `sardonyx_estimate::Question` before anything is read.
#[pyfunction]
pub fn store_plan(py: Python<'_>, question_json: &str) -> PyResult<String> {
    let question: Question = read(question_json)?;
    written(&py.detach(|| plan(&question)).map_err(bad)?)
}

/// Reads everything and counts.
#[pyfunction]
pub fn store_estimate(
    py: Python<'_>,
    question_json: &str,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let question: Question = read(question_json)?;
    let tell = Progress::listener(progress);
    written(&py.detach(|| estimate(&question, &tell)).map_err(bad)?)
}

fn written(answer: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(answer).map_err(bad)
}
