//! A core's arrivals and retirement against a slow model of the same machine, stepped tick by tick.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::cpu_common::{clocked, fence, read, trace, write};
use proptest::prelude::*;
use sardonyx::machine::{Agent, Copies, Stream, TraceCore};
use sardonyx::medium::params::CoreParams;
use sardonyx::stats::Direction;
use sardonyx::trace::{GapUnit, Record};
use sardonyx::units::Time;

/// One access and how memory treats it, times in picoseconds.
#[derive(Clone, Copy, Debug)]
struct Case {
    gap: u32,
    kind: Direction,
    stall: u64,
    latency: u64,
}

type Times = (Vec<u64>, u64);

fn core_of(params: &CoreParams, unit: GapUnit, records: &[Record]) -> TraceCore {
    let folder = tempfile::tempdir().unwrap();
    let source = trace(folder.path(), unit, records);
    let stream = Stream::new(source, Copies::ONE).unwrap();
    assert_eq!(stream.gap_unit(), unit);
    TraceCore::new(0, params, stream)
}

fn fast(params: &CoreParams, unit: GapUnit, cases: &[Case], trailing: u32) -> Times {
    let mut records: Vec<Record> = cases
        .iter()
        .enumerate()
        .map(|(i, case)| match case.kind {
            Direction::Read => read(case.gap, i as u64),
            Direction::Write => write(case.gap, i as u64, 7),
        })
        .collect();
    records.push(fence(trailing));
    let mut core = core_of(params, unit, &records);
    let mut arrivals = Vec::new();
    let mut answers = BinaryHeap::new();
    while !core.finished() {
        let head = core.next_arrival().map(|t| t.ps());
        let now = head.map(|t| t + cases[arrivals.len()].stall);
        let due = answers.peek().map(|&Reverse((t, _))| t);
        if now.is_none_or(|now| due.is_some_and(|due| due <= now)) {
            let Reverse((at, id)) = answers.pop().expect("a core waits for an answer");
            core.read_done(id, Time::from_ps(at));
            let after = core.next_arrival().map(|t| t.ps());
            assert!(head.is_none() || head == after, "a known arrival changed");
            assert!(
                head.is_some() || after.is_none_or(|t| t >= at),
                "arrival in the past"
            );
            continue;
        }
        let case = cases[arrivals.len()];
        let taken = core.take(Time::from_ps(now.unwrap())).unwrap();
        assert_eq!(taken.access.kind, case.kind);
        arrivals.push(head.unwrap());
        if let Some(id) = taken.read {
            answers.push(Reverse((now.unwrap() + case.latency, id)));
        }
    }
    let gaps: u64 = cases.iter().map(|c| u64::from(c.gap)).sum();
    let reads = cases.iter().filter(|c| c.kind == Direction::Read).count() as u64;
    let instructions = gaps + reads + u64::from(trailing);
    match unit {
        GapUnit::Instructions => assert_eq!(core.instructions(), Some(instructions)),
        GapUnit::Cycles => assert_eq!(core.instructions(), None),
    }
    (arrivals, core.retire_time().ps())
}

