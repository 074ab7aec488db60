//! Same-page merging for Python: a question in, all its runs out. Answers in JSON.
use pyo3::prelude::*;
use sardonyx_merge::algorithms;
use sardonyx_merge::images::mixes::{self, Mix};
use sardonyx_merge::question::Question;
use sardonyx_merge::timed;

use crate::progress::Progress;
use crate::{bad, read};

/// Runs merging algorithms over machines.
#[pyfunction]
pub fn merge(py: Python<'_>, question_json: &str, progress: Option<&Progress>) -> PyResult<String> {
    let asked: Question = read(question_json)?;
    let tell = Progress::listener(progress);
    let answer = py.detach(|| asked.answer(&mut |done, total| tell(done, total)));
    let answer = answer.map_err(bad)?.ok_or_else(|| bad("cancelled"))?;
    serde_json::to_string(&answer).map_err(bad)
}

/// What merging costs an application of a machine.
#[pyfunction]
pub fn merge_timed(
    py: Python<'_>,
    question_json: &str,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let question: timed::Question = read(question_json)?;
    let tell = Progress::listener(progress);
    let answer = py.detach(|| question.answer(&mut |done, total| tell(done, total)));
    let answer = answer.map_err(bad)?.ok_or_else(|| bad("cancelled"))?;
    Ok(answer.to_string())
}

/// An error unless that question can be answered.
#[pyfunction]
pub fn check_merge_timed(question_json: &str) -> PyResult<()> {
    read::<timed::Question>(question_json)?.check().map_err(bad)
}

/// The keys of that question that are no machine's, as JSON: `settings` and `assumed`.
#[pyfunction]
pub fn merge_timed_keys(question_json: &str) -> PyResult<String> {
    let question = read::<timed::Question>(question_json)?;
    Ok(question.keys().map_err(bad)?.to_string())
}

/// The merging algorithms as JSON: what each is, whether it merges, and the keys that it declares.
#[pyfunction]
pub fn merge_algorithms() -> String {
    let all = algorithms::built_in().map(|known| {
        let rows = (known.keys)().into_iter().chain((known.timed_keys)());
        serde_json::json!({
            "name": known.name,
            "line": known.line,
            "source": known.source,
            "merges": known.merges.is_some(),
            "keys": rows.map(|row| row.name).collect::<Vec<_>>(),
        })
    });
    serde_json::Value::Array(all.collect()).to_string()
}

/// The names of the mixes that can be generated.
#[pyfunction]
pub fn merge_mixes() -> Vec<&'static str> {
    Mix::ALL.map(Mix::name).to_vec()
}

/// A snapshot of a generated machine: `pages` pages of a mix at a pass, from 1.
#[pyfunction]
pub fn merge_snapshot(py: Python<'_>, mix: &str, pages: u64, pass: u64) -> PyResult<Vec<u8>> {
    let mix = mixes::Mix::ALL
        .into_iter()
        .find(|known| known.name() == mix);
    let mix = mix.ok_or_else(|| bad(format!("a mix is one of {}", merge_mixes().join(", "))))?;
    Ok(py.detach(|| mix.snapshot(pages, pass)))
}
