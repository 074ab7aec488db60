//! The question that a crash test of a program that writes files answers.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

/// A program, the folder that it works in, and the command that recovers from an image of that folder.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "CrashFilesQuestion")]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The words of the program's command.
    pub program: Vec<String>,
    /// The folder that it works in.
    pub files: PathBuf,
    /// The words of the recovery's command, with `{dir}` and `{acks}`; none if the operations are only to be listed.
    #[serde(default)]
    pub recover: Vec<String>,
    /// The program's descriptor whose text is in `{acks}`.
    #[serde(default = "defaults::standard_output")]
    pub acks_fd: i32,
    /// Whether the text of every socket is in `{acks}`, and not that of a descriptor.
    #[serde(default)]
    pub acks_socket: bool,
    /// Whether the program may fail, or be ended by its limit.
    #[serde(default)]
    pub allow_failure: bool,
    /// Exit statuses that are no violation.
    #[serde(default = "defaults::zero")]
    pub ok: Vec<i32>,
    /// `ordered`, `writeback` or `strict`.
    #[serde(default = "defaults::ordered")]
    pub platform: String,
    /// Seconds that the search may take, from the first recovery on.
    #[serde(default = "defaults::fifty")]
    pub budget: f64,
    /// Seconds that the program may run.
    #[serde(default = "defaults::fifty")]
    pub record_limit: f64,
    /// Seconds for one recovery; by default it follows from the undisturbed one.
    #[serde(default)]
    pub time_limit: Option<f64>,
    /// Bytes of memory for one recovery.
    #[serde(default = "defaults::four_gigabytes")]
    pub memory_limit: u64,
    /// The seed that images are drawn from.
    #[serde(default = "defaults::one")]
    pub seed: u64,
    /// The number of workers; 0: one for each processor.
    #[serde(default)]
    pub threads: usize,
    /// Whether syncs and writes are made to fail too, one in a run.
    #[serde(default)]
    pub errors: bool,
    /// A folder for the images of each cause.
    #[serde(default)]
    pub keep: Option<PathBuf>,
}

mod defaults {
    pub(crate) fn standard_output() -> i32 {
        1
    }

    pub(crate) fn zero() -> Vec<i32> {
        vec![0]
    }

    pub(crate) fn ordered() -> String {
        "ordered".to_owned()
    }

    pub(crate) fn four_gigabytes() -> u64 {
        4 << 30
    }

    pub(crate) fn fifty() -> f64 {
        50.0
    }

    pub(crate) fn one() -> u64 {
        1
    }
}
