//! Faults that are planted into whole stacks (`sardonyx crash run --self-test`): what a plan finds of them.

use sardonyx::controller::designs::Stack;
use sardonyx_crash::{
    Attacks, Cuts, Kind, Options, Platform, SelfTest, Trial, know_planted_faults,
};
use sardonyx_workload::DurabilityKind;

use crate::small_runs::{Small, explored, on};

fn trial(design: &str) -> Trial {
    let stack = Stack::named(design).expect("a design");
    Trial {
        machine: "sca".into(),
        design: design.into(),
        program: "queue".into(),
        durability: DurabilityKind::on(&stack),
        seed: 1,
        options: Options {
            attacks: Attacks::unless_said(&stack),
            ..Options::default()
        },
        ..Trial::default()
    }
}

fn tested(design: &str) -> SelfTest {
    let tested = trial(design).self_test(&|_, _| true).expect("a design");
    tested.expect("nobody ends it")
}

fn names(faults: &[sardonyx_crash::PlantedFault]) -> Vec<&str> {
    faults.iter().map(|planted| planted.fault).collect()
}

#[test]
fn the_default_plan_finds_what_is_planted_into_sca() {
    let tested = tested("sca");
    assert_eq!(tested.itself, None);
    assert_eq!(names(&tested.missed), [""; 0]);
    assert_eq!(names(&tested.equivalent), [""; 0]);
    // Nothing in front of the encryption makes a write wait.
    assert_eq!(names(&tested.no_occasion), ["policy-gate-ignored"]);
    assert_eq!(tested.caught.len(), 11, "{tested:?}");
    assert!(tested.caught.iter().all(|fault| fault.shown.is_some()));
}

#[test]
fn a_fault_that_changes_nothing_is_not_counted() {
    let tested = tested("no-encryption");
    assert_eq!(names(&tested.missed), [""; 0]);
    assert_eq!(
        names(&tested.equivalent),
        [
            "policy-mark-lost",
            "policy-some-marks-lost",
            "policy-recovery-forgotten"
        ],
        "marks are the encryption's, and there is none"
    );
    assert_eq!(tested.caught.len(), 6);
}

/// Over a log few cuts show that a line is not there yet: the run as a whole does, without any.
#[test]
fn a_request_that_is_accepted_before_its_bytes_is_seen_without_a_cut() {
    know_planted_faults();
    let small = Small {
        program: "queue",
        ..Small::BTREE
    };
    for design in ["hw-log", "proteus", "easy-pm", "lad", "silo", "fwb"] {
        let seen = |design: &str| {
            let found = explored(
                &small.run(design),
                &Options {
                    cuts: Cuts::Sample(1),
                    ..on(Platform::Adr)
                },
            );
            let lost = found.tally.kinds.get(&Kind::LineLost);
            lost.is_some_and(|(_, first)| first.what.contains("its bytes are not"))
        };
        assert!(!seen(design), "{design}");
        // The others answer once they keep the line themselves, on chip or in their log.
        let waits = ["hw-log", "proteus", "easy-pm"].contains(&design);
        assert_eq!(
            seen(&format!("{design}!policy-not-awaited")),
            waits,
            "{design}"
        );
    }
}

#[test]
fn nothing_is_planted_into_a_design_that_is_broken_itself() {
    let tested = tested("no-atomicity");
    assert_eq!(tested.itself.as_deref(), Some("unrecoverable"));
    assert!(tested.caught.is_empty() && tested.missed.is_empty());
}

#[test]
fn a_run_in_which_an_honest_line_is_refused_is_broken_and_no_error() {
    know_planted_faults();
    let answer = trial("sca@sgx-sound!guard-write-unheard").answer(&|_, _| true);
    let answer = answer.expect("a verdict").expect("nobody ends it");
    let answer = serde_json::to_value(&answer).expect("JSON");
    assert_eq!(answer["verdict"], "broken");
    let told = answer["violations"].to_string();
    assert!(told.contains("is not authentic"), "{told}");
}

#[test]
fn a_fault_is_named_after_its_design() {
    know_planted_faults();
    assert!(Stack::named("hw-log/esd+sca@bonsai!guard-register-late").is_ok());
    let refused = |name: &str| {
        let refused = Stack::named(name).err().expect("there is none");
        refused.to_string()
    };
    assert!(refused("sca!policy-mark-los").contains("policy-mark-lost"));
    assert!(refused("sac!policy-mark-lost").contains("sca"));
}
