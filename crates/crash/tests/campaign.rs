//! The plans of sound designs for as long as one likes: in hours no false alarm may come.

use std::time::Instant;

use sardonyx::controller::designs::Stack;
use sardonyx_crash::{Attacks, Options, Platform, Trial};
use sardonyx_workload::DurabilityKind;

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

/// One recovery in so many is cut where each is a pass over memory.
const REBUILDS: u64 = 1024;

fn trial(design: &str, program: &str, platform: Platform, seed: u64) -> Trial {
    let stack = Stack::named(design).expect("a design");
    Trial {
        machine: "sca".into(),
        design: design.into(),
        program: program.into(),
        durability: DurabilityKind::on(&stack),
        seed,
        options: Options {
            platform,
            recovery_cuts: if design.starts_with("de") {
                REBUILDS
            } else {
                64
            },
            attacks: Attacks::unless_said(&stack),
            threads: 1,
            ..Options::default()
        },
        ..Trial::default()
    }
}

/// Makes the plans of all sound designs, on `adr` and `eadr`, with the seeds from `SEED` on until so many `MINUTES` are
/// over, and prints how many cuts that was.
#[test]
#[ignore = "slow: it takes as long as it is told to"]
fn the_plans_of_sound_designs_find_nothing() {
    let said = |name: &str, usual: u64| -> u64 {
        std::env::var(name).map_or(usual, |said| said.parse().expect("a number"))
    };
    let (began, minutes) = (Instant::now(), said("MINUTES", 1));
    let (mut cuts, mut plans) = (0, 0);
    for seed in said("SEED", sardonyx_property::seed().unwrap_or(1)).. {
        // All designs on both platforms before a second program.
        for program in PROGRAMS {
            let both = |design| [Platform::Adr, Platform::Eadr].map(|platform| (design, platform));
            for (design, platform) in SOUND.iter().flat_map(both) {
                if began.elapsed().as_secs() >= 60 * minutes {
                    return;
                }
                let answer = trial(design, program, platform, seed).answer(&|_, _| true);
                let answer = answer.expect("a plan").expect("nobody ends it");
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
