//! Start-Gap under every cut of small runs, and two orders of its registers that lose lines.

use sardonyx::config::Machine;
use sardonyx::workload::{DurabilityKind, ProgramSpec, Sharing};
use sardonyx_crash::{History, Kind, Options, Platform, Tear, explore};

fn crash(design: &str, registers: &str, options: Options) -> Vec<(Kind, String)> {
    let spec = ProgramSpec {
        name: "btree".into(),
        item_bytes: 64,
        footprint: 8192,
        transactions: 20,
        seed: 3,
        durability: DurabilityKind::SoftwareUndo { mutant: None },
        sharing: Sharing::Apart,
        contents: sardonyx::workload::Contents::Numbered,
    };
    let sets = [
        ("medium.levelling.scheme", "start-gap"),
        ("medium.levelling.region_lines", "16"),
        ("medium.levelling.writes_per_move", "2"),
        ("medium.levelling.registers", registers),
    ];
    let machine = Machine::load("sca", &sets).expect("a machine");
    let history = History::record(&machine, design, &[spec], 5);
    let history = history.unwrap_or_else(|error| panic!("{design}: {error}"));
    let moved = history
        .exercised()
        .of(sardonyx::mechanisms::Mechanism::LineMoved);
    assert!(moved > 100, "{design}: {moved}");
    let found = explore(&history, &options, &|_| true).expect("nobody cancels");
    assert!(found.covered.cuts > 500, "{design}: {:?}", found.covered);
    let kinds = found.tally.kinds.into_iter();
    kinds.map(|(kind, (_, first))| (kind, first.what)).collect()
}

#[test]
fn lines_that_move_survive_every_cut() {
    let eadr = Options {
        platform: Platform::Eadr,
        ..Options::default()
    };
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
    ] {
        let found = crash(design, registers, options);
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
        let found = crash("fca", registers, Options::default());
        assert!(!found.is_empty(), "{registers}");
    }
    // Nobody drains the registers.
    let none = Options {
        platform: Platform::None,
        tear: Tear::Lines,
        ..Options::default()
    };
    assert!(!crash("fca", "reserve", none).is_empty());
}