/// The machine itself: a reorder buffer as a queue, and one look at it every 1/width ps.
fn slow(params: &CoreParams, unit: GapUnit, cases: &[Case], trailing: u32) -> Times {
    let (width, slot) = (params.width, params.clock.ps());
    let cycle = slot * width;
    let per_gap = if unit == GapUnit::Cycles { width } else { 1 };
    let mut program: VecDeque<Option<usize>> = VecDeque::new();
    for (i, case) in cases.iter().enumerate() {
        program.extend(vec![
            None;
            usize::try_from(u64::from(case.gap) * per_gap).unwrap()
        ]);
        program.push_back(Some(i));
    }
    program.extend(vec![
        None;
        usize::try_from(u64::from(trailing) * per_gap).unwrap()
    ]);

    let mut rob: VecDeque<(u64, u64)> = VecDeque::new(); // fetched, data usable
    let mut mshrs: Vec<u64> = Vec::new();
    let (mut next_fetch, mut next_retire, mut end) = (0, 0, 0);
    let mut arrivals: Vec<u64> = Vec::new();
    for tick in 0.. {
        if rob.is_empty() && program.is_empty() {
            break;
        }
        if let Some(&(fetched, usable)) = rob.front()
            && tick >= next_retire
            && tick >= fetched + cycle
            && tick >= usable
        {
            rob.pop_front();
            next_retire = tick + slot;
            end = end.max(tick);
        }
        mshrs.retain(|&free| free > tick);
        while let Some(&item) = program.front() {
            if tick < next_fetch || rob.len() as u64 >= params.window {
                break;
            }
            let Some(i) = item else {
                rob.push_back((tick, 0));
                next_fetch = tick + slot;
                program.pop_front();
                continue;
            };
            let is_read = cases[i].kind == Direction::Read;
            if is_read && mshrs.len() >= params.mshrs {
                break;
            }
            if arrivals.len() == i {
                arrivals.push(tick.div_ceil(width));
            }
            let taken = arrivals[i] + cases[i].stall;
            if cases[i].stall > 0 && tick < taken * width {
                break;
            }
            if is_read {
                let usable = (taken + cases[i].latency + params.cache_latency.ps()) * width;
                rob.push_back((tick, usable));
                mshrs.push(usable);
                next_fetch = tick + slot;
            } else {
                end = end.max(tick);
            }
            program.pop_front();
        }
    }
    (arrivals, end.div_ceil(width))
}

fn cases() -> impl Strategy<Value = Vec<Case>> {
    let gap = prop_oneof![3 => 0..4u32, 3 => 0..30u32, 1 => 0..200u32];
    let stall = prop_oneof![4 => Just(0u64), 1 => 1..60u64];
    let latency = prop_oneof![0..10u64, 0..400u64];
    let case = (gap, any::<bool>(), stall, latency).prop_map(|(gap, read, stall, latency)| Case {
        gap,
        kind: if read {
            Direction::Read
        } else {
            Direction::Write
        },
        stall,
        latency,
    });
    prop::collection::vec(case, 0..60)
}

fn params() -> impl Strategy<Value = CoreParams> {
    (1..9u64, 1..6u64, 0..40u64, 1..6usize, 0..20u64).prop_map(
        |(clock, width, window, mshrs, cache)| CoreParams {
            clock: Time::from_ps(clock),
            width,
            window: width + window,
            mshrs,
            store_queue: 1,
            cache_latency: Time::from_ps(cache),
        },
    )
}

proptest! {
    #![proptest_config(sardonyx_property::cases(1000))]
    #[test]
    fn the_closed_form_is_the_machine(
        params in params(), cases in cases(), trailing in 0..50u32, cycles in any::<bool>()
    ) {
        let unit = if cycles { GapUnit::Cycles } else { GapUnit::Instructions };
        prop_assert_eq!(fast(&params, unit, &cases, trailing), slow(&params, unit, &cases, trailing));
    }
}

/// Table I of ESD with EASY-PM's window.
fn esd() -> CoreParams {
    CoreParams {
        clock: Time::from_ps(500),
        width: 4,
        window: 192,
        mshrs: 16,
        store_queue: 1,
        cache_latency: Time::from_ps(17_500),
    }
}

fn reads(n: usize, gap: u32, latency: u64) -> Vec<Case> {
    let case = Case {
        gap,
        kind: Direction::Read,
        stall: 0,
        latency,
    };
    vec![case; n]
}

#[test]
fn ipc_answers_to_read_latency_and_never_exceeds_the_width() {
    let cycles = |latency| {
        let (_, ps) = fast(&esd(), GapUnit::Instructions, &reads(500, 99, latency), 0);
        ps / 500
    };
    let instructions = 500 * 100;
    let mut before = cycles(0);
    assert!(before >= instructions / 4);
    for latency in [75_000, 150_000, 300_000, 600_000] {
        let now = cycles(latency);
        assert!(
            now > before * 5 / 4,
            "{latency} ps: {now} cycles, {before} before"
        );
        before = now;
    }
    // 192 instructions hold two reads of every hundred: a pair costs one latency.
    let pair = (600_000 + 17_500) / 500;
    assert!(
        before.abs_diff(pair * 250) < pair * 25,
        "{before} cycles, not about {}",
        pair * 250
    );
}

