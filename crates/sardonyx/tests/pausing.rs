//! Array writes that reads interrupt, beside a model of one bank that goes from cycle to cycle; what that costs; cuts.

use crate::memory_common::request;
use sardonyx::config::Machine;
use sardonyx::controller::{Class, Write};
use sardonyx::engine::Interruptions;
use sardonyx::line::Logical;
use sardonyx::medium::params::Timing;
use sardonyx::memory::Memory;
use sardonyx::plan::At;
use sardonyx::stats::Direction;
use sardonyx::units::Time;
use sardonyx_base::random::SplitMix64;

/// One bank of one rank, so that every access meets every other.
const ONE_BANK: [(&str, &str); 5] = [
    ("medium.geometry.banks", "1"),
    ("medium.queues.scheduler", "fcfs"),
    ("medium.timing.tWP", "61"),
    ("medium.timing.tWR", "3"),
    ("medium.timing.tRAS", "11"),
];

fn machine(sets: &[(&str, &str)]) -> Machine {
    crate::common::machine("esd", sets)
}

/// What is asked at a cycle: a read or a write of a row.
#[derive(Clone, Copy, Debug)]
struct Ask {
    cycle: u64,
    kind: Direction,
    row: u64,
}

type Answers = (Vec<u64>, Interruptions);

fn simulated(machine: &Machine, asks: &[Ask]) -> (Answers, Memory) {
    let mut memory = Memory::new(machine, "no-encryption").unwrap();
    let timing = &machine.engine.medium.timing;
    let clock = timing.clock.ps();
    let lines = machine.engine.medium.geometry.columns;
    let mut answers = vec![0; asks.len()];
    let mut take = |memory: &mut Memory| {
        for answer in memory.answers() {
            answers[answer.request.tag as usize] = answer.at.ps() / clock;
        }
    };
    for (tag, ask) in asks.iter().enumerate() {
        let now = Time::from_ps(ask.cycle * clock);
        while memory.next_event() <= now {
            memory.advance_until(now);
            take(&mut memory);
        }
        let request = request(ask.kind, tag as u64, now);
        // Lines of their own, so that nothing is forwarded or merged.
        let line = Logical(ask.row * lines + tag as u64 % lines);
        match ask.kind {
            Direction::Read => {
                memory.read(request, now, line, Class::Data);
            }
            Direction::Write => {
                memory.write(
                    request,
                    now,
                    Write::new(line, At::past(&[tag as u8 + 1; 64])),
                );
            }
        }
    }
    while memory.next_event() != Time::NEVER {
        memory.advance_until(Time::NEVER);
        take(&mut memory);
    }
    let count = memory.interruptions().unwrap_or_default();
    ((answers, count), memory)
}

/// What a policy is, in plain values.
#[derive(Clone, Copy, Debug)]
struct Policy {
    word: &'static str,
    iterations: u64,
    threshold: u64,
    times: u64,
}

/// The write that the bank has: iterations make `tWP` of it, and it is stopped or not.
struct Array {
    ask: usize,
    /// Cycles of the pulse that are done, while it does not run from `from` on.
    done: u64,
    from: u64,
    runs: bool,
    times: u64,
    /// Without its array write, from when on the bank may be precharged, read and written because of it.
    holds: [u64; 3],
}

