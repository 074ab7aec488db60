//! DEUCE under every cut of small runs: lines decrypt, and no pad is used twice.

use sardonyx::config::Machine;
use sardonyx::workload::{DurabilityKind, ProgramSpec};
use sardonyx_crash::{History, Options, explain, explore};

#[test]
fn every_cut_leaves_lines_that_decrypt_and_no_pad_twice() {
    let mut cuts = 0;
    for (design, program, cores) in [
        ("deuce", "btree", 1),
        ("deuce", "queue", 2),
        ("deuce", "array-swap", 1),
        ("esd-sound+deuce", "queue", 1),
        ("hw-log/identity+deuce", "queue", 1),
        ("deuce@mac", "queue", 1),
    ] {
        for epoch in ["4", "32"] {
            let sets = [("encryption.deuce.epoch", epoch)];
            let machine = Machine::load("sca", &sets).expect("a machine");
            let spec = |core: u64| ProgramSpec {
                name: program.into(),
                item_bytes: 64,
                footprint: 8192,
                transactions: 40,
                seed: 7 + core,
                durability: match design.starts_with("hw") {
                    true => DurabilityKind::Hardware,
                    false => DurabilityKind::SoftwareUndo { mutant: None },
                },
                ..ProgramSpec::default()
            };
            let specs: Vec<ProgramSpec> = (0..cores).map(spec).collect();
            let history = History::record(&machine, design, &specs, 1).expect("a design");
            let found = explore(&history, &Options::default(), &|_| true).expect("nobody cancels");
            let first = found.tally.first();
            let told: Vec<String> = first.flat_map(|one| explain(&history, one)).collect();
            assert!(
                found.tally.kinds.is_empty(),
                "{design}: {}",
                told.join("\n")
            );
            cuts += found.covered.cuts;
        }
    }
    assert!(cuts > 5_000, "{cuts}");
}
