//! A Merkle tree over the MACs of all lines, so that the newest of each is known by a register on chip. The register
//! follows each line of MACs when that comes into the persistence domain (an eager root, atomic with the line); nodes
//! are written back when they leave their cache, and a recovery makes them anew from the MACs and compares with the
//! register. Source: Merkle trees of secure processors (Gassend et al., HPCA 2003), its lazy nodes as in Osiris and
//! Anubis, from memory of their abstracts and not checked. A Bonsai tree stands over counters alone; this one stands
//! over MACs, because tables and logs have no counters.
//! Left out: time of a recovery; any crash consistency of nodes; smaller trees over counters.

use super::guarded::tree;
use super::levels::Levels;
use super::mac::{INTEGRITY_CACHE_HIT_RATE, KEYS, Mac};
use super::macs::{MacPlace, PER_LINE, Where, word};
use super::root::Followed;
use super::tree::{ARITY, Hashes, Node, Tree, put};
use crate::controller::layers::{File, Integrity, PowerFail};
use crate::figures::Figures;
use crate::line::{Line, Place, ZERO_LINE};
use crate::medium::layout::Region;
use crate::medium::params::Unit;
use crate::plan::guard::Guard;
use crate::plan::start_gap::Places;
use crate::plan::storey::Storey;
use crate::plan::{At, Fetched, Plan, Queue, Step, Written};
use crate::stats::Cause;

/// The layers and designs of this file.
pub static FILE: File<Integrity> = File {
    layers: &[Integrity {
        settles_groups: false,
        ..tree(
            "merkle",
            KEYS,
            "the root is a register that follows each MAC; nodes are made anew from the MACs",
            &[],
            (
                |settings, layout| {
                    let macs = Mac::new(
                        Where::reserve((PER_LINE, MacPlace::Region), None, settings, layout),
                        settings,
                    );
                    let tree = Tree::reserve(macs.at.region.clone(), None, layout);
                    let levels = Levels::new(tree, Queue::Data, settings);
                    Some(Box::new(Merkle { macs, levels }))
                },
                |settings, layout| {
                    let at =
                        Where::from_layout((PER_LINE, MacPlace::Region), None, settings, layout);
                    let tree = Tree::from_layout(at.region.clone(), None, layout);
                    Box::new(Root {
                        at,
                        above: Followed::new(tree),
                    })
                },
            ),
        )
    }],
    designs: &[],
};

struct Merkle {
    macs: Mac,
    levels: Levels<Hashes>,
}

impl Merkle {
    fn follow(&mut self, index: u64, line: At<Line>, plan: &mut Plan) {
        let (mut index, mut line, levels) = (index, line, &mut self.levels);
        for level in 0..levels.tree.height() {
            let hash = Hashes::of(level, index, &line.value);
            line.at = plan.unit(Unit::Mac, line.at);
            if levels.tree.is_top(level) {
                put(&mut levels.register, index, hash);
                return;
            }
            let slot = (index % ARITY) as usize;
            index /= ARITY;
            let above = levels.fetch(level + 1, index, Step::PAST, plan);
            let (bytes, cache) = (hash.to_le_bytes(), &mut levels.cache);
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
        self.levels.flush(plan);
    }

    /// Computes all nodes from the MACs again, and compares them with the register.
    fn recover(&mut self, plan: &mut Plan) {
        self.levels.rebuild_above(0, plan);
    }

    fn forget_figures(&mut self) {
        self.levels.cache.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        out.put(&INTEGRITY_CACHE_HIT_RATE, self.levels.cache.hits());
    }
}

impl Guard for Merkle {
    fn read(&mut self, place: Place, got: Fetched, after: Step, plan: &mut Plan) -> Fetched {
        let plan = &mut plan.because(Cause::Integrity);
        let Some((at, number)) = self.macs.at.of_line(place) else {
            return got;
        };
        let cached = self.levels.fetch(0, self.index(at), after, plan);
        let kept = At::new(word(self.levels.cache.line(cached), number), cached.at);
        self.macs.verified(place, got, kept, plan)
    }

    fn write(&mut self, place: Place, written: Written, plan: &mut Plan) -> Step {
        let plan = &mut plan.because(Cause::Integrity);
        let Some((at, _)) = self.macs.at.of_line(place) else {
            return written.stored.done;
        };
        let cached = self.levels.fetch(0, self.index(at), Step::PAST, plan);
        let into = (cached, &mut self.levels.cache);
        let done = self.macs.put(into, place, written, plan);
        let macs = At::new(*self.levels.cache.line(cached), cached.at);
        self.follow(self.index(at), macs, plan);
        done
    }

    fn holds(&self, place: Place, plan: &Plan) -> bool {
        self.macs.is_held(place, &self.levels.cache, plan)
    }
}

/// The register, which follows every line that comes into the persistence domain.
struct Root {
    at: Where,
    above: Followed<Hashes>,
}

impl PowerFail for Root {
    fn begin(&mut self, image: &mut Places) {
        let first = self.at.region.first.0;
        let leaves = image.written_in(&self.at.region).into_iter();
        let leaves = leaves.map(|at| (at.0 - first, image.read(at).unwrap_or(ZERO_LINE)));
        self.above.begin(leaves.collect());
    }

    fn accepted(&mut self, place: Place, image: &mut Places) {
        if self.at.region.contains(place) {
            let line = image.read(place).unwrap_or(ZERO_LINE);
            let index = place.0 - self.at.region.first.0;
            self.above.follow(index, line, false, image);
        }
    }

    fn dumped(&mut self, place: Place, image: &mut Places) {
        self.at.dumped(place, image);
        if let Some((at, _)) = self.at.of_line(place) {
            self.accepted(at, image);
        }
    }

    fn on_chip(&self) -> Option<&Region> {
        Some(&self.above.tree.register)
    }

    fn kept_of(&self, place: Place) -> Option<(Place, usize)> {
        self.at.of_line(place)
    }

    fn over(&self, place: Place, level: usize) -> Option<Place> {
        let own = self.at.of_line(place).map_or(place, |(at, _)| at);
        self.above.tree.over_node(own, level)
    }
}
