//! Log entries that wait on chip, on reserve power, until they are dropped or written: each is a line that says itself
//! what it is, so that it needs no header. Source: Proteus (MICRO 2017) for the line of half data and half metadata.
//! Left out: which entries wait, for how long, and what becomes of them.
//!
//! An entry has a place in a bucket from the beginning, where it is written if it has to leave the chip. Reserve power
//! dumps the slots of the queue, each to a line of its own, and their tags: for which place, and whose. An entry is encrypted on its way in (*assumed*; the papers do not encrypt), under a pad of its place in the bucket and
//! of its transaction's number, which registers keep, so that no line of the log needs a counter.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::LOG_REGION;
use super::undo::{self, BUCKETS, PER_RECORD, RECORDS};
use crate::controller::encryption::ENABLED;
use crate::controller::encryption::pad::Pads;
use crate::controller::layers::{Limit, Reached};
use crate::figures::{Figure, figures};
use crate::line::{LINE_BYTES, Line, Logical, Place, ZERO_LINE};
use crate::mechanisms::{ENDED_FULL, Mechanism, mechanisms};
use crate::medium::layout::{Layout, Region};
use crate::medium::params::Unit;
use crate::plan::{At, Plan, Step, Stored};
use crate::settings::{Settings, keys};
use crate::stats::Cause;

/// Bytes of a line that one entry holds.
pub const HALF: usize = LINE_BYTES / 2;
/// Entries of a line.
pub const PER_LINE: u64 = 2;

keys! {
    FIRST_NUMBER: u64 = int("log.first_number", (1, 1 << 62), 1),
        Source("for the crash explorer: a machine that has run for long"),
        "The number of the first transaction whose entries wait on chip, of which their pads are made";
    SEALED: bool = flag("log.sealed", true),
        Assumed("the papers of such logs do not encrypt; over lines in clear, false compares like with like"),
        "Entries that wait on chip are encrypted on their way in";
}

figures! { "Log entries on chip";
    DROPPED: Count More "log_entries_dropped", "entries, of half a line each, that were never written";
    SPILLED: Count Less "log_entries_spilled", "entries that were written because the queue was full";
    PENDING_MOST: Count Less "log_entries_pending_most", "entries that waited at one time, at most";
    QUEUE_BYTES: Bytes Less "log_queue_bytes", "on chip: entries that are dumped at a power cut";
}

/// Figures of other logs that such a log has too.
pub static SHARED_FIGURES: [&Figure; 4] = [
    &undo::ENTRIES,
    &undo::BUCKETS_MOST,
    &undo::TRANSACTIONS_MOST,
    &undo::REGISTER_BYTES,
];

mechanisms! {
    ENTRY_DROPPED = "log entries dropped", least 30;
    ENTRY_SPILLED = "log entries written", least 30;
}

/// Mechanisms of other logs that such a log has too.
pub static SHARED_MECHANISMS: [&Mechanism; 6] = [
    &undo::NEXT_BUCKET,
    &undo::BUCKET_AGAIN,
    &undo::LOGGED_AGAIN,
    &undo::HELD_BACK,
    &undo::UNDONE,
    &ENDED_FULL,
];

/// The limit of a log's numbers of which pads are made.
pub const fn numbers(name: &'static str) -> Limit {
    Limit {
        name,
        bits: 64,
        begins: Some(&FIRST_NUMBER),
        pads: true,
        reached: Reached::Near {
            bits: &[16, 32, 56],
            below: 8,
        },
    }
}

/// The limits of such a log's numbers and tables.
pub const LIMITS: &[Limit] = &[
    undo::BUCKETS_NAMED,
    undo::BUCKET_NUMBERS,
    numbers("numbers of transactions that pads are made of"),
    Limit::unreached(
        "the last number of a transaction that pads are made of",
        64,
        "it takes 2^64 transactions",
    ),
];

/// What an entry says: half of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HalfLine {
    /// The line.
    pub line: Logical,
    /// Which half of it, the first being 0.
    pub half: u64,
    /// What a log has it for.
    pub kind: u64,
    /// The half's content.
    pub data: [u8; HALF],
}

/// An entry's transaction, by its number, and the entry's number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Which {
    /// The transaction's number among all of the log.
    pub number: u64,
    /// The entry's number, the first being 0.
    pub index: u64,
}

