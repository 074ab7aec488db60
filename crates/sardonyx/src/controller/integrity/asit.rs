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
use std::ops::Range;

use super::bmt::{Pending, differing, groups};
use super::mac::{INTEGRITY_CACHE_HIT_RATE, KEYS, UNITS};
use super::macs::{
    CACHE, MECHANISMS, PER_LINE, VERIFIED_NODE, VERIFY, Verify, Vouched, Where, verified, word,
};
use super::sgx::{
    COUNTER_BYTES, LIMITS, MAC_AT, Sums, VERSIONS, counted, counter, is_held, is_right, kept, sum,
};
use super::tree::{ARITY, REGISTER_BYTES, Tree, put};
use super::versions::FIRST_VERSION;
use crate::controller::layers::{About, File, Integrity, Limit, PowerFail, Reached, Refuses};
use crate::controller::metadata_cache::MetadataCache;
use crate::figures::Figures;
use crate::line::{LINE_BYTES, Line, Place, ZERO_LINE};
use crate::medium::layout::{Layout, Region};
use crate::medium::params::Unit;
use crate::plan::guard::Guard;
use crate::plan::start_gap::Places;
use crate::plan::storey::Storey;
use crate::plan::{At, Plan, Queue, Step, Stored};
use crate::settings::Settings;
use crate::stats::Cause;

const REGION: &str = "shadow-nodes";
/// Its lines: for the largest cache that can be asked for, as a layout does not hang on what is on chip.
const LINES: u64 = (1 << 28) / LINE_BYTES as u64;
const LOW_BYTES: usize = 6;
/// Where they begin: after the place and the MAC.
const LOW_AT: usize = 16;
/// Writes of a line in one group, at most, that a version is ahead of what the register has.
const MOST_AHEAD: u64 = 128;

const TABLE_LIMITS: &[Limit] = &[
    LIMITS[0],
    Limit {
        name: "versions in the table of nodes",
        bits: 8 * LOW_BYTES as u32,
        begins: None,
        pads: false,
        reached: Reached::Never("it takes 2^48 writes of a line"),
    },
];

/// What this file has.
pub static FILE: File<Integrity> = File {
    layers: &[Integrity {
        about: About {
            name: "anubis-asit",
            keys: KEYS,
            units: UNITS,
            figures: &[super::mac::FIGURES],
            cut: "a line is atomic with its MAC and a table's copy of its version's node; nodes that it names are restored",
            tries: &[MECHANISMS],
            limits: TABLE_LIMITS,
        },
        build: |settings, layout| Some(Box::new(Asit::new(Leaves::Copied, settings, layout))),
        promises: Refuses::ALL,
        registers: |_| REGISTER_BYTES,
        power_fail: Some(|layout| Box::new(Follows::from_layout(Leaves::Copied, layout))),
    }],
    designs: &[],
};

/// How a recovery has the nodes of versions again that the cache alone had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    /// The table has a copy of each, which is written at each change.
    Copied,
    /// The table names them. Memory has them as of the last multiple of this, and the MACs of their lines say the rest.
    Tried(u64),
}

impl Leaves {
    /// Whether the node `after`, which was `before`, has to be in memory with the line that it counts.
    fn is_due(self, before: &Line, after: &Line) -> bool {
        let of = |node: &Line, number: u64, stride: u64| counter(node, number) / stride;
        match self {
            Leaves::Copied => false,
            Leaves::Tried(stride) => {
                (0..ARITY).any(|number| of(before, number, stride) != of(after, number, stride))
            }
        }
    }
}

/// `node` of versions, number `index`, in which version `number` is at most `steps` later: that under which the MAC of
/// its line is right. `None` if there is none. `held` has the line, what lies beside it, and its MAC.
fn tried(
    at: &Where,
    (node, index): (&Line, u64),
    number: u64,
    steps: u64,
    held: impl Fn(Place) -> Option<(Line, Option<[u8; 8]>, u64)>,
) -> Option<(Line, u64)> {
    let place = at.place(index * PER_LINE + number)?;
    let (line, sideband, mac) = held(place)?;
    let kept = counter(node, number);
    let right = |step: &u64| {
        let version = kept + step;
        at.vouches(Vouched { version, mac }, place, Some(&line), sideband)
    };
    let step = (0..=steps).find(right)?;
    let node = match step {
        0 => *node,
        step => counted(0, index, node, number, kept + step),
    };
    Some((node, step))
}

