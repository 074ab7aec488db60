//! A tree of counters, as in SGX: a version of each line counts its writes, eight versions and a MAC are a node, and
//! above them are nodes of eight counters and a MAC each, up to a register on chip. A line's MAC is under its version,
//! a node's under the counter above it. Source: Gueron, "A memory encryption engine suitable for general purpose
//! processors", 2016, from memory; and Huang and Hua, "A write-friendly and fast-recovery scheme for security metadata
//! in non-volatile memories" and "Root crash consistency of SGX-style integrity trees" (HPCA 2021 and 2023), from
//! memory of their abstracts and not checked.
//! * `sgx` is as published, for a memory that forgets: nodes are written back when they leave their cache, and a cut
//!   loses those that are there. A recovery takes what the medium has, so the first line whose version was lost is
//!   refused, honest as it is.
//! * `sgx-sound` writes the node of versions in one group with the line and its MAC. A counter above is the sum of those
//!   in the node below it, so that a recovery makes all nodes anew from the versions, and the sums in the register show
//!   whether these are the newest: an older one is less, and nobody makes a greater one without the key.
//!
//! Left out: that SGX counts write-backs of a node in the counter above it; here that is the sum in both, which also
//! says how often something below it was written. Versions of 56 bits do not overflow.

use super::counter_tree::{LIMITS, Sums};
use super::guarded::{Guarded, Pending, Scheme, Trees, root, tree};
use super::levels::Levels;
use super::mac::PLACED_KEYS as KEYS;
use super::macs::PER_LINE;
use super::root::Learns;
use super::tree::{ARITY, Node};
use super::versions::VersionFormat;
use crate::controller::layers::{File, Integrity};
use crate::controller::metadata_cache::Lookup;
use crate::line::Line;
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::plan::guard::Guard;
use crate::plan::{At, Plan, Queue, Step};
use crate::settings::Settings;
use crate::stats::Cause;

/// The layers and designs of this file.
pub static FILE: File<Integrity> = File {
    layers: &[
        Integrity {
            settles_groups: false,
            ..tree(
                "sgx",
                KEYS,
                "loses the versions and counters that are in the cache, and honest lines are refused",
                LIMITS,
                (
                    |settings, layout| build::<Sums>(false, settings, layout),
                    |settings, layout| {
                        root::<Sums>((VersionFormat::Node, Learns::Versions), settings, layout)
                    },
                ),
            )
        },
        Integrity {
            settles_groups: false,
            ..tree(
                "sgx-sound",
                KEYS,
                "each line's version is atomic with it; counters are made anew as sums, which the register has",
                LIMITS,
                (
                    |settings, layout| build::<Sums>(true, settings, layout),
                    |settings, layout| {
                        root::<Sums>((VersionFormat::Node, Learns::Versions), settings, layout)
                    },
                ),
            )
        },
    ],
    designs: &[],
};

/// Builds the guard of a counter tree; if `sound`, versions go to memory with their lines.
pub(super) fn build<N: Node>(
    sound: bool,
    settings: &Settings,
    layout: &mut Layout,
) -> Option<Box<dyn Guard>> {
    Some(Box::new(Guarded {
        trees: Trees::<N>::reserve(VersionFormat::Node, Queue::Data, settings, layout),
        scheme: Sgx { sound },
    }))
}

struct Sgx {
    sound: bool,
}

/// Sets the node that was just looked up to `node`, which exists after `known`.
fn renew<N: Node>(
    levels: &mut Levels<N>,
    cached: Lookup,
    (node, known): (&Line, Step),
    plan: &mut Plan,
) -> Step {
    let both = plan.both(cached.at, known);
    let at = plan.unit(Unit::Mac, both);
    levels.cache.set_bytes(cached, 0, node, at, plan);
    at
}

