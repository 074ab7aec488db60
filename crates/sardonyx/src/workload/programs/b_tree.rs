//! A persistent B-tree of minimum degree 8 that keeps its items beside it; a transaction inserts a
//! random key, splitting full nodes on the way down (Cormen et al., Introduction to Algorithms).
//! Invariants: keys in order, 7 to 15 a node (the root has fewer), all leaves at one depth.

use super::{COUNT, FREE, Heap, Keys, Program, ProgramFile, STEP, TOP, check_item_of, fault};
use super::{to_bytes, words};
use crate::workload::random::store_item;
use crate::workload::{Fault, Memory, MemoryExt, ProgramSpec};

pub const PROGRAM: ProgramFile = ProgramFile {
    name: "btree",
    line: "inserts an item into a B-tree of minimum degree 8",
    build: |spec, heap| {
        let filled = (spec.footprint / (spec.item_bytes + NODE_SHARE)).max(1);
        // At worst seven keys a node, and some nodes that are not yet full enough.
        let a_key = spec.item_bytes + NODE.div_ceil(DEGREE as u64 - 1);
        let bytes = (filled + spec.transactions) * a_key + DEEPEST as u64 * NODE;
        let heap = Heap::new(heap, bytes);
        (heap, Box::new(BTree { spec, heap, filled }))
    },
};

const DEGREE: usize = 8;
const MOST: usize = 2 * DEGREE - 1;
/// A node: its count and whether it is a leaf, 15 keys; 15 addresses of items; 16 of children.
const KEYS: u64 = 8;
const ITEMS: u64 = 128;
const CHILDREN: u64 = 256;
const NODE: u64 = 384;
const LEAF: u64 = 1 << 32;
/// Node bytes a key in a tree of random keys, of which nodes hold about ten.
const NODE_SHARE: u64 = 37;
/// No tree is deeper: 2^64 keys, at least 7 a node.
const DEEPEST: usize = 24;

/// The tree.
struct BTree {
    spec: ProgramSpec,
    heap: Heap,
    filled: u64,
}

/// The first two lines of a node.
struct Head {
    at: u64,
    leaf: bool,
    keys: Vec<u64>,
}

impl Head {
    /// # Errors
    /// There are more keys than a node has.
    fn load(memory: &mut dyn Memory, at: u64) -> Result<Head, Fault> {
        let mut bytes = [0; ITEMS as usize];
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

    /// Writes the count and the keys from `from` on.
    fn store(&self, memory: &mut dyn Memory, from: usize) {
        let leaf = if self.leaf { LEAF } else { 0 };
        memory.store_u64(self.at, self.keys.len() as u64 | leaf);
        let at = self.at + KEYS + from as u64 * 8;
        memory.store(at, &to_bytes(&self.keys[from..]));
    }

    fn full(&self) -> bool {
        self.keys.len() == MOST
    }
}

/// Puts `word` at index `index` of an array of `len` words at `at`.
fn insert_word(memory: &mut dyn Memory, at: u64, index: usize, len: usize, word: u64) {
    let mut bytes = vec![0; (len - index) * 8];
    memory.load(at + index as u64 * 8, &mut bytes);
    let mut after = word.to_le_bytes().to_vec();
    after.append(&mut bytes);
    memory.store(at + index as u64 * 8, &after);
}

fn copy(memory: &mut dyn Memory, from: u64, to: u64, words: usize) {
    let mut bytes = vec![0; words * 8];
    memory.load(from, &mut bytes);
    memory.store(to, &bytes);
}

impl BTree {
    fn allocate(&self, memory: &mut dyn Memory, bytes: u64) -> u64 {
        let at = memory.load_u64(FREE);
        memory.store_u64(FREE, at + bytes);
        at
    }

    fn insert(&self, memory: &mut dyn Memory, key: u64) {
        let sound = "the program's own memory is sound";
        let mut at = memory.load_u64(TOP);
        memory.depend();
        let mut node = Head::load(memory, at).expect(sound);
        if node.full() {
            let top = self.allocate(memory, NODE);
            let mut above = Head {
                at: top,
                leaf: false,
                keys: Vec::new(),
            };
            memory.store_u64(top + CHILDREN, at);
            self.split(memory, &mut above, 0, node);
            memory.store_u64(TOP, top);
            node = above;
        }
        loop {
            memory.compute(STEP);
            memory.depend();
            let mut index = node.keys.partition_point(|k| *k < key);
            if node.keys.get(index) == Some(&key) {
                return; // a key drawn before
            }
            if node.leaf {
                return self.insert_in_leaf(memory, node, index, key);
            }
            at = memory.load_u64(node.at + CHILDREN + index as u64 * 8);
            memory.depend();
            let mut child = Head::load(memory, at).expect(sound);
            if child.full() {
                self.split(memory, &mut node, index, child);
                index += usize::from(node.keys[index] < key);
                if node.keys.get(index) == Some(&key) {
                    return;
                }
                at = memory.load_u64(node.at + CHILDREN + index as u64 * 8);
                child = Head::load(memory, at).expect(sound);
            }
            node = child;
        }
    }

