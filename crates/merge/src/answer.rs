//! The parts of an answer, under the names of `sardonyx merge --json`.

use serde::Serialize;
use serde_json::{Map, Value};

use super::advice::{Advice, Untouched};
use super::convergence::Metrics;
use super::host::Beside;
use super::images::ProcessPages;
use super::ksm::KsmCounters;
use super::unmerged::WhyNot;

/// A whole answer; the names of the fields are those of `sardonyx merge --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    pub kernel: String,
    pub machines: Vec<Merged>,
    /// The most snapshots of any machine.
    pub snapshots: usize,
    pub settings: Map<String, Value>,
    /// The keys whose values no source gives, with the reason and the values that they may have instead.
    pub assumed: Vec<Value>,
    pub runs: Vec<Ran>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<WhyNot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owners: Option<Apart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what_if: Option<Vec<WhatIf>>,
    /// The part of the savings that depends on pages of zeros which may never have been touched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untouched: Option<Untouched>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
    /// Of live processes: the knobs of the kernel that runs, beside those asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Vec<Beside>>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Merged {
    pub name: String,
    pub pages: usize,
    pub not_in_image: u64,
    pub process: Option<ProcessPages>,
    pub ended_at_pass: Option<u32>,
    /// Pages that are holes of their file; left out unless zeros are `held`.
    pub holes: u64,
    pub gone: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct Ran {
    pub design: &'static str,
    pub metrics: Metrics,
    pub passes: Vec<KsmCounters>,
}

/// The loss of owners that do not share with each other.
#[derive(Clone, Debug, Serialize)]
pub struct Apart {
    pub owners: Vec<Alone>,
    pub pages: u64,
    pub saved_pages: u64,
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
