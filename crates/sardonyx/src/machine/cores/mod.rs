//! Cores as agents: one that replays the accesses of a recorded trace, a bus that replays them at their stamps, and a
//! core that executes loads, stores and persist instructions against the caches. Both cores stand on the same reorder
//! window and MSHRs.

mod player;
mod trace_bus;
mod trace_core;
mod window;

pub use player::Player;
pub use trace_bus::TraceBus;
pub use trace_core::{ReadId, Taken, TraceCore};
