//! The crash explorer: what must hold holds at every cut, and what is broken is caught, be it a
//! design, a reading of a paper or a program. `docs/crash/explorer.md` says what is compared.

use sardonyx::config::Machine;
use sardonyx_crash::{Cuts, ExploredCuts, History, Kind, Options, Platform, explain};
use sardonyx_workload::{self as workload, DurabilityKind, Mutant, ProgramSpec};

use crate::small_runs::{assert_holds, explored, on, told};

const SOUND: [&str; 6] = [
    "no-encryption",
    "ideal",
    "co-located",
    "co-located-cc",
    "fca",
    "sca",
];

fn specs(program: &str, cores: u64, mutant: Option<Mutant>) -> Vec<ProgramSpec> {
    let spec = |core| ProgramSpec {
        name: program.into(),
        item_bytes: 64,
        footprint: 8192,
        transactions: 60,
        seed: 7 + core,
        durability: DurabilityKind::SoftwareUndo { mutant },
        ..ProgramSpec::default()
    };
    (0..cores).map(spec).collect()
}

fn history(design: &str, settings: &[(&str, &str)], specs: &[ProgramSpec], seed: u64) -> History {
    let machine = Machine::load("sca", settings).expect("a machine");
    History::record(&machine, design, specs, seed).expect("a design and a program")
}

fn count(explored: &ExploredCuts, kind: Kind) -> u64 {
    explored
        .tally
        .kinds
        .get(&kind)
        .map_or(0, |(count, _)| *count)
}

#[test]
fn every_program_recovers_from_every_cut_on_every_sound_design() {
    let (mut cuts, mut recovery_cuts) = (0, 0);
    let programs: Vec<_> = workload::all().iter().enumerate().collect();
    for (number, program) in sardonyx_property::some(&programs, 2) {
        let mut of_program = (0, 0); // samples: a short run may have none
        for design in SOUND {
            for cores in [1, 4] {
                let specs = specs(program.name, cores, None);
                let history = history(design, &[], &specs, number as u64);
                let found = explored(&history, &Options::default());
                assert_holds(&history, &found);
                assert_eq!(found.covered.cuts, history.positions());
                of_program.0 += found.covered.recovery_cuts;
                of_program.1 += found.covered.full;
                cuts += found.covered.cuts;
                recovery_cuts += found.covered.recovery_cuts;
            }
        }
        assert!(of_program.0 > 0 && of_program.1 > 0, "{}", program.name);
    }
    let least = sardonyx_property::count(20_000, 100_000);
    assert!(cuts >= least && recovery_cuts >= least / 10, "{cuts} cuts");
}

#[test]
fn schedules_vary_with_the_seed_and_all_of_them_recover() {
    let mut orders = std::collections::HashSet::new();
    for seed in 0..12 {
        let history = history("sca", &[], &specs("rbtree", 2, None), seed);
        let found = explored(&history, &Options::default());
        assert_holds(&history, &found);
        let accepted = history.journal.writes.iter().map(|write| write.place);
        orders.insert(accepted.collect::<Vec<_>>());
    }
    assert_eq!(orders.len(), 12, "orders of acceptance");
}

/// Larger transactions, and metadata caches from which everything is evicted all the time.
#[test]
fn small_counter_caches_and_large_items_recover_too() {
    let settings = [
        ("encryption.counter_cache.bytes", "128"),
        ("encryption.counter_cache.ways", "2"),
        ("encryption.mark_stride", "8"),
    ];
    for design in ["sca", "fca", "co-located-cc"] {
        let mut specs = specs("hash", 2, None);
        specs.iter_mut().for_each(|spec| spec.item_bytes = 1024);
        let history = history(design, &settings, &specs, 3);
        assert_holds(&history, &explored(&history, &Options::default()));
    }
}

#[test]
fn a_naive_counter_cache_is_caught() {
    for cores in [1, 4] {
        let history = history("no-atomicity", &[], &specs("btree", cores, None), 1);
        let found = explored(&history, &Options::default());
        assert!(found.tally.count(false) > history.positions() / 2);
    }
}

/// By one run, without the plan's passes; `tests/faults/programs.rs` says that none needs evictions or delays.
#[test]
fn every_mutant_is_caught_with_a_short_report() {
    for mutant in Mutant::ALL {
        let history = history("sca", &[], &specs("btree", 1, Some(*mutant)), 1);
        let found = explored(&history, &Options::default());
        assert!(found.tally.count(false) > 0, "{}", mutant.name());
        for violation in found.tally.first() {
            let story = explain(&history, violation);
            assert!(story.len() > 1 && story.len() < 30, "{story:#?}");
            let head = &story[0];
            assert!(head.contains("seed 1, cut"), "{head}");
        }
    }
}

