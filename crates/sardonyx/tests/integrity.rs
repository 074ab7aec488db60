//! The schemes of integrity under power cuts: honest recoveries are believed, and the attacker is noticed where a
//! scheme says so. What a design without one loses is a row as well.

use sardonyx::config::Machine;
use sardonyx::controller::designs::Stack;
use sardonyx::crash::{Attack, History, Options, Platform, attack, explore};
use sardonyx::workload::{DurabilityKind, ProgramSpec, Sharing};

fn history(design: &str, cores: u64) -> History {
    let hardware = Stack::named(design).unwrap().keeps_log();
    let spec = |core| ProgramSpec {
        name: "btree".into(),
        item_bytes: 64,
        footprint: 8192,
        transactions: 16,
        seed: 3 + core,
        durability: match hardware {
            true => DurabilityKind::Hardware,
            false => DurabilityKind::SoftwareUndo { mutant: None },
        },
        sharing: Sharing::Apart,
    };
    let specs: Vec<ProgramSpec> = (0..cores).map(spec).collect();
    let machine = Machine::load("sca", &[] as &[(&str, &str)]).expect("a machine");
    History::record(&machine, design, &specs, 5).unwrap_or_else(|error| panic!("{design}: {error}"))
}

#[test]
fn honest_recoveries_are_believed_at_every_cut() {
    for design in [
        "sca@mac",
        "sca@merkle",
        "identity+no-encryption@merkle",
        "fca@merkle",
        "co-located@merkle",
        "esd-sound+fca@merkle",
    ] {
        let options = Options {
            recovery_cuts: 16,
            ..Options::default()
        };
        let found = explore(&history(design, 2), &options, &|_| true).expect("nobody cancels");
        assert!(found.covered.cuts > 1000, "{design}: {:?}", found.covered);
        assert!(
            found.covered.later_lives > 0,
            "{design}: {:?}",
            found.covered
        );
        assert!(found.tally.kinds.is_empty(), "{design}: {:?}", found.tally);
    }
}

#[test]
fn the_attacker_is_noticed_where_a_scheme_promises_it_and_not_where_none_does() {
    for (design, undetected) in [
        ("sca", [true; 4]),
        ("sca@mac", [false, false, true, true]),
        ("sca@merkle", [false; 4]),
        ("esd-sound+fca@merkle", [false; 4]),
        ("co-located@merkle", [false; 4]),
    ] {
        let found = attack(&history(design, 1), Platform::Adr, 40, 10, 1);
        let stack = Stack::named(design).unwrap();
        assert_eq!((found.cuts, found.honest_refused), (40, 0), "{design}");
        for (kind, loses) in Attack::ALL.into_iter().zip(undetected) {
            let came = found.of(kind);
            println!(
                "{design} {}: {} tried, {} refused, {} harmless, {} undetected; first {:?}",
                kind.name(),
                came.tried,
                came.refused,
                came.harmless,
                came.undetected,
                came.first
            );
            assert!(came.tried > 200, "{design}, {kind:?}: {came:?}");
            assert_eq!(
                kind.is_refused_by(stack.integrity.promises),
                !loses,
                "{design}, {kind:?}"
            );
            assert_eq!(came.undetected > 0, loses, "{design}, {kind:?}: {came:?}");
        }
    }
}

#[test]
fn what_reserve_power_dumps_is_believed() {
    for (design, platform) in [
        ("hw-log/identity+sca@merkle", Platform::Adr),
        ("esd-sound+fca@mac", Platform::Eadr),
        ("sca@merkle", Platform::Eadr),
    ] {
        let found = attack(&history(design, 1), platform, 60, 0, 1);
        assert_eq!(
            (found.cuts, found.honest_refused),
            (60, 0),
            "{design}, {platform:?}"
        );
    }
}
