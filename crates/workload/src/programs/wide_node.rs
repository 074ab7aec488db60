//! Trees whose nodes have many keys, the B-tree's and the B+ tree's: two lines that hold the count, whether it is a
//! leaf, and the keys in order; behind them arrays of words. A transaction inserts a random key, splitting full nodes on
//! the way down (Cormen et al., Introduction to Algorithms).

use super::{COUNT, FREE, Heap, Program, STEP, TOP, WalkedKeys, fault, to_bytes, words};
use crate::{Bytes, Fault, Numbers, ProgramSpec};

/// The minimum degree.
pub const DEGREE: usize = 8;
/// Keys of a node, at most.
pub const MOST: usize = 2 * DEGREE - 1;
/// Offset of a node's keys. Two lines of keys precede the values, an address for each key.
const KEYS: u64 = 8;
pub const VALUES: u64 = 128;
/// A flag in a node's first word, beside the count.
const LEAF: u64 = 1 << 32;
/// Depth that no tree exceeds: 2^64 keys, at least 7 in each node.
const DEEPEST: usize = 24;

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
    fn load(memory: &mut dyn Bytes, at: u64) -> Result<Head, Fault> {
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

    fn full(&self) -> bool {
        self.keys.len() == MOST
    }
}

/// What a kind of tree has of its own.
pub struct TreeKind {
    /// Bytes of a node.
    pub node: u64,
    /// Bytes of nodes for each key in a tree of random keys, whose nodes hold about ten.
    pub node_share: u64,
    /// Keys for each node, at least.
    pub least_keys: u64,
    /// Offset of the children in an inner node.
    pub children: u64,
    /// The index of the child below which a key belongs, by the keys of the inner node; `None` if that has the key's item.
    pub child: fn(&[u64], u64) -> Option<usize>,
    /// Splits a full node, which is the child with this index of the first one.
    pub split: fn(&mut dyn Bytes, &mut Head, usize, Head),
    /// Checks the tree whose root is at this address.
    pub check: fn(TreeWalk, &mut dyn Bytes, u64) -> Result<(), Fault>,
}

impl TreeKind {
    /// Builds the program of this kind, and its heap.
    pub fn build(&'static self, spec: ProgramSpec, heap: u64) -> (Heap, Box<dyn Program>) {
        let filled = (spec.footprint / (spec.item_bytes + self.node_share)).max(1);
        let a_key = spec.item_bytes + self.node.div_ceil(self.least_keys);
        let bytes = (filled + spec.transactions) * a_key + DEEPEST as u64 * self.node;
        let heap = Heap::new(heap, bytes);
        let tree = WideTree {
            kind: self,
            spec,
            heap,
            filled,
        };
        (heap, Box::new(tree))
    }
}

struct WideTree {
    kind: &'static TreeKind,
    spec: ProgramSpec,
    heap: Heap,
    filled: u64,
}

impl WideTree {
    fn insert(&self, memory: &mut dyn Bytes, key: u64) {
        let sound = "the program's own memory is sound";
        let TreeKind {
            node: bytes,
            children,
            child: child_of,
            split,
            ..
        } = *self.kind;
        let mut at = memory.load_u64(TOP);
        memory.depend();
        let mut node = Head::load(memory, at).expect(sound);
        if node.full() {
            let top = allocate(memory, bytes);
            let mut above = Head {
                at: top,
                leaf: false,
                keys: Vec::new(),
            };
            memory.store_u64(top + children, at);
            split(memory, &mut above, 0, node);
            memory.store_u64(TOP, top);
            node = above;
        }
        loop {
            memory.compute(STEP);
            memory.depend();
            if node.leaf {
                return self.insert_in_leaf(memory, node, key);
            }
            let Some(mut index) = child_of(&node.keys, key) else {
                return; // a key drawn before
            };
            at = memory.load_u64(node.at + children + index as u64 * 8);
            memory.depend();
            let mut child = Head::load(memory, at).expect(sound);
            if child.full() {
                split(memory, &mut node, index, child);
                match child_of(&node.keys, key) {
                    Some(now) => index = now,
                    None => return,
                }
                at = memory.load_u64(node.at + children + index as u64 * 8);
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
}

impl Program for WideTree {
    fn setup(&self, memory: &mut dyn Bytes) {
        let top = self.heap.start;
        memory.store_u64(TOP, top);
        memory.store_u64(FREE, top + self.kind.node);
        memory.store_u64(top, LEAF);
        for number in 0..self.filled {
            self.insert(memory, self.spec.key(u64::MAX - number));
        }
    }

    fn apply(&self, number: u64, memory: &mut dyn Bytes) {
        self.insert(memory, self.spec.key(number));
    }

    fn check(&self, memory: &mut dyn Bytes) -> Result<(), Fault> {
        let walk = TreeWalk {
            keys: WalkedKeys::new(memory, self.heap)?,
            spec: &self.spec,
            node: self.kind.node,
            leaves: None,
        };
        let top = memory.load_u64(TOP);
        (self.kind.check)(walk, memory, top)
    }
}

/// A walk over a tree whose bytes may be anything, by its keys in order.
pub struct TreeWalk<'s> {
    keys: WalkedKeys,
    spec: &'s ProgramSpec,
    node: u64,
    /// The depth of the leaves.
    leaves: Option<usize>,
}

impl TreeWalk<'_> {
    /// The head of the node at `at`, which lies at this depth.
    pub fn head(&mut self, memory: &mut dyn Bytes, at: u64, depth: usize) -> Result<Head, Fault> {
        if !self.keys.hold(at, self.node) {
            return fault(at, "no node can lie here");
        }
        if depth > DEEPEST {
            return fault(at, "the tree is too deep: it goes in a circle");
        }
        let node = Head::load(memory, at)?;
        if depth > 0 && node.keys.len() < DEGREE - 1 {
            return fault(at, format!("a node of {} keys", node.keys.len()));
        }
        if node.leaf && *self.leaves.get_or_insert(depth) != depth {
            return fault(at, "leaves at different depths");
        }
        Ok(node)
    }

    /// Meets key `index` of the node at `at`, and its item.
    pub fn key(
        &mut self,
        memory: &mut dyn Bytes,
        at: u64,
        index: usize,
        key: u64,
    ) -> Result<(), Fault> {
        let offset = index as u64 * 8;
        self.keys.next(key, at + KEYS + offset, at)?;
        let value = at + VALUES + offset;
        let place = memory.load_u64(value);
        if !self.keys.hold(place, self.spec.item_bytes) {
            return fault(value, format!("no item can lie at {place:#x}"));
        }
        self.spec.check_item(memory, place, key)
    }

    /// Checks that no key is missing.
    pub fn end(self) -> Result<(), Fault> {
        self.keys.end()
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
