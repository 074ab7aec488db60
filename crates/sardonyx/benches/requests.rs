//! Nanoseconds of host time a request, beside a floor measured in the same run: AES-128-CTR of one
//! line plus two independent random 64-byte reads of a 1 GiB array. Machines are noisy; quote the
//! ratios. `make bench` runs it; `--requests N` changes the length, `--only NAME` picks one row; `--integrity` has
//! what schemes of integrity cost the simulator in place of all that. `--count NAME` runs one row without the floor
//! and over a part of the pages, for a tool that counts its instructions.

use std::hint::black_box;
use std::time::Instant;

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use sardonyx::config::Machine;
use sardonyx::controller::{Class, Controller, Persist, Write, designs};
use sardonyx::engine::{Engine, Request};
use sardonyx::line::{Line, Logical, Place};
use sardonyx::medium::layout::Layout;
use sardonyx::plan::{At, Step, Stored};
use sardonyx::stats::Direction;
use sardonyx::units::Time;
use sardonyx_base::random::SplitMix64;
use sardonyx_crash::{History, Options, explore};
use sardonyx_workload::ProgramSpec;

const GIB_LINES: u64 = 1 << 24;
const HINT_AHEAD: usize = 12;

/// Half reads, half writes, uniform over 1 GiB.
fn requests(count: usize, seed: u64) -> Vec<(Direction, u64)> {
    let mut random = SplitMix64(seed);
    let one = |_| {
        let draw = random.draw();
        let kind = if draw >> 63 == 0 {
            Direction::Read
        } else {
            Direction::Write
        };
        (kind, draw % GIB_LINES)
    };
    (0..count).map(one).collect()
}

/// A write to every 4 KiB page, so that what is timed afterwards waits for no zeroing of memory; the
/// floor's array has been written too.
fn every_page() -> Vec<(Direction, u64)> {
    writes_each(64)
}

fn writes_each(lines: usize) -> Vec<(Direction, u64)> {
    let places = (0..GIB_LINES).step_by(lines);
    places.map(|line| (Direction::Write, line)).collect()
}

/// What write number `i` holds: one in two is one of a thousand contents, the rest are new.
fn content(i: u64) -> Line {
    let mut random = SplitMix64(if i.is_multiple_of(2) {
        i % 1000
    } else {
        i ^ 1 << 40
    });
    let mut line = [0; 64];
    for word in line.chunks_exact_mut(8) {
        word.copy_from_slice(&random.draw().to_le_bytes());
    }
    line
}

fn floor(count: usize) -> f64 {
    let mut array = memmap2::MmapMut::map_anon(GIB_LINES as usize * 64).expect("1 GiB");
    #[cfg(target_os = "linux")]
    let _ = array.advise(memmap2::Advice::HugePage); // as the image has
    array.fill(1);
    let cipher = Aes128::new(&Array::from([7u8; 16]));
    let mut random = SplitMix64(3);
    let mut sum = 0u64;
    let start = Instant::now();
    for i in 0..count as u64 {
        let mut pad: [aes::Block; 4] = Default::default();
        for (block, pad) in pad.iter_mut().enumerate() {
            pad[..8].copy_from_slice(&i.to_le_bytes());
            pad[8] = block as u8;
        }
        cipher.encrypt_blocks(&mut pad);
        for _ in 0..2 {
            let at = (random.draw() % GIB_LINES) as usize * 64;
            let words = array[at..at + 64].chunks_exact(8).zip(pad.iter().cycle());
            for (word, pad) in words {
                let word = u64::from_le_bytes(word.try_into().expect("8 bytes"));
                sum = sum.wrapping_add(word ^ u64::from(pad[0]));
            }
        }
    }
    black_box(sum);
    start.elapsed().as_nanos() as f64 / count as f64
}

/// Feeds requests as fast as the ingress takes them.
fn feed(
    engine: &mut Engine,
    requests: &[(Direction, u64)],
    mut hint: impl FnMut(&mut Engine, u64),
    mut handle: impl FnMut(&mut sardonyx::plan::Plan, Direction, u64, u64) -> Stored,
) -> f64 {
    let start = Instant::now();
    for (i, (kind, line)) in requests.iter().enumerate() {
        while !engine.admits() {
            engine.advance_until(Time::NEVER);
            engine.answers().for_each(drop);
        }
        if let Some((_, ahead)) = requests.get(i + HINT_AHEAD) {
            hint(engine, *ahead);
        }
        let now = engine.now();
        let request = Request {
            arrival: now,
            core: 0,
            tag: i as u64,
            kind: *kind,
            counted: true,
        };
        engine.admit(request, now, |plan| handle(plan, *kind, *line, i as u64));
        engine.answers().for_each(drop);
    }
    while engine.next_event() != Time::NEVER || engine.force_drain() {
        engine.advance_until(Time::NEVER);
        engine.answers().for_each(drop);
    }
    engine.assert_at_rest();
    start.elapsed().as_nanos() as f64 / requests.len() as f64
}

