//! A tree of nodes over lines of MACs or of versions: a node of 64 bytes has something of each of eight lines of the
//! level below. In a Merkle tree that is a keyed hash of 8 bytes, 0 where the line holds nothing. Nodes are lines of
//! regions of their own, a region a level. What is above the highest, at most eight numbers, is a register.
//! Left out: when nodes are written and verified ([`super::levels`]), and nodes of counters ([`super::counter_tree`]).

use super::keyed::SipHasher24;

use super::macs::word;
use crate::line::{Line, Place, ZERO_LINE};
use crate::medium::layout::{Layout, Region};

/// Children of a node.
pub const ARITY: u64 = 8;
/// Bytes of the register.
pub const REGISTER_BYTES: u64 = crate::line::LINE_BYTES as u64;
/// The name of the region to which reserve power dumps the register.
pub const REGISTER: &str = "integrity-root";
/// The key of hashes differs from that of MACs, so that no line of nodes has a MAC's value.
const KEY: [u8; 16] = *b"sardonyx: nodes!";
/// The names of the levels' regions, from the lowest up. They are enough for 2^61 lines of MACs.
const NAMES: [&str; 20] = [
    "nodes-1", "nodes-2", "nodes-3", "nodes-4", "nodes-5", "nodes-6", "nodes-7", "nodes-8",
    "nodes-9", "nodes-10", "nodes-11", "nodes-12", "nodes-13", "nodes-14", "nodes-15", "nodes-16",
    "nodes-17", "nodes-18", "nodes-19", "nodes-20",
];

/// The places of the tree.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The region of the lowest level, and above it a region of nodes for each level.
    levels: Vec<Region>,
    /// Further lines of the lowest level, and the index of the first of them.
    more: Option<(u64, Region)>,
    /// The register's line.
    pub register: Region,
}

impl Tree {
    /// Reserves room for a tree over `leaves`, and over `more` if there are any.
    pub fn reserve(leaves: Region, more: Option<Region>, layout: &mut Layout) -> Tree {
        let mut tree = Tree::over_leaves(leaves, more);
        while tree.lines(tree.levels.len() - 1) > ARITY {
            let lines = tree.lines(tree.levels.len() - 1).div_ceil(ARITY);
            let name = NAMES[tree.levels.len() - 1];
            tree.levels.push(layout.reserve_sparse(name, lines));
        }
        tree.register = layout.reserve_sparse(REGISTER, 1);
        tree
    }

    /// Finds the tree again in a layout in which it is reserved.
    pub fn from_layout(leaves: Region, more: Option<Region>, layout: &Layout) -> Tree {
        let mut tree = Tree::over_leaves(leaves, more);
        let nodes = NAMES.iter().map_while(|name| layout.region(name).cloned());
        tree.levels.extend(nodes);
        let register = layout.region(REGISTER).expect("it has been reserved");
        tree.register = register.clone();
        tree
    }

    fn over_leaves(leaves: Region, more: Option<Region>) -> Tree {
        let first = leaves.lines.next_multiple_of(ARITY);
        Tree {
            more: more.map(|more| (first, more)),
            register: leaves.clone(),
            levels: vec![leaves],
        }
    }

    /// The number of levels.
    pub fn height(&self) -> usize {
        self.levels.len()
    }

    /// The number of lines of `level`, counting the indices left out between two regions.
    pub fn lines(&self, level: usize) -> u64 {
        match &self.more {
            Some((first, more)) if level == 0 => first + more.lines,
            _ => self.levels[level].lines,
        }
    }

    /// The place of line `index` of `level`; `None` where a level leaves the index out.
    pub fn line(&self, level: usize, index: u64) -> Option<Place> {
        let own = &self.levels[level];
        match &self.more {
            Some((first, more)) if level == 0 && index >= *first => Some(more.line(index - first)),
            Some(_) if level == 0 && index >= own.lines => None,
            _ => Some(own.line(index)),
        }
    }

    /// The regions of `level`, each with the index of its first line.
    pub fn regions(&self, level: usize) -> impl Iterator<Item = (u64, Region)> + use<> {
        let more = self.more.clone().filter(|_| level == 0);
        std::iter::once((0, self.levels[level].clone())).chain(more)
    }

    /// The index of the first of the lowest level's further lines.
    pub fn first_more(&self) -> Option<u64> {
        self.more.as_ref().map(|(first, _)| *first)
    }

    /// The line of `level` that stands over line `index` of the lowest level.
    pub fn over(&self, index: u64, level: usize) -> Option<Place> {
        if level >= self.height() {
            return None;
        }
        self.line(level, (0..level).fold(index, |index, _| index / ARITY))
    }

