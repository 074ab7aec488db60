//! A run's figures. What does not apply is absent.

use std::time::Duration;

use super::drain;
use super::energies::{self, Done, Parts};
use super::epochs::{EpochCounts, Series};
use super::near_figures;
use super::port::Port;
use super::system::Before;
use super::usage::Usage;
use super::{CoreFigures, Counts};
use crate::config::Machine;
use crate::controller::designs::Stack;
use crate::controller::mapping::figures::DUPLICATE_WRITES;
use crate::engine::Service;
use crate::figures::{Amount, Figure, Figures, Quantity};
use crate::latency::Latencies;
use crate::line::Tier;
use crate::medium::params::{ADDRESSES, MediumParams};
use crate::memory::{Checked, Memory};
use crate::stats::{Cause, Direction, Ledger};
use crate::units::Time;

const CDF_POINTS: usize = 200;
const LINE_BITS: u64 = 512;
const SECONDS_A_YEAR: f64 = 365.25 * 24.0 * 3600.0;

/// Figures of requests and traffic.
pub mod traffic {
    crate::figures::figures! { "Requests and traffic";
        REQUESTS: Count Neither "requests", "reads and writes of the program that reached the controller";
        READS: Count Neither "reads", "reads of the program";
        WRITES: Count Neither "writes", "writes of the program";
        WRITE_REDUCTION: Ratio More "write_reduction", "`duplicate_writes` / `writes`";
        DATA_WRITES: Count Less "data_writes",
            "lines of the program written to the medium, after writes to one place that meet in the queue have become one";
        MEDIUM_READS: Count Less "medium_reads", "all reads of the (persistent) medium: data, counters, mappings and other tables";
        MEDIUM_WRITES: Count Less "medium_writes", "all writes to the medium, likewise";
        MEDIUM_WRITE_REDUCTION: Ratio More "medium_write_reduction",
            "1 - `medium_writes` / `writes`; negative where counters and tables add more than deduplication saves";
        READS_VERIFIED: Count Neither "reads_verified",
            "reads, those of the warm-up too, that returned what was written last to their line; another byte is an error; none with `--no-verify`";
        READS_OF_UNWRITTEN: Count Neither "reads_of_unwritten_lines",
            "reads, likewise, of lines that the program or trace had never written, and whose content nobody knows; with \
             `memory.past=empty` they are not decrypted";
        READS_OF_PRELOADED: Count Neither "reads_of_preloaded_lines",
            "of `reads_verified`, reads of lines that the trace had never written and whose content from before it knows; \
             left out where there are none";
        FOOTPRINT_PAGES: Count Neither "footprint_pages", "pages of memory that the program touched";
        SKIPPED: Count Neither "skipped_fences_and_flushes",
            "fences and flushes of a trace, which have no effect there";
    }
}

/// Figures of latencies.
pub mod latency {
    crate::figures::figures! { "Latency";
        MEAN_WRITE: Nanoseconds Less "mean_write_latency_ns", "of the program's writes: mean latency";
        P50_WRITE: Nanoseconds Less "p50_write_latency_ns",
            "of the program's writes: median latency: half are at least as fast";
        P95_WRITE: Nanoseconds Less "p95_write_latency_ns", "of the program's writes: 95 of 100 are at least as fast";
        P99_WRITE: Nanoseconds Less "p99_write_latency_ns", "of the program's writes: 99 of 100 are at least as fast";
        P999_WRITE: Nanoseconds Less "p999_write_latency_ns",
            "of the program's writes: 999 of 1000 are at least as fast";
        MAX_WRITE: Nanoseconds Less "max_write_latency_ns", "of the program's writes: the slowest";
        MEAN_READ: Nanoseconds Less "mean_read_latency_ns", "of the program's reads: mean latency";
        P50_READ: Nanoseconds Less "p50_read_latency_ns",
            "of the program's reads: median latency: half are at least as fast";
        P95_READ: Nanoseconds Less "p95_read_latency_ns", "of the program's reads: 95 of 100 are at least as fast";
        P99_READ: Nanoseconds Less "p99_read_latency_ns", "of the program's reads: 99 of 100 are at least as fast";
        P999_READ: Nanoseconds Less "p999_read_latency_ns", "of the program's reads: 999 of 1000 are at least as fast";
        MAX_READ: Nanoseconds Less "max_read_latency_ns", "of the program's reads: the slowest";
    }
}

