//! The questions of the native functions, as JSON schemas, from which `tools/questions.py` writes the types of the
//! Python side: each question is declared once, in Rust.
use pyo3::prelude::*;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::bad;
use crate::crash::{CrashQuestion, ExhaustiveQuestion, TrialQuestion};
use crate::curve::{AccessesQuestion, CurveQuestion};
use crate::simulate::Job;
use crate::sources::Source;

/// Lists the questions, which may name each other.
macro_rules! questions {
    ($generator:ident: $($question:ty),* $(,)?) => {
        $($generator.subschema_for::<$question>();)*
    };
}

/// Every question, and what it is made of, by its name in Python.
#[pyfunction]
pub fn questions() -> PyResult<String> {
    let mut generator = SchemaGenerator::new(SchemaSettings::draft2020_12());
    questions!(generator:
        Source,
        Job,
        CrashQuestion,
        ExhaustiveQuestion,
        TrialQuestion,
        CurveQuestion,
        AccessesQuestion,
        sardonyx_crash_test::question::Question,
        sardonyx_crash_files::question::Question,
        sardonyx_merge::timed::Question,
        sardonyx_store::Question,
    );
    let schemas: Value = generator.take_definitions(true).into();
    serde_json::to_string(&schemas).map_err(bad)
}
