//! The question that a crash test of a program that writes files answers.

use std::path::PathBuf;

use sardonyx_crash_test::question::SearchOptions;
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
    /// The name of a [`file_system`](crate::file_system).
    #[serde(default = "defaults::ordered")]
    pub platform: String,
    /// Bytes of a disk's sector, and of a page that is written whole or not at all; 0 for those of the platform.
    #[serde(default)]
    pub sector: u64,
    #[serde(default)]
    pub atomic_page: u64,
    /// Seconds that the program may run.
    #[serde(default = "defaults::fifty")]
    pub record_limit: f64,
    /// Whether images that differ in what the recovery reads come first, or all in one order.
    #[serde(default = "defaults::yes")]
    pub reads_first: bool,
    /// Whether syncs and writes are made to fail too, one in a run.
    #[serde(default)]
    pub errors: bool,
    #[serde(flatten)]
    pub options: SearchOptions,
}

mod defaults {
    pub(super) fn standard_output() -> i32 {
        1
    }

    pub(super) fn ordered() -> String {
        "ext4-ordered".to_owned()
    }

    pub(super) fn yes() -> bool {
        true
    }

    pub(super) fn fifty() -> f64 {
        50.0
    }
}
