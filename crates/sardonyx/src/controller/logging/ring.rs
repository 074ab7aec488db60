//! Entries of a log that goes round ([`super::round`]): words of a line, each with the number of its own line of the log.
//! Source: MorLog (ISCA 2020) for entries of some words of a line. Left out: which entries a log has, and when the tail
//! moves.

use smallvec::SmallVec;

use super::pending::numbers;
use super::round::{Round, word};
use crate::controller::layers::Limit;
use crate::line::{Line, Logical, ZERO_LINE};
use crate::medium::layout::Layout;
use crate::plan::{At, Plan, Step};
use crate::settings::Settings;

/// Words of a line of data that one line of the log has room for, behind its number, its line and its transaction.
pub const WORDS: usize = 5;
/// All words of a line.
pub const WHOLE: u8 = 0xff;

/// What an entry is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What a line held before its transaction.
    Old,
    /// What its transaction has made of it.
    New,
    /// What somebody has made of it who is in no transaction.
    Alone,
    /// The transaction has committed.
    Commit,
}

const KINDS: [Kind; 4] = [Kind::Old, Kind::New, Kind::Alone, Kind::Commit];

/// A line of the log. Those of one line of data follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingEntry {
    /// What it is for.
    pub kind: Kind,
    /// Whether no further one of the same line of data follows.
    pub is_last: bool,
    /// The line of data.
    pub line: Logical,
    /// The transaction's number since the last cut; 0 for none.
    pub transaction: u64,
    /// The words of the line that it has, a bit each.
    pub mask: u8,
    words: [u64; WORDS],
}

/// The words in which two lines differ, a bit each.
pub fn differing(one: &Line, other: &Line) -> u8 {
    let differs = |index: &usize| word(one, *index) != word(other, *index);
    (0..8)
        .filter(differs)
        .fold(0, |mask, index| mask | 1 << index)
}

impl RingEntry {
    /// The entries for those words of `content` whose bit is set in `mask`, as many as it takes and one at least.
    pub fn of_words(
        (kind, transaction): (Kind, u64),
        line: Logical,
        content: &Line,
        mask: u8,
    ) -> SmallVec<[RingEntry; 2]> {
        let chosen: SmallVec<[usize; 8]> = (0..8).filter(|index| mask >> index & 1 == 1).collect();
        let mut entries = SmallVec::new();
        let mut left = &chosen[..];
        loop {
            let (these, rest) = left.split_at(left.len().min(WORDS));
            let mut entry = RingEntry {
                kind,
                is_last: rest.is_empty(),
                line,
                transaction,
                mask: these.iter().fold(0, |mask, index| mask | 1 << index),
                words: [0; WORDS],
            };
            for (to, index) in entry.words.iter_mut().zip(these) {
                *to = word(content, *index);
            }
            entries.push(entry);
            left = rest;
            if left.is_empty() {
                return entries;
            }
        }
    }