fn entry_of(place: Place, node: &Line) -> Line {
    let mut entry = named(place);
    put(&mut entry, 1, word(node, MAC_AT / 8));
    for number in 0..ARITY as usize {
        let low = &node[number * COUNTER_BYTES..][..LOW_BYTES];
        entry[LOW_AT + number * LOW_BYTES..][..LOW_BYTES].copy_from_slice(low);
    }
    entry
}

/// The entry of a node that is made anew from below.
fn named(place: Place) -> Line {
    let mut entry = ZERO_LINE;
    put(&mut entry, 0, place.0 + 1);
    entry
}

fn place_of(entry: &Line) -> Option<Place> {
    word(entry, 0).checked_sub(1).map(Place)
}

/// The node of versions that an entry has, with the upper bytes of what memory has of it.
fn node_of(entry: &Line, kept: &Line) -> Line {
    let mut node = *kept;
    for number in 0..ARITY as usize {
        let low = &entry[LOW_AT + number * LOW_BYTES..][..LOW_BYTES];
        node[number * COUNTER_BYTES..][..LOW_BYTES].copy_from_slice(low);
    }
    put(&mut node, MAC_AT as u64 / 8, word(entry, 1));
    node
}

/// The level of the node at `place`, and its number there.
fn found(tree: &Tree, place: Place) -> Option<(usize, u64)> {
    let level = tree
        .levels
        .iter()
        .position(|region| region.contains(place))?;
    Some((level, place.0 - tree.levels[level].first.0))
}

/// A line that the group at hand has changed, and when its bytes exist.
type Open = At<Line>;

pub(super) struct Asit {
    leaves: Leaves,
    at: Where,
    tree: Tree,
    table: Region,
    /// Of lines of MACs, which never differ from the medium's, and of nodes.
    cache: MetadataCache,
    verify: Verify,
    /// Sums of the highest level's nodes, as of what has been handled.
    register: Line,
    first: u64,
    pending: Vec<Pending>,
    /// Nodes that the group at hand has changed, by level and number.
    open: BTreeMap<(usize, u64), Open>,
    /// Nothing is accepted before: what a recovery has written.
    recovered: Step,
}

impl Asit {
    /// With nodes of versions as `leaves` says.
    pub fn new(leaves: Leaves, settings: &Settings, layout: &mut Layout) -> Asit {
        let at = Where::reserve(settings, layout);
        let versions = layout.reserve_sparse(VERSIONS, at.region.lines);
        Asit {
            leaves,
            tree: Tree::reserve(versions, layout),
            table: layout.reserve_sparse(REGION, LINES),
            at,
            cache: MetadataCache::new(&CACHE, Unit::Metadata, Queue::Data, settings),
            verify: settings.get(&VERIFY),
            register: ZERO_LINE,
            first: settings.get(&FIRST_VERSION),
            pending: Vec::new(),
            open: BTreeMap::new(),
            recovered: Step::PAST,
        }
    }

    /// The node `index` of `level`, verified under the counter above it if it was not on chip.
    fn fetch(&mut self, level: usize, index: u64, after: Step, plan: &mut Plan) -> At<Line> {
        if let Some(open) = self.open.get(&(level, index)) {
            return *open;
        }
        let place = self.tree.levels[level].line(index);
        if self.cache.peek(place).is_some() {
            let cached = self.cache.get(place, after, plan);
            return At::new(*self.cache.line(cached), cached.at);
        }
        let above = match self.tree.is_top(level) {
            true => At::past(kept(&self.register, index)),
            false => {
                let above = self.fetch(level + 1, index / ARITY, after, plan);
                At::new(counter(&above.value, index % ARITY), above.at)
            }
        };
        let cached = self.cache.get(place, after, plan);
        let node = *self.cache.line(cached);
        let both = plan.both(cached.at, above.at);
        let at = plan.unit(Unit::Mac, both);
        plan.exercise(&VERIFIED_NODE);
        if !is_right(level, index, &node, above.value) {
            plan.refuse(place);
        }
        At::new(node, at)
    }

    /// Counter `number` of a node is `value`, and the node's MAC follows.
    fn count(
        &mut self,
        level: usize,
        index: u64,
        number: u64,
        value: At<u64>,
        plan: &mut Plan,
    ) -> At<Line> {
        let node = self.fetch(level, index, Step::PAST, plan);
        let line = counted(level, index, &node.value, number, value.value);
        let both = plan.both(node.at, value.at);
        let node = At::new(line, plan.unit(Unit::Mac, both));
        self.open.insert((level, index), node);
        node
    }