/// Figures of time, energy and the core.
pub mod time {
    crate::figures::figures! { "Time, energy and the core";
        SIMULATED: Nanoseconds Less "simulated_ns", "simulated time from the begin of counting to the last answer";
        INSTRUCTIONS: Count Neither "instructions",
            "instructions of all cores; 0 where the trace does not count them";
        IPC: Ratio More "ipc",
            "instructions per cycle, the mean of the cores; none where the trace counts cycles";
        BANDWIDTH: GigabytesPerSecond More "medium_gb_per_s",
            "bytes of all lines that the medium has read and written, by `simulated_ns`";
        ENERGY: Nanojoules Less "energy_nj",
            "energy of the medium and of the controller's units; refresh and standby where they are known";
        POWER: Milliwatts Less "power_mw", "the same by `simulated_ns`";
        READING: Nanojoules Less "energy_read_nj", "of that, reading lines of open rows";
        WRITING: Nanojoules Less "energy_write_nj", "of that, writing lines of open rows";
        OPENING: Nanojoules Less "energy_activation_nj", "of that, opening rows";
        REFRESHING: Nanojoules Less "energy_refresh_nj", "of that, refresh";
        STANDING: Nanojoules Less "energy_standby_nj", "of that, ranks that stand by";
        UNITS: Nanojoules Less "energy_units_nj", "of that, the controller's units";
        HOST_SPEED: PerSecond More "requests_per_second",
            "the simulator's own speed, in requests per second of real time";
    }
}

mod medium {
    crate::figures::figures! { "The medium";
        READ_QUEUE: Nanoseconds Less "medium_read_queue_ns", "mean wait of the medium's reads in the queue";
        READ_TOTAL: Nanoseconds Less "medium_read_total_ns", "mean time of the medium's reads, queue included";
        READ_SHORT_CUTS: Count More "medium_read_short_cuts", "reads that a queued write answered";
        WRITE_QUEUE: Nanoseconds Less "medium_write_queue_ns", "mean wait of the medium's writes in the queue";
        WRITE_TOTAL: Nanoseconds Less "medium_write_total_ns", "mean time of the medium's writes, queue included";
        WRITE_SHORT_CUTS: Count More "medium_write_short_cuts", "writes that were merged with a queued one";
        ROW_HIT_RATE: Ratio More "row_hit_rate", "share of the medium's accesses that found their row open";
        BLOCK_READS: Count Less "block_reads", "blocks that the cells behind a module's buffer have read";
        BLOCK_WRITES: Count Less "block_writes", "blocks that they have written, whole or in part";
        WRITE_AMPLIFICATION: Ratio Less "write_amplification",
            "bytes of `block_writes` over the bytes of the lines that the buffer took to be written";
        CELLS_SET: Count Less "cells_set", "`medium.cells`: SETs of cells; one for each cell of one bit that a write has set to 1";
        CELLS_RESET: Count Less "cells_reset", "`medium.cells`: RESETs of cells; one for each cell of one bit that a write has reset to 0";
        LIFETIME_CELLS: Years More "lifetime_cells_years",
            "`medium.cells`: years until cells wear out, all cells programmed alike";
        WRITES_PAUSED: Count Neither "writes_paused", "`medium.pausing`: array writes that have paused for a read, each time counted";
        WRITES_CANCELLED: Count Less "writes_cancelled",
            "`medium.pausing`: array writes that were cancelled for a read and begun anew, each time counted";
        WRITE_BYTES: Bytes Less "medium_write_bytes", "bytes written to the cells";
        BITS_FLIPPED: Count Less "bits_flipped", "bits that writes have changed";
        MAX_LINE_WRITES: Count Less "max_line_writes", "writes of the line that was written most";
        LIFETIME_IDEAL: Years More "lifetime_ideal_years",
            "years until cells wear out at this rate, all lines worn alike";
        LIFETIME_NONE: Years More "lifetime_none_years", "the same of the line that was written most, never moved";
        LIFETIME_LEVELLED: Years More "lifetime_levelled_years",
            "`medium.levelling`: the same with lines that move as they do, by the writes of each line until now";
        LEVELLING_MOVES: Count Less "levelling_moves", "`medium.levelling`: lines moved so that all wear alike";
    }
}

