//! Crash tests of programs that write files for Python. Answers in JSON.
use std::path::PathBuf;
use std::sync::Mutex;

use pyo3::prelude::*;
use sardonyx_crash_files::file_system::FileSystem;
use sardonyx_crash_files::membership::Membership;
use sardonyx_crash_files::question::Question;
use sardonyx_crash_files::recording::RecordedRun;
use sardonyx_crash_files::report::{list, report};
use sardonyx_crash_files::search::explore::explore;
use sardonyx_crash_files::tree::FileTree;
use sardonyx_crash_test::interrupt::Interrupt;

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

/// A recorded run, to be held against folders that real cuts left.
#[pyclass(frozen)]
pub struct RecordedFiles {
    run: RecordedRun,
    left: Mutex<Vec<([u8; 32], FileTree)>>,
}

#[pymethods]
impl RecordedFiles {
    #[new]
    fn new(py: Python<'_>, question_json: &str) -> PyResult<RecordedFiles> {
        let question: Question = read(question_json)?;
        let interrupt = Interrupt::default();
        let tell = |_, _| true;
        let explored = py.detach(|| explore(&question, &interrupt, &tell));
        let left = Mutex::default();
        Ok(RecordedFiles {
            run: explored.map_err(bad)?.recording,
            left,
        })
    }

    /// What each operation is, for people.
    #[getter]
    fn operations(&self) -> Vec<String> {
        let operations = self.run.operations.iter();
        operations.map(|one| one.shown.clone()).collect()
    }

    /// The cut after each acknowledgement.
    #[getter]
    fn acknowledged(&self) -> Vec<u32> {
        let cuts = self.run.operations.iter().zip(1..);
        let acknowledged = cuts.filter(|(one, _)| one.acknowledges());
        acknowledged.map(|(_, cut)| cut).collect()
    }

    /// What the recorder cannot answer for: a path that it does not explain, and how the program ended badly.
    #[getter]
    fn doubts(&self) -> Vec<String> {
        let mut doubts: Vec<String> = self.run.notes.clone();
        doubts.extend(self.run.unexplained.clone());
        if self.run.ended != sardonyx_crash_test::recovery::ending::Ended::Status(0) {
            doubts.push(self.run.ended.to_string());
        }
        doubts
    }

    /// Reads a folder that a cut has left; equal ones have one number.
    fn read(&self, py: Python<'_>, folder: PathBuf) -> PyResult<usize> {
        let read = py.detach(|| FileTree::read(&folder, &Interrupt::default()));
        let (tree, _) = read.map_err(bad)?;
        let hash = tree.hash().into();
        let mut left = self.left.lock().map_err(bad)?;
        let known = left.iter().position(|known| known.0 == hash);
        Ok(known.unwrap_or_else(|| {
            left.push((hash, tree));
            left.len() - 1
        }))
    }

    /// For each folder that was read, whether the model leaves it at this cut; None: it has too many ways.
    fn leaves(&self, py: Python<'_>, platform: &str, cut: u32) -> PyResult<Vec<Option<bool>>> {
        let left = self.left.lock().map_err(bad)?;
        let model = self.model(platform)?;
        Ok(py.detach(|| {
            left.iter()
                .map(|(_, tree)| model.leaves(cut, tree))
                .collect()
        }))
    }

    /// How many folders the model leaves at this cut, and how many of those are among some that were read; None if more
    /// than `most`.
    fn count(
        &self,
        py: Python<'_>,
        platform: &str,
        cut: u32,
        reached: Vec<usize>,
        most: usize,
    ) -> PyResult<Option<(usize, usize)>> {
        let left = self.left.lock().map_err(bad)?;
        let model = self.model(platform)?;
        Ok(py.detach(|| {
            let all = model.all(cut, most)?;
            let met = reached
                .iter()
                .filter(|&&one| left.get(one).is_some_and(|one| all.contains(&one.0)));
            Some((all.len(), met.count()))
        }))
    }
}

impl RecordedFiles {
    fn model(&self, platform: &str) -> PyResult<Membership<'_>> {
        let known = FileSystem::named(platform);
        let known = known.ok_or_else(|| bad(format!("{platform}: is no file system")))?;
        Ok(Membership::new(
            &self.run.start,
            &self.run.operations,
            known,
        ))
    }
}
