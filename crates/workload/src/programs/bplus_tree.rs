//! A persistent B+ tree: keys and addresses of items lie in leaves, which are chained; inner nodes only
//! guide. A transaction inserts a random key, splitting full nodes on the way down.
//! Invariants: keys in order, 7 to 15 a node (the root has fewer), all leaves at one depth and in the
//! chain in order, each guiding key the least one right of it.

use super::wide_node::{DEEPEST, DEGREE, Head, KEYS, LEAF, MOST, VALUES};
use super::wide_node::{allocate, copy, insert_word};
use super::{COUNT, FREE, Heap, Program, ProgramFile, STEP, TOP, WalkedKeys, fault};
use crate::{Bytes, Fault, Numbers, ProgramSpec};

pub const PROGRAM: ProgramFile = ProgramFile {
    name: "bplus-tree",
    line: "inserts an item into a B+ tree with chained leaves",
    least_bytes: super::PAGE,
    build: |spec, heap| {
        let filled = (spec.footprint / (spec.item_bytes + NODE_SHARE)).max(1);
        // At worst seven keys a leaf and eight children a node: under a sixth of a node a key.
        let a_key = spec.item_bytes + NODE.div_ceil(DEGREE as u64 - 2);
        let bytes = (filled + spec.transactions) * a_key + DEEPEST as u64 * NODE;
        let heap = Heap::new(heap, bytes);
        (heap, Box::new(BPlusTree { spec, heap, filled }))
    },
};

/// Offset of the next leaf's address in a leaf, after 15 addresses of items; 0 for none. An inner node has 16 children.
const NEXT: u64 = VALUES + MOST as u64 * 8;
const NODE: u64 = 256;
/// Bytes of nodes for each key in a tree of random keys, whose nodes hold about ten.
const NODE_SHARE: u64 = 27;

struct BPlusTree {
    spec: ProgramSpec,
    heap: Heap,
    filled: u64,
}

impl BPlusTree {
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
            memory.store_u64(top + VALUES, at);
            self.split(memory, &mut above, 0, node);
            memory.store_u64(TOP, top);
            node = above;
        }
        loop {
            memory.compute(STEP);
            memory.depend();
            if node.leaf {
                return self.insert_in_leaf(memory, node, key);
            }
            let mut index = node.keys.partition_point(|k| *k <= key);
            at = memory.load_u64(node.at + VALUES + index as u64 * 8);
            memory.depend();
            let mut child = Head::load(memory, at).expect(sound);
            if child.full() {
                self.split(memory, &mut node, index, child);
                index += usize::from(node.keys[index] <= key);
                at = memory.load_u64(node.at + VALUES + index as u64 * 8);
                child = Head::load(memory, at).expect(sound);
            }
            node = child;
        }
    }

    fn insert_in_leaf(&self, memory: &mut dyn Bytes, mut leaf: Head, key: u64) {
        let index = leaf.keys.partition_point(|k| *k < key);
        if leaf.keys.get(index) == Some(&key) {
            return; // a key drawn before
        }
        let place = allocate(memory, self.spec.item_bytes);
        self.spec.store_item(memory, place, key);
        insert_word(memory, leaf.at + VALUES, index, leaf.keys.len(), place);
        leaf.keys.insert(index, key);
        leaf.store(memory, index);
        let count = memory.load_u64(COUNT);
        memory.store_u64(COUNT, count + 1);
    }

    /// Splits the full `child`, which is child `index` of `above`: an inner node at its middle key, a leaf before its
    /// ninth key, which guides.
    fn split(&self, memory: &mut dyn Bytes, above: &mut Head, index: usize, mut child: Head) {
        let right = allocate(memory, NODE);
        let tail = DEGREE as u64 * 8;
        let words = MOST - DEGREE + usize::from(!child.leaf);
        copy(memory, child.at + VALUES + tail, right + VALUES, words);
        let keys = child.keys.split_off(DEGREE);
        let guide = match child.leaf {
            true => keys[0],
            false => child.keys.pop().expect("a full node"),
        };
        let (at, leaf) = (right, child.leaf);
        Head { at, leaf, keys }.store(memory, 0);
        if leaf {
            let next = memory.load_u64(child.at + NEXT);
            memory.store_u64(right + NEXT, next);
            memory.store_u64(child.at + NEXT, right);
        }
        child.store(memory, child.keys.len());

        insert_word(
            memory,
            above.at + VALUES,
            index + 1,
            above.keys.len() + 1,
            right,
        );
        above.keys.insert(index, guide);
        above.store(memory, index);
    }
}

struct BPlusTreeWalk<'s> {
    keys: WalkedKeys,
    spec: &'s ProgramSpec,
    depth: Option<usize>,
    /// The leaf that the last leaf names as the next one.
    next: Option<u64>,
}

impl BPlusTreeWalk<'_> {
    fn node(
        &mut self,
        memory: &mut dyn Bytes,
        at: u64,
        depth: usize,
    ) -> Result<Option<u64>, Fault> {
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
        if node.leaf {
            return self.leaf(memory, &node, depth);
        }
        let first = memory.load_u64(at + VALUES);
        let least = self.node(memory, first, depth + 1)?;
        for (index, key) in (1..).zip(&node.keys) {
            let child = memory.load_u64(at + VALUES + index * 8);
            if self.node(memory, child, depth + 1)? != Some(*key) {
                return fault(at, format!("{key:#x} is not the least key right of it"));
            }
        }
        Ok(least)
    }

    fn leaf(
        &mut self,
        memory: &mut dyn Bytes,
        leaf: &Head,
        depth: usize,
    ) -> Result<Option<u64>, Fault> {
        if *self.depth.get_or_insert(depth) != depth {
            return fault(leaf.at, "leaves at different depths");
        }
        if self.next.is_some_and(|next| next != leaf.at) {
            return fault(leaf.at, "the leaf before is not chained to this one");
        }
        self.next = Some(memory.load_u64(leaf.at + NEXT));
        for (index, key) in (0..).zip(&leaf.keys) {
            let (at, value) = (leaf.at + KEYS + index * 8, leaf.at + VALUES + index * 8);
            self.keys.next(*key, at, leaf.at)?;
            let place = memory.load_u64(value);
            if !self.keys.hold(place, self.spec.item_bytes) {
                return fault(value, format!("no item can lie at {place:#x}"));
            }
            self.spec.check_item(memory, place, *key)?;
        }
        Ok(leaf.keys.first().copied())
    }
}

impl Program for BPlusTree {
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
        let mut walk = BPlusTreeWalk {
            keys: WalkedKeys::new(memory, self.heap)?,
            spec: &self.spec,
            depth: None,
            next: None,
        };
        let top = memory.load_u64(TOP);
        walk.node(memory, top, 0)?;
        if let Some(next) = walk.next.filter(|next| *next != 0) {
            return fault(TOP, format!("the last leaf is chained to {next:#x}"));
        }
        walk.keys.end()
    }
}