    /// All above the node `index` of versions follow.
    fn follow(&mut self, index: u64, plan: &mut Plan) {
        let (mut index, mut node) = (index, self.fetch(0, index, Step::PAST, plan));
        for level in 0..self.tree.levels.len() {
            let (number, value) = (index % ARITY, At::new(sum(&node.value), node.at));
            if self.tree.is_top(level) {
                put(&mut self.register, number, value.value);
                return;
            }
            index /= ARITY;
            node = self.count(level + 1, index, number, value, plan);
        }
    }

    fn index(&self, at: Place) -> u64 {
        at.0 - self.at.region.first.0
    }

    fn is_under_way(&self, place: Place) -> bool {
        self.pending.iter().any(|write| write.place == place)
    }

    fn settle(&mut self, group: &[Pending], plan: &mut Plan) {
        let of = |at: &Where, write: &Pending| at.of_line(write.place).expect("it is protected");
        let mut leaves = BTreeSet::new();
        for write in group {
            let (at, number) = of(&self.at, write);
            let index = self.index(at);
            let node = self.fetch(0, index, Step::PAST, plan);
            let next = (counter(&node.value, number as u64) + 1).max(self.first);
            self.count(0, index, number as u64, At::new(next, node.at), plan);
            leaves.insert(index);
        }
        let mut macs: BTreeMap<Place, Open> = BTreeMap::new();
        for write in group {
            let (at, number) = of(&self.at, write);
            let node = self.fetch(0, self.index(at), Step::PAST, plan);
            let version = counter(&node.value, number as u64);
            let open = macs.entry(at).or_insert_with(|| {
                let cached = self.cache.get(at, Step::PAST, plan);
                At::new(*self.cache.line(cached), cached.at)
            });
            let known = plan.both(write.line.at, node.at);
            let computed = plan.unit(Unit::Mac, known);
            let right =
                self.at
                    .mac_of_version(write.place, version, &write.line.value, write.sideband);
            put(&mut open.value, number as u64, right);
            open.at = plan.both(open.at, computed);
        }
        for index in leaves {
            self.follow(index, plan);
        }
        let accepted = group[0].stored.accepted;
        let mut stored: Vec<Stored> = group.iter().map(|write| write.stored).collect();
        let known = self.keep(accepted, &mut stored, plan);
        for (at, open) in macs {
            let words = differing(at, &open.value, plan);
            let line = At::new(&open.value, plan.both(open.at, known));
            stored.push(plan.write_words(at, line, words, None, Step::PAST, Queue::Data));
            self.cache.renew(at, &open.value, Step::PAST);
        }
        plan.group(&stored);
    }

    /// Puts the changed nodes into the cache, and what the table has to have of them into the group; gives what the
    /// group has to wait for.
    fn keep(&mut self, accepted: Step, stored: &mut Vec<Stored>, plan: &mut Plan) -> Step {
        let open = std::mem::take(&mut self.open);
        let changed: Vec<Place> = open
            .keys()
            .map(|(level, index)| self.tree.levels[*level].line(*index))
            .collect();
        let mut noted: BTreeMap<Place, (Line, Step, Step)> = BTreeMap::new();
        let mut known = self.recovered;
        for (((level, _), node), place) in open.into_iter().zip(&changed) {
            let cached = self.cache.revisit(*place, Step::PAST, plan);
            let is_due = level == 0 && self.leaves.is_due(self.cache.line(cached), &node.value);
            let ripe = plan.both(node.at, accepted);
            self.cache
                .set_bytes_drained(cached, 0, &node.value, ripe, accepted, plan);
            let line = self.table.line(self.cache.slot(cached) as u64);
            let newest = || plan.peek(line).unwrap_or(ZERO_LINE);
            let entry = noted.get(&line).map_or_else(newest, |(entry, ..)| *entry);
            let before = place_of(&entry);
            let is_taken =
                before.is_some_and(|before| before != *place && changed.contains(&before));
            if is_due || is_taken {
                let all = At::new(&node.value, node.at);
                stored.push(plan.write(*place, all, Step::PAST));
                self.cache.renew(*place, &node.value, accepted);
                continue;
            }
            let is_copied = level == 0 && self.leaves == Leaves::Copied;
            if !is_copied && before == Some(*place) {
                known = plan.both(known, plan.under_way(line).accepted);
                continue;
            }
            let gate = match before {
                Some(before) if before != *place => plan.under_way(before).accepted,
                _ => Step::PAST,
            };
            let entry = match is_copied {
                true => entry_of(*place, &node.value),
                false => named(*place),
            };
            noted.insert(line, (entry, node.at, gate));
        }
        for (line, (entry, at, gate)) in noted {
            stored.push(plan.write(line, At::new(&entry, at), gate));
        }
        known
    }

