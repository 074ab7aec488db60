//! The five structures, by name. Each lies in a region of its own: undo log, root line, heap.
//! To add one: its file here, its line in [`PROGRAMS`]; `docs/programs.md` goes through it.

mod array_swap;
mod b_tree;
mod hash_table;
mod queue;
mod red_black_tree;

use std::ops::Range;

use super::undo_log::UndoLog;
use super::{COUNTER_SPAN, Fault, Memory, MemoryExt, Program, ProgramSpec};
use crate::line::LINE_BYTES;

const LINE: u64 = LINE_BYTES as u64;

/// Instructions of one transaction that touch no memory: choosing, calling, returning (assumed).
const OPERATION: u32 = 100;
/// Instructions of one step of a search that touch no memory (assumed).
const STEP: u32 = 10;
/// Lines, items left out, that a transaction may change: a tree's rebalancing up to its root.
const REBALANCED: u64 = 256;

/// A program by name.
#[derive(Debug)]
pub struct Known {
    /// Its name on the command line.
    pub name: &'static str,
    /// What a transaction does.
    pub line: &'static str,
    pub(super) build: fn(&ProgramSpec) -> Box<dyn Program>,
}

#[rustfmt::skip]
pub(super) static PROGRAMS: &[Known] = &[
    Known { name: "array-swap", line: "swaps two items of an array", build: |spec| Box::new(array_swap::ArraySwap::new(spec)) },
    Known { name: "queue", line: "puts an item into a ring or takes one out", build: |spec| Box::new(queue::Queue::new(spec)) },
    Known { name: "hash", line: "inserts an item into a chained hash table", build: |spec| Box::new(hash_table::HashTable::new(spec)) },
    Known { name: "btree", line: "inserts an item into a B-tree of minimum degree 8", build: |spec| Box::new(b_tree::BTree::new(spec)) },
    Known { name: "rbtree", line: "inserts an item into a red-black tree", build: |spec| Box::new(red_black_tree::RedBlackTree::new(spec)) },
];

/// Where a structure's parts lie in its region. The root line comes first, with the log: what every
/// transaction writes lies in one row of the medium.
#[derive(Clone, Copy, Debug)]
struct Parts {
    log: UndoLog,
    /// The line with the structure's few own numbers.
    root: u64,
    heap: u64,
    end: u64,
}

impl Parts {
    /// With a heap of `heap_bytes`, for items of the specification's size.
    fn new(spec: &ProgramSpec, heap_bytes: u64) -> Parts {
        let log = UndoLog::new(COUNTER_SPAN, 2 * spec.item_bytes / LINE + REBALANCED);
        let heap = log.end();
        Parts {
            log,
            root: 0,
            heap,
            end: (heap + heap_bytes).next_multiple_of(COUNTER_SPAN),
        }
    }

    /// The whole region.
    fn region(&self) -> Range<u64> {
        0..self.end
    }

    /// Whether a block of `len` bytes aligned to lines may lie at `at`.
    fn holds(&self, at: u64, len: u64) -> bool {
        at.is_multiple_of(LINE) && at >= self.heap && at <= self.end && self.end - at >= len
    }

    fn root_u64(&self, memory: &mut dyn Memory, offset: u64) -> u64 {
        memory.load_u64(self.root + offset)
    }

    fn set_root_u64(&self, memory: &mut dyn Memory, offset: u64, value: u64) {
        memory.store_u64(self.root + offset, value);
    }
}

fn fault<T>(at: u64, what: impl Into<String>) -> Result<T, Fault> {
    let what = what.into();
    Err(Fault { at, what })
}

/// Eight bytes a word.
fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

fn to_bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
