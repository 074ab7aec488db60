//! Crash tests of real programs for Python: a recording, the program's recovery, every cut. Answers in JSON.
use pyo3::prelude::*;
use sardonyx_persist::explore::{self, Question};
use sardonyx_persist::report::report;

use crate::progress::Progress;
use crate::{bad, read};

/// Runs the recovery on what each cut of the recording could leave.
#[pyfunction]
pub fn crash_real(
    py: Python<'_>,
    question_json: &str,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let question: Question = read(question_json)?;
    let tell = Progress::listener(progress);
    let answer = py.detach(|| explore::explore(&question, &tell).map(|e| report(&question, &e)));
    Ok(answer.map_err(bad)?.to_string())
}
