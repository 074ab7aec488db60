//! A block device in a folder: equal blocks are kept once, with a checksum and a count of their references, and flushed
//! data survive the end of the process and of the machine's power.
//!
//! [`StoreFiles`] is all that it needs of the file system, [`Volume`] keeps the bytes, [`Device`] adds requests of any
//! length and a design that counts their cost, [`check`] reads everything and says what is wrong. docs/store/device.md
//! has the layout of the folder. Left out: the network protocol, which is nbdkit's (crates/stores/nbd).
#![forbid(unsafe_code)]

mod check;
mod design;
mod device;
mod files;
mod folder;
mod latency;
mod mirror;
mod shape;
mod tables;
mod volume;

use std::io;
use std::path::Path;

pub use check::{Checked, check, check_on};
pub use device::{Device, DeviceCounters, Requests};
pub use files::{Bytes, How, StoreFiles};
pub use latency::{Quantiles, RequestKind};
pub use shape::{Shape, Wanted};
pub use volume::{BlockRun, Limits, SpareRoom, Volume};

/// The reason why something was not done. Flushed data are not affected.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    #[error("{0}")]
    Bad(String),
    #[error("{0}: {1}")]
    Io(String, io::Error),
    /// The tables are not those of the last commit.
    #[error(
        "{0}; the store is refused and nothing was changed: put the folder back from a copy, or put back what \
         was lost; `sardonyx store check` looks again"
    )]
    Tables(String),
    #[error("{0}")]
    Stopped(String),
    #[error("{0}; `sardonyx store check` lists what is lost")]
    Damaged(String),
    #[error(transparent)]
    Design(#[from] sardonyx_store::Error),
}

impl DeviceError {
    fn io(path: &Path, error: io::Error) -> DeviceError {
        DeviceError::Io(path.display().to_string(), error)
    }

    pub fn is_full(&self) -> bool {
        let full = |error: &io::Error| {
            matches!(
                error.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            )
        };
        match self {
            DeviceError::Io(_, error) => full(error),
            DeviceError::Design(sardonyx_store::Error::Io { source, .. }) => full(source),
            DeviceError::Design(sardonyx_store::Error::Full { .. }) => true,
            _ => false,
        }
    }
}

pub type Result<T> = std::result::Result<T, DeviceError>;
