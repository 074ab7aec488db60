//! A counter tree that is written lazily, and a table in memory that has what of it the cache alone holds: a recovery
//! looks at those nodes and not at the tree. Source: Abu Zubair and Awad, "Anubis: Ultra-Low Overhead and Recovery Time
//! for Secure Non-Volatile Memories", ISCA 2019; the paper was not at hand, all is from memory: ASIT, for trees of SGX,
//! which nobody can make anew from below. A line of the table for each line of the cache: the node's place, its MAC, and
//! the low 48 bits of its counters; each change of a node of versions writes its line, in the group of what has changed it.
//!
//! The reading here: a counter above is the *sum* of those below ([`super::sgx`]), so a node above is named alone, when it
//! becomes dirty, and is made anew from its eight children. As remembered, the paper counts a node's write-backs above it,
//! and keeps the table fresh by a small tree over it with a register of its own. Here an entry has a MAC, an older one
//! makes a sum smaller, and the register has the sums: so the table needs no tree.
//! An entry that names another node does not go before that one has been written back; where that one is of the same
//! group, the node at hand is written whole instead.
//! [`super::phoenix`] is the same with another way to have the versions again ([`Leaves`]).
//! Left out: the small tree, its register and what its hashes cost; a write-through where a counter's upper byte
//! changes, which takes 2^48 writes of a line.

use std::collections::{BTreeMap, BTreeSet};

use super::counter_tree::{COUNTER_BITS, LIMITS, MAC_WORD, Sums, counted, counter, sum};
use super::guarded::{Guarded, Pending, Scheme, Trees, root, tree};
use super::levels::{Levels, Open};
use super::mac::PLACED_KEYS as KEYS;
use super::macs::word;
use super::root::Learns;
use super::tree::{ARITY, Node, put};
use super::versions::VersionFormat;
use crate::controller::layers::{File, Integrity, Limit};
use crate::line::{LINE_BYTES, Line, Place, ZERO_LINE};
use crate::medium::layout::{Layout, Region};
use crate::medium::params::Unit;
use crate::plan::guard::Guard;
use crate::plan::{At, Plan, Queue, Step, Stored};
use crate::settings::Settings;

pub(super) const REGION: &str = "shadow-nodes";
/// Lines of the table. They suffice for the largest cache, because a layout must not depend on what is on chip.
const LINES: u64 = (1 << 28) / LINE_BYTES as u64;
const LOW_BYTES: usize = 6;
/// The low bytes of counters begin here, after the place and the MAC.
const LOW_AT: usize = 16;

const TABLE_LIMITS: &[Limit] = &[
    LIMITS[0],
    Limit::unreached(
        "versions in the table of nodes",
        8 * LOW_BYTES as u32,
        "it takes 2^48 writes of a line",
    ),
];

/// The layers and designs of this file.
pub static FILE: File<Integrity> = File {
    layers: &[tree(
        "anubis-asit",
        KEYS,
        "a line is atomic with its MAC and a table's copy of its version's node; nodes that it names are restored",
        TABLE_LIMITS,
        (
            |settings, layout| build(Leaves::Copied, settings, layout),
            |settings, layout| root::<Sums>((VersionFormat::Node, Learns::Table), settings, layout),
        ),
    )],
    designs: &[],
};

/// Builds the guard, whose nodes of versions are restored as `leaves` says.
pub(super) fn build(
    leaves: Leaves,
    settings: &Settings,
    layout: &mut Layout,
) -> Option<Box<dyn Guard>> {
    let trees = Trees::reserve(VersionFormat::Node, Queue::Data, settings, layout);
    let table = layout.reserve_sparse(REGION, LINES);
    Some(Box::new(Guarded {
        trees,
        scheme: Asit { leaves, table },
    }))
}

/// The way in which a recovery restores the nodes of versions that only the cache had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    /// The table has a copy of each, which is written at each change.
    Copied,
    /// The table names the nodes. Memory has them as of the last multiple of this number, and the MACs of their lines
    /// give the rest.
    Tried(u64),
}

impl Leaves {
    /// Whether the node `after`, which was `before`, has to be in memory with the line that it counts.
    pub(super) fn is_due(self, before: &Line, after: &Line) -> bool {
        let of = |node: &Line, number: u64, stride: u64| counter(node, number) / stride;
        match self {
            Leaves::Copied => false,
            Leaves::Tried(stride) => {
                (0..ARITY).any(|number| of(before, number, stride) != of(after, number, stride))
            }
        }
    }
}

