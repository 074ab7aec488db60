//! All orders of acceptance of a run of two lines and two transactions: what is sound is proven within that
//! bound, what is not is broken in one of them, and that order makes it again.

use sardonyx::config::Machine;
use sardonyx::controller::designs::Stack;
use sardonyx_crash::{Exhaustive, OneRun, Options, Proof, ShownInAll};
use sardonyx_property as property;
use sardonyx_workload::{DurabilityKind, Mutant, ProgramSpec, Sharing};

/// Two items of a line each are swapped so many times by each core.
fn swaps(design: &str, cores: usize, transactions: u64, sharing: Sharing) -> Exhaustive {
    let durability = DurabilityKind::on(&Stack::named(design).expect("a design"));
    let spec = |core: u64| ProgramSpec {
        name: "array-swap".into(),
        item_bytes: 64,
        footprint: 128,
        transactions,
        seed: 1024 + core,
        durability,
        sharing,
        ..ProgramSpec::default()
    };
    Exhaustive {
        run: OneRun {
            machine: Machine::load("sca", &[] as &[(&str, &str)]).expect("a machine"),
            design: design.into(),
            specs: (0..cores as u64).map(spec).collect(),
            seed: 1,
            options: Options {
                recovery_cuts: 1,
                threads: 1,
                ..Options::default()
            },
            script: None,
        },
        most_states: 200_000,
        order: None,
    }
}

fn answer(asked: &Exhaustive) -> Proof {
    let answer = asked.answer(&|_, _| true).expect("a design and a program");
    answer.expect("nobody cancels")
}

/// Each design with one core, with all orders of second lives, and in the first life with two, whose lines share
/// lines of counters.
#[test]
fn what_is_sound_is_proven_and_what_is_not_is_broken_in_some_order() {
    const SOUND: [&str; 14] = [
        "no-encryption",
        "ideal",
        "co-located",
        "co-located-cc",
        "fca",
        "sca",
        "esd-sound",
        "esd+sca",
        "dedup-sha1-sound",
        "dewrite-sound",
        "zero-lines",
        "hw-log",
        "easy-pm",
        "hw-log/esd+sca",
    ];
    for (cores, transactions) in property::some(&[(1, 2), (2, 1)], 1) {
        for design in property::some(&SOUND, 3) {
            let mut asked = swaps(design, cores, transactions, sharing(cores));
            asked.run.options.recovery_cuts = u64::from(cores == 1);
            let proof = answer(&asked);
            let said = || serde_json::to_string_pretty(&proof).expect("JSON");
            assert_eq!(
                proof.verdict,
                ShownInAll::Proven,
                "{design}, {cores}: {}",
                said()
            );
            assert!(!proof.fails && proof.complete && proof.violations.is_empty());
            assert!(proof.states > 10 && proof.cuts > 100, "{}", said());
            assert!(cores == 2 || proof.lives > 10 && proof.recovery_cuts > proof.cuts);
        }
    }
    for (design, verdict) in [
        ("no-atomicity", ShownInAll::Caught),
        ("alc", ShownInAll::Caught),
        ("esd-as-published", ShownInAll::Caught),
        ("baseline", ShownInAll::Broken),
    ] {
        let proof = answer(&swaps(design, 1, 2, sharing(1)));
        assert_eq!(proof.verdict, verdict, "{design}");
        assert_eq!(proof.fails, verdict == ShownInAll::Broken);
    }
}

fn sharing(cores: usize) -> Sharing {
    let cores = cores.next_power_of_two() as u64;
    Sharing::Interleaved { cores }
}

#[test]
#[ignore = "slow: all orders of each mutant"]
fn the_mistakes_of_a_program_are_found_and_the_order_shows_them_again() {
    let mut missed = Vec::new();
    for mutant in Mutant::ALL {
        let mut asked = swaps("sca", 1, 2, Sharing::Apart);
        let mutant = Some(*mutant);
        asked.run.specs[0].durability = DurabilityKind::SoftwareUndo { mutant };
        let proof = answer(&asked);
        let Some(violation) = proof.violations.first() else {
            missed.extend(mutant.map(|mutant| mutant.name()));
            continue;
        };
        assert_eq!(proof.verdict, ShownInAll::Broken);
        asked.order = Some(violation.order.clone());
        let again = answer(&asked);
        assert_eq!(again.orders, 1);
        let kinds: Vec<&str> = again.violations.iter().map(|v| v.told.kind).collect();
        assert!(
            kinds.contains(&violation.told.kind),
            "{mutant:?}: {kinds:?}"
        );
    }
    assert_eq!(missed, [""; 0]);
}

#[test]
fn it_says_that_it_gave_up_and_never_that_it_holds() {
    let mut asked = swaps("sca", 1, 2, Sharing::Apart);
    asked.most_states = 5;
    let proof = answer(&asked);
    assert_eq!(
        (proof.verdict, proof.complete),
        (ShownInAll::Unfinished, false)
    );
    assert!(proof.fails);
    let mut asked = swaps("sca", 1, 2, Sharing::Apart);
    asked.order = Some(Vec::new());
    let proof = answer(&asked);
    assert_eq!((proof.verdict, proof.orders), (ShownInAll::Unfinished, 1));
}