    /// Puts the entry's words into `content`.
    pub fn put_into(&self, content: &mut Line) {
        let chosen = (0..8).filter(|index| self.mask >> index & 1 == 1);
        for (index, word) in chosen.zip(self.words) {
            content[index * 8..index * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
    }

    /// The entry as line `number` of the log, in clear.
    fn plain(&self, number: u64) -> Line {
        let kind = KINDS.iter().position(|kind| *kind == self.kind);
        let kind = kind.expect("it is a kind") as u64 | u64::from(self.is_last) << 2;
        let about = self.line.0 | u64::from(self.mask) << 48 | kind << 56;
        let head = [number, about, self.transaction];
        let mut line = ZERO_LINE;
        let words = head.iter().chain(&self.words);
        for (bytes, word) in line.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        line
    }

    /// Parses a line in clear; `None` if it is not line `number` of the log.
    fn parse(line: &Line, number: u64) -> Option<RingEntry> {
        let (own, about) = (word(line, 0), word(line, 1));
        (own == number).then(|| RingEntry {
            kind: KINDS[(about >> 56 & 3) as usize],
            is_last: about >> 58 & 1 == 1,
            line: Logical(about & ((1 << 48) - 1)),
            transaction: word(line, 2),
            mask: (about >> 48) as u8,
            words: std::array::from_fn(|index| word(line, 3 + index)),
        })
    }
}

/// The limits of such a log's numbers.
pub const LIMITS: &[Limit] = &[
    numbers("numbers of lines of the log, of which pads are made"),
    Limit::unreached(
        "the last number of a line of the log",
        64,
        "it takes 2^64 lines of it",
    ),
    Limit::unreached(
        "lines that an entry can name",
        48,
        "it takes a memory of 2^54 bytes",
    ),
];

/// How a log of lines with numbers outlives a cut.
pub trait Outlasting: Send {
    /// Lines of the log.
    fn room(&self) -> u64;

    /// The number of the first line.
    fn first(&self) -> u64;

    /// Writes `entry`, whose words exist after `at`, as line `number`, not before `gate`. It outlives a cut after the
    /// returned step.
    fn put(&mut self, number: u64, entry: At<&RingEntry>, gate: Step, plan: &mut Plan) -> Step;

    /// Has entries count from number `tail` on, after `ripe`. What they lay in may be written again after the returned
    /// step.
    fn move_tail(&mut self, tail: u64, ripe: Step, plan: &mut Plan) -> Step;

    /// Notes that entries of `lines` outlive a cut after `ripe`, so that memory may have these lines.
    fn unlock(&mut self, lines: &[Logical], ripe: Step, plan: &mut Plan) -> Step;

    /// Whether a line that the log has held for long is written before its entries are given up.
    fn forces(&self) -> bool {
        true
    }

    /// The number from which on entries count, as a cut has left it.
    fn found_tail(&self, plan: &mut Plan) -> u64;

    /// Line `number` of the log after a cut; `None` if it is not there.
    fn found(&self, number: u64, plan: &mut Plan) -> Option<At<RingEntry>>;

    /// Whether recovery writes what an entry of this kind has, if its transaction's end asks for it.
    fn writes_again(&self, _kind: Kind) -> bool {
        true
    }

    /// The number of the first line after a cut, which found lines from `tail` up to `head`.
    fn next_after(&self, tail: u64, _head: u64) -> u64 {
        tail + self.room()
    }

    /// Begins anew with line `tail`, after `gate`. The returned step is that of its acceptance.
    fn restart(&mut self, tail: u64, gate: Step, plan: &mut Plan) -> Step;
}

/// The entries of a log in such a region, one in each line.
#[derive(Clone)]
pub struct Ring(Round);

impl Ring {
    /// Reserves a log of so many lines.
    pub fn new(settings: &Settings, lines: u64, layout: &mut Layout) -> Ring {
        Ring(Round::new(settings, lines, layout))
    }
}

impl Outlasting for Ring {
    fn room(&self) -> u64 {
        self.0.lines()
    }

    fn first(&self) -> u64 {
        self.0.first
    }

    fn put(&mut self, number: u64, entry: At<&RingEntry>, gate: Step, plan: &mut Plan) -> Step {
        let plain = entry.value.plain(number);
        (self.0).put((number, number), At::new(&plain, entry.at), gate, plan)
    }

    fn move_tail(&mut self, tail: u64, ripe: Step, plan: &mut Plan) -> Step {
        self.0.move_tail(tail, ripe, plan)
    }

    fn unlock(&mut self, lines: &[Logical], ripe: Step, plan: &mut Plan) -> Step {
        self.0.unlock(lines, ripe, plan)
    }

    fn found_tail(&self, plan: &mut Plan) -> u64 {
        self.0.found_tail(plan)
    }

    fn found(&self, number: u64, plan: &mut Plan) -> Option<At<RingEntry>> {
        let line = self.0.read((number, number), Step::PAST, plan)?;
        Some(At::new(RingEntry::parse(&line.value, number)?, line.at))
    }

    fn restart(&mut self, tail: u64, gate: Step, plan: &mut Plan) -> Step {
        self.0.restart(tail, gate, plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_the_words_that_are_asked_for_and_are_known_by_their_number() {
        let content: Line = std::array::from_fn(|byte| byte as u8 + 1);
        for (mask, lines) in [(WHOLE, 2), (0b1010_1010, 1), (0b0011_1111, 2), (0, 1)] {
            let about = (Kind::New, 3);
            let entries = RingEntry::of_words(about, Logical(1 << 40), &content, mask);
            assert_eq!(entries.len(), lines);
            let mut found = ZERO_LINE;
            for (index, entry) in entries.iter().enumerate() {
                assert_eq!(entry.is_last, index + 1 == lines);
                let plain = entry.plain(7);
                assert_eq!(RingEntry::parse(&plain, 7), Some(*entry));
                assert_eq!(RingEntry::parse(&plain, 8), None);
                entry.put_into(&mut found);
            }
            assert_eq!(differing(&found, &ZERO_LINE), mask);
            assert_eq!(differing(&found, &content), !mask);
        }
    }
}
