//! The schemes of integrity under power cuts: honest recoveries are believed, and the attacker is noticed where a
//! scheme says so. What a design without one loses is a row as well.

use sardonyx::controller::designs::Stack;
use sardonyx_crash::{Attack, Attacked, Attacks, History, Options, Platform, Tear, When, attack};

use crate::small_runs::{Small, assert_believed, on};

fn history(design: &str, cores: u64) -> History {
    let run = Small {
        cores,
        transactions: 16,
        ..Small::BTREE
    };
    run.run(design)
}

fn attacked(design: &str, platform: Platform, (looks, each): (u64, u64)) -> Attacked {
    let one = None;
    attack(
        &history(design, 1),
        &on(platform),
        Attacks { looks, each, one },
    )
}

#[test]
fn honest_recoveries_are_believed_at_every_cut() {
    believed(&[
        "sca@mac",
        "sca@merkle",
        "identity+no-encryption@merkle",
        "fca@merkle",
        "co-located@merkle",
        "esd-sound+fca@merkle",
    ]);
}

#[test]
fn honest_recoveries_are_believed_at_every_cut_of_bonsai_trees() {
    believed(&[
        "sca@bonsai",
        "esd-sound+fca@bonsai",
        "identity+no-encryption@bonsai-lazy-sound",
        "sca@bonsai-lazy-sound",
        "sca@supermem",
        "fca@supermem",
    ]);
}

#[test]
fn honest_recoveries_are_believed_at_every_cut_where_versions_are_found_again() {
    believed(&[
        "sca@osiris",
        "esd-sound+fca@osiris",
        "sca@anubis",
        "fca@anubis",
    ]);
}

#[test]
fn honest_recoveries_are_believed_at_every_cut_of_persisted_levels_and_merged_paths() {
    believed(&[
        "sca@triad",
        "esd-sound+fca@triad",
        "sca@plp",
        "fca@plp",
        "sca@bmf",
        "esd-sound+fca@bmf",
    ]);
}

fn believed(designs: &[&str]) {
    for design in designs {
        assert_believed(design, &history(design, 2));
    }
}

#[test]
fn the_attacker_is_noticed_where_a_scheme_promises_it_and_not_where_none_does() {
    const ALL: [bool; 5] = [true; 5];
    const STALE: [bool; 5] = [false, false, true, true, true];
    const NONE: [bool; 5] = [false; 5];
    const ATTACKED: &[(&str, [bool; 5])] = &[
        ("sca", ALL),
        ("sca@mac", STALE),
        ("sca@merkle", NONE),
        ("esd-sound+fca@merkle", NONE),
        ("esd-sound+fca", ALL),
        ("co-located@merkle", NONE),
        ("hw-log/identity+sca@merkle", NONE),
        ("sca@bonsai", NONE),
        ("sca@bonsai-lazy-sound", NONE),
        ("esd-sound+fca@bonsai", NONE),
        ("hw-log/identity+sca@bonsai", NONE),
        ("sca@supermem", NONE),
        ("sca@osiris", NONE),
        ("hw-log/identity+sca@osiris", NONE),
        ("sca@triad", NONE),
        ("sca@anubis", NONE),
        ("esd-sound+fca@anubis", NONE),
        ("hw-log/identity+sca@anubis", NONE),
        ("sca@plp", NONE),
        ("sca@bmf", NONE),
        ("hw-log/identity+sca@bmf", NONE),
    ];
    for (design, undetected) in sardonyx_property::some(ATTACKED, 4) {
        let found = attacked(design, Platform::Adr, (40, 10));
        let stack = Stack::named(design).unwrap();
        assert_eq!((found.cuts, found.honest_refused), (40, 0), "{design}");
        for when in When::ALL {
            for (kind, loses) in Attack::ALL.into_iter().zip(undetected) {
                let came = found.of(when, kind);
                println!(
                    "{design} {} {}: {} t, {} r, {} h, {} u",
                    when.name(),
                    kind.name(),
                    came.tried,
                    came.refused,
                    came.harmless,
                    came.undetected,
                );
                assert!(came.tried > 100, "{design}, {when:?} {kind:?}: {came:?}");
                let of = (design, when, kind);
                assert_eq!(
                    kind.is_refused_by(stack.integrity.promises),
                    !loses,
                    "{of:?}"
                );
                // With MACs in a cache, and counters, who rolls back in a run meets newer ones.
                let caches = design == "sca@mac" && when == When::Running;
                if !(loses && caches && kind == Attack::Rollback) {
                    assert_eq!(came.undetected > 0, loses, "{of:?}: {came:?}");
                }
                if came.undetected > 0 {
                    let story = &came.first.as_ref().expect("it is kept").story;
                    assert!(story[0].contains(kind.name()), "{story:?}");
                }
            }
        }
        assert_eq!(found.unkept(stack.integrity.promises), 0, "{design}");
    }
}

