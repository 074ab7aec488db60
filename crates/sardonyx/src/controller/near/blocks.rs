//! A cache whose tags are on chip: blocks of lines, in one of several ways of their set. A look-up costs no access, and
//! takes no time of its own. A power cut loses the tags, and with them the lines.
//!
//! Which blocks are brought is a choice: each that is missed, or those that are missed again, as Linux's tiering promotes
//! pages (TPP, ASPLOS 2023). A request whose block is not brought goes past the cache. The persistent medium keeps the
//! place of each line, so that a block that leaves is written as far as it is dirty, and nothing else moves.

use rustc_hash::FxHashMap;

use super::{Class, Controller, Near, Tag, Write};
use crate::line::Logical;
use crate::medium::near::{
    ADMIT_AFTER, ADMIT_EVERY, ADMIT_SAMPLE, BLOCK_LINES, NEAR_FLUSHED, NEAR_VICTIM, WAYS, on_chip,
};
use crate::plan::{Fetched, Plan, Step, Stored};
use crate::settings::Settings;
use crate::stats::Cause;

/// What the tags say.
pub struct NearBlocks {
    block_lines: u64,
    ways: usize,
    sets: u64,
    /// The ways of each set that were ever used.
    held: FxHashMap<u64, Vec<Held>>,
    /// Requests so far.
    requests: u64,
    admission: Admission,
}

/// A block in its way.
struct Held {
    block: u64,
    /// The last request for it.
    used: u64,
    tags: Vec<Tag>,
}

/// Which blocks are brought that were missed.
struct Admission {
    after: u64,
    sample: u64,
    every: u64,
    missed: u64,
    /// The last request that brought a block.
    brought: Option<u64>,
    /// Misses that were seen of blocks that are not here.
    seen: FxHashMap<u64, u64>,
}

impl Admission {
    fn admits(&mut self, block: u64, request: u64) -> bool {
        self.missed += 1;
        if !self.missed.is_multiple_of(self.sample) {
            return false;
        }
        let seen = self.seen.entry(block).or_insert(0);
        *seen += 1;
        let is_early = self.brought.is_some_and(|last| request - last < self.every);
        if *seen < self.after || is_early {
            return false;
        }
        self.seen.remove(&block);
        self.brought = Some(request);
        true
    }
}

impl NearBlocks {
    /// The tags of a cache in a near medium of `lines` lines; `None` if they lie beside the lines.
    pub fn from_settings(settings: &Settings, lines: u64) -> Option<NearBlocks> {
        on_chip(settings).then(|| {
            let (block_lines, ways) = (settings.get(&BLOCK_LINES), settings.get(&WAYS));
            NearBlocks {
                block_lines,
                ways: ways as usize,
                sets: (lines / (block_lines * ways)).max(1),
                held: FxHashMap::default(),
                requests: 0,
                admission: Admission {
                    after: settings.get(&ADMIT_AFTER),
                    sample: settings.get(&ADMIT_SAMPLE),
                    every: settings.get(&ADMIT_EVERY),
                    missed: 0,
                    brought: None,
                    seen: FxHashMap::default(),
                },
            }
        })
    }

    fn set_of(&self, block: u64) -> u64 {
        block % self.sets
    }

    /// The first slot of a way.
    fn first(&self, set: u64, way: usize) -> u64 {
        (set * self.ways as u64 + way as u64) * self.block_lines
    }

    /// Where a line lies; `None` if it does not lie here.
    pub fn slot(&self, line: Logical) -> Option<Logical> {
        let block = line.0 / self.block_lines;
        let set = self.set_of(block);
        let ways = self.held.get(&set)?;
        let way = ways.iter().position(|held| held.block == block)?;
        Some(Logical(self.first(set, way) + line.0 % self.block_lines))
    }

    /// Notes a request for a line, and says where it lies.
    fn find(&mut self, line: Logical) -> Option<Logical> {
        self.requests += 1;
        let slot = self.slot(line)?;
        let used = self.requests;
        self.holder_mut(slot)?.used = used;
        Some(slot)
    }

    fn holder_of(&self, slot: Logical) -> (u64, usize, usize) {
        let (way, offset) = (slot.0 / self.block_lines, slot.0 % self.block_lines);
        let (set, way) = (way / self.ways as u64, way % self.ways as u64);
        (set, way as usize, offset as usize)
    }

    fn holder_mut(&mut self, slot: Logical) -> Option<&mut Held> {
        let (set, way, _) = self.holder_of(slot);
        self.held.get_mut(&set)?.get_mut(way)
    }

    /// The tag of a slot.
    pub fn tag(&self, slot: Logical) -> Option<Tag> {
        let (set, way, offset) = self.holder_of(slot);
        let held = self.held.get(&set)?.get(way)?;
        held.tags.get(offset).copied()
    }

    /// Changes the tag of a slot.
    pub fn set(&mut self, slot: Logical, tag: Tag) {
        let (_, _, offset) = self.holder_of(slot);
        if let Some(held) = self.holder_mut(slot) {
            held.tags[offset] = tag;
        }
    }

    /// Notes that the bytes in a slot are known now.
    pub fn learn(&mut self, slot: Logical) {
        if let Some(tag) = self.tag(slot) {
            let unknown = false;
            self.set(slot, Tag { unknown, ..tag });
        }
    }