#[test]
fn writes_cost_nothing_until_memory_stalls() {
    let mut cases = vec![
        Case {
            gap: 99,
            kind: Direction::Write,
            stall: 0,
            latency: 0
        };
        100
    ];
    let (arrivals, free) = fast(&esd(), GapUnit::Instructions, &cases, 0);
    assert_eq!(
        free,
        9_899 * 125 + 500,
        "four instructions a cycle, and one to retire the last"
    );
    assert_eq!(arrivals[0], 99 * 125);
    cases[50].stall = 1_000_000;
    let (_, stalled) = fast(&esd(), GapUnit::Instructions, &cases, 0);
    assert_eq!(stalled, free + 1_000_000);
}

#[test]
fn a_cycle_of_gap_is_a_cycle() {
    let (arrivals, _) = fast(&esd(), GapUnit::Cycles, &reads(2, 1000, 0), 0);
    assert_eq!(arrivals, [500_000, 1_000_125]);
}

#[test]
fn a_cycle_of_gap_is_one_of_the_traces_own_clock() {
    let folder = tempfile::tempdir().unwrap();
    let records: Vec<Record> = (0..6).map(|line| write(10, line, 7)).collect();
    let arrivals = |clock_mhz: f64| {
        let source = clocked(folder.path(), clock_mhz.into(), &records);
        let stream = Stream::new(source, Copies::ONE).unwrap();
        let mut core = TraceCore::new(0, &esd(), stream);
        let mut arrivals = Vec::new();
        while let Some(now) = core.next_arrival() {
            arrivals.push(now.ps());
            core.take(now).unwrap();
        }
        arrivals
    };
    let every = |ps: u64| (1..=6).map(|n| n * ps).collect::<Vec<u64>>();
    assert_eq!(arrivals(2000.0), every(5_000));
    assert_eq!(arrivals(400.0), every(25_000));
    // 10 cycles of DDR4-2400 are 8333.3 ps: no whole number of slots of 125 ps, and none is lost.
    for (arrival, n) in arrivals(1200.0).into_iter().zip(1..) {
        assert_eq!(arrival, n * 25_000 / 3 / 125 * 125);
    }
}

#[test]
fn a_clock_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for clock in [
        0.into(),
        (-5).into(),
        1e12.into(),
        serde_json::json!("fast"),
    ] {
        let source = clocked(folder.path(), clock, &[read(1, 1)]);
        let error = Stream::new(source, Copies::ONE).err().unwrap();
        assert!(error.to_string().contains("clock_mhz is"), "{error}");
    }
}

#[test]
#[ignore = "by hand: a measurement, cargo test --release cpu -- --ignored --nocapture"]
fn host_time_of_a_record() {
    let spec = sardonyx::trace::Spec {
        records: 2_000_000,
        ..Default::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    sardonyx::trace::synth_to_file(spec, 1, &path, &mut |_, _| ()).unwrap();
    let time = |what: &str, run: &mut dyn FnMut()| {
        let start = std::time::Instant::now();
        run();
        println!(
            "{what}: {:.1} ns a record",
            start.elapsed().as_nanos() as f64 / 2e6
        );
    };
    let open = || sardonyx::trace::Source::open(&path).unwrap();
    let stream = || {
        Stream::new(
            open(),
            Copies {
                copy: 1,
                of: 8,
                distinct: 1.0,
            },
        )
        .unwrap()
    };
    time("source", &mut || {
        let (mut source, mut batch) = (open(), Vec::new());
        while source.next_batch(&mut batch).unwrap() {}
    });
    time("source, stream", &mut || {
        let mut stream = stream();
        while stream.next_access().unwrap().is_some() {}
    });
    time("source, stream, core", &mut || {
        let mut core = TraceCore::new(0, &esd(), stream());
        let mut due = VecDeque::new();
        while !core.finished() {
            match (core.next_arrival(), due.front()) {
                (Some(now), Some(&(at, id))) if at <= now => {
                    due.pop_front();
                    core.read_done(id, at);
                }
                (Some(now), _) => {
                    if let Some(id) = core.take(now).unwrap().read {
                        due.push_back((now + Time::from_ps(150_000), id));
                    }
                }
                (None, Some(&(at, id))) => {
                    due.pop_front();
                    core.read_done(id, at);
                }
                (None, None) => unreachable!(),
            }
        }
    });
}
