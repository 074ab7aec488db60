//! Programs and traces of level `cpu` on cores with caches, whole: the bytes that come out, the
//! figures, and their times where another model knows them.

use crate::common::{figure, machine};
use crate::cpu_common::{record, trace};
use sardonyx::config::Machine;
use sardonyx::controller::designs;
use sardonyx::line::{Logical, Virtual};
use sardonyx::machine::recordings::{self, Options};
use sardonyx::machine::{Batch, OpKind, OpSource, Outcome, Phase, RunError, System, Warmup};
use sardonyx::memory::Memory;
use sardonyx::plan::journal::{Event, Journal};
use sardonyx::trace::{GapUnit, Level, Op, Provenance, Record, Source, TraceWriter};
use sardonyx::units::Time;
use sardonyx_workload::{self as workload, ProgramSpec, timed};

fn spec(name: &str, transactions: u64) -> ProgramSpec {
    ProgramSpec {
        name: name.into(),
        item_bytes: 64,
        footprint: 1 << 20,
        transactions,
        seed: 1,
        ..ProgramSpec::default()
    }
}

fn run(machine: &Machine, design: &str, spec: &ProgramSpec, cores: usize, warmup: u64) -> Outcome {
    let system = timed::system(machine, design, spec, cores, warmup);
    let mut system = system.unwrap_or_else(|error| panic!("{error}"));
    let outcome = system.run(&mut |_| true);
    outcome.unwrap_or_else(|error| panic!("{error}"))
}

/// Breaks if a store, a flush, an eviction or a line of setup is lost or goes astray, under any
/// design, between cores, or in caches so small that everything is evicted.
#[test]
fn what_programs_have_written_is_what_controllers_read() {
    let small = [
        ("caches.l1.bytes", "1024"),
        ("caches.llc.bytes", "8192"),
        ("core.mshrs", "3"),
        ("core.store_queue", "2"),
    ];
    for (settings, cores) in [(&small[..], 3), (&[][..], 1)] {
        let machine = machine("sca", settings).with_cores(cores);
        for design in designs::all() {
            for known in workload::all() {
                let spec = ProgramSpec {
                    footprint: 64 << 10,
                    ..spec(known.name, 60)
                };
                let mut expected = timed::set_up(&machine, &spec, cores).unwrap();
                let memory = timed::prefilled(&machine, design.name, &expected).unwrap();
                let sources = timed::set_up(&machine, &spec, cores).unwrap();
                let boxed = |program| Box::new(program) as Box<dyn OpSource>;
                let sources = sources.into_iter().map(boxed).collect();
                let warmup = Warmup::Requests(0);
                let mut system = System::of_programs(&machine, memory, sources, warmup).unwrap();
                system.run(&mut |_| true).unwrap();
                let mut memory = system.into_memory();
                for program in &mut expected {
                    let mut batch = Batch::default();
                    (0..60).for_each(|_| program.transaction(&mut batch));
                    for line in 0..program.region().count {
                        let at = Logical(program.region().at(line));
                        let read = memory.read_at_once(at).unwrap_or([0; 64]);
                        let name = (design.name, known.name, cores, line);
                        assert_eq!(&read, program.memory().line(line), "{name:?}");
                    }
                }
            }
        }
    }
}

/// Breaks if anything depends on the host, or if cores wait for nothing together.
#[test]
fn runs_repeat_and_cores_help() {
    let machine = machine("sca", &[]);
    for known in workload::all() {
        let spec = spec(known.name, 200);
        let one = run(&machine, "sca", &spec, 1, 0);
        let four = run(&machine, "sca", &spec, 4, 0);
        assert_eq!(four, run(&machine, "sca", &spec, 4, 0), "{}", known.name);
        let counts = [&one, &four].map(|o| figure(o, "transactions"));
        assert_eq!(counts, [200.0, 800.0]);
        let rates = [&one, &four].map(|o| figure(o, "transactions_per_second"));
        assert!((0.8..4.2).contains(&(rates[1] / rates[0])), "{rates:?}");
    }
}

/// Breaks if a warm-up is counted, or changes what happens.
#[test]
fn a_warm_up_counts_nowhere() {
    let machine = machine("sca", &[]);
    let spec = spec("hash", 300);
    let whole = run(&machine, "sca", &spec, 2, 0);
    let rest = run(&machine, "sca", &spec, 2, 100);
    let counted = figure(&rest, "transactions");
    assert!((390.0..=400.0).contains(&counted), "{counted}");
    for name in [
        "medium_writes",
        "runtime_ns",
        "memory_operations",
        "fences",
        "requests",
    ] {
        let part = figure(&rest, name) / figure(&whole, name);
        assert!((0.55..0.75).contains(&part), "{name}: {part}");
    }
}

