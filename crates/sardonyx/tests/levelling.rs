//! Start-Gap wear levelling: how lines lie beside a plain array in which each move is made by hand, the time and the
//! energy of moves beside sums, lifetimes beside an array that is worn write by write, and power cuts.

use crate::memory_common::{drain, request};
use sardonyx::config::Machine;
use sardonyx::controller::{Class, Write};
use sardonyx::line::{Line, Logical, Place};
use sardonyx::medium::levelling::rotations;
use sardonyx::memory::Memory;
use sardonyx::plan::At;
use sardonyx::stats::{Cause, Direction};
use sardonyx::units::Time;
use sardonyx_base::random::SplitMix64;

/// Data of 512 lines: gaps lie behind them, then registers.
const LINES: u64 = 512;
const REGION: u64 = 8;
const EACH: u64 = 3;

fn machine(registers: &str) -> Machine {
    let (region, each) = (REGION.to_string(), EACH.to_string());
    let sets = [
        ("medium.geometry.rows", "1"),
        ("medium.levelling.scheme", "start-gap"),
        ("medium.levelling.region_lines", &region),
        ("medium.levelling.writes_per_move", &each),
        ("medium.levelling.registers", registers),
    ];
    Machine::load("esd", &sets).unwrap()
}

fn rest(memory: &mut Memory) {
    drain(memory);
    memory.resume();
}

fn write(memory: &mut Memory, line: u64, data: &Line) {
    while !memory.accepts() {
        memory.advance_until(Time::NEVER);
    }
    let now = memory.now();
    memory.write(
        request(Direction::Write, 0, now),
        now,
        Write::new(Logical(line), At::past(data)),
    );
}

fn read(memory: &mut Memory, line: u64) -> Option<Line> {
    while !memory.accepts() {
        memory.advance_until(Time::NEVER);
    }
    let now = memory.now();
    memory
        .read(
            request(Direction::Read, 0, now),
            now,
            Logical(line),
            Class::Data,
        )
        .value
}

/// A region: which line each of its places holds, found by looking, moved by hand.
struct Region {
    places: Vec<Option<u64>>,
    writes: u64,
    moves: u64,
}

impl Region {
    fn new(first: u64) -> Region {
        let lines = (first..first + REGION).map(Some);
        Region {
            places: lines.chain([None]).collect(),
            writes: 0,
            moves: 0,
        }
    }

    fn write(&mut self) {
        self.writes += 1;
        if self.writes.is_multiple_of(EACH) {
            let gap = self.places.iter().position(Option::is_none).unwrap();
            let before = (gap + self.places.len() - 1) % self.places.len();
            self.places.swap(gap, before);
            self.moves += 1;
        }
    }
}

#[test]
fn lines_lie_where_an_array_with_moves_by_hand_has_them() {
    for registers in ["reserve", "group", "after"] {
        let mut memory = Memory::new(&machine(registers), "no-encryption").unwrap();
        let mut regions: Vec<Region> = (0..4).map(|number| Region::new(number * REGION)).collect();
        let mut newest: Vec<Option<Line>> = vec![None; 4 * REGION as usize];
        let mut draw = SplitMix64(11);
        for round in 0..60 {
            for _ in 0..draw.below(40) {
                // Half of all are of a few lines; the last region's other lines are never written.
                let line = match draw.below(4) {
                    0 | 1 => draw.below(3) * REGION,
                    2 => 3 * REGION + 5,
                    _ => draw.below(3 * REGION),
                };
                assert_eq!(read(&mut memory, line), newest[line as usize], "{line}");
                let mut data = [0; 64];
                data.iter_mut().for_each(|byte| *byte = draw.draw() as u8);
                write(&mut memory, line, &data);
                newest[line as usize] = Some(data);
                regions[(line / REGION) as usize].write();
            }
            rest(&mut memory);
            for (number, region) in regions.iter().enumerate() {
                for (position, line) in region.places.iter().enumerate() {
                    let Some(line) = line else { continue };
                    let place = match position as u64 {
                        REGION => LINES + number as u64,
                        position => number as u64 * REGION + position,
                    };
                    let held = memory.image().read(Place(place));
                    assert_eq!(held, newest[*line as usize], "{registers} {round} {line}");
                }
            }
        }
        let moves: u64 = regions.iter().map(|region| region.moves).sum();
        assert!(regions.iter().all(|region| region.moves > 2 * (REGION + 1)));
        assert_eq!(memory.moves(), Some(moves));
        // An orderly shutdown, and a fresh controller over what is there.
        memory.settle();
        let image = memory.image().copy();
        let mut after = Memory::over(&machine(registers), "no-encryption", image).unwrap();
        for (line, data) in newest.iter().enumerate() {
            assert_eq!(
                after.read_at_once(Logical(line as u64)),
                *data,
                "{registers} {line}"
            );
        }
    }
}

const WRITES: u64 = 288;

