//! Attacks of which none is drawn, on each integrity.

use sardonyx::config::Machine;
use sardonyx::controller::designs::Stack;
use sardonyx_crash::{EnumeratedAttacks, enumerate};

use crate::stacks::integrities;

fn rows(design: &str, settings: &[(&str, &str)]) -> Vec<EnumeratedAttacks> {
    let stack = Stack::named(design).expect("a stack");
    let machine = Machine::load("sca", settings).expect("a machine");
    enumerate(&stack, &machine.settings)
}

/// All of them are made, and none stays unnoticed that the scheme promises to notice, however MACs and versions lie.
#[test]
fn no_scheme_misses_any_of_them() {
    let beside = [
        ("integrity.mac_place", "beside"),
        ("integrity.minor_bits", "0"),
    ];
    let counters = [("integrity.leaves", "counters")];
    for (design, settings) in [
        ("identity+sca@mac", &[][..]),
        ("identity+no-encryption@mac", &[]),
        ("identity+no-encryption@bonsai", &[]),
        ("esd+sca@bonsai", &[]),
        ("esd+fca@sgx-sound", &[]),
        ("esd+split@bonsai", &counters),
        ("dewrite-sound+fca@bonsai", &beside),
        ("esd+sca@phoenix", &[]),
        ("esd+sca@star", &[]),
        ("esd+fca@scue", &[]),
        ("esd+split@bmf", &counters),
    ] {
        let rows = rows(design, settings);
        let bits = rows
            .iter()
            .filter(|row| row.what.contains(" bits of a line of "));
        let tried: Vec<u64> = bits.map(|row| row.tried).collect();
        assert!(
            tried.len() >= 2 && tried.iter().all(|tried| tried % 64 == 0 && *tried >= 512),
            "{design}: {tried:?}"
        );
        for row in &rows {
            assert_eq!(
                row.tried,
                row.refused + row.harmless + row.undetected,
                "{design}: {row:?}"
            );
            assert!(!row.is_unkept(), "{design}: {row:?}");
        }
        assert!(
            rows.iter().map(|row| row.refused).sum::<u64>() > 2000,
            "{design}"
        );
    }
    assert!(rows("identity+sca", &[]).is_empty(), "nothing is promised");
}

#[test]
#[ignore = "slow: trees over 1 TiB"]
fn no_scheme_misses_any_of_them_in_a_large_memory() {
    for integrity in integrities() {
        for below in [
            "identity+sca",
            "identity+split",
            "hw-log/identity+fca",
            "identity+deuce",
        ] {
            for row in rows(&format!("{below}@{integrity}"), &[]) {
                assert!(!row.is_unkept(), "{below}@{integrity}: {row:?}");
            }
        }
    }
}

#[test]
#[ignore = "by hand: it prints all rows"]
fn show() {
    for integrity in integrities() {
        for below in [
            "identity+sca",
            "identity+split",
            "esd+sca",
            "hw-log/identity+fca",
        ] {
            let design = format!("{below}@{integrity}");
            let began = std::time::Instant::now();
            let rows = rows(&design, &[]);
            println!("{design}: {:?}", began.elapsed());
            for row in rows {
                println!(
                    "  {:60} {:9} {:5} {:6} {:6} {:6} {:6} {:?}",
                    row.what,
                    row.kind,
                    row.promised,
                    row.tried,
                    row.refused,
                    row.harmless,
                    row.undetected,
                    row.first
                );
            }
        }
    }
}
