//! A persistent B+ tree: keys and addresses of items lie in leaves, which are chained; inner nodes only guide.
//! Invariants: keys in order, 7 to 15 a node (the root has fewer), all leaves at one depth and in the
//! chain in order, each guiding key the least one right of it.

use super::wide_node::{DEGREE, Head, MOST, TreeKind, TreeWalk, VALUES};
use super::wide_node::{allocate, copy, insert_word};
use super::{ProgramFile, TOP, fault};
use crate::{Bytes, Fault, Numbers};

pub const PROGRAM: ProgramFile = ProgramFile {
    name: "bplus-tree",
    line: "inserts an item into a B+ tree with chained leaves",
    least_bytes: super::PAGE,
    build: |spec, heap| KIND.build(spec, heap),
};

/// Offset of the next leaf's address in a leaf, after 15 addresses of items; 0 for none. An inner node has 16 children.
const NEXT: u64 = VALUES + MOST as u64 * 8;
const NODE: u64 = 256;

static KIND: TreeKind = TreeKind {
    node: NODE,
    node_share: 27,
    // At worst seven keys a leaf and eight children a node: under a sixth of a node a key.
    least_keys: DEGREE as u64 - 2,
    children: VALUES,
    child: |keys, key| Some(keys.partition_point(|k| *k <= key)),
    split,
    check: |walk, memory, top| {
        let mut chain = Chain { walk, next: None };
        chain.node(memory, top, 0)?;
        if let Some(next) = chain.next.filter(|next| *next != 0) {
            return fault(TOP, format!("the last leaf is chained to {next:#x}"));
        }
        chain.walk.end()
    },
};

/// Splits the full `child`, which is child `index` of `above`: an inner node at its middle key, a leaf before its
/// ninth key, which guides.
fn split(memory: &mut dyn Bytes, above: &mut Head, index: usize, mut child: Head) {
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

    let len = above.keys.len();
    insert_word(memory, above.at + VALUES, index + 1, len + 1, right);
    above.keys.insert(index, guide);
    above.store(memory, index);
}

struct Chain<'s> {
    walk: TreeWalk<'s>,
    /// The leaf that the last leaf names as the next one.
    next: Option<u64>,
}

impl Chain<'_> {
    /// Checks a node and those below it. Returns the least key there.
    fn node(
        &mut self,
        memory: &mut dyn Bytes,
        at: u64,
        depth: usize,
    ) -> Result<Option<u64>, Fault> {
        let node = self.walk.head(memory, at, depth)?;
        if node.leaf {
            return self.leaf(memory, &node);
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

    fn leaf(&mut self, memory: &mut dyn Bytes, leaf: &Head) -> Result<Option<u64>, Fault> {
        if self.next.is_some_and(|next| next != leaf.at) {
            return fault(leaf.at, "the leaf before is not chained to this one");
        }
        self.next = Some(memory.load_u64(leaf.at + NEXT));
        for (index, key) in leaf.keys.iter().enumerate() {
            self.walk.key(memory, leaf.at, index, *key)?;
        }
        Ok(leaf.keys.first().copied())
    }
}
