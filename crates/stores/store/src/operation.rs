//! The operations of a workload, one block each, and what stops one.

use std::io;
use std::path::Path;

use crate::store::Lba;
use crate::synthetic::Made;

#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    Made(Made),
    Bytes(&'a [u8]),
}

#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    Write(Lba, Content<'a>),
    Read(Lba),
}

#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
    #[error("{0}")]
    Bad(String),
}

pub(crate) fn failed(path: &Path, source: io::Error) -> WorkloadError {
    WorkloadError::Io {
        path: path.display().to_string(),
        source,
    }
}
