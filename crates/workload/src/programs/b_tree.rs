//! A persistent B-tree of minimum degree 8 that keeps its items beside it.
//! Invariants: keys in order, 7 to 15 a node (the root has fewer), all leaves at one depth.

use super::ProgramFile;
use super::wide_node::{DEGREE, Head, TreeKind, TreeWalk, VALUES as ITEMS};
use super::wide_node::{allocate, copy, insert_word};
use crate::{Bytes, Fault, Numbers};

pub const PROGRAM: ProgramFile = ProgramFile {
    name: "btree",
    line: "inserts an item into a B-tree of minimum degree 8",
    least_bytes: super::PAGE,
    build: |spec, heap| KIND.build(spec, heap),
};

/// Offset of the children in a node. The head and 15 addresses of items come first; 16 children follow.
const CHILDREN: u64 = 256;
const NODE: u64 = 384;

static KIND: TreeKind = TreeKind {
    node: NODE,
    node_share: 37,
    // At worst; and some nodes are not yet full enough.
    least_keys: DEGREE as u64 - 1,
    children: CHILDREN,
    child: |keys, key| {
        let index = keys.partition_point(|k| *k < key);
        (keys.get(index) != Some(&key)).then_some(index)
    },
    split,
    check: |mut walk, memory, top| {
        node(&mut walk, memory, top, 0)?;
        walk.end()
    },
};

/// Splits the full `child`, which is child `index` of `above`, at its middle key.
fn split(memory: &mut dyn Bytes, above: &mut Head, index: usize, mut child: Head) {
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

fn node(walk: &mut TreeWalk, memory: &mut dyn Bytes, at: u64, depth: usize) -> Result<(), Fault> {
    let head = walk.head(memory, at, depth)?;
    for index in 0..=head.keys.len() {
        if !head.leaf {
            let child = memory.load_u64(at + CHILDREN + index as u64 * 8);
            node(walk, memory, child, depth + 1)?;
        }
        if let Some(key) = head.keys.get(index) {
            walk.key(memory, at, index, *key)?;
        }
    }
    Ok(())
}
