//! What deduplication would save, for Python.
use std::path::PathBuf;

use pyo3::prelude::*;
use sardonyx_estimate::{EstimateError, Request, costs, estimate, plan};
use serde::Serialize;
use serde_json::json;

use crate::progress::Progress;
use crate::{bad, read};

/// What is known of an estimate before anything is read.
#[pyfunction]
pub fn store_plan(py: Python<'_>, asked: &str) -> PyResult<String> {
    let question = read::<Request>(asked)?.question().map_err(bad)?;
    written(&py.detach(|| plan(&question)).map_err(bad)?)
}

/// Reads everything and counts; in `scratch`, an empty folder, the rival is measured.
#[pyfunction]
pub fn store_estimate(
    py: Python<'_>,
    asked: &str,
    scratch: PathBuf,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let question = read::<Request>(asked)?.question().map_err(bad)?;
    let tell = Progress::listener(progress);
    let answer = py.detach(|| {
        let found = estimate(&question, &tell)?;
        let each = found.cuttings.iter().enumerate().map(|(number, cutting)| {
            costs(cutting, found.reads, &scratch.join(number.to_string()))
        });
        let designs = each.collect::<Result<Vec<_>, _>>()?;
        Ok::<_, EstimateError>((found, designs.into_iter().flatten().collect::<Vec<_>>()))
    });
    let (found, designs) = answer.map_err(bad)?;
    written(&json!({"found": found, "designs": designs}))
}

fn written(answer: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(answer).map_err(bad)
}
