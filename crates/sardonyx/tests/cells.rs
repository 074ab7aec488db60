//! What writes do to cells: which are programmed, beside a model that has each cell as a truth value; how long that takes
//! and what it costs, beside sums.

use crate::memory_common::{drain, request};
use sardonyx::config::Machine;
use sardonyx::controller::Write;
use sardonyx::engine::Programmed;
use sardonyx::line::{Line, Logical};
use sardonyx::memory::Memory;
use sardonyx::plan::At;
use sardonyx::stats::Direction;
use sardonyx::units::Time;
use sardonyx_base::random::SplitMix64;

fn memory(sets: &[(&str, &str)]) -> Memory {
    Memory::new(&Machine::load("esd", sets).unwrap(), "no-encryption").unwrap()
}

/// Writes a line and waits for the array; gives how long the array write has taken, its queue included.
fn write(memory: &mut Memory, line: u64, data: &Line) -> Time {
    let now = memory.now();
    let request = request(Direction::Write, 0, now);
    let before = memory.service(Direction::Write).total;
    memory.write(request, now, Write::new(Logical(line), At::past(data)));
    drain(memory);
    memory.service(Direction::Write).total - before
}

/// A line's cells, with a flag for each group.
struct Cells {
    group: usize,
    bits: Vec<bool>,
    flags: Vec<bool>,
}

impl Cells {
    fn new(group: usize) -> Cells {
        Cells {
            group,
            bits: vec![false; 512],
            flags: vec![false; 512 / group],
        }
    }

    fn write(&mut self, coding: &str, data: &Line, count: &mut Programmed) {
        let wanted: Vec<bool> = (0..512)
            .map(|bit| data[bit / 8] >> (bit % 8) & 1 == 1)
            .collect();
        let mut program = |to: bool| {
            count.cells += 1;
            match to {
                true => count.sets += 1,
                false => count.resets += 1,
            }
        };
        for group in 0..512 / self.group {
            let bits = group * self.group..(group + 1) * self.group;
            let cost = |flag: bool| {
                let differ = |bit: &usize| self.bits[*bit] != (wanted[*bit] != flag);
                bits.clone().filter(differ).count() + usize::from(self.flags[group] != flag)
            };
            let kept = self.flags[group];
            let flag = match coding {
                "flip-n-write" if cost(!kept) < cost(kept) => !kept,
                _ => kept,
            };
            for bit in bits {
                let to = wanted[bit] != flag;
                if coding == "whole" || self.bits[bit] != to {
                    program(to);
                }
                self.bits[bit] = to;
            }
            if flag != kept {
                program(flag);
            }
            self.flags[group] = flag;
        }
    }
}

/// Contents that change a little, much, or to their inverse.
fn next(draw: &mut SplitMix64, data: &mut Line) {
    match draw.below(4) {
        0 => data.iter_mut().for_each(|byte| *byte = !*byte),
        1 => data.iter_mut().for_each(|byte| *byte = draw.draw() as u8),
        2 => data[draw.below(64) as usize] ^= draw.draw() as u8,
        _ => data[..32]
            .iter_mut()
            .for_each(|byte| *byte |= draw.draw() as u8),
    }
}

#[test]
fn cells_are_programmed_as_a_model_of_single_cells_has_them() {
    for coding in ["whole", "changed", "flip-n-write"] {
        for group in ["8", "32", "64"] {
            // A budget, so that cells are looked at where all are programmed too.
            let mut sets = vec![
                ("medium.cells.coding", coding),
                ("medium.cells.budget", "128"),
            ];
            if coding == "flip-n-write" {
                sets.push(("medium.cells.group", group));
            }
            let (mut memory, mut count) = (memory(&sets), Programmed::default());
            let mut lines: Vec<Cells> =
                (0..3).map(|_| Cells::new(group.parse().unwrap())).collect();
            let (mut draw, mut data) = (SplitMix64(1), [0; 64]);
            for _ in 0..300 {
                let line = draw.below(3);
                next(&mut draw, &mut data);
                lines[line as usize].write(coding, &data, &mut count);
                write(&mut memory, line, &data);
            }
            assert_eq!(memory.programmed(), Some(count), "{coding} by {group}");
        }
    }
}

