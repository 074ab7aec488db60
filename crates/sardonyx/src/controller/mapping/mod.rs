//! The layers that say where a logical line lies, and which lines share a place.
//! Source: ESD (HPCA 2023) and the designs that it is compared with; DeWrite (MICRO 2018).
//! Left out: keeping the bytes secret, which is the layer below's.

pub mod amt;
pub mod efit;
pub mod full_dedup;
pub mod index;
pub mod places;
pub mod tables;

use super::designs::{File, Mapping};

/// Lists the files of mappings: each exports one `FILE`.
macro_rules! mappings {
    ($($file:ident)*) => {
        $(pub mod $file;)*

        /// What they export.
        pub static FILES: &[&File<Mapping>] = &[$(&$file::FILE),*];
    };
}

mappings! {
    identity
    esd
    dedup_sha1
    dewrite
    zero_lines
}