/// A mistake about order alone hides from a design and a schedule that happen to keep it.
#[test]
fn mutants_without_counters_in_them_are_caught_without_encryption_as_well() {
    for mutant in [Mutant::NoFenceAfterLog, Mutant::LogNotFlushed] {
        let history = history("no-encryption", &[], &specs("queue", 1, Some(mutant)), 1);
        let found = explored(&history, &Options::default());
        assert!(found.tally.count(false) > 0, "{}", mutant.name());
    }
    for mutant in [Mutant::NoCountersAfterLog, Mutant::CommitNotCounterAtomic] {
        let history = history("no-encryption", &[], &specs("queue", 1, Some(mutant)), 1);
        assert_holds(&history, &explored(&history, &Options::default()));
    }
}

/// SCA does not say how its global counter survives. Going on from what the image shows is enough
/// where a line never persists without its counter, and gives pads away where it does.
#[test]
fn the_papers_global_counter_reuses_pads_on_sca_and_a_mark_does_not() {
    let paper = [("encryption.global_counter", "paper")];
    for (design, reuses) in [
        ("sca", true),
        ("fca", false),
        ("co-located", false),
        ("co-located-cc", false),
        ("ideal", false),
    ] {
        let history = history(design, &paper, &specs("btree", 1, None), 1);
        let found = explored(&history, &Options::default());
        assert_eq!(found.tally.count(false), 0, "{design}");
        assert_eq!(count(&found, Kind::PadReused) > 0, reuses, "{design}");
        assert_eq!(count(&found, Kind::PadWithinReach) > 0, reuses, "{design}");
    }
}

#[test]
fn a_counter_line_that_takes_its_siblings_along_is_caught() {
    let naive = [("encryption.siblings", "ride-along")];
    let history = history("sca", &naive, &specs("btree", 1, None), 1);
    let found = explored(&history, &Options::default());
    assert!(count(&found, Kind::HalfAPair) > 0);
}

/// ESD takes a platform for granted that drains its mapping cache; what it takes to do without.
#[test]
fn esd_needs_eadr_as_published_and_nothing_more_with_its_mappings_persisted() {
    for cores in sardonyx_property::some(&[1, 4], 1) {
        let specs = specs("btree", cores, None);
        let history = history("esd-as-published", &[], &specs, 1);
        let adr = explored(&history, &on(Platform::Adr));
        assert!(adr.tally.count(false) > 0, "mappings are lost");
        let eadr = explored(&history, &on(Platform::Eadr));
        assert_eq!(eadr.tally.count(false), 0, "{}", told(&history, &eadr));
        // On demand no line is lost; over counters of each line, as of any design, pads are used twice.
        let on_demand = self::history("esd", &[], &specs, 1);
        let found = explored(&on_demand, &on(Platform::Adr));
        assert_eq!(found.tally.count(false), 0, "{}", told(&on_demand, &found));
        for design in ["esd+sca", "esd-sound", "zero-lines"] {
            let history = self::history(design, &[], &specs, 1);
            for platform in [Platform::Adr, Platform::Eadr] {
                assert_holds(&history, &explored(&history, &on(platform)));
            }
        }
    }
}

/// Full deduplication keeps counts that a cut takes: trusted, they free places that are shared.
/// With mappings that persist and all else made anew from them it recovers; compared at every cut.
#[test]
fn full_deduplication_recovers_if_it_believes_its_mappings_only() {
    for (published, sound) in [
        ("dewrite", "dewrite-sound"),
        ("dedup-sha1", "dedup-sha1-sound"),
    ] {
        let mut lost = 0;
        let programs: Vec<_> = workload::all().iter().enumerate().collect();
        for (number, program) in sardonyx_property::some(&programs, 1) {
            let mut specs = specs(program.name, 2, None);
            specs.iter_mut().for_each(|spec| spec.transactions = 16);
            let broken = history(published, &[], &specs, number as u64);
            lost += explored(&broken, &on(Platform::Adr)).tally.count(false);
            let history = history(sound, &[], &specs, number as u64);
            let drained = (program.name == "btree").then_some(Platform::Eadr);
            for platform in [Some(Platform::Adr), drained].into_iter().flatten() {
                let options = Options {
                    recovery_cuts: 512, // each of these recoveries is a pass over memory
                    ..on(platform)
                };
                let found = explored(&history, &options);
                assert_holds(&history, &found);
                assert!(found.covered.states > 250);
            }
        }
        assert!(lost > 0, "{published}");
    }
}

