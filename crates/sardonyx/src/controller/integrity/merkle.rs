//! A Merkle tree over the MACs of all lines, so that the newest of each is known by a register on chip. The register
//! follows each line of MACs when that comes into the persistence domain (an eager root, atomic with the line); nodes
//! are written back when they leave their cache, and a recovery makes them anew from the MACs and compares with the
//! register. Source: Merkle trees of secure processors (Gassend et al., HPCA 2003), its lazy nodes as in Osiris and
//! Anubis, from memory of their abstracts and not checked. A Bonsai tree stands over counters alone; this one stands
//! over MACs, because tables and logs have no counters.
//! Left out: time of a recovery; any crash consistency of nodes; smaller trees over counters.

use super::mac::{KEYS, Mac, UNITS};
use super::macs::{MECHANISMS, VERIFIED_NODE, Where, word};
use super::tree::{ARITY, Tree, kept, put};
use crate::controller::layers::{About, File, Integrity, PowerFail, Refuses};
use crate::controller::metadata_cache::Lookup;
use crate::figures::Figures;
use crate::line::{Line, Place, ZERO_LINE};
use crate::medium::layout::{Layout, Region};
use crate::medium::params::Unit;
use crate::plan::guard::Guard;
use crate::plan::start_gap::Places;
use crate::plan::storey::Storey;
use crate::plan::{At, Plan, Step, Stored};
use crate::stats::Cause;

/// What this file has.
pub static FILE: File<Integrity> = File {
    layers: &[Integrity {
        about: About {
            name: "merkle",
            keys: KEYS,
            units: UNITS,
            figures: &[super::mac::FIGURES],
            cut: "the root is a register that follows each MAC; nodes are made anew from the MACs",
            tries: &[MECHANISMS],
            limits: &[],
        },
        build: |settings, layout| {
            let at = Where::reserve(settings, layout);
            let tree = Tree::reserve(at.region.clone(), layout);
            Some(Box::new(Merkle {
                macs: Mac::new(at, settings),
                tree,
                register: ZERO_LINE,
            }))
        },
        promises: Refuses::ALL,
        registers: |_| super::tree::REGISTER_BYTES,
        power_fail: Some(|layout| Box::new(Root::from_layout(layout))),
    }],
    designs: &[],
};

struct Merkle {
    macs: Mac,
    tree: Tree,
    /// Hashes of the highest level's lines, as of what has been handled.
    register: Line,
}

impl Merkle {
    /// The line `index` of `level`, in the cache and verified: against the node above it if it was not there.
    fn fetch(&mut self, level: usize, index: u64, after: Step, plan: &mut Plan) -> Lookup {
        let place = self.tree.levels[level].line(index);
        if self.macs.cache.peek(place).is_some() {
            return self.macs.cache.get(place, after, plan);
        }
        let above = match self.tree.is_top(level) {
            true => At::past(kept(&self.register, index)),
            false => {
                let above = self.fetch(level + 1, index / ARITY, after, plan);
                At::new(kept(self.macs.cache.line(above), index), above.at)
            }
        };
        let mut cached = self.macs.cache.get(place, after, plan);
        let both = plan.both(cached.at, above.at);
        cached.at = plan.unit(Unit::Mac, both);
        plan.exercise(&VERIFIED_NODE);
        if Tree::hash(level, index, self.macs.cache.line(cached)) != above.value {
            plan.refuse(place);
        }
        cached
    }

    /// The line `index` of MACs is `line`, and all above it follows.
    fn follow(&mut self, index: u64, line: At<Line>, plan: &mut Plan) {
        let (mut index, mut line) = (index, line);
        for level in 0..self.tree.levels.len() {
            let hash = Tree::hash(level, index, &line.value);
            line.at = plan.unit(Unit::Mac, line.at);
            if self.tree.is_top(level) {
                put(&mut self.register, index, hash);
                return;
            }
            let slot = (index % ARITY) as usize;
            index /= ARITY;
            let above = self.fetch(level + 1, index, Step::PAST, plan);
            let (bytes, cache) = (hash.to_le_bytes(), &mut self.macs.cache);
            cache.set_bytes(above, slot * 8, &bytes, line.at, plan);
            line = At::new(*cache.line(above), plan.both(line.at, above.at));
        }
    }

    fn index(&self, at: Place) -> u64 {
        at.0 - self.macs.at.region.first.0
    }
}

impl Storey for Merkle {
    fn flush(&mut self, plan: &mut Plan) {
        let plan = &mut plan.because(Cause::Integrity);
        self.macs.cache.flush(plan);
        let register = self.register;
        plan.write(self.tree.register.line(0), At::past(&register), Step::PAST);
    }