#[test]
fn tables_counters_logs_macs_and_nodes_are_attacked_in_a_run_and_after_a_cut() {
    for (design, regions) in [
        (
            "sca@merkle",
            ["data", "counters", "macs", "nodes-1"].as_slice(),
        ),
        (
            "esd-sound+fca@merkle",
            &["data", "counters", "mapping", "macs", "nodes-1"],
        ),
        (
            "hw-log/identity+sca@merkle",
            &["data", "counters", "log-registers", "macs"],
        ),
    ] {
        let found = attacked(design, Platform::Adr, (20, 20));
        for when in When::ALL {
            let tampered = &found.of(when, Attack::Tamper).regions;
            for region in regions {
                let count = tampered.get(region).copied().unwrap_or(0);
                assert!(count > 10, "{design}, {when:?}: {region} in {tampered:?}");
            }
        }
    }
}

#[test]
fn one_attack_is_drawn_again_alone() {
    let history = history("sca@mac", 1);
    let asked = Attacks {
        looks: 8,
        each: 6,
        one: None,
    };
    let all = attack(&history, &Options::default(), asked);
    for when in When::ALL {
        let first = all
            .of(when, Attack::Replay)
            .first
            .clone()
            .expect("no freshness");
        let one = Some(first.one);
        let alone = attack(&history, &Options::default(), Attacks { one, ..asked });
        let came = alone.of(when, Attack::Replay);
        assert_eq!((came.tried, came.undetected), (1, 1), "{when:?}");
        assert_eq!(came.first.as_ref().unwrap().story, first.story);
        assert_eq!(alone.undetected(), 1);
    }
}

#[test]
fn a_torn_line_without_its_mac_is_an_honest_recovery_refused() {
    let options = Options {
        tear: Tear::Words,
        ..Options::default()
    };
    let asked = Attacks {
        looks: 60,
        each: 1,
        one: None,
    };
    for (design, refuses) in [("sca@mac", true), ("sca", false)] {
        let found = attack(&history(design, 1), &options, asked);
        assert_eq!(found.honest_refused > 0, refuses, "{design}");
        assert!(found.of(When::Off, Attack::Tamper).tried > 10, "{design}");
    }
}

#[test]
fn what_reserve_power_dumps_is_believed() {
    for (design, platform) in [
        ("hw-log/identity+sca@merkle", Platform::Adr),
        ("esd-sound+fca@mac", Platform::Eadr),
        ("sca@merkle", Platform::Eadr),
        ("sca@bonsai", Platform::Eadr),
        ("esd-sound+fca@bonsai-lazy-sound", Platform::Eadr),
        ("sca@anubis", Platform::Eadr),
        ("sca@osiris", Platform::Eadr),
    ] {
        let found = attacked(design, platform, (60, 0));
        assert_eq!(
            (found.cuts, found.honest_refused),
            (60, 0),
            "{design}, {platform:?}"
        );
    }
}

/// A lazy tree as it is published, on a machine that says otherwise nothing but `after_cut`.
fn lazy(after_cut: &str) -> Attacked {
    let run = Small {
        sets: &[("integrity.bonsai.after_cut", after_cut)],
        transactions: 16,
        ..Small::BTREE
    };
    let asked = Attacks {
        looks: 20,
        each: 4,
        one: None,
    };
    attack(&run.run("sca@bonsai-lazy"), &Options::default(), asked)
}

#[test]
fn a_lazy_tree_refuses_honest_recoveries_whatever_it_does_after_a_cut() {
    for after_cut in ["compare", "rehash"] {
        let found = lazy(after_cut);
        assert!(
            found.honest_refused > 10,
            "{after_cut}: {} of {}",
            found.honest_refused,
            found.cuts
        );
    }
}
