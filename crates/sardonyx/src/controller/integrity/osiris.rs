//! Versions that a recovery finds again: a line of versions is written at every Nth count of one of them (stop-loss),
//! and a recovery tries those in between until the line's check is right. Source: Ye, Hughes and Awad, "Osiris: A
//! Low-Cost Mechanism to Enable Restoration of Secure Non-Volatile Memories", MICRO 2018; from memory. The check is the
//! ECC of the decrypted line there, which the attacker can make right (codes have no key), so that the tree alone says
//! no: here it is the MAC, and the register has the last word all the same.
//! Left out: ECC as the check, which saves the MACs' lines; Osiris Plus, which writes no evicted versions.

use std::collections::BTreeMap;

use super::bmt::{ACCEPTS, Bonsai, Policy, Trees};
use super::bonsai::tree;
use super::macs::{CACHE, PER_LINE, VERIFY};
use super::tree::Nodes;
use super::versions::{MINOR_BITS, Versions};
use crate::controller::layers::{File, Integrity};
use crate::controller::metadata_cache::SETS;
use crate::line::{Line, ZERO_LINE};
use crate::plan::Plan;
use crate::settings::{AnyKey, keys};

keys! {
    STOP_LOSS: u64 = int("integrity.stop_loss", (1, 64), 4),
        Source("Osiris (MICRO 2018), from memory: 4 is what its figures settle on"),
        "Every such count of a version writes its line (osiris, anubis, phoenix): what a recovery tries, at most"
        in Between("2", "16", "half of it and four times as much");
}

const OWN_KEYS: &[&dyn AnyKey] = &[&VERIFY, &CACHE, &SETS, &MINOR_BITS, &ACCEPTS, &STOP_LOSS];

/// What this file has.
pub static FILE: File<Integrity> = File {
    layers: &[tree(
        "osiris",
        OWN_KEYS,
        "a line is atomic with its MAC, which says its version within a few; nodes are made anew",
        |settings, layout| {
            let policy = StopLoss {
                stride: settings.get(&STOP_LOSS),
            };
            let trees = Trees::reserve(settings, layout);
            Some(Box::new(Bonsai { trees, policy }))
        },
    )],
    designs: &[],
};

struct StopLoss {
    stride: u64,
}

/// Whether one of the versions that have been counted is at the end of a stride.
pub(super) fn is_due(versions: &Versions, line: &Line, counted: &[u64], stride: u64) -> bool {
    let due = |slot: &u64| versions.since(line, *slot, stride) == 0;
    counted.iter().any(due)
}

impl Policy for StopLoss {
    fn through(&self, _level: usize) -> bool {
        false
    }

    fn through_versions(&self, versions: &Versions, line: &Line, counted: &[u64]) -> bool {
        is_due(versions, line, counted, self.stride)
    }

    /// Tries the version of every line that has a MAC, and makes all nodes anew.
    fn recover(&mut self, trees: &mut Trees, plan: &mut Plan) {
        let mut lines: BTreeMap<u64, ()> = BTreeMap::new();
        for at in plan.written(&trees.macs.region) {
            let first = (at.0 - trees.macs.region.first.0) * PER_LINE;
            for number in first..first + PER_LINE {
                lines.insert(trees.versions.of_number(number).0, ());
            }
        }
        for at in plan.written(&trees.versions.region) {
            lines.insert(at.0 - trees.versions.region.first.0, ());
        }
        let mut newest = Nodes::new();
        for index in lines.into_keys() {
            newest.insert(index, restore(trees, index, self.stride, plan));
        }
        let (levels, register) = trees.tree.rebuild(newest.into_iter());
        trees.compare(register, plan);
        trees.rewrite(0, &levels, plan);
    }
}

/// The line `index` of versions as the MACs of its lines say, written if memory has an older one. A line whose MAC
/// no version is right for is left, for who reads it to refuse.
pub(super) fn restore(trees: &mut Trees, index: u64, stride: u64, plan: &mut Plan) -> Line {
    let place = trees.versions.region.line(index);
    let kept = plan.peek(place).unwrap_or(ZERO_LINE);
    let mut line = kept;
    let first = index * trees.versions.per_line();
    for number in first..first + trees.versions.per_line() {
        if let Some(found) = trees.tried(&line, number, stride, plan) {
            line = found;
        }
    }
    if line != kept {
        trees.write(place, &line, plan);
    }
    line
}