mod programs {
    crate::figures::figures! { "Programs on cores and caches";
        RUNTIME: Nanoseconds Less "runtime_ns", "time until the last core has retired everything";
        TRANSACTIONS: Count Neither "transactions", "transactions committed, all cores together";
        TRANSACTION_RATE: PerSecond More "transactions_per_second", "the same per second of simulated time";
        OPERATIONS: Count Neither "memory_operations", "loads, stores, flushes, counter write-backs and fences";
        MISS_RATE: Ratio Less "cpu_cache_miss_rate", "share of accesses that missed the processor's caches";
        L1_LATENCY: Nanoseconds Less "mean_l1_latency_ns",
            "mean time of loads and stores until their line is in L1, waiting for memory that took no request included; without stores to a line that is on its way";
        FENCES: Count Neither "fences", "fences that the controller has seen";
        FENCE_WAIT: Nanoseconds Less "core_fence_wait_ns", "time that a core waited at fences, the mean of the cores";
        LOAD_WAIT: Nanoseconds Less "core_load_wait_ns", "time that a core waited for loads, the mean of the cores";
        MEMORY_WAIT: Nanoseconds Less "core_memory_wait_ns",
            "time that a core waited for a memory that took no request, the mean of the cores";
        WEIGHTED_SPEEDUP: Ratio More "weighted_speedup",
            "of a mix: the sum over its programs of IPC in the mix by IPC alone";
        MAX_SLOWDOWN: Ratio Less "max_slowdown", "of a mix: IPC alone by IPC in the mix of the program that loses most";
        FAIRNESS: Ratio More "fairness", "of a mix: the least slowdown of a program by the greatest";
    }
}

/// The figures of every run, whatever its design.
pub static FIGURES: [&[&Figure]; 8] = [
    traffic::FIGURES,
    latency::FIGURES,
    time::FIGURES,
    medium::FIGURES,
    near_figures::FIGURES,
    crate::controller::near::FIGURES,
    programs::FIGURES,
    drain::FIGURES,
];

/// The simulator's own speed, the only figure that belongs to the host and not to the simulation.
pub use time::HOST_SPEED;

/// The result of one run. Equal runs give equal outcomes, however long they took.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The figures of what was simulated.
    pub figures: Figures,
    /// Requests that the simulator handled in a second of the host's time: [`HOST_SPEED`].
    pub host_speed: HostSpeed,
    /// Costs by cause.
    pub ledger: Ledger,
    /// Points of the distribution of write latencies: nanoseconds, share of writes.
    pub write_latency_cdf: Vec<(f64, f64)>,
    /// Points of the distribution of read latencies: nanoseconds, share of reads.
    pub read_latency_cdf: Vec<(f64, f64)>,
    /// Figures over time, and the use of units; `None` for a sample.
    pub over_time: Option<(Series, Usage)>,
    /// Instructions per cycle of each core over its own time; `None` for one whose trace counts cycles.
    pub core_ipc: Vec<Option<f64>>,
    /// Whether the cores' caches were simulated.
    pub from_the_core: bool,
    /// Whether pages took frames when they were first touched.
    pub takes_frames: bool,
}

/// Requests per second of real time. All values are equal, so that equal runs have equal outcomes.
#[derive(Clone, Copy, Debug)]
pub struct HostSpeed(pub f64);

impl PartialEq for HostSpeed {
    fn eq(&self, _: &HostSpeed) -> bool {
        true
    }
}

pub(super) struct Finished<'s> {
    pub machine: &'s Machine,
    pub port: &'s Port,
    pub figures: Vec<CoreFigures>,
    pub before: &'s Before,
}

impl Finished<'_> {
    fn retired(&self) -> Time {
        let retired = self.figures.iter().map(|core| core.retired).max();
        retired.unwrap_or(Time::ZERO)
    }

    /// Instructions of all cores since counting began; cores whose instructions nobody knows count 0.
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

