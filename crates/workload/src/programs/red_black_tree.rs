//! A persistent red-black tree whose nodes hold their items; a transaction inserts a random key
//! and restores the colours (Cormen et al., Introduction to Algorithms). Invariants: keys in order,
//! no red child of a red node, as many black nodes on every way down, parents right.

use super::{COUNT, FREE, Heap, LINE, Program, ProgramFile, STEP, TOP, WalkedKeys};
use super::{fault, words};
use crate::{Bytes, Fault, Numbers, ProgramSpec};

pub const PROGRAM: ProgramFile = ProgramFile {
    name: "rbtree",
    line: "inserts an item into a red-black tree",
    least_bytes: super::PAGE,
    build: |spec, heap| {
        let node = LINE + spec.item_bytes;
        let filled = (spec.footprint / node).max(1);
        let heap = Heap::new(heap, (filled + spec.transactions) * node);
        (heap, Box::new(RedBlackTree { spec, heap, filled }))
    },
};

/// Offsets in a node's header line. Its item follows, and no node has address 0.
const KEY: u64 = 0;
const CHILD: [u64; 2] = [8, 16];
const PARENT: u64 = 24;
const RED: u64 = 32;
/// Depth that no tree exceeds: twice the logarithm of 2^64 keys.
const DEEPEST: usize = 128;

struct RedBlackTree {
    spec: ProgramSpec,
    heap: Heap,
    filled: u64,
}

impl RedBlackTree {
    fn insert(&self, memory: &mut dyn Bytes, key: u64) {
        let mut parent = 0;
        let mut side = 0;
        let mut at = memory.load_u64(TOP);
        while at != 0 {
            memory.compute(STEP);
            memory.depend();
            let here = memory.load_u64(at + KEY);
            if here == key {
                return; // a key drawn before
            }
            side = usize::from(here < key);
            (parent, at) = (at, memory.load_u64(at + CHILD[side]));
        }
        let node = memory.load_u64(FREE);
        let next = node + LINE + self.spec.item_bytes;
        memory.store_u64(FREE, next);
        let count = memory.load_u64(COUNT);
        memory.store_u64(COUNT, count + 1);
        self.spec.store_item(memory, node + LINE, key);
        memory.store_u64(node + KEY, key);
        memory.store_u64(node + CHILD[0], 0);
        memory.store_u64(node + CHILD[1], 0);
        memory.store_u64(node + PARENT, parent);
        memory.store_u64(node + RED, 1);
        match parent {
            0 => memory.store_u64(TOP, node),
            _ => memory.store_u64(parent + CHILD[side], node),
        }
        self.rebalance(memory, node);
    }

    fn rebalance(&self, memory: &mut dyn Bytes, mut at: u64) {
        loop {
            let mut parent = memory.load_u64(at + PARENT);
            memory.depend();
            if parent == 0 {
                memory.store_u64(at + RED, 0);
                return;
            }
            if memory.load_u64(parent + RED) == 0 {
                return;
            }
            memory.compute(STEP);
            let above = memory.load_u64(parent + PARENT); // red, so not the root
            memory.depend();
            let side = usize::from(memory.load_u64(above + CHILD[1]) == parent);
            let uncle = memory.load_u64(above + CHILD[1 - side]);
            memory.depend();
            if uncle != 0 && memory.load_u64(uncle + RED) == 1 {
                memory.store_u64(parent + RED, 0);
                memory.store_u64(uncle + RED, 0);
                memory.store_u64(above + RED, 1);
                at = above;
                continue;
            }
            if memory.load_u64(parent + CHILD[1 - side]) == at {
                self.rotate(memory, parent, side);
                parent = at;
            }
            memory.store_u64(parent + RED, 0);
            memory.store_u64(above + RED, 1);
            self.rotate(memory, above, 1 - side);
            return;
        }
    }

    /// Moves `at` down to `side` (0 is left) and its other child up.
    fn rotate(&self, memory: &mut dyn Bytes, at: u64, side: usize) {
        let up = memory.load_u64(at + CHILD[1 - side]);
        let moved = memory.load_u64(up + CHILD[side]);
        let parent = memory.load_u64(at + PARENT);
        memory.store_u64(at + CHILD[1 - side], moved);
        if moved != 0 {
            memory.store_u64(moved + PARENT, at);
        }
        memory.store_u64(up + PARENT, parent);
        match parent {
            0 => memory.store_u64(TOP, up),
            _ => {
                let side = usize::from(memory.load_u64(parent + CHILD[1]) == at);
                memory.store_u64(parent + CHILD[side], up);
            }
        }
        memory.store_u64(up + CHILD[side], at);
        memory.store_u64(at + PARENT, up);
    }
}

struct RedBlackWalk<'s> {
    keys: WalkedKeys,
    spec: &'s ProgramSpec,
}

impl RedBlackWalk<'_> {
    fn node(
        &mut self,
        memory: &mut dyn Bytes,
        at: u64,
        above: (u64, bool),
        depth: usize,
    ) -> Result<u32, Fault> {
        if at == 0 {
            return Ok(0);
        }
        if !self.keys.hold(at, LINE + self.spec.item_bytes) {
            return fault(at, "no node can lie here");
        }
        if depth > DEEPEST {
            return fault(at, "the tree is too deep: it goes in a circle");
        }
        let mut header = [0; 40];
        memory.load(at, &mut header);
        let [key, left, right, parent, red] = words(&header);
        if red > 1 || parent != above.0 {
            return fault(at, format!("parent {parent:#x}, colour {red:#x}"));
        }
        if red == 1 && above.1 {
            return fault(at, "a red child of a red node");
        }
        let here = (at, red == 1);
        let blacks = self.node(memory, left, here, depth + 1)?;
        self.keys.next(key, at, at)?;
        self.spec.check_item(memory, at + LINE, key)?;
        match self.node(memory, right, here, depth + 1)? == blacks {
            true => Ok(blacks + u32::from(red == 0)),
            false => fault(at, "more black nodes on one side than on the other"),
        }
    }
}

impl Program for RedBlackTree {
    fn setup(&self, memory: &mut dyn Bytes) {
        memory.store_u64(FREE, self.heap.start);
        for number in 0..self.filled {
            self.insert(memory, self.spec.key(u64::MAX - number));
        }
    }

    fn apply(&self, number: u64, memory: &mut dyn Bytes) {
        self.insert(memory, self.spec.key(number));
    }

    fn check(&self, memory: &mut dyn Bytes) -> Result<(), Fault> {
        let mut walk = RedBlackWalk {
            keys: WalkedKeys::new(memory, self.heap)?,
            spec: &self.spec,
        };
        let top = memory.load_u64(TOP);
        walk.node(memory, top, (0, true), 0)?; // the root may not be red either
        walk.keys.end()
    }
}
