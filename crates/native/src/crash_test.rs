//! Crash tests of real programs for Python: a recording, the program's recovery, every cut. Answers in JSON.
use pyo3::prelude::*;
use sardonyx::config::Machine;
use sardonyx_crash::Readable;
use sardonyx_crash_test::question::{self, Question};
use sardonyx_crash_test::recording::orders;
use sardonyx_crash_test::report::report;
use sardonyx_crash_test::search::explore;
use sardonyx_crash_test_designs::{OnReads, below};

use sardonyx_crash_test::recording::Recording;
use sardonyx_crash_test::recording::lint;
use sardonyx_crash_test::recording::platform::Platform;
use sardonyx_crash_test::recovery::Recovery;
use serde_json::json;
use std::path::{Path, PathBuf};

use crate::progress::Progress;
use crate::{bad, read};

/// Runs the recovery on what each cut of the recording could leave.
#[pyfunction]
pub fn crash_test(
    py: Python<'_>,
    question_json: &str,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let question: Question = read(question_json)?;
    let tell = Progress::listener(progress);
    let interrupt = Progress::interrupt(progress);
    let answer = py.detach(|| {
        explore::explore(&question, &interrupt, &tell).map(|explored| report(&question, &explored))
    });
    Ok(answer.map_err(bad)?.to_string())
}

/// Other orders of the recording's threads that are worth a try, at most so many, from a row on: their names.
#[pyfunction]
pub fn crash_orders(
    py: Python<'_>,
    question_json: &str,
    from_row: u64,
    most: usize,
    progress: Option<&Progress>,
) -> PyResult<Vec<String>> {
    let question: Question = read(question_json)?;
    let interrupt = Progress::interrupt(progress);
    let answer = py.detach(|| {
        let platform = Platform::named(&question.platform).unwrap_or(Platform::Adr);
        let recording = question.opened(platform, &interrupt)?;
        orders::orders(&recording, from_row, most, question.wants_acks())
    });
    let orders = answer.map_err(bad)?;
    Ok(orders.iter().map(orders::HeldThreads::name).collect())
}

/// What a recording shows without running anything. Into `folder`, if there is one, come three short recordings: `all`, one without idle
/// `flushes`, one without idle `fences`.
#[pyfunction]
pub fn crash_lint(
    py: Python<'_>,
    recording: &str,
    pools: Vec<PathBuf>,
    source: bool,
    folder: Option<&str>,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let interrupt = Progress::interrupt(progress);
    let answer = py.detach(|| {
        let recording = Recording::open(Path::new(recording), &pools, &interrupt)?;
        let linted = lint::lint(&recording, source)?;
        let [flushes, fences] = &linted.idle;
        if let Some(folder) = folder.map(Path::new) {
            lint::without(&recording, &Default::default(), &folder.join("all.parquet"))?;
            lint::without(&recording, flushes, &folder.join("flushes.parquet"))?;
            lint::without(&recording, fences, &folder.join("fences.parquet"))?;
        }
        let idle = json!({"flushes": flushes.len(), "fences": fences.len()});
        let (stores, flushes, fences) = linted.of;
        Ok::<_, sardonyx_crash_test::CrashTestError>(json!({
            "pool": recording.called(), "stores": stores, "flushes": flushes, "fences": fences,
            "findings": linted.findings, "idle": idle, "notes": recording.notes,
            "has_places": !recording.sites.is_empty(),
        }))
    });
    Ok(answer.map_err(bad)?.to_string())
}

/// What of a recorded pool can be read after cuts below a design, from a row of the recording on; and with how many of one cut in
/// `every` the question's recovery copes, each given
/// so many seconds: `start` and `cuts` are these two pairs.
#[pyfunction]
pub fn crash_designs(
    py: Python<'_>,
    question_json: &str,
    start: (u64, f64),
    machine: &str,
    designs: Vec<String>,
    cuts: (u64, u64),
    progress: Option<&Progress>,
) -> PyResult<String> {
    let question: Question = read(question_json)?;
    let interrupt = Progress::interrupt(progress);
    let ((row, seconds), (cuts, every)) = (start, cuts);
    let answer = py.detach(|| {
        let recording = question.opened(Platform::Adr, &interrupt)?;
        let recovery = Recovery {
            time: question::seconds("the recovery's time limit", seconds)?,
            ..(question.options).recovery(question.recover.clone(), &interrupt)?
        };
        let runner = OnReads::new(&recovery, &recording, every)?;
        let machine = Machine::load::<&str, &str>(machine, &[])
            .map_err(|e| sardonyx_crash_test::CrashTestError::Request(e.to_string()))?;
        let start = recording.events.before(row);
        let mut all = Vec::new();
        for design in &designs {
            interrupt.check()?;
            let shown = below(&recording, &machine, design, start, cuts, Some(&runner))?;
            let told = |readable: &Readable| {
                let lost = readable.unreadable.iter();
                json!({
                    "cuts": readable.unreadable.len(), "lines": readable.lines,
                    "cuts_with_unreadable": lost.clone().filter(|&&lines| lines > 0).count(),
                    "most_unreadable": lost.clone().max(),
                    "unreadable": readable.unreadable,
                    "writes": readable.writes, "nanoseconds": readable.nanoseconds,
                })
            };
            all.push(json!({
                "design": design, "plain": told(&shown.plain), "marked": told(&shown.marked), "marks": shown.marks,
                "recovered": shown.recovered,
            }));
        }
        Ok::<_, sardonyx_crash_test::CrashTestError>(json!({"designs": all}))
    });
    Ok(answer.map_err(bad)?.to_string())
}
