//! The lowest levels of the tree persist, the others are made anew. Source: Awad, Ye, Solihin, Njilla and Abu Zubair,
//! "Triad-NVM: Persistency for Integrity-Protected and Encrypted Non-Volatile Memories", ISCA 2019; from memory. A
//! line, its MAC, its version and the N lowest levels of nodes are one group (the paper: through registers that a power
//! cut keeps, then into the queue); a recovery reads the Nth level alone.
//! Left out: a part of memory that need not persist, with a tree of its own (its root is the paper's third part).

use super::bmt::{ACCEPTS, BonsaiTrees, TreePolicy, bonsai, build};
use super::macs::{CACHE, MAC_PLACE, VERIFY};
use super::versions::{LEAVES, MINOR_BITS};
use crate::controller::layers::{File, Integrity};
use crate::controller::metadata_cache::SETS;
use crate::plan::Plan;
use crate::settings::{AnyKey, keys};

keys! {
    LEVELS: u64 = int("integrity.triad.levels", (0, 20), 2),
        Source("Triad-NVM (ISCA 2019), from memory: persists one, two or three levels; two is between"),
        "Levels of nodes, from the lowest up, that triad writes with each line"
        in Between("1", "3", "the fewest and the most of the paper's")
        under |by| by.short.then_some(1);
}

const KEYS: &[&dyn AnyKey] = &[
    &VERIFY,
    &CACHE,
    &SETS,
    &MINOR_BITS,
    &ACCEPTS,
    &LEVELS,
    &LEAVES,
    &MAC_PLACE,
];

/// The layers and designs of this file.
pub static FILE: File<Integrity> = File {
    layers: &[bonsai(
        "triad",
        KEYS,
        "a line is atomic with its MAC, its version and the lowest levels of nodes; the others are made anew",
        |settings, layout| {
            build(settings, layout, |trees, _| {
                let highest = trees.levels.tree.height() - 1;
                let levels = highest.min(settings.get(&LEVELS) as usize);
                Lowest { levels }
            })
        },
    )],
    designs: &[],
};

struct Lowest {
    levels: usize,
}

impl TreePolicy for Lowest {
    fn through(&self, level: usize) -> bool {
        level <= self.levels
    }

    fn recover(&mut self, trees: &mut BonsaiTrees, plan: &mut Plan) {
        trees.levels.rebuild_above(self.levels, plan);
    }
}
