//! The user's wish that everything ends. What takes long looks at it many times a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::{CrashTestError, Result};

/// What waits for something else looks at the wish this often.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A wish that all its clones share.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl From<Arc<AtomicBool>> for Interrupt {
    fn from(flag: Arc<AtomicBool>) -> Interrupt {
        Interrupt(flag)
    }
}

impl Interrupt {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// # Errors
    /// The user wants an end.
    pub fn check(&self) -> Result<()> {
        match self.is_set() {
            true => Err(CrashTestError::Cancelled),
            false => Ok(()),
        }
    }
}
