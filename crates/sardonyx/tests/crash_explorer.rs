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
    for design in ["no-encryption", "ideal", "co-located", "co-located-cc", "fca", "sca", "no-atomicity", "baseline"] {
        for program in ["btree", "queue"] {
            let history = History::record(&machine(&[]), design, &specs(program, 1, 100, None), 1).unwrap();
            let start = Instant::now();
            let found = explored(&history, &Options::default());
            let took = start.elapsed().as_secs_f64();
            println!("{program} {:.0} cuts/s, {:.0} states/s", found.covered.cuts as f64 / took, found.covered.states as f64 / took);
            print(&history, &found);
        }
    }
    let _ = (Cuts::All, Platform::Adr);
}