fn machine() -> Machine {
    let none: [(&str, &str); 0] = [];
    Machine::load("esd", &none).expect("a preset")
}

/// The engine with lines' bytes and no controller; the last pass is timed, over memory that has been
/// touched.
fn engine_alone(count: usize, first: &[(Direction, u64)]) -> f64 {
    let mut engine = Engine::new(&machine().engine);
    let lines: Vec<Line> = (0..1024).map(content).collect();
    let mut pass = |requests: &[(Direction, u64)]| {
        feed(
            &mut engine,
            requests,
            |engine, line| engine.look(|plan| plan.touch_ahead(Place(line))),
            |plan, kind, line, i| match kind {
                Direction::Read => Stored::at(plan.read(Place(line), Step::PAST).at),
                Direction::Write => {
                    let data = At::past(&lines[i as usize % lines.len()]);
                    plan.write(Place(line), data, Step::PAST)
                }
            },
        )
    };
    pass(first);
    pass(&requests(count, 1));
    pass(&requests(count, 2))
}

fn design(name: &str, count: usize, first: &[(Direction, u64)]) -> f64 {
    let machine = machine();
    let mut engine = Engine::new(&machine.engine);
    let mut layout = Layout::new(machine.engine.medium.geometry.lines());
    let built = designs::build(name, &machine.settings, &mut layout).expect("a design");
    let controller = std::cell::RefCell::new(built);
    let contents: Vec<Line> = (0..count as u64).map(content).collect(); // again in each pass
    let mut pass = |requests: &[(Direction, u64)]| {
        feed(
            &mut engine,
            requests,
            |engine, line| engine.look(|plan| controller.borrow().hint(Logical(line), plan)),
            |plan, kind, line, i| {
                let controller: &mut Controller = &mut controller.borrow_mut();
                let line = Logical(line);
                match kind {
                    Direction::Read => {
                        Stored::at(controller.read(line, Class::Data, Step::PAST, plan).at)
                    }
                    Direction::Write => {
                        let data = At::past(&contents[i as usize % contents.len()]);
                        let order = Persist::Relaxed;
                        let write = Write {
                            order,
                            ..Write::new(line, data)
                        };
                        controller.write(write, plan)
                    }
                }
            },
        )
    };
    pass(first);
    pass(&requests(count, 1));
    pass(&requests(count, 2))
}

/// Processor time of this thread: other work on the machine is not in it.
fn processor_ns() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// A stack under random requests to 1 MiB of the machine `sca`, in time or without a clock.
struct Paired {
    engine: Engine,
    controller: std::cell::RefCell<Controller>,
    timed: bool,
    seed: u64,
}

impl Paired {
    const LINES: u64 = 1 << 14;

    fn new(stack: &str, timed: bool) -> Paired {
        let none: [(&str, &str); 0] = [];
        let machine = Machine::load("sca", &none).expect("a preset");
        let mut layout = Layout::new(Paired::LINES);
        let built = designs::build(stack, &machine.settings, &mut layout).expect("a stack");
        Paired {
            engine: Engine::new(&machine.engine),
            controller: std::cell::RefCell::new(built),
            timed,
            seed: 1,
        }
    }

    /// Processor time of one more pass and accesses to the medium, both a request.
    fn pass(&mut self, count: usize) -> (f64, f64) {
        self.seed += 1;
        let requests: Vec<(Direction, u64)> = requests(count, self.seed);
        let seed = self.seed << 32;
        let controller = &self.controller;
        let handle = |plan: &mut sardonyx::plan::Plan, kind, line: u64, i: u64| {
            let (controller, line) = (&mut *controller.borrow_mut(), Logical(line % Paired::LINES));
            match kind {
                Direction::Read => {
                    Stored::at(controller.read(line, Class::Data, Step::PAST, plan).at)
                }
                Direction::Write => {
                    let data = content(seed + i);
                    controller.write(Write::new(line, At::past(&data)), plan)
                }
            }
        };
        let accesses = |engine: &Engine| {
            let all = engine.ledger().grand_total();
            all.medium_reads + all.medium_writes
        };
        let (before, start) = (accesses(&self.engine), processor_ns());
        if self.timed {
            feed(&mut self.engine, &requests, |_, _| {}, handle);
        } else {
            for (i, (kind, line)) in requests.iter().enumerate() {
                self.engine
                    .at_once(|plan| handle(plan, *kind, *line, i as u64));
            }
        }
        let took = processor_ns() - start;
        assert_eq!(self.engine.refused(), None);
        let made = accesses(&self.engine) - before;
        (took / count as f64, made as f64 / count as f64)
    }
}

