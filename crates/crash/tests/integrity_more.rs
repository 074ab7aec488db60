//! Integrity beyond its attacker: the counter tree, what a recovery does, and a campaign over all schemes.

use std::collections::BTreeMap;

use sardonyx::config::Machine;
use sardonyx::controller::Write;
use sardonyx::controller::designs::{self, Stack};
use sardonyx::line::{Logical, Persist};
use sardonyx::machine::write_untimed;
use sardonyx::mechanisms::RESTORING;
use sardonyx::medium::image::Image;
use sardonyx::medium::layout::Layout;
use sardonyx::plan::untimed::Untimed;
use sardonyx::plan::{At, Step};
use sardonyx::settings::Settings;
use sardonyx::units::Time;
use sardonyx_crash::{
    Attack, Attacked, Attacks, Cuts, Filled, History, Kind, Options, Platform, When, attack,
    explain, restart,
};
use sardonyx_workload::ProgramSpec;

use crate::small_runs::{Small, assert_believed, explored, on};

fn history(program: &str, design: &str, cores: u64, seed: u64) -> History {
    history_under(&[], program, design, cores, seed)
}

fn history_under(
    sets: &[(&str, &str)],
    program: &str,
    design: &str,
    cores: u64,
    seed: u64,
) -> History {
    let run = Small {
        sets,
        program,
        cores,
        transactions: 16,
        seed,
        schedule: seed + 2,
        ..Small::BTREE
    };
    run.run(design)
}

fn attacked(design: &str, platform: Platform, (looks, each): (u64, u64)) -> Attacked {
    let asked = Attacks {
        looks,
        each,
        one: None,
    };
    attack(&history("btree", design, 1, 3), &on(platform), asked)
}

#[test]
fn honest_recoveries_of_a_sound_counter_tree_are_believed_at_every_cut() {
    let honest = [
        "sca@sgx-sound",
        "esd-sound+fca@anubis-asit",
        "sca@phoenix",
        "identity+no-encryption@sgx-sound",
        "esd-sound+fca@sgx-sound",
        "co-located@sgx-sound",
        "sca@anubis-asit",
        "identity+no-encryption@anubis-asit",
        "identity+no-encryption@phoenix",
        "esd-sound+fca@phoenix",
        "identity+no-encryption@star",
        "esd-sound+fca@star",
        "sca@scue",
        "esd-sound+fca@scue",
    ];
    for design in sardonyx_property::some(&honest, 3) {
        assert_believed(design, &history("btree", design, 2, 3));
    }
    for (design, platform) in [
        ("hw-log/identity+sca@sgx-sound", Platform::Adr),
        ("sca@sgx-sound", Platform::Eadr),
        ("esd-sound+fca@sgx-sound", Platform::Eadr),
        ("hw-log/identity+sca@anubis-asit", Platform::Adr),
        ("sca@anubis-asit", Platform::Eadr),
        ("hw-log/identity+sca@phoenix", Platform::Adr),
        ("sca@phoenix", Platform::Eadr),
        ("hw-log/identity+sca@star", Platform::Adr),
        ("sca@star", Platform::Eadr),
        ("hw-log/identity+sca@scue", Platform::Adr),
        ("sca@scue", Platform::Eadr),
    ] {
        let found = attacked(design, platform, (60, 0));
        assert_eq!(
            (found.cuts, found.honest_refused),
            (60, 0),
            "{design}, {platform:?}"
        );
    }
}

