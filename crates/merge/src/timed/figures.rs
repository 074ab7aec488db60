//! The figures of a window.

use std::sync::Arc;

use serde_json::{Value, json};

use super::host::{Host, HostCore};
use super::initial_memory::Loaded;
use super::module::Sample;
use super::queries::{Done, Queries};
use super::run::{Played, TimedRun};
use super::scan::Scan;
use super::thread::CoreActivity;
use super::warm_up::SETTLED;
use super::{TimedError, TimedPlan};
use crate::images::Images;
use sardonyx::controller::mapping::figures::DUPLICATE_WRITES;
use sardonyx::figures::{Amount, Figure, Figures};
use sardonyx::machine::outcome::{latency, time, traffic};
use sardonyx::stats::Cause;
use sardonyx::units::Time;

mod own {
    sardonyx::figures::figures! { "Merging in time";
        GEOMEAN_SOJOURN: Nanoseconds Less "geomean_sojourn_ns",
            "from a query's arrival to its end: the geometric mean of the machines' means (PageForge Fig. 9)";
        MEAN_SOJOURN: Nanoseconds Less "mean_sojourn_ns", "the same, of all machines' queries pooled: the mean";
        P50_SOJOURN: Nanoseconds Less "p50_sojourn_ns", "of them: half are at least as fast";
        P95_SOJOURN: Nanoseconds Less "p95_sojourn_ns", "of them: 95 of 100 are at least as fast";
        P99_SOJOURN: Nanoseconds Less "p99_sojourn_ns", "of them: 99 of 100 are at least as fast";
        MEAN_WAITED: Nanoseconds Less "mean_waited_ns", "of the mean: before a query's first instruction";
        MEAN_INTERRUPTED: Nanoseconds Less "mean_interrupted_ns", "of the mean: while the kernel's thread had the core";
        MEAN_EXECUTED: Nanoseconds Less "mean_executed_ns",
            "of the mean: executing, copies of merged pages included; the three add up to it";
        QUERIES: Count Neither "queries", "queries that arrived in the window and ended";
        FACTOR: Ratio Neither "factor", "by what queries are shortened and come more often";
        QUERY_RATE: PerSecond Neither "queries_per_second", "the rate of queries before that";
        UTILISATION: Ratio Neither "utilisation", "share of the cores' time in queries";
        THREAD_SHARE_MEAN: Ratio Less "thread_share_mean",
            "share of the cores' time in the kernel's thread, of all cores";
        THREAD_SHARE_MOST: Ratio Less "thread_share_most", "the same of the core with most";
        THREAD_COMPARE: Ratio Neither "thread_compare_share", "share of the thread's time in comparisons";
        THREAD_HASH: Ratio Neither "thread_hash_share", "share of the thread's time in checksums";
        COMPARE_CYCLES: Count Less "thread_compare_cycles_a_page",
            "the thread's cycles in the window for each page that it comes to there, in comparisons";
        HASH_CYCLES: Count Less "thread_hash_cycles_a_page", "the same in checksums";
        OTHER_CYCLES: Count Less "thread_other_cycles_a_page", "the same in anything else";
        MOVES: Count Neither "thread_moves", "how often the thread went to another core";
        INTERVALS: Count Neither "intervals", "intervals of the thread that ended in the window";
        MEAN_INTERVAL: Nanoseconds Neither "mean_interval_ns", "the mean of them, with their sleep";
        PAGES_SCANNED: Count Neither "pages_scanned", "pages that were scanned in the whole run";
        PAGES_MERGED: Count More "pages_merged", "pages that were merged in the whole run";
        PAGES_COPIED: Count Less "pages_copied", "merged pages that were written, and so copied, in the whole run";
        COMPARISONS: Count Less "comparisons", "comparisons of pages in trees, by software or by the module";
        LINES_A_COMPARISON: Count Less "lines_a_comparison", "lines that the mean of them reads of each page";
        SCAN_TABLES: Count Neither "scan_tables", "fillings of the Scan Table";
        SCAN_TABLE_CYCLES: Count Less "scan_table_cycles", "core cycles from the bell to the end of one, the mean";
        SCAN_TABLE_DEVIATION: Count Less "scan_table_cycles_deviation", "their standard deviation";
        CHECK_PERIOD: Count Neither "check_period_cycles", "core cycles after which the thread looks whether it has ended";
        LLC_ACCESSES: Count Neither "llc_accesses", "accesses of the last-level cache by cores";
        LLC_MISS_RATE: Ratio Less "llc_miss_rate", "share of them that miss";
        BANDWIDTH: GigabytesPerSecond Less "bandwidth_gb_s", "of the memory in the window";
        BANDWIDTH_BUSIEST: GigabytesPerSecond Less "bandwidth_busiest_gb_s", "of the memory in its busiest `window.sample_us`";
        PAGES: Count Neither "pages", "pages of all machines";
        SAVING: Ratio More "saving", "share of the pages that need no frame of their own, after merging has settled";
        UNMERGEABLE: Ratio Neither "unmergeable_pages", "share of the pages that equal no other";
        MERGEABLE_ZERO: Ratio Neither "mergeable_zero_pages", "share of the pages that are merged and hold zeros";
        MERGEABLE_NONZERO: Ratio Neither "mergeable_nonzero_pages", "share of the pages that are merged and hold anything else";
        MERGED_FRAMES: Ratio Neither "merged_nonzero_frames", "frames of those, as a share of all pages";
        PASSES: Count Less "passes_until_settled", "passes until merging has settled";
        KEY_COMPARISONS: Count Neither "key_comparisons", "keys of pages compared in two passes with writes before each";
        KEY_MATCHES: Ratio Neither "key_matches", "share of them that are equal";
        KEY_FALSE: Ratio Less "key_false_matches", "share of them that are equal though the page has changed";
        ENCRYPTION_ENERGY: Nanojoules Less "encryption_energy_nj", "energy of the memory's encryption";
        LOADED_LINES: Count Neither "loaded_lines", "lines of all pages that were written to the memory before the window";
        LOADED_STORED: Ratio Less "loaded_lines_stored", "share of them that the memory's design stored";
    }
}

