//! The window: the cores, and the merging beside them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::TimedPlan;
use super::applications::Demand;
use super::frames::Frames;
use super::host::Host;
use super::initial_memory::{self, Initial, Loaded};
use super::module::{Module, Sample, Sampler};
use super::queries::{self, Queries, QueryDraw};
use super::scan::Scan;
use super::settings as keys;
use super::thread::Costs;
use super::warm_up::Settled;
use crate::Page;
use crate::images::Images;
use crate::ksm::Keys;
use crate::run::PageCounts;
use sardonyx::line::Virtual;
use sardonyx::machine::{
    AddressSpace, Agent, Batch, Mapped, OpSource, Outcome, PAGE_LINES, Player, RunError, System,
    Warmup,
};
use sardonyx::units::Time;

struct CoreSource<'i> {
    core: usize,
    name: String,
    host: Arc<Mutex<Host<'i>>>,
    watches: bool,
    clock: Arc<AtomicU64>,
}

impl OpSource for CoreSource<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn refill(&mut self, now: Time, batch: &mut Batch) -> Result<bool, RunError> {
        self.clock.store(now.ps() / 1_000, Ordering::Relaxed);
        let mut host = self.host.lock().expect("no panic");
        Ok(host.turn(self.core, now, batch))
    }

    fn fault(&mut self, _now: Time, line: Virtual, batch: &mut Batch) {
        let mut host = self.host.lock().expect("no panic");
        host.fault(self.core, line, batch);
    }

    fn watches_stores(&self) -> bool {
        self.watches
    }

    fn stored(&mut self, line: Virtual, from: u8, bytes: &[u8]) {
        let mut host = self.host.lock().expect("no panic");
        host.stored(self.core, line, from, bytes);
    }
}

type Agents<'i> = Vec<Box<dyn Agent + 'i>>;

pub(super) struct TimedRun<'i> {
    pub(super) host: Arc<Mutex<Host<'i>>>,
    pub(super) pages: PageCounts,
    pub(super) passes: usize,
    pub(super) keys: Keys,
    pub(super) window: (Time, Time),
}

impl<'i> TimedRun<'i> {
    pub(super) fn new(
        plan: &TimedPlan,
        images: &Images,
        settled: Settled<'i>,
        seed: u64,
    ) -> TimedRun<'i> {
        let TimedPlan {
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
        let capacity = machine.engine.medium.geometry.lines() / PAGE_LINES;
        let mut frames = Frames::new(images, capacity / 2);
        let cursor = settled.cursor;
        let merging = settled.merging;
        let scan = merging.map(|merging| Scan::new(merging, cursor, &mut frames));
        let merges = plan.algorithm.merges.as_ref();
        let modules = merges.and_then(|merges| (merges.modules)(machine, settings));
        let costs = Costs::from_settings(machine, settings);
        let host = Host::new(costs, window, vms, frames, scan, modules, seed);
        TimedRun {
            host: Arc::new(Mutex::new(host)),
            pages: settled.pages,
            passes: settled.passes,
            keys: settled.keys,
            window,
        }
    }

    /// The cores, the modules, and the sampler, each with its address space.
    fn agents(
        &self,
        plan: &TimedPlan,
        clock: &Arc<AtomicU64>,
        samples: &Arc<Mutex<Vec<Sample>>>,
    ) -> Result<(Agents<'i>, Vec<AddressSpace>), RunError> {
        let machine = &plan.machine;
        let host = self.host.lock().expect("no panic");
        let (cores, tables) = (host.cores.len(), host.frames.tables().to_vec());
        let modules = host.jobs.as_ref().map(|jobs| jobs.costs.clone());
        let watches = host.scan.is_some() || cfg!(test);
        drop(host); // a player asks its source at once
        let mut agents: Agents = Vec::new();
        let mut spaces = Vec::new();
        for core in 0..cores {
            let source = CoreSource {
                core,
                name: format!("{} {core}", plan.application.name),
                host: self.host.clone(),
                watches,
                clock: clock.clone(),
            };
            agents.push(Box::new(Player::new(core, machine, Box::new(source))?));
            let table = tables.get(core).cloned();
            spaces.push(AddressSpace::Mapped(
                table.unwrap_or_else(|| Arc::new(Mapped::new(0..0))),
            ));
        }
        if let Some(costs) = modules {
            for number in 0..costs.count {
                let (agent, host) = (agents.len(), self.host.clone());
                let module = Module::new(agent, number, machine, &costs, host);
                agents.push(Box::new(module));
                spaces.push(AddressSpace::Identity { pages: 0 });
            }
        }
        let every = Time::from_ps(plan.settings.get(&keys::SAMPLE_US) * 1_000_000);
        let sampler = Sampler::new(every, self.host.clone(), samples.clone());
        agents.push(Box::new(sampler));
        spaces.push(AddressSpace::Identity { pages: 0 });
        Ok((agents, spaces))
    }

    pub(super) fn play(
        &self,
        plan: &TimedPlan,
        images: &Arc<Images>,
        tell: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Played<'i>, RunError> {
        let (clock, samples) = (Arc::default(), Arc::default());
        let (agents, spaces) = self.agents(plan, &clock, &samples)?;
        let (machine, pages) = (&plan.machine, Initial::new(images));
        let (memory, loaded) =
            initial_memory::memory(&plan.memory, machine, &pages, &mut || tell(0))?;
        let system = System::new(machine, memory, agents, spaces, Warmup::Requests(0))?;
        let mut system = system.over(Box::new(pages));
        let outcome = system.run(&mut |_| tell(clock.load(Ordering::Relaxed)))?;
        let samples = samples.lock().expect("no panic").clone();
        Ok(Played {
            system,
            outcome,
            samples,
            loaded,
        })
    }
}

pub(super) struct Played<'i> {
    pub(super) system: System<'i>,
    pub(super) outcome: Outcome,
    pub(super) samples: Vec<Sample>,
    pub(super) loaded: Option<Loaded>,
}

/// Draws the pages that an application uses, from those that occur once and from the others.
fn used(demand: &Demand, (own, shared): (Vec<u32>, Vec<u32>), seed: u64) -> queries::QueryPages {
    let mut draw = QueryDraw::new(seed, 5);
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
            // There are few pages of the wanted kind; one of the other kind will do.
            taken[0].extend(pools[0].pop());
            taken[1].extend(pools[1].pop());
        }
        taken
    };
    let hot = take(demand.hot_kib);
    let cold = take(demand.cold_kib);
    queries::QueryPages {
        cold: if cold.iter().all(Vec::is_empty) {
            hot.clone()
        } else {
            cold
        },
        hot,
    }
}
