//! The bindings between the Rust simulator and Python: what each command is asked, and the runs that it comes to.
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use sardonyx::machine::RunError;

mod asked;
mod commands;
mod crash;
mod crash_test;
mod curve;
mod device;
mod estimate;
mod files;
mod integrity;
mod layers;
mod listeners;
mod machines;
mod merging;
mod plan;
mod progress;
mod questions;
mod recorder;
mod signals;
mod simulate;
mod sources;
mod store;
mod table;
mod texts;
mod traces;

create_exception!(
    sardonyx._core,
    SardonyxError,
    PyException,
    "Bad input: the message has the place and the remedy."
);

create_exception!(
    sardonyx._core,
    WrongRead,
    SardonyxError,
    "A design gave back another byte than was written: the message has the record and the line."
);

fn ended(error: RunError) -> PyErr {
    match error {
        RunError::Wrong { .. } => WrongRead::new_err(error.to_string()),
        other => bad(other),
    }
}

/// An error of the simulator's, or of the caller's, as Python sees it.
fn bad(error: impl std::fmt::Display) -> PyErr {
    SardonyxError::new_err(error.to_string())
}

fn read<'a, T: serde::Deserialize<'a>>(json: &'a str) -> PyResult<T> {
    serde_json::from_str(json).map_err(bad)
}

/// Bytes from `4096`, `4K`, `16M` or `1G`.
#[pyfunction]
fn parse_size(text: &str) -> PyResult<u64> {
    let size = sardonyx_base::sizes::parse(text);
    size.ok_or_else(|| PyValueError::new_err(sardonyx_base::sizes::REMEDY))
}

/// The simulator's native half.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::SardonyxError;
    #[pymodule_export]
    use super::WrongRead;
    #[pymodule_export]
    use super::commands::{asked, command, commands};
    #[pymodule_export]
    use super::crash::{
        crash, crash_exhaustive, crash_memory, crash_runs, crash_self_test, crash_stages,
        crash_trial, crash_trial_memory, guarantee, programs,
    };
    #[pymodule_export]
    use super::crash_test::{crash_designs, crash_lint, crash_orders, crash_test};
    #[pymodule_export]
    use super::curve::{accesses_point, curve_point};
    #[pymodule_export]
    use super::device::store_check;
    #[pymodule_export]
    use super::estimate::{store_estimate, store_plan};
    #[pymodule_export]
    use super::files::{RecordedFiles, crash_files};
    #[pymodule_export]
    use super::integrity::{integrities, integrity_recovery, integrity_room};
    #[pymodule_export]
    use super::layers::{
        Because, Below, Cache, Entry, Fingerprints, Lookup, MappingTable, Memory, PadMaker, Places,
        Plan, Similar, Step, Stored, Table, Write, check_bits, register_layer,
    };
    #[pymodule_export]
    use super::machines::{machine, machines};
    #[pymodule_export]
    use super::merging::{
        check_merge_timed, merge, merge_algorithms, merge_mixes, merge_snapshot, merge_timed,
        merge_timed_keys,
    };
    #[pymodule_export]
    use super::plan::{check_designs, comparison, plan};
    #[pymodule_export]
    use super::progress::Progress;
    #[pymodule_export]
    use super::questions::questions;
    #[pymodule_export]
    use super::recorder::{Recording, trace_record};
    #[pymodule_export]
    use super::signals::{end_in_time, end_patiently};
    #[pymodule_export]
    use super::simulate::{
        assumed_keys, caches, causes, check_job, designs, figures, idle_keys, merge_figures,
        simulate,
    };
    #[pymodule_export]
    use super::store::{check_store, store, store_designs, store_keys, store_runs};
    #[pymodule_export]
    use super::table::parquet_of;
    #[pymodule_export]
    use super::texts::{check_sources, check_trace_file, sources, warmup};
    #[pymodule_export]
    use super::traces::{
        ladder, trace_check, trace_convert, trace_cut, trace_info, trace_mix, trace_synth,
    };

    #[pymodule_export]
    use super::parse_size;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// A design may be named with a planted fault from the beginning.
    #[pymodule_init]
    fn init(_module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        sardonyx_crash::know_planted_faults();
        Ok(())
    }
}
