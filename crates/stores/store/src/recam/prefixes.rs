//! Stored blocks in a tree by common prefix, counted in rows: how many begin with the same k rows as
//! a new block, for every k, without touching every row.
//!
//! A node stands for the blocks that agree in their first `depth` rows; where blocks part there is a
//! node, nowhere else (a Patricia tree), so n blocks need at most 2 n nodes. A child is found by the
//! hash of its first row, and then compared row by row with a block beneath it: hashes decide nothing.

use rustc_hash::FxHashMap;

/// The stored blocks' rows, and the new block's.
pub trait StoredRows {
    /// A hash of the new block's row; equal rows have equal hashes.
    fn hash(&mut self, row: u32) -> u64;
    fn kept_hash(&mut self, slot: u32, row: u32) -> u64;
    /// The number of rows from `from` on, before `to`, that the new block has in common with a stored one.
    fn common(&mut self, slot: u32, from: u32, to: u32) -> u32;
}

const NONE: u32 = u32::MAX;
const ROOT: u32 = 0;

#[derive(Clone, Copy, Debug)]
struct PrefixNode {
    depth: u32,
    count: u32,
    slot: u32,
    parent: u32,
    /// The hash of the first row below the parent, as it was when the block came: a block that has been damaged since
    /// is still found.
    hash: u64,
    /// Children are a list, so that another block can stand for a node when its own is gone.
    first: u32,
    next: u32,
    previous: u32,
    /// The next node whose key in `children` is the same.
    alike: u32,
}

#[derive(Clone, Debug)]
pub struct Prefixes {
    nodes: Vec<PrefixNode>,
    unused: Vec<u32>,
    /// The first node for each hash of a parent and the first row below it.
    children: FxHashMap<u64, u32>,
    rows: u32,
}

/// Blocks that share a prefix with the new one: `blocks` of them for each of `rows` further rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedPrefix {
    pub rows: u32,
    /// The number of stored blocks that are equal up to each of them.
    pub blocks: u32,
}

/// The place where a new block parts from those stored.
#[derive(Clone, Copy, Debug)]
pub enum BranchPoint {
    Stored(u32),
    Below(u32),
    /// Above this node, after so many rows.
    Above(u32, u32),
}

impl PrefixNode {
    fn new(depth: u32, slot: u32, parent: u32) -> PrefixNode {
        PrefixNode {
            depth,
            count: 0,
            slot,
            parent,
            hash: 0,
            first: NONE,
            next: NONE,
            previous: NONE,
            alike: NONE,
        }
    }
}

impl Prefixes {
    pub fn new(rows: u32) -> Prefixes {
        Prefixes {
            nodes: vec![PrefixNode::new(0, NONE, NONE)],
            unused: Vec::new(),
            children: FxHashMap::default(),
            rows,
        }
    }

    pub fn blocks(&self) -> u32 {
        self.nodes[ROOT as usize].count
    }

    /// The point where the new block belongs; `shared` gets the counts along the way.
    pub fn find(&self, rows: &mut impl StoredRows, shared: &mut Vec<SharedPrefix>) -> BranchPoint {
        shared.clear();
        let mut at = ROOT;
        loop {
            let PrefixNode { depth, slot, .. } = self.nodes[at as usize];
            if depth == self.rows {
                return BranchPoint::Stored(slot);
            }
            let mut child = self.child(at, rows.hash(depth));
            loop {
                if child == NONE {
                    return BranchPoint::Below(at);
                }
                let node = self.nodes[child as usize];
                // Keys of other parents may collide with this one's, and hashes of other rows with the new block's.
                let mine = node.parent == at;
                let common = if mine {
                    rows.common(node.slot, depth, node.depth)
                } else {
                    0
                };
                if common > 0 {
                    shared.push(SharedPrefix {
                        rows: common,
                        blocks: node.count,
                    });
                    if depth + common < node.depth {
                        return BranchPoint::Above(child, depth + common);
                    }
                    at = child;
                    break;
                }
                child = node.alike;
            }
        }
    }

