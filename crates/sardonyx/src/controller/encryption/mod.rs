//! The layers that stand on the medium: each takes places and keeps their bytes secret, or not,
//! and each is a policy of when an encryption counter persists with its line.
//! Source: counter mode as SCA, DeWrite and ESD use it; the policies are SCA's (HPCA 2018).
//! Left out: where lines go, which is the mapping layers' to say.

pub mod counter_tags;
pub mod global_counter;
pub mod pad;

use super::designs::{File, Policy};
use crate::settings::{Key, Origin};

/// Lists the files of policies: each exports one `FILE`.
macro_rules! policies {
    ($($file:ident)*) => {
        $(pub mod $file;)*

        /// What they export.
        pub static FILES: &[&File<Policy>] = &[$(&$file::FILE),*];
    };
}

policies! {
    none
    counter_mode
    co_located
}

/// Without it `no-encryption` takes the place of any policy.
pub static ENABLED: Key<bool> = Key::flag(
    "encryption.enabled",
    true,
    Origin::Assumed("ESD encrypts and does not say how; counter mode as in DeWrite and SCA"),
    "Lines are encrypted in the medium",
);