#[test]
fn with_all_caches_drained_even_a_naive_design_recovers_and_without_any_none_does() {
    for design in ["no-atomicity", "sca", "fca"] {
        let history = history(design, &[], &specs("queue", 2, None), 5);
        let eadr = explored(&history, &on(Platform::Eadr));
        assert_eq!(eadr.tally.count(false), 0, "{}", told(&history, &eadr));
        let none = explored(&history, &on(Platform::None));
        assert!(none.tally.count(false) > 0, "{design}");
    }
}

/// A platform that drains all caches drains them in the middle of a recovery as well. Where nothing
/// is drained, a recovery that the power leaves half done is lost like everything else.
#[test]
fn recoveries_are_cut_on_every_platform() {
    let often = |platform| Options {
        recovery_cuts: match platform {
            Platform::None => 4, // where most cuts are wrong already
            _ => 64,
        },
        ..on(platform)
    };
    for design in [
        "sca",
        "fca",
        "co-located",
        "no-atomicity",
        "esd-as-published",
        "esd-sound",
        "zero-lines",
    ] {
        let history = history(design, &[], &specs("rbtree", 2, None), 3);
        let eadr = explored(&history, &often(Platform::Eadr));
        assert_eq!(eadr.tally.count(false), 0, "{}", told(&history, &eadr));
        assert!(eadr.covered.recovery_cuts > 1000, "{design}");
    }
    let history = history("no-encryption", &[], &specs("queue", 1, None), 3);
    let none = explored(&history, &often(Platform::None));
    let whole = Options {
        recovery_cuts: 0,
        ..on(Platform::None)
    };
    let whole = explored(&history, &whole);
    assert!(none.covered.recovery_cuts > 0 && whole.covered.recovery_cuts == 0);
    assert!(none.tally.count(false) > whole.tally.count(false));
}

/// The counters in the cache are drained on `eadr`, also that of a write whose counter line is
/// still being fetched when it is accepted.
#[test]
fn a_drained_counter_cache_loses_no_counter_that_missed_it() {
    let small = [
        ("encryption.counter_cache.bytes", "128"),
        ("encryption.counter_cache.ways", "2"),
    ];
    for (number, program) in workload::all().iter().enumerate() {
        for design in ["no-atomicity", "sca"] {
            let specs = specs(program.name, 2, None);
            let history = history(design, &small, &specs, number as u64);
            let found = explored(&history, &on(Platform::Eadr));
            assert_eq!(found.tally.count(false), 0, "{}", told(&history, &found));
        }
    }
}

#[test]
fn the_same_is_found_by_any_number_of_threads_and_again() {
    let spec = specs("btree", 4, Some(Mutant::NoFenceAfterData));
    let first = history("sca", &[], &spec, 9);
    let again = history("sca", &[], &spec, 9);
    assert_eq!(first.journal.events, again.journal.events);
    let with = |history, threads| {
        let options = Options {
            threads,
            ..Options::default()
        };
        explored(history, &options)
    };
    let alone = with(&first, 1);
    assert_eq!(alone, with(&first, 3));
    assert_eq!(alone, with(&again, 2));
}

/// What a cut changed is all that it can have changed: looking at everything at every cut finds
/// the same wrong lines at the same cuts, be the design sound or not.
#[test]
#[ignore = "slow: eleven runs with all lines at every cut"]
fn looking_at_all_lines_at_every_cut_finds_no_more() {
    let mut broken = Vec::new();
    for (design, platform) in [
        ("sca", Platform::Adr),
        ("no-atomicity", Platform::Adr),
        ("esd-sound", Platform::Adr),
        ("esd+sca", Platform::Eadr),
        ("esd-as-published", Platform::Adr),
        ("zero-lines", Platform::Adr),
        ("dewrite", Platform::Adr),
        ("dewrite", Platform::Eadr),
        ("dedup-sha1", Platform::Adr),
        ("dedup-sha1", Platform::Eadr),
        ("dewrite+fca", Platform::Eadr),
    ] {
        let history = history(design, &[], &specs("hash", 2, None), 1);
        let with = |full_one_in| Options {
            full_one_in,
            recovery_cuts: 0,
            ..on(platform)
        };
        let (some, all) = (
            explored(&history, &with(u64::MAX)),
            explored(&history, &with(1)),
        );
        assert_eq!(all.covered.full, all.covered.states);
        assert!(some.covered.full * 50 < some.covered.states);
        for kind in [Kind::WrongLine, Kind::LineLost, Kind::Lost, Kind::Early] {
            let both = (count(&some, kind), count(&all, kind));
            assert_eq!(both.0, both.1, "{design} on {}: {kind:?}", platform.name());
        }
        if count(&all, Kind::WrongLine) > 0 {
            broken.push(design);
        }
    }
    let caught = |design| broken.contains(&design);
    assert!(caught("esd-as-published") && caught("dewrite") && caught("dedup-sha1"));
}