    /// Adds the new block at the point that [`Prefixes::find`] has just returned. Returns its leaf.
    pub fn insert(&mut self, place: BranchPoint, slot: u32, rows: &mut impl StoredRows) -> u32 {
        let parent = match place {
            BranchPoint::Stored(_) => unreachable!("a duplicate is not stored again"),
            BranchPoint::Below(node) => node,
            BranchPoint::Above(node, depth) => self.split(node, depth, rows),
        };
        let depth = self.nodes[parent as usize].depth;
        let leaf = self.add(PrefixNode::new(self.rows, slot, parent));
        self.attach(parent, leaf, rows.hash(depth));
        let mut node = leaf;
        while node != NONE {
            self.nodes[node as usize].count += 1;
            node = self.nodes[node as usize].parent;
        }
        leaf
    }

    pub fn remove(&mut self, leaf: u32) {
        let PrefixNode { slot, parent, .. } = self.nodes[leaf as usize];
        self.detach(leaf);
        self.unused.push(leaf);
        let only = self.nodes[parent as usize].first;
        let mut above = parent;
        if parent != ROOT && self.nodes[only as usize].next == NONE {
            // A node with one child is superfluous: the child takes its place.
            self.detach(only);
            let PrefixNode {
                hash, parent: over, ..
            } = self.nodes[parent as usize];
            above = over;
            self.detach(parent);
            self.unused.push(parent);
            self.nodes[only as usize].parent = above;
            self.attach(above, only, hash);
        }
        // A node's rows are read from one of the blocks below it, which may be the one that leaves.
        while above != NONE {
            let PrefixNode { first, parent, .. } = self.nodes[above as usize];
            if self.nodes[above as usize].slot == slot && first != NONE {
                self.nodes[above as usize].slot = self.nodes[first as usize].slot;
            }
            self.nodes[above as usize].count -= 1;
            above = parent;
        }
    }

    /// Puts a node of this depth above another.
    fn split(&mut self, below: u32, depth: u32, rows: &mut impl StoredRows) -> u32 {
        let PrefixNode {
            slot,
            parent,
            count,
            hash,
            ..
        } = self.nodes[below as usize];
        self.detach(below);
        let middle = self.add(PrefixNode {
            count,
            ..PrefixNode::new(depth, slot, parent)
        });
        self.attach(parent, middle, hash);
        self.nodes[below as usize].parent = middle;
        self.attach(middle, below, rows.kept_hash(slot, depth));
        middle
    }

    fn add(&mut self, node: PrefixNode) -> u32 {
        match self.unused.pop() {
            Some(index) => {
                self.nodes[index as usize] = node;
                index
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        }
    }

    fn child(&self, parent: u32, hash: u64) -> u32 {
        *self.children.get(&key(parent, hash)).unwrap_or(&NONE)
    }

    fn attach(&mut self, parent: u32, child: u32, hash: u64) {
        let alike = self.children.insert(key(parent, hash), child);
        let next = self.nodes[parent as usize].first;
        let node = &mut self.nodes[child as usize];
        node.hash = hash;
        node.alike = alike.unwrap_or(NONE);
        node.next = next;
        node.previous = NONE;
        if next != NONE {
            self.nodes[next as usize].previous = child;
        }
        self.nodes[parent as usize].first = child;
    }

    fn detach(&mut self, child: u32) {
        let PrefixNode {
            parent,
            hash,
            next,
            previous,
            alike,
            ..
        } = self.nodes[child as usize];
        if previous == NONE {
            self.nodes[parent as usize].first = next;
        } else {
            self.nodes[previous as usize].next = next;
        }
        if next != NONE {
            self.nodes[next as usize].previous = previous;
        }
        let mut head = self.child(parent, hash);
        if head == child {
            if alike == NONE {
                self.children.remove(&key(parent, hash));
            } else {
                self.children.insert(key(parent, hash), alike);
            }
            return;
        }
        while self.nodes[head as usize].alike != child {
            head = self.nodes[head as usize].alike;
        }
        self.nodes[head as usize].alike = alike;
    }
}

fn key(parent: u32, hash: u64) -> u64 {
    hash ^ u64::from(parent).rotate_left(32)
}
