//! Sardonyx simulates the memory below the last-level cache when that memory is persistent,
//! encrypted and deduplicated. It carries real bytes, so what it says about a design is executed.
//!
//! The arrows point one way: `trace → machine → memory → controller, engine → plan → medium`. Nothing below
//! knows what is above it. `docs/inside/architecture.md` follows one request through the house.
#![forbid(unsafe_code)]

pub mod config;
pub mod controller;
pub mod ecc;
pub mod engine;
pub mod exhausted;
pub mod figures;
pub mod latency;
pub mod line;
pub mod machine;
pub mod mechanisms;
pub mod medium;
pub mod memory;
pub mod names;
pub mod plan;
pub mod settings;
pub mod stats;
pub use sardonyx_trace as trace;
pub mod units;
