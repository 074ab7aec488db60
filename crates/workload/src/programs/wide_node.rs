//! What nodes of many keys share, the B-tree's and the B+ tree's: two lines that hold the count, whether
//! it is a leaf, and the keys in order; behind them arrays of words.

use super::{FREE, fault, to_bytes, words};
use crate::{Bytes, Fault, Numbers};

/// The minimum degree.
pub const DEGREE: usize = 8;
/// Keys of a node, at most.
pub const MOST: usize = 2 * DEGREE - 1;
/// Offset of a node's keys. Two lines of keys precede the values, an address for each key.
pub const KEYS: u64 = 8;
pub const VALUES: u64 = 128;
/// A flag in a node's first word, beside the count.
pub const LEAF: u64 = 1 << 32;
/// Depth that no tree exceeds: 2^64 keys, at least 7 in each node.
pub const DEEPEST: usize = 24;

/// The first two lines of a node.
pub struct Head {
    pub at: u64,
    pub leaf: bool,
    pub keys: Vec<u64>,
}

impl Head {
    /// Loads the head of the node at `at`.
    ///
    /// # Errors
    /// There are more keys than a node has.
    pub fn load(memory: &mut dyn Bytes, at: u64) -> Result<Head, Fault> {
        let mut bytes = [0; VALUES as usize];
        memory.load(at, &mut bytes);
        let [first, keys @ ..]: [u64; 1 + MOST] = words(&bytes);
        let count = first & (LEAF - 1);
        if count > MOST as u64 || first & !(LEAF | 0xf) != 0 {
            return fault(at, format!("a node begins with {first:#x}"));
        }
        let keys = keys[..count as usize].to_vec();
        let leaf = first & LEAF != 0;
        Ok(Head { at, leaf, keys })
    }

    /// Writes the count, and the keys from index `from` on.
    pub fn store(&self, memory: &mut dyn Bytes, from: usize) {
        let leaf = if self.leaf { LEAF } else { 0 };
        memory.store_u64(self.at, self.keys.len() as u64 | leaf);
        let at = self.at + KEYS + from as u64 * 8;
        memory.store(at, &to_bytes(&self.keys[from..]));
    }

    pub fn full(&self) -> bool {
        self.keys.len() == MOST
    }
}

/// Takes `bytes` bytes from the free end of the heap.
pub fn allocate(memory: &mut dyn Bytes, bytes: u64) -> u64 {
    let at = memory.load_u64(FREE);
    memory.store_u64(FREE, at + bytes);
    at
}

/// Puts `word` at index `index` of an array of `len` words at `at`.
pub fn insert_word(memory: &mut dyn Bytes, at: u64, index: usize, len: usize, word: u64) {
    let mut bytes = vec![0; (len - index) * 8];
    memory.load(at + index as u64 * 8, &mut bytes);
    let mut after = word.to_le_bytes().to_vec();
    after.append(&mut bytes);
    memory.store(at + index as u64 * 8, &after);
}

/// Copies `words` words from `from` to `to`.
pub fn copy(memory: &mut dyn Bytes, from: u64, to: u64, words: usize) {
    let mut bytes = vec![0; words * 8];
    memory.load(from, &mut bytes);
    memory.store(to, &bytes);
}
