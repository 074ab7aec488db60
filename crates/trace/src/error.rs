//! What can be wrong with a trace, always with the place and the remedy.
//!
//! Rows count from 0, as a data frame's index does; lines of a text file count from 1, as editors do.

use std::path::{Path, PathBuf};

/// The reason why a trace cannot be read, written or converted.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A problem of a file, as a whole or at one place.
    #[error("{}{place}: {problem}", path.display())]
    File {
        /// The file at fault.
        path: PathBuf,
        /// The place in the file: `, row 812` from 0, `, line 812` of a text file from 1, or nothing.
        place: String,
        /// The problem and its remedy.
        problem: String,
    },
    /// A problem of a synthetic trace's specification.
    #[error("synthetic trace `{name}`: {problem}")]
    Spec {
        /// The specification's name.
        name: String,
        /// The problem and its remedy.
        problem: String,
    },
}

impl TraceError {
    fn at(path: &Path, place: String, problem: impl Into<String>) -> TraceError {
        TraceError::File {
            path: path.to_owned(),
            place,
            problem: problem.into(),
        }
    }

    /// A problem of the file as a whole: it is missing, truncated, of another format or of another version.
    pub(crate) fn file(path: &Path, problem: impl Into<String>) -> TraceError {
        TraceError::at(path, String::new(), problem)
    }

    pub(crate) fn row(path: &Path, row: u64, problem: impl Into<String>) -> TraceError {
        TraceError::at(path, format!(", row {row}"), problem)
    }

    pub(crate) fn text(path: &Path, line: u64, problem: impl Into<String>) -> TraceError {
        TraceError::at(path, format!(", line {line}"), problem)
    }

    pub(crate) fn unreadable(path: &Path, e: &std::io::Error) -> TraceError {
        let problem = format!("cannot be read: {e}; check the name and the permissions");
        TraceError::file(path, problem)
    }
}

pub(super) const IS_A_FOLDER: &str = "is a directory; name a trace file inside it";