/// Of random contents: the mean of the lesser of h and n + 1 - h, h of n + 1 cells differing (Cho and Lee, Sec. 3).
#[test]
fn flip_n_write_programs_what_its_paper_expects_of_random_bits() {
    let sets = [
        ("medium.cells.coding", "flip-n-write"),
        ("medium.cells.group", "32"),
    ];
    let (mut memory, mut draw) = (memory(&sets), SplitMix64(7));
    let writes = 2_000;
    for _ in 0..writes {
        let mut data = [0; 64];
        data.iter_mut().for_each(|byte| *byte = draw.draw() as u8);
        write(&mut memory, 5, &data);
    }
    // Pascal's triangle, for the 32 cells and their flag.
    let mut ways = vec![1.0];
    for _ in 0..33 {
        let shifted = std::iter::once(0.0).chain(ways.iter().copied());
        ways = shifted
            .zip(ways.iter().copied().chain([0.0]))
            .map(|(a, b)| (a + b) / 2.0)
            .collect();
    }
    let expected: f64 = (0..34).map(|h: usize| ways[h] * h.min(33 - h) as f64).sum();
    let found = memory.programmed().unwrap().cells as f64 / f64::from(writes * 16);
    assert!(
        (found / expected - 1.0).abs() < 0.01,
        "{found} of {expected}"
    );
}

/// 150 ns of an array write in cycles of 2.5 ns, against the rounds that a budget makes of it.
#[test]
fn an_array_write_takes_the_rounds_that_its_power_allows() {
    let whole = |sets: &[(&str, &str)], data: &Line| write(&mut memory(sets), 9, data).ps() as i64;
    let plain = whole(&[], &[0xff; 64]);
    let longer = |sets: &[(&str, &str)], data: &Line| (whole(sets, data) - plain) / 1000;
    let changed = ("medium.cells.coding", "changed");
    // 512 SETs, and 256 at once as two take the power of one RESET: one round more.
    assert_eq!(
        longer(&[changed, ("medium.cells.budget", "128")], &[0xff; 64]),
        150
    );
    assert_eq!(
        longer(&[changed, ("medium.cells.budget", "256")], &[0xff; 64]),
        0
    );
    // Nothing changes: nothing is written.
    assert_eq!(longer(&[changed], &[0; 64]), -150);
    // RESETs of 40 ns first, then SETs of 120, as all are programmed: half of each.
    let both = [
        ("medium.cells.reset_ns", "40"),
        ("medium.cells.set_ns", "120"),
    ];
    assert_eq!(longer(&both, &[0x0f; 64]), 10);
    assert_eq!(longer(&both, &[0; 64]), -110);
}

