//! What stands between all layers and the medium, and refuses lines that are not what was last written.
//! Left out: everything above it, which needs not know of it ([`crate::plan::guard`]).

mod bmt;
mod keyed;
mod macs;
mod root;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_sgx;
mod tree;
mod versions;

pub use macs::REGION as MACS;
pub use versions::FIRST_VERSION;

use super::layers::{Integrity, files};

/// The integrity of a stack that names none.
pub const DEFAULT: &str = none::NAME;

files! { Integrity: none mac merkle bonsai supermem osiris triad anubis plp sgx asit }