#[test]
fn the_attacker_of_a_sound_counter_tree_is_noticed() {
    let named = [
        ("sca@sgx-sound", Platform::Adr),
        ("esd-sound+fca@sgx-sound", Platform::Adr),
        ("hw-log/identity+sca@sgx-sound", Platform::Adr),
        ("sca@sgx-sound", Platform::Eadr),
        ("sca@anubis-asit", Platform::Adr),
        ("esd-sound+fca@anubis-asit", Platform::Adr),
        ("hw-log/identity+sca@anubis-asit", Platform::Adr),
        ("sca@anubis-asit", Platform::Eadr),
        ("sca@phoenix", Platform::Adr),
        ("esd-sound+fca@phoenix", Platform::Adr),
        ("hw-log/identity+sca@phoenix", Platform::Adr),
        ("sca@phoenix", Platform::Eadr),
        ("sca@star", Platform::Adr),
        ("hw-log/identity+sca@star", Platform::Adr),
        ("sca@star", Platform::Eadr),
        ("sca@scue", Platform::Adr),
        ("esd-sound+fca@scue", Platform::Adr),
        ("hw-log/identity+sca@scue", Platform::Adr),
        ("sca@scue", Platform::Eadr),
    ];
    for (design, platform) in sardonyx_property::some(&named, 3) {
        let found = attacked(design, platform, (40, 10));
        assert_eq!((found.cuts, found.honest_refused), (40, 0), "{design}");
        for when in When::ALL {
            for kind in Attack::ALL {
                let came = found.of(when, kind);
                assert!(came.tried > 100, "{design}, {when:?} {kind:?}: {came:?}");
                assert_eq!(came.undetected, 0, "{design}, {when:?} {kind:?}: {came:?}");
            }
        }
        let regions = &found.of(When::Off, Attack::Tamper).regions;
        let table = match design.rsplit_once('@') {
            Some((_, "anubis-asit" | "phoenix")) => Some("shadow-nodes"),
            Some((_, "star")) => Some("stale-nodes"),
            _ => None,
        };
        for region in ["versions"].into_iter().chain(table) {
            let count = regions.get(region);
            assert!(
                count.is_some_and(|count| *count > 10),
                "{design}: {regions:?}"
            );
        }
    }
}

const OVER_COUNTERS: (&str, &str) = ("integrity.leaves", "counters");
const BESIDE: (&str, &str) = ("integrity.mac_place", "beside");
/// Versions that do not overflow, as MACs beside lines need them.
const WHOLE: (&str, &str) = ("integrity.minor_bits", "0");
/// Split counters that overflow soon.
const NARROW: (&str, &str) = ("encryption.minor_bits", "2");

/// Trees over the encryption's counters, MACs beside lines, both, and split counters alone.
const ARRANGED: &[(&str, &[(&str, &str)])] = &[
    ("fca@bonsai", &[OVER_COUNTERS]),
    ("sca@osiris", &[BESIDE, WHOLE]),
    ("identity+split@plp", &[OVER_COUNTERS, NARROW]),
    ("fca@sgx-sound", &[BESIDE]),
    (
        "identity+split@bonsai-lazy-sound",
        &[OVER_COUNTERS, BESIDE, WHOLE, NARROW],
    ),
    ("sca@phoenix", &[BESIDE, WHOLE]),
    ("sca@star", &[BESIDE, ("star.low_bits", "2")]),
    ("sca@scue", &[BESIDE]),
    (
        "identity+split@bmf",
        &[
            OVER_COUNTERS,
            NARROW,
            ("bmf.roots", "24"),
            ("bmf.prune_after", "1"),
        ],
    ),
    ("esd-sound+fca@triad", &[OVER_COUNTERS]),
    ("identity+split", &[NARROW]),
    ("fca@supermem", &[OVER_COUNTERS, BESIDE, WHOLE]),
    ("hw-log/identity+fca@bonsai", &[OVER_COUNTERS]),
    ("sca@anubis", &[BESIDE, WHOLE]),
    ("identity+split@osiris", &[BESIDE, WHOLE, NARROW]),
    ("hw-log/identity+split@triad", &[OVER_COUNTERS, NARROW]),
    ("fca@anubis-asit", &[BESIDE]),
    (
        "dewrite-sound+fca@bonsai-lazy-sound",
        &[OVER_COUNTERS, BESIDE, WHOLE],
    ),
    ("hw-log/identity+sca@plp", &[BESIDE, WHOLE]),
];

#[test]
fn versions_that_overflow_beside_macs_beside_lines_are_not_cut() {
    let machine = Machine::load("sca", &[BESIDE]).expect("a machine");
    let specs = [ProgramSpec {
        name: "btree".into(),
        item_bytes: 64,
        footprint: 8192,
        transactions: 16,
        seed: 1,
        ..ProgramSpec::default()
    }];
    let refused = History::record(&machine, "sca@osiris", &specs, 1).err();
    let said = refused.expect("it cannot be cut").to_string();
    assert!(said.contains("integrity.minor_bits=0"), "{said}");
    let whole = Machine::load("sca", &[BESIDE, WHOLE]).expect("a machine");
    assert!(History::record(&whole, "sca@osiris", &specs, 1).is_ok());
}

