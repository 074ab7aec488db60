//! Programs on cores with caches, whole.

use sardonyx::config::Machine;
use sardonyx::sim::{Outcome, programs};
use sardonyx::workload::{self, ProgramSpec};

fn machine(settings: &[(&str, &str)]) -> Machine {
    Machine::load("sca", settings).unwrap_or_else(|error| panic!("{error}"))
}

fn spec(name: &str, transactions: u64) -> ProgramSpec {
    ProgramSpec {
        name: name.into(),
        item_bytes: 64,
        footprint: 4 << 20,
        transactions,
        seed: 1,
        mutant: None,
    }
}

fn run(machine: &Machine, design: &str, spec: &ProgramSpec, cores: usize) -> Outcome {
    let outcome = programs::run(machine, design, spec, cores, 0, &mut (), &mut |_| true);
    outcome.unwrap_or_else(|error| panic!("{error}"))
}

fn figure(outcome: &Outcome, name: &str) -> f64 {
    outcome.metrics[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name}"))
}

#[test]
fn every_program_runs_on_one_core_and_on_four() {
    let machine = machine(&[]);
    for known in workload::all() {
        let spec = spec(known.name, 300);
        let one = run(&machine, "baseline", &spec, 1);
        let four = run(&machine, "baseline", &spec, 4);
        assert_eq!(figure(&one, "transactions"), 300.0);
        assert_eq!(figure(&four, "transactions"), 1200.0);
        let speedup =
            figure(&four, "transactions_per_second") / figure(&one, "transactions_per_second");
        assert!((0.9..4.5).contains(&speedup), "{}: {speedup}", known.name);
        for name in [
            "runtime_ns",
            "transactions_per_second",
            "medium_writes",
            "medium_reads",
            "cpu_cache_miss_rate",
            "ipc",
            "mean_write_latency_ns",
            "mean_read_latency_ns",
        ] {
            eprintln!(
                "{} {name} {} {}",
                known.name, one.metrics[name], four.metrics[name]
            );
        }
    }
}