#[test]
fn cuts_that_the_run_has_not_are_refused() {
    let spec = specs("queue", 1, None);
    let history = history("sca", &[], &spec, 2);
    let there = history.positions();
    for (cuts, words) in [
        (Cuts::All, None),
        (Cuts::One(there - 1), None),
        (Cuts::One(there), Some("the run has positions 0 to")),
        (Cuts::Sample(there), None),
        (Cuts::Sample(u64::MAX), Some("ask for fewer")),
    ] {
        let error = cuts.check(&history).err().map(|e| e.to_string());
        assert_eq!(error.is_some(), words.is_some(), "{cuts:?}: {error:?}");
        assert!(words.is_none_or(|words| error.unwrap().contains(words)));
    }
}

#[test]
fn one_cut_replays_what_was_found_among_all() {
    let spec = specs("btree", 1, Some(Mutant::LogsOneLineLess));
    let history = history("sca", &[], &spec, 2);
    let all = explored(&history, &Options::default());
    let violation = all.tally.first().next().expect("it is caught");
    let one = Options {
        cuts: Cuts::One(violation.position),
        recovery_cuts: 0,
        ..Options::default()
    };
    let replayed = explored(&history, &one);
    assert_eq!(replayed.covered.cuts, 1);
    let again = replayed.tally.first().next().expect("again");
    assert_eq!((again.kind, again.line), (violation.kind, violation.line));
    let sample = Options {
        cuts: Cuts::Sample(300),
        ..Options::default()
    };
    let sampled = explored(&history, &sample);
    assert_eq!(sampled.covered.cuts, 300);
    assert!(sampled.tally.count(false) > 0);
}

/// Whatever it lies over: what reserve power drains goes through the whole design.
#[test]
fn a_program_that_flushes_nothing_holds_where_caches_are_drained_and_nowhere_else() {
    for design in [
        "no-encryption",
        "fca",
        "sca",
        "esd-sound+sca",
        "dewrite-sound+fca",
    ] {
        for cores in [1, 2] {
            let spec = specs("btree", cores, Some(Mutant::NothingFlushed));
            let history = history(design, &[], &spec, 2);
            let sample = |platform| Options {
                cuts: Cuts::Sample(400),
                recovery_cuts: 100,
                ..on(platform)
            };
            for drains in [Platform::Eadr, Platform::Gpf] {
                assert_holds(&history, &explored(&history, &sample(drains)));
            }
            let lost = explored(&history, &sample(Platform::Adr));
            assert!(lost.tally.count(false) > 0, "{design}");
        }
    }
}

/// Buffers at the cores keep what a program stores, and not the counters that a line was encrypted under.
#[test]
fn buffers_at_the_cores_need_counters_that_persist_with_their_lines() {
    for (design, holds) in [
        ("no-encryption", true),
        ("fca", true),
        ("co-located", true),
        ("sca", false),
        ("esd", false),
    ] {
        let spec = specs("btree", 2, Some(Mutant::NothingFlushed));
        let history = history(design, &[], &spec, 2);
        let found = explored(
            &history,
            &Options {
                cuts: Cuts::Sample(400),
                recovery_cuts: 100,
                ..on(Platform::Bbb)
            },
        );
        let lost = found.tally.count(false);
        assert_eq!(lost == 0, holds, "{design}: {}", told(&history, &found));
    }
}

/// Lines that an overflow of minor counters encrypts again have no counter that is told, so their pads look like those of
/// a log, which do follow its numbers.
#[test]
fn pads_of_data_need_not_follow_the_numbers_of_a_log() {
    for design in [
        "easy-pm/identity+split",
        "easy-pm/identity+deuce",
        "silo/identity+split",
    ] {
        let small = crate::small_runs::Small {
            sets: &[
                ("encryption.minor_bits", "1"),
                ("integrity.minor_bits", "1"),
            ],
            transactions: 60,
            ..crate::small_runs::Small::BTREE
        };
        let history = small.run(design);
        let options = Options {
            cuts: Cuts::Sample(20),
            recovery_cuts: 0,
            ..Options::default()
        };
        assert_holds(&history, &explored(&history, &options));
    }
}