pub(super) fn conclude(sim: &Finished, took: Duration) -> Outcome {
    Outcome {
        figures: figures(sim),
        host_speed: HostSpeed(sim.port.admitted as f64 / took.as_secs_f64()),
        ledger: sim.port.memory.ledger().clone(),
        write_latency_cdf: sim.port.writes.cdf(CDF_POINTS),
        read_latency_cdf: sim.port.reads.cdf(CDF_POINTS),
        over_time: over_time(sim),
        core_ipc: core_ipc(sim),
        from_the_core: sim.executes(),
        takes_frames: sim.port.pages.takes_frames(),
    }
}

fn over_time(sim: &Finished) -> Option<(Series, Usage)> {
    let (port, memory) = (sim.port, &sim.port.memory);
    let end = port.last_answer;
    let series = port
        .epochs
        .as_ref()?
        .series(end, &EpochCounts::from_memory(memory));
    let usage = Usage::measure(sim.machine, memory, end.since(sim.before.time));
    Some((series, usage))
}

pub(super) fn figures(sim: &Finished) -> Figures {
    let mut out = Figures::default();
    let (port, memory) = (sim.port, &sim.port.memory);
    let total = memory.ledger().grand_total();
    let simulated = port.last_answer.since(sim.before.time);
    let mut of_layers = memory.figures();
    if of_layers.of(&DUPLICATE_WRITES) == Amount::Absent {
        of_layers.put(&DUPLICATE_WRITES, 0.0); // nothing was deduplicated
    }
    counted(sim, of_layers.of(&DUPLICATE_WRITES), &mut out);
    for (figure, value) in latencies([&port.writes, &port.reads]) {
        out.put(figure, value);
    }
    out.put(&time::SIMULATED, simulated);
    out.put(&time::INSTRUCTIONS, sim.instructions());
    out.put(&time::IPC, ipc(sim));
    let moved = (total.medium_reads + total.medium_writes) * LINE_BITS / 8;
    let bandwidth = Amount::share(moved as f64, simulated.ns());
    out.put(&time::BANDWIDTH, bandwidth);
    let service = [Direction::Read, Direction::Write].map(|kind| memory.service(kind));
    let params = &sim.machine.engine.medium;
    let near = near_figures::put(sim, simulated, &mut out);
    let far = Done {
        medium: params,
        service,
        active: memory.active(Tier::Far, port.last_answer),
    };
    let parts = [Parts::of(&far, simulated), near];
    energies::put(&mut out, &parts, total.energy, simulated);
    served(&service, &mut out);
    through_buffer(memory, params, service[1].accesses, &mut out);
    wear(sim, simulated, &mut out);
    verified(&mut out, memory);
    out.put(&traffic::FOOTPRINT_PAGES, port.pages.pages());
    out.append(of_layers);
    if sim.executes() {
        executed(sim, &mut out);
    } else {
        let skipped = sim.figures.iter().map(|core| core.skipped);
        out.put(&traffic::SKIPPED, skipped.sum::<u64>());
    }
    out
}

fn counted(sim: &Finished, duplicates: Amount, out: &mut Figures) {
    let (reads, writes) = (sim.port.reads.count(), sim.port.writes.count());
    let ledger = sim.port.memory.ledger();
    let (total, data) = (ledger.grand_total(), ledger.total(Cause::Data));
    out.put(&traffic::REQUESTS, reads + writes);
    out.put(&traffic::READS, reads);
    out.put(&traffic::WRITES, writes);
    out.put(&traffic::MEDIUM_READS, total.medium_reads);
    out.put(&traffic::MEDIUM_WRITES, total.medium_writes);
    out.put(&traffic::DATA_WRITES, data.medium_writes);
    let [saved, spared] = reductions(duplicates, total.medium_writes.into(), writes);
    out.put(&traffic::WRITE_REDUCTION, saved);
    out.put(&traffic::MEDIUM_WRITE_REDUCTION, spared);
}

