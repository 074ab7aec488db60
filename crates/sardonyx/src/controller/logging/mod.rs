//! The layers that keep a log in hardware, over a mapping, so that a program needs none of its own.
//! Left out: where lines go and how they are encrypted, which is the layers' below.

use super::layers::{Logging, files};

/// The logging of a stack that names none.
pub const DEFAULT: &str = none::NAME;

/// The region of a log that does not lie among the lines of the mapping.
pub const LOG_REGION: &str = "log";

files! { Logging: none hw_log easy_pm proteus silo lad fwb morlog hoop dolos }

mod newest;

pub mod buckets;
pub mod owners;
pub mod pending;
pub mod ring;
pub mod round;
pub mod slices;
pub mod undo;
pub mod window;
