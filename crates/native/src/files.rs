//! Crash tests of programs that write files for Python. Answers in JSON.
use pyo3::prelude::*;
use sardonyx_crash_files::question::Question;
use sardonyx_crash_files::report::{list, report};
use sardonyx_crash_files::search::explore::explore;

use crate::progress::Progress;
use crate::{bad, read};

/// Runs a program, and its recovery on what each cut could leave of a folder; without a recovery, lists what it did.
#[pyfunction]
pub fn crash_files(
    py: Python<'_>,
    question_json: &str,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let question: Question = read(question_json)?;
    let tell = Progress::listener(progress);
    let interrupt = Progress::interrupt(progress);
    let answer = py.detach(|| {
        let explored = explore(&question, &interrupt, &tell)?;
        let mut told = report(&explored);
        if question.recover.is_empty() {
            told["list"] = list(&explored);
        }
        Ok::<_, sardonyx_crash_test::CrashTestError>(told)
    });
    Ok(answer.map_err(bad)?.to_string())
}