    /// Writes a node that a recovery has restored, if memory has another.
    fn restore(&mut self, place: Place, node: &Line, plan: &mut Plan) {
        if plan.peek(place).unwrap_or(ZERO_LINE) != *node {
            let written = plan.write(place, At::past(node), Step::PAST);
            self.recovered = plan.both(self.recovered, written.accepted);
        }
    }

    /// The node `index` of versions as the MACs of its lines say. A line whose MAC no version is right for is left, for
    /// who reads it to refuse.
    fn restore_tried(&mut self, index: u64, stride: u64, plan: &mut Plan) {
        let mut node = self.own(0, index, plan);
        for number in 0..PER_LINE {
            let held = |place: Place| {
                let (at, slot) = self.at.of_line(place)?;
                let mac = word(&plan.peek(at).unwrap_or(ZERO_LINE), slot);
                Some((plan.peek(place)?, plan.peek_sideband(place), mac))
            };
            if let Some((later, steps)) = tried(&self.at, (&node, index), number, stride - 1, held)
            {
                for _ in 0..steps {
                    plan.unit(Unit::Mac, Step::PAST); // one for the line itself is counted with its read
                }
                node = later;
            }
        }
        self.restore(self.tree.levels[0].line(index), &node, plan);
    }

    /// Memory's nodes of versions as the table says, by the greatest sum; what it names of each level.
    fn restore_versions(&mut self, plan: &mut Plan) -> Vec<BTreeSet<u64>> {
        let mut of_level = vec![BTreeSet::new(); self.tree.levels.len()];
        for line in plan.written(&self.table) {
            let entry = plan.peek(line).unwrap_or(ZERO_LINE);
            let Some(place) = place_of(&entry) else {
                continue;
            };
            let Some((level, index)) = found(&self.tree, place) else {
                plan.refuse(line);
                continue;
            };
            of_level[level].insert(index);
            if level > 0 {
                continue;
            }
            if let Leaves::Tried(stride) = self.leaves {
                self.restore_tried(index, stride, plan);
                continue;
            }
            let kept = plan.peek(place).unwrap_or(ZERO_LINE);
            let node = node_of(&entry, &kept);
            plan.unit(Unit::Mac, Step::PAST);
            if !is_right(0, index, &node, sum(&node)) {
                plan.refuse(line);
            } else if sum(&node) > sum(&kept) {
                self.restore(place, &node, plan);
            }
        }
        of_level
    }

    /// Node `index` of `level` from its children, each under its own MAC.
    fn remake(&mut self, level: usize, index: u64, plan: &mut Plan) {
        let mut node = ZERO_LINE;
        for child in 0..ARITY {
            let of_child = index * ARITY + child;
            if of_child < self.tree.levels[level - 1].lines {
                let below = self.own(level - 1, of_child, plan);
                node = match sum(&below) {
                    0 => node,
                    sum => counted(level, index, &node, child, sum),
                };
            }
        }
        let place = self.tree.levels[level].line(index);
        self.restore(place, &node, plan);
    }

    /// What memory has of a node, which has to be right under its own MAC.
    fn own(&self, level: usize, index: u64, plan: &mut Plan) -> Line {
        let place = self.tree.levels[level].line(index);
        let node = plan.peek(place).unwrap_or(ZERO_LINE);
        if !is_right(level, index, &node, sum(&node)) {
            plan.refuse(place);
        }
        node
    }
}

impl Storey for Asit {
    fn flush(&mut self, plan: &mut Plan) {
        let plan = &mut plan.because(Cause::Integrity);
        self.cache.flush(plan);
        let register = self.register;
        plan.write(self.tree.register.line(0), At::past(&register), Step::PAST);
    }