/// Adds how long the medium's reads and writes have taken, and how many found their row open.
fn served(service: &[Service; 2], out: &mut Figures) {
    use medium::{READ_QUEUE, READ_SHORT_CUTS, READ_TOTAL};
    use medium::{WRITE_QUEUE, WRITE_SHORT_CUTS, WRITE_TOTAL};

    let figures = [
        [&READ_QUEUE, &READ_TOTAL, &READ_SHORT_CUTS],
        [&WRITE_QUEUE, &WRITE_TOTAL, &WRITE_SHORT_CUTS],
    ];
    for (service, [queue, whole, short_cuts]) in service.iter().zip(figures) {
        let count = service.accesses as f64;
        out.put(queue, Amount::share(service.queued.ns(), count));
        out.put(whole, Amount::share(service.total.ns(), count));
        out.put(short_cuts, service.short_cuts);
    }
    let hits = service[0].row_hits + service[1].row_hits;
    let accesses = service[0].accesses + service[1].accesses;
    let rate = Amount::share(hits as f64, accesses as f64);
    out.put(&medium::ROW_HIT_RATE, rate);
}

fn through_buffer(memory: &Memory, params: &MediumParams, lines: u64, out: &mut Figures) {
    if let (Some(blocks), Some(buffer)) = (memory.blocks(), &params.buffer) {
        out.put(&medium::BLOCK_READS, blocks.reads);
        out.put(&medium::BLOCK_WRITES, blocks.writes);
        let written = (blocks.writes * buffer.lines) as f64;
        let amplification = Amount::share(written, lines as f64);
        out.put(&medium::WRITE_AMPLIFICATION, amplification);
    }
}

fn wear(sim: &Finished, simulated: Time, out: &mut Figures) {
    let (memory, params) = (&sim.port.memory, &sim.machine.engine.medium);
    let wear = memory.image().wear();
    let [ideal, none] = lifetimes(sim.machine, simulated, wear.writes, wear.max_line_writes);
    if let Some(programmed) = memory.programmed() {
        out.put(&medium::CELLS_SET, programmed.sets);
        out.put(&medium::CELLS_RESET, programmed.resets);
        let cells = params.cells.map_or(LINE_BITS, |cells| cells.cells());
        let worn = programmed.cells.max(1) as f64;
        let lines = |ideal: f64| ideal * (wear.writes * cells) as f64 / worn;
        out.put(&medium::LIFETIME_CELLS, ideal.number().map(lines));
    }
    if let Some(interruptions) = memory.interruptions() {
        out.put(&medium::WRITES_PAUSED, interruptions.paused);
        out.put(&medium::WRITES_CANCELLED, interruptions.cancelled);
    }
    out.put(&medium::MAX_LINE_WRITES, u64::from(wear.max_line_writes));
    out.put(&medium::BITS_FLIPPED, wear.bits_flipped);
    out.put(&medium::WRITE_BYTES, wear.bytes);
    out.put(&medium::LIFETIME_IDEAL, ideal);
    out.put(&medium::LIFETIME_NONE, none);
    if let Some(moves) = memory.moves() {
        out.put(&medium::LEVELLING_MOVES, moves);
        let years = simulated.ns() * 1e-9 / SECONDS_A_YEAR;
        let lasts = memory.lasts(params.endurance as f64);
        let [none, levelled] = lasts.map(|times| times.map(|times| times * years));
        out.put(&medium::LIFETIME_NONE, none);
        out.put(&medium::LIFETIME_LEVELLED, levelled);
    }
}

pub(super) fn verified(figures: &mut Figures, memory: &Memory) {
    let checked = memory.checked();
    figures.set(&traffic::READS_VERIFIED, checked.map(|c| c.verified));
    figures.set(&traffic::READS_OF_UNWRITTEN, checked.map(|c| c.unwritten));
    if let Some(Checked {
        preloaded: reads @ 1..,
        ..
    }) = checked
    {
        figures.set(&traffic::READS_OF_PRELOADED, reads);
    }
}