    /// Makes all nodes anew from the MACs, and compares with the register.
    fn recover(&mut self, plan: &mut Plan) {
        let leaves = plan.written(&self.macs.at.region).into_iter();
        let leaves = leaves.map(|at| (self.index(at), plan.peek(at).unwrap_or(ZERO_LINE)));
        let (levels, register) = self.tree.rebuild(leaves);
        let at = self.tree.register.line(0);
        if plan.peek(at).unwrap_or(ZERO_LINE) != register {
            plan.refuse(at);
        }
        self.register = register;
        let plan = &mut plan.because(Cause::Integrity);
        for (nodes, region) in levels.iter().zip(&self.tree.levels[1..]) {
            for place in plan.written(region) {
                let right = nodes.get(&(place.0 - region.first.0));
                if right.is_none() && plan.peek(place) != Some(ZERO_LINE) {
                    plan.write(place, At::past(&ZERO_LINE), Step::PAST);
                }
            }
            for (index, node) in nodes {
                let place = region.line(*index);
                if plan.peek(place) != Some(*node) {
                    plan.write(place, At::past(node), Step::PAST);
                }
            }
        }
    }

    fn forget_figures(&mut self) {
        self.macs.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        self.macs.figures(out);
    }
}

impl Guard for Merkle {
    fn read(
        &mut self,
        place: Place,
        got: At<Option<Line>>,
        after: Step,
        plan: &mut Plan,
    ) -> At<Option<Line>> {
        let plan = &mut plan.because(Cause::Integrity);
        let Some((at, number)) = self.macs.at.of_line(place) else {
            return got;
        };
        let cached = self.fetch(0, self.index(at), after, plan);
        let kept = At::new(word(self.macs.cache.line(cached), number), cached.at);
        self.macs.verified(place, got, kept, plan)
    }

    fn write(
        &mut self,
        place: Place,
        line: At<&Line>,
        sideband: Option<[u8; 8]>,
        stored: Stored,
        plan: &mut Plan,
    ) -> Step {
        let plan = &mut plan.because(Cause::Integrity);
        let Some((at, _)) = self.macs.at.of_line(place) else {
            return stored.done;
        };
        let cached = self.fetch(0, self.index(at), Step::PAST, plan);
        let done = self.macs.put(cached, (place, line, sideband), stored, plan);
        let macs = At::new(*self.macs.cache.line(cached), cached.at);
        self.follow(self.index(at), macs, plan);
        done
    }

    fn holds(&self, place: Place, plan: &Plan) -> bool {
        self.macs.is_held(place, plan)
    }
}

/// The register, as it follows what comes into the persistence domain.
struct Root {
    at: Where,
    tree: Tree,
    levels: Vec<super::tree::Nodes>,
    register: Line,
}

impl Root {
    fn from_layout(layout: &Layout) -> Root {
        let at = Where::from_layout(layout);
        let tree = Tree::from_layout(at.region.clone(), layout);
        Root {
            at,
            levels: vec![super::tree::Nodes::new(); tree.levels.len() - 1],
            tree,
            register: ZERO_LINE,
        }
    }
}

impl PowerFail for Root {
    fn begin(&mut self, image: &mut Places) {
        let first = self.at.region.first.0;
        let leaves = image.written_in(&self.at.region).into_iter();
        let leaves = leaves.map(|at| (at.0 - first, image.read(at).unwrap_or(ZERO_LINE)));
        (self.levels, self.register) = self.tree.rebuild(leaves);
    }

    fn accepted(&mut self, place: Place, image: &mut Places) {
        if !self.at.region.contains(place) {
            return;
        }
        let mut index = place.0 - self.at.region.first.0;
        let mut line = image.read(place).unwrap_or(ZERO_LINE);
        for level in 0..self.tree.levels.len() {
            let hash = Tree::hash(level, index, &line);
            if self.tree.is_top(level) {
                put(&mut self.register, index, hash);
                break;
            }
            let node = self.levels[level].entry(index / ARITY).or_insert(ZERO_LINE);
            put(node, index % ARITY, hash);
            (index, line) = (index / ARITY, *node);
        }
        image.write(self.tree.register.line(0), &self.register, 0xff, None);
    }

    fn dumped(&mut self, place: Place, image: &mut Places) {
        self.at.dumped(place, image);
        if let Some((at, _)) = self.at.of_line(place) {
            self.accepted(at, image);
        }
    }

    fn on_chip(&self) -> Option<&Region> {
        Some(&self.tree.register)
    }

    fn kept_of(&self, place: Place) -> Option<(Place, usize)> {
        self.at.of_line(place)
    }

    fn over(&self, place: Place, level: usize) -> Option<Place> {
        let own = self.at.of_line(place).map_or(place, |(at, _)| at);
        self.tree.over_node(own, level)
    }
}
