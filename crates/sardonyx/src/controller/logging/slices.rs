//! Slices of words of several lines, in a region that goes round, and registers on reserve power with the number from
//! which on slices count.
//! Source: HOOP (ISCA 2020), a public summary of its Fig. 5: slices of 128 bytes with eight words, the home address of
//! each, and the transaction. Left out: blocks and their index, the link from one slice of a transaction to the next.
//!
//! *Assumed*: a slice's number tells one round from the next, and is what the pads of its two lines are made of, as in
//! [`super::ring`]; a transaction's last slice says that it is the last, where the paper has slices of addresses.

use smallvec::SmallVec;

use super::LOG_REGION;
use super::pending::{FIRST_NUMBER, SEALED};
use crate::controller::encryption::ENABLED;
use crate::controller::encryption::pad::Pads;
use crate::controller::layers::{Limit, Reached};
use crate::line::{Line, Logical, Place, ZERO_LINE};
use crate::medium::layout::{Layout, Region};
use crate::medium::params::Unit;
use crate::plan::{At, Plan, Queue, Step};
use crate::settings::Settings;
use crate::stats::Cause;

/// Words of a slice, and of a line.
pub const WORDS: usize = 8;
/// Lines of a slice: the first has what its words are, the second has the words.
pub const LINES: u64 = 2;
/// Bytes of a word's home address.
const ADDRESS: usize = 6;

/// A word, and where its home is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomedWord {
    /// Its line.
    pub line: Logical,
    /// Its number in the line.
    pub index: usize,
    /// What it holds.
    pub value: u64,
}

/// What a slice holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The transaction's number since the last cut.
    pub transaction: u64,
    /// Whether the transaction has no further one, so that it has committed.
    pub is_last: bool,
    /// At most [`WORDS`] of them.
    pub words: SmallVec<[HomedWord; WORDS]>,
}

/// Word `index` of a line.
pub fn word(line: &Line, index: usize) -> u64 {
    u64::from_le_bytes(line.as_chunks().0[index])
}

/// Puts a word into a line.
pub fn put_word(line: &mut Line, index: usize, value: u64) {
    line.as_chunks_mut::<8>().0[index] = value.to_le_bytes();
}

impl Slice {
    /// The two lines of slice `number`, in clear.
    fn plain(&self, number: u64) -> [Line; 2] {
        let (mut about, mut words) = (ZERO_LINE, ZERO_LINE);
        put_word(&mut about, 0, number);
        let state = self.words.len() as u64 | u64::from(self.is_last) << 8;
        put_word(&mut about, 1, self.transaction | state << 48);
        for (slot, one) in self.words.iter().enumerate() {
            let home = (one.line.0 << 3 | one.index as u64).to_le_bytes();
            let at = 2 * 8 + slot * ADDRESS;
            about[at..at + ADDRESS].copy_from_slice(&home[..ADDRESS]);
            put_word(&mut words, slot, one.value);
        }
        [about, words]
    }

    /// Parses two lines in clear; `None` if they are not slice `number`.
    fn parse([about, words]: &[Line; 2], number: u64) -> Option<Slice> {
        let state = word(about, 1) >> 48;
        let count = (state & 0xff) as usize;
        let homed = |slot: usize| {
            let at = 2 * 8 + slot * ADDRESS;
            let mut home = [0; 8];
            home[..ADDRESS].copy_from_slice(&about[at..at + ADDRESS]);
            let home = u64::from_le_bytes(home);
            HomedWord {
                line: Logical(home >> 3),
                index: (home & 7) as usize,
                value: word(words, slot),
            }
        };
        (word(about, 0) == number && count <= WORDS).then(|| Slice {
            transaction: word(about, 1) & ((1 << 48) - 1),
            is_last: state >> 8 & 1 == 1,
            words: (0..count).map(homed).collect(),
        })
    }
}

/// The limits of slices.
pub const LIMITS: &[Limit] = &[
    Limit {
        name: "numbers of slices, of which pads are made",
        bits: 64,
        begins: Some(&FIRST_NUMBER),
        pads: true,
        reached: Reached::Near {
            bits: &[16, 32, 56],
            below: 8,
        },
    },
    Limit::unreached("the last number of a slice", 64, "it takes 2^64 of them"),
    Limit::unreached(
        "lines that a slice can name",
        45,
        "it takes a memory of 2^51 bytes",
    ),
    Limit::unreached(
        "transactions of a life, which a slice can name",
        48,
        "it takes 2^48 of them",
    ),
];

