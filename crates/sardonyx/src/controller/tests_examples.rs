//! The worked example of `docs/add-a-design.md`, which is compiled for tests alone: it gives back what it got, it
//! shares what is equal, and the crash explorer tells its sound form from the one that trusts its counts.

use std::collections::HashMap;
use std::sync::Once;

use super::designs::{self, AnyLayer};
use super::harness::Rig;
use super::mapping::dedup_fold::FILE;
use crate::config::Machine;
use crate::crash::{History, Kind, Options, Trial, Verdict, explore};
use crate::line::Line;
use crate::mechanisms::Mechanism;
use crate::settings::Settings;
use crate::workload::{DurabilityKind, ProgramSpec, Sharing};

fn know() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        FILE.layers
            .iter()
            .map(AnyLayer::Mapping)
            .for_each(designs::register)
    });
}

fn content(seed: u64) -> Line {
    let mut line = [0x33; 64];
    line[8..16].copy_from_slice(&seed.to_le_bytes());
    line
}

#[test]
fn the_worked_example_gives_back_what_it_got_and_shares_what_is_equal() {
    know();
    for stack in [FILE.designs[0].stack, "dedup-fold-sound+fca"] {
        let mut rig = Rig::new(stack, &Settings::default(), 128);
        let mut held: HashMap<u64, u64> = HashMap::new();
        let mut shared = 0;
        for number in 0..600 {
            let (line, seed) = (number * 7 % 60, number * number % 23);
            shared += u64::from(held.values().any(|content| *content == seed));
            rig.write(line, &content(seed));
            held.insert(line, seed);
        }
        assert_eq!(rig.figure("duplicate_writes"), shared as f64, "{stack}");
        assert!(shared > 100);
        rig.restart();
        for (line, seed) in held {
            assert_eq!(rig.read(line), Some(content(seed)), "{stack}, line {line}");
        }
    }
}

#[test]
fn the_sound_form_of_the_worked_example_survives_every_cut_and_the_other_does_not() {
    know();
    let spec = ProgramSpec {
        name: "btree".into(),
        item_bytes: 64,
        footprint: 8192,
        transactions: 20,
        seed: 3,
        durability: DurabilityKind::SoftwareUndo { mutant: None },
        sharing: Sharing::Apart,
    };
    let machine = Machine::load("sca", &[] as &[(&str, &str)]).expect("a machine");
    let found = |stack: &str| -> Vec<Kind> {
        let history = History::record(&machine, stack, std::slice::from_ref(&spec), 5);
        let history = history.unwrap_or_else(|error| panic!("{stack}: {error}"));
        let found = explore(&history, &Options::default(), &|_| true).expect("nobody cancels");
        assert!(found.covered.cuts > 1000, "{stack}: {:?}", found.covered);
        found.tally.kinds.into_keys().collect()
    };
    assert_eq!(found("dedup-fold-sound+fca"), []);
    assert_eq!(found(FILE.designs[0].stack), [Kind::WrongLine]);
}

/// The plan of `crash`: keys of the file are pressed as those of any other layer are, so that eight bytes collide.
#[test]
#[ignore = "slow: whole plans"]
fn the_plan_of_crash_makes_the_fingerprints_of_the_worked_example_collide() {
    know();
    let trial = Trial {
        machine: "sca".into(),
        overrides: Vec::new(),
        design: "dedup-fold-sound+fca".into(),
        program: "queue".into(),
        durability: DurabilityKind::SoftwareUndo { mutant: None },
        seed: 1,
        cores: None,
        transactions: None,
        item_bytes: None,
        footprint: None,
        options: Options::default(),
        thorough: None,
        guided: 0,
        shorten: false,
    };
    let answer = trial.answer(&|_, _| true);
    let answer = answer.expect("it runs").expect("to its end");
    assert_eq!(answer.verdict, Verdict::Holds, "{answer:#?}");
    assert!(answer.exercised.of(Mechanism::Collision) > 0);
}
