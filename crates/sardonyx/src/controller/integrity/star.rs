//! A counter tree that is written lazily: the low bits of a line's version go with the line's MAC, in one word, and lines
//! of bits on chip, which reserve power keeps, say which nodes memory has as they were. A recovery looks at those nodes
//! alone. Source: Huang and Hua, "A write-friendly and fast-recovery scheme for security metadata in non-volatile
//! memories", HPCA 2021 (STAR); its abstract was read, the numbers are from memory.
//!
//! A node of versions is written when the upper bits of one change, which memory then has. A bit is set before its node
//! changes, and cleared when a later change of its line finds that memory has the node.
//! The reading here: counters above are sums, as in [`super::asit`], which the register has. So nodes above the versions are
//! made anew from those below, where STAR has the low bits of their counters in the MACs of the nodes below; and the
//! register tells an old state from the newest, where STAR has a tree over the cache.
//! Left out: the index over lines of bits, so a recovery reads all of these; the time to look a bit up.

use std::collections::BTreeSet;

use super::asit::{Leaves, settle};
use super::counter_tree::{LIMITS, Sums};
use super::guarded::{Guarded, Pending, Scheme, Trees, root, tree};
use super::levels::Levels;
use super::macs::{CACHE, LOW_BITS, MAC_PLACE, VERIFY};
use super::root::Learns;
use super::tree::{REGISTER_BYTES, Tree};
use super::versions::VersionFormat;
use crate::controller::layers::{About, File, Integrity};
use crate::controller::metadata_cache::SETS;
use crate::line::{LINE_BYTES, Line, Place, ZERO_LINE};
use crate::mechanisms::{RESTORING, mechanisms};
use crate::medium::layout::{Layout, Region};
use crate::medium::params::Unit;
use crate::plan::guard::Guard;
use crate::plan::{At, Plan, Queue, Step, Stored};
use crate::settings::{AnyKey, Settings, keys};

keys! {
    BITMAP_LINES: u64 = int("star.bitmap_lines", (1, 4096), 16),
        Source("STAR (HPCA 2021), from memory"),
        "Lines of bits on chip, each for 512 nodes that memory may have as they were (star)"
        in Between("4", "64", "a quarter and four times as many") under |by| by.stride.map(|_| 1);
}

mechanisms! {
    BITMAP_LEAVES = "lines of bits that leave the chip", least 30, by &[("star.bitmap_lines", 1)];
}

const KEYS: &[&dyn AnyKey] = &[&VERIFY, &CACHE, &SETS, &LOW_BITS, &BITMAP_LINES, &MAC_PLACE];
/// The region of lines of bits.
pub(super) const REGION: &str = "stale-nodes";
/// Bits of a line.
const BITS: u64 = 8 * LINE_BYTES as u64;

const WITHOUT_REGISTERS: Integrity = tree(
    "star",
    KEYS,
    "a line is atomic with its MAC and the low bits of its version; bits on chip name the nodes to restore",
    LIMITS,
    (build, |settings, layout| {
        root::<Sums>((VersionFormat::Node, Learns::LowBits), settings, layout)
    }),
);

/// The layers and designs of this file.
pub static FILE: File<Integrity> = File {
    layers: &[Integrity {
        about: About {
            tries: &[super::macs::MECHANISMS, &[&RESTORING], MECHANISMS],
            ..WITHOUT_REGISTERS.about
        },
        registers: |settings| REGISTER_BYTES + settings.get(&BITMAP_LINES) * LINE_BYTES as u64,
        ..WITHOUT_REGISTERS
    }],
    designs: &[],
};

fn build(settings: &Settings, layout: &mut Layout) -> Option<Box<dyn Guard>> {
    let mut trees = Trees::reserve(VersionFormat::Node, Queue::Data, settings, layout);
    trees.macs.low_bits = settings.get(&LOW_BITS);
    let tree = &trees.levels.tree;
    let nodes = (0..tree.height())
        .map(|level| tree.lines(level))
        .sum::<u64>();
    let scheme = Star {
        low_bits: trees.macs.low_bits,
        bitmap: layout.reserve_sparse(REGION, nodes.div_ceil(BITS)),
        most: settings.get(&BITMAP_LINES) as usize,
        on_chip: Vec::new(),
    };
    Some(Box::new(Guarded { trees, scheme }))
}

/// A line of bits on chip.
struct BitmapLine {
    index: u64,
    line: Line,
    /// The step after which reserve power has it so.
    kept: Step,
    differs: bool,
}

struct Star {
    low_bits: u64,
    bitmap: Region,
    most: usize,
    /// The one used last stands last.
    on_chip: Vec<BitmapLine>,
}

/// The number of a node among all of the tree, from the lowest level up.
fn number_of(tree: &Tree, (level, index): (usize, u64)) -> u64 {
    (0..level).map(|level| tree.lines(level)).sum::<u64>() + index
}

fn node_of(tree: &Tree, number: u64) -> Option<(usize, u64)> {
    let mut number = number;
    for level in 0..tree.height() {
        match number.checked_sub(tree.lines(level)) {
            None => return Some((level, number)),
            Some(above) => number = above,
        }
    }
    None
}

/// The bits that are set in line `index` of the bitmap, as numbers of nodes.
fn set_in(index: u64, line: &Line) -> impl Iterator<Item = u64> {
    let numbers = index * BITS..(index + 1) * BITS;
    numbers.filter(|number| is_set(line, *number))
}

fn is_set(line: &Line, number: u64) -> bool {
    let bit = number % BITS;
    line[(bit / 8) as usize] >> (bit % 8) & 1 == 1
}

fn toggle(line: &mut Line, number: u64) {
    let bit = number % BITS;
    line[(bit / 8) as usize] ^= 1 << (bit % 8);
}

