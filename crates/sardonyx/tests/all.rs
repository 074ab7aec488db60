//! All tests of the simulator in one program, because each program of tests links the whole simulator. Only `faults` is
//! another: it registers layers, which are known to the whole program.
//!
//! `tools/rust_tests.py --only trace_info::` runs those of one file.

mod audit_random;
mod audit_rules;
mod cells;
mod config_errors;
mod config_machines;
mod controller_engine;
mod cpu_caches;
mod cpu_common;
mod cpu_core;
mod cpu_latency;
mod cpu_stream;
mod crash_campaign;
mod crash_exhaustive;
mod crash_explorer;
mod crash_lives;
mod crash_shared;
mod crash_stages;
mod crash_trial;
mod designs_page;
mod deuce;
mod engine_audit;
mod engine_rules;
mod guarded;
mod hardware_log;
mod integrity;
mod integrity_more;
mod levelling;
mod link;
mod memory_common;
mod merge_algorithm;
mod merge_kernel;
mod module_buffer;
mod nvmain;
mod observers;
mod pausing;
mod reference;
mod rooms;
mod sca_timelines;
mod settings;
mod sim_programs;
mod sim_run;
mod sim_sample;
mod stacks;
mod timeline;
mod trace_info;
mod workload_programs;
mod workload_recovery;

#[test]
fn every_file_of_tests_is_named_above() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.strip_suffix(".rs");
        if let Some(module) = module.filter(|module| *module != "all") {
            let line = format!("\nmod {module};\n");
            assert!(
                include_str!("all.rs").contains(&line),
                "all.rs lacks `mod {module};`"
            );
        }
    }
}