/// Adds the figures that only runs from the cores down have.
fn executed(sim: &Finished, out: &mut Figures) {
    let took = sim.retired().since(sim.before.time);
    let committed = sim.port.committed.iter().sum::<u64>() - sim.before.committed;
    let sum = |of: fn(&Counts) -> u64| {
        let sum = |cores: &[CoreFigures]| -> u64 {
            let executed = cores.iter().filter_map(|core| core.executed.as_ref());
            executed.map(of).sum()
        };
        sum(&sim.figures) - sum(&sim.before.figures)
    };
    let mean = |ps: u64| Time::from_ps(ps / sim.figures.len() as u64);
    let per_second = match committed {
        0 => Amount::Absent,
        _ => Amount::share(committed as f64, took.ns() * 1e-9),
    };
    let (misses, accesses) = (sum(|c| c.misses) as f64, sum(|c| c.accesses) as f64);
    out.put(&programs::RUNTIME, took);
    out.put(&programs::TRANSACTIONS, committed);
    out.put(&programs::TRANSACTION_RATE, per_second);
    out.put(&programs::OPERATIONS, sum(|c| c.operations));
    out.put(&programs::MISS_RATE, Amount::share(misses, accesses));
    let latency = Time::from_ps(sum(|c| c.access_latency.ps())).ns();
    out.put(
        &programs::L1_LATENCY,
        Amount::share(latency, sum(|c| c.timed) as f64),
    );
    out.put(&programs::FENCES, sim.port.fences);
    out.put(&programs::FENCE_WAIT, mean(sum(|c| c.fence_wait.ps())));
    out.put(&programs::LOAD_WAIT, mean(sum(|c| c.load_wait.ps())));
    out.put(&programs::MEMORY_WAIT, mean(sum(|c| c.memory_wait.ps())));
}

/// The share of `writes` that stored no line, and the share by which the medium's writes are fewer.
fn reductions(duplicates: Amount, medium_writes: Amount, writes: u64) -> [Amount; 2] {
    let share = |part: Amount| Amount::share(part.number().unwrap_or(0.0), writes as f64);
    let kept = share(medium_writes).number();
    [share(duplicates), kept.map(|kept| 1.0 - kept).into()]
}

/// The mean, the percentiles and the greatest latency of writes, then of reads.
fn latencies(kinds: [&Latencies; 2]) -> impl Iterator<Item = (&'static Figure, Amount)> {
    let values = kinds.into_iter().flat_map(|all| {
        let points = [all.p50(), all.p95(), all.p99(), all.p999(), all.max()];
        [Amount::from(all.mean_ns())]
            .into_iter()
            .chain(points.map(Amount::from))
    });
    latency::FIGURES.iter().copied().zip(values)
}

/// Whether a figure belongs to a whole run and is no mean of parts: the state that a line, or a page, has reached.
pub(super) fn is_of_a_whole_run(figure: &Figure) -> bool {
    let whole = [
        &medium::MAX_LINE_WRITES,
        &medium::LIFETIME_NONE,
        &medium::LIFETIME_LEVELLED,
        &traffic::FOOTPRINT_PAGES,
        &traffic::READS_VERIFIED,
        &traffic::READS_OF_UNWRITTEN,
    ];
    whole.iter().any(|known| known.name == figure.name)
}

/// The weight for a figure's values of several parts of a run, with which their mean is that of the whole.
pub(super) fn weight(figure: &Figure) -> Option<&'static Figure> {
    let by_writes = [&traffic::WRITE_REDUCTION, &traffic::MEDIUM_WRITE_REDUCTION];
    let is_of = |of: &[&Figure]| of.iter().any(|known| known.name == figure.name);
    match figure.unit {
        Quantity::PerSecond | Quantity::GigabytesPerSecond | Quantity::Milliwatts => {
            Some(&time::SIMULATED)
        }
        _ if is_of(&[&time::IPC]) => Some(&time::SIMULATED),
        _ if is_of(&by_writes) || is_of(&latency::FIGURES[..6]) => Some(&traffic::WRITES),
        _ if is_of(&latency::FIGURES[6..]) => Some(&traffic::READS),
        _ => None,
    }
}

/// The power of a run's time that a figure is proportional to, all else equal: amounts a second, and years until
/// something has reached an amount.
pub(super) fn power_of_time(figure: &Figure) -> i32 {
    match figure.unit {
        _ if figure.name == time::HOST_SPEED.name => 0,
        Quantity::PerSecond | Quantity::GigabytesPerSecond | Quantity::Milliwatts => -1,
        Quantity::Years => 1,
        _ => 0,
    }
}

/// Whether a figure is a percentile or the greatest of latencies, which are taken of all windows' requests together.
pub(super) fn is_pooled(figure: &Figure) -> bool {
    let means = [latency::MEAN_WRITE.name, latency::MEAN_READ.name];
    let mut all = latency::FIGURES.iter();
    all.any(|known| known.name == figure.name) && !means.contains(&figure.name)
}

