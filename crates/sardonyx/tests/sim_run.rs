//! Whole runs of every design over a small generated trace: legal commands, sane figures, the same
//! figures again, a warm-up that counts nowhere, and causes that add up to the latencies.

use crate::common::figure;
use sardonyx::config::Machine;
use sardonyx::controller::designs;
use sardonyx::machine::recordings::{self, Options};
use sardonyx::machine::{Outcome, RunError};
use sardonyx::plan::command::CommandLog;
use sardonyx::stats::Cause;
use sardonyx::trace::{Source, Spec, Synth};
use sardonyx_audit::audit;

const RECORDS: u64 = 6_000;

fn machine(overrides: &[(&str, &str)]) -> Machine {
    crate::common::machine("esd", overrides)
}

fn source() -> Source {
    let spec = Spec {
        records: RECORDS,
        footprint_lines: 1 << 10,
        mean_gap: 200,
        ..Spec::default()
    };
    Source::from(Synth::new(spec, 7).expect("a valid spec"))
}

fn run(machine: &Machine, design: &str, warmup: u64) -> Outcome {
    let options = Options {
        warmup,
        ..Options::default()
    };
    let sources = vec![source(), source()];
    let mut system = recordings::system(machine, design, sources, options).expect("a run");
    system.memory().observe(CommandLog::default());
    let outcome = system.run(&mut |_| true).expect("an outcome");
    let log = system
        .memory()
        .take::<CommandLog>()
        .expect("it listens")
        .by_channel();
    let summary = audit(&machine.engine.medium, &log)
        .unwrap_or_else(|violation| panic!("{design}: {violation}"));
    if warmup == 0 {
        assert_eq!(figure(&outcome, "medium_reads") as u64, summary.reads);
        assert_eq!(figure(&outcome, "medium_writes") as u64, summary.writes);
    }
    outcome
}

fn causes_add_up(outcome: &Outcome, design: &str) {
    for (kind, count) in [("read", "reads"), ("write", "writes")] {
        let mean = figure(outcome, &format!("mean_{kind}_latency_ns"));
        let whole = mean * figure(outcome, count);
        let part = |cause| {
            let account = outcome.ledger.total(cause);
            if kind == "read" {
                account.read_latency.ns()
            } else {
                account.write_latency.ns()
            }
        };
        let parts: f64 = Cause::ALL.into_iter().map(part).sum();
        assert!(
            (parts / whole - 1.0).abs() < 1e-9,
            "{design} {kind}: {parts} of {whole}"
        );
    }
}

#[test]
fn every_design_runs_legally_and_adds_up() {
    let machine = machine(&[]);
    for design in designs::all() {
        let outcome = run(&machine, design.name, 0);
        assert_eq!(figure(&outcome, "requests"), 2.0 * RECORDS as f64);
        assert!(figure(&outcome, "write_reduction") <= 1.0);
        for kind in ["read", "write"] {
            let of = |what: &str| figure(&outcome, &format!("{what}_{kind}_latency_ns"));
            assert!(0.0 < of("p50") && of("p50") <= of("p99") && of("p99") <= of("max"));
        }
        causes_add_up(&outcome, design.name);
        assert_eq!(run(&machine, design.name, 0), outcome, "{}", design.name);
    }
}

#[test]
fn a_warm_up_counts_nowhere() {
    let machine = machine(&[]);
    for design in designs::all() {
        let (all, part) = (
            run(&machine, design.name, 0),
            run(&machine, design.name, 9_000),
        );
        assert_eq!(figure(&part, "requests"), 2.0 * RECORDS as f64 - 9_000.0);
        for name in [
            "medium_reads",
            "medium_writes",
            "energy_nj",
            "simulated_ns",
            "instructions",
        ] {
            assert!(
                figure(&part, name) < figure(&all, name),
                "{}: {name}",
                design.name
            );
        }
        causes_add_up(&part, design.name);
    }
}

#[test]
fn a_small_ingress_and_small_queues_only_slow_things_down() {
    let tight = [
        ("engine.ingress", "2"),
        ("medium.queues.reads", "2"),
        ("medium.queues.writes", "4"),
        ("medium.queues.high_watermark", "3"),
        ("medium.queues.low_watermark", "1"),
    ];
    let (wide, tight) = (machine(&[]), machine(&tight));
    for design in designs::all() {
        let (wide, tight) = (run(&wide, design.name, 0), run(&tight, design.name, 0));
        assert_eq!(figure(&tight, "requests"), figure(&wide, "requests"));
        assert!(figure(&tight, "simulated_ns") > figure(&wide, "simulated_ns"));
        let ingress = |o: &Outcome| {
            let account = o.ledger.total(Cause::Ingress);
            account.read_latency + account.write_latency
        };
        assert!(ingress(&tight) > ingress(&wide), "{}", design.name);
        causes_add_up(&tight, design.name);
    }
}