impl HalfLine {
    /// The two entries of `line`.
    pub fn halves(line: Logical, kind: u64, content: &Line) -> [HalfLine; PER_LINE as usize] {
        [0, 1].map(|half| HalfLine {
            line,
            half: half as u64,
            kind,
            data: content[half * HALF..][..HALF]
                .try_into()
                .expect("half a line"),
        })
    }

    /// The entry as a line in clear.
    pub fn plain(&self, which: Which) -> Line {
        let mut line = ZERO_LINE;
        line[..HALF].copy_from_slice(&self.data);
        let words = [
            self.line.0 * PER_LINE + self.half,
            which.number,
            which.index,
            self.kind,
        ];
        for (bytes, word) in line[HALF..].as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        line
    }

    /// Parses a line in clear; `None` if it is not the entry `which`.
    fn parse(line: &Line, which: Which) -> Option<HalfLine> {
        let word = |index: usize| u64::from_le_bytes(line.as_chunks().0[HALF / 8 + index]);
        let is_it = word(1) == which.number && word(2) == which.index;
        is_it.then(|| HalfLine {
            line: Logical(word(0) / PER_LINE),
            half: word(0) % PER_LINE,
            kind: word(3),
            data: line[..HALF].try_into().expect("half a line"),
        })
    }
}

/// An entry that waits.
#[derive(Clone, Copy, Debug)]
pub struct Queued {
    /// The slot of the queue.
    pub slot: u64,
    /// The entry's place in its bucket.
    pub place: Place,
    /// The entry's transaction, by its number.
    pub number: u64,
    /// The line, encrypted.
    pub sealed: At<Line>,
    /// The step after which it waits in its slot and outlives a cut.
    pub kept: Step,
}

/// What a cut has left of a queue: the slot of each place and transaction's number.
pub type Dumped = FxHashMap<(Place, u64), u64>;

/// How entries outlive a cut.
pub trait Outliving: Send {
    /// Has an entry wait in its slot after `ripe`, from when on the lines `unlocked` are locked no more. The entry
    /// outlives a cut after the returned step.
    fn wait(&mut self, entry: &Queued, ripe: Step, unlocked: &[Logical], plan: &mut Plan) -> Step;

    /// Writes an entry that has to leave. Its slot is free once the returned write is accepted.
    fn leave(&mut self, entry: &Queued, plan: &mut Plan) -> Stored;

    /// Has slots hold nothing after `ripe`, as if they had never had an entry. They do not after the returned step.
    fn void(&mut self, slots: Range<u64>, ripe: Step, plan: &mut Plan) -> Step;

    /// The slots as a cut has left them.
    fn dumped(&self, plan: &mut Plan) -> Dumped;

    /// Reads the entry `which`, whose place is `place`, after a cut; `None` if it is nowhere.
    fn read(
        &self,
        place: Place,
        which: Which,
        dumped: &Dumped,
        plan: &mut Plan,
    ) -> Option<At<HalfLine>>;

    /// The number of the first transaction after a cut, which found registers with numbers up to `last`.
    fn next_number(&self, last: u64) -> u64 {
        last + 1
    }
}

/// The places of entries, and their encryption.
#[derive(Clone)]
pub struct EntryPlaces {
    pads: Option<Pads>,
    region: Region,
    tags: Region,
    slots: u64,
    pitch: u64,
    /// Entries of a bucket.
    pub per_bucket: u64,
}

impl EntryPlaces {
    /// Reserves the log's region, in which a bucket has entries for as many lines as records would, `per_line` each, and
    /// lines for a queue of so many slots.
    pub fn new(
        settings: &Settings,
        (slots, per_line): (u64, u64),
        layout: &mut Layout,
    ) -> EntryPlaces {
        let per_bucket = settings.get(&RECORDS) * PER_RECORD as u64 * per_line;
        let pitch = undo::pitch(settings, per_bucket);
        let sealed = settings.get(&ENABLED) && settings.get(&SEALED);
        EntryPlaces {
            pads: sealed.then(|| Pads::new(settings)),
            region: layout.reserve(LOG_REGION, slots + settings.get(&BUCKETS) * pitch),
            tags: layout.reserve("log-tags", slots),
            slots,
            pitch,
            per_bucket,
        }
    }

    /// The slots of the queue.
    pub fn queue(&self) -> u64 {
        self.slots
    }

