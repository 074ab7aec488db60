//! What follows a cut: later lives, media that guarantee words only, and reports that one can debug with.

use sardonyx::config::Machine;
use sardonyx_crash::{
    Cuts, ExploredCuts, History, Kind, Options, Platform, Tear, Violation, explain,
};
use sardonyx_workload::{DurabilityKind, Mutant, ProgramSpec, Sharing};

use crate::small_runs::{assert_holds, explored, on, told};

fn recorded(program: &str, design: &str, cores: u64, mutant: Option<Mutant>) -> History {
    let spec = |core| ProgramSpec {
        name: program.into(),
        item_bytes: 64,
        footprint: 4096,
        transactions: 24,
        seed: 3 + core,
        durability: DurabilityKind::SoftwareUndo { mutant },
        sharing: match cores {
            1 => Sharing::Packed,
            _ => Sharing::Interleaved { cores },
        },
        ..ProgramSpec::default()
    };
    let specs: Vec<ProgramSpec> = (0..cores).map(spec).collect();
    let small = [
        ("encryption.counter_cache.bytes", "128"),
        ("encryption.counter_cache.ways", "2"),
        ("encryption.mark_stride", "8"),
    ];
    let machine = Machine::load("sca", &small).expect("a machine");
    History::record(&machine, design, &specs, 4).expect("a design and a program")
}

fn first(explored: &ExploredCuts, kind: Kind) -> Option<&Violation> {
    explored.tally.kinds.get(&kind).map(|(_, first)| first)
}

/// Sound designs hold in the lives after a cut, in the third as in the second, on every number of cores.
#[test]
fn life_goes_on_after_a_cut_and_is_cut_again() {
    for (program, design, cores, platform) in [
        ("btree", "sca", 1, Platform::Adr),
        ("queue", "fca", 2, Platform::Adr),
        ("hash", "co-located", 2, Platform::Eadr),
        ("duplicates", "esd+sca", 2, Platform::Adr),
        // Here a neighbour's mapping was drained with a line's own.
        ("queue", "esd-sound", 2, Platform::Eadr),
        ("array-swap", "no-encryption", 1, Platform::Eadr),
    ] {
        let history = recorded(program, design, cores, None);
        let options = Options {
            platform,
            recovery_cuts: 8,
            ..Options::default()
        };
        let found = explored(&history, &options);
        assert_holds(&history, &found);
        assert!(found.covered.recovery_cuts > found.covered.cuts / 2);
        let rarer = Options {
            recovery_cuts: 512,
            ..options
        };
        let fewer = explored(&history, &rarer).covered.recovery_cuts;
        assert!(fewer < found.covered.recovery_cuts);
    }
}

/// A mistake that this cut does not show shows in the life after it, and the same command finds it again.
#[test]
fn a_later_life_tells_its_own_story_and_replays() {
    let history = recorded("btree", "sca", 1, Some(Mutant::CommitNotCounterAtomic));
    let at = |position| {
        let options = Options {
            cuts: Cuts::One(position),
            recovery_cuts: 1,
            ..Options::default()
        };
        explored(&history, &options)
    };
    let positions = (0..history.positions()).step_by(37);
    let found = positions
        .map(at)
        .find(|found| found.tally.first().any(|v| !v.later_cuts.is_empty()))
        .expect("in some life");
    let violation = found.tally.first().next().expect("it is there");
    let story = explain(&history, violation);
    assert!(story[0].contains(&format!("seed 4, cut {}", violation.position)));
    assert!(story[0].contains(&format!("then cut {}", violation.later_cuts[0])));
    let words = story.join("\n");
    assert!(words.contains("in life 2 of the programs:") && words.contains("the log: valid flag"));
    assert!(story.len() < 50, "{words}");
    let again = at(violation.position);
    assert_eq!(again, found);
}