#[test]
fn honest_recoveries_are_believed_at_every_cut_however_macs_and_versions_lie() {
    for (design, settings) in sardonyx_property::some(ARRANGED, 6) {
        for tight in [&[][..], TIGHT] {
            let settings = [settings, tight].concat();
            let history = history_under(&settings, "btree", design, 2, 3);
            assert_believed(design, &history);
        }
    }
}

#[test]
fn the_attacker_is_noticed_however_macs_and_versions_lie() {
    let guarded = ARRANGED.iter().filter(|(design, _)| design.contains('@'));
    let guarded: Vec<_> = guarded.copied().collect();
    for (design, settings) in sardonyx_property::some(&guarded, 2) {
        for platform in [Platform::Adr, Platform::Eadr] {
            let history = history_under(settings, "btree", design, 1, 3);
            let (looks, each, one) = (40, 10, None);
            let found = attack(&history, &on(platform), Attacks { looks, each, one });
            assert_eq!((found.cuts, found.honest_refused), (40, 0), "{design}");
            for when in When::ALL {
                for kind in Attack::ALL {
                    let came = found.of(when, kind);
                    assert!(came.tried > 100, "{design}, {when:?} {kind:?}: {came:?}");
                    assert_eq!(came.undetected, 0, "{design}, {when:?} {kind:?}: {came:?}");
                }
            }
        }
    }
}

#[test]
fn a_recovery_is_counted_by_what_it_looks_at_and_timed_by_the_engine() {
    let machine = Machine::load("sca", &[] as &[(&str, &str)]).expect("a machine");
    let of = |design, written, since| {
        let lines = 4096;
        let filled = Filled {
            lines,
            written,
            since,
        };
        restart(&machine, design, filled).expect("a design")
    };
    let idle = of("identity+no-encryption@mac", 4096, 100);
    assert_eq!((idle.reads, idle.hashes, idle.writes), (0, 0, 0));
    assert_eq!(idle.time, Time::ZERO);
    // 512 lines of MACs, of which each is one of the lowest nodes' hashes: 64 of those and 8 above.
    let whole = of("identity+no-encryption@merkle", 4096, 0);
    assert_eq!((whole.reads, whole.hashes, whole.writes), (584, 584, 0));
    assert_eq!(of("identity+no-encryption@merkle", 2048, 0).reads, 292);
    let cut = of("identity+no-encryption@merkle", 4096, 1000);
    assert_eq!(cut.reads, 584);
    assert_eq!(cut.writes, cut.dirty, "what was lost is made anew");
    assert!(cut.writes > 30 && cut.time > whole.time, "{cut:?}");
    // What a recovery looks at follows from the cache, and what is lost is restored.
    for design in [
        "identity+no-encryption@anubis-asit",
        "identity+no-encryption@phoenix",
        "identity+no-encryption@star",
    ] {
        let table = of(design, 4096, 1000);
        assert!(table.writes > 30 && !table.refused, "{design}: {table:?}");
    }
    let counters = of("sca@merkle", 4096, 1000);
    assert!(counters.reads > 584 && !counters.refused, "{counters:?}");
}

#[test]
fn a_counter_tree_as_published_refuses_what_is_honest() {
    for (design, refuses) in [("sca@sgx", true), ("sca@sgx-sound", false)] {
        let found = attacked(design, Platform::Adr, (60, 0));
        assert_eq!(found.cuts, 60);
        assert_eq!(found.honest_refused > 30, refuses, "{design}: {found:?}");
    }
}

