//! All tests of this crate in one program, because each program of tests links the whole simulator.

mod campaign;
mod deuce;
mod enumerated;
mod examples;
mod exhaustive;
mod explorer;
mod guarded;
mod hosted;
mod integrity;
mod integrity_more;
mod levelling;
mod lives;
mod out_of_place;
mod pausing;
mod plans;
mod planted;
mod settings;
mod shared;
mod small_runs;
mod stacks;
mod stages;
mod trial;

#[test]
fn every_file_of_tests_is_named_above() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    sardonyx_property::assert_all_named(folder, include_str!("all.rs"));
}
