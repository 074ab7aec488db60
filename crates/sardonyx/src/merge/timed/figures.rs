//! The figures of a window.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::held::Loaded;
use super::host::{Core, Host};
use super::module::Sample;
use super::queries::{Done, Queries};
use super::run::{Played, Run};
use super::settled::SETTLED;
use super::thread::Part;
use super::{Plan, TimedError};
use crate::merge::images::Images;
use crate::merge::ksm::Keys;
use crate::merge::run::Pages;
use crate::stats::Cause;
use crate::units::Time;

impl Run<'_> {
    pub(super) fn answer(
        &self,
        plan: &Plan,
        images: &Arc<Images>,
        tell: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Value, TimedError> {
        let mut played = self.play(plan, images, tell)?;
        let host = self.host.lock().expect("no panic");
        let mut metrics = Map::new();
        let mut put = |name: &str, value: Value| {
            metrics.insert(name.to_owned(), value);
        };
        self.sojourns(&host, &mut put);
        self.thread(&host, &mut put);
        let in_window = |sample: &&Sample| (self.window.0..=self.window.1).contains(&sample.at);
        let counted: Vec<Sample> = played.samples.iter().filter(in_window).copied().collect();
        let bandwidths = bandwidths(&counted);
        let merging_lines: Vec<u64> = counted
            .windows(2)
            .map(|pair| pair[1].merging - pair[0].merging)
            .collect();
        if let [first, .., last] = &counted[..] {
            let [hits, misses] = [0, 1].map(|at| last.llc[at] - first.llc[at]);
            put("llc_accesses", json!(hits + misses));
            put(
                "llc_miss_rate",
                share(misses as f64, (hits + misses) as f64),
            );
            let took = last.at.since(first.at).ns();
            let bytes = |sample: &Sample| (sample.traffic[0] + sample.traffic[1]) * 64;
            put(
                "bandwidth_gb_s",
                share((bytes(last) - bytes(first)) as f64, took),
            );
            let most = bandwidths.iter().copied().fold(0.0, f64::max);
            put("bandwidth_busiest_gb_s", json!(most));
        }
        let Pages {
            pages,
            frames,
            unmerged,
            merged_zero,
            merged,
            merged_frames,
            ..
        } = self.pages;
        if pages > 0 {
            let of_pages = |some: u64| share(some as f64, pages as f64);
            put("pages", json!(pages));
            put("saving", of_pages(pages - frames));
            put("unmergeable_pages", of_pages(unmerged));
            put("mergeable_zero_pages", of_pages(merged_zero));
            put("mergeable_nonzero_pages", of_pages(merged));
            put("merged_nonzero_frames", of_pages(merged_frames));
            put(
                "passes_until_settled",
                json!(self.passes.saturating_sub(SETTLED)),
            );
            let Keys {
                matches,
                mismatches,
                false_matches,
            } = self.keys;
            let of_keys = |some: u64| share(some as f64, (matches + mismatches) as f64);
            put("key_comparisons", json!(matches + mismatches));
            put("key_matches", of_keys(matches));
            put("key_false_matches", of_keys(false_matches));
        }
        memory(&mut played, &mut put);
        put("factor", json!(plan.factor));
        put(
            "queries_per_second",
            json!(plan.demand.queries_per_second / plan.factor),
        );
        Ok(json!({
            "application": plan.application.name,
            "design": plan.algorithm.name,
            "memory": plan.memory,
            "machine": plan.machine.name,
            "metrics": metrics,
            "bandwidths_gb_s": bandwidths,
            "merging_lines": merging_lines,
            "settings": plan.said(),
            "parameters": plan.machine.parameters(),
            "assumed": plan.assumed(),
        }))
    }

    /// What queries took.
    fn sojourns(&self, host: &Host, put: &mut impl FnMut(&str, Value)) {
        let counts = |done: &&Done| done.arrival >= self.window.0;
        let of_vm = |queries: &Queries| -> Vec<Done> {
            queries.done.iter().filter(counts).copied().collect()
        };
        let each: Vec<Vec<Done>> = host.vms.iter().map(of_vm).collect();
        let all: Vec<Done> = each.iter().flatten().copied().collect();
        let mut sojourns: Vec<Time> = all.iter().map(|done| done.sojourn).collect();
        sojourns.sort_unstable();
        put("queries", json!(all.len()));
        let mean = |some: &[Done], of: fn(&Done) -> Time| {
            let sum: Time = some.iter().map(of).sum();
            share(sum.ns(), some.len() as f64)
        };
        put("mean_sojourn_ns", mean(&all, |done| done.sojourn));
        put("mean_waited_ns", mean(&all, |done| done.waited));
        put("mean_interrupted_ns", mean(&all, |done| done.thread));
        put("mean_executed_ns", mean(&all, |done| done.executed));
        for (percent, name) in [(50, "p50"), (95, "p95"), (99, "p99")] {
            let rank = (sojourns.len() * percent).div_ceil(100).saturating_sub(1);
            let value = sojourns.get(rank).map(|time| time.ns());
            put(&format!("{name}_sojourn_ns"), json!(value));
        }
        // "Each bar shows the geometric mean across the ten VMs" (6.3).
        let means = each.iter().map(|vm| mean(vm, |done| done.sojourn).as_f64());
        let means: Option<Vec<f64>> = means.collect();
        let geometric = means.map(|means| {
            (means.iter().map(|mean| mean.ln()).sum::<f64>() / means.len() as f64).exp()
        });
        put("geomean_sojourn_ns", json!(geometric));
    }

    /// What the cores did.
    fn thread(&self, host: &Host, put: &mut impl FnMut(&str, Value)) {
        let vms = host.vms.len();
        let total = |core: &Core| -> Time { core.time.iter().copied().sum() };
        let of = |core: &Core, part: Part| core.time[part as usize];
        let merges = |core: &Core| {
            let parts = [Part::Compare, Part::Hash, Part::Other];
            parts.into_iter().map(|part| of(core, part)).sum::<Time>()
        };
        let cores = &host.cores[..vms];
        let all: Time = cores.iter().map(total).sum();
        let busy: Time = cores.iter().map(|core| of(core, Part::Query)).sum();
        put("utilisation", share(busy.ns(), all.ns()));
        let Some(scan) = &host.scan else {
            return;
        };
        let thread: Time = host.cores.iter().map(merges).sum();
        put(
            "thread_share_mean",
            share(cores.iter().map(merges).sum::<Time>().ns(), all.ns()),
        );
        let shares = cores
            .iter()
            .map(|core| merges(core).ns() / total(core).ns().max(1.0));
        put("thread_share_most", json!(shares.fold(0.0, f64::max)));
        let mut parts = [Time::ZERO; Part::COUNT];
        for core in &host.cores {
            for (sum, time) in parts.iter_mut().zip(core.time) {
                *sum += time;
            }
        }
        put(
            "thread_compare_share",
            share(parts[Part::Compare as usize].ns(), thread.ns()),
        );
        put(
            "thread_hash_share",
            share(parts[Part::Hash as usize].ns(), thread.ns()),
        );
        let figures = &host.figures;
        let cycles = |time: Time| time.ps() as f64 / host.costs.clock.ps() as f64;
        for (name, part) in [
            ("compare", Part::Compare),
            ("hash", Part::Hash),
            ("other", Part::Other),
        ] {
            put(
                &format!("thread_{name}_cycles_a_page"),
                share(cycles(parts[part as usize]), figures.pages_in_window as f64),
            );
        }
        put("thread_moves", json!(host.thread.moves));
        put("intervals", json!(figures.intervals.len()));
        let sum: Time = figures.intervals.iter().copied().sum();
        put(
            "mean_interval_ns",
            share(sum.ns(), figures.intervals.len() as f64),
        );
        put("pages_scanned", json!(scan.done.pages));
        put("pages_merged", json!(scan.done.merges));
        put("pages_copied", json!(figures.copies));
        put("comparisons", json!(scan.done.comparisons[0]));
        put(
            "lines_a_comparison",
            share(
                scan.done.comparisons[1] as f64,
                scan.done.comparisons[0] as f64,
            ),
        );
        if let (Some(jobs), false) = (&host.jobs, figures.tables.is_empty()) {
            let cycles: Vec<f64> = figures
                .tables
                .iter()
                .map(|time| time.ns() * 1_000.0 / host.costs.clock.ps() as f64)
                .collect();
            let mean = cycles.iter().sum::<f64>() / cycles.len() as f64;
            let variance =
                cycles.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / cycles.len() as f64;
            put("scan_tables", json!(cycles.len()));
            put("scan_table_cycles", json!(mean));
            put("scan_table_cycles_deviation", json!(variance.sqrt()));
            put(
                "check_period_cycles",
                json!(jobs.costs.poll.ps() / host.costs.clock.ps()),
            );
        }
    }
}

