//! Threads of a recording on cores of their own: the recorded order of accesses to a line, every request and every
//! instruction, the figures of one thread, and those of programs that share nothing.

use std::path::PathBuf;

use proptest::prelude::*;
use sardonyx::config::Machine;
use sardonyx::engine::Request;
use sardonyx::line::Virtual;
use sardonyx::machine::recordings::{self, Options};
use sardonyx::machine::{HELD, Outcome, PAGE_LINES, Threads};
use sardonyx::plan::observe::Observer;
use sardonyx::trace::{Op, Provenance, Record, Source, TraceWriter};
use sardonyx::units::Time;
use tempfile::TempDir;

use crate::common::figure;

/// The cores of the requests in the order of their admission.
#[derive(Default)]
struct Cores(Vec<usize>);

impl Observer for Cores {
    fn admitted(&mut self, _now: Time, _number: u32, request: &Request) {
        self.0.push(request.core as usize);
    }
}

struct Trace {
    _folder: TempDir,
    path: PathBuf,
}

impl Trace {
    fn of(records: &[Record]) -> Trace {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("threads.parquet");
        let mut provenance = Provenance::default();
        let physical = serde_json::json!("physical");
        provenance.more.insert("address_space".to_owned(), physical);
        let mut writer = TraceWriter::create(&path, provenance).unwrap();
        records
            .iter()
            .for_each(|record| writer.push(record).unwrap());
        writer.finish().unwrap();
        let _folder = folder;
        Trace { _folder, path }
    }

    fn open(&self) -> Source {
        Source::open(&self.path).unwrap()
    }

    /// The outcome with its threads on cores, and the cores of the requests.
    fn by_thread(&self, machine: &Machine, copies: usize) -> (Outcome, Vec<usize>) {
        let threads = Threads::of(self.open()).unwrap();
        let sources = (0..copies).map(|_| self.open()).collect();
        let options = Options::default();
        let system = recordings::by_thread(machine, "esd", sources, &threads, options);
        let mut system = system.unwrap();
        system.memory().observe(Cores::default());
        let outcome = system.run(&mut |_| true).unwrap();
        let cores: Box<Cores> = system.memory().take().expect("it listens");
        (outcome, cores.0)
    }
}

fn machine() -> Machine {
    crate::common::machine("esd", &[])
}

fn record(thread: u16, op: Op, line: u64, gap: u32, content: u8) -> Record {
    Record {
        gap,
        thread,
        op,
        line: Virtual(line),
        data: op.has_data().then_some([content; 64]),
    }
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let op = prop_oneof![
        3 => Just(Op::ReadMiss),
        3 => Just(Op::DirtyEviction),
        1 => Just(Op::Fence),
        1 => Just(Op::FinalDirty),
    ];
    let gap = prop_oneof![4 => 0..40u32, 1 => 0..4000u32];
    let line = (0..3u64, 0..3u64).prop_map(|(page, line)| page * PAGE_LINES + line);
    let one = (0..5u16, op, line, gap, 0..4u8);
    let one =
        one.prop_map(|(thread, op, line, gap, content)| record(thread, op, line, gap, content));
    prop::collection::vec(one, 1..400)
}

fn accesses(records: &[Record]) -> impl Iterator<Item = &Record> {
    records
        .iter()
        .filter(|record| record.op == Op::ReadMiss || record.op.is_write())
}

/// The accesses to each line, each by its thread and its number among the thread's.
type Order = std::collections::BTreeMap<u64, Vec<(u16, usize)>>;

fn recorded(records: &[Record]) -> Order {
    let (mut order, mut numbers) = (Order::new(), [0; 5]);
    for access in accesses(records) {
        let number = &mut numbers[usize::from(access.thread)];
        let line = order.entry(access.line.0).or_default();
        line.push((access.thread, *number));
        *number += 1;
    }
    order
}