    /// The line of `level` above a line of the tree, or the line itself; `None` if the line lies above `level` or
    /// outside the tree.
    pub fn over_node(&self, place: Place, level: usize) -> Option<Place> {
        let (own, index) = self.find(place)?;
        let up = level.checked_sub(own)?;
        if level >= self.height() {
            return None;
        }
        self.line(level, (0..up).fold(index, |index, _| index / ARITY))
    }

    /// Whether nothing but the register stands above `level`.
    pub fn is_top(&self, level: usize) -> bool {
        level + 1 == self.levels.len()
    }

    /// The level and the index of the line at `place`.
    pub fn find(&self, place: Place) -> Option<(usize, u64)> {
        (0..self.height()).find_map(|level| {
            let mut regions = self.regions(level);
            let (first, region) = regions.find(|(_, region)| region.contains(place))?;
            Some((level, first + place.0 - region.first.0))
        })
    }

    /// Rebuilds the levels above `level` from its non-zero lines. Returns the nodes by level, from the lowest up, and
    /// the register.
    pub fn rebuild<N: Node>(&self, level: usize, lines: Nodes) -> (Vec<Nodes>, Line) {
        let mut levels: Vec<Nodes> = Vec::new();
        let mut below = lines;
        for level in level..self.height() {
            let mut above = Nodes::new();
            for (index, line) in &below {
                let node = above.entry(index / ARITY).or_insert(ZERO_LINE);
                self.put::<N>(level, *index, node, N::of(level, *index, line));
            }
            below = above;
            if !self.is_top(level) {
                levels.push(below.clone());
            }
        }
        (levels, below.remove(&0).unwrap_or(ZERO_LINE))
    }

    /// Writes `of` into the node above line `index` of `level`, or into the register.
    pub fn put<N: Node>(&self, level: usize, index: u64, above: &mut Line, of: u64) {
        match self.is_top(level) {
            true => put(above, index % ARITY, of),
            false => N::put((level + 1, index / ARITY), above, index % ARITY, of),
        }
    }

    /// Reads the value that the node above line `index` of `level`, or the register, has of it.
    pub fn kept<N: Node>(&self, level: usize, index: u64, above: &Line) -> u64 {
        match self.is_top(level) {
            true => word(above, (index % ARITY) as usize),
            false => N::kept(above, index % ARITY),
        }
    }
}

/// The format of a node: a value for each of the eight lines below it, by which these are right. The register has the
/// values of the highest level's lines, in words.
pub trait Node: Send + 'static {
    /// Whether the value above a line follows when the line leaves the cache, and not when the line changes.
    const LAZY: bool = false;

    /// The value that belongs above line `index` of `level`, whose content is `line`.
    fn of(level: usize, index: u64, line: &Line) -> u64;

    /// Whether that line is right below `above`.
    fn is_right(level: usize, index: u64, line: &Line, above: u64) -> bool {
        Self::of(level, index, line) == above
    }

    /// Whether the line is right, whatever stands above it.
    fn is_whole(_level: usize, _index: u64, _line: &Line) -> bool {
        true
    }

    /// Reads the value that `node` has of line `number` of those below it.
    fn kept(node: &Line, number: u64) -> u64;

    /// Writes `of` as the value that `node` has of line `number` of those below it. `place` is the node's level and
    /// index.
    fn put(place: (usize, u64), node: &mut Line, number: u64, of: u64);
}

/// A node of eight hashes.
pub struct Hashes;

impl Node for Hashes {
    fn of(level: usize, index: u64, line: &Line) -> u64 {
        hash(level, index, line)
    }

    fn kept(node: &Line, number: u64) -> u64 {
        word(node, number as usize)
    }

    fn put(_place: (usize, u64), node: &mut Line, number: u64, of: u64) {
        put(node, number, of);
    }
}

/// Lines of a level by index.
pub type Nodes = std::collections::BTreeMap<u64, Line>;

/// Sets word `number` of `line`.
pub fn put(line: &mut Line, number: u64, value: u64) {
    line[number as usize * 8..][..8].copy_from_slice(&value.to_le_bytes());
}

fn hash(level: usize, index: u64, line: &Line) -> u64 {
    if *line == ZERO_LINE {
        return 0;
    }
    let mut hasher = SipHasher24::new_with_key(&KEY);
    hasher.write(&(level as u64).to_le_bytes());
    hasher.write(&index.to_le_bytes());
    hasher.write(line);
    hasher.finish().max(1)
}
