//! A forest instead of a tree: roots on chip, which a power cut keeps, stand over all lines, and a path ends at the first.
//! Source: Freij, Zhou and Solihin, "Bonsai Merkle Forests: Efficiently Achieving Crash Consistency in Secure Persistent
//! Memory", MICRO 2021 (BMF); its abstract was read, and from memory that roots are pruned and merged.
//!
//! As in `plp`, a line is atomic with its MAC, its version and its root, and nodes are made anew. Here a root below which
//! lines are often written gives its place to its eight children (it is *pruned*), so their paths become shorter. When the
//! chip has no room, the eight whose lines were written longest ago become their parent again (they are *merged*). A node
//! above roots is nowhere until then.
//! A recovery compares all roots with the nodes that it makes. Here reserve power keeps what they hash to, one register;
//! that is the same, since they stand over all lines.
//! The reading here: when roots are pruned and merged, and what a root takes (a hash), are *assumed*.
//! Left out: paths below different roots side by side; that a merge need not read the node it writes.

use std::collections::BTreeMap;

use super::bmt::{ACCEPTS, BonsaiTrees, Order, TreePolicy, bonsai, build};
use super::guarded::TRIES;
use super::levels::Levels;
use super::macs::{CACHE, MAC_PLACE, VERIFY, word};
use super::tree::{ARITY, Hashes, Node, REGISTER_BYTES, put};
use super::versions::{LEAVES, MINOR_BITS};
use crate::controller::layers::{About, File, Integrity};
use crate::controller::metadata_cache::SETS;
use crate::line::{Line, ZERO_LINE};
use crate::mechanisms::mechanisms;
use crate::medium::params::Unit;
use crate::plan::{Plan, Step};
use crate::settings::{AnyKey, keys};

/// Bytes of a root.
const ROOT_BYTES: u64 = 8;

keys! {
    ROOTS: u64 = int("bmf.roots", (16, 1 << 20), 512),
        Assumed("BMF (MICRO 2021) has a small cache on chip that a power cut keeps; 512 hashes are 4 KB"),
        "Roots of trees on chip that a power cut keeps, each a hash (bmf)"
        in Between("64", "4096", "an eighth and eight times as many") under |by| by.stride.map(|_| 24);
    PRUNE_AFTER: u64 = int("bmf.prune_after", (1, 1 << 20), 4),
        Assumed("no source; more than the lines that are written once, and few against what a hot line is written"),
        "Writes below a root after which its children become roots in its stead (bmf)"
        in Between("1", "64", "at once, or where much is written") under |by| by.stride.map(|_| 1);
}

mechanisms! {
    PRUNED = "roots of a forest that are pruned", least 30, by &[("bmf.prune_after", 1)];
    MERGED = "roots of a forest that are merged", least 30, by &[("bmf.roots", 24), ("bmf.prune_after", 1)];
}

const KEYS: &[&dyn AnyKey] = &[
    &VERIFY,
    &CACHE,
    &SETS,
    &MINOR_BITS,
    &ACCEPTS,
    &ROOTS,
    &PRUNE_AFTER,
    &LEAVES,
    &MAC_PLACE,
];

const WITHOUT_ROOTS: Integrity = bonsai(
    "bmf",
    KEYS,
    "a line is atomic with its MAC, its version and a root on chip; nodes below the roots are made anew",
    |settings, layout| {
        build(settings, layout, |_, _| Forest {
            most: settings.get(&ROOTS) as usize,
            after: settings.get(&PRUNE_AFTER),
            ..Forest::default()
        })
    },
);

/// The layers and designs of this file.
pub static FILE: File<Integrity> = File {
    layers: &[Integrity {
        about: About {
            tries: &[TRIES[0], TRIES[1], MECHANISMS],
            ..WITHOUT_ROOTS.about
        },
        registers: |settings| REGISTER_BYTES + settings.get(&ROOTS) * ROOT_BYTES,
        ..WITHOUT_ROOTS
    }],
    designs: &[],
};

/// A line of the tree: its level and its index there.
type Spot = (usize, u64);

/// Which lines are roots; their values are [`Levels::held`].
#[derive(Default)]
struct Forest {
    most: usize,
    after: u64,
    /// Writes below each root since it became one, but for roots of the lowest level.
    writes: BTreeMap<Spot, u64>,
    /// Nodes of which all children are roots, and when one of these was last used.
    groves: BTreeMap<Spot, u64>,
    clock: u64,
    /// Roots at which paths of the group at hand ended.
    used: Vec<Spot>,
    planted: bool,
}

