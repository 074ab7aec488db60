//! Recording for Python: one call that runs a program, and counters to look at meanwhile.
//! Left out: any logic; `sardonyx_record` has it.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use sardonyx_record::{Live, Wanted, record};

use crate::{bad, read};

/// How far a recording is.
#[pyclass(frozen)]
#[derive(Default)]
pub struct Recording {
    live: Arc<Live>,
}

#[pymethods]
impl Recording {
    #[new]
    fn new() -> Recording {
        Recording::default()
    }

    /// Instructions of the first process.
    #[getter]
    fn instructions(&self) -> u64 {
        self.live.instructions.load(Ordering::Relaxed)
    }

    #[getter]
    fn records(&self) -> u64 {
        self.live.records.load(Ordering::Relaxed)
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.live.bytes.load(Ordering::Relaxed)
    }

    /// Ask the program to end, and the second time end it; what was recorded is kept.
    fn stop(&self) {
        self.live.stops.fetch_add(1, Ordering::Relaxed);
    }
}

/// Run a program and write its trace; what became of it as JSON.
#[pyfunction]
pub fn trace_record(
    py: Python<'_>,
    asked: &str,
    plugin: PathBuf,
    recording: &Recording,
) -> PyResult<String> {
    let wanted: Wanted = read(asked)?;
    let request = wanted.request(plugin).map_err(bad)?;
    let outcome = py.detach(|| record(&request, &recording.live));
    let outcome = outcome.map_err(bad)?;
    serde_json::to_string(&outcome).map_err(bad)
}