/// Figures of the memory that stand for themselves, by the names that all results have.
const OF_MEMORY: [&str; 9] = [
    "reads",
    "writes",
    "medium_reads",
    "medium_writes",
    "duplicate_writes",
    "write_reduction",
    "mean_read_latency_ns",
    "mean_write_latency_ns",
    "energy_nj",
];

/// What the memory did in the whole run, its warm-up included.
fn memory(played: &mut Played, put: &mut impl FnMut(&str, Value)) {
    for name in OF_MEMORY {
        put(name, json!(played.outcome.figures.named(name)));
    }
    let ledger = played.system.memory().ledger();
    let encryption = ledger.total(Cause::Encryption).energy;
    put("encryption_energy_nj", json!(encryption.nj()));
    if let Some(Loaded { lines, stored }) = played.loaded {
        put("loaded_lines", json!(lines));
        put("loaded_lines_stored", share(stored as f64, lines as f64));
    }
}

/// Gigabytes a second between each two samples.
fn bandwidths(samples: &[Sample]) -> Vec<f64> {
    let pairs = samples.windows(2);
    let rate = |pair: &[Sample]| {
        let lines = |sample: &Sample| sample.traffic[0] + sample.traffic[1];
        (lines(&pair[1]) - lines(&pair[0])) as f64 * 64.0 / pair[1].at.since(pair[0].at).ns()
    };
    pairs.map(rate).collect()
}

fn share(part: f64, whole: f64) -> Value {
    if whole > 0.0 {
        json!(part / whole)
    } else {
        Value::Null
    }
}
