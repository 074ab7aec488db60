//! A Merkle tree over the lines of MACs: a node of 64 bytes has a keyed hash of 8 bytes of each of eight lines of
//! the level below, 0 where that holds nothing. Nodes are lines of regions of their own, a region a level. What is
//! above the highest, at most eight hashes, is a register.
//! Left out: when nodes are written and verified, which `merkle` says.

use super::keyed::SipHasher24;

use super::macs::word;
use crate::line::{Line, Place, ZERO_LINE};
use crate::medium::layout::{Layout, Region};

/// Hashes of a node.
pub const ARITY: u64 = 8;
/// Bytes of the register.
pub const REGISTER_BYTES: u64 = crate::line::LINE_BYTES as u64;
/// Where reserve power dumps the register.
pub const REGISTER: &str = "integrity-root";
/// Another key than that of MACs, so that no line of nodes is a MAC's.
const KEY: [u8; 16] = *b"sardonyx: nodes!";
/// A region a level, from the lowest up: enough for 2^61 lines of MACs.
const NAMES: [&str; 20] = [
    "nodes-1", "nodes-2", "nodes-3", "nodes-4", "nodes-5", "nodes-6", "nodes-7", "nodes-8",
    "nodes-9", "nodes-10", "nodes-11", "nodes-12", "nodes-13", "nodes-14", "nodes-15", "nodes-16",
    "nodes-17", "nodes-18", "nodes-19", "nodes-20",
];

/// Where the tree lies.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The lines of MACs, and above them a region of nodes for each level.
    pub levels: Vec<Region>,
    /// The register's line.
    pub register: Region,
}

impl Tree {
    /// Reserves room for a tree over `leaves`.
    pub fn reserve(leaves: Region, layout: &mut Layout) -> Tree {
        let mut levels = vec![leaves];
        while levels[levels.len() - 1].lines > ARITY {
            let lines = levels[levels.len() - 1].lines.div_ceil(ARITY);
            levels.push(layout.reserve_sparse(NAMES[levels.len() - 1], lines));
        }
        let register = layout.reserve_sparse(REGISTER, 1);
        Tree { levels, register }
    }

    /// The same in a layout in which it is reserved.
    pub fn from_layout(leaves: Region, layout: &Layout) -> Tree {
        let nodes = NAMES.iter().map_while(|name| layout.region(name).cloned());
        let register = layout.region(REGISTER).expect("it has been reserved");
        Tree {
            levels: std::iter::once(leaves).chain(nodes).collect(),
            register: register.clone(),
        }
    }

    /// The hash that stands above line `index` of `level`, whose content is `line`.
    pub fn hash(level: usize, index: u64, line: &Line) -> u64 {
        if *line == ZERO_LINE {
            return 0;
        }
        let mut hasher = SipHasher24::new_with_key(&KEY);
        hasher.write(&(level as u64).to_le_bytes());
        hasher.write(&index.to_le_bytes());
        hasher.write(line);
        hasher.finish().max(1)
    }

    /// The line of `level` that stands over line `index` of the lowest level.
    pub fn over(&self, index: u64, level: usize) -> Option<Place> {
        let region = self.levels.get(level)?;
        Some(region.line((0..level).fold(index, |index, _| index / ARITY)))
    }

    /// The line of `level` above a line of the tree, or that line itself; `None` if the line lies above `level` or is
    /// not in the tree.
    pub fn over_node(&self, place: Place, level: usize) -> Option<Place> {
        let own = self
            .levels
            .iter()
            .position(|region| region.contains(place))?;
        let index = place.0 - self.levels[own].first.0;
        let up = level.checked_sub(own)?;
        let region = self.levels.get(level)?;
        Some(region.line((0..up).fold(index, |index, _| index / ARITY)))
    }

    /// Whether nothing but the register stands above `level`.
    pub fn is_top(&self, level: usize) -> bool {
        level + 1 == self.levels.len()
    }

    /// Rebuilds all nodes that hold something, by level from the lowest up, and the register, from the lines of MACs
    /// that hold something.
    pub fn rebuild(&self, leaves: impl Iterator<Item = (u64, Line)>) -> (Vec<Nodes>, Line) {
        self.rebuild_from(0, leaves)
    }

    /// Rebuilds the levels above `level`, from its lines that hold something.
    pub fn rebuild_from(
        &self,
        level: usize,
        lines: impl Iterator<Item = (u64, Line)>,
    ) -> (Vec<Nodes>, Line) {
        let mut levels: Vec<Nodes> = Vec::new();
        let mut below: Nodes = lines.collect();
        for level in level..self.levels.len() {
            let mut above = Nodes::new();
            for (index, line) in &below {
                let node = above.entry(index / ARITY).or_insert(ZERO_LINE);
                put(node, index % ARITY, Tree::hash(level, *index, line));
            }
            below = above;
            if !self.is_top(level) {
                levels.push(below.clone());
            }
        }
        (levels, below.remove(&0).unwrap_or(ZERO_LINE))
    }
}

/// Lines of a level by their index.
pub type Nodes = std::collections::BTreeMap<u64, Line>;

/// Sets word `number` of `line` to `hash`.
pub fn put(line: &mut Line, number: u64, hash: u64) {
    line[number as usize * 8..][..8].copy_from_slice(&hash.to_le_bytes());
}

/// The hash that `line` holds of line `index` of the level below.
pub fn kept(line: &Line, index: u64) -> u64 {
    word(line, (index % ARITY) as usize)
}
