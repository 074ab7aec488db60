//! The questions that crash tests answer: what all of them are asked, and what a test of mapped pools is asked.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::interrupt::Interrupt;
use crate::recording::Recording;
use crate::recording::platform::Platform;
use crate::recovery::Recovery;
use crate::recovery::bench::Clock;
use crate::{CrashTestError, Result};

/// What any crash test is asked, whether it cuts mapped pools or files.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SearchOptions {
    /// Exit statuses that are no violation.
    pub ok: Vec<i32>,
    /// Seconds for one recovery; by default it follows from the undisturbed one.
    pub time_limit: Option<f64>,
    /// Bytes of memory for one recovery.
    pub memory_limit: u64,
    /// Seconds that the search may take, from the first recovery on.
    pub budget: f64,
    /// The seed that images are drawn from.
    pub seed: u64,
    /// The number of workers; 0: one for each processor.
    pub threads: usize,
    /// Whether the recorded program may have failed, or been ended early.
    pub allow_failure: bool,
    /// A folder for the images of each cause.
    pub keep: Option<PathBuf>,
}

impl Default for SearchOptions {
    fn default() -> SearchOptions {
        SearchOptions {
            ok: vec![0],
            time_limit: None,
            memory_limit: 4 << 30,
            budget: 50.0,
            seed: 1,
            threads: 0,
            allow_failure: false,
            keep: None,
        }
    }
}

impl SearchOptions {
    /// The recovery of these words. Until it has run undisturbed, it may take all of the budget.
    ///
    /// # Errors
    /// A time is none.
    pub fn recovery(&self, words: Vec<String>, interrupt: &Interrupt) -> Result<Recovery> {
        Ok(Recovery {
            words,
            ok: self.ok.clone(),
            time: match self.time_limit {
                Some(limit) => seconds("--time-limit", limit)?,
                None => seconds("--budget", self.budget)?,
            },
            memory: self.memory_limit,
            oracle: None,
            interrupt: interrupt.clone(),
        })
    }

    /// # Errors
    /// The budget is no time.
    pub fn clock(&self, interrupt: &Interrupt) -> Result<Clock> {
        let budget = seconds("--budget", self.budget)?;
        Ok(Clock::new(Some(budget), interrupt.clone()))
    }

    pub fn workers(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
            threads => threads,
        }
    }
}

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
    /// The name of the one image to run the recovery on, instead of exploring.
    pub replay: Option<String>,
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
    #[serde(flatten)]
    pub options: SearchOptions,
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
    pub(super) fn auto() -> String {
        "auto".to_owned()
    }

    pub(super) fn status() -> String {
        "status".to_owned()
    }

    pub(super) fn lines() -> String {
        "lines".to_owned()
    }

    pub(super) fn yes() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_asked_has_its_default_and_what_is_unknown_is_refused() {
        let asked = |more: &str| {
            let text = format!(r#"{{"recording": "r", "pool": "p", "recover": ["true"]{more}}}"#);
            serde_json::from_str::<Question>(&text)
        };
        let question = asked("").unwrap();
        assert_eq!(
            (question.options.budget, question.options.threads),
            (50.0, 0)
        );
        let question = asked(r#", "budget": 7, "ok": [0, 3]"#).unwrap();
        assert_eq!(
            (question.options.budget, &question.options.ok[..]),
            (7.0, &[0, 3][..])
        );
        for unknown in [r#", "budgets": 7"#, r#", "options": {}"#] {
            let error = asked(unknown).unwrap_err().to_string();
            assert!(error.contains("unknown field"), "{error}");
        }
    }
}
