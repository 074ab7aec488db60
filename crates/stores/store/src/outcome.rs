//! The result of a run of a store: an error, or figures; and how figures are made.

use serde_json::{Map, Value};

use crate::operation::WorkloadError;
use crate::parameters::ParametersError;
use crate::store::Error;

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Parameters(#[from] ParametersError),
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error(transparent)]
    Store(#[from] Error),
    #[error("{0}")]
    Bad(String),
    #[error("cancelled")]
    Cancelled,
}

pub(crate) fn rate(count: u64, over: f64) -> f64 {
    if over > 0.0 { count as f64 / over } else { 0.0 }
}

/// The years of life of a part with this endurance, at this rate; `None` if nothing wears it.
pub(crate) fn years(endures: f64, a_second: f64) -> Option<f64> {
    const SECONDS: f64 = 365.25 * 24.0 * 3600.0;
    (a_second > 0.0).then(|| endures / a_second / SECONDS)
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => unreachable!("written as an object"),
    }
}