/// One bank, cycle by cycle: first a read or write is chosen, then a command goes.
fn modelled(t: &Timing, policy: Policy, asks: &[Ask]) -> Answers {
    let (mut answers, mut count) = (vec![0; asks.len()], Interruptions::default());
    let (mut waiting, mut next): (Vec<usize>, usize) = (Vec::new(), 0);
    let mut chosen: Option<usize> = None;
    let (mut row, mut opened, mut closed, mut read): (Option<u64>, u64, u64, Option<u64>) =
        (None, 0, 0, None);
    // Until when writes of before keep the bank: precharge, read, write.
    let mut kept = [0u64; 3];
    let mut array: Option<Array> = None;
    let transfer = t.tBURST.max(t.tCCD);
    for cycle in 0..1_000_000 {
        while next < asks.len() && asks[next].cycle < cycle {
            waiting.push(next);
            next += 1;
        }
        let in_array = |one: &mut Array| one.runs && cycle >= one.from + t.tWP - one.done;
        if let Some(one) = array.take_if(in_array) {
            let end = one.from + t.tWP - one.done;
            for (kept, holds) in kept.iter_mut().zip(one.holds) {
                *kept = (*kept).max(end + holds);
            }
            // NVMain counts the whole column slot before the array.
            answers[one.ask] = end + transfer - t.tBURST + t.off_chip;
        }
        if chosen.is_none() {
            let of = |kind| waiting.iter().position(|&ask| asks[ask].kind == kind);
            let write = of(Direction::Write).filter(|_| array.is_none());
            chosen = match of(Direction::Read) {
                Some(read) => Some(waiting.remove(read)),
                None => write.map(|write| waiting.remove(write)),
            };
        }
        let to_read = chosen.is_some_and(|ask| asks[ask].kind == Direction::Read);
        let reads_wait = to_read || waiting.iter().any(|&ask| asks[ask].kind == Direction::Read);
        // The bank's precharge, by all but a write that runs.
        let quiet = [opened + t.tRAS, kept[0]]
            .into_iter()
            .chain(read.map(|read| read + (t.tBURST + t.tRTP).saturating_sub(t.tCCD)));
        let quiet = quiet.max().unwrap_or(0);
        if let Some(one) = &mut array {
            if one.runs && to_read && one.from <= cycle && one.times < policy.times {
                let done = one.done + cycle - one.from;
                let cancels = policy.word != "pause" && 100 * done < policy.threshold * t.tWP;
                let iteration = t.tWP.div_ceil(policy.iterations);
                let stops = (0..).map(|i| i * iteration).find(|at| *at >= done).unwrap();
                if cancels || policy.word != "cancel" && stops < t.tWP {
                    let until = if cancels { cycle } else { cycle + stops - done };
                    for (kept, holds) in kept.iter_mut().zip(one.holds) {
                        *kept = (*kept).max(until + holds);
                    }
                    one.done = if cancels { 0 } else { stops };
                    (one.runs, one.times) = (false, one.times + 1);
                    match cancels {
                        true => count.cancelled += 1,
                        false => count.paused += 1,
                    }
                    continue;
                }
            } else if !one.runs && !reads_wait && chosen.is_none() && quiet <= cycle {
                (one.runs, one.from) = (true, cycle);
                one.holds = [t.tWR, t.tWTR, 0];
                continue;
            }
        }
        let Some(ask) = chosen else {
            if next == asks.len() && waiting.is_empty() && array.is_none() {
                return (answers, count);
            }
            continue;
        };
        if array.as_ref().is_some_and(|one| one.runs) {
            continue; // the bank waits for its array
        }
        match row {
            Some(open) if open != asks[ask].row => {
                if cycle >= quiet {
                    (row, closed) = (None, cycle + t.tRP);
                }
            }
            None => {
                if cycle >= closed {
                    (row, opened) = (Some(asks[ask].row), cycle);
                }
            }
            Some(_) if to_read => {
                let after = read.map_or(0, |read| read + transfer);
                if cycle >= (opened + t.tRCD).max(kept[1]).max(after) {
                    read = Some(cycle);
                    answers[ask] = cycle + t.tCL + t.tBURST + t.off_chip;
                    chosen = None;
                }
            }
            Some(_) => {
                let after = read.map_or(0, |read| read + t.tCL + t.tBURST + t.tRTRS - t.tCWD);
                if cycle >= (opened + t.tRCD).max(kept[2]).max(after) {
                    array = Some(Array {
                        ask,
                        done: 0,
                        from: cycle + t.tCWD + t.tBURST,
                        runs: true,
                        times: 0,
                        holds: [t.tWR, t.tWTR, 0],
                    });
                    chosen = None;
                }
            }
        }
    }
    panic!("the bank never came to rest");
}

#[test]
fn one_bank_pauses_and_cancels_as_a_model_from_cycle_to_cycle_has_it() {
    let mut sum = Interruptions::default();
    for (word, iterations, threshold, times) in [
        ("pause", 8, 0, 4),
        ("pause", 3, 0, 1),
        ("cancel", 1, 75, 4),
        ("cancel", 8, 100, 2),
        ("both", 5, 40, 3),
    ] {
        let policy = Policy {
            word,
            iterations,
            threshold,
            times,
        };
        let [iterations, threshold, times] =
            [iterations, threshold, times].map(|number: u64| number.to_string());
        let mut sets = ONE_BANK.to_vec();
        sets.push(("medium.pausing.policy", word));
        sets.push(("medium.pausing.times", &times));
        if ["pause", "both"].contains(&word) {
            sets.push(("medium.pausing.iterations", &iterations));
        }
        if ["cancel", "both"].contains(&word) {
            sets.push(("medium.pausing.threshold", &threshold));
        }
        // A column slot may be longer than the data in it.
        let machines = ["4", "7"].map(|slot| {
            let mut sets = sets.clone();
            sets.push(("medium.timing.tCCD", slot));
            machine(&sets)
        });
        for seed in 0..150 {
            let machine = &machines[seed as usize % 2];
            let mut draw = SplitMix64(seed);
            let mut cycle = 0;
            let asks: Vec<Ask> = (0..24)
                .map(|_| {
                    cycle += [0, 3, 40, 130][draw.below(4) as usize] + draw.below(50);
                    let kind = match draw.below(3) {
                        0 => Direction::Write,
                        _ => Direction::Read,
                    };
                    let row = draw.below(3);
                    Ask { cycle, kind, row }
                })
                .collect();
            let (found, memory) = simulated(machine, &asks);
            let wanted = modelled(&machine.engine.medium.timing, policy, &asks);
            assert_eq!(found, wanted, "{policy:?}, seed {seed}: {asks:?}");
            // Every write is in the array in the end, whatever became of it on the way.
            let lines = machine.engine.medium.geometry.columns;
            for (tag, ask) in asks.iter().enumerate() {
                if ask.kind == Direction::Write {
                    let place = sardonyx::line::Place(ask.row * lines + tag as u64);
                    assert_eq!(memory.image().read(place), Some([tag as u8 + 1; 64]));
                }
            }
            sum.paused += found.1.paused;
            sum.cancelled += found.1.cancelled;
        }
    }
    assert!(sum.paused > 500 && sum.cancelled > 500, "{sum:?}");
}

