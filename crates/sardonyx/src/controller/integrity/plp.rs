//! Paths that are computed side by side. Source: Freij, Yuan, Zhou and Solihin, "Persist Level Parallelism: Streamlining
//! Integrity Tree Updates for Secure Persistent Memory", MICRO 2020; from memory. What must be atomic is a line, its
//! version, its MAC and the root: nodes are made anew. Strict persistence computes one path after the other; here a
//! level begins a path when the one before it has left that level (pipelined), or paths of lines that are written as
//! one are merged where they meet (coalesced).
//! Left out: epochs, within which paths go in any order: fences are not known below the layers. So what is merged is
//! what one request writes as one.

use super::bmt::{ACCEPTS, BonsaiTrees, Order, TreePolicy, bonsai, build};
use super::macs::{CACHE, MAC_PLACE, VERIFY};
use super::versions::{LEAVES, MINOR_BITS};
use crate::controller::layers::{File, Integrity};
use crate::controller::metadata_cache::SETS;
use crate::plan::Plan;
use crate::settings::{AnyKey, keys, words};

/// The order of path computations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Updates {
    /// Each path begins when the one before it is complete.
    Sequential,
    /// A path's level begins when the path before has passed that level.
    Pipelined,
    /// Paths are pipelined and merged where they meet.
    Coalesced,
}

words!(Updates { "sequential" => Sequential, "pipelined" => Pipelined, "coalesced" => Coalesced });

keys! {
    UPDATES: Updates = word("integrity.plp.updates", "coalesced"),
        Source("PLP (MICRO 2020), from memory: its pipelined and its coalesced updates, the second its best"),
        "How plp computes the paths of lines: one after the other, by levels, or merged where they meet";
}

const KEYS: &[&dyn AnyKey] = &[
    &VERIFY,
    &CACHE,
    &SETS,
    &MINOR_BITS,
    &ACCEPTS,
    &UPDATES,
    &LEAVES,
    &MAC_PLACE,
];

/// The layers and designs of this file.
pub static FILE: File<Integrity> = File {
    layers: &[bonsai(
        "plp",
        KEYS,
        "a line is atomic with its MAC, its version and the root; nodes are made anew",
        |settings, layout| {
            let updates = settings.get(&UPDATES);
            build(settings, layout, |_, _| Parallel { updates })
        },
    )],
    designs: &[],
};

struct Parallel {
    updates: Updates,
}

impl TreePolicy for Parallel {
    fn through(&self, level: usize) -> bool {
        level == 0
    }

    fn order(&self) -> Order {
        match self.updates {
            Updates::Sequential => Order::Sequential,
            Updates::Pipelined => Order::Pipelined,
            Updates::Coalesced => Order::Coalesced,
        }
    }

    fn recover(&mut self, trees: &mut BonsaiTrees, plan: &mut Plan) {
        trees.levels.rebuild_above(0, plan);
    }
}