/// Breaks if a core does not think, thinks at no cost, or if its private lines touch the program's.
#[test]
fn thinking_takes_its_time_and_changes_nothing_else() {
    let spec = ProgramSpec {
        footprint: 64 << 10,
        ..spec("hash", 200)
    };
    let think = |settings: &[(&str, &str)]| {
        let machine = machine("sca", settings);
        run(&machine, "co-located", &spec, 2, 0)
    };
    let of = |outcome: &Outcome, name| figure(outcome, name) / 400.0;
    let (plain, long) = (think(&[]), think(&[("think.instructions", "40000")]));
    let time = |outcome| of(outcome, "runtime_ns") * 2.0; // of each of the two cores
    // 40,000 instructions, four a cycle of 0.25 ns; the two cores wait less for each other.
    let longer = time(&long) - time(&plain);
    assert!((2000.0..2600.0).contains(&longer), "{longer}");
    for name in ["fences", "memory_operations", "transactions"] {
        assert_eq!(figure(&plain, name), figure(&long, name), "{name}");
    }

    let reading = think(&[("think.loads", "20"), ("think.bytes", "33554432")]);
    let more = |name| of(&reading, name) - of(&plain, name);
    assert!(
        (15.0..21.0).contains(&more("medium_reads")),
        "{}",
        more("medium_reads")
    );
    assert_eq!(more("memory_operations"), 20.0);
    // Each load of those waits for the one before it, and all but few for memory.
    let a_load = (time(&reading) - time(&plain)) / 20.0;
    assert!((80.0..400.0).contains(&a_load), "{a_load}");

    let large = machine(
        "sca",
        &[("think.loads", "1"), ("think.bytes", "8589934592")],
    );
    let error = timed::system(&large, "sca", &spec, 1, 0)
        .err()
        .expect("too large");
    assert!(error.to_string().contains("do not fit"), "{error}");
}

struct List {
    batch: Batch,
    given: bool,
}

impl OpSource for List {
    fn name(&self) -> &str {
        "list"
    }

    fn refill(&mut self, _: Time, batch: &mut Batch) -> Result<bool, RunError> {
        if !self.given {
            *batch = self.batch.clone();
        }
        Ok(!std::mem::replace(&mut self.given, true))
    }

    fn pages(&self) -> u64 {
        1
    }
}

fn play(machine: &Machine, design: &str, make: impl Fn(&mut Batch)) -> Vec<Time> {
    let mut batch = Batch::default();
    make(&mut batch);
    let given = false;
    let list = Box::new(List { batch, given }) as Box<dyn OpSource>;
    let mut memory = Memory::new(machine, design).unwrap();
    memory.observe(Journal::default());
    let system = System::of_programs(machine, memory, vec![list], Warmup::Requests(0)).unwrap();
    let (journal, _) = system.record().unwrap();
    let marks = journal
        .events
        .iter()
        .filter(|(_, event)| matches!(event, Event::Mark { .. }));
    marks.map(|(at, _)| *at).collect()
}

/// Breaks if a fence does not wait for acceptance (10 us of encryption here), waits for the array, or
/// waits for what nobody has flushed; if a load is not waited for by what depends on it.
#[test]
fn fences_wait_for_acceptance_and_dependents_for_loads() {
    let slow = [
        ("units.aes.latency_ns", "10000"),
        ("medium.timing.tWP_ns", "5000"),
        ("memory.past", "empty"), // fetching a line takes no pad
    ];
    let machine = machine("sca", &slow);
    let store = |batch: &mut Batch, line| batch.store(Virtual(line), 0, &[1; 8], false);
    let mark = |batch: &mut Batch| batch.push(OpKind::Mark(Phase::Begin), Virtual(1));
    let times = play(&machine, "no-atomicity", |batch| {
        batch.push(OpKind::NonTemporal { bytes: 0 }, Virtual(640));
        batch.keep(&[7; 64]);
        batch.push(OpKind::Fence, Virtual(0));
        for line in [64, 192, 256] {
            store(batch, line);
            batch.push(OpKind::WriteBack, Virtual(line));
        }
        batch.push(OpKind::Fence, Virtual(0));
        store(batch, 320);
        batch.push(OpKind::Fence, Virtual(0)); // waits for the store's line alone
        batch.push(OpKind::WriteBack, Virtual(64)); // clean and long accepted
        batch.push(OpKind::Fence, Virtual(0));
        batch.push(OpKind::Load { from: 0, len: 8 }, Virtual(640));
        mark(batch);
        batch.push(OpKind::Depend, Virtual(0));
        mark(batch);
    });
    let us = times
        .iter()
        .map(|time| time.ns() / 1000.0)
        .collect::<Vec<_>>();
    let [first, second, third, fourth, before, after] = us[..] else {
        panic!("{us:?}")
    };
    assert!((10.0..11.0).contains(&first), "{us:?}");
    assert!((10.0..11.0).contains(&(second - first)), "{us:?}");
    assert!((0.05..10.0).contains(&(third - second)), "{us:?}");
    assert!(fourth - third < 0.01, "{us:?}");
    assert!(before - fourth < 0.01 && after - before > 9.0, "{us:?}");
}

