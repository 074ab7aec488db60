//! A tree at work: some of its lines are in a cache on chip, where each is verified under the one above it when it
//! comes, up to one that is there already or the register. All trees share it.
//! Left out: when lines leave the chip, which each scheme says.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;

use super::macs::{CACHE, VERIFIED_NODE};
use super::tree::{ARITY, Node, Nodes, Tree, put};
use crate::controller::metadata_cache::{Lookup, MetadataCache};
use crate::line::{Line, Place, ZERO_LINE};
use crate::mechanisms::RESTORING;
use crate::medium::params::Unit;
use crate::plan::{At, Plan, Queue, Step};
use crate::settings::Settings;
use crate::stats::Cause;

/// A line that the group at hand has changed.
#[derive(Clone, Copy)]
pub struct Open {
    pub line: Line,
    /// The step after which its bytes exist.
    pub at: Step,
    /// The step after which the changes of earlier groups may leave the chip.
    pub ripe: Step,
}

/// The tree, and the part of it that is on chip.
pub struct Levels<N> {
    pub tree: Tree,
    /// A cache of nodes, of the lines below them, and of lines of MACs, which never differ from the medium's.
    pub cache: MetadataCache,
    /// The on-chip root: what is kept of the highest level's lines, as of the writes handled so far.
    pub register: Line,
    /// Lines that the group at hand has changed, by level and index.
    pub open: BTreeMap<(usize, u64), Open>,
    /// The step before which nothing is accepted: a recovery's writes.
    pub recovered: Step,
    /// Lines in the cache that are ahead of the values above them ([`Node::LAZY`]).
    ahead: BTreeSet<(usize, u64)>,
    /// Values on chip that the nodes above their lines do not have: of such lines that have left the cache, and of roots
    /// of a forest.
    pub held: BTreeMap<(usize, u64), u64>,
    nodes: PhantomData<N>,
}

impl<N: Node> Levels<N> {
    /// A tree of which nothing is known yet. The cache's write-backs wait in `queue`.
    pub fn new(tree: Tree, queue: Queue, settings: &Settings) -> Levels<N> {
        Levels {
            tree,
            cache: MetadataCache::new(&CACHE, Unit::Metadata, queue, settings),
            register: ZERO_LINE,
            open: BTreeMap::new(),
            recovered: Step::PAST,
            ahead: BTreeSet::new(),
            held: BTreeMap::new(),
            nodes: PhantomData,
        }
    }

    /// Where line `index` of `level` lies.
    pub fn line(&self, level: usize, index: u64) -> Place {
        self.tree.line(level, index).expect("a line of the level")
    }

    /// Looks up the line at `place` in the cache, whatever it is a line of.
    pub fn look(&mut self, place: Place, after: Step, plan: &mut Plan) -> Lookup {
        if N::LAZY {
            let displaced = self.cache.displaced_by(place);
            let line = displaced.and_then(|place| self.tree.find(place));
            if let Some(line) = line.filter(|line| self.ahead.remove(line)) {
                self.held.insert(line, self.value_of(line));
            }
        }
        self.cache.get(place, after, plan)
    }

    /// The value that belongs above a line of the cache.
    fn value_of(&self, (level, index): (usize, u64)) -> u64 {
        let line = self.cache.peek(self.line(level, index));
        N::of(level, index, line.expect("it is in the cache"))
    }

    /// Notes that a line in the cache is ahead of the value above it, which follows when it leaves.
    pub fn mark_ahead(&mut self, level: usize, index: u64) {
        self.ahead.insert((level, index));
    }

    /// Brings the values of lines that have left the cache above them, which may make others leave.
    pub fn bring_up(&mut self, plan: &mut Plan) {
        if !N::LAZY {
            return;
        }
        while let Some(((level, index), value)) =
            self.held.first_key_value().map(|(at, of)| (*at, *of))
        {
            if self.tree.is_top(level) {
                put(&mut self.register, index, value);
            } else {
                let above = index / ARITY;
                let cached = self.fetch(level + 1, above, Step::PAST, plan);
                let mut node = *self.cache.line(cached);
                N::put((level + 1, above), &mut node, index % ARITY, value);
                let at = plan.unit(Unit::Mac, cached.at);
                self.cache.set_bytes(cached, 0, &node, at, plan);
                self.ahead.insert((level + 1, above));
            }
            // It may have come back, and have left again with more.
            if self.held[&(level, index)] == value {
                self.held.remove(&(level, index));
            }
        }
    }

    /// Brings the values of all lines above them.
    pub fn bring_all_up(&mut self, plan: &mut Plan) {
        while let Some(line) = self.ahead.pop_first() {
            self.held.insert(line, self.value_of(line));
            self.bring_up(plan);
        }
    }

    /// Sets the value of a root of a forest; `false` if the line is none.
    pub fn set_root(&mut self, line: (usize, u64), value: u64) -> bool {
        let held = self.held.get_mut(&line);
        held.map(|held| *held = value).is_some()
    }

    /// The value that is kept above line `index` of the lowest level, as it is on chip, or else as memory has it,
    /// unverified.
    pub fn peek_above(&self, index: u64, plan: &Plan) -> u64 {
        let held = self.held.get(&(0, index)).copied();
        held.unwrap_or_else(|| {
            let above = match self.tree.is_top(0) {
                true => self.register,
                false => self.peek(self.line(1, index / ARITY), plan),
            };
            self.tree.kept::<N>(0, index, &above)
        })
    }

