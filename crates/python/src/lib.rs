//! The bindings between the Rust simulator and the Python command line. Thin: no logic here.
use pyo3::prelude::*;

/// The simulator's native half.
#[pymodule]
mod _core {
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