/// Sets the percentiles and the greatest latencies of all windows' requests.
pub(super) fn pooled(figures: &mut Figures, reads: &Latencies, writes: &Latencies) {
    let all = latencies([writes, reads]);
    for (figure, value) in all.filter(|(figure, _)| is_pooled(figure)) {
        figures.set(figure, value);
    }
}

pub(super) fn cdf(all: &Latencies) -> Vec<(f64, f64)> {
    all.cdf(CDF_POINTS)
}

/// Completes an outcome that was taken while requests were under way, with their latencies.
pub(super) fn complete(outcome: &mut Outcome, port: &Port) {
    outcome.ledger.answered(port.memory.ledger());
    let figures = &mut outcome.figures;
    let (reads, writes) = (port.reads.count(), port.writes.count());
    let [duplicates, medium_writes] =
        [&DUPLICATE_WRITES, &traffic::MEDIUM_WRITES].map(|figure| figures.of(figure));
    let [saved, spared] = reductions(duplicates, medium_writes, writes);
    figures.set(&traffic::REQUESTS, reads + writes);
    figures.set(&traffic::READS, reads);
    figures.set(&traffic::WRITES, writes);
    figures.set(&traffic::WRITE_REDUCTION, saved);
    figures.set(&traffic::MEDIUM_WRITE_REDUCTION, spared);
    for (figure, value) in latencies([&port.writes, &port.reads]) {
        figures.set(figure, value);
    }
}

/// Instructions per core cycle, the mean of the cores; absent for a trace that counts cycles.
fn ipc(sim: &Finished) -> Amount {
    let took = sim.retired().since(sim.before.time);
    let cycles = took.ps() as f64 / sim.machine.core.clock.ps() as f64;
    if sim.figures.iter().any(|core| core.instructions.is_none()) {
        return Amount::Absent;
    }
    Amount::share(sim.instructions() as f64 / sim.figures.len() as f64, cycles)
}

fn core_ipc(sim: &Finished) -> Vec<Option<f64>> {
    let clock = sim.machine.core.clock.ps() as f64;
    let each = sim.figures.iter().enumerate().map(|(number, core)| {
        let before = sim.before.figures.get(number);
        let counted = before.and_then(|before| before.instructions).unwrap_or(0);
        let cycles = core.retired.since(sim.before.time).ps() as f64 / clock;
        let instructions = core.instructions?.saturating_sub(counted) as f64;
        (cycles > 0.0).then(|| instructions / cycles)
    });
    each.collect()
}

/// Years until cells wear out at this rate: with all lines worn equally, and with none moved.
fn lifetimes(machine: &Machine, took: Time, writes: u64, max_line_writes: u32) -> [Amount; 2] {
    let years = took.ns() * 1e-9 / SECONDS_A_YEAR;
    let endurance = machine.engine.medium.endurance as f64;
    let lines = machine.engine.medium.geometry.lines() as f64;
    [
        Amount::share(years * endurance * lines, writes as f64),
        Amount::share(years * endurance, f64::from(max_line_writes)),
    ]
}

/// The assumed parameters on which this outcome of `design` depends.
pub fn assumed<'m>(machine: &'m Machine, design: &str, outcome: &Outcome) -> Vec<&'m str> {
    assumed_of(machine, design, outcome.from_the_core, outcome.takes_frames)
}

/// The assumed parameters on which any outcome of `design` depends: of what is simulated from the core or from memory
/// on, and takes frames or lies where its programs say.
pub fn assumed_of<'m>(
    machine: &'m Machine,
    design: &str,
    from_the_core: bool,
    takes_frames: bool,
) -> Vec<&'m str> {
    let stack = Stack::named(design).ok();
    let matters = |key: &str| {
        let of = |prefix: &str| key.starts_with(prefix);
        match from_the_core {
            cored if of("pages.programs_") => cored && !takes_frames,
            _ if !machine.matters(key) => false,
            _ if (of("pages.") || key == ADDRESSES.name()) && !takes_frames => false,
            true if of("core.cache_latency_ns") => false,
            false if of("caches.") || of("core.store_queue") => false,
            _ => stack.is_none_or(|stack| stack.uses(key)),
        }
    };
    let keys = machine.assumed.iter().map(|a| a.parameter.as_str());
    keys.filter(|key| matters(key)).collect()
}
