//! No hardware log: programs keep their own.

use crate::controller::layers::{About, File, Logging};

/// The name of the logging that does nothing.
pub const NAME: &str = "none";

/// The layers and designs of this file.
pub static FILE: File<Logging> = File {
    layers: &[Logging {
        about: About {
            name: NAME,
            cut: "keeps nothing",
            ..About::EMPTY
        },
        keeps_log: false,
        lines: |_| 0,
        build: |_, mapping, _| mapping,
        guarantee: |below| below,
        vectors: |_, _| None,
    }],
    designs: &[],
};
