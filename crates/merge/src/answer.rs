//! The parts of an answer, under the names of `sardonyx merge --json`.

use serde::Serialize;
use serde_json::{Map, Value};

use super::advice::{Advice, Untouched};
use super::finished::Metrics;
use super::images::ProcessPages;
use super::ksm::Counters;
use super::why::WhyNot;

/// A whole answer; the names of the fields are those of `sardonyx merge --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    pub kernel: String,
    pub machines: Vec<Merged>,
    /// Snapshots of each machine, at most.
    pub snapshots: usize,
    pub settings: Map<String, Value>,
    /// The keys whose values no source gives, with the reason and the values that they may have instead.
    pub assumed: Vec<Value>,
    pub runs: Vec<Ran>,
    /// Why pages did not merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<WhyNot>,
    /// What owners lose if they do not share with each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owners: Option<Apart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what_if: Option<Vec<WhatIf>>,
    /// How much of the savings depends on pages of zeros that may never have been touched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untouched: Option<Untouched>,
    /// Advice for an operator, from the first algorithm that merges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Merged {
    pub name: String,
    pub pages: usize,
    /// Pages that its image does not hold.
    pub not_in_image: u64,
    pub process: Option<ProcessPages>,
    /// The snapshot before which it had ended.
    pub ended_at_pass: Option<u32>,
    /// Pages that are holes of its file; left out, unless zeros are `held`.
    pub holes: u64,
    /// Pages of the first snapshot that the last does not have.
    pub gone: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct Ran {
    pub design: &'static str,
    pub metrics: Metrics,
    /// Its counters after each pass.
    pub passes: Vec<Counters>,
}

/// What owners save in total if they do not share with each other.
#[derive(Clone, Debug, Serialize)]
pub struct Apart {
    pub owners: Vec<Alone>,
    pub pages: u64,
    /// Pages that need no frame of their own.
    pub saved_pages: u64,
    /// The same as a share of all pages.
    pub saving: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Alone {
    pub owner: String,
    pub machines: usize,
    pub metrics: Metrics,
}

#[derive(Clone, Debug, Serialize)]
pub struct WhatIf {
    pub set: Vec<(&'static str, String)>,
    pub metrics: Metrics,
}
