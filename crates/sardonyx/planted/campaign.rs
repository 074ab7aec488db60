//! The plans of sound designs for as long as one likes: in hours no false alarm may come.

use std::time::Instant;

use sardonyx::crash::Platform;

use super::{on, trial, turn};

/// Designs that are sound, and programs.
const SOUND: &[&str] = &[
    "sca",
    "fca",
    "co-located",
    "co-located-cc",
    "deuce",
    "ideal",
    "no-encryption",
    "easy-pm",
    "hw-log",
    "zero-lines",
    "esd+sca",
    "hw-log/esd+sca",
    "esd-sound",
    "dedup-sha1-sound",
    "dewrite-sound",
];
const PROGRAMS: &[&str] = &["btree", "queue", "hash", "rbtree", "array-swap"];

/// Makes the plans of all sound designs, on `adr` and `eadr`, without a fault, with the seeds from `SEED` on until so many
/// `MINUTES` are over, and prints how many cuts that was.
#[test]
#[ignore = "it takes as long as it is told to"]
fn campaign() {
    let _turn = turn();
    let said = |name: &str, usual: u64| -> u64 {
        std::env::var(name).map_or(usual, |said| said.parse().expect("a number"))
    };
    let (began, minutes) = (Instant::now(), said("MINUTES", 1));
    let (mut cuts, mut plans) = (0, 0);
    for seed in said("SEED", 1).. {
        // All designs on both platforms before a second program.
        for program in PROGRAMS {
            let both = |design| [Platform::Adr, Platform::Eadr].map(|platform| (design, platform));
            for (design, platform) in SOUND.iter().flat_map(both) {
                if began.elapsed().as_secs() >= 60 * minutes {
                    return;
                }
                let mut trial = trial(on(design, program), None, seed);
                trial.options.platform = platform;
                trial.options.threads = 1;
                let answer = trial.answer(&|_, _| true).expect("a plan");
                let answer = answer.expect("nobody ends it");
                (cuts, plans) = (cuts + answer.cuts + answer.recovery_cuts, plans + 1);
                let kinds: Vec<&str> = answer.violations.iter().map(|told| told.kind).collect();
                println!(
                    "{design}, {program}, {}, {seed}: {plans} plans, {cuts} cuts",
                    platform.name()
                );
                assert!(kinds.is_empty(), "{kinds:?}");
            }
        }
    }
}