impl Star {
    /// Brings line `index` of the bitmap onto the chip.
    fn fetch(&mut self, index: u64, plan: &mut Plan) -> &mut BitmapLine {
        if let Some(at) = self.on_chip.iter().position(|line| line.index == index) {
            let held = self.on_chip.remove(at);
            self.on_chip.push(held);
        } else {
            if self.on_chip.len() == self.most {
                let oldest = self.on_chip.remove(0);
                plan.exercise(&BITMAP_LEAVES);
                if oldest.differs {
                    let line = At::new(&oldest.line, oldest.kept);
                    plan.write(self.bitmap.line(oldest.index), line, Step::PAST);
                }
            }
            let read = plan.read(self.bitmap.line(index), Step::PAST);
            self.on_chip.push(BitmapLine {
                index,
                line: read.value.unwrap_or(ZERO_LINE),
                kept: read.at,
                differs: false,
            });
        }
        self.on_chip.last_mut().expect("it is there")
    }

    /// Sets the bit of one of the `changed` nodes, and clears those beside it whose nodes memory has. Returns the step
    /// after which reserve power keeps the bit.
    fn mark(
        &mut self,
        node: (usize, u64),
        changed: &[Place],
        levels: &Levels<Sums>,
        plan: &mut Plan,
    ) -> Step {
        let number = number_of(&levels.tree, node);
        let index = number / BITS;
        let place = self.bitmap.line(index);
        let held = self.fetch(index, plan);
        if is_set(&held.line, number) {
            return held.kept;
        }
        let (mut line, mut ripe) = (held.line, held.kept);
        for other in set_in(index, &held.line) {
            let node = node_of(&levels.tree, other); // none for a bit that somebody else has set
            let place = node.map(|(level, index)| levels.line(level, index));
            // One that has changed and left the cache again goes after the group, which must not wait for that.
            let is_stale = |place: &Place| changed.contains(place) || levels.cache.is_dirty(*place);
            if !place.as_ref().is_some_and(is_stale) {
                toggle(&mut line, other);
                let accepted = place.map_or(Step::PAST, |place| plan.under_way(place).accepted);
                ripe = plan.both(ripe, accepted);
            }
        }
        toggle(&mut line, number);
        held.line = line;
        held.differs = true;
        held.kept = plan.registers(place, &line, ripe, &[]);
        held.kept
    }

    /// Puts the changed nodes into the cache, and marks them. Returns the step that the group has to wait for.
    fn keep(
        &mut self,
        levels: &mut Levels<Sums>,
        (accepted, is_beside): (Step, bool),
        stored: &mut Vec<Stored>,
        plan: &mut Plan,
    ) -> Step {
        let stride = Leaves::Tried(1 << self.low_bits);
        let open = std::mem::take(&mut levels.open);
        let changed = open
            .keys()
            .map(|(level, index)| levels.line(*level, *index));
        let changed: Vec<Place> = changed.collect();
        let mut known = levels.recovered;
        for (node, open) in open {
            let place = levels.line(node.0, node.1);
            let cached = levels.cache.revisit(place, Step::PAST, plan);
            let is_due = node.0 == 0 && stride.is_due(levels.cache.line(cached), &open.line);
            // Versions of earlier groups, which a line of MACs that all write would put in order.
            let earlier = match is_beside {
                true => levels.cache.ripe_at(place),
                false => Step::PAST,
            };
            let ripe = plan.both(open.at, accepted);
            let line = &open.line;
            levels
                .cache
                .set_bytes_drained(cached, 0, line, ripe, accepted, plan);
            if is_due {
                let all = At::new(line, plan.both(open.at, earlier));
                stored.push(plan.write(place, all, Step::PAST));
                levels.cache.renew(place, line, accepted);
            } else {
                let marked = self.mark(node, &changed, levels, plan);
                known = plan.both(known, marked);
            }
        }
        known
    }
}

/// Restores node `index` of versions: their low bits are in the MACs of their lines, the upper ones in memory's node. A
/// line that is older than the node is left to its readers to refuse.
fn restore(trees: &mut Trees<Sums>, index: u64, plan: &mut Plan) {
    let mut node = trees.levels.own(0, index, plan);
    for number in trees.versions.numbers(index) {
        let mac = trees
            .macs
            .place(number)
            .map(|place| trees.mac_of((place, number), plan));
        let bits = trees.macs.low_bits;
        if let Some(newer) = mac.and_then(|mac| trees.versions.newer(&node, number, (mac, bits))) {
            node = newer;
        }
    }
    plan.unit(Unit::Mac, Step::PAST);
    let place: Place = trees.levels.line(0, index);
    trees.levels.restore(place, &node, plan);
}

impl Scheme<Sums> for Star {
    fn settle(&mut self, trees: &mut Trees<Sums>, group: &[Pending], plan: &mut Plan) {
        settle(trees, group, plan, |levels, accepted, stored, plan| {
            self.keep(levels, accepted, stored, plan)
        });
    }

    /// Restores the versions of the nodes that are marked, makes the marked nodes above anew from the lowest level up, and
    /// compares the sums of the highest level with the register.
    fn recover(&mut self, trees: &mut Trees<Sums>, plan: &mut Plan) {
        let mut marked: BTreeSet<(usize, u64)> = BTreeSet::new();
        for place in plan.written(&self.bitmap) {
            let line = plan.peek(place).unwrap_or(ZERO_LINE);
            let nodes = set_in(place.0 - self.bitmap.first.0, &line);
            marked.extend(nodes.filter_map(|number| node_of(&trees.levels.tree, number)));
        }
        for (level, index) in marked {
            match level {
                0 => restore(trees, index, plan),
                _ => trees.levels.remake(level, index, plan),
            }
        }
        trees.levels.compare_top(plan);
    }
}