/// What each scheme of integrity costs the simulator: passes over it and over none take turns, and the middle
/// ratio counts.
fn integrity(count: usize, only: Option<&str>) {
    const BASE: &str = "identity+no-encryption";
    println!(
        "scheme: ns a request, of none (times), accesses to the medium a request, ns an access of none's; without a clock"
    );
    let schemes = designs::integrities().filter(|scheme| scheme.power_fail.is_some());
    for scheme in schemes.filter(|scheme| only.is_none_or(|only| only == scheme.about.name)) {
        let name = scheme.about.name;
        let stack = format!("{BASE}@{name}");
        let mut rows = Vec::new();
        for timed in [true, false] {
            let (mut own, mut none) = (Paired::new(&stack, timed), Paired::new(BASE, timed));
            own.pass(count);
            none.pass(count);
            let mut pairs: Vec<_> = (0..5)
                .map(|_| (own.pass(count), none.pass(count)))
                .collect();
            pairs.sort_by(|a, b| (a.0.0 / a.1.0).total_cmp(&(b.0.0 / b.1.0)));
            rows.push(pairs[2]);
        }
        let ((own, accesses), (none, fewer)) = rows[0];
        let ((untimed, _), (untimed_none, _)) = rows[1];
        println!(
            "{name:<18} {own:>7.0} {:>6.2}x {accesses:>7.2} {:>6.0} {:>6.2}x  {untimed:>7.0} {:>6.2}x",
            own / none,
            own / accesses,
            own / accesses / (none / fewer),
            untimed / untimed_none,
        );
    }
}

fn decoding() -> f64 {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/redis.parquet");
    let mut best = f64::MAX;
    for _ in 0..5 {
        let mut reader = sardonyx::trace::TraceReader::open(path).expect("a trace");
        let (mut batch, mut records) = (Vec::new(), 0);
        let start = Instant::now();
        while reader.next_batch(&mut batch).expect("records") {
            records += batch.len();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / records as f64);
    }
    best
}

/// Power cuts a second, and distinct states: `sca`, a B-tree of 1,000 transactions, every position.
fn crash() -> (f64, f64, u64) {
    let none: [(&str, &str); 0] = [];
    let machine = Machine::load("sca", &none).expect("a preset");
    let spec = ProgramSpec {
        name: "btree".into(),
        item_bytes: 64,
        footprint: 16_384,
        transactions: 1000,
        seed: 1,
        ..ProgramSpec::default()
    };
    let history = History::record(&machine, "sca", &[spec], 1).expect("a design and a program");
    let start = Instant::now();
    let options = Options::default();
    let explored = explore(&history, &options, &|_| true).expect("nobody cancels");
    assert!(explored.tally.kinds.is_empty());
    let (covered, took) = (explored.covered, start.elapsed().as_secs_f64());
    (
        covered.cuts as f64 / took,
        covered.states as f64 / took,
        covered.cuts,
    )
}

/// Peak resident memory of this process in MiB.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1024.0)
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1).cloned()
    };
    let count = value("--requests").map_or(1_000_000, |n| n.parse().expect("a number"));
    let only = value("--only");
    if args.iter().any(|arg| arg == "--integrity") {
        return integrity(count, only.as_deref());
    }
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if let Some(row) = value("--count") {
        let first = writes_each(1024);
        match row.as_str() {
            "engine" => engine_alone(count, &first),
            name => design(name, count, &first),
        };
        return;
    }
    let first = every_page();
    let floor_ns = floor(2_000_000);
    println!(
        "{count} random requests over 1 GiB, half of them reads, as fast as the queues take them"
    );
    println!("{:<16} {:>9.1} ns", "floor", floor_ns);
    if wanted("engine") {
        let ns = engine_alone(count, &first);
        println!(
            "{:<16} {ns:>9.1} ns  {:>5.2} x floor",
            "engine alone",
            ns / floor_ns
        );
    }
    for design_of in designs::all().filter(|d| wanted(d.name)) {
        let ns = design(design_of.name, count, &first);
        println!(
            "{:<16} {ns:>9.1} ns  {:>5.2} x floor",
            design_of.name,
            ns / floor_ns
        );
    }
    if wanted("decoding") {
        let ns = decoding();
        println!(
            "{:<16} {ns:>9.1} ns  {:>5.1} M records/s",
            "trace decoding",
            1000.0 / ns
        );
    }
    if wanted("crash") {
        let (cuts, states, all) = crash();
        println!(
            "{:<16} {:>9.0} cuts/s, {states:.0} distinct states/s ({all} cuts of a B-tree on sca)",
            "crash", cuts
        );
    }
    if let Some(peak) = peak_mib() {
        println!(
            "{:<16} {peak:>9.0} MiB at most, the floor's own 1 GiB included",
            "memory"
        );
    }
}