/// The region, its registers and its encryption.
pub struct Slices {
    pads: Option<Pads>,
    region: Region,
    registers: Region,
    /// The number of the first slice.
    pub first: u64,
}

impl Slices {
    /// Reserves a region of `room` slices.
    pub fn new(settings: &Settings, room: u64, layout: &mut Layout) -> Slices {
        let sealed = settings.get(&ENABLED) && settings.get(&SEALED);
        Slices {
            pads: sealed.then(|| Pads::new(settings)),
            region: layout.reserve(LOG_REGION, LINES * room),
            registers: layout.reserve("log-registers", 2),
            first: settings.get(&FIRST_NUMBER),
        }
    }

    /// Slices that the region has room for.
    pub fn room(&self) -> u64 {
        self.region.lines / LINES
    }

    fn places(&self, number: u64) -> [Place; 2] {
        let first = number % self.room() * LINES;
        [self.region.line(first), self.region.line(first + 1)]
    }

    /// Writes slice `number`, whose words exist after `at`, not before `gate`. It outlives a cut after the returned step.
    pub fn put(&self, number: u64, slice: At<&Slice>, gate: Step, plan: &mut Plan) -> Step {
        let (places, plain) = (self.places(number), slice.value.plain(number));
        let mut gate = gate;
        // Nobody looks at words whose addresses are not there.
        for (place, plain) in places.iter().zip(&plain).rev() {
            let from = plan.upcoming();
            let (mut line, mut at) = (*plain, slice.at);
            if let Some(pads) = &self.pads {
                let pad = plan.because(Cause::Encryption).unit(Unit::Aes, Step::PAST);
                line = pads.crypt(*place, number, plain);
                at = plan.both(at, pad);
            }
            let stored = plan.write(*place, At::new(&line, at), gate);
            plan.logged(from, plain);
            gate = plan.both(gate, stored.accepted);
        }
        gate
    }

    /// Reads slice `number` after `after`; `None` if it is not there.
    pub fn read(&self, number: u64, after: Step, plan: &mut Plan) -> Option<At<Slice>> {
        let (mut plain, mut at) = ([ZERO_LINE; 2], after);
        for (place, plain) in self.places(number).into_iter().zip(&mut plain) {
            let read = plan.read(place, after);
            (*plain, at) = (read.value?, plan.both(at, read.at));
            if let Some(pads) = &self.pads {
                let pad = pads.unstored(after, &mut plan.because(Cause::Encryption));
                *plain = pads.crypt(place, number, plain);
                at = plan.both(at, pad);
            }
        }
        Some(At::new(Slice::parse(&plain, number)?, at))
    }

    /// Has slices count from number `tail` on, after `ripe`. What the others lay in may be written again after the
    /// returned step.
    pub fn move_tail(&self, tail: u64, ripe: Step, plan: &mut Plan) -> Step {
        plan.registers(self.registers.line(0), &tail_line(tail), ripe, &[])
    }

    /// Notes that slices of `lines` outlive a cut after `ripe`, so that memory may have these lines.
    pub fn unlock(&self, lines: &[Logical], ripe: Step, plan: &mut Plan) -> Step {
        plan.registers(self.registers.line(1), &ZERO_LINE, ripe, lines)
    }

    /// The number from which on slices count, as a cut has left it.
    pub fn found_tail(&self, plan: &mut Plan) -> u64 {
        let line = plan.scan(self.registers.line(0)).unwrap_or(ZERO_LINE);
        word(&line, 0).max(self.first)
    }

    /// Begins anew with slice `tail`, after `gate`. The returned step is that of its acceptance.
    pub fn restart(&self, tail: u64, gate: Step, plan: &mut Plan) -> Step {
        let (place, line) = (self.registers.line(0), tail_line(tail));
        plan.write_words(place, At::past(&line), 1, None, gate, Queue::Data)
            .accepted
    }
}

fn tail_line(tail: u64) -> Line {
    let mut line = ZERO_LINE;
    put_word(&mut line, 0, tail);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_known_by_its_number_and_has_its_words() {
        for count in 0..=WORDS {
            let words = (0..count).map(|slot| HomedWord {
                line: Logical((1 << 44) + 3 * slot as u64),
                index: 7 - slot,
                value: u64::MAX - slot as u64,
            });
            let slice = Slice {
                transaction: (1 << 48) - 1,
                is_last: count % 2 == 1,
                words: words.collect(),
            };
            let plain = slice.plain(7);
            assert_eq!(Slice::parse(&plain, 7), Some(slice));
            assert_eq!(Slice::parse(&plain, 8), None);
        }
    }
}
