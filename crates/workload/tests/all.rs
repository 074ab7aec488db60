//! All tests of the programs in one program, which links the simulator once.

mod programs;
mod recovery;

#[test]
fn every_file_of_tests_is_named_above() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    sardonyx_property::assert_all_named(folder, include_str!("all.rs"));
}