/// Cells of two bits, each as its level: counts, and the time that a line takes, pulse by pulse.
#[test]
fn cells_of_two_bits_take_the_pulses_of_their_levels() {
    let level = |line: &Line, cell: usize| line[cell / 4] >> (cell % 4 * 2) & 3;
    for coding in ["whole", "changed"] {
        for budget in [0, 20, 100] {
            let power = budget.to_string();
            let sets = [
                ("medium.cells.bits", "2"),
                ("medium.cells.coding", coding),
                ("medium.cells.budget", power.as_str()),
                ("medium.cells.reset_ns", "100"),
                ("medium.cells.set_ns", "150"),
            ];
            let (mut memory, mut count) = (memory(&sets), Programmed::default());
            let (mut draw, mut lines, mut data) = (SplitMix64(3), [[0; 64]; 3], [0; 64]);
            // So that rows are open, and each line holds something.
            for (line, held) in lines.iter_mut().enumerate() {
                *held = [0xff; 64];
                write(&mut memory, line as u64, held);
                let programmed = memory.programmed().unwrap();
                assert_eq!(programmed.cells, 256 * (line as u64 + 1));
            }
            (count.cells, count.sets) = (3 * 256, 3 * 256);
            let mut overhead = None;
            for _ in 0..200 {
                let line = draw.below(3) as usize;
                next(&mut draw, &mut data);
                // SETs that each cell still needs, and how many need a RESET.
                let (mut wait, mut resets) = (Vec::new(), 0);
                for cell in 0..256 {
                    let (was, is) = (level(&lines[line], cell), level(&data, cell));
                    if coding == "whole" || was != is {
                        wait.push([0, 7, 5, 1][usize::from(is)]);
                        resets += u64::from(is != 3);
                    }
                }
                lines[line] = data;
                count.cells += wait.len() as u64;
                count.resets += resets;
                let at_once = |cells: u64, most: u64| {
                    if most == 0 {
                        cells.min(1)
                    } else {
                        cells.div_ceil(most)
                    }
                };
                let mut expected = 100 * at_once(resets, budget);
                while wait.iter().any(|sets| *sets > 0) {
                    let now = wait.iter_mut().filter(|sets| **sets > 0);
                    let cells = now.map(|sets| *sets -= 1).count() as u64;
                    count.sets += cells;
                    expected += 150 * at_once(cells, 2 * budget);
                }
                let took = write(&mut memory, line as u64, &data).ps() / 1000;
                let rest = took - expected;
                assert_eq!(
                    *overhead.get_or_insert(rest),
                    rest,
                    "{coding}, {budget} at once"
                );
            }
            assert_eq!(
                memory.programmed(),
                Some(count),
                "{coding}, {budget} at once"
            );
        }
    }
}

/// A read senses each bit of a cell, one after the other.
#[test]
fn cells_of_two_bits_are_sensed_twice() {
    let opens = |sets: &[(&str, &str)]| {
        let timing = Machine::load("esd", sets).unwrap().engine.medium.timing;
        timing.clock * timing.tRCD
    };
    let two = ("medium.cells.bits", "2");
    assert_eq!(opens(&[two]), opens(&[]) * 2);
    assert_eq!(opens(&[two, ("medium.cells.sensings", "1")]), opens(&[]));
    for (sets, named) in [
        (
            vec![two, ("medium.cells.coding", "flip-n-write")],
            "medium.cells.coding",
        ),
        (vec![("medium.cells.sensings", "1")], "medium.cells.bits"),
        (vec![("medium.cells.sets_01", "3")], "medium.cells.bits"),
        (vec![("medium.cells.bits", "3")], "medium.cells.bits"),
    ] {
        let told = Machine::load("esd", &sets).unwrap_err().to_string();
        assert!(told.contains(named), "{told}");
    }
    // Each of its pulses takes time.
    for sets in [vec![two], vec![two, ("medium.cells.set_ns", "300")]] {
        let told = Machine::load("sca", &sets).unwrap_err().to_string();
        assert!(told.contains("medium.cells.bits"), "{told}");
    }
}

#[test]
fn energy_goes_with_the_cells_and_lines_without_the_option_are_as_before() {
    let energy = |sets: &[(&str, &str)], data: &Line| {
        let mut memory = memory(sets);
        write(&mut memory, 9, data);
        memory.ledger().grand_total().energy.nj()
    };
    let mut data = [0; 64];
    data[..16].fill(0xff);
    let (plain, changed) = (
        energy(&[], &data),
        energy(&[("medium.cells.coding", "changed")], &data),
    );
    assert!((changed - plain / 4.0).abs() < 1e-6, "{changed} of {plain}");
    assert!(memory(&[]).programmed().is_none());
    for wrong in [
        ("optane", "medium.cells.coding", "changed"),
        ("esd", "medium.cells.group", "4"),
    ] {
        let (machine, key, value) = wrong;
        let told = Machine::load(machine, &[(key, value), ("medium.cells.budget", "9")]);
        assert!(told.unwrap_err().to_string().contains(key));
    }
    // The array write of `sca` is in tWR, which no budget divides.
    let told = Machine::load("sca", &[("medium.cells.budget", "64")])
        .unwrap_err()
        .to_string();
    assert!(told.contains("medium.cells.budget"), "{told}");
}
