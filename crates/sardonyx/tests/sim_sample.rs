//! Long runs as samples: intervals that hold the whole run's figures, the same bytes without a clock, and bounds.

use crate::common::figure;
use sardonyx::config::Machine;
use sardonyx::machine::recordings::{self, Options};
use sardonyx::machine::{Outcome, RunError, Sample, Sampling, TAIL};
use sardonyx::stats::Cause;
use sardonyx::trace::{Source, Spec, Synth, TraceWriter};

const RECORDS: u64 = 240_000;

fn machine() -> Machine {
    crate::common::machine("esd", &[])
}

fn source(seed: u64) -> Source {
    let spec = Spec {
        records: RECORDS,
        footprint_lines: 1 << 13,
        mean_gap: 150,
        ..Spec::default()
    };
    Source::from(Synth::new(spec, seed).expect("a valid spec"))
}

fn sources(cores: u64) -> Vec<Source> {
    (0..cores).map(source).collect()
}

const SAMPLING: Sampling = Sampling {
    windows: 30,
    requests: 1_000,
    ramp: 500,
    seed: 1,
};

fn sample(design: &str, cores: u64, sampling: Sampling, warmup: u64) -> Result<Sample, RunError> {
    let options = Options {
        warmup,
        ..Options::default()
    };
    let system = recordings::system(&machine(), design, sources(cores), options)?;
    system.sample(&sampling, warmup..RECORDS * cores, &mut |_| true)
}

fn whole(design: &str, cores: u64, warmup: u64) -> Outcome {
    let options = Options {
        warmup,
        ..Options::default()
    };
    let run = recordings::run(&machine(), design, sources(cores), options, &mut |_| true);
    run.unwrap_or_else(|error| panic!("{error}"))
}

/// A figure of a request: amounts are of a window there, and of the run here.
fn of_a_request(outcome: &Outcome, name: &str) -> f64 {
    match name {
        "energy_nj" | "medium_writes" | "medium_reads" | "simulated_ns" => {
            figure(outcome, name) / figure(outcome, "requests")
        }
        _ => figure(outcome, name),
    }
}

#[test]
fn nine_of_ten_intervals_hold_what_the_whole_run_says() {
    let names = [
        "mean_write_latency_ns",
        "mean_read_latency_ns",
        "ipc",
        "energy_nj",
        "medium_writes",
        "medium_reads",
        "simulated_ns",
        "row_hit_rate",
    ];
    let (mut held, mut all) = (0, 0);
    for (design, cores) in [
        ("no-encryption", 1),
        ("baseline", 2),
        ("esd", 1),
        ("esd", 2),
    ] {
        let sample = sample(design, cores, SAMPLING, 40_000).unwrap();
        let whole = whole(design, cores, 40_000);
        for name in names {
            let half = sample
                .half_widths
                .iter()
                .find(|(figure, _)| figure.name == name);
            let half = half
                .unwrap_or_else(|| panic!("{design}: no interval for {name}"))
                .1;
            let half = half / figure(&sample.outcome, name);
            let ratio = of_a_request(&sample.outcome, name) / of_a_request(&whole, name);
            let strayed = (ratio - 1.0).abs();
            assert!(
                strayed < 3.0 * half + 0.001,
                "{design}, {cores} cores, {name}: {ratio} +- {half}"
            );
            assert!(
                half < 0.25,
                "{design} {name}: an interval of {half} says nothing"
            );
            all += 1;
            held += u64::from(strayed <= half);
        }
    }
    assert!(
        10 * held >= 9 * all,
        "{held} of {all} intervals hold the truth"
    );
}

/// Most of this run's time is one gap, which few windows meet: what is known of gaps without a clock counts.
#[test]
fn a_long_gap_that_no_window_meets_counts_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gap.parquet");
    let mut records = source(4);
    let mut writer = TraceWriter::create(&path, records.provenance()).unwrap();
    let (mut batch, mut number) = (Vec::new(), 0);
    while records.next_batch(&mut batch).unwrap() {
        for record in &mut batch {
            number += 1;
            if number == 150_000 {
                record.gap = 100_000_000;
            }
            writer.push(record).unwrap();
        }
    }
    writer.finish().unwrap();
    let sources = || vec![Source::open(&path).unwrap()];
    let options = || Options {
        warmup: 40_000,
        ..Options::default()
    };
    for design in ["baseline", "esd"] {
        let whole = recordings::run(&machine(), design, sources(), options(), &mut |_| true);
        let whole = whole.unwrap();
        for seed in 1..4 {
            let sampling = Sampling { seed, ..SAMPLING };
            let system = recordings::system(&machine(), design, sources(), options()).unwrap();
            let sample = system.sample(&sampling, options().warmup..RECORDS, &mut |_| true);
            let sample = sample.unwrap();
            for name in ["simulated_ns", "ipc"] {
                let mut halves = sample.half_widths.iter();
                let half = halves.find(|(figure, _)| figure.name == name).unwrap().1;
                let half = half / figure(&sample.outcome, name);
                let ratio = of_a_request(&sample.outcome, name) / of_a_request(&whole, name);
                let strayed = (ratio - 1.0).abs();
                assert!(
                    strayed < 1.5 * half,
                    "{design} {seed} {name}: {ratio} +- {half}"
                );
                assert!(half < 0.05, "{design} {seed} {name}: +- {half}");
            }
            let instructions =
                |outcome| figure(outcome, "instructions") / figure(outcome, "requests");
            let ratio = instructions(&sample.outcome) / instructions(&whole);
            assert!((ratio - 1.0).abs() < 1e-3, "{ratio}");
        }
    }
}

#[test]
fn a_sample_repeats_and_another_seed_is_another() {
    let of = |seed| {
        let sampling = Sampling { seed, ..SAMPLING };
        sample("esd", 2, sampling, 0).unwrap().outcome
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn latency_by_cause_adds_up_and_windows_have_their_requests() {
    let sample = sample("esd", 1, SAMPLING, 0).unwrap();
    let outcome = &sample.outcome;
    assert_eq!(figure(outcome, "requests") as u64, SAMPLING.requests);
    let windows = SAMPLING.windows * (SAMPLING.requests + SAMPLING.ramp + TAIL);
    assert_eq!((sample.timed, sample.requests), (windows, RECORDS));
    let whole = figure(outcome, "mean_write_latency_ns") * figure(outcome, "writes");
    let part = |cause| outcome.ledger.total(cause).write_latency.ns();
    let parts: f64 = Cause::ALL.into_iter().map(part).sum();
    assert!((parts / whole - 1.0).abs() < 1e-6, "{parts} of {whole}");
}

#[test]
fn too_many_windows_are_an_error() {
    let sampling = Sampling {
        windows: 200,
        ..SAMPLING
    };
    let error = sample("esd", 1, sampling, 0).unwrap_err().to_string();
    assert!(error.contains("200 windows of 1756 requests"), "{error}");
    assert!(error.contains("leave --sample out"), "{error}");
}
