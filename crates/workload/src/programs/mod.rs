//! The programs: data structures that know nothing of logs, transactions or recovery. Each lies in a
//! region of its own: the root line first, then what its durability keeps, then its heap.
//! To add one: its file here and its name in [`programs!`]; `docs/simulator/programs.md` goes through it.

mod wide_node;

use super::random::Random;
use super::{Bytes, COUNTER_SPAN, Fault, Numbers, ProgramSpec};
use sardonyx::line::LINE_BYTES;

macro_rules! programs {
    ($list:ident: $($file:ident)* $(; $more:expr)?) => {
        $(mod $file;)*

        /// Every program of its kind.
        pub(super) static $list: &[ProgramFile] = &[$($file::PROGRAM),* $(, $more)?];
    };
}

programs! { PROGRAMS:
    array_swap
    queue
    hash_table
    b_tree
    red_black_tree
    chain_queue
    bplus_tree
    duplicates
    ; array_swap::AND_STORE
}

// Those of which all cores have one together.
programs! { SHARED:
    shared_accounts
    shared_queue
}

/// A data structure and what one transaction does to it. Its few numbers stand in the root line, the first of its
/// region, whose last eight bytes belong to the durability.
pub trait Program: Send {
    /// Makes the structure, filled to the footprint, in a region of zeros.
    fn setup(&self, memory: &mut dyn Bytes);

    /// Does what transaction `number` does, the first being 1: loads, stores and computes, as if
    /// power never failed.
    fn apply(&self, number: u64, memory: &mut dyn Bytes);

    /// Whether transaction `number` is none: one durable store, of its number.
    fn is_store(&self, _number: u64) -> bool {
        false
    }

    /// The locks that a transaction takes if other cores run the same program: one for everything that it will touch,
    /// in an order that all cores keep to.
    fn locks(&self, _number: u64) -> Vec<u64> {
        Vec::new()
    }

    /// Checks the structure's invariants from the bytes alone; reads all of it.
    ///
    /// # Errors
    /// The first that does not.
    fn check(&self, memory: &mut dyn Bytes) -> Result<(), Fault>;
}

/// The description that a program's file exports.
#[derive(Debug)]
pub struct ProgramFile {
    /// Its name on the command line.
    pub name: &'static str,
    /// What a transaction does.
    pub line: &'static str,
    /// The smallest footprint of the program, unless two items need more.
    pub least_bytes: u64,
    /// Builds the program, and the heap that begins at this byte.
    pub(super) build: fn(ProgramSpec, u64) -> (Heap, Box<dyn Program>),
}

const LINE: u64 = LINE_BYTES as u64;

const PAGE: u64 = 4096;

/// Instructions of one step of a search that touch no memory (assumed).
const STEP: u32 = 10;
/// Lines, items left out, that a transaction may change, for example by rebalancing a tree up to its root.
const REBALANCED: u64 = 256;

impl ProgramSpec {
    pub(super) fn most_lines(&self) -> u64 {
        2 * self.item_bytes / LINE + REBALANCED
    }

    fn key(&self, number: u64) -> u64 {
        Random::new(self.seed, number).draw()
    }
}

/// The bytes of the region that hold items, nodes and buckets. They end the region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heap {
    start: u64,
    pub end: u64,
}

impl Heap {
    fn new(start: u64, bytes: u64) -> Heap {
        let end = (start + bytes).next_multiple_of(COUNTER_SPAN);
        Heap { start, end }
    }

    fn holds(&self, at: u64, len: u64) -> bool {
        at.is_multiple_of(LINE) && at >= self.start && at <= self.end && self.end - at >= len
    }
}

/// Offsets in the root line of a tree: the root node, the number of keys, the first free byte of the heap.
const TOP: u64 = 0;
const COUNT: u64 = 8;
const FREE: u64 = 16;

/// The keys of a tree whose bytes may be anything, counted as a walk meets them.
struct WalkedKeys {
    heap: Heap,
    free: u64,
    count: u64,
    left: u64,
    last: Option<u64>,
}

impl WalkedKeys {
    fn new(memory: &mut dyn Bytes, heap: Heap) -> Result<WalkedKeys, Fault> {
        let free = memory.load_u64(FREE);
        let count = memory.load_u64(COUNT);
        if !free.is_multiple_of(LINE) || free > heap.end {
            return fault(FREE, format!("the heap ends at {free:#x}"));
        }
        Ok(WalkedKeys {
            heap,
            free,
            count,
            left: count,
            last: None,
        })
    }

    fn hold(&self, at: u64, len: u64) -> bool {
        self.heap.holds(at, len) && at < self.free
    }

    /// Meets `key`, which stands at `at` in the node at `node`.
    fn next(&mut self, key: u64, at: u64, node: u64) -> Result<(), Fault> {
        if self.last.is_some_and(|last| last >= key) {
            return fault(at, format!("key {key:#x} is out of order"));
        }
        self.last = Some(key);
        if self.left == 0 {
            return fault(node, "more keys than were counted");
        }
        self.left -= 1;
        Ok(())
    }

    fn end(self) -> Result<(), Fault> {
        match self.left {
            0 => Ok(()),
            n => fault(COUNT, format!("{n} of {} keys are missing", self.count)),
        }
    }
}

fn fault<T>(at: u64, what: impl Into<String>) -> Result<T, Fault> {
    let what = what.into();
    Err(Fault { at, what })
}

fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

fn to_bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
