//! Mistakes of programs in their undo log (`--mutant`): a schedule that obliges does not hide them. Left out: what the
//! whole plan shows of them, which `tests/crash_explorer.rs` and `tests/crash_trial.rs` ask.

use sardonyx::config::Machine;
use sardonyx::plan::script::{Script, Scripting};
use sardonyx_crash::{Cuts, History, Options, explore};
use sardonyx_workload::{DurabilityKind, Mutant, ProgramSpec};

const SEED: u64 = 1;

type Obliging = (&'static str, fn(&mut Script));
const OBLIGING: [Obliging; 4] = [
    ("nothing", |_| {}),
    ("evictions", |script| script.evictions.clear()),
    ("delays", |script| script.delays.clear()),
    ("both", |script| {
        script.evictions.clear();
        script.delays.clear();
    }),
];

fn run(mutant: Mutant, scripting: Scripting) -> History {
    let spec = ProgramSpec {
        name: "btree".into(),
        item_bytes: 64,
        footprint: 8192,
        transactions: 24,
        seed: 7,
        durability: DurabilityKind::SoftwareUndo {
            mutant: Some(mutant),
        },
        ..ProgramSpec::default()
    };
    let machine = Machine::load("sca", &[] as &[(&str, &str)]).expect("a machine");
    History::scripted(&machine, "sca", &[spec], SEED, scripting).expect("it runs")
}

/// Whether a run with that schedule shows the mistake, with so many cuts at most.
fn is_caught(mutant: Mutant, oblige: fn(&mut Script)) -> bool {
    let (scripting, written) = Scripting::default().recorded();
    run(mutant, scripting);
    let mut script = written.lock().expect("one thread").clone();
    oblige(&mut script);
    let history = run(mutant, Scripting::follow(script));
    let options = Options {
        cuts: Cuts::Sample(history.positions().min(300)),
        recovery_cuts: 64,
        threads: 1,
        ..Options::default()
    };
    let explored = explore(&history, &options, &|_| true).expect("nobody ends it");
    assert!(explored.covered.cuts >= 200);
    explored.tally.count(false) > 0
}

#[test]
fn mistakes_of_programs_are_caught_without_evictions_and_delays_too() {
    for (without, oblige) in OBLIGING {
        let missed = sardonyx_property::some(Mutant::ALL, 6)
            .into_iter()
            .filter(|mutant| !is_caught(*mutant, oblige));
        let missed: Vec<&str> = missed.map(|mutant| mutant.name()).collect();
        assert!(missed.is_empty(), "without {without}: {missed:?}");
    }
    for mutant in Mutant::EQUIVALENT {
        assert!(!is_caught(*mutant, |_| {}), "{}", mutant.name());
    }
}
