//! Bonsai Merkle trees by when their nodes persist. `bonsai` is strict: the line, its MAC, its version and all nodes of
//! its path are one group. `bonsai-lazy` writes versions and nodes back when they leave their cache, as secure memory
//! without persistence does (Rogers et al., MICRO 2007): after a cut the register knows what memory has lost, so an
//! honest recovery is refused; or what memory has is believed (`integrity.bonsai.after_cut`), and freshness is gone.
//! `bonsai-lazy-sound` is the sound reading: versions go with their lines, and a recovery makes the nodes anew.
//! The papers on persistent trees (Triad-NVM, ISCA 2019; PLP, MICRO 2020) have the first as their baseline, from memory.
//! Left out: nodes that change above a line only when that line leaves the cache, as a tree that is written back has it:
//! here the path is hashed at each write.

use super::bmt::{BonsaiTrees, KEYS as SHARED, Order, TreePolicy, bonsai, build};
use super::macs::{CACHE, MECHANISMS, VERIFY};
use super::tree::Hashes;
use super::versions::{LEAVES, MINOR_BITS};
use crate::controller::layers::{About, File, Integrity};
use crate::controller::metadata_cache::SETS;
use crate::plan::Plan;
use crate::settings::{AnyKey, keys, words};

/// The reaction of a lazy tree to nodes that a cut has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCut {
    /// Memory is compared with the register.
    Compare,
    /// The register is recomputed from memory.
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
    &LEAVES,
    &super::macs::MAC_PLACE,
];

const STRICT: Integrity = bonsai(
    "bonsai",
    SHARED,
    "a line is atomic with its MAC, its version and all nodes above it; the root is a register",
    |settings, layout| build(settings, layout, |_, _| Strict),
);

/// The layers and designs of this file.
pub static FILE: File<Integrity> = File {
    layers: &[
        // All of it is in the medium at every cut, so a recovery has nothing to restore.
        Integrity {
            about: About {
                tries: &[MECHANISMS],
                ..STRICT.about
            },
            ..STRICT
        },
        bonsai(
            "bonsai-lazy",
            LAZY,
            "versions and nodes that the cache has not evicted are lost; the root is a register",
            |settings, layout| {
                let after_cut = settings.get(&AFTER_CUT);
                build(settings, layout, |_, _| Lazy { after_cut })
            },
        ),
        bonsai(
            "bonsai-lazy-sound",
            SHARED,
            "a line is atomic with its MAC and its version; nodes are made anew, and the root is a register",
            |settings, layout| build(settings, layout, |_, _| Rebuilt),
        ),
    ],
    designs: &[],
};

struct Strict;

impl TreePolicy for Strict {
    fn through(&self, _level: usize) -> bool {
        true
    }

    fn order(&self) -> Order {
        Order::Sequential
    }

    fn recover(&mut self, trees: &mut BonsaiTrees, plan: &mut Plan) {
        trees.levels.register = trees.levels.kept_register(plan);
    }
}

struct Lazy {
    after_cut: AfterCut,
}

impl TreePolicy for Lazy {
    fn recover(&mut self, trees: &mut BonsaiTrees, plan: &mut Plan) {
        if self.after_cut == AfterCut::Compare {
            trees.levels.register = trees.levels.kept_register(plan);
            return;
        }
        let levels = &mut trees.levels;
        let (nodes, register) = levels.tree.rebuild::<Hashes>(0, levels.written(0, plan));
        levels.register = register;
        levels.rewrite(0, &nodes, plan);
    }
}

struct Rebuilt;

impl TreePolicy for Rebuilt {
    fn through(&self, level: usize) -> bool {
        level == 0
    }

    fn recover(&mut self, trees: &mut BonsaiTrees, plan: &mut Plan) {
        trees.levels.rebuild_above(0, plan);
    }
}
