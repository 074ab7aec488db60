//! Where the words of lines are that transactions have changed: at home, in slices, or in a core's data buffer. Left
//! out: when they go where, which is [`super::hoop`]'s.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use super::slices::{HomedWord, Slice, WORDS};
use super::undo::{ENTRIES, REGISTER_BYTES, TRANSACTIONS_MOST};
use crate::figures::{Figure, Figures, figures};
use crate::line::{LINE_BYTES, Line, Logical};
use crate::plan::Step;

figures! { "Out of place";
    WRITTEN: Count Less "oop_slices", "slices written";
    PACKED: Count Neither "oop_words", "words in them";
    SLICES_MOST: Count Less "oop_slices_most", "slices that counted at one time, at most";
    COLLECTIONS: Count Less "oop_collections", "times that the collector worked";
    HOME: Count Less "oop_lines_home", "lines that it brought home";
    SLICES_READ: Count Less "oop_slices_read", "slices read for a read of a line";
    TABLE_BYTES: Bytes Less "oop_table_bytes", "on chip: mapping table, of 16 bytes a line";
    BUFFER_BYTES: Bytes Less "oop_buffer_bytes", "on chip: data buffer of a core";
}

/// Figures of other logs that updates out of place have too.
pub static SHARED_FIGURES: [&Figure; 3] = [&ENTRIES, &TRANSACTIONS_MOST, &REGISTER_BYTES];

/// Where the newest content of a word is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lies {
    #[default]
    Home,
    /// In that slot of that slice.
    Slice(u64, usize),
    /// In its core's data buffer.
    Buffer(u64),
}

/// A line as caches know it, and where its words are.
#[derive(Clone, Copy)]
pub struct Newest {
    pub content: Line,
    pub lies: [Lies; WORDS],
}

impl Newest {
    /// Whether a word of it is out of place.
    pub fn is_out(&self) -> bool {
        self.lies.iter().any(|lies| *lies != Lies::Home)
    }
}

/// A line that slices name.
#[derive(Default)]
pub struct Known {
    /// Slices that count and name it.
    pub slices: u64,
    /// What committed transactions have made of it, if that is not home.
    pub out: Option<Newest>,
    /// The step after which memory has what was brought home.
    pub safe: Step,
}

/// A line of a transaction under way.
pub struct Changed {
    pub core: u32,
    /// `None` if nobody knows yet what it holds.
    pub newest: Option<Newest>,
}

pub struct Running {
    pub core: u32,
    pub number: u64,
    pub lines: Vec<Logical>,
    /// Words that are in no slice yet, and the step after which they exist.
    pub buffer: Vec<HomedWord>,
    pub exist: Step,
    /// Whether a slice of it has been written.
    pub has_slices: bool,
}

impl Running {
    /// A transaction that has done nothing yet.
    pub fn new(core: u32, number: u64) -> Running {
        Running {
            core,
            number,
            lines: Vec::new(),
            buffer: Vec::new(),
            exist: Step::PAST,
            has_slices: false,
        }
    }
}

/// A slice that counts.
pub struct Counting {
    pub transaction: u64,
    pub lines: SmallVec<[Logical; WORDS]>,
}

#[derive(Default)]
pub struct OutOfPlaceCounts {
    pub entries: u64,
    pub written: u64,
    pub words: u64,
    pub most: u64,
    pub collections: u64,
    pub home: u64,
    pub read: u64,
    pub most_transactions: u64,
}

impl OutOfPlaceCounts {
    /// Adds the figures of a table of so many lines and a data buffer of so many words.
    pub fn figures(&self, table: u64, buffer: usize, out: &mut Figures) {
        let counts = self;
        out.put(&ENTRIES, counts.entries as f64);
        out.put(&TRANSACTIONS_MOST, counts.most_transactions as f64);
        out.put(&REGISTER_BYTES, (2 * LINE_BYTES) as f64);
        out.put(&WRITTEN, counts.written as f64);
        out.put(&PACKED, counts.words as f64);
        out.put(&SLICES_MOST, counts.most as f64);
        out.put(&COLLECTIONS, counts.collections as f64);
        out.put(&HOME, counts.home as f64);
        out.put(&SLICES_READ, counts.read as f64);
        out.put(&TABLE_BYTES, (16 * table) as f64);
        out.put(&BUFFER_BYTES, (2 * LINE_BYTES * buffer / WORDS) as f64);
    }
}

/// The newest words of committed transactions, by line, from all slices in order.
pub fn committed(found: &[Slice]) -> BTreeMap<Logical, BTreeMap<usize, u64>> {
    let over = found.iter().filter(|slice| slice.is_last);
    let over: BTreeSet<u64> = over.map(|slice| slice.transaction).collect();
    let mut lines: BTreeMap<Logical, BTreeMap<usize, u64>> = BTreeMap::new();
    for slice in found
        .iter()
        .filter(|slice| over.contains(&slice.transaction))
    {
        for one in &slice.words {
            lines
                .entry(one.line)
                .or_default()
                .insert(one.index, one.value);
        }
    }
    lines
}