/// ESD as published never uses a place again: a long run on a small medium ends with an error.
#[test]
fn a_medium_without_a_free_place_is_an_error() {
    let rows = ("medium.geometry.rows", "16"); // 8192 lines
    let spec = Spec {
        records: 60_000,
        footprint_lines: 1 << 11,
        mean_gap: 200,
        ..Spec::default()
    };
    let run = |reclaim: &str| {
        let machine = machine(&[rows, ("esd.reclaim", reclaim)]);
        let source = Source::from(Synth::new(spec.clone(), 7).expect("a valid spec"));
        let options = Options::default();
        recordings::run(&machine, "esd", vec![source], options, &mut |_| true)
    };
    let Err(RunError::Exhausted { design, why, .. }) = run("paper") else {
        panic!("it fitted");
    };
    assert_eq!(design, "esd");
    assert!(why.remedy.contains("esd.reclaim"), "{why}");
    run("counted").expect("places that are used again suffice");
}

#[test]
fn a_run_beyond_the_clock_s_end_is_an_error() {
    let spec = Spec {
        records: 100,
        mean_gap: u32::MAX / 2,
        ..Spec::default()
    };
    let clock = ("core.clock_ns", "1000");
    let machine = machine(&[clock]);
    let source = Source::from(Synth::new(spec, 7).expect("a valid spec"));
    let options = Options::default();
    let run = recordings::run(&machine, "baseline", vec![source], options, &mut |_| true);
    let error = run.expect_err("100 times 9 minutes").to_string();
    assert!(error.contains("over five hours"), "{error}");
}

#[test]
fn a_trace_too_large_for_the_memory_is_named() {
    let machine = machine(&[("medium.geometry.rows", "1")]);
    let spec = Spec {
        records: 60_000,
        footprint_lines: 1 << 14,
        ..Spec::default()
    };
    let source = Source::from(Synth::new(spec, 7).expect("a valid spec"));
    let options = Options::default();
    let run = recordings::run(&machine, "baseline", vec![source], options, &mut |_| true);
    let error = run.expect_err("it holds 512 lines").to_string();
    assert!(
        error.contains("KiB") && error.contains("more rows"),
        "{error}"
    );
}

/// Breaks if an epoch is lost or counted twice, or if shares of time are more than all of it.
#[test]
fn what_happens_over_time_adds_up() {
    for (design, warmup) in [("baseline", 0), ("esd", 1_000), ("dewrite", 0)] {
        let outcome = run(&machine(&[]), design, warmup);
        let (series, usage) = outcome.over_time.as_ref().expect("a whole run has it");
        let column = |name: &str| {
            let column = series.columns.iter().find(|(known, _)| known == name);
            let (_, values) = column.unwrap_or_else(|| panic!("{design} has no {name}"));
            values.iter().filter_map(|value| value.number())
        };
        let epochs = series.columns[0].1.len();
        assert!((64..=128).contains(&epochs), "{design}: {epochs} epochs");
        for name in [
            "reads",
            "writes",
            "medium_reads",
            "medium_writes",
            "energy_nj",
        ] {
            let (sum, whole) = (column(name).sum::<f64>(), figure(&outcome, name));
            assert!(
                (sum - whole).abs() < 1e-9 * whole,
                "{design}: {name} {sum} and {whole}"
            );
        }
        let hits = column("counter_cache_hit_rate");
        assert!(hits.clone().count() > 0 && hits.clone().all(|rate| (0.0..=1.0).contains(&rate)));
        let worst = column("p99_write_latency_ns").fold(0.0, f64::max);
        assert!(worst >= figure(&outcome, "p99_write_latency_ns"));
        assert!(worst <= figure(&outcome, "max_write_latency_ns") * 17.0 / 16.0);
        let shares = usage.banks.iter().chain(&usage.buses).chain(&usage.queues);
        for share in shares.map(|share| share.number().expect("time has passed")) {
            assert!((0.0..=1.0).contains(&share), "{design}: {share}");
        }
        assert!(usage.banks.iter().any(|bank| bank.number() > Some(0.01)));
        let worn: u64 = usage.worn.iter().map(|worn| worn.writes).sum();
        let placed: u64 = usage.map.iter().map(|(_, part)| part.writes).sum();
        if warmup == 0 {
            assert_eq!(worn as f64, figure(&outcome, "medium_writes"), "{design}");
        }
        assert!(placed <= worn && usage.map.iter().any(|(region, _)| *region == "data"));
    }
}
