//! The progress of a running simulation: two counters and a flag that any thread may read. The simulation writes,
//! Python polls; neither waits for the other. Left out: how progress is shown, which is Python's.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pyo3::prelude::*;
use sardonyx_crash_test::interrupt::Interrupt;

#[derive(Debug, Default)]
pub struct Counts {
    pub done: AtomicU64,
    /// The number of requests in all; 0 while unknown.
    pub total: AtomicU64,
    pub cancelled: Arc<AtomicBool>,
}

/// The progress of a run.
#[pyclass(frozen)]
#[derive(Default)]
pub struct Progress {
    /// The run keeps its own reference, so that it needs no interpreter to report.
    counts: Arc<Counts>,
}

impl Progress {
    /// Stores the amount done and the total; false once the user has cancelled.
    pub fn listener(progress: Option<&Progress>) -> impl Fn(u64, u64) -> bool + Sync + use<> {
        let counts = progress.map(|progress| progress.counts.clone());
        move |done, total| {
            let Some(counts) = &counts else { return true };
            counts.total.store(total, Ordering::Relaxed);
            counts.done.store(done, Ordering::Relaxed);
            !counts.cancelled.load(Ordering::Relaxed)
        }
    }
}

impl Progress {
    /// What a crash test looks at to see whether the user has cancelled.
    pub fn interrupt(progress: Option<&Progress>) -> Interrupt {
        progress.map_or_else(Interrupt::default, |progress| {
            progress.counts.cancelled.clone().into()
        })
    }
}

#[pymethods]
impl Progress {
    #[new]
    fn new() -> Progress {
        Progress::default()
    }

    #[getter]
    fn done(&self) -> u64 {
        self.counts.done.load(Ordering::Relaxed)
    }

    /// Requests in all; 0 while unknown.
    #[getter]
    fn total(&self) -> u64 {
        self.counts.total.load(Ordering::Relaxed)
    }

    /// Ask the run to end with an error at its next look.
    fn cancel(&self) {
        self.counts.cancelled.store(true, Ordering::Relaxed);
    }
}
