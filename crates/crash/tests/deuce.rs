//! DEUCE under every cut of small runs: lines decrypt, and no pad is used twice.

use sardonyx_crash::Options;

use crate::small_runs::{Small, assert_holds, explored};

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
            let run = Small {
                sets: &sets,
                program,
                cores,
                transactions: 40,
                seed: 7,
                schedule: 1,
                ..Small::BTREE
            };
            let history = run.run(design);
            let found = explored(&history, &Options::default());
            assert_holds(&history, &found);
            cuts += found.covered.cuts;
        }
    }
    assert!(cuts > 5_000, "{cuts}");
}
