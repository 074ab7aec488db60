//! A link between processor and memory: what it adds, what goes through it, and that it changes no byte.

use crate::memory_common::request;
use sardonyx::config::Machine;
use sardonyx::controller::{Class, Write};
use sardonyx::line::{Line, Logical};
use sardonyx::machine::curve::{Pattern, SteadyLoad, point};
use sardonyx::memory::Memory;
use sardonyx::plan::At;
use sardonyx::stats::Direction;
use sardonyx::units::Time;
use sardonyx_base::random::SplitMix64;

/// Nanoseconds, as machine files have them, that are whole cycles of `ddr4-2400`'s clock of 0.833 ns.
const CYCLES_8: &str = "6.664";
const CYCLES_3: &str = "2.499";

fn machine(sets: &[(&str, &str)]) -> Machine {
    Machine::load("ddr4-2400", sets).unwrap()
}

fn linked() -> Machine {
    machine(&[
        ("link.down_ns", CYCLES_8),
        ("link.up_ns", CYCLES_8),
        ("link.read_ns", CYCLES_3),
        ("link.write_ns", CYCLES_3),
        ("link.line_ns", CYCLES_3),
        ("link.done_ns", CYCLES_3),
    ])
}

fn alone(machine: &Machine) -> (Time, Time) {
    let mut memory = Memory::new(machine, "no-encryption").unwrap();
    memory.read(
        request(Direction::Read, 0, Time::ZERO),
        Time::ZERO,
        Logical(9),
        Class::Data,
    );
    while !memory.has_answers() {
        memory.advance_until(Time::NEVER);
    }
    let read = memory.answers().next().unwrap().at;
    let mut memory = Memory::new(machine, "no-encryption").unwrap();
    let line: Line = [7; 64];
    let write = Write::new(Logical(9), At::past(&line));
    memory.write_announced(request(Direction::Write, 1, Time::ZERO), Time::ZERO, write);
    while !memory.has_acceptances() {
        memory.advance_until(Time::NEVER);
    }
    let accepted = memory.acceptances().next().unwrap().at;
    (read, accepted)
}

#[test]
fn a_lone_request_takes_what_the_link_takes_longer() {
    let (read, accepted) = alone(&machine(&[]));
    let (over_read, over_accepted) = alone(&linked());
    let crossing = Time::from_ps(2 * (6_664 + 2_499));
    assert_eq!(over_read - read, crossing);
    assert_eq!(over_accepted - accepted, crossing);
}

fn load(reads_per_mille: u32) -> SteadyLoad {
    SteadyLoad {
        reads_per_mille,
        interval_ps: 0.0,
        outstanding: 256,
        pattern: Pattern::Streams(16),
        lines: 1 << 20,
        requests: 30_000,
        seed: 1,
    }
}

/// Each way is busy with its own messages; the fuller one is the bound.
#[test]
fn the_bandwidth_at_the_end_is_what_the_fuller_way_lets_through() {
    let machine = Machine::load::<&str, &str>("cxl", &[]).unwrap();
    for reads_per_mille in [20, 360, 580, 740, 900, 1000] {
        let share = f64::from(reads_per_mille) / 1000.0;
        let down = share * 0.531 + (1.0 - share) * 2.656;
        let up = share * 2.391 + (1.0 - share) * 0.177;
        let bound = 64.0 / down.max(up);
        let found = point(&machine, "no-encryption", &load(reads_per_mille)).unwrap();
        let found = found.bytes_per_second / 1e9;
        assert!(
            found <= bound * 1.003 && found > bound * 0.97,
            "{reads_per_mille}: {found} of {bound} GB/s"
        );
    }
}

#[test]
fn requests_to_read_wait_behind_writes_only_if_told_so() {
    let sets = |first| [("link.first", first)];
    let read = |first| {
        let machine = Machine::load("cxl", &sets(first)).unwrap();
        let found = point(&machine, "no-encryption", &load(20)).unwrap();
        found.reads.mean_ns().unwrap()
    };
    let (reads_first, oldest_first) = (read("reads"), read("oldest"));
    // 256 requests wait in one queue of 2.6 ns each.
    assert!(
        reads_first < 200.0 && oldest_first > 500.0,
        "{reads_first}, {oldest_first}"
    );
}

/// The same requests leave the same bytes, and each read brings what was written last, whatever the design.
#[test]
fn a_link_changes_no_byte() {
    for design in ["no-encryption", "sca", "esd", "dewrite", "easy-pm"] {
        let images = [machine(&[]), linked()].map(|machine| {
            let mut memory = Memory::new(&machine, design).unwrap();
            let mut draw = SplitMix64(5);
            let mut held = vec![None; 64];
            for tag in 0..600 {
                let now = memory.now();
                let line = draw.below(64);
                if draw.below(3) == 0 {
                    let read = request(Direction::Read, tag, now);
                    let got = memory.read(read, now, Logical(line), Class::Data);
                    assert_eq!(got.value, held[line as usize], "{design}");
                } else {
                    let data: Line = [draw.below(9) as u8; 64];
                    held[line as usize] = Some(data);
                    let write = Write::new(Logical(line), At::past(&data));
                    memory.write(request(Direction::Write, tag, now), now, write);
                }
                while !memory.accepts() {
                    memory.advance_until(Time::NEVER);
                }
            }
            loop {
                while memory.next_event() != Time::NEVER {
                    memory.advance_until(Time::NEVER);
                }
                if !memory.empty_queues(true) {
                    break;
                }
            }
            memory.assert_at_rest();
            memory.settle();
            (0..64)
                .map(|line| memory.read_at_once(Logical(line)))
                .collect::<Vec<_>>()
        });
        assert_eq!(images[0], images[1], "{design}");
    }
}
