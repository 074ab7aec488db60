//! A persistent B-tree of minimum degree 8 that keeps its items beside it; a transaction inserts a
//! random key, splitting full nodes on the way down (Cormen et al., Introduction to Algorithms).
//! Invariants: keys in order, 7 to 15 a node (the root has fewer), all leaves at one depth.

use super::wide_node::{DEEPEST, DEGREE, Head, KEYS, LEAF, VALUES as ITEMS};
use super::wide_node::{allocate, copy, insert_word};
use super::{COUNT, FREE, Heap, Program, ProgramFile, STEP, TOP, WalkedKeys, fault};
use crate::{Bytes, Fault, Numbers, ProgramSpec};

pub const PROGRAM: ProgramFile = ProgramFile {
    name: "btree",
    line: "inserts an item into a B-tree of minimum degree 8",
    least_bytes: super::PAGE,
    build: |spec, heap| {
        let filled = (spec.footprint / (spec.item_bytes + NODE_SHARE)).max(1);
        // At worst seven keys a node, and some nodes that are not yet full enough.
        let a_key = spec.item_bytes + NODE.div_ceil(DEGREE as u64 - 1);
        let bytes = (filled + spec.transactions) * a_key + DEEPEST as u64 * NODE;
        let heap = Heap::new(heap, bytes);
        (heap, Box::new(BTree { spec, heap, filled }))
    },
};

/// Offset of the children in a node. The head and 15 addresses of items come first; 16 children follow.
const CHILDREN: u64 = 256;
const NODE: u64 = 384;
/// Bytes of nodes for each key in a tree of random keys, whose nodes hold about ten.
const NODE_SHARE: u64 = 37;

struct BTree {
    spec: ProgramSpec,
    heap: Heap,
    filled: u64,
}

impl BTree {
    fn insert(&self, memory: &mut dyn Bytes, key: u64) {
        let sound = "the program's own memory is sound";
        let mut at = memory.load_u64(TOP);
        memory.depend();
        let mut node = Head::load(memory, at).expect(sound);
        if node.full() {
            let top = allocate(memory, NODE);
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

    fn insert_in_leaf(&self, memory: &mut dyn Bytes, mut leaf: Head, index: usize, key: u64) {
        let place = allocate(memory, self.spec.item_bytes);
        self.spec.store_item(memory, place, key);
        insert_word(memory, leaf.at + ITEMS, index, leaf.keys.len(), place);
        leaf.keys.insert(index, key);
        leaf.store(memory, index);
        let count = memory.load_u64(COUNT);
        memory.store_u64(COUNT, count + 1);
    }

    /// Splits the full `child`, which is child `index` of `above`, at its middle key.
    fn split(&self, memory: &mut dyn Bytes, above: &mut Head, index: usize, mut child: Head) {
        let right = allocate(memory, NODE);
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

struct BTreeWalk<'s> {
    keys: WalkedKeys,
    spec: &'s ProgramSpec,
    depth: Option<usize>,
}

impl BTreeWalk<'_> {
    fn node(&mut self, memory: &mut dyn Bytes, at: u64, depth: usize) -> Result<(), Fault> {
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

    fn key(&mut self, memory: &mut dyn Bytes, at: u64, i: u64, key: u64) -> Result<(), Fault> {
        self.keys.next(key, at + KEYS + i * 8, at)?;
        let place = memory.load_u64(at + ITEMS + i * 8);
        if !self.keys.hold(place, self.spec.item_bytes) {
            return fault(at + ITEMS + i * 8, format!("no item can lie at {place:#x}"));
        }
        self.spec.check_item(memory, place, key)
    }
}

impl Program for BTree {
    fn setup(&self, memory: &mut dyn Bytes) {
        let top = self.heap.start;
        memory.store_u64(TOP, top);
        memory.store_u64(FREE, top + NODE);
        memory.store_u64(top, LEAF);
        for number in 0..self.filled {
            self.insert(memory, self.spec.key(u64::MAX - number));
        }
    }

    fn apply(&self, number: u64, memory: &mut dyn Bytes) {
        self.insert(memory, self.spec.key(number));
    }

    fn check(&self, memory: &mut dyn Bytes) -> Result<(), Fault> {
        let mut walk = BTreeWalk {
            keys: WalkedKeys::new(memory, self.heap)?,
            spec: &self.spec,
            depth: None,
        };
        let top = memory.load_u64(TOP);
        walk.node(memory, top, 0)?;
        walk.keys.end()
    }
}
