//! A memory module's buffer: its counts beside a small model's, its times beside sums, and that it changes no byte.

use crate::memory_common::{drain, request};
use sardonyx::config::Machine;
use sardonyx::controller::{Class, Write};
use sardonyx::line::{Line, Logical};
use sardonyx::machine::accesses::{Load, Operation, Order, Point, point};
use sardonyx::memory::Memory;
use sardonyx::plan::At;
use sardonyx::stats::Direction;
use sardonyx::units::Time;
use sardonyx_base::random::SplitMix64;

fn machine(sets: &[(&str, &str)]) -> Machine {
    Machine::load("optane", sets).unwrap()
}

fn settle(memory: &mut Memory) {
    drain(memory);
    memory.acceptances().for_each(drop);
}

/// The buffer as a list, the block that was used last at its end; nothing overlaps, so it has no times. One entry is
/// kept free for what comes next.
struct Model {
    blocks: usize,
    lines: u64,
    /// Block, lines that are here, lines that are new.
    held: Vec<(u64, u64, u64)>,
    reads: u64,
    writes: u64,
}

impl Model {
    fn access(&mut self, line: u64, is_read: bool) {
        let (block, bit) = (line / self.lines, 1 << (line % self.lines));
        let whole = u64::MAX >> (64 - self.lines);
        let at = self.held.iter().position(|held| held.0 == block);
        let (_, mut here, mut new) = at.map_or((block, 0, 0), |at| self.held.remove(at));
        if is_read && here & bit == 0 {
            self.reads += 1;
            here = whole;
        } else if !is_read {
            here |= bit;
            new |= bit;
            if new == whole {
                self.writes += 1;
                new = 0;
            }
        }
        self.held.push((block, here, new));
        if self.held.len() == self.blocks {
            self.writes += u64::from(self.held.remove(0).2 != 0);
        }
    }
}

#[test]
fn one_access_after_another_moves_the_blocks_that_a_small_model_moves() {
    for (blocks, lines, span) in [(4, 4, 64), (16, 4, 100), (8, 1, 40), (2, 16, 90)] {
        let sets = [
            ("medium.buffer.blocks", blocks.to_string()),
            ("medium.buffer.lines", lines.to_string()),
            ("medium.buffer.victim", "oldest".to_owned()),
        ];
        let sets: Vec<(&str, &str)> = sets.iter().map(|(key, value)| (*key, &value[..])).collect();
        let mut memory = Memory::new(&machine(&sets), "no-encryption").unwrap();
        let mut model = Model {
            blocks: blocks as usize,
            lines,
            held: Vec::new(),
            reads: 0,
            writes: 0,
        };
        let mut draw = SplitMix64(blocks);
        let mut line = 0;
        for _ in 0..3_000 {
            // Often the next line, so that blocks become whole.
            line = if draw.below(3) > 0 {
                line + 1
            } else {
                draw.below(span)
            } % span;
            let (now, is_read) = (memory.now(), draw.below(3) == 0);
            model.access(line, is_read);
            if is_read {
                memory.read(
                    request(Direction::Read, 0, now),
                    now,
                    Logical(line),
                    Class::Data,
                );
            } else {
                let data: Line = [draw.below(250) as u8; 64];
                let write = Write::new(Logical(line), At::past(&data));
                memory.write(request(Direction::Write, 0, now), now, write);
            }
            settle(&mut memory);
        }
        let moved = memory.blocks().unwrap();
        assert_eq!(
            (moved.reads, moved.writes),
            (model.reads, model.writes),
            "{blocks} x {lines}"
        );
        assert!(model.reads > 100 && model.writes > 100);
    }
}

fn load(operation: Operation, order: Order) -> Load {
    Load {
        operation,
        order,
        threads: 1,
        access: 1,
        outstanding: 1,
        shuffled: true,
        fenced: false,
        lines: 1 << 22,
        requests: 20_000,
        seed: 1,
    }
}

fn run(sets: &[(&str, &str)], load: &Load) -> Point {
    point(&machine(sets), "no-encryption", load).unwrap()
}