    /// Restores the versions that the table has, makes the nodes that it names anew, from the lowest up, and compares the sums of the highest level with the register.
    fn recover(&mut self, plan: &mut Plan) {
        let plan = &mut plan.because(Cause::Integrity);
        let named = self.restore_versions(plan);
        for (level, nodes) in named.into_iter().enumerate().skip(1) {
            for index in nodes {
                self.remake(level, index, plan);
            }
        }
        let top = self.tree.levels.len() - 1;
        for index in 0..self.tree.levels[top].lines {
            let node = self.own(top, index, plan);
            put(&mut self.register, index, sum(&node));
        }
        let at = self.tree.register.line(0);
        if plan.peek(at).unwrap_or(ZERO_LINE) != self.register {
            plan.refuse(at);
        }
    }

    fn forget_figures(&mut self) {
        self.cache.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        out.put(&INTEGRITY_CACHE_HIT_RATE, self.cache.hits());
    }
}

impl Guard for Asit {
    fn read(
        &mut self,
        place: Place,
        got: At<Option<Line>>,
        after: Step,
        plan: &mut Plan,
    ) -> At<Option<Line>> {
        let plan = &mut plan.because(Cause::Integrity);
        let Some((at, number)) = self.at.of_line(place) else {
            return got;
        };
        if self.is_under_way(place) {
            return got; // the request at hand has written it, and it has not left the chip
        }
        // As in `bmt`: a read may wait for a write of the same request.
        let after = match self.pending.is_empty() {
            true => after,
            false => Step::PAST,
        };
        let node = self.fetch(0, self.index(at), after, plan);
        let version = counter(&node.value, number as u64);
        let macs = self.cache.get(at, after, plan);
        let mac = word(self.cache.line(macs), number);
        let by = At::new(Vouched { version, mac }, plan.both(node.at, macs.at));
        verified(place, got, (&self.at, by), self.verify, plan)
    }

    fn write(
        &mut self,
        place: Place,
        line: At<&Line>,
        sideband: Option<[u8; 8]>,
        stored: Stored,
        plan: &mut Plan,
    ) -> Step {
        if self.at.number(place).is_some() {
            self.pending.push(Pending {
                place,
                line: At::new(*line.value, line.at),
                sideband: sideband.or_else(|| plan.peek_sideband(place)),
                stored,
            });
        }
        stored.done
    }

    fn holds(&self, place: Place, plan: &Plan) -> bool {
        self.is_under_way(place) || is_held(&self.at, &self.tree, &self.cache, place, plan)
    }

    fn finish(&mut self, plan: &mut Plan) {
        let plan = &mut plan.because(Cause::Integrity);
        let pending = std::mem::take(&mut self.pending);
        for (.., group) in groups(pending, plan) {
            self.settle(&group, plan);
        }
    }
}

/// The register, as it follows the versions that come into the persistence domain, in the tree, in the table, or by the
/// MAC of the line that they count. Where reserve power dumps lines past the guard its logic counts as that of `sgx`
/// does, and from the first dump on writes all nodes itself and empties the table.
pub(super) struct Follows {
    leaves: Leaves,
    sums: Sums,
    table: Region,
    /// Nodes above versions, once reserve power has dumped lines.
    levels: Vec<BTreeMap<u64, Line>>,
    dumps: bool,
}

impl Follows {
    /// With nodes of versions as `leaves` says.
    pub fn from_layout(leaves: Leaves, layout: &Layout) -> Follows {
        Follows {
            leaves,
            sums: Sums::from_layout(layout),
            table: layout.region(REGION).expect("it has been reserved").clone(),
            levels: Vec::new(),
            dumps: false,
        }
    }

    /// A node of versions, if it is newer than what is known.
    fn learn(&mut self, index: u64, node: Line) {
        if sum(&node) > sum(&self.sums.node(index)) {
            self.sums.count(index, node);
        }
    }

    fn learn_entry(&mut self, line: Place, image: &Places) {
        let entry = image.read(line).unwrap_or(ZERO_LINE);
        let place = place_of(&entry).filter(|place| self.sums.versions().contains(*place));
        if let Some(place) = place {
            let kept = image.read(place).unwrap_or(ZERO_LINE);
            let index = place.0 - self.sums.versions().first.0;
            self.learn(index, node_of(&entry, &kept));
        }
    }

