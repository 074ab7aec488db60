//! A log that goes round in one region of memory: entries of words of a line, each with the number of its own line of
//! the log, and registers on reserve power with the number from which on entries count.
//! Sources: FWB (HPCA 2018), the abstract and a public summary of its Sec. III: a circular log with a head and a tail,
//! and a bit in each entry that tells one round from the next; MorLog (ISCA 2020) for entries of some words of a line.
//! Left out: which entries a log has, and when the tail moves.
//!
//! *Assumed*: an entry's number stands for the bit that tells rounds apart, and, as the papers do not encrypt, is what
//! its pad is made of, with its place. After a cut numbers go on a whole round further, so that no entry which the cut
//! left behind a gap is taken for a new one.

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

fn word(line: &Line, index: usize) -> u64 {
    u64::from_le_bytes(line.as_chunks().0[index])
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
    Limit {
        name: "numbers of lines of the log, of which pads are made",
        bits: 64,
        begins: Some(&FIRST_NUMBER),
        pads: true,
        reached: Reached::Near {
            bits: &[16, 32, 56],
            below: 8,
        },
    },
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

/// The log's region, its registers and its encryption.
#[derive(Clone)]
pub struct Ring {
    pads: Option<Pads>,
    region: Region,
    registers: Region,
    first: u64,
}

impl Ring {
    /// Reserves a log of so many lines.
    pub fn new(settings: &Settings, lines: u64, layout: &mut Layout) -> Ring {
        let sealed = settings.get(&ENABLED) && settings.get(&SEALED);
        Ring {
            pads: sealed.then(|| Pads::new(settings)),
            region: layout.reserve(LOG_REGION, lines),
            registers: layout.reserve("log-registers", 2),
            first: settings.get(&FIRST_NUMBER),
        }
    }

    fn place(&self, number: u64) -> Place {
        self.region.line(number % self.region.lines)
    }
}

fn tail_line(tail: u64) -> Line {
    let mut line = ZERO_LINE;
    line[..8].copy_from_slice(&tail.to_le_bytes());
    line
}

impl Outlasting for Ring {
    fn room(&self) -> u64 {
        self.region.lines
    }

    fn first(&self) -> u64 {
        self.first
    }

    fn put(&mut self, number: u64, entry: At<&RingEntry>, gate: Step, plan: &mut Plan) -> Step {
        let (place, plain) = (self.place(number), entry.value.plain(number));
        let from = plan.upcoming();
        let (mut line, mut at) = (plain, entry.at);
        if let Some(pads) = &self.pads {
            let pad = plan.because(Cause::Encryption).unit(Unit::Aes, Step::PAST);
            line = pads.crypt(place, number, &plain);
            at = plan.both(at, pad);
        }
        let stored = plan.write(place, At::new(&line, at), gate);
        plan.logged(from, &plain);
        stored.accepted
    }

    fn move_tail(&mut self, tail: u64, ripe: Step, plan: &mut Plan) -> Step {
        plan.registers(self.registers.line(0), &tail_line(tail), ripe, &[])
    }

    fn unlock(&mut self, lines: &[Logical], ripe: Step, plan: &mut Plan) -> Step {
        plan.registers(self.registers.line(1), &ZERO_LINE, ripe, lines)
    }

    fn found_tail(&self, plan: &mut Plan) -> u64 {
        let line = plan.scan(self.registers.line(0)).unwrap_or(ZERO_LINE);
        word(&line, 0).max(self.first)
    }

    fn found(&self, number: u64, plan: &mut Plan) -> Option<At<RingEntry>> {
        let place = self.place(number);
        let read = plan.read(place, Step::PAST);
        let (mut line, mut at) = (read.value?, read.at);
        if let Some(pads) = &self.pads {
            let pad = pads.unstored(Step::PAST, &mut plan.because(Cause::Encryption));
            line = pads.crypt(place, number, &line);
            at = plan.both(at, pad);
        }
        Some(At::new(RingEntry::parse(&line, number)?, at))
    }

    fn restart(&mut self, tail: u64, gate: Step, plan: &mut Plan) -> Step {
        let (place, line) = (self.registers.line(0), tail_line(tail));
        plan.write_words(place, At::past(&line), 1, None, gate, Queue::Data)
            .accepted
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