    fn insert_in_leaf(&self, memory: &mut dyn Memory, mut leaf: Head, index: usize, key: u64) {
        let place = self.allocate(memory, self.spec.item_bytes);
        store_item(memory, place, self.spec.item_bytes, key);
        insert_word(memory, leaf.at + ITEMS, index, leaf.keys.len(), place);
        leaf.keys.insert(index, key);
        leaf.store(memory, index);
        let count = memory.load_u64(COUNT);
        memory.store_u64(COUNT, count + 1);
    }

    /// Splits the full `child`, which is child `index` of `above`, around its middle key.
    fn split(&self, memory: &mut dyn Memory, above: &mut Head, index: usize, mut child: Head) {
        let right = self.allocate(memory, NODE);
        let tail = DEGREE as u64 * 8;
        copy(memory, child.at + ITEMS + tail, right + ITEMS, DEGREE - 1);
        if !child.leaf {
            copy(memory, child.at + CHILDREN + tail, right + CHILDREN, DEGREE);
        }
        let keys = child.keys.split_off(DEGREE);
        let (at, leaf) = (right, child.leaf);
        Head { at, leaf, keys }.store(memory, 0);
        let middle = child.keys.pop().expect("a full node");
        let middle_item = memory.load_u64(child.at + ITEMS + tail - 8);
        child.store(memory, child.keys.len());

        let len = above.keys.len();
        insert_word(memory, above.at + ITEMS, index, len, middle_item);
        insert_word(memory, above.at + CHILDREN, index + 1, len + 1, right);
        above.keys.insert(index, middle);
        above.store(memory, index);
    }
}

/// A walk over a tree that may be anything.
struct Walk {
    keys: Keys,
    item_bytes: u64,
    /// Of the leaves.
    depth: Option<usize>,
}

impl Walk {
    fn node(&mut self, memory: &mut dyn Memory, at: u64, depth: usize) -> Result<(), Fault> {
        if !self.keys.hold(at, NODE) {
            return fault(at, "no node can lie here");
        }
        if depth > DEEPEST {
            return fault(at, "the tree is too deep: it goes in a circle");
        }
        let node = Head::load(memory, at)?;
        if depth > 0 && node.keys.len() < DEGREE - 1 {
            return fault(at, format!("a node of {} keys", node.keys.len()));
        }
        if node.leaf && *self.depth.get_or_insert(depth) != depth {
            return fault(at, "leaves at different depths");
        }
        for index in 0..=node.keys.len() {
            if !node.leaf {
                let child = memory.load_u64(at + CHILDREN + index as u64 * 8);
                self.node(memory, child, depth + 1)?;
            }
            if let Some(key) = node.keys.get(index) {
                self.key(memory, at, index as u64, *key)?;
            }
        }
        Ok(())
    }

    fn key(&mut self, memory: &mut dyn Memory, at: u64, i: u64, key: u64) -> Result<(), Fault> {
        self.keys.next(key, at + KEYS + i * 8, at)?;
        let place = memory.load_u64(at + ITEMS + i * 8);
        if !self.keys.hold(place, self.item_bytes) {
            return fault(at + ITEMS + i * 8, format!("no item can lie at {place:#x}"));
        }
        check_item_of(key, memory, place, self.item_bytes, place)
    }
}

impl Program for BTree {
    fn setup(&self, memory: &mut dyn Memory) {
        let top = self.heap.start;
        memory.store_u64(TOP, top);
        memory.store_u64(FREE, top + NODE);
        memory.store_u64(top, LEAF);
        for number in 0..self.filled {
            self.insert(memory, self.spec.key(u64::MAX - number));
        }
    }

    fn apply(&self, number: u64, memory: &mut dyn Memory) {
        self.insert(memory, self.spec.key(number));
    }

    fn check(&self, memory: &mut dyn Memory) -> Result<(), Fault> {
        let mut walk = Walk {
            keys: Keys::new(memory, self.heap)?,
            item_bytes: self.spec.item_bytes,
            depth: None,
        };
        let top = memory.load_u64(TOP);
        walk.node(memory, top, 0)?;
        walk.keys.end()
    }
}