/// The link both ways, a command's cycle, the hit; three of four reads in order do without the cells.
#[test]
fn a_lone_read_takes_the_sum_of_its_parts() {
    let [order, anywhere] = [Order::Sequential, Order::Random].map(|order| {
        run(&[], &load(Operation::Read, order))
            .line
            .mean_ns()
            .unwrap()
    });
    let (hit, miss) = (90.4 + 35.25, 90.4 + 35.25 + 180.0);
    assert!((anywhere - miss).abs() < 1.5, "{anywhere} of {miss}");
    let mean = (3.0 * hit + miss) / 4.0;
    assert!((order - mean).abs() < 1.5, "{order} of {mean}");
}

/// What the cells let through is the bound: a block for each line anywhere, one for four in order.
#[test]
fn the_bandwidth_is_what_the_cells_let_through() {
    for (operation, interval) in [(Operation::Read, 39.75), (Operation::Write, 115.5)] {
        for (access, lines) in [(1, 1.0), (2, 2.0), (4, 4.0), (16, 4.0)] {
            let busy = Load {
                access,
                outstanding: 48,
                shuffled: false,
                ..load(operation, Order::Random)
            };
            let found = run(&[], &busy).bytes_per_second / 1e9;
            let bound = lines * 64.0 / interval;
            assert!(
                found <= bound * 1.01 && found > bound * 0.95,
                "{} of {access} lines: {found} of {bound}",
                operation.name()
            );
        }
    }
}

/// Written in halves, a region of whole blocks is written once while it fits and twice when it is far larger. With
/// the oldest block leaving there is nothing between the two.
#[test]
fn halves_of_blocks_meet_in_the_buffer_while_they_fit() {
    let written = |victim: &str, blocks: u64| {
        let halves = Load {
            access: 2,
            fenced: true,
            lines: 4 * blocks,
            requests: 12 * blocks.max(2_000),
            ..load(Operation::Write, Order::Halves)
        };
        let found = run(&[("medium.buffer.victim", victim)], &halves);
        let (lines, blocks) = found.blocks.unwrap();
        (blocks.writes * 4) as f64 / lines as f64
    };
    for (victim, blocks, least, most) in [
        ("random", 48, 0.99, 1.01),
        ("random", 96, 1.3, 1.6),
        ("random", 1024, 1.95, 2.05),
        ("oldest", 48, 0.99, 1.01),
        ("oldest", 96, 1.99, 2.01),
    ] {
        let found = written(victim, blocks);
        assert!(
            found >= least && found <= most,
            "{victim}, {blocks} blocks: {found}"
        );
    }
}

/// The same requests leave the same bytes, and each read brings what was written last, whatever the design.
#[test]
fn a_buffer_changes_no_byte() {
    for design in ["no-encryption", "sca", "esd", "dewrite", "easy-pm"] {
        let machines = [machine(&[]), machine(&[("medium.buffer.blocks", "0")])];
        let images = machines.map(|machine| {
            let mut memory = Memory::new(&machine, design).unwrap();
            let mut draw = SplitMix64(5);
            let mut held = vec![None; 600];
            for _ in 0..2_000 {
                let now = memory.now();
                let line = draw.below(600);
                if draw.below(3) == 0 {
                    let read = request(Direction::Read, 0, now);
                    let got = memory.read(read, now, Logical(line), Class::Data);
                    assert_eq!(got.value, held[line as usize], "{design}");
                } else {
                    let data: Line = [draw.below(9) as u8; 64];
                    held[line as usize] = Some(data);
                    let write = Write::new(Logical(line), At::past(&data));
                    memory.write(request(Direction::Write, 0, now), now, write);
                }
                while !memory.accepts() {
                    memory.advance_until(Time::NEVER);
                }
            }
            settle(&mut memory);
            memory.assert_at_rest();
            memory.settle();
            (0..600)
                .map(|line| memory.read_at_once(Logical(line)))
                .collect::<Vec<_>>()
        });
        assert_eq!(images[0], images[1], "{design}");
    }
}

/// No machine but `optane` has a buffer unless it says so, and none counts blocks then.
#[test]
fn without_blocks_there_is_no_buffer() {
    let plain = Machine::load::<&str, &str>("esd", &[]).unwrap();
    assert!(plain.engine.medium.buffer.is_none());
    assert!(Memory::new(&plain, "esd").unwrap().blocks().is_none());
    let wrong = Machine::load(
        "esd",
        &[
            ("medium.geometry.channels", "3"),
            ("medium.mapping", "dramsim2-1"),
        ],
    );
    let told = wrong.unwrap_err().to_string();
    assert!(told.contains("medium.geometry.channels"), "{told}");
}
