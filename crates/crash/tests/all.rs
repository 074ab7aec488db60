//! All tests of this crate in one program, because each program of tests links the whole simulator.

mod campaign;
mod deuce;
mod examples;
mod exhaustive;
mod explorer;
mod guarded;
mod hosted;
mod integrity;
mod integrity_more;
mod levelling;
mod lives;
mod pausing;
mod settings;
mod shared;
mod small;
mod stacks;
mod stages;
mod trial;

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
