//! The guards between all layers and the medium, which refuse lines that are not what was last written. Left out: the
//! layers above, which need not know of a guard ([`crate::plan::guard`]).

mod bmt;
mod counter_tree;
mod guarded;
mod keyed;
mod levels;
mod macs;
mod root;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_sgx;
mod tree;
mod versions;

pub use macs::{REGION as MACS, VERIFY, Verify};
pub use versions::FIRST_VERSION;

use super::layers::{Integrity, files};

/// The integrity of a stack that names none.
pub const DEFAULT: &str = none::NAME;

files! { Integrity: none mac merkle bonsai supermem osiris triad anubis plp sgx asit phoenix }