    /// All slots that hold lines, in their order.
    pub fn slots(&self) -> Vec<u64> {
        let ways = self
            .held
            .iter()
            .flat_map(|(set, ways)| (0..ways.len()).map(|way| self.first(*set, way)));
        let mut slots: Vec<u64> = ways
            .flat_map(|first| first..first + self.block_lines)
            .collect();
        slots.sort_unstable();
        slots
    }

    /// Gives a missed line's block the way of its set that was used longest ago. Returns its first slot, and the tags of
    /// the block that goes; `None` if the block is not to be brought.
    fn take(&mut self, line: Logical) -> Option<(u64, Vec<Tag>)> {
        let block = line.0 / self.block_lines;
        if !self.admission.admits(block, self.requests) {
            return None;
        }
        let lines = block * self.block_lines..(block + 1) * self.block_lines;
        let tags = lines.map(|line| Tag::of(Logical(line)));
        let new = Held {
            block,
            used: self.requests,
            tags: tags.collect(),
        };
        let (set, ways) = (self.set_of(block), self.ways);
        let held = self.held.entry(set).or_default();
        let (way, old) = match held.len() < ways {
            true => {
                held.push(new);
                (held.len() - 1, Vec::new())
            }
            false => {
                let oldest = held.iter().enumerate().min_by_key(|(_, held)| held.used);
                let way = oldest.map_or(0, |(way, _)| way);
                (way, std::mem::replace(&mut held[way], new).tags)
            }
        };
        Some((self.first(set, way), old))
    }
}

impl Near {
    fn find(&mut self, line: Logical) -> Option<Logical> {
        self.blocks.as_mut()?.find(line)
    }

    pub(super) fn block_read(
        &mut self,
        line: Logical,
        class: Class,
        after: Step,
        far: &mut Controller,
        plan: &mut Plan,
    ) -> Fetched {
        let slot = self.find(line);
        self.reads[usize::from(slot.is_some())] += 1;
        let held = slot.and_then(|slot| Some((slot, self.tag(slot, plan)?)));
        if let Some((slot, tag)) = held {
            return self.found(slot, tag, after, plan);
        }
        let got = far.read(line, class, after, plan);
        self.bring(line, class, Some(got), far, plan);
        got
    }

    /// Brings the block of a missed line, which the persistent medium may have given already, if it is to be brought.
    /// Returns the slot of the line and the step after which it holds it.
    fn bring(
        &mut self,
        line: Logical,
        class: Class,
        mut got: Option<Fetched>,
        far: &mut Controller,
        plan: &mut Plan,
    ) -> Option<(Logical, Step)> {
        let blocks = self.blocks.as_mut()?;
        let block_lines = blocks.block_lines;
        let Some((first, old)) = blocks.take(line) else {
            self.passed += 1;
            return None;
        };
        let from = line.0 - line.0 % block_lines;
        let mut here = Step::PAST;
        // A small memory may end within its last block.
        for offset in 0..block_lines.min(self.far_lines.saturating_sub(from)) {
            let slot = Logical(first + offset);
            let leaves = old.get(offset as usize).filter(|tag| tag.dirty);
            let room = leaves.map_or(Step::PAST, |tag| self.leave(slot, *tag, far, plan));
            let one = Logical(from + offset);
            let given = if one == line { got.take() } else { None };
            let given = given.unwrap_or_else(|| {
                far.read(one, class, Step::PAST, &mut plan.because(Cause::Near))
            });
            let filled = self.fill(slot, one, class, &given, room, plan);
            if one == line {
                here = filled.done;
            }
        }
        Some((Logical(first + line.0 - from), here))
    }

    /// Writes a dirty line to the persistent medium for another's sake. Returns the step after which its slot is free.
    fn leave(&mut self, slot: Logical, tag: Tag, far: &mut Controller, plan: &mut Plan) -> Step {
        let held = self.get(slot, Step::PAST, &mut plan.because(Cause::Near));
        self.victims += 1;
        plan.exercise(&NEAR_VICTIM);
        self.write_home(tag, &held, far, plan);
        held.at
    }

    pub(super) fn block_write(
        &mut self,
        write: Write<Logical>,
        far: &mut Controller,
        plan: &mut Plan,
    ) -> Stored {
        let slot = self.find(write.at);
        self.written[usize::from(slot.is_some())] += 1;
        // The persistent medium first, as in a cache of lines.
        let home = self.write_below(write, far, plan);
        if let Some(slot) = slot {
            return self.keep(slot, write, home, write.gate, plan);
        }
        if let Some(home) = home {
            self.passed += 1;
            return home;
        }
        let brought = match self.fills_on_write {
            true => self.bring(write.at, write.class, None, far, plan),
            false => {
                self.passed += 1;
                None
            }
        };
        match brought {
            Some((slot, here)) => self.keep(slot, write, None, here, plan),
            None => self.write_on(write, far, plan),
        }
    }

    pub(super) fn block_flush(
        &mut self,
        line: Logical,
        far: &mut Controller,
        plan: &mut Plan,
    ) -> Stored {
        let slot = self.slot(line);
        let tag = slot.and_then(|slot| self.tag(slot, plan));
        let Some((slot, tag)) = slot.zip(tag).filter(|(_, tag)| tag.dirty) else {
            return Stored::at(self.safe_home(line));
        };
        self.flushed += 1;
        plan.exercise(&NEAR_FLUSHED);
        let held = self.get(slot, Step::PAST, &mut plan.because(Cause::Near));
        let home = self.write_home(tag, &held, far, plan);
        if let Some(blocks) = &mut self.blocks {
            blocks.set(slot, tag.clean());
        }
        home
    }
}
