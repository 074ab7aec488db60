//! All tests of the simulator in one program, because each program of tests links the whole simulator.
//!
//! `tools/rust_tests.py --only trace_info::` runs those of one file.

mod active_queue;
mod cells;
mod command_queues;
mod common;
mod config_errors;
mod config_foreign;
mod config_machines;
mod config_refreshes;
mod controller_engine;
mod cpu_caches;
mod cpu_common;
mod cpu_core;
mod cpu_latency;
mod cpu_stream;
mod designs_page;
mod deuce;
mod digests;
mod engine_audit;
mod engine_rules;
mod hardware_log;
mod levelling;
mod link;
mod memory_common;
mod module_buffer;
mod near;
mod nvmain;
mod out_of_place;
mod past;
mod pausing;
mod reference;
mod rooms;
mod sca_timelines;
mod sim_places;
mod sim_presets;
mod sim_programs;
mod sim_run;
mod sim_sample;
mod sim_threads;
mod trace_info;
mod verified;

#[test]
fn every_file_of_tests_is_named_above() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    sardonyx_property::assert_all_named(folder, include_str!("all.rs"));
}