pub static FIGURES: [&[&Figure]; 2] = [own::FIGURES, &OF_MEMORY];

/// Figures of the memory that are shown by themselves.
static OF_MEMORY: [&Figure; 9] = [
    &traffic::READS,
    &traffic::WRITES,
    &traffic::MEDIUM_READS,
    &traffic::MEDIUM_WRITES,
    &DUPLICATE_WRITES,
    &traffic::WRITE_REDUCTION,
    &latency::MEAN_READ,
    &latency::MEAN_WRITE,
    &time::ENERGY,
];

impl TimedRun<'_> {
    pub(super) fn answer(
        &self,
        plan: &TimedPlan,
        images: &Arc<Images>,
        tell: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Value, TimedError> {
        let mut played = self.play(plan, images, tell)?;
        let host = self.host.lock().expect("no panic");
        let mut out = Figures::default();
        self.sojourns(&host, &mut out);
        self.thread(&host, &mut out);
        let in_window = |sample: &&Sample| (self.window.0..=self.window.1).contains(&sample.at);
        let counted: Vec<Sample> = played.samples.iter().filter(in_window).copied().collect();
        let bandwidths = bandwidths(&counted);
        let merging_lines: Vec<u64> = counted
            .windows(2)
            .map(|pair| pair[1].merging - pair[0].merging)
            .collect();
        traffic_of(&counted, &bandwidths, &mut out);
        self.savings(&mut out);
        memory(&mut played, &mut out);
        out.put(&own::FACTOR, plan.factor);
        out.put(
            &own::QUERY_RATE,
            plan.demand.queries_per_second / plan.factor,
        );
        Ok(json!({
            "application": plan.application.name,
            "design": plan.algorithm.name,
            "memory": plan.memory,
            "machine": plan.machine.name,
            "metrics": out,
            "bandwidths_gb_s": bandwidths,
            "merging_lines": merging_lines,
            "settings": plan.said(),
            "parameters": plan.machine.parameters(),
            "assumed": plan.assumed(),
        }))
    }

    /// Figures of merging after it has settled; none for a run without pages.
    fn savings(&self, out: &mut Figures) {
        let pages = self.pages;
        if pages.pages == 0 {
            return;
        }
        let of_pages = |some: u64| Amount::share(some as f64, pages.pages as f64);
        out.put(&own::PAGES, pages.pages);
        out.put(&own::SAVING, of_pages(pages.pages - pages.frames));
        out.put(&own::UNMERGEABLE, of_pages(pages.unmerged));
        out.put(&own::MERGEABLE_ZERO, of_pages(pages.merged_zero));
        out.put(&own::MERGEABLE_NONZERO, of_pages(pages.merged));
        out.put(&own::MERGED_FRAMES, of_pages(pages.merged_frames));
        out.put(&own::PASSES, self.passes.saturating_sub(SETTLED));
        let keys = self.keys;
        let compared = keys.matches + keys.mismatches;
        let of_keys = |some: u64| Amount::share(some as f64, compared as f64);
        out.put(&own::KEY_COMPARISONS, compared);
        out.put(&own::KEY_MATCHES, of_keys(keys.matches));
        out.put(&own::KEY_FALSE, of_keys(keys.false_matches));
    }

    fn sojourns(&self, host: &Host, out: &mut Figures) {
        let counts = |done: &&Done| done.arrival >= self.window.0;
        let of_vm = |queries: &Queries| -> Vec<Done> {
            queries.done.iter().filter(counts).copied().collect()
        };
        let each: Vec<Vec<Done>> = host.vms.iter().map(of_vm).collect();
        let all: Vec<Done> = each.iter().flatten().copied().collect();
        let mut sojourns: Vec<Time> = all.iter().map(|done| done.sojourn).collect();
        sojourns.sort_unstable();
        out.put(&own::QUERIES, all.len());
        let mean = |some: &[Done], of: fn(&Done) -> Time| {
            let sum: Time = some.iter().map(of).sum();
            Amount::share(sum.ns(), some.len() as f64)
        };
        out.put(&own::MEAN_SOJOURN, mean(&all, |done| done.sojourn));
        out.put(&own::MEAN_WAITED, mean(&all, |done| done.waited));
        out.put(&own::MEAN_INTERRUPTED, mean(&all, |done| done.thread));
        out.put(&own::MEAN_EXECUTED, mean(&all, |done| done.executed));
        let points = [&own::P50_SOJOURN, &own::P95_SOJOURN, &own::P99_SOJOURN];
        for (percent, figure) in [50, 95, 99].into_iter().zip(points) {
            let rank = (sojourns.len() * percent).div_ceil(100).saturating_sub(1);
            out.put(figure, sojourns.get(rank).copied());
        }
        // "Each bar shows the geometric mean across the ten VMs" (6.3).
        let means = each.iter().map(|vm| mean(vm, |done| done.sojourn).number());
        let means: Option<Vec<f64>> = means.collect();
        let geometric = means.map(|means| {
            (means.iter().map(|mean| mean.ln()).sum::<f64>() / means.len() as f64).exp()
        });
        out.put(&own::GEOMEAN_SOJOURN, geometric);
    }

    fn thread(&self, host: &Host, out: &mut Figures) {
        let vms = host.vms.len();
        let total = |core: &HostCore| -> Time { core.time.iter().copied().sum() };
        let of = |core: &HostCore, part: CoreActivity| core.time[part as usize];
        let merges = |core: &HostCore| {
            let parts = [
                CoreActivity::Compare,
                CoreActivity::Hash,
                CoreActivity::Other,
            ];
            parts.into_iter().map(|part| of(core, part)).sum::<Time>()
        };
        let cores = &host.cores[..vms];
        let all: Time = cores.iter().map(total).sum();
        let busy: Time = cores.iter().map(|core| of(core, CoreActivity::Query)).sum();
        out.put(&own::UTILISATION, Amount::share(busy.ns(), all.ns()));
        let Some(scan) = &host.scan else {
            return;
        };
        let thread: Time = host.cores.iter().map(merges).sum();
        out.put(
            &own::THREAD_SHARE_MEAN,
            Amount::share(cores.iter().map(merges).sum::<Time>().ns(), all.ns()),
        );
        let shares = cores
            .iter()
            .map(|core| merges(core).ns() / total(core).ns().max(1.0));
        out.put(&own::THREAD_SHARE_MOST, shares.fold(0.0, f64::max));
        let mut parts = [Time::ZERO; CoreActivity::COUNT];
        for core in &host.cores {
            for (sum, time) in parts.iter_mut().zip(core.time) {
                *sum += time;
            }
        }
        out.put(
            &own::THREAD_COMPARE,
            Amount::share(parts[CoreActivity::Compare as usize].ns(), thread.ns()),
        );
        out.put(
            &own::THREAD_HASH,
            Amount::share(parts[CoreActivity::Hash as usize].ns(), thread.ns()),
        );
        scanned(host, scan, &parts, out);
    }
}

