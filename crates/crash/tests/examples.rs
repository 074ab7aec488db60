//! The worked example of `docs/simulator/add-a-design.md`: the explorer tells its sound form from the one that trusts its counts.

use std::sync::Once;

use sardonyx::controller::designs::{self, AnyLayer};
use sardonyx::controller::mapping::COLLISION;
use sardonyx::controller::mapping::dedup_fold::FILE;
use sardonyx_crash::{Kind, Options, Trial, Verdict};

use crate::small_runs::{Small, explored};

fn know() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        FILE.layers
            .iter()
            .map(AnyLayer::Mapping)
            .for_each(designs::register)
    });
}

#[test]
fn the_sound_form_of_the_worked_example_survives_every_cut_and_the_other_does_not() {
    know();
    let found = |stack: &str| -> Vec<Kind> {
        let history = Small::BTREE.run(stack);
        let found = explored(&history, &Options::default());
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
        design: "dedup-fold-sound+fca".into(),
        program: "queue".into(),
        seed: 1,
        ..Trial::default()
    };
    let answer = trial.answer(&|_, _| true);
    let answer = answer.expect("it runs").expect("to its end");
    assert_eq!(answer.verdict, Verdict::Holds, "{answer:#?}");
    assert!(answer.exercised.of(&COLLISION) > 0);
}
