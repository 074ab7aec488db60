//! Bonsai Merkle trees by when their nodes persist. `bonsai` is strict: the line, its MAC, its version and all nodes of
//! its path are one group. `bonsai-lazy` writes versions and nodes back when they leave their cache, as secure memory
//! without persistence does (Rogers et al., MICRO 2007): after a cut the register knows what memory has lost, so an
//! honest recovery is refused; or what memory has is believed (`integrity.bonsai.after_cut`), and freshness is gone.
//! `bonsai-lazy-sound` is the sound reading: versions go with their lines, and a recovery makes the nodes anew.
//! The papers on persistent trees (Triad-NVM, ISCA 2019; PLP, MICRO 2020) have the first as their baseline, from memory.
//! Left out: encryption counters as versions ([`super::versions`]).

use super::bmt::{Bonsai, KEYS as SHARED, Order, Policy, Trees};
use super::macs::{CACHE, MECHANISMS, VERIFY};
use super::root::Root;
use super::versions::MINOR_BITS;
use crate::controller::layers::{About, File, Integrity, Refuses};
use crate::controller::metadata_cache::SETS;
use crate::line::ZERO_LINE;
use crate::medium::layout::Layout;
use crate::plan::Plan;
use crate::plan::guard::Guard;
use crate::settings::{AnyKey, Settings, keys, words};

/// What a lazy tree does about nodes that a cut has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCut {
    /// Memory is held against the register.
    Compare,
    /// The register is made what memory has.
    Rehash,
}

words!(AfterCut { "compare" => Compare, "rehash" => Rehash });

keys! {
    AFTER_CUT: AfterCut = word("integrity.bonsai.after_cut", "compare"),
        Assumed("trees of volatile memory say nothing of cuts; both are unsound, and for the crash explorer to catch"),
        "What bonsai-lazy does after a cut: it holds memory against its register, or believes memory";
}

const LAZY: &[&dyn AnyKey] = &[
    &VERIFY,
    &CACHE,
    &SETS,
    &MINOR_BITS,
    &super::bmt::ACCEPTS,
    &AFTER_CUT,
];

pub(super) const fn tree(
    name: &'static str,
    keys: &'static [&'static dyn AnyKey],
    cut: &'static str,
    build: fn(&Settings, &mut Layout) -> Option<Box<dyn Guard>>,
) -> Integrity {
    Integrity {
        about: About {
            name,
            keys,
            units: super::mac::UNITS,
            figures: &[super::mac::FIGURES],
            cut,
            tries: &[MECHANISMS],
            limits: &[],
        },
        build,
        promises: Refuses::ALL,
        registers: |_| super::tree::REGISTER_BYTES,
        power_fail: Some(|layout| Box::new(Root::from_layout(layout))),
    }
}

/// What this file has.
pub static FILE: File<Integrity> = File {
    layers: &[
        tree(
            "bonsai",
            SHARED,
            "a line is atomic with its MAC, its version and all nodes above it; the root is a register",
            |settings, layout| {
                Some(Box::new(Bonsai {
                    trees: Trees::reserve(settings, layout),
                    policy: Strict,
                }))
            },
        ),
        tree(
            "bonsai-lazy",
            LAZY,
            "versions and nodes that the cache has not evicted are lost; the root is a register",
            |settings, layout| {
                let trees = Trees::reserve(settings, layout);
                let policy = Lazy {
                    after_cut: settings.get(&AFTER_CUT),
                };
                Some(Box::new(Bonsai { trees, policy }))
            },
        ),
        tree(
            "bonsai-lazy-sound",
            SHARED,
            "a line is atomic with its MAC and its version; nodes are made anew, and the root is a register",
            |settings, layout| {
                Some(Box::new(Bonsai {
                    trees: Trees::reserve(settings, layout),
                    policy: Rebuilt,
                }))
            },
        ),
    ],
    designs: &[],
};

struct Strict;

impl Policy for Strict {
    fn through(&self, _level: usize) -> bool {
        true
    }

    fn order(&self) -> Order {
        Order::Sequential
    }

    fn recover(&mut self, trees: &mut Trees, plan: &mut Plan) {
        trees.register = trees.kept_register(plan);
    }
}

struct Lazy {
    after_cut: AfterCut,
}

impl Policy for Lazy {
    fn through(&self, _level: usize) -> bool {
        false
    }

    fn recover(&mut self, trees: &mut Trees, plan: &mut Plan) {
        if self.after_cut == AfterCut::Compare {
            trees.register = trees.kept_register(plan);
            return;
        }
        let region = trees.tree.levels[0].clone();
        let lines = plan.written(&region).into_iter();
        let lines = lines.map(|at| (at.0 - region.first.0, plan.peek(at).unwrap_or(ZERO_LINE)));
        let lines: Vec<_> = lines.collect();
        let (levels, register) = trees.tree.rebuild(lines.into_iter());
        trees.register = register;
        trees.rewrite(0, &levels, plan);
    }
}

struct Rebuilt;

impl Policy for Rebuilt {
    fn through(&self, level: usize) -> bool {
        level == 0
    }

    fn recover(&mut self, trees: &mut Trees, plan: &mut Plan) {
        trees.rebuild_above(0, plan);
    }
}