#[test]
fn a_report_has_bytes_whose_content_they_are_and_the_log() {
    let of = |program, design, mutant, platform, kind| {
        let history = recorded(program, design, 1, mutant);
        let found = explored(&history, &on(platform));
        let violation = first(&found, kind).expect("it is caught").clone();
        let story = explain(&history, &violation);
        assert!(story.len() < 40, "{story:#?}");
        story.join("\n")
    };
    let wrong = of(
        "btree",
        "sca",
        Some(Mutant::LogsNewValues),
        Platform::Adr,
        Kind::WrongLine,
    );
    assert!(
        wrong.contains("the log: valid flag 0x1, transaction "),
        "{wrong}"
    );
    assert!(
        wrong.contains("and its backup is what transaction"),
        "{wrong}"
    );
    assert!(wrong.contains(": what transaction "), "{wrong}");
    assert!(
        wrong.contains("; from byte ") && wrong.contains(", not "),
        "{wrong}"
    );
    let lost = of("queue", "fca", None, Platform::None, Kind::LineLost);
    assert!(lost.contains(": reads as "), "{lost}");
    assert!(
        lost.contains("; from byte ") && lost.contains(", not "),
        "{lost}"
    );
    let gone = of(
        "queue",
        "no-atomicity",
        None,
        Platform::Adr,
        Kind::Unrecoverable,
    );
    assert!(gone.contains("the log: valid flag 0x"), "{gone}");
}

/// A flush that succeeds leaves what reserve power for caches leaves, one that fails as a whole what none leaves. One
/// that ends part way loses what was promised, and takes pairs apart.
#[test]
fn a_global_flush_leaves_what_its_failure_says() {
    for design in ["no-encryption", "fca", "sca"] {
        let history = recorded("btree", design, 1, None);
        let on = |platform| {
            let options = Options {
                platform,
                recovery_cuts: 0,
                ..Options::default()
            };
            explored(&history, &options)
        };
        assert!(on(Platform::Gpf).tally.kinds.is_empty(), "{design}");
        assert_eq!(on(Platform::Gpf).tally, on(Platform::Eadr).tally);
        assert_eq!(on(Platform::GpfFailed).tally, on(Platform::None).tally);
        assert!(on(Platform::GpfDevice).tally.count(false) > 0, "{design}");
        let part = on(Platform::GpfPart);
        assert!(first(&part, Kind::Lost).is_some(), "{design}");
        let apart = [Kind::WrongLine, Kind::Unrecoverable];
        let apart = apart.iter().any(|kind| first(&part, *kind).is_some());
        assert!(apart || design == "no-encryption", "{design}");
    }
}

/// A medium that guarantees eight bytes is not enough for an undo log whose header says in one store of
/// three words that it is valid, of what transaction and how long.
#[test]
fn the_log_s_header_needs_more_than_words() {
    let torn = |tear| Options {
        tear,
        recovery_cuts: 0,
        ..Options::default()
    };
    for design in ["no-encryption", "sca", "fca", "co-located"] {
        let history = recorded("btree", design, 1, None);
        let whole = explored(&history, &torn(Tear::Lines));
        assert_holds(&history, &whole);
        let words = explored(&history, &torn(Tear::Words));
        assert!(words.tally.count(false) > 0, "{design}");
        assert_eq!(words, explored(&history, &torn(Tear::Words)));
        // A line that is torn is in nobody's promise; only what the program needs of it counts.
        assert!(
            first(&words, Kind::LineLost).is_none(),
            "{}",
            told(&history, &words)
        );
    }
}

/// What the explorer takes for granted is looked at like the rest, and ends nothing.
#[test]
fn a_failed_audit_or_assertion_is_a_violation() {
    let mut history = recorded("btree", "sca", 1, None);
    let write = history.journal.array.len() / 2;
    history.journal.array[write].line[5] ^= 1;
    let found = explored(&history, &Options::default());
    let violation = first(&found, Kind::ArrayWrite).expect("the array is not what was accepted");
    assert!(violation.what.contains("changes what a cut leaves"));
    let mut history = recorded("btree", "sca", 1, None);
    history.programs[0].initial.truncate(4);
    let found = explored(&history, &Options::default());
    let ended = first(&found, Kind::RunEnded).expect("what is expected is not there");
    assert!(ended.what.contains("golden.rs:"), "{}", ended.what);
    assert_eq!(found.covered.cuts, history.positions());
}
