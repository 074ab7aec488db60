//! Programs the cells of a written line: finds the bits that change, and from them the time and the share of a whole
//! line's energy.

use rustc_hash::FxHashMap;

use crate::line::Line;
use crate::medium::cells::{CellParams, Coding};
use crate::medium::params::Timing;

/// Counts of pulses and of programmed cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Programmed {
    /// SET pulses. A cell of one bit gets one if it becomes 1, a cell of two bits as many as its level needs.
    pub sets: u64,
    /// RESET pulses.
    pub resets: u64,
    /// Cells that got any pulse, counted once for each write.
    pub cells: u64,
}

/// The pulses that bring a cell to a level: a RESET or none, then a number of SETs.
#[derive(Clone, Copy, Debug, Default)]
struct LevelPulses {
    resets: u64,
    sets: u64,
}

/// Cells that one write programs, by their new level, which is the number that a cell's bits make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WrittenCells([u64; 4]);

impl WrittenCells {
    fn cells(self) -> u64 {
        self.0.iter().sum()
    }

    fn add(&mut self, which: u64, to: u64) {
        self.0[1] += u64::from((which & to).count_ones());
        self.0[0] += u64::from((which & !to).count_ones());
    }

    /// Counts two-bit cells of which one bit or both are in `which`.
    fn add_pairs(&mut self, which: u64, to: u64) {
        const LOW: u64 = 0x5555_5555_5555_5555;
        let cells = (which | which >> 1) & LOW;
        let (high, low) = (to >> 1, to);
        for (level, bits) in [!high & !low, !high & low, high & !low, high & low]
            .into_iter()
            .enumerate()
        {
            self.0[level] += u64::from((cells & bits).count_ones());
        }
    }
}

/// The cells of a medium. Where groups may be inverted, a bit for each group says whether it is.
pub(super) struct Cells {
    params: CellParams,
    set: u64,
    reset: u64,
    levels: [LevelPulses; 4],
    inverted: FxHashMap<u64, u64>,
    /// Groups that were stored inverted by a write and had been straight before.
    pub turned: u64,
    pub programmed: Programmed,
}

impl Cells {
    pub fn new(params: CellParams, timing: &Timing) -> Cells {
        let cycles = |ps: u64| match ps {
            0 => timing.tWP,
            ps => ps.div_ceil(timing.clock.ps()),
        };
        let level = |resets, sets| LevelPulses { resets, sets };
        Cells {
            set: cycles(params.set.ps()),
            reset: cycles(params.reset.ps()),
            levels: match params.bits {
                1 => [
                    level(1, 0),
                    level(0, 1),
                    LevelPulses::default(),
                    LevelPulses::default(),
                ],
                _ => {
                    let [none, low, high, both] = params.pulses;
                    [
                        level(1, none),
                        level(1, low),
                        level(1, high),
                        level(0, both),
                    ]
                }
            },
            params,
            inverted: FxHashMap::default(),
            turned: 0,
            programmed: Programmed::default(),
        }
    }

    /// Writes the `words` of `new` over `old` at `place`, and returns the cells that are programmed.
    pub fn write(&mut self, place: u64, old: &Line, new: &Line, words: u8) -> WrittenCells {
        let mut done = WrittenCells::default();
        let flags = self.inverted.get(&place).copied().unwrap_or(0);
        let mut now = flags;
        for word in (0..8).filter(|word| words >> word & 1 == 1) {
            let bits = |line: &Line| {
                let bytes = &line[word * 8..word * 8 + 8];
                u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
            };
            let (was, is) = (bits(old), bits(new));
            let mut program = |which| match self.params.bits {
                1 => done.add(which, is),
                _ => done.add_pairs(which, is),
            };
            match self.params.coding {
                Coding::Whole => program(u64::MAX),
                Coding::Changed => program(was ^ is),
                Coding::FlipNWrite => {
                    let group = self.params.group;
                    let mask = u64::MAX >> (64 - group);
                    for part in 0..64 / group {
                        let at = word * (64 / group) + part;
                        let bit = 1 << (at % 64);
                        let cells = |value: u64| value >> (part * group) & mask;
                        let flag = flags & bit != 0;
                        let here = if flag { !cells(was) & mask } else { cells(was) };
                        let straight = (here ^ cells(is)).count_ones() + u32::from(flag);
                        let inverse = (here ^ !cells(is) & mask).count_ones() + u32::from(!flag);
                        // A group keeps its form when both cost the same, because its flag is a cell too.
                        let invert = inverse < straight || inverse == straight && flag;
                        let kept = if invert { !cells(is) & mask } else { cells(is) };
                        done.add(here ^ kept, kept);
                        if invert != flag {
                            done.add(1, u64::from(invert));
                            now ^= bit;
                            self.turned += u64::from(invert);
                        }
                    }
                }
            }
        }
        if now != flags {
            self.inverted.insert(place, now);
        }
        for (count, level) in done.0.iter().zip(self.levels) {
            self.programmed.sets += count * level.sets;
            self.programmed.resets += count * level.resets;
            self.programmed.cells += count;
        }
        done
    }

    /// Cycles of an array write that programs these cells: RESETs first, then SETs, each as many at once as the power
    /// allows. A cell that needs several SETs gets one in each round, so the slowest level decides.
    pub fn cycles(&self, done: WrittenCells) -> u64 {
        let rounds = |cells: u64, at_once: u64| match (cells, at_once) {
            (0, _) => 0,
            (_, 0) => 1,
            (cells, at_once) => cells.div_ceil(at_once),
        };
        let of = |wanted: &dyn Fn(&LevelPulses) -> bool| {
            let levels = self.levels.iter().zip(done.0);
            let wanted = levels.filter(|(level, _)| wanted(level));
            wanted.map(|(_, cells)| cells).sum::<u64>()
        };
        if self.params.bits == 1 && self.params.budget == 0 && self.set == self.reset {
            return self.set * u64::from(done.cells() > 0); // both at once
        }
        let resets = rounds(of(&|level| level.resets > 0), self.params.budget);
        let most = self
            .levels
            .iter()
            .map(|level| level.sets)
            .max()
            .unwrap_or(0);
        let sets_at_once = self.params.budget * self.params.sets_per_reset;
        let sets: u64 = (1..=most)
            .map(|pulse| rounds(of(&|level| level.sets >= pulse), sets_at_once))
            .sum();
        resets * self.reset + sets * self.set
    }

    pub fn share(&self, done: WrittenCells) -> f64 {
        match self.params.coding {
            Coding::Whole => 1.0,
            _ => done.cells() as f64 / self.params.cells() as f64,
        }
    }
}
