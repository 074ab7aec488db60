//! The window: the cores, what merges beside them, and the figures that come of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

use super::applications::Demand;
use super::kernel::{self, Kernel, PARTS, Part, Parts};
use super::module::{Module, Sample, Sampler};
use super::queries::{self, Done, Draw, Queries};
use super::settings as keys;
use super::settled::{SETTLED, Settled};
use super::thread::Costs;
use super::{Plan, Question, TimedError};
use crate::line::{LINE_BYTES, Line, Logical, Virtual, ZERO_LINE};
use crate::machine::{
    AddressSpace, Agent, Backing, Batch, Mapped, OpSource, PAGE_LINES, Player, RunError, System,
    Warmup,
};
use crate::memory::Memory;
use crate::merge::Page;
use crate::merge::images::Images;
use crate::merge::ksm::Keys;
use crate::merge::question::Pages;
use crate::units::Time;

/// What frames hold before anybody writes them: page k of all machines lies in frame k.
pub(super) struct Initial {
    images: Arc<Images>,
    contents: Vec<Option<u32>>,
}

impl Initial {
    pub(super) fn new(images: &Arc<Images>) -> Initial {
        let pages = 0..images.pages() as Page;
        Initial {
            contents: pages.map(|page| images.last(page)).collect(),
            images: images.clone(),
        }
    }
}

impl Backing for Initial {
    fn line(&self, line: Logical) -> Line {
        let (frame, at) = (line.0 / PAGE_LINES, line.0 % PAGE_LINES);
        match self.contents.get(frame as usize) {
            Some(Some(content)) => {
                self.images.bytes(*content).as_chunks::<LINE_BYTES>().0[at as usize]
            }
            _ => ZERO_LINE,
        }
    }
}

/// What a core executes.
struct CoreSource<'i> {
    core: usize,
    name: String,
    kernel: Arc<Mutex<Kernel<'i>>>,
    watches: bool,
    clock: Arc<AtomicU64>,
}

impl OpSource for CoreSource<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn refill(&mut self, now: Time, batch: &mut Batch) -> Result<bool, RunError> {
        self.clock.store(now.ps() / 1_000, Ordering::Relaxed);
        let mut kernel = self.kernel.lock().expect("no panic");
        Ok(kernel.turn(self.core, now, batch))
    }

    fn fault(&mut self, _now: Time, line: Virtual, batch: &mut Batch) {
        let mut kernel = self.kernel.lock().expect("no panic");
        kernel.fault(self.core, line, batch);
    }

    fn watches_stores(&self) -> bool {
        self.watches
    }

    fn stored(&mut self, line: Virtual, from: u8, bytes: &[u8]) {
        let mut kernel = self.kernel.lock().expect("no panic");
        kernel.stored(self.core, line, from, bytes);
    }
}

/// The timed part.
pub(super) struct Run<'i> {
    pub(super) kernel: Arc<Mutex<Kernel<'i>>>,
    tables: Vec<Arc<Mapped>>,
    pages: Pages,
    passes: usize,
    keys: Keys,
    /// When counting begins and arrivals end.
    pub(super) window: (Time, Time),
}