/// The order in which cores issued, which play the threads that have accesses.
fn issued(records: &[Record], cores: &[usize]) -> Order {
    let mut threads: Vec<u16> = accesses(records).map(|access| access.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    let each = threads.iter().map(|thread| {
        let own = accesses(records).filter(|access| access.thread == *thread);
        own.map(|access| access.line.0).collect::<Vec<_>>()
    });
    let each: Vec<Vec<u64>> = each.collect();
    let (mut order, mut numbers) = (Order::new(), [0; 5]);
    for core in cores {
        let number = numbers[*core];
        let line = order.entry(each[*core][number]).or_default();
        line.push((threads[*core], number));
        numbers[*core] += 1;
    }
    order
}

proptest! {
    #![proptest_config(sardonyx_property::cases(60))]
    #[test]
    fn accesses_to_a_line_keep_their_order_and_nothing_is_lost(records in records()) {
        prop_assume!(accesses(&records).next().is_some());
        let trace = Trace::of(&records);
        let (outcome, cores) = trace.by_thread(&machine(), 1);
        prop_assert_eq!(issued(&records, &cores), recorded(&records));
        let count = |reads: bool| accesses(&records).filter(|r| (r.op == Op::ReadMiss) == reads).count();
        prop_assert_eq!(figure(&outcome, "reads"), count(true) as f64);
        prop_assert_eq!(figure(&outcome, "writes"), count(false) as f64);
        let gaps: u64 = records.iter().map(|record| u64::from(record.gap)).sum();
        prop_assert_eq!(figure(&outcome, "instructions"), (gaps + count(true) as u64) as f64);
        let others = records.len() - count(true) - count(false);
        prop_assert_eq!(figure(&outcome, "skipped_fences_and_flushes"), others as f64);
        prop_assert_eq!(trace.by_thread(&machine(), 1), (outcome, cores));
    }

    #[test]
    fn one_thread_is_the_trace_on_one_core(mut records in records()) {
        records.iter_mut().for_each(|record| record.thread = 7);
        prop_assume!(accesses(&records).next().is_some());
        let trace = Trace::of(&records);
        let whole = vec![trace.open(), trace.open()];
        let whole = recordings::run(&machine(), "esd", whole, Options::default(), &mut |_| true);
        prop_assert_eq!(trace.by_thread(&machine(), 2).0, whole.unwrap());
    }

    /// In a mix each trace has a half of the memory.
    #[test]
    fn threads_that_share_no_line_are_a_mix(mut records in records()) {
        let half = machine().engine.medium.geometry.lines() / PAGE_LINES / 2 * PAGE_LINES;
        records.iter_mut().for_each(|record| record.thread %= 2);
        // Threads with nothing but fences have no core.
        records.push(record(0, Op::ReadMiss, 0, 0, 0));
        records.push(record(1, Op::ReadMiss, 0, 0, 0));
        let of = |thread| records.iter().filter(move |record| record.thread == thread).copied();
        let single = |thread| Trace::of(&of(thread).collect::<Vec<_>>());
        let (first, second) = (single(0), single(1));
        let sources = vec![first.open(), second.open()];
        let mix = recordings::run(&machine(), "esd", sources, Options::default(), &mut |_| true);
        let apart = |record: &Record| Record {
            line: Virtual(record.line.0 + u64::from(record.thread) * half),
            ..*record
        };
        let trace = Trace::of(&records.iter().map(apart).collect::<Vec<_>>());
        prop_assert_eq!(trace.by_thread(&machine(), 1).0, mix.unwrap());
    }
}

#[test]
fn a_thread_far_ahead_of_the_slowest_waits_and_ends() {
    let slow = record(0, Op::ReadMiss, 0, 200_000_000, 0);
    let fast = |n: u64| record(1, Op::ReadMiss, 1 + n % 64, 10, 0);
    let mut records = vec![record(1, Op::ReadMiss, 1, 0, 0), slow];
    records.extend(
        (0..HELD as u64 + 500)
            .map(|_| slow)
            .map(|slow| Record { gap: 0, ..slow }),
    );
    records.extend((0..300).map(fast));
    let (outcome, cores) = Trace::of(&records).by_thread(&machine(), 1);
    assert_eq!(figure(&outcome, "requests"), records.len() as f64);
    // Without a bound the fast thread would be through before the slow one's first access, which is late.
    let second = cores
        .iter()
        .enumerate()
        .filter(|(_, core)| **core == 1)
        .nth(1);
    let (waited, _) = second.expect("its second access");
    assert!(waited > 500, "{waited} requests came before");
}
