//! The layers that keep a log in hardware, over a mapping, so that a program needs none of its own.
//! Left out: where lines go and how they are encrypted, which is the layers' below.

use super::designs::{Logging, files};

/// The logging of a stack that names none.
pub const DEFAULT: &str = none::NAME;

files! { Logging: none undo }
