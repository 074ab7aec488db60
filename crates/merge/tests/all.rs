//! All tests of this crate in one program, because each program of tests links the whole simulator.

mod algorithm;
mod kernel;
mod running_kernel;

#[test]
fn every_file_of_tests_is_named_above() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    sardonyx_property::assert_all_named(folder, include_str!("all.rs"));
}
