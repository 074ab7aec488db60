//! What can be wrong with a trace, always with the place and the remedy.
//!
//! Rows count from 0, as a data frame's index does; lines of a text file count from 1, as editors do.

use std::path::{Path, PathBuf};

/// Why a trace cannot be read, written or converted.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file as a whole: missing, truncated, of another format, of another version.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file at fault.
        path: PathBuf,
        /// What is wrong and what to do about it.
        problem: String,
    },
    /// One row of a trace file.
    #[error("{}, row {row}: {problem}", path.display())]
    Row {
        /// The file at fault.
        path: PathBuf,
        /// The row, from 0.
        row: u64,
        /// What is wrong and what to do about it.
        problem: String,
    },
    /// One line of another simulator's text trace.
    #[error("{}, line {line}: {problem}", path.display())]
    Text {
        /// The file at fault.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong and what to do about it.
        problem: String,
    },
    /// A specification of a synthetic trace.
    #[error("synthetic trace `{name}`: {problem}")]
    Spec {
        /// The specification's name.
        name: String,
        /// What is wrong and what to do about it.
        problem: String,
    },
}

impl TraceError {
    /// An error about the file as a whole.
    pub(crate) fn file(path: &Path, problem: impl Into<String>) -> TraceError {
        TraceError::File {
            path: path.to_owned(),
            problem: problem.into(),
        }
    }

    /// An error about one row.
    pub(crate) fn row(path: &Path, row: u64, problem: impl Into<String>) -> TraceError {
        TraceError::Row {
            path: path.to_owned(),
            row,
            problem: problem.into(),
        }
    }

    /// An error about one line of text.
    pub(crate) fn text(path: &Path, line: u64, problem: impl Into<String>) -> TraceError {
        TraceError::Text {
            path: path.to_owned(),
            line,
            problem: problem.into(),
        }
    }
}