/// Breaks if a counter write-back or a counter-atomic write is not waited for.
#[test]
fn fences_wait_for_counters() {
    let slow = [
        ("units.aes.latency_ns", "0"),
        ("units.counters.latency_ns", "5000"),
    ];
    let machine = machine("sca", &slow);
    for (atomic, counters) in [(false, false), (false, true), (true, false)] {
        let times = play(&machine, "sca", |batch| {
            batch.store(Virtual(0), 0, &[1; 8], atomic);
            batch.push(OpKind::WriteBack, Virtual(0));
            if counters {
                batch.push(OpKind::CounterWriteBack, Virtual(0));
            }
            batch.push(OpKind::Fence, Virtual(0));
        });
        assert!(
            times[0].ns() > 5000.0 && times[0].ns() < 12_000.0,
            "{times:?}"
        );
    }
}

fn cpu_trace(folder: &std::path::Path, name: &str, level: Level, records: &[Record]) -> Source {
    let path = folder.join(name);
    let provenance = Provenance {
        level,
        ..Provenance::default()
    };
    let mut writer = TraceWriter::create(&path, provenance).unwrap();
    for record in records {
        writer.push(record).unwrap();
    }
    writer.finish().unwrap();
    Source::open(&path).unwrap()
}

/// Loads that all miss come out as the core without caches has them: two models of one machine.
#[test]
fn a_core_whose_caches_never_hit_is_the_core_without() {
    let folder = tempfile::tempdir().unwrap();
    let machine = machine("esd", &[("core.mshrs", "6")]);
    let mut state = 5u64;
    let mut draw = |end: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % end
    };
    let lines: Vec<(u32, u64)> = (0..3000)
        .map(|i| (draw(300) as u32, i * 7919 % 100_003))
        .collect();
    let records = |op| {
        let record = move |&(gap, line): &(u32, u64)| record(gap, op, line, 0);
        lines.iter().map(record).collect::<Vec<_>>()
    };
    let below = trace(folder.path(), GapUnit::Instructions, &records(Op::ReadMiss));
    let above = cpu_trace(folder.path(), "cpu.parquet", Level::Cpu, &records(Op::Load));
    for design in ["no-encryption", "baseline"] {
        let again = |source: &Source| {
            Source::open(folder.path().join(format!("{}.parquet", source.name())))
        };
        let run = |source: &Source| {
            let sources = vec![again(source).unwrap()];
            recordings::run(&machine, design, sources, Options::default(), &mut |_| true).unwrap()
        };
        let (without, with) = (run(&below), run(&above));
        assert_eq!(figure(&with, "cpu_cache_miss_rate"), 1.0);
        for name in [
            "simulated_ns",
            "mean_read_latency_ns",
            "p99_read_latency_ns",
            "ipc",
            "instructions",
            "medium_reads",
        ] {
            assert_eq!(
                figure(&without, name),
                figure(&with, name),
                "{design} {name}"
            );
        }
    }
}

#[test]
fn levels_do_not_mix() {
    let folder = tempfile::tempdir().unwrap();
    let records = [record(1, Op::Load, 1, 0), record(1, Op::ReadMiss, 2, 0)];
    let source = cpu_trace(folder.path(), "mixed.parquet", Level::Cpu, &records);
    let machine = machine("esd", &[]);
    let error = recordings::run(
        &machine,
        "baseline",
        vec![source],
        Options::default(),
        &mut |_| true,
    );
    let message = error.unwrap_err().to_string();
    assert!(
        message.contains("op 0 in a trace of level cpu"),
        "{message}"
    );
}

#[test]
fn programs_that_do_not_fit_say_what_to_change() {
    let machine = machine("sca", &[("medium.geometry.rows", "16")]);
    let tell = |spec: &ProgramSpec, cores| {
        let system = timed::system(&machine, "sca", spec, cores, 0);
        system.err().expect("it does not fit").to_string()
    };
    let large = ProgramSpec {
        footprint: 4 << 20,
        ..spec("btree", 10)
    };
    assert!(tell(&large, 1).contains("give a smaller footprint"));
    assert!(tell(&spec("btree", 10), 65).contains("1 to 64"));
    let warm = timed::system(&machine, "sca", &spec("queue", 5), 1, 5);
    let warm = warm.err().expect("only warm-up").to_string();
    assert!(warm.contains("lower --warmup"));
}
