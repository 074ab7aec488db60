//! Versions that a recovery finds again: a line of versions is written at every Nth count of one of them (stop-loss),
//! and a recovery tries those in between until the line's check is right. Source: Ye, Hughes and Awad, "Osiris: A
//! Low-Cost Mechanism to Enable Restoration of Secure Non-Volatile Memories", MICRO 2018; from memory. The check is the
//! ECC of the decrypted line there, which the attacker can make right (codes have no key), so that the tree alone says
//! no: here it is the MAC, and the register has the last word all the same.
//! Left out: ECC as the check (MACs beside lines, `integrity.mac_place`, save as many writes as it does); Osiris Plus,
//! which writes no evicted versions.

use std::collections::BTreeSet;

use super::bmt::{ACCEPTS, BonsaiTrees, TreePolicy, bonsai, build};
use super::macs::{CACHE, MAC_PLACE, PER_LINE, VERIFY};
use super::tree::{Hashes, Nodes};
use super::versions::{MINOR_BITS, Versions};
use crate::controller::layers::{File, Integrity};
use crate::controller::metadata_cache::SETS;
use crate::line::{Line, Place};
use crate::plan::Plan;
use crate::settings::{AnyKey, keys};

keys! {
    STOP_LOSS: u64 = int("integrity.stop_loss", (1, 64), 4),
        Source("Osiris (MICRO 2018), from memory: 4 is what its figures settle on"),
        "Every such count of a version writes its line (osiris, anubis, phoenix): what a recovery tries, at most"
        in Between("2", "16", "half of it and four times as much");
}

pub(super) const KEYS_OF_TRIALS: &[&dyn AnyKey] = &[
    &VERIFY,
    &CACHE,
    &SETS,
    &MINOR_BITS,
    &ACCEPTS,
    &STOP_LOSS,
    &MAC_PLACE,
];

/// The layers and designs of this file.
pub static FILE: File<Integrity> = File {
    layers: &[bonsai(
        "osiris",
        KEYS_OF_TRIALS,
        "a line is atomic with its MAC, which says its version within a few; nodes are made anew",
        |settings, layout| {
            let stride = settings.get(&STOP_LOSS);
            build(settings, layout, |_, _| StopLoss { stride })
        },
    )],
    designs: &[],
};

struct StopLoss {
    stride: u64,
}

pub(super) fn is_due(versions: &Versions, line: &Line, counted: &[u64], stride: u64) -> bool {
    let due = |number: &u64| versions.since(line, *number, stride) == 0;
    counted.iter().any(due)
}

impl TreePolicy for StopLoss {
    fn through_versions(&self, versions: &Versions, line: &Line, counted: &[u64]) -> bool {
        is_due(versions, line, counted, self.stride)
    }

    /// Tries versions for every line that has a MAC, and computes all nodes again.
    fn recover(&mut self, trees: &mut BonsaiTrees, plan: &mut Plan) {
        let of_macs = match trees.macs.beside {
            true => trees
                .macs
                .regions()
                .flat_map(|at| plan.written(at))
                .collect(),
            false => plan.written(&trees.macs.region),
        };
        let first = |at: Place| match trees.macs.number(at) {
            Some(number) => number,
            None => (at.0 - trees.macs.region.first.0) * PER_LINE,
        };
        let of_macs = of_macs
            .into_iter()
            .map(|at| trees.versions.index_of(first(at)));
        let versions = plan.written(&trees.versions.region).into_iter();
        let own = versions.map(|at| at.0 - trees.versions.region.first.0);
        let lines: BTreeSet<u64> = of_macs.chain(own).collect();
        let mut newest = Nodes::new();
        for index in lines {
            newest.insert(index, trees.restore_versions(index, self.stride, plan));
        }
        let (levels, register) = trees.levels.tree.rebuild::<Hashes>(0, newest);
        trees.levels.compare(register, plan);
        trees.levels.rewrite(0, &levels, plan);
    }
}
