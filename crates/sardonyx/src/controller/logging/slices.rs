//! Slices of words of several lines, in a region that goes round ([`super::round`]).
//! Source: HOOP (ISCA 2020), a public summary of its Fig. 5: slices of 128 bytes with eight words, the home address of
//! each, and the transaction. Left out: blocks and their index, the link from one slice of a transaction to the next.
//! *Assumed*: a transaction's last slice says that it is the last, where the paper has slices of addresses.

use smallvec::SmallVec;

use super::pending::numbers;
use super::round::{Round, put_word, word};
use crate::controller::layers::Limit;
use crate::line::{Line, Logical, ZERO_LINE};
use crate::medium::layout::Layout;
use crate::plan::{At, Plan, Step};
use crate::settings::Settings;

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
    numbers("numbers of slices, of which pads are made"),
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

/// Slices in a region that goes round.
pub struct Slices(Round);

impl Slices {
    /// Reserves a region of `room` slices.
    pub fn new(settings: &Settings, room: u64, layout: &mut Layout) -> Slices {
        Slices(Round::new(settings, LINES * room, layout))
    }

    /// The region, for its tail.
    pub fn round(&self) -> &Round {
        &self.0
    }

    /// Slices that the region has room for.
    pub fn room(&self) -> u64 {
        self.0.lines() / LINES
    }

    /// Writes slice `number`, whose words exist after `at`, not before `gate`. It outlives a cut after the returned step.
    pub fn put(&self, number: u64, slice: At<&Slice>, gate: Step, plan: &mut Plan) -> Step {
        let [about, words] = slice.value.plain(number);
        let first = number % self.room() * LINES;
        // Nobody looks at words whose addresses are not there.
        let words = (self.0).put((first + 1, number), At::new(&words, slice.at), gate, plan);
        let gate = plan.both(gate, words);
        (self.0).put((first, number), At::new(&about, slice.at), gate, plan)
    }

    /// Reads slice `number` after `after`; `None` if it is not there.
    pub fn read(&self, number: u64, after: Step, plan: &mut Plan) -> Option<At<Slice>> {
        let first = number % self.room() * LINES;
        let about = self.0.read((first, number), after, plan)?;
        let words = self.0.read((first + 1, number), after, plan)?;
        let slice = Slice::parse(&[about.value, words.value], number)?;
        Some(At::new(slice, plan.both(about.at, words.at)))
    }
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
