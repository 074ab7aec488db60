//! Block stores that keep equal blocks once: a resistive content-addressable memory (ReCAM) that
//! compares inside the array, and the conventional rival with a hash index.
//!
//! Follows Kaplan, Yavits, Morad, Ginosar, "Deduplication in Resistive Content Addressable Memory
//! Based Solid State Drive". Left out: how a store is put behind a block device.
#![forbid(unsafe_code)]

mod parameters;
mod store;

pub use parameters::{Bracket, Compare, Energies, First, Parameters, ParametersError};
pub use store::{Cost, Error, Lba, Outcome, Store, Totals};
