//! Layers of a controller in Python: a class declares what a file of `crates/sardonyx/src/controller` does, and is
//! registered under its name while the program runs. Left out: the work of a layer (`layer`).

mod declared;
mod layer;
mod parts;
mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use sardonyx::controller::designs::Stack;

use crate::{SardonyxError, bad};

pub use declared::register_layer;
pub use parts::{
    Cache, Entry, Fingerprints, Lookup, MappingTable, Memory, PadMaker, Places, Similar, Table,
    check_bits,
};
pub use plan::{Because, Below, Plan, Step, Stored, Write};

static NAMES: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
/// The first error of each layer since errors were last collected.
static FAILURES: Mutex<BTreeMap<&str, String>> = Mutex::new(BTreeMap::new());

/// Keeps the name for ever.
pub fn intern(name: &str) -> &'static str {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name);
    name
}

/// Keeps an error of a layer, with the line of Python that raised it.
fn failed(py: Python<'_>, design: &'static str, error: &PyErr) {
    let place = raised_at(py, error).map(|place| format!("{place}: "));
    let said = format!("{design}: {}{}", place.unwrap_or_default(), said(py, error));
    let mut failures = FAILURES.lock().unwrap_or_else(PoisonError::into_inner);
    failures.entry(design).or_insert(said);
}

/// An error in words; the type is left out for our own.
pub fn said(py: Python<'_>, error: &PyErr) -> String {
    match error.is_instance_of::<SardonyxError>(py) {
        true => error.value(py).to_string(),
        false => error.to_string(),
    }
}

/// `FILE:LINE` of the innermost line that raised an error.
fn raised_at(py: Python<'_>, error: &PyErr) -> Option<String> {
    let mut at = error.traceback(py)?.into_any();
    while let Ok(next) = at.getattr("tb_next") {
        if next.is_none() {
            break;
        }
        at = next;
    }
    let code = at.getattr("tb_frame").ok()?.getattr("f_code").ok()?;
    let file = code.getattr("co_filename").ok()?;
    let line = at.getattr("tb_lineno").ok()?;
    Some(format!("{file}:{line}"))
}

/// Forgets errors of a layer that has just been registered.
fn forget(name: &str) {
    let mut failures = FAILURES.lock().unwrap_or_else(PoisonError::into_inner);
    failures.remove(name);
}

/// The number of threads that cut a design: as many as the user says, but one if that is left open (0) and a layer is
/// in Python, whose interpreter runs one at a time.
pub fn threads(design: &str, asked: usize) -> usize {
    let own = |name| declared::is_declared(name);
    let in_python = Stack::named(design)
        .is_ok_and(|stack| stack.layers().iter().any(|layer| own(layer.about().name)));
    match asked {
        0 if in_python => 1,
        asked => asked,
    }
}

/// The answer of a run of a design, unless one of its layers has failed meanwhile.
pub fn settled<T>(design: &str, answer: PyResult<T>) -> PyResult<T> {
    let layers = Stack::named(design).map(|stack| stack.layers().map(|layer| layer.about().name));
    let mut failures = FAILURES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut names = layers.into_iter().flatten();
    match names.find_map(|name| failures.remove(name)) {
        Some(said) => Err(bad(said)),
        None => answer,
    }
}