fn children(levels: &Levels<Hashes>, (level, index): Spot) -> impl Iterator<Item = Spot> + use<> {
    let first = index * ARITY;
    let end = (first + ARITY).min(levels.tree.lines(level - 1));
    (first..end).map(move |index| (level - 1, index))
}

fn parent((level, index): Spot) -> Spot {
    (level + 1, index / ARITY)
}

impl Forest {
    /// Makes the highest level's lines roots, whose values the register has.
    fn plant(&mut self, levels: &mut Levels<Hashes>) {
        let top = levels.tree.height() - 1;
        for index in 0..levels.tree.lines(top) {
            let value = word(&levels.register, index as usize);
            levels.held.insert((top, index), value);
        }
        self.planted = true;
    }

    /// Merges roots, but not those below `keeps`, until eight more have room. Returns whether they have.
    fn makes_room(&mut self, keeps: Spot, levels: &mut Levels<Hashes>, plan: &mut Plan) -> bool {
        while levels.held.len() + ARITY as usize - 1 > self.most {
            let others = self.groves.iter().filter(|(node, _)| **node != keeps);
            let Some((oldest, _)) = others.min_by_key(|(_, last)| **last) else {
                return false;
            };
            self.merge(*oldest, levels, plan);
        }
        true
    }

    /// Makes the children of a root roots in its stead.
    fn prune(&mut self, root: Spot, levels: &mut Levels<Hashes>, plan: &mut Plan) {
        plan.exercise(&PRUNED);
        let cached = levels.fetch(root.0, root.1, Step::PAST, plan);
        let node = *levels.cache.line(cached);
        for child in children(levels, root) {
            levels
                .held
                .insert(child, Hashes::kept(&node, child.1 % ARITY));
        }
        levels.held.remove(&root);
        self.writes.remove(&root);
        self.groves.remove(&parent(root));
        self.groves.insert(root, self.clock);
    }

    /// Makes a node of its children, which are roots, and a root of it.
    fn merge(&mut self, node: Spot, levels: &mut Levels<Hashes>, plan: &mut Plan) {
        plan.exercise(&MERGED);
        let mut line: Line = ZERO_LINE;
        for child in children(levels, node) {
            put(
                &mut line,
                child.1 % ARITY,
                levels.held.remove(&child).expect("a root"),
            );
            self.writes.remove(&child);
        }
        let cached = levels.look(levels.line(node.0, node.1), Step::PAST, plan);
        let at = plan.unit(Unit::Mac, cached.at);
        levels.cache.set_bytes(cached, 0, &line, at, plan);
        levels.held.insert(node, Hashes::of(node.0, node.1, &line));
        let last = self
            .groves
            .remove(&node)
            .expect("all its children were roots");
        if !levels.tree.is_top(node.0) {
            let above = parent(node);
            if children(levels, above).all(|child| levels.held.contains_key(&child)) {
                self.groves.insert(above, last);
            }
        }
    }
}

impl TreePolicy for Forest {
    fn through(&self, level: usize) -> bool {
        level == 0
    }

    fn order(&self) -> Order {
        Order::Coalesced
    }

    fn used(&mut self, root: Spot) {
        self.used.push(root);
    }

    fn grow(&mut self, levels: &mut Levels<Hashes>, plan: &mut Plan) {
        if !self.planted {
            self.plant(levels);
        }
        for root in std::mem::take(&mut self.used) {
            self.clock += 1;
            if let Some(last) = self.groves.get_mut(&parent(root)) {
                *last = self.clock;
            }
            // The one before it in this group may have pruned or merged it.
            if root.0 == 0 || !levels.held.contains_key(&root) {
                continue;
            }
            let writes = self.writes.entry(root).or_default();
            *writes += 1;
            if *writes >= self.after && self.makes_room(parent(root), levels, plan) {
                self.prune(root, levels, plan);
            }
        }
    }

    fn flush(&mut self, levels: &mut Levels<Hashes>, plan: &mut Plan) {
        while let Some(lowest) = self.groves.first_key_value().map(|(node, _)| *node) {
            self.merge(lowest, levels, plan);
        }
        for ((_, index), value) in &levels.held {
            put(&mut levels.register, *index, *value);
        }
    }

    fn recover(&mut self, trees: &mut BonsaiTrees, plan: &mut Plan) {
        trees.levels.held.clear();
        let (most, after) = (self.most, self.after);
        *self = Forest {
            most,
            after,
            ..Forest::default()
        };
        trees.levels.rebuild_above(0, plan);
    }
}
