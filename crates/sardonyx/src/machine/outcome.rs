//! A run's figures, by the names that results use. Units are in the names; what does not apply is
//! null. `write_reduction` is the share of the program's writes that stored no line.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::port::Port;
use super::system::Before;
use super::{CoreFigures, Counts};
use crate::config::Machine;
use crate::controller::designs::Stack;
use crate::latency::Latencies;
use crate::stats::{Cause, Kind, Ledger, Purpose};
use crate::units::Time;

/// Points of a latency distribution.
const CDF_POINTS: usize = 200;
const SECONDS_A_YEAR: f64 = 365.25 * 24.0 * 3600.0;

/// What one run has brought.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Figures by name.
    pub metrics: Map<String, Value>,
    /// Costs by cause.
    pub causes: Map<String, Value>,
    /// Points of the distribution of write latencies: nanoseconds, share of writes.
    pub write_latency_cdf: Vec<(f64, f64)>,
    /// Points of the distribution of read latencies: nanoseconds, share of reads.
    pub read_latency_cdf: Vec<(f64, f64)>,
    /// The cores' caches were simulated.
    pub from_the_core: bool,
    /// Pages took frames when they were first touched.
    pub takes_frames: bool,
}

/// A run that is over.
pub(super) struct Finished<'s> {
    pub machine: &'s Machine,
    pub port: &'s Port,
    /// What each core has done in all.
    pub figures: Vec<CoreFigures>,
    /// What had happened when counting began.
    pub before: &'s Before,
}

impl Finished<'_> {
    /// When the last core had retired everything.
    fn retired(&self) -> Time {
        let retired = self.figures.iter().map(|core| core.retired).max();
        retired.unwrap_or(Time::ZERO)
    }

    /// Instructions of all cores since counting began, 0 for those that nobody knows of.
    fn instructions(&self) -> u64 {
        let sum = |cores: &[CoreFigures]| -> u64 {
            cores.iter().filter_map(|core| core.instructions).sum()
        };
        sum(&self.figures).saturating_sub(sum(&self.before.figures))
    }

    fn executes(&self) -> bool {
        self.figures.iter().all(|core| core.executed.is_some())
    }
}

pub(super) fn of(sim: &Finished, took: Duration) -> Outcome {
    Outcome {
        metrics: metrics(sim, took),
        causes: causes(sim.port.memory.ledger()),
        write_latency_cdf: sim.port.writes.cdf(CDF_POINTS),
        read_latency_cdf: sim.port.reads.cdf(CDF_POINTS),
        from_the_core: sim.executes(),
        takes_frames: sim.port.pages.takes_frames(),
    }
}

fn metrics(sim: &Finished, took: Duration) -> Map<String, Value> {
    let mut m = Map::new();
    let (port, memory) = (sim.port, &sim.port.memory);
    let (reads, writes) = (port.reads.count(), port.writes.count());
    let ledger = memory.ledger();
    let total = ledger.grand_total();
    let simulated = port.last_answer.since(sim.before.time);
    let figures = memory.figures();
    let duplicates = figures.iter().find(|f| f.0 == "duplicate_writes");
    let duplicates = duplicates.map_or(0.0, |f| f.1);
    let mut put = |name: &str, value: Value| {
        m.insert(name.to_owned(), value);
    };
    put("requests", json!(reads + writes));
    put("reads", json!(reads));
    put("writes", json!(writes));
    put("medium_reads", json!(total.medium_reads));
    put("medium_writes", json!(total.medium_writes));
    let data = ledger.total(Cause::Data);
    put("data_writes", json!(data.medium_writes));
    put("duplicate_writes", json!(duplicates));
    put("write_reduction", share(duplicates, writes as f64));
    let kept = share(total.medium_writes as f64, writes as f64);
    let reduction = kept.as_f64().map(|kept| 1.0 - kept);
    put("medium_write_reduction", json!(reduction));
    latencies(&mut put, "write", &port.writes);
    latencies(&mut put, "read", &port.reads);
    put("simulated_ns", json!(simulated.ns()));
    put("instructions", json!(sim.instructions()));
    put("ipc", ipc(sim));
    put("energy_nj", json!(total.energy.nj()));
    for (kind, name) in [(Kind::Read, "read"), (Kind::Write, "write")] {
        let service = memory.service(kind);
        let count = service.accesses as f64;
        let mut put = |what: &str, value| put(&format!("medium_{name}_{what}"), value);
        put("queue_ns", share(service.queued.ns(), count));
        put("total_ns", share(service.total.ns(), count));
        put("short_cuts", json!(service.short_cuts));
    }
    let service = [Kind::Read, Kind::Write].map(|kind| memory.service(kind));
    let hits = service[0].row_hits + service[1].row_hits;
    let accesses = service[0].accesses + service[1].accesses;
    put("row_hit_rate", share(hits as f64, accesses as f64));
    let wear = memory.image().wear();
    put("max_line_writes", json!(wear.max_line_writes));
    put("bits_flipped", json!(wear.bits_flipped));
    put("medium_write_bytes", json!(wear.bytes));
    let [ideal, none] = lifetimes(sim.machine, simulated, wear.writes, wear.max_line_writes);
    put("lifetime_ideal_years", ideal);
    put("lifetime_none_years", none);
    put("footprint_pages", json!(port.pages.pages()));
    let speed = port.admitted as f64 / took.as_secs_f64();
    put("requests_per_second", json!(speed));
    for (name, value) in figures {
        put(name, json!(value));
    }
    if sim.executes() {
        executed(sim, &mut put);
    } else {
        let skipped: u64 = sim.figures.iter().map(|core| core.skipped).sum();
        put("skipped_fences_and_flushes", json!(skipped));
    }
    m
}