    /// The value that is kept above line `index` of `level`, verified.
    pub fn above(&mut self, level: usize, index: u64, after: Step, plan: &mut Plan) -> At<u64> {
        if let Some(value) = self.held.get(&(level, index)) {
            return At::past(*value);
        }
        let above = match self.tree.is_top(level) {
            true => At::past(self.register),
            false => self.known(level + 1, index / ARITY, after, plan),
        };
        At::new(self.tree.kept::<N>(level, index, &above.value), above.at)
    }

    /// Looks up line `index` of `level`, and verifies it if it was not in the cache.
    pub fn fetch(&mut self, level: usize, index: u64, after: Step, plan: &mut Plan) -> Lookup {
        let place = self.line(level, index);
        if self.cache.peek(place).is_some() {
            return self.cache.get(place, after, plan);
        }
        let above = self.above(level, index, after, plan);
        let mut cached = self.look(place, after, plan);
        let both = plan.both(cached.at, above.at);
        cached.at = plan.unit(Unit::Mac, both);
        plan.exercise(&VERIFIED_NODE);
        if !N::is_right(level, index, self.cache.line(cached), above.value) {
            plan.refuse(place);
        }
        cached
    }

    /// Line `index` of `level` as the group at hand has it.
    pub fn known(&mut self, level: usize, index: u64, after: Step, plan: &mut Plan) -> At<Line> {
        if let Some(open) = self.open.get(&(level, index)) {
            return At::new(open.line, open.at);
        }
        let cached = self.fetch(level, index, after, plan);
        At::new(*self.cache.line(cached), cached.at)
    }

    /// The line at `place` as it is on chip, or else as memory has it, unverified.
    pub fn peek(&self, place: Place, plan: &Plan) -> Line {
        let cached = self.cache.peek(place).copied();
        cached.or_else(|| plan.peek(place)).unwrap_or(ZERO_LINE)
    }

    /// Writes all lines that memory lacks, and the register.
    pub fn flush(&mut self, plan: &mut Plan) {
        let plan = &mut plan.because(Cause::Integrity);
        self.cache.flush(plan);
        let register = self.register;
        plan.write(self.tree.register.line(0), At::past(&register), Step::PAST);
    }

    /// The lines of `level` that memory has, by index.
    pub fn written(&self, level: usize, plan: &Plan) -> Nodes {
        let regions = self.tree.regions(level);
        let lines = regions.flat_map(|(first, region)| {
            let lines = plan.written(&region).into_iter();
            lines.map(move |at| (first + at.0 - region.first.0, at))
        });
        lines
            .map(|(index, at)| (index, plan.peek(at).unwrap_or(ZERO_LINE)))
            .collect()
    }

    /// The register's content, kept over a cut.
    pub fn kept_register(&self, plan: &Plan) -> Line {
        plan.peek(self.tree.register.line(0)).unwrap_or(ZERO_LINE)
    }

    /// Refuses the medium if its root is not the register's. Later reads are verified by the given `register`.
    pub fn compare(&mut self, register: Line, plan: &mut Plan) {
        if self.kept_register(plan) != register {
            plan.refuse(self.tree.register.line(0));
        }
        self.register = register;
    }

    /// Rebuilds all levels above `level` from memory's lines of it, compares the result with the register, and writes
    /// the nodes that differ.
    pub fn rebuild_above(&mut self, level: usize, plan: &mut Plan) {
        let lines = self.written(level, plan);
        let (levels, register) = self.tree.rebuild::<N>(level, lines);
        self.compare(register, plan);
        self.rewrite(level, &levels, plan);
    }

    /// Writes the nodes above `level` that differ from memory's.
    pub fn rewrite(&mut self, level: usize, levels: &[Nodes], plan: &mut Plan) {
        for (level, nodes) in (level + 1..).zip(levels) {
            for (index, _) in self.written(level, plan) {
                if !nodes.contains_key(&index) {
                    self.restore(self.line(level, index), &ZERO_LINE, plan);
                }
            }
            for (index, node) in nodes {
                self.restore(self.line(level, *index), node, plan);
            }
        }
    }

    /// Writes a line that a recovery has computed, if memory has another.
    pub fn restore(&mut self, place: Place, line: &Line, plan: &mut Plan) {
        if plan.peek(place).unwrap_or(ZERO_LINE) != *line {
            plan.exercise(&RESTORING);
            let plan = &mut plan.because(Cause::Integrity);
            let written = plan.write(place, At::past(line), Step::PAST);
            self.recovered = plan.both(self.recovered, written.accepted);
        }
    }

    /// Memory's line of the tree, which must be right whatever stands above it.
    pub fn own(&self, level: usize, index: u64, plan: &mut Plan) -> Line {
        let Some(place) = self.tree.line(level, index) else {
            return ZERO_LINE;
        };
        let line = plan.peek(place).unwrap_or(ZERO_LINE);
        if !N::is_whole(level, index, &line) {
            plan.refuse(place);
        }
        line
    }

    /// Computes node `index` of `level` from the lines below it, and writes it if memory has another.
    pub fn remake(&mut self, level: usize, index: u64, plan: &mut Plan) {
        let mut node = ZERO_LINE;
        let below = self.tree.lines(level - 1);
        for child in (index * ARITY)..(index * ARITY + ARITY).min(below) {
            let of = N::of(level - 1, child, &self.own(level - 1, child, plan));
            if of != 0 {
                N::put((level, index), &mut node, child % ARITY, of);
            }
        }
        self.restore(self.line(level, index), &node, plan);
    }

    /// Compares the highest level that memory has with the register.
    pub fn compare_top(&mut self, plan: &mut Plan) {
        let top = self.tree.height() - 1;
        let mut register = ZERO_LINE;
        for index in 0..self.tree.lines(top) {
            let of = N::of(top, index, &self.own(top, index, plan));
            put(&mut register, index, of);
        }
        self.compare(register, plan);
    }
}