fn counter_at(number: usize) -> usize {
    number * COUNTER_BITS as usize / 8
}

fn entry_of(place: Place, node: &Line) -> Line {
    let mut entry = named(place);
    put(&mut entry, 1, word(node, MAC_WORD as usize));
    for number in 0..ARITY as usize {
        let low = &node[counter_at(number)..][..LOW_BYTES];
        entry[LOW_AT + number * LOW_BYTES..][..LOW_BYTES].copy_from_slice(low);
    }
    entry
}

/// The entry of a node that a recovery makes from the nodes below it.
fn named(place: Place) -> Line {
    let mut entry = ZERO_LINE;
    put(&mut entry, 0, place.0 + 1);
    entry
}

pub(super) fn place_of(entry: &Line) -> Option<Place> {
    word(entry, 0).checked_sub(1).map(Place)
}

/// The node of versions that an entry has a copy of. The copy's upper bytes come from memory's node.
pub(super) fn node_of(entry: &Line, kept: &Line) -> Line {
    let mut node = *kept;
    for number in 0..ARITY as usize {
        let low = &entry[LOW_AT + number * LOW_BYTES..][..LOW_BYTES];
        node[counter_at(number)..][..LOW_BYTES].copy_from_slice(low);
    }
    put(&mut node, MAC_WORD, word(entry, 1));
    node
}

struct Asit {
    leaves: Leaves,
    table: Region,
}

fn count(
    levels: &mut Levels<Sums>,
    (level, index): (usize, u64),
    (number, value): (u64, At<u64>),
    plan: &mut Plan,
) -> At<Line> {
    let node = levels.known(level, index, Step::PAST, plan);
    let line = counted(level, index, &node.value, number, value.value);
    let both = plan.both(node.at, value.at);
    let at = plan.unit(Unit::Mac, both);
    let ripe = Step::PAST;
    levels.open.insert((level, index), Open { line, at, ripe });
    At::new(line, at)
}

fn follow(levels: &mut Levels<Sums>, index: u64, plan: &mut Plan) {
    let (mut index, mut node) = (index, levels.known(0, index, Step::PAST, plan));
    for level in 0..levels.tree.height() {
        let (number, value) = (index % ARITY, At::new(sum(&node.value), node.at));
        if levels.tree.is_top(level) {
            put(&mut levels.register, number, value.value);
            return;
        }
        index /= ARITY;
        node = count(levels, (level + 1, index), (number, value), plan);
    }
}

/// Counts the writes of a group in their nodes and in those above, up to the register, and gives lines their MACs. `keep`
/// puts the changed nodes into the cache, adds the writes that go with them, and returns what the group waits for.
pub(super) fn settle(
    trees: &mut Trees<Sums>,
    group: &[Pending],
    plan: &mut Plan,
    keep: impl FnOnce(&mut Levels<Sums>, (Step, bool), &mut Vec<Stored>, &mut Plan) -> Step,
) {
    let numbers = group.iter().map(|write| trees.macs.number(write.place));
    let numbers: Vec<u64> = numbers
        .map(|number| number.expect("it is protected"))
        .collect();
    let mut leaves = BTreeSet::new();
    for number in &numbers {
        let index = trees.versions.index_of(*number);
        let mut node = trees.levels.known(0, index, Step::PAST, plan);
        trees.versions.bump(&mut node.value, *number);
        let next = At::new(trees.versions.get(&node.value, *number), node.at);
        count(&mut trees.levels, (0, index), (number % ARITY, next), plan);
        leaves.insert(index);
    }
    for (write, number) in group.iter().zip(numbers) {
        let index = trees.versions.index_of(number);
        let node = trees.levels.known(0, index, Step::PAST, plan);
        let version = trees.versions.get(&node.value, number);
        let known = plan.both(write.line.at, node.at);
        let right =
            trees
                .macs
                .mac_of_version(write.place, version, &write.line.value, write.sideband);
        trees.put_mac((write.place, number), At::new(right, known), plan);
    }
    for index in leaves {
        follow(&mut trees.levels, index, plan);
    }
    let accepted = group[0].stored.accepted;
    let mut stored: Vec<Stored> = group.iter().map(|write| write.stored).collect();
    let known = keep(
        &mut trees.levels,
        (accepted, trees.macs.beside),
        &mut stored,
        plan,
    );
    stored.extend(trees.write_macs(group, known, plan));
    plan.group(&stored);
}

