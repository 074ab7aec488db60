//! Any bytes as a machine file give a machine or an error: `cargo +nightly fuzz run config`.
//!
//! What is accepted must come back from its own TOML. The same entry point is under a property test
//! on the stable compiler (`tests/config_errors.rs`).

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| sardonyx::config::fuzz_entry(bytes));
