//! Small things that every crate may use: random numbers, sizes as text, names spelt alike, files mapped read-only, prefetches, numbers
//! compared at once, files that must be files.
//!
//! The last three need unsafe code, which the simulator forbids; it is here and nowhere else but at the borders to C,
//! Python and QEMU.

pub mod lanes;
mod mapped;
pub mod names;
mod prefetch;
pub mod random;
pub mod regular;
pub mod sizes;

pub use mapped::map;
pub use prefetch::prefetch;