    /// The place of entry number `index` of a transaction with these buckets.
    ///
    /// # Panics
    /// If it has no such entry.
    pub fn place_in(&self, buckets: &[u16], index: u64) -> Place {
        let bucket = buckets[(index / self.per_bucket) as usize];
        let first = self.slots + u64::from(bucket) * self.pitch;
        self.region.line(first + index % self.per_bucket)
    }

    /// Encrypts `plain`, which exists from some step on, for `place`; nobody waits for the pad if that line comes later.
    pub fn seal(&self, place: Place, number: u64, plain: At<&Line>, plan: &mut Plan) -> At<Line> {
        let Some(pads) = &self.pads else {
            return At::new(*plain.value, plain.at);
        };
        let pad = plan.because(Cause::Encryption).unit(Unit::Aes, Step::PAST);
        let line = pads.crypt(place, number, plain.value);
        At::new(line, plan.both(plain.at, pad))
    }

    /// Reads at `lies` the entry `which`, whose place is `place`.
    fn open(
        &self,
        lies: Place,
        place: Place,
        which: Which,
        plan: &mut Plan,
    ) -> Option<At<HalfLine>> {
        let read = plan.read(lies, Step::PAST);
        let (mut line, mut at) = (read.value?, read.at);
        if let Some(pads) = &self.pads {
            let pad = pads.unstored(Step::PAST, &mut plan.because(Cause::Encryption));
            line = pads.crypt(place, which.number, &line);
            at = plan.both(at, pad);
        }
        Some(At::new(HalfLine::parse(&line, which)?, at))
    }
}

impl Outliving for EntryPlaces {
    fn wait(&mut self, entry: &Queued, ripe: Step, unlocked: &[Logical], plan: &mut Plan) -> Step {
        if !plan.is_observed() {
            return ripe;
        }
        // The slot's last entry has left or was dropped, so its tag may say what it likes.
        let line = plan.registers(self.region.line(entry.slot), &entry.sealed.value, ripe, &[]);
        let mut tag = ZERO_LINE;
        tag[..8].copy_from_slice(&entry.place.0.to_le_bytes());
        tag[8..16].copy_from_slice(&entry.number.to_le_bytes());
        plan.registers(self.tags.line(entry.slot), &tag, line, unlocked)
    }

    fn leave(&mut self, entry: &Queued, plan: &mut Plan) -> Stored {
        // Not before it is in its slot, or the place might still be another transaction's.
        plan.write(entry.place, At::past(&entry.sealed.value), entry.kept)
    }

    fn void(&mut self, slots: Range<u64>, ripe: Step, plan: &mut Plan) -> Step {
        if !plan.is_observed() {
            return ripe;
        }
        slots.fold(ripe, |ripe, slot| {
            plan.registers(self.tags.line(slot), &ZERO_LINE, ripe, &[])
        })
    }

    fn dumped(&self, plan: &mut Plan) -> Dumped {
        let tag = |slot| {
            let tag = plan.scan(self.tags.line(slot))?;
            let word = |index: usize| u64::from_le_bytes(tag.as_chunks().0[index]);
            Some(((Place(word(0)), word(1)), slot))
        };
        (0..self.slots).filter_map(tag).collect()
    }

    fn read(
        &self,
        place: Place,
        which: Which,
        dumped: &Dumped,
        plan: &mut Plan,
    ) -> Option<At<HalfLine>> {
        let slot = dumped.get(&(place, which.number));
        let waiting = slot.and_then(|slot| self.open(self.region.line(*slot), place, which, plan));
        waiting.or_else(|| self.open(place, place, which, plan))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_known_by_its_number_and_its_transactions() {
        let content: Line = std::array::from_fn(|byte| byte as u8);
        let which = |number, index| Which { number, index };
        for entry in HalfLine::halves(Logical(1 << 40), 1, &content) {
            let line = entry.plain(which(7, 3));
            assert_eq!(HalfLine::parse(&line, which(7, 3)), Some(entry));
            assert_eq!(entry.data, content[entry.half as usize * HALF..][..HALF]);
            for other in [which(8, 3), which(7, 2)] {
                assert_eq!(HalfLine::parse(&line, other), None);
            }
        }
        assert_eq!(HalfLine::parse(&ZERO_LINE, which(1, 0)), None);
    }
}
