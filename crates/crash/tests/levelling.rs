//! Start-Gap under every cut of small runs, and two orders of its registers that lose lines.

use sardonyx_crash::{Kind, Options, Platform, Tear, Trial, Verdict};
use sardonyx_workload::DurabilityKind;

use crate::small_runs::{Small, explored, on};

fn crash(design: &str, [registers, first]: [&str; 2], options: Options) -> Vec<(Kind, String)> {
    let sets = [
        ("medium.levelling.scheme", "start-gap"),
        ("medium.levelling.region_lines", "16"),
        ("medium.levelling.writes_per_move", "2"),
        ("medium.levelling.registers", registers),
        ("medium.levelling.first_move", first),
    ];
    let run = Small {
        sets: &sets,
        durability: Some(DurabilityKind::default()),
        ..Small::BTREE
    };
    let history = run.run(design);
    let moved = history
        .exercised()
        .of(&sardonyx::medium::levelling::LINE_MOVED);
    assert!(moved > 100, "{design}: {moved}");
    let found = explored(&history, &options);
    assert!(found.covered.cuts > 500, "{design}: {:?}", found.covered);
    let kinds = found.tally.kinds.into_iter();
    kinds.map(|(kind, (_, first))| (kind, first.what)).collect()
}

#[test]
fn lines_that_move_survive_every_cut() {
    let eadr = on(Platform::Eadr);
    for (design, registers, options) in [
        ("sca", "reserve", Options::default()),
        ("sca", "group", Options::default()),
        ("sca", "after", Options::default()),
        ("sca", "reserve", eadr),
        ("fca", "group", eadr),
        ("co-located", "after", Options::default()),
        ("esd+sca", "reserve", Options::default()),
        ("esd-sound+fca", "group", Options::default()),
        ("hw-log", "reserve", Options::default()),
        ("sca@merkle", "reserve", Options::default()),
        ("fca@bonsai", "after", Options::default()),
        ("hw-log/identity+fca@bonsai", "reserve", Options::default()),
        ("hw-log/identity+fca@sgx-sound", "group", Options::default()),
    ] {
        let found = crash(design, [registers, "0"], options);
        assert!(
            found.is_empty(),
            "{design} {registers} {:?}: {found:?}",
            options.platform
        );
    }
}

#[test]
fn registers_that_come_too_late_or_too_early_lose_lines() {
    for registers in ["late", "before"] {
        let found = crash("fca", [registers, "0"], Options::default());
        assert!(!found.is_empty(), "{registers}");
    }
    for [registers, first] in [["byte", "220"], ["two-bytes", "65500"]] {
        let found = |registers| crash("fca", [registers, first], Options::default());
        assert!(!found(registers).is_empty(), "{registers}");
        assert!(found("group").is_empty(), "{first}");
    }
    // Nobody drains the registers.
    let none = Options {
        platform: Platform::None,
        tear: Tear::Lines,
        ..Options::default()
    };
    assert!(!crash("fca", ["reserve", "0"], none).is_empty());
}

/// Each of these keeps lines in runs from the beginning, or in large regions; what presses the levelling finds it.
#[test]
#[ignore = "slow: seven whole plans"]
fn the_plan_brings_levelling_to_its_rounds_and_its_number_of_moves_to_its_bytes() {
    let verdict = |registers: &str, pinned: &[(&str, &str)]| {
        let sets = [
            ("medium.levelling.scheme", "start-gap"),
            ("medium.levelling.registers", registers),
        ];
        let sets = sets.iter().chain(pinned);
        let trial = Trial {
            machine: "sca".into(),
            overrides: sets
                .map(|(key, value)| ((*key).into(), (*value).into()))
                .collect(),
            design: "fca".into(),
            program: "queue".into(),
            seed: 1,
            ..Trial::default()
        };
        let tried = trial.answer(&|_, _| true).expect("a trial");
        tried.expect("nobody ends it")
    };
    let right = verdict("group", &[]);
    assert_eq!(right.verdict, Verdict::Holds, "{:?}", right.lacks);
    for name in ["rounds of a gap", "rounds of a region", "moved lines"] {
        assert!(right.required.contains(&name), "{name}");
    }
    for registers in ["late", "before", "byte", "two-bytes"] {
        assert_eq!(
            verdict(registers, &[]).verdict,
            Verdict::Broken,
            "{registers}"
        );
    }
    let from_the_first = [("medium.levelling.first_move", "0")];
    let missed = verdict("two-bytes", &from_the_first);
    assert_eq!(
        missed.lost_cuts, 0,
        "no run from the first move comes so far"
    );
    let large = [("medium.levelling.region_lines", "262144")];
    let missed = verdict("group", &large);
    assert_eq!(missed.verdict, Verdict::NotExercised);
    let kept_by = missed.lacks.iter().flat_map(|lack| &lack.kept_by);
    assert!(
        kept_by
            .into_iter()
            .any(|by| by.contains("region_lines=262144")),
        "{:?}",
        missed.lacks
    );
}
