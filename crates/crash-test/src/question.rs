//! The question that a crash test answers.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::interrupt::Interrupt;
use crate::recording::Recording;
use crate::recording::persistence::Platform;
use crate::{CrashTestError, Result};

/// A recording, one of its mapped files, and the command that recovers from an image of it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "CrashTestQuestion")]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The recording, a trace of level `cpu`.
    pub recording: PathBuf,
    /// The mapped file, under the path that the recorded program used.
    pub pool: PathBuf,
    /// Further mapped files that are cut with it; `{pool2}` in the recovery's command is the first of them.
    #[serde(default)]
    pub more_pools: Vec<PathBuf>,
    /// The words of the recovery's command.
    pub recover: Vec<String>,
    /// Exit statuses that are no violation.
    #[serde(default = "defaults::zero")]
    pub ok: Vec<i32>,
    /// Seconds for one recovery; by default it follows from the undisturbed one.
    pub time_limit: Option<f64>,
    /// Bytes of memory for one recovery.
    #[serde(default = "defaults::four_gigabytes")]
    pub memory_limit: u64,
    /// `adr`, `eadr`, `pages`, `sectors`, or `auto`: `pages` if the program flushes no line and syncs, else `adr`.
    #[serde(default = "defaults::auto")]
    pub platform: String,
    /// Whether lines tear at words.
    #[serde(default)]
    pub tear: bool,
    /// A mark, or a row of the recording, from which on cuts are tried.
    pub start: Option<String>,
    /// What counts before the recovery first copes, while the pool is made: `status` (it may refuse the pool by the exit status that the
    /// pool gets before the first store), `orderly` (by any), or `skip` (such cuts are not tried).
    #[serde(default = "defaults::status")]
    pub creation: String,
    /// Lines of code, `FILE:LINE`, whose stores count as persistent at once.
    #[serde(default)]
    pub assume_persisted: Vec<String>,
    /// Seconds that the exploration may take, from the first recovery on.
    #[serde(default = "defaults::fifty")]
    pub budget: f64,
    /// The seed that subsets of pending lines are drawn from.
    #[serde(default = "defaults::one")]
    pub seed: u64,
    /// The number of workers; 0: one for each processor.
    #[serde(default)]
    pub threads: usize,
    /// Whether the recorded program may have failed, or been ended early.
    #[serde(default)]
    pub allow_failure: bool,
    /// The name of the one image to run the recovery on, instead of exploring.
    pub replay: Option<String>,
    /// A folder for the images of each cause.
    pub keep: Option<PathBuf>,
    /// Whether lines of code are wanted, if the recording has places.
    #[serde(default = "defaults::yes")]
    pub source: bool,
    /// The operations of the recorded run, one a line: what the recovery prints must be what a beginning of them leaves.
    pub operations: Option<PathBuf>,
    /// The words of the command that makes a pool of some operations.
    #[serde(default)]
    pub apply: Vec<String>,
    /// How the program acknowledged operations: `lines` (it printed a line when one was done) or `none` (any beginning will do).
    #[serde(default = "defaults::lines")]
    pub acknowledged: String,
    /// Another order of threads than the recorded one, `THREAD@ROW`: that thread is held back after that row, and only what is in another
    /// order then is cut.
    #[serde(default)]
    pub thread_order: Option<String>,
}

impl Question {
    pub fn wants_acks(&self) -> bool {
        self.recover.iter().any(|word| word.contains("{acks}"))
    }

    /// Opens the recording, reduced to its pools, in the units of a platform.
    pub fn opened(&self, platform: Platform, interrupt: &Interrupt) -> Result<Recording> {
        let pools: Vec<PathBuf> = [&self.pool]
            .into_iter()
            .chain(&self.more_pools)
            .cloned()
            .collect();
        Recording::open_on(&self.recording, &pools, platform, interrupt)
    }
}

/// A question's seconds as a duration; `option` is where they come from.
///
/// # Errors
/// It is no number, or below zero, or longer than anything lasts.
pub fn seconds(option: &str, seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        CrashTestError::new(format!(
            "{option} {seconds}: is no time; give seconds from 0 on"
        ))
    })
}

mod defaults {
    pub(crate) fn zero() -> Vec<i32> {
        vec![0]
    }

    pub(crate) fn four_gigabytes() -> u64 {
        4 << 30
    }

    pub(crate) fn auto() -> String {
        "auto".to_owned()
    }

    pub(crate) fn status() -> String {
        "status".to_owned()
    }

    pub(crate) fn lines() -> String {
        "lines".to_owned()
    }

    pub(crate) fn fifty() -> f64 {
        50.0
    }

    pub(crate) fn one() -> u64 {
        1
    }

    pub(crate) fn yes() -> bool {
        true
    }
}
