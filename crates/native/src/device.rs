//! The device's check, for Python. The device itself is nbdkit's.
use std::path::PathBuf;

use pyo3::prelude::*;

use crate::bad;
use crate::progress::Progress;

/// Reads everything in a device's folder and says what is wrong.
#[pyfunction]
pub fn store_check(
    py: Python<'_>,
    folder: PathBuf,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let tell = Progress::listener(progress);
    let checked = py
        .detach(|| sardonyx_device::check(&folder, &tell))
        .map_err(bad)?;
    let checked = checked.ok_or_else(|| bad("cancelled"))?;
    serde_json::to_string(&checked).map_err(bad)
}
