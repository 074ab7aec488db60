//! The layers that keep a log in hardware, over a mapping, so that a program needs none of its own.
//! Left out: where lines go and how they are encrypted, which is the layers' below.

use super::designs::{File, Logging};

/// The logging of a stack that names none.
pub const DEFAULT: &str = none::NAME;

/// Lists the files of loggings: each exports one `FILE`.
macro_rules! loggings {
    ($($file:ident)*) => {
        $(pub mod $file;)*

        /// What they export.
        pub static FILES: &[&File<Logging>] = &[$(&$file::FILE),*];
    };
}

loggings! {
    none
}