/// A write of 61 cycles whose array write begins in cycle 44, and a read that comes `after` so many of them.
fn met(policy: &str, after: u64) -> ([u64; 2], Memory) {
    let mut sets = ONE_BANK.to_vec();
    sets.push(("medium.pausing.policy", policy));
    let ask = |cycle, kind, row| Ask { cycle, kind, row };
    let asks = [
        ask(0, Direction::Write, 0),
        // Seen a cycle after it is asked.
        ask(1 + 30 + 8 + after - 1, Direction::Read, 1),
    ];
    let ((answers, _), memory) = simulated(&machine(&sets), &asks);
    ([answers[0], answers[1]], memory)
}

#[test]
fn a_cancelled_write_costs_what_was_done_of_it_and_wears_its_line_again() {
    let energy = |memory: &Memory| memory.ledger().grand_total().energy.nj();
    let (plain, still) = met("none", 20);
    let (paused, gentle) = met("pause", 20);
    let (cancelled, wasteful) = met("cancel", 20);
    // Iterations of 8 cycles: the read waits for 4 in place of 41.
    assert_eq!((plain[1] - paused[1], plain[1] - cancelled[1]), (37, 41));
    // A write that pauses has 24 cycles behind it when it goes on, one that is cancelled none.
    let read_done = |read: u64| read as i64;
    let goes_on = |answers: [u64; 2]| answers[0] as i64 - read_done(answers[1]);
    assert_eq!(goes_on(cancelled) - goes_on(paused), 24);
    assert_eq!(energy(&still), energy(&gentle));
    let write = machine(&ONE_BANK).engine.medium.energy.write.nj();
    let spent = energy(&wasteful) - energy(&still);
    assert!((spent - write * 20.0 / 61.0).abs() < 1e-5, "{spent}");
    let writes = |memory: &Memory| memory.image().wear().max_line_writes;
    assert_eq!([&still, &gentle, &wasteful].map(writes), [1, 1, 1]);
    // Too late to cancel, and too late to pause.
    assert_eq!(met("cancel", 46).0, met("none", 46).0);
    assert_eq!(met("pause", 57).0, met("none", 57).0);
    assert_ne!(met("both", 46).0, met("none", 46).0);
}

/// When the read that interrupts it is answered, its write is accepted and no more than that.
#[test]
fn an_interrupted_write_is_not_in_the_array_until_it_is_done() {
    for policy in ["pause", "cancel", "both"] {
        let mut sets = ONE_BANK.to_vec();
        sets.push(("medium.pausing.policy", policy));
        let machine = machine(&sets);
        let mut memory = Memory::new(&machine, "no-encryption").unwrap();
        let clock = machine.engine.medium.timing.clock.ps();
        let ask = |kind, cycle: u64| request(kind, cycle, Time::from_ps(cycle * clock));
        let line = Logical(0);
        let write = ask(Direction::Write, 0);
        memory.write(write, write.arrival, Write::new(line, At::past(&[7; 64])));
        let read = ask(Direction::Read, 60);
        memory.advance_until(read.arrival);
        let other = Logical(machine.engine.medium.geometry.columns);
        memory.read(read, read.arrival, other, Class::Data);
        let mut order = Vec::new();
        while memory.next_event() != Time::NEVER {
            memory.advance_until(memory.next_event());
            let in_array = memory.image().read(sardonyx::line::Place(0)).is_some();
            for answer in memory.answers() {
                assert_eq!(in_array, answer.request.kind == Direction::Write);
                order.push(answer.request.tag);
            }
        }
        assert_eq!(order, [60, 0], "{policy}");
    }
}

#[test]
fn what_cannot_be_interrupted_is_an_error() {
    for (machine, sets) in [
        ("optane", [("medium.pausing.policy", "pause"); 2]),
        ("sca", [("medium.pausing.policy", "cancel"); 2]),
        (
            "esd",
            [
                ("medium.pausing.policy", "cancel"),
                ("medium.cells.coding", "changed"),
            ],
        ),
    ] {
        let told = Machine::load(machine, &sets).unwrap_err().to_string();
        assert!(told.contains(sets[0].0), "{machine} {sets:?}: {told}");
    }
}
