//! The engine: executes plans against queues, banks, units and buses, on one clock.

pub(crate) mod contents;
pub mod log;
pub(crate) mod overlay;
pub mod steps;