/// Brings a node's new sum into all nodes above it and the register.
fn follow<N: Node>(levels: &mut Levels<N>, index: u64, node: At<Line>, plan: &mut Plan) {
    let (mut index, mut node) = (index, node);
    for level in 0..levels.tree.height() {
        let number = index % ARITY;
        if levels.tree.is_top(level) {
            super::tree::put(
                &mut levels.register,
                number,
                N::of(level, number, &node.value),
            );
            return;
        }
        let of = N::of(level, index, &node.value);
        index /= ARITY;
        let cached = levels.fetch(level + 1, index, Step::PAST, plan);
        let mut above = *levels.cache.line(cached);
        N::put((level + 1, index), &mut above, number, of);
        let at = renew(levels, cached, (&above, node.at), plan);
        node = At::new(above, at);
    }
}

impl<N: Node> Scheme<N> for Sgx {
    fn write(&mut self, trees: &mut Trees<N>, write: Pending, plan: &mut Plan) -> Step {
        let plan = &mut plan.because(Cause::Integrity);
        trees.under_way.clear();
        let number = trees.macs.number(write.place).expect("it is protected");
        let index = trees.versions.index_of(number);
        let levels = &mut trees.levels;
        let cached = levels.fetch(0, index, Step::PAST, plan);
        let mut node = *levels.cache.line(cached);
        trees.versions.bump(&mut node, number);
        let version = trees.versions.get(&node, number);
        let node = At::new(node, renew(levels, cached, (&node, Step::PAST), plan));
        if N::LAZY {
            levels.mark_ahead(0, index); // before anything can push it out
        }
        let mut done = write.stored.done;
        if self.sound {
            let place = levels.line(0, index);
            let after = At::new(&node.value, node.at);
            let kept = plan.write_words(place, after, 0xff, None, Step::PAST, Queue::Data);
            levels.cache.clean(cached, 0xff);
            plan.group(&[write.stored, kept]);
            done = plan.both(done, kept.done);
        }
        let (line, beside) = (&write.line.value, write.sideband);
        let right = trees
            .macs
            .mac_of_version(write.place, version, line, beside);
        if trees.macs.beside {
            let known = plan.both(write.line.at, cached.at);
            let computed = plan.unit(Unit::Mac, known);
            plan.put_beside(write.place, write.stored, right.to_le_bytes());
            plan.keep(write.held.expect("it is held"), computed);
        } else {
            let at = trees.macs.region.line(number / PER_LINE);
            let macs = levels.look(at, Step::PAST, plan);
            let known = plan.both(write.line.at, cached.at);
            let computed = plan.unit(Unit::Mac, known);
            let word = number % PER_LINE;
            let (bytes, ripe) = (right.to_le_bytes(), write.stored.accepted);
            levels
                .cache
                .set_bytes(macs, word as usize * 8, &bytes, ripe, plan);
            let lines = At::new(levels.cache.line(macs), plan.both(computed, macs.at));
            let kept = plan.write_words(at, lines, 1 << word, None, Step::PAST, Queue::Data);
            levels.cache.clean(macs, 1 << word);
            plan.group(&[write.stored, kept]);
            done = plan.both(done, kept.done);
        }
        if !N::LAZY {
            follow(levels, index, node, plan);
        }
        done
    }

    fn settle(&mut self, _trees: &mut Trees<N>, _group: &[Pending], _plan: &mut Plan) {}

    fn flush(&mut self, trees: &mut Trees<N>, plan: &mut Plan) {
        trees.levels.bring_all_up(plan);
    }

    /// Believes the register as published; the sound variant computes all nodes again from the versions and compares
    /// them with the register.
    fn recover(&mut self, trees: &mut Trees<N>, plan: &mut Plan) {
        let levels = &mut trees.levels;
        if !self.sound {
            levels.register = levels.kept_register(plan);
            return;
        }
        for (index, node) in levels.written(0, plan) {
            if !N::is_whole(0, index, &node) {
                plan.refuse(levels.line(0, index));
            }
        }
        levels.rebuild_above(0, plan);
    }
}
