//! The crash explorer against every design and every program.

use std::time::Instant;

use sardonyx::config::Machine;
use sardonyx::crash::{Cuts, Explored, History, Options, Platform, explore};
use sardonyx::workload::{Mutant, ProgramSpec};

fn specs(name: &str, cores: u64, transactions: u64, mutant: Option<Mutant>) -> Vec<ProgramSpec> {
    let spec = |core| ProgramSpec {
        name: name.into(),
        item_bytes: 64,
        footprint: 8192,
        transactions,
        seed: 7 + core,
        mutant,
    };
    (0..cores).map(spec).collect()
}

fn machine(settings: &[(&str, &str)]) -> Machine {
    Machine::load("sca", settings).expect("a machine")
}

fn explored(history: &History, options: &Options) -> Explored {
    explore(history, options, &|_| true).expect("nobody cancels")
}

fn print(history: &History, explored: &Explored) {
    println!("{}: {:?}", history.design, explored.covered);
    for violation in explored.tally.first() {
        let count = explored.tally.kinds[&violation.kind].0;
        println!("   {} x {count}: {violation:?}", violation.kind.name());
    }
}

#[test]
#[ignore = "prints"]
fn look() {
    for design in [
        "no-encryption",
        "ideal",
        "co-located",
        "co-located-cc",
        "fca",
        "sca",
        "no-atomicity",
        "baseline",
    ] {
        for program in ["btree", "queue"] {
            let history =
                History::record(&machine(&[]), design, &specs(program, 1, 100, None), 1).unwrap();
            let start = Instant::now();
            let found = explored(&history, &Options::default());
            let took = start.elapsed().as_secs_f64();
            println!(
                "{program} {:.0} cuts/s, {:.0} states/s",
                found.covered.cuts as f64 / took,
                found.covered.states as f64 / took
            );
            print(&history, &found);
        }
    }
    let _ = (Cuts::All, Platform::Adr);
}

#[test]
#[ignore = "prints"]
fn mutants() {
    for mutant in Mutant::ALL {
        for program in ["btree", "queue", "array-swap"] {
            let mut all = Vec::new();
            for seed in 1..4 {
                let history = History::record(
                    &machine(&[]),
                    "sca",
                    &specs(program, 1, 100, Some(*mutant)),
                    seed,
                )
                .unwrap();
                let found = explored(&history, &Options::default());
                let kinds: Vec<String> = found
                    .tally
                    .kinds
                    .iter()
                    .map(|(k, (n, _))| format!("{} {n}", k.name()))
                    .collect();
                all.push(kinds.join(" "));
            }
            println!("{} {program}: {all:?}", mutant.name());
        }
    }
}

#[test]
#[ignore = "prints"]
fn more() {
    let none: Vec<(&str, &str)> = Vec::new();
    for (design, settings) in [
        ("esd", none.clone()),
        ("baseline", none.clone()),
        ("esd+sca", none.clone()),
        ("esd-sound", none.clone()),
        ("dewrite+sca", none.clone()),
        ("dedup-sha1+fca", none.clone()),
    ] {
        for cores in [1, 4] {
            for platform in [Platform::Adr, Platform::Eadr] {
                println!("---- {design} {settings:?} {cores} {platform:?}");
                let history = History::record(
                    &machine(&settings),
                    design,
                    &specs("btree", cores, 100, None),
                    1,
                )
                .unwrap();
                let start = Instant::now();
                let found = explored(
                    &history,
                    &Options {
                        platform,
                        ..Options::default()
                    },
                );
                let took = start.elapsed().as_secs_f64();
                println!(
                    "{:.0} cuts/s, {:.0} states/s",
                    found.covered.cuts as f64 / took,
                    found.covered.states as f64 / took
                );
                print(&history, &found);
            }
        }
    }
}

#[test]
#[ignore = "prints"]
fn one() {
    let design = std::env::var("DESIGN").unwrap();
    let cores: u64 = std::env::var("CORES").unwrap().parse().unwrap();
    let platform = if std::env::var("EADR").is_ok() {
        Platform::Eadr
    } else {
        Platform::Adr
    };
    let history =
        History::record(&machine(&[]), &design, &specs("btree", cores, 100, None), 1).unwrap();
    let found = explored(
        &history,
        &Options {
            platform,
            ..Options::default()
        },
    );
    println!("{:?}", found.covered);
    for violation in found.tally.first() {
        for line in sardonyx::crash::explain(&history, violation) {
            println!("{line}");
        }
    }
}
