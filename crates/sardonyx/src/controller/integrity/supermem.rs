//! Versions written through, and merged in the write queue. Source: Zuo, Hua and Xie, "SuperMem: Enabling
//! Application-transparent Secure Persistent Memory with Low Overheads", MICRO 2019; from memory. It writes a line and
//! its counter as one, through a register, and merges a line of counters that is written with the one that is queued
//! (counter write coalescing), as neighbours share it.
//! The paper has no tree: this one is made anew from the versions by a recovery, under a register that follows them, as
//! in `bonsai-lazy-sound`, so that freshness costs the same and merging is what differs.
//! Left out: counters in another bank than their lines (XBank); `medium.regions_skew` moves all of them at once.

use super::bmt::{BonsaiTrees, KEYS, TreePolicy, bonsai, build};
use crate::controller::layers::{File, Integrity};
use crate::plan::Plan;

/// The layers and designs of this file.
pub static FILE: File<Integrity> = File {
    layers: &[bonsai(
        "supermem",
        KEYS,
        "a line is atomic with its MAC and its version, which the queue merges; nodes are made anew",
        |settings, layout| build(settings, layout, |_, _| Merged),
    )],
    designs: &[],
};

struct Merged;

impl TreePolicy for Merged {
    fn through(&self, level: usize) -> bool {
        level == 0
    }

    fn merges(&self) -> bool {
        true
    }

    fn recover(&mut self, trees: &mut BonsaiTrees, plan: &mut Plan) {
        trees.levels.rebuild_above(0, plan);
    }
}
