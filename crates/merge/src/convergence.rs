//! Runs a merge to its end, and computes its figures.

use serde::Serialize;

use super::PAGE_BYTES;
use super::images::Images;
use super::ksm::{Keys, KsmCounters, ModuleWork};
use super::owner::Tell;
use super::run::{PageCounts, Runner};

/// Savings that stay the same for this many passes have settled.
const SETTLED: usize = 10;
const MOST_PASSES: usize = 200;

pub(super) struct FinishedRun<'i> {
    pub run: Box<dyn Runner + 'i>,
    pub passes: Vec<KsmCounters>,
    /// Processor time and time after each pass, in nanoseconds.
    pub times_ns: Vec<(u64, u64)>,
    /// The pass after which the savings stayed the same.
    pub settled: Option<usize>,
    /// Time and processor time until then.
    pub settled_ns: (u64, u64),
}

pub(super) fn saved(counters: &KsmCounters) -> u64 {
    counters.pages_sharing + counters.ksm_zero_pages
}

/// Runs until the savings have settled, or for so many passes. `None` if `tell` ended it.
pub(super) fn finish<'i>(
    mut run: Box<dyn Runner + 'i>,
    passes: Option<usize>,
    snapshots: usize,
    tell: Tell<'_>,
) -> Option<FinishedRun<'i>> {
    let mut counters: Vec<KsmCounters> = Vec::new();
    let mut times_ns = Vec::new();
    let (mut since, mut settled_ns) = (0, (0, 0));
    let most = passes.unwrap_or(MOST_PASSES.max(snapshots + SETTLED));
    let pages = run.size();
    while counters.len() < most {
        let (before, total) = (
            counters.len() as u64 * pages,
            passes.unwrap_or(0) as u64 * pages,
        );
        if !run.pass(&mut |done| tell(before + done, total)) {
            return None;
        }
        counters.push(run.counters());
        times_ns.push(run.times_ns());
        let now = counters.len();
        if now == 1 || saved(&counters[now - 1]) != saved(&counters[now - 2]) || now <= snapshots {
            (since, settled_ns) = (now, run.times_ns());
        }
        // The first pass only remembers checksums, so its savings do not count.
        if passes.is_none() && now >= since.max(2) + SETTLED {
            break;
        }
    }
    let settled = (counters.len() >= since + SETTLED).then_some(since);
    Some(FinishedRun {
        run,
        passes: counters,
        times_ns,
        settled,
        settled_ns,
    })
}

#[derive(Clone, Debug, Serialize)]
pub struct Metrics {
    pub pages: PageCounts,
    pub saved_pages: u64,
    pub saved_zero_pages: u64,
    pub saving: f64,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub merging: Option<Merging>,
}

/// Figures of a run that merges; times are of the kernel's thread, in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct Merging {
    pub machines: usize,
    /// Bytes of the pages that need no frame of their own.
    pub saved_bytes: u64,
    pub frames_saving: f64,
    pub settled_after_passes: Option<usize>,
    pub settled_after_seconds: Option<f64>,
    pub settled_cpu_seconds: Option<f64>,
    pub cpu_seconds: f64,
    pub seconds: f64,
    pub cpu_share: f64,
    pub keys: Keys,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<ModuleWork>,
}

impl Metrics {
    pub(super) fn count(images: &Images, finished: &FinishedRun<'_>) -> Metrics {
        let pages = finished.run.pages();
        let last = finished.passes.last().copied().unwrap_or_default();
        let all = pages.pages.max(1) as f64;
        let (cpu_ns, elapsed_ns) = finished.run.times_ns();
        let seconds = |ns: u64| ns as f64 / 1e9;
        let settled = |ns: u64| finished.settled.map(|_| seconds(ns));
        Metrics {
            saved_pages: saved(&last),
            saved_zero_pages: pages.merged_zero - finished.run.zero_nodes(),
            saving: saved(&last) as f64 / all,
            merging: Some(Merging {
                machines: images.machines.len(),
                saved_bytes: saved(&last) * PAGE_BYTES as u64,
                frames_saving: 1.0 - pages.frames as f64 / all,
                settled_after_passes: finished.settled,
                settled_after_seconds: settled(finished.settled_ns.1),
                settled_cpu_seconds: settled(finished.settled_ns.0),
                cpu_seconds: seconds(cpu_ns),
                seconds: seconds(elapsed_ns),
                cpu_share: cpu_ns as f64 / (elapsed_ns.max(1)) as f64,
                keys: finished.run.keys(),
                hardware: finished.run.hardware(),
            }),
            pages,
        }
    }
}