#[test]
fn a_move_is_a_read_and_a_write_each_so_many_writes() {
    for (registers, writes_of_a_move) in [("reserve", 1), ("group", 2), ("after", 2)] {
        let mut memory = Memory::new(&machine(registers), "no-encryption").unwrap();
        for number in 0..WRITES {
            write(&mut memory, number % 16, &[number as u8; 64]);
            rest(&mut memory);
        }
        let moved = memory.ledger().total(Cause::Levelling);
        assert_eq!(memory.moves(), Some(WRITES / EACH));
        let reads = memory.service(Direction::Read);
        assert_eq!(
            moved.medium_reads + reads.short_cuts,
            WRITES / EACH,
            "{registers}"
        );
        assert_eq!(
            moved.medium_writes,
            WRITES / EACH * writes_of_a_move,
            "{registers}"
        );
        let all = memory.ledger().grand_total();
        assert_eq!(
            all.medium_writes,
            WRITES + moved.medium_writes,
            "{registers}"
        );
        let energy = &machine(registers).engine.medium.energy;
        let expected = moved.medium_writes as f64 * energy.write.nj();
        let reads = moved.energy.nj() - expected;
        let most = moved.medium_reads as f64 * energy.read.nj();
        assert!(
            reads >= 0.0 && reads <= most + 1e-9,
            "{registers}: {reads} of {most}"
        );
    }
}

/// Wear by hand: a place takes what the line that it holds takes, in turn, until one is worn out.
fn worn_by_hand(writes: &[u64], endurance: u64) -> u64 {
    let lines = writes.len();
    let mut places: Vec<Option<usize>> = (0..lines).map(Some).chain([None]).collect();
    let mut worn = vec![0; lines + 1];
    for moves in 0.. {
        if worn.iter().any(|worn| *worn >= endurance) {
            return moves;
        }
        for (place, line) in places.iter().enumerate() {
            // So many writes of each line between two moves.
            worn[place] += line.map_or(0, |line| writes[line]);
        }
        let gap = places.iter().position(Option::is_none).unwrap();
        let before = (gap + lines) % (lines + 1);
        places.swap(gap, before);
        worn[gap] += 1;
    }
    unreachable!()
}

#[test]
fn a_lifetime_is_that_of_an_array_that_is_worn_by_hand() {
    let mut draw = SplitMix64(5);
    for _ in 0..40 {
        let lines = 3 + draw.below(14) as usize;
        let mut writes: Vec<u64> = (0..lines).map(|_| draw.below(3)).collect();
        writes[draw.below(lines as u64) as usize] += 1 + draw.below(60);
        let endurance = [20_000, 100_000][draw.below(2) as usize];
        let moves = worn_by_hand(&writes, endurance) as f64;
        let each: Vec<f64> = writes
            .iter()
            .map(|writes| 1.0 + (writes * lines as u64) as f64)
            .collect();
        // The gap is in the middle of a rotation at first and in the last, so a place has a part of one more or less.
        let part = each.iter().copied().fold(0.0, f64::max);
        let [least, most] = [-part, part]
            .map(|part| rotations(&each, endurance as f64 + part) * (lines + 1) as f64);
        let one = (lines + 1) as f64;
        assert!(
            (least - one..=most + one).contains(&moves),
            "{writes:?} {endurance}: {moves} not within {least} and {most}"
        );
    }
}

#[test]
#[ignore = "by hand: prints what docs/simulator/wear.md shows"]
fn lifetimes_with_lines_that_move_beside_those_without() {
    use sardonyx::machine::recordings::{self, Options};
    use sardonyx::trace::Source;

    for trace in ["redis", "x264", "cc1"] {
        for design in ["no-encryption", "baseline", "esd"] {
            let run = |sets: &[(&str, &str)]| {
                let machine = Machine::load("esd", sets).unwrap();
                let path = format!(
                    "{}/../../traces/{trace}.parquet",
                    env!("CARGO_MANIFEST_DIR")
                );
                let source = Source::open(path).unwrap().limit(60_000);
                let options = Options::default();
                let ran = recordings::run(&machine, design, vec![source], options, &mut |_| true);
                let all = serde_json::to_value(&ran.unwrap().figures).unwrap();
                move |name: &str| all[name].as_f64().unwrap_or(f64::NAN)
            };
            let scheme = ("medium.levelling.scheme", "start-gap");
            let still = run(&[]);
            println!(
                "{trace} {design}: ideal {:.3e} y",
                still("lifetime_ideal_years")
            );
            for registers in ["reserve", "group"] {
                for region in ["4096", "262144"] {
                    let moving = run(&[
                        scheme,
                        ("medium.levelling.registers", registers),
                        ("medium.levelling.region_lines", region),
                    ]);
                    let over = |name: &str| moving(name) / still(name);
                    println!(
                        "  {registers} {region}: none {:.3e} levelled {:.3e} y, {} moves; times: writes {:.4}, \
                         write latency {:.4}, read latency {:.4}, energy {:.4}",
                        moving("lifetime_none_years"),
                        moving("lifetime_levelled_years"),
                        moving("levelling_moves"),
                        over("medium_writes"),
                        over("mean_write_latency_ns"),
                        over("mean_read_latency_ns"),
                        over("energy_nj"),
                    );
                }
            }
        }
    }
}
