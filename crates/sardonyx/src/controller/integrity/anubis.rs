//! A table in memory that names what the cache holds and memory has not: a recovery looks at those lines alone. Source:
//! Abu Zubair and Awad, "Anubis: Ultra-Low Overhead and Recovery Time for Secure Non-Volatile Memories", ISCA 2019;
//! from memory: AGIT-Plus, for a tree that can be made anew from below: a line is named when it becomes dirty. Versions
//! are written at every Nth count, as in `osiris`.
//! An entry is eight bytes, one for each line of the cache, and is in the group that makes the line dirty; one that
//! names another line does not go before that line has been written back. The table needs no MAC: who changes it
//! makes the root another than the register's.
//! Left out: AGIT-Read, which names each line that comes into the cache; ASIT, for counter trees of SGX (`asit`);
//! a table that is written in the order of the cache's sets.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use super::bmt::{BonsaiTrees, KeptTree, TreePolicy, bonsai, build};
use super::macs::word;
use super::osiris::{KEYS_OF_TRIALS, STOP_LOSS, is_due};
use super::tree::put;
use super::versions::Versions;
use crate::controller::layers::{File, Integrity};
use crate::line::{Line, Place, ZERO_LINE};
use crate::medium::layout::Region;
use crate::plan::{At, Plan, Queue, Step, Stored};

const ENTRIES: u64 = 8;
/// Lines of the table. They suffice for the largest cache, because a layout must not depend on what is on chip.
const LINES: u64 = (1 << 28) / 64 / ENTRIES;
const REGION: &str = "shadow";

/// The layers and designs of this file.
pub static FILE: File<Integrity> = File {
    layers: &[bonsai(
        "anubis",
        KEYS_OF_TRIALS,
        "a line is atomic with its MAC; a table names the versions and nodes that the cache has alone",
        |settings, layout| {
            build(settings, layout, |_, layout| Shadow {
                table: layout.reserve_sparse(REGION, LINES),
                stride: settings.get(&STOP_LOSS),
                changed: Vec::new(),
                noted: BTreeMap::new(),
            })
        },
    )],
    designs: &[],
};

struct Shadow {
    table: Region,
    stride: u64,
    /// Lines that the group at hand has changed and the cache keeps.
    changed: Vec<Place>,
    noted: BTreeMap<u64, Note>,
}

struct Note {
    line: Line,
    words: u8,
    gate: Step,
}

impl Shadow {
    fn named(&self, plan: &Plan) -> BTreeSet<Place> {
        let lines = plan.written(&self.table).into_iter();
        let lines = lines.map(|at| plan.peek(at).unwrap_or(ZERO_LINE));
        let entries = lines.flat_map(|line| (0..ENTRIES as usize).map(move |at| word(&line, at)));
        let named = entries.filter(|entry| *entry != 0);
        named.map(|entry| Place(entry - 1)).collect()
    }
}

impl TreePolicy for Shadow {
    fn through_versions(&self, versions: &Versions, line: &Line, counted: &[u64]) -> bool {
        is_due(versions, line, counted, self.stride)
    }

    /// Notes the line in the table. An entry that is on its way already is waited for. An entry of another line is
    /// replaced when that line's write-back has been accepted. For a line of the group at hand that would never come,
    /// so two lines of a group that share a slot do not both stay.
    fn dirtied(&mut self, slot: usize, place: Place, plan: &mut Plan) -> KeptTree {
        let (at, entry) = (slot as u64 / ENTRIES, slot as u64 % ENTRIES);
        let place_of_line = self.table.line(at);
        let now = || plan.peek(place_of_line).unwrap_or(ZERO_LINE);
        let line = self.noted.get(&at).map_or_else(now, |note| note.line);
        let named = word(&line, entry as usize);
        if self.changed.iter().any(|own| own.0 + 1 == named) && named != place.0 + 1 {
            return KeptTree::Through;
        }
        self.changed.push(place);
        if named == place.0 + 1 {
            return KeptTree::After(plan.under_way(place_of_line).accepted);
        }
        let gate = match named {
            0 => Step::PAST,
            named => plan.under_way(Place(named - 1)).accepted,
        };
        let note = self.noted.entry(at).or_insert(Note {
            line,
            words: 0,
            gate,
        });
        put(&mut note.line, entry, place.0 + 1);
        note.words |= 1 << entry;
        note.gate = plan.both(note.gate, gate);
        KeptTree::After(Step::PAST)
    }

    fn noted(&mut self, plan: &mut Plan) -> SmallVec<[Stored; 4]> {
        self.changed.clear();
        let notes = std::mem::take(&mut self.noted).into_iter();
        let written = notes.map(|(at, note)| {
            let line = At::past(&note.line);
            let at = self.table.line(at);
            plan.write_words(at, line, note.words, None, note.gate, Queue::Data)
        });
        written.collect()
    }

    /// Restores the versions that the table names, makes the nodes that it names from the lowest level up, and compares
    /// the highest level with the register.
    fn recover(&mut self, trees: &mut BonsaiTrees, plan: &mut Plan) {
        let named = self.named(plan);
        for level in 0..trees.levels.tree.height() {
            let of_level = |place: &Place| trees.levels.tree.find(*place);
            let found: Vec<_> = named.iter().filter_map(of_level).collect();
            for (_, index) in found.into_iter().filter(|(own, _)| *own == level) {
                match level {
                    0 => drop(trees.restore_versions(index, self.stride, plan)),
                    _ => trees.levels.remake(level, index, plan),
                }
            }
        }
        trees.levels.compare_top(plan);
    }
}