impl<'i> Run<'i> {
    pub(super) fn new(plan: &Plan, images: &Images, settled: Settled<'i>, seed: u64) -> Run<'i> {
        let Plan {
            machine, settings, ..
        } = plan;
        let ms = |key| Time::from_ps(settings.get(key) * 1_000_000_000);
        let from = ms(&keys::WARMUP_MS);
        let window = (from, from + ms(&keys::WINDOW_MS));
        let mut copies = vec![0u32; images.contents()];
        for page in 0..images.pages() as Page {
            if let Some(content) = images.last(page) {
                copies[content as usize] += 1;
            }
        }
        let machines = images.machines.iter();
        let firsts: Vec<Page> = machines.map(|machine| machine.space.first).collect();
        let vms = images.machines.iter().zip(0..).map(|(machine, number)| {
            let alone = |page: &u32| {
                let content = images.last(machine.space.first + page);
                content.is_some_and(|content| copies[content as usize] == 1)
            };
            let here = (0..machine.space.pages() as u32)
                .filter(|page| images.last(machine.space.first + page).is_some());
            let seed = seed.wrapping_mul(1_000_003).wrapping_add(number);
            let pages = used(&plan.demand, here.partition(alone), seed);
            Queries::new(plan.demand, pages, seed, window.1)
        });
        let vms = vms.collect();
        let spaces = images.machines.iter();
        let tables: Vec<Arc<Mapped>> = spaces
            .map(|machine| {
                let frames = u64::from(machine.space.first)..u64::from(machine.space.end);
                Arc::new(Mapped::new(frames))
            })
            .collect();
        let capacity = machine.engine.medium.geometry.lines() / PAGE_LINES;
        let kernel = Kernel::new(Parts {
            costs: Costs::of(machine, settings),
            tick: Time::from_ps(settings.get(&keys::TICK_NS) * 1_000),
            window,
            tables: tables.clone(),
            firsts,
            vms,
            merging: settled.merging,
            pages: images.pages() as Page,
            cursor: settled.cursor,
            kernel: capacity / 2,
            seed,
        });
        Run {
            kernel: Arc::new(Mutex::new(kernel)),
            tables,
            pages: settled.pages,
            passes: settled.passes,
            keys: settled.keys,
            window,
        }
    }

    /// Plays it.
    pub(super) fn play(
        &self,
        plan: &Plan,
        images: &Arc<Images>,
        merges: &str,
        tell: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(System<'i>, Vec<Sample>), RunError> {
        let Plan {
            machine, settings, ..
        } = plan;
        let clock = Arc::new(AtomicU64::new(0));
        let cores = self.kernel.lock().expect("no panic").cores.len();
        let mut agents: Vec<Box<dyn Agent + 'i>> = Vec::new();
        let mut spaces = Vec::new();
        for core in 0..cores {
            let source = CoreSource {
                core,
                name: format!("{} {core}", plan.application.name),
                kernel: self.kernel.clone(),
                watches: merges != "none" || cfg!(test),
                clock: clock.clone(),
            };
            agents.push(Box::new(Player::new(core, machine, Box::new(source))?));
            let table = self.tables.get(core).cloned();
            spaces.push(AddressSpace::Mapped(
                table.unwrap_or_else(|| Arc::new(Mapped::new(0..0))),
            ));
        }
        if merges == "pageforge" {
            for number in 0..settings.get(&keys::MODULES) {
                let kernel = self.kernel.clone();
                let agent = agents.len();
                agents.push(Box::new(Module::new(
                    agent, number, machine, settings, kernel,
                )));
                spaces.push(AddressSpace::Identity { pages: 0 });
            }
        }
        let samples = Arc::new(Mutex::new(Vec::new()));
        let every = Time::from_ps(settings.get(&keys::SAMPLE_US) * 1_000_000);
        agents.push(Box::new(Sampler::new(
            every,
            self.kernel.clone(),
            samples.clone(),
        )));
        spaces.push(AddressSpace::Identity { pages: 0 });
        let memory = Memory::new(machine, "no-encryption")?;
        let system = System::new(machine, memory, agents, spaces, Warmup::Requests(0))?;
        let mut system = system.over(Box::new(Initial::new(images)));
        system.run(&mut |_| tell(clock.load(Ordering::Relaxed)))?;
        let samples = samples.lock().expect("no panic").clone();
        Ok((system, samples))
    }

    pub(super) fn answer(
        &self,
        question: &Question,
        plan: &Plan,
        images: &Arc<Images>,
        tell: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Value, TimedError> {
        let (_, samples) = self.play(plan, images, &question.design, tell)?;
        let kernel = self.kernel.lock().expect("no panic");
        let mut metrics = Map::new();
        let mut put = |name: &str, value: Value| {
            metrics.insert(name.to_owned(), value);
        };
        self.sojourns(&kernel, &mut put);
        self.thread(&kernel, &mut put);
        let in_window = |sample: &&Sample| (self.window.0..=self.window.1).contains(&sample.at);
        let counted: Vec<Sample> = samples.iter().filter(in_window).copied().collect();
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
        put("factor", json!(plan.factor));
        put(
            "queries_per_second",
            json!(plan.demand.queries_per_second / plan.factor),
        );
        Ok(json!({
            "application": plan.application.name,
            "design": question.design,
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
    fn sojourns(&self, kernel: &Kernel, put: &mut impl FnMut(&str, Value)) {
        let counts = |done: &&Done| done.arrival >= self.window.0;
        let of_vm = |queries: &Queries| -> Vec<Done> {
            queries.done.iter().filter(counts).copied().collect()
        };
        let each: Vec<Vec<Done>> = kernel.vms.iter().map(of_vm).collect();
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
    fn thread(&self, kernel: &Kernel, put: &mut impl FnMut(&str, Value)) {
        let vms = kernel.vms.len();
        let total = |core: &kernel::Core| -> Time { core.time.iter().copied().sum() };
        let of = |core: &kernel::Core, part: Part| core.time[part as usize];
        let merges = |core: &kernel::Core| {
            let parts = [Part::Compare, Part::Hash, Part::Other];
            parts.into_iter().map(|part| of(core, part)).sum::<Time>()
        };
        let cores = &kernel.cores[..vms];
        let all: Time = cores.iter().map(total).sum();
        let busy: Time = cores.iter().map(|core| of(core, Part::Query)).sum();
        put("utilisation", share(busy.ns(), all.ns()));
        if kernel.merging.is_none() {
            return;
        }
        let thread: Time = kernel.cores.iter().map(merges).sum();
        put(
            "thread_share_mean",
            share(cores.iter().map(merges).sum::<Time>().ns(), all.ns()),
        );
        let shares = cores
            .iter()
            .map(|core| merges(core).ns() / total(core).ns().max(1.0));
        put("thread_share_most", json!(shares.fold(0.0, f64::max)));
        let mut parts = [Time::ZERO; PARTS];
        for core in &kernel.cores {
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
        let figures = &kernel.figures;
        let cycles = |time: Time| time.ps() as f64 / kernel.cycle().ps() as f64;
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
        put("thread_moves", json!(kernel.moves()));
        put("intervals", json!(figures.intervals.len()));
        let sum: Time = figures.intervals.iter().copied().sum();
        put(
            "mean_interval_ns",
            share(sum.ns(), figures.intervals.len() as f64),
        );
        put("pages_scanned", json!(figures.pages));
        put("pages_merged", json!(figures.merges));
        put("pages_copied", json!(figures.copies));
        put("comparisons", json!(figures.comparisons[0]));
        put(
            "lines_a_comparison",
            share(figures.comparisons[1] as f64, figures.comparisons[0] as f64),
        );
        if !figures.tables.is_empty() {
            let cycles: Vec<f64> = figures
                .tables
                .iter()
                .map(|time| time.ns() * 1_000.0 / kernel.cycle().ps() as f64)
                .collect();
            let mean = cycles.iter().sum::<f64>() / cycles.len() as f64;
            let variance =
                cycles.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / cycles.len() as f64;
            put("scan_tables", json!(cycles.len()));
            put("scan_table_cycles", json!(mean));
            put("scan_table_cycles_deviation", json!(variance.sqrt()));
            put("check_period_cycles", json!(kernel.poll_cycles()));
        }
    }
}

/// The pages that an application uses, drawn from those that stand once and the others.
fn used(demand: &Demand, (own, shared): (Vec<u32>, Vec<u32>), seed: u64) -> queries::Pages {
    let mut draw = Draw::new(seed, 5);
    let mut pools = [own, shared];
    for pool in &mut pools {
        for at in (1..pool.len()).rev() {
            pool.swap(at, draw.below(at as u64 + 1) as usize);
        }
    }
    let mut take = |kib: u64| {
        let pages = kib / 4;
        let other = pages * demand.mergeable_percent / 100;
        let mut taken = [(0, pages - other), (1, other)].map(|(pool, count): (usize, u64)| {
            let pool = &mut pools[pool];
            pool.split_off(pool.len().saturating_sub(count as usize))
        });
        if taken.iter().all(Vec::is_empty) {
            // There is little of what was asked for; one page of the other kind will do.
            taken[0].extend(pools[0].pop());
            taken[1].extend(pools[1].pop());
        }
        taken
    };
    let hot = take(demand.hot_kib);
    let cold = take(demand.cold_kib);
    queries::Pages {
        cold: if cold.iter().all(Vec::is_empty) {
            hot.clone()
        } else {
            cold
        },
        hot,
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