    /// The versions of the lines whose MACs are those of line `index`, by these.
    fn learn_macs(&mut self, index: u64, image: &Places) {
        let macs = image
            .read(self.sums.at.region.line(index))
            .unwrap_or(ZERO_LINE);
        let mut node = self.sums.node(index);
        for number in 0..PER_LINE {
            let held = |place: Place| {
                let mac = word(&macs, number as usize);
                Some((image.read(place)?, image.sideband(place), mac))
            };
            if let Some((later, _)) = tried(&self.sums.at, (&node, index), number, MOST_AHEAD, held)
            {
                node = later;
            }
        }
        self.learn(index, node);
    }

    fn write_register(&self, image: &mut Places) {
        let at = self.sums.tree.register.line(0);
        image.write(at, &self.sums.register, 0xff, None);
    }

    /// The node `index` of versions and all above it, as this logic knows them.
    fn write_path(&mut self, index: u64, image: &mut Places) {
        let (mut index, mut node) = (index, self.sums.node(index));
        let tree = &self.sums.tree;
        image.write(tree.levels[0].line(index), &node, 0xff, None);
        for level in 1..tree.levels.len() {
            let (number, value) = (index % ARITY, sum(&node));
            index /= ARITY;
            let above = self.levels[level].entry(index).or_insert(ZERO_LINE);
            *above = counted(level, index, above, number, value);
            node = *above;
            image.write(tree.levels[level].line(index), &node, 0xff, None);
        }
    }

    fn take_over(&mut self, image: &mut Places) {
        self.dumps = true;
        self.levels = vec![BTreeMap::new(); self.sums.tree.levels.len()];
        for index in self.sums.newest.keys().copied().collect::<Vec<_>>() {
            self.write_path(index, image);
        }
        for line in image.written_in(&self.table) {
            image.write(line, &ZERO_LINE, 0xff, None);
        }
    }

    /// Puts back what the run has written over what reserve power knows better.
    fn put_back(&mut self, place: Place, image: &mut Places) {
        if self.table.contains(place) {
            image.write(place, &ZERO_LINE, 0xff, None);
        } else if self.sums.at.region.contains(place) {
            let first = (place.0 - self.sums.at.region.first.0) * PER_LINE;
            (first..first + PER_LINE).for_each(|number| self.sums.write_mac(number, image));
        } else if let Some((level, index)) = found(&self.sums.tree, place) {
            let node = match level {
                0 => self.sums.node(index),
                _ => self.levels[level].get(&index).copied().unwrap_or(ZERO_LINE),
            };
            image.write(place, &node, 0xff, None);
        }
    }
}

impl PowerFail for Follows {
    fn begin(&mut self, image: &mut Places) {
        self.sums.begin(image);
        match self.leaves {
            Leaves::Copied => {
                for line in image.written_in(&self.table) {
                    self.learn_entry(line, image);
                }
            }
            Leaves::Tried(_) => {
                let macs = self.sums.at.region.clone();
                for line in image.written_in(&macs) {
                    self.learn_macs(line.0 - macs.first.0, image);
                }
            }
        }
    }

    fn accepted(&mut self, place: Place, image: &mut Places) {
        if self.dumps {
            return self.put_back(place, image);
        }
        let is_tried = self.leaves != Leaves::Copied;
        if is_tried && self.sums.at.region.contains(place) {
            self.learn_macs(place.0 - self.sums.at.region.first.0, image);
        } else if !is_tried && self.table.contains(place) {
            self.learn_entry(place, image);
        } else if self.sums.versions().contains(place) {
            let index = place.0 - self.sums.versions().first.0;
            self.learn(index, image.read(place).unwrap_or(ZERO_LINE));
        } else {
            return;
        }
        self.write_register(image);
    }

    fn dumped(&mut self, place: Place, image: &mut Places) {
        let Some(number) = self.sums.at.number(place) else {
            return;
        };
        if !self.dumps {
            self.take_over(image);
        }
        let (index, slot) = (number / PER_LINE, number % PER_LINE);
        let node = self.sums.node(index);
        let node = counted(0, index, &node, slot, counter(&node, slot) + 1);
        self.sums.count(index, node);
        self.write_path(index, image);
        self.sums.write_mac(number, image);
        self.write_register(image);
    }

    fn on_chip(&self) -> Option<&Region> {
        self.sums.on_chip()
    }

    fn kept_of(&self, place: Place) -> Option<(Place, usize)> {
        self.sums.kept_of(place)
    }

    fn version_of(&self, place: Place) -> Option<(Place, Range<usize>)> {
        self.sums.version_of(place)
    }

    fn over(&self, place: Place, level: usize) -> Option<Place> {
        self.sums.over(place, level)
    }
}