/// Counters of a line are written one by one: who has changed another of them is noticed when the next goes, or the line
/// would get a new MAC with what he has written.
#[test]
fn what_stays_of_a_line_that_is_written_in_part_is_verified() {
    for design in [
        "sca@mac",
        "sca@merkle",
        "sca@bonsai",
        "sca@osiris",
        "sca@sgx-sound",
        "sca@anubis-asit",
        "sca@phoenix",
        "sca@star",
        "sca@scue",
        "sca@bmf",
    ] {
        let mut layout = Layout::new(640);
        let settings = Settings::default();
        let mut controller = designs::build(design, &settings, &mut layout).expect("a design");
        let counters = layout.region("counters").expect("it has some").line(0);
        let mut untimed = Untimed::new(Image::new());
        let mut write = |line, byte, untimed: &mut Untimed| {
            let data = [byte; 64];
            let order = Persist::CounterAtomic;
            let write = Write::new(Logical(line), At::past(&data));
            write_untimed(&mut controller, untimed, Write { order, ..write });
        };
        (0..8).for_each(|line| write(line, 7, &mut untimed));
        write(0, 8, &mut untimed);
        assert!(untimed.refused().is_empty(), "{design}");
        let mut changed = untimed.newest(counters).expect("it is written");
        changed[5 * 8] ^= 1;
        untimed.plan(|plan| plan.write(counters, At::past(&changed), Step::PAST));
        write(0, 9, &mut untimed);
        assert_eq!(untimed.refused(), [counters], "{design}");
    }
}

/// A cache of two lines, in which everything is evicted, and short queues.
const TIGHT: &[(&str, &str)] = &[
    ("integrity.cache.bytes", "128"),
    ("integrity.cache.ways", "2"),
    ("medium.queues.writes", "4"),
    ("medium.queues.counter_writes", "4"),
    ("medium.queues.high_watermark", "3"),
    ("medium.queues.low_watermark", "1"),
];

/// Caches of two lines and short queues, as in the plan's tighter passes, and minor numbers that overflow.
#[test]
fn honest_recoveries_are_believed_where_all_is_small() {
    for (design, bits) in [
        ("sca@anubis", "0"),
        ("sca@anubis-asit", "7"),
        ("sca@phoenix", "7"),
        ("sca@star", "7"),
        ("sca@scue", "7"),
        ("sca@bmf", "2"),
        ("hw-log/identity+sca@bonsai-lazy-sound", "2"),
    ] {
        let settings = [&[("integrity.minor_bits", bits)], TIGHT].concat();
        let run = Small {
            sets: &settings,
            cores: 2,
            transactions: 40,
            seed: 1,
            schedule: 101,
            ..Small::BTREE
        };
        let history = run.run(design);
        let options = Options {
            cuts: Cuts::Sample(600),
            recovery_cuts: 16,
            ..Options::default()
        };
        let found = explored(&history, &options);
        assert!(found.tally.kinds.is_empty(), "{design}: {:?}", found.tally);
    }
}

#[test]
fn a_line_that_is_refused_is_told_with_what_vouches_for_it() {
    let history = history("btree", "sca@sgx", 1, 3);
    let options = Options {
        recovery_cuts: 0,
        ..Options::default()
    };
    let found = explored(&history, &options);
    let (_, first) = &found.tally.kinds[&Kind::NotAuthentic];
    let told = explain(&history, first).join("\n");
    assert!(told.contains("its MAC, word"), "{told}");
    assert!(
        told.contains(" of versions: not written since setup"),
        "{told}"
    );
}

/// Schemes that lose honest lines at a cut, as published, or notice less than they say.
const UNSOUND: &[&str] = &["sgx", "bonsai-lazy"];

/// What a campaign has tried of one scheme, and what it has found.
#[derive(Default)]
struct Campaign {
    cuts: u64,
    violations: u64,
    tried: u64,
    refused: u64,
    harmless: u64,
    unkept: u64,
    honest_refused: u64,
    attacking: f64,
}

/// Seconds that this thread has had of the processor.
fn processor() -> f64 {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds = said.split(' ').next().expect("a number");
    nanoseconds.parse::<f64>().expect("a number") / 1e9
}

