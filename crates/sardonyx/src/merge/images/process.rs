//! Live processes: the anonymous pages of the mappings asked for, read from `/proc/PID/mem`.
use super::{ImageError, Snapshot};

/// What is known of the pages that cannot merge.
#[derive(Clone, Debug, Default)]
pub struct ProcessPages {}

/// todo
pub fn snapshot(_pid: u32) -> Result<Snapshot, ImageError> {
    Err(ImageError(String::new()))
}
