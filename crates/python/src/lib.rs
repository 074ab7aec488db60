//! The bindings between the Rust simulator and the Python command line. Thin: no logic here.
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

mod crash;
mod machines;
mod programs;
mod progress;
mod recorder;
mod simulate;
mod traces;

create_exception!(
    sardonyx._core,
    SardonyxError,
    PyException,
    "Bad input: the message has the place and the remedy."
);

/// The simulator's native half.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::SardonyxError;
    #[pymodule_export]
    use super::crash::{crash, crash_stages, guarantee, programs};
    #[pymodule_export]
    use super::machines::{machine, machines};
    #[pymodule_export]
    use super::programs::check_program;
    #[pymodule_export]
    use super::progress::Progress;
    #[pymodule_export]
    use super::recorder::{Recording, trace_record};
    #[pymodule_export]
    use super::simulate::{designs, simulate};
    #[pymodule_export]
    use super::traces::{
        ladder, trace_check, trace_convert, trace_cut, trace_info, trace_mix, trace_synth,
    };

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