/// Figures of what the kernel's thread did in the window; `parts` is its time by activity, on all cores.
fn scanned(host: &Host, scan: &Scan<'_>, parts: &[Time; CoreActivity::COUNT], out: &mut Figures) {
    let figures = &host.figures;
    let cycles = |time: Time| time.ps() as f64 / host.costs.clock.ps() as f64;
    for (figure, part) in [
        (&own::COMPARE_CYCLES, CoreActivity::Compare),
        (&own::HASH_CYCLES, CoreActivity::Hash),
        (&own::OTHER_CYCLES, CoreActivity::Other),
    ] {
        out.put(
            figure,
            Amount::share(cycles(parts[part as usize]), figures.pages_in_window as f64),
        );
    }
    out.put(&own::MOVES, host.thread.moves);
    out.put(&own::INTERVALS, figures.intervals.len());
    let sum: Time = figures.intervals.iter().copied().sum();
    out.put(
        &own::MEAN_INTERVAL,
        Amount::share(sum.ns(), figures.intervals.len() as f64),
    );
    out.put(&own::PAGES_SCANNED, scan.done.pages);
    out.put(&own::PAGES_MERGED, scan.done.merges);
    out.put(&own::PAGES_COPIED, figures.copies);
    out.put(&own::COMPARISONS, scan.done.comparisons[0]);
    out.put(
        &own::LINES_A_COMPARISON,
        Amount::share(
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
        let variance = cycles.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / cycles.len() as f64;
        out.put(&own::SCAN_TABLES, cycles.len());
        out.put(&own::SCAN_TABLE_CYCLES, mean);
        out.put(&own::SCAN_TABLE_DEVIATION, variance.sqrt());
        out.put(
            &own::CHECK_PERIOD,
            jobs.costs.poll.ps() / host.costs.clock.ps(),
        );
    }
}

fn traffic_of(samples: &[Sample], bandwidths: &[f64], out: &mut Figures) {
    let [first, .., last] = samples else { return };
    let [hits, misses] = [0, 1].map(|at| last.llc[at] - first.llc[at]);
    out.put(&own::LLC_ACCESSES, hits + misses);
    out.put(
        &own::LLC_MISS_RATE,
        Amount::share(misses as f64, (hits + misses) as f64),
    );
    let took = last.at.since(first.at).ns();
    let bytes = |sample: &Sample| (sample.traffic[0] + sample.traffic[1]) * 64;
    out.put(
        &own::BANDWIDTH,
        Amount::share((bytes(last) - bytes(first)) as f64, took),
    );
    let most = bandwidths.iter().copied().fold(0.0, f64::max);
    out.put(&own::BANDWIDTH_BUSIEST, most);
}

fn memory(played: &mut Played, out: &mut Figures) {
    for figure in OF_MEMORY {
        out.put(figure, played.outcome.figures.of(figure));
    }
    let ledger = played.system.memory().ledger();
    let encryption = ledger.total(Cause::Encryption).energy;
    out.put(&own::ENCRYPTION_ENERGY, encryption);
    if let Some(Loaded { lines, stored }) = played.loaded {
        out.put(&own::LOADED_LINES, lines);
        out.put(
            &own::LOADED_STORED,
            Amount::share(stored as f64, lines as f64),
        );
    }
}

fn bandwidths(samples: &[Sample]) -> Vec<f64> {
    let pairs = samples.windows(2);
    let rate = |pair: &[Sample]| {
        let lines = |sample: &Sample| sample.traffic[0] + sample.traffic[1];
        (lines(&pair[1]) - lines(&pair[0])) as f64 * 64.0 / pair[1].at.since(pair[0].at).ns()
    };
    pairs.map(rate).collect()
}
