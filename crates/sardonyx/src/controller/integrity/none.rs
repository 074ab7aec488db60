//! No integrity: whatever the medium returns is believed.

use crate::controller::layers::{About, File, Integrity, Refuses};

/// The name of the integrity that does nothing.
pub const NAME: &str = "none";

/// The layers and designs of this file.
pub static FILE: File<Integrity> = File {
    layers: &[Integrity {
        about: About {
            name: NAME,
            cut: "keeps nothing, and believes what it reads",
            ..About::EMPTY
        },
        build: |_, _| None,
        promises: Refuses::NOTHING,
        settles_groups: true,
        registers: |_| 0,
        power_fail: None,
    }],
    designs: &[],
};
