//! Programs the cells of a written line: finds the bits that change, and from them the time and the share of a whole
//! line's energy.

use rustc_hash::FxHashMap;

use crate::line::{LINE_BYTES, Line};
use crate::medium::cells::{CellParams, Coding};
use crate::medium::params::Timing;

const LINE_BITS: u64 = LINE_BYTES as u64 * 8;

/// What writes have done to the cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Programmed {
    /// Cells that were SET.
    pub sets: u64,
    /// Cells that were RESET.
    pub resets: u64,
}

impl Programmed {
    /// All of them.
    pub fn bits(self) -> u64 {
        self.sets + self.resets
    }
}

/// A medium's cells. Where groups are inverted, a bit for each says so.
pub(super) struct Cells {
    params: CellParams,
    set: u64,
    reset: u64,
    inverted: FxHashMap<u64, u64>,
    pub programmed: Programmed,
}

impl Cells {
    pub fn new(params: CellParams, timing: &Timing) -> Cells {
        let cycles = |ps: u64| match ps {
            0 => timing.tWP,
            ps => ps.div_ceil(timing.clock.ps()),
        };
        Cells {
            set: cycles(params.set.ps()),
            reset: cycles(params.reset.ps()),
            params,
            inverted: FxHashMap::default(),
            programmed: Programmed::default(),
        }
    }

    /// Writes the `words` of `new` over `old` at `place`, and returns what is programmed.
    pub fn write(&mut self, place: u64, old: &Line, new: &Line, words: u8) -> Programmed {
        let mut done = Programmed::default();
        let flags = self.inverted.get(&place).copied().unwrap_or(0);
        let mut now = flags;
        for word in (0..8).filter(|word| words >> word & 1 == 1) {
            let bits = |line: &Line| {
                let bytes = &line[word * 8..word * 8 + 8];
                u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
            };
            let (was, is) = (bits(old), bits(new));
            match self.params.coding {
                Coding::Whole => done.add(u64::MAX, is),
                Coding::Changed => done.add(was ^ is, is),
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
                        let invert = inverse < straight || inverse == straight && flag;
                        let kept = if invert { !cells(is) & mask } else { cells(is) };
                        done.add(here ^ kept, kept);
                        if invert != flag {
                            done.add(1, u64::from(invert));
                            now ^= bit;
                        }
                    }
                }
            }
        }
        if now != flags {
            self.inverted.insert(place, now);
        }
        self.programmed.sets += done.sets;
        self.programmed.resets += done.resets;
        done
    }

    /// Cycles of an array write that programs these cells: RESETs first, then SETs, each as many at once as the power
    /// allows.
    pub fn cycles(&self, done: Programmed) -> u64 {
        let rounds = |bits: u64, at_once: u64| match (bits, at_once) {
            (0, _) => 0,
            (_, 0) => 1,
            (bits, at_once) => bits.div_ceil(at_once),
        };
        let sets_at_once = self.params.budget * self.params.sets_per_reset;
        let (resets, sets) = (
            rounds(done.resets, self.params.budget),
            rounds(done.sets, sets_at_once),
        );
        match self.params.budget == 0 && self.set == self.reset {
            true => self.set * u64::from(resets + sets > 0), // both at once
            false => resets * self.reset + sets * self.set,
        }
    }

    /// The factor for a whole line's energy.
    pub fn share(&self, done: Programmed) -> f64 {
        match self.params.coding {
            Coding::Whole => 1.0,
            _ => done.bits() as f64 / LINE_BITS as f64,
        }
    }
}

impl Programmed {
    /// Of the cells in `which`, those that become 1 and those that become 0.
    fn add(&mut self, which: u64, to: u64) {
        self.sets += u64::from((which & to).count_ones());
        self.resets += u64::from((which & !to).count_ones());
    }
}