impl Asit {
    /// Puts the changed nodes into the cache, and their entries in the table into the group. Returns the step that the
    /// group has to wait for.
    fn keep(
        &mut self,
        levels: &mut Levels<Sums>,
        (accepted, is_beside): (Step, bool),
        stored: &mut Vec<Stored>,
        plan: &mut Plan,
    ) -> Step {
        let open = std::mem::take(&mut levels.open);
        let changed: Vec<Place> = open
            .keys()
            .map(|(level, index)| levels.line(*level, *index))
            .collect();
        let mut noted: BTreeMap<Place, (Line, Step, Step)> = BTreeMap::new();
        let mut known = levels.recovered;
        for (((level, _), node), place) in open.into_iter().zip(&changed) {
            let cached = levels.cache.revisit(*place, Step::PAST, plan);
            let is_due = level == 0 && self.leaves.is_due(levels.cache.line(cached), &node.line);
            // Versions of earlier groups, which a line of MACs that all write would put in order.
            let earlier = match is_beside {
                true => levels.cache.ripe_at(*place),
                false => Step::PAST,
            };
            let ripe = plan.both(node.at, accepted);
            levels
                .cache
                .set_bytes_drained(cached, 0, &node.line, ripe, accepted, plan);
            let line = self.table.line(levels.cache.slot(cached) as u64);
            let newest = || plan.peek(line).unwrap_or(ZERO_LINE);
            let entry = noted.get(&line).map_or_else(newest, |(entry, ..)| *entry);
            let before = place_of(&entry);
            // Another node of this group needs the table's entry, so this one goes to memory at once.
            let is_taken =
                before.is_some_and(|before| before != *place && changed.contains(&before));
            if is_due || is_taken {
                let all = At::new(&node.line, plan.both(node.at, earlier));
                stored.push(plan.write(*place, all, Step::PAST));
                levels.cache.renew(*place, &node.line, accepted);
                continue;
            }
            let is_copied = level == 0 && self.leaves == Leaves::Copied;
            // An entry that only names its node does not change with the node.
            if !is_copied && before == Some(*place) {
                known = plan.both(known, plan.under_way(line).accepted);
                continue;
            }
            // The other node's entry may go only when memory has that node.
            let gate = match before {
                Some(before) if before != *place => plan.under_way(before).accepted,
                _ => Step::PAST,
            };
            let entry = match is_copied {
                true => entry_of(*place, &node.line),
                false => named(*place),
            };
            noted.insert(line, (entry, plan.both(node.at, earlier), gate));
        }
        for (line, (entry, at, gate)) in noted {
            stored.push(plan.write(line, At::new(&entry, at), gate));
        }
        known
    }

    /// Restores memory's nodes of versions from the table, where the table's have the greater sum. Returns the nodes
    /// that the table names, by level.
    fn restore_versions(&self, trees: &mut Trees<Sums>, plan: &mut Plan) -> Vec<BTreeSet<u64>> {
        let mut of_level = vec![BTreeSet::new(); trees.levels.tree.height()];
        for line in plan.written(&self.table) {
            let entry = plan.peek(line).unwrap_or(ZERO_LINE);
            let Some(place) = place_of(&entry) else {
                continue;
            };
            let Some((level, index)) = trees.levels.tree.find(place) else {
                plan.refuse(line);
                continue;
            };
            of_level[level].insert(index);
            if level > 0 {
                continue;
            }
            if let Leaves::Tried(stride) = self.leaves {
                trees.restore_versions(index, stride, plan);
                continue;
            }
            let kept = plan.peek(place).unwrap_or(ZERO_LINE);
            let node = node_of(&entry, &kept);
            plan.unit(Unit::Mac, Step::PAST);
            if !Sums::is_whole(0, index, &node) {
                plan.refuse(line);
            } else if sum(&node) > sum(&kept) {
                trees.levels.restore(place, &node, plan);
            }
        }
        of_level
    }
}

impl Scheme<Sums> for Asit {
    fn settle(&mut self, trees: &mut Trees<Sums>, group: &[Pending], plan: &mut Plan) {
        settle(trees, group, plan, |levels, accepted, stored, plan| {
            self.keep(levels, accepted, stored, plan)
        });
    }

    /// Restores the versions that the table has, makes the nodes that it names from the lowest level up, and compares
    /// the sums of the highest level with the register.
    fn recover(&mut self, trees: &mut Trees<Sums>, plan: &mut Plan) {
        let named = self.restore_versions(trees, plan);
        for (level, nodes) in named.into_iter().enumerate().skip(1) {
            for index in nodes {
                trees.levels.remake(level, index, plan);
            }
        }
        trees.levels.compare_top(plan);
    }
}