/// Cuts and attacks over all schemes below several designs and programs, every third seed with caches and queues that
/// are tight; further seeds for as long as it is given, of all schemes or of one (`CAMPAIGN_SCHEME=anubis`):
/// `CAMPAIGN_SECONDS=3600 cargo test --release --test all integrity_more::a_campaign -- --ignored --nocapture`.
#[test]
#[ignore = "by hand: takes as long as it is given"]
fn a_campaign_finds_no_promise_broken() {
    let asked = |name, usual: u64| {
        std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
    };
    let seconds = asked("CAMPAIGN_SECONDS", 60);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(seconds);
    let schemes = designs::integrities().filter(|scheme| scheme.power_fail.is_some());
    let one = std::env::var("CAMPAIGN_SCHEME").ok();
    let wanted = |name: &str| one.as_deref().is_none_or(|one| one == name);
    let schemes: Vec<_> = schemes.filter(|scheme| wanted(scheme.about.name)).collect();
    let bases = [
        "sca",
        "identity+no-encryption",
        "esd-sound+fca",
        "co-located",
        "hw-log/identity+sca",
    ];
    let programs = ["btree", "queue", "hash", "rbtree", "array-swap"];
    let options = Options {
        recovery_cuts: asked("CAMPAIGN_LIVES", 1024),
        threads: 1,
        ..Options::default()
    };
    let mut found: BTreeMap<&str, Campaign> = BTreeMap::new();
    let first = asked("CAMPAIGN_SEED", 100);
    let mut number = first * schemes.len() as u64;
    while std::time::Instant::now() < until {
        let seed = number / schemes.len() as u64;
        let scheme = schemes[(number % schemes.len() as u64) as usize];
        number += 1;
        let name = scheme.about.name;
        let design = format!("{}@{name}", bases[seed as usize % bases.len()]);
        let cores = 1 + seed % 2;
        let program = programs[(seed / 2) as usize % programs.len()];
        let tight = if seed % 3 == 2 { TIGHT } else { &[] };
        let history = history_under(tight, program, &design, cores, seed * 10);
        let explored = explored(&history, &options);
        let attacks = Attacks {
            looks: 60,
            each: 80,
            one: None,
        };
        let before = processor();
        let attacked = attack(&history, &options, attacks);
        let of = found.entry(name).or_default();
        of.attacking += processor() - before;
        of.cuts += explored.covered.cuts + explored.covered.recovery_cuts + attacked.cuts;
        of.violations += explored.tally.kinds.len() as u64;
        of.honest_refused += attacked.honest_refused;
        of.unkept += attacked.unkept(scheme.promises);
        let broken = !explored.tally.kinds.is_empty() || attacked.unkept(scheme.promises) > 0;
        if broken && !UNSOUND.contains(&name) {
            println!("{design}, {program}, seed {seed}: {:?}", explored.tally);
            for violation in attacked.violations(scheme.promises) {
                println!("{}", violation.history.join("\n"));
            }
        }
        for (when, kind) in When::ALL
            .into_iter()
            .flat_map(|when| Attack::ALL.map(|kind| (when, kind)))
        {
            let came = attacked.of(when, kind);
            of.tried += came.tried;
            of.refused += came.refused;
            of.harmless += came.harmless;
        }
    }
    let (mut cuts, mut attacks) = (0, 0);
    println!(
        "| scheme | cuts | attacks | refused | harmless | undetected | undetected though promised | honest refused | attacks/s |"
    );
    for (name, of) in &found {
        println!(
            "| `{name}` | {} | {} | {} | {} | {} | {} | {} | {:.0} |",
            of.cuts,
            of.tried,
            of.refused,
            of.harmless,
            of.tried - of.refused - of.harmless,
            of.unkept,
            of.honest_refused,
            of.tried as f64 / of.attacking
        );
        (cuts, attacks) = (cuts + of.cuts, attacks + of.tried);
    }
    println!(
        "{cuts} cuts and {attacks} attacks over {} schemes, seeds from {first} on, the last {}",
        found.len(),
        number / schemes.len() as u64
    );
    for (name, of) in &found {
        let broken = of.violations + of.unkept + of.honest_refused;
        assert_eq!(broken > 0, UNSOUND.contains(name), "{name}");
    }
}

/// A scheme that leaves nodes out of memory needs recoveries that have restored some, and has them.
#[test]
fn what_recoveries_restore_is_counted_where_a_cut_loses_nodes() {
    for (design, loses) in [("sca@star", true), ("sca@bonsai", false)] {
        let stack = Stack::named(design).expect("a design");
        assert_eq!(stack.tries().any(|needed| *needed == RESTORING), loses);
        let options = Options {
            cuts: Cuts::Sample(50),
            recovery_cuts: 0,
            ..Options::default()
        };
        let found = explored(&history("btree", design, 1, 3), &options);
        let (restored, states) = (found.covered.restored, found.covered.states);
        assert!(states > 40, "{design}: {:?}", found.covered);
        assert!(
            if loses {
                restored > states / 2
            } else {
                restored == 0
            },
            "{design}: {restored}"
        );
    }
}