/// What is known of a run from the cores down only.
fn executed(sim: &Finished, put: &mut impl FnMut(&str, Value)) {
    let took = sim.retired().since(sim.before.time);
    let committed = sim.port.committed.iter().sum::<u64>() - sim.before.committed;
    let sum = |of: fn(&Counts) -> u64| {
        let sum = |cores: &[CoreFigures]| -> u64 {
            let executed = cores.iter().filter_map(|core| core.executed.as_ref());
            executed.map(of).sum()
        };
        sum(&sim.figures) - sum(&sim.before.figures)
    };
    let mean_ns = |ps: u64| json!(Time::from_ps(ps / sim.figures.len() as u64).ns());
    let per_second = match committed {
        0 => Value::Null,
        _ => share(committed as f64, took.ns() * 1e-9),
    };
    let (misses, accesses) = (sum(|c| c.misses) as f64, sum(|c| c.accesses) as f64);
    put("runtime_ns", json!(took.ns()));
    put("transactions", json!(committed));
    put("transactions_per_second", per_second);
    put("memory_operations", json!(sum(|c| c.operations)));
    put("cpu_cache_miss_rate", share(misses, accesses));
    let latency = Time::from_ps(sum(|c| c.access_latency.ps())).ns();
    put(
        "mean_l1_latency_ns",
        share(latency, sum(|c| c.timed) as f64),
    );
    put("fences", json!(sim.port.fences));
    put("core_fence_wait_ns", mean_ns(sum(|c| c.fence_wait.ps())));
    put("core_load_wait_ns", mean_ns(sum(|c| c.load_wait.ps())));
    put("core_memory_wait_ns", mean_ns(sum(|c| c.memory_wait.ps())));
}

fn share(part: f64, whole: f64) -> Value {
    if whole > 0.0 {
        json!(part / whole)
    } else {
        Value::Null
    }
}

fn latencies(put: &mut impl FnMut(&str, Value), name: &str, all: &Latencies) {
    let ns = |time: Option<Time>| json!(time.map(Time::ns));
    put(&format!("mean_{name}_latency_ns"), json!(all.mean_ns()));
    put(&format!("p50_{name}_latency_ns"), ns(all.p50()));
    put(&format!("p95_{name}_latency_ns"), ns(all.p95()));
    put(&format!("p99_{name}_latency_ns"), ns(all.p99()));
    put(&format!("p999_{name}_latency_ns"), ns(all.p999()));
    put(&format!("max_{name}_latency_ns"), ns(all.max()));
}

/// Instructions a core cycle, the mean of the cores; null for a trace that counts cycles.
fn ipc(sim: &Finished) -> Value {
    let took = sim.retired().since(sim.before.time);
    let cycles = took.ps() as f64 / sim.machine.core.clock.ps() as f64;
    if sim.figures.iter().any(|core| core.instructions.is_none()) {
        return Value::Null;
    }
    share(sim.instructions() as f64 / sim.figures.len() as f64, cycles)
}

/// Years until cells wear out at this rate: with every line worn alike, and with none moved.
fn lifetimes(machine: &Machine, took: Time, writes: u64, max_line_writes: u32) -> [Value; 2] {
    let years = took.ns() * 1e-9 / SECONDS_A_YEAR;
    let endurance = machine.engine.medium.endurance as f64;
    let lines = machine.engine.medium.geometry.lines() as f64;
    [
        share(years * endurance * lines, writes as f64),
        share(years * endurance, f64::from(max_line_writes)),
    ]
}

fn causes(ledger: &Ledger) -> Map<String, Value> {
    let mut causes = Map::new();
    for cause in Cause::ALL {
        let a = ledger.total(cause);
        if a == Default::default() {
            continue;
        }
        let mut whom = Map::new();
        for served in Cause::ALL {
            let purpose = Purpose {
                what: cause,
                whom: served,
            };
            let part = ledger.get(purpose);
            let latency = part.read_latency + part.write_latency;
            if latency > Time::ZERO && served != cause {
                whom.insert(served.name().to_owned(), json!(latency.ns()));
            }
        }
        causes.insert(
            cause.name().to_owned(),
            json!({
                "latency_ns": (a.read_latency + a.write_latency).ns(),
                "write_latency_ns": a.write_latency.ns(),
                "read_latency_ns": a.read_latency.ns(),
                "wait_ns": a.wait.ns(),
                "energy_nj": a.energy.nj(),
                "medium_reads": a.medium_reads,
                "medium_writes": a.medium_writes,
                "unit_uses": a.unit_uses,
                "latency_ns_for": whom,
            }),
        );
    }
    causes
}

/// The assumed parameters on which this outcome of `design` depends.
pub fn assumed<'m>(machine: &'m Machine, design: &str, outcome: &Outcome) -> Vec<&'m str> {
    let stack = Stack::named(design).ok();
    let matters = |key: &str| {
        let of = |prefix: &str| key.starts_with(prefix);
        match outcome.from_the_core {
            cored if of("pages.programs_") => cored && !outcome.takes_frames,
            _ if of("pages.") && !outcome.takes_frames => false,
            true if of("core.cache_latency_ns") => false,
            false if of("caches.") || of("core.store_queue") => false,
            _ => stack.is_none_or(|stack| stack.uses(key)),
        }
    };
    let keys = machine.assumed.iter().map(|a| a.parameter.as_str());
    keys.filter(|key| matters(key)).collect()
}
