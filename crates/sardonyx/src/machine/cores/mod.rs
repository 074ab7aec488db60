//! Cores as agents: one that replays the accesses of a recorded trace, and one that executes loads, stores
//! and persist instructions against the caches. Both stand on the same reorder window and MSHRs.

mod player;
mod trace_core;
mod window;

pub use player::Player;
pub use trace_core::{ReadId, Taken, TraceCore};
