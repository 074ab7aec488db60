//! The near medium: a cache before the persistent one, or lines beside it, with a stack of layers of its own. It stands
//! above the rest of the controller, which is the far side here: a line that a layer below never hears of costs nothing
//! there. The keys, and their sources, are in `medium/near`.
//!
//! The cache is direct mapped. A line's tag lies in the eight bytes beside it, as in Optane's memory mode, and comes and
//! goes with the line: a look-up is a read of the near medium. With tags on chip it has blocks and ways, in `blocks`.

mod blocks;
mod tags;

use blocks::NearBlocks;
pub use tags::SavedSlots;
use tags::Tag;

use rustc_hash::FxHashMap;

use super::{Class, Controller, Persist, Write};
use crate::figures::{Amount, Figures, figures};
use crate::line::{Line, Logical, Place, ZERO_LINE};
use crate::medium::near::{
    FILLS, FORM, LOOKS, NEAR_FLUSHED, NEAR_HIT, NEAR_VICTIM, NearForm, WRITES, Writes, bits,
    counted_on, used,
};
use crate::plan::{At, Fetched, Plan, Step, Stored};
use crate::settings::Settings;
use crate::stats::Cause;

figures! { "The near medium";
    HIT_RATE: Ratio More "near_hit_rate", "`near.form=cache`: share of the reads that the cache answered";
    WRITE_HIT_RATE: Ratio More "near_write_hit_rate", "likewise, share of the writes whose line it held";
    FILLED: Count Less "near_fills", "likewise, lines brought from the persistent medium";
    VICTIMS: Count Less "near_victims", "likewise, dirty lines written to the persistent medium for another's sake";
    FLUSHED: Count Less "near_flushes", "likewise, lines that a flush sent on to the persistent medium";
    PASSED: Count Less "near_passed", "`near.tags=on-chip`: requests that missed, and whose block was not brought";
}

/// Lines on their way that are remembered before those that have arrived are forgotten.
const MOST_HOMEWARD: usize = 256;

/// The near medium.
pub struct Near {
    form: NearForm,
    writes: Writes,
    fills_on_write: bool,
    looks_before_write: bool,
    /// The bits of its places.
    bits: u64,
    /// Whether a line is safe once it is here.
    is_safe: bool,
    /// Its lines, and the persistent medium's.
    lines: u64,
    far_lines: u64,
    /// The layers over its lines.
    stack: Box<Controller>,
    /// What the cache holds, if its tags are on chip.
    blocks: Option<Box<NearBlocks>>,
    /// Lines on their way to the persistent medium, and the step at which they are safe, for flushes that find them gone.
    homeward: FxHashMap<u64, Step>,
    reads: [u64; 2],
    written: [u64; 2],
    filled: u64,
    victims: u64,
    flushed: u64,
    passed: u64,
}

impl Near {
    /// The near medium of these settings, over `stack`, whose medium has `lines` lines. `logs` says that the far side
    /// keeps a log in hardware: it then sees each write at once.
    pub fn new(
        settings: &Settings,
        stack: Controller,
        lines: u64,
        far_lines: u64,
        logs: bool,
    ) -> Near {
        let lines = used(settings, lines);
        let writes = match settings.get(&WRITES) {
            Writes::Back if logs => Writes::Through,
            writes => writes,
        };
        Near {
            form: settings.get(&FORM),
            writes,
            fills_on_write: settings.get(&FILLS),
            looks_before_write: settings.get(&LOOKS),
            bits: bits(settings),
            is_safe: counted_on(settings),
            lines,
            far_lines,
            stack: Box::new(stack),
            blocks: NearBlocks::from_settings(settings, lines).map(Box::new),
            homeward: FxHashMap::default(),
            reads: [0; 2],
            written: [0; 2],
            filled: 0,
            victims: 0,
            flushed: 0,
            passed: 0,
        }
    }

    /// Whether `line` lies here for good.
    pub fn has(&self, line: Logical) -> bool {
        self.form == NearForm::Beside && line.0 >= self.far_lines
    }

    /// Whether a line may be newer here than in the persistent medium, which a flush then has to reach.
    pub fn flushes_below(&self) -> bool {
        self.form == NearForm::Cache && self.writes == Writes::Back && !self.is_safe
    }

    fn beside(&self, line: Logical) -> Logical {
        Logical(line.0 - self.far_lines)
    }

    /// Where the cache has a line, or would have it if each line has one slot only.
    fn slot(&self, line: Logical) -> Option<Logical> {
        match &self.blocks {
            None => Some(self.only_slot(line)),
            Some(blocks) => blocks.slot(line),
        }
    }

    fn only_slot(&self, line: Logical) -> Logical {
        Logical(line.0 % self.lines)
    }

    fn tag(&self, slot: Logical, plan: &mut Plan) -> Option<Tag> {
        if let Some(blocks) = &self.blocks {
            return blocks.tag(slot);
        }
        let beside = plan.in_near(self.bits, |plan| plan.peek_sideband(Place(slot.0)));
        Tag::beside(beside?, slot, self.lines)
    }

    /// What a slot holds, as if it were known.
    fn held(&self, slot: Logical, plan: &mut Plan) -> Option<Line> {
        plan.in_near(self.bits, |plan| self.stack.top.peek(slot, plan))
    }

    fn get(&mut self, slot: Logical, after: Step, plan: &mut Plan) -> Fetched {
        let stack = &mut self.stack;
        plan.in_near(self.bits, |plan| stack.read(slot, Class::Data, after, plan))
    }

    /// Puts a line with its tag into a slot, not before `gate`.
    fn put(
        &mut self,
        slot: Logical,
        tag: Tag,
        data: At<Option<&Line>>,
        gate: Step,
        plan: &mut Plan,
    ) -> Stored {
        let line = data.value.unwrap_or(&ZERO_LINE);
        let write = Write {
            gate,
            ..Write::new(slot, At::new(line, data.at))
        };
        let stack = &mut self.stack;
        let unknown = data.value.is_none();
        let tag = Tag { unknown, ..tag };
        if let Some(blocks) = &mut self.blocks {
            blocks.set(slot, tag);
            return plan.in_near(self.bits, |plan| stack.write(write, plan));
        }
        let beside = tag.to_beside(self.lines);
        plan.in_near(self.bits, |plan| {
            let stored = stack.write(write, plan);
            plan.put_beside_newest(Place(slot.0), beside);
            stored
        })
    }

    /// Writes a dirty line that has come with its tag to the persistent medium.
    fn write_home(
        &mut self,
        tag: Tag,
        got: &Fetched,
        far: &mut Controller,
        plan: &mut Plan,
    ) -> Stored {
        let data = got.value.expect("a dirty line was written");
        // What was safe here has to be so there, before its place is taken.
        let atomic = tag.atomic || self.is_safe;
        let (class, order) = (
            if tag.log { Class::Log } else { Class::Data },
            if atomic {
                Persist::CounterAtomic
            } else {
                Persist::Relaxed
            },
        );
        plan.handled_again(tag.line, &data, class, order);
        let write = Write {
            class,
            order,
            ..Write::new(tag.line, At::new(&data, got.at))
        };
        self.write_on(write, far, plan)
    }

    fn write_on(&mut self, write: Write<Logical>, far: &mut Controller, plan: &mut Plan) -> Stored {
        let home = far.write(write, plan);
        if self.writes == Writes::Back {
            if self.homeward.len() >= MOST_HOMEWARD {
                self.homeward.retain(|_, safe| !plan.is_past(*safe));
            }
            self.homeward.insert(write.at.0, home.accepted);
        }
        home
    }

    /// Makes room in a slot, whose line has come with its tag. Returns the step after which the slot may be overwritten.
    fn expel(
        &mut self,
        tag: Option<Tag>,
        got: &Fetched,
        far: &mut Controller,
        plan: &mut Plan,
    ) -> Step {
        let Some(tag) = tag.filter(|tag| tag.dirty) else {
            return got.at;
        };
        self.victims += 1;
        plan.exercise(&NEAR_VICTIM);
        let home = self.write_home(tag, got, far, plan);
        match self.is_safe {
            true => plan.both(got.at, home.accepted),
            false => got.at,
        }
    }

    /// See [`super::Layer::read`].
    pub fn read(
        &mut self,
        line: Logical,
        class: Class,
        after: Step,
        far: &mut Controller,
        plan: &mut Plan,
    ) -> Fetched {
        match self.form {
            NearForm::Beside if self.has(line) => self.get(self.beside(line), after, plan),
            NearForm::Beside | NearForm::None => far.read(line, class, after, plan),
            NearForm::Cache if self.blocks.is_some() => {
                self.block_read(line, class, after, far, plan)
            }
            NearForm::Cache => self.cached_read(line, class, after, far, plan),
        }
    }

    fn cached_read(
        &mut self,
        line: Logical,
        class: Class,
        after: Step,
        far: &mut Controller,
        plan: &mut Plan,
    ) -> Fetched {
        let slot = self.only_slot(line);
        let tag = self.tag(slot, plan);
        let hit = tag.filter(|tag| tag.line == line);
        self.reads[usize::from(hit.is_some())] += 1;
        if let Some(tag) = hit {
            return self.found(slot, tag, after, plan);
        }
        let looked = self.get(slot, after, &mut plan.because(Cause::Near));
        let got = far.read(line, class, looked.at, plan);
        let room = self.expel(tag, &looked, far, plan);
        self.fill(slot, line, class, &got, room, plan);
        got
    }

    /// Reads a line that the cache has.
    fn found(&mut self, slot: Logical, tag: Tag, after: Step, plan: &mut Plan) -> Fetched {
        let mut got = self.get(slot, after, plan);
        if tag.unknown {
            got.value = None;
        }
        plan.exercise(&NEAR_HIT);
        got
    }

    /// Puts a line that the persistent medium has given into a slot, whose last line has left it after `gate`.
    fn fill(
        &mut self,
        slot: Logical,
        line: Logical,
        class: Class,
        got: &Fetched,
        gate: Step,
        plan: &mut Plan,
    ) -> Stored {
        self.filled += 1;
        let clean = Tag {
            log: class == Class::Log,
            ..Tag::of(line)
        };
        let data = At::new(got.value.as_ref(), got.at);
        self.put(slot, clean, data, gate, &mut plan.because(Cause::Near))
    }

    /// See [`super::Layer::write`].
    pub fn write(
        &mut self,
        write: Write<Logical>,
        far: &mut Controller,
        plan: &mut Plan,
    ) -> Stored {
        match self.form {
            NearForm::Beside if self.has(write.at) => {
                let own = write.to(self.beside(write.at));
                let stack = &mut self.stack;
                plan.in_near(self.bits, |plan| stack.write(own, plan))
            }
            NearForm::Beside | NearForm::None => far.write(write, plan),
            NearForm::Cache if self.blocks.is_some() => self.block_write(write, far, plan),
            NearForm::Cache => self.cached_write(write, far, plan),
        }
    }

    /// Sends a written line on at once if the persistent medium has to have it. Returns what becomes of it there.
    fn write_below(
        &mut self,
        write: Write<Logical>,
        far: &mut Controller,
        plan: &mut Plan,
    ) -> Option<Stored> {
        let through = match self.writes {
            Writes::Through => true,
            Writes::Back => write.flushed && !self.is_safe,
            Writes::Stop => false,
        };
        if through && write.flushed {
            self.flushed += 1;
            plan.exercise(&NEAR_FLUSHED);
        }
        through.then(|| self.write_on(write, far, plan))
    }

    /// Puts a line that was written into a slot; `home` is what became of it below.
    fn keep(
        &mut self,
        slot: Logical,
        write: Write<Logical>,
        home: Option<Stored>,
        gate: Step,
        plan: &mut Plan,
    ) -> Stored {
        let tag = Tag {
            dirty: home.is_none(),
            atomic: write.order == Persist::CounterAtomic,
            log: write.class == Class::Log,
            ..Tag::of(write.at)
        };
        let data = At::new(Some(write.data.value), write.data.at);
        let kept = self.put(slot, tag, data, gate, plan);
        home.unwrap_or(kept)
    }

    fn cached_write(
        &mut self,
        write: Write<Logical>,
        far: &mut Controller,
        plan: &mut Plan,
    ) -> Stored {
        let slot = self.only_slot(write.at);
        let tag = self.tag(slot, plan);
        let hit = tag.is_some_and(|tag| tag.line == write.at);
        self.written[usize::from(hit)] += 1;
        // The persistent medium first: its steps are those of the request's own line.
        let home = self.write_below(write, far, plan);
        let looked = match self.looks_before_write {
            true => self.get(slot, write.gate, &mut plan.because(Cause::Near)),
            false => At::new(self.held(slot, plan), write.gate),
        };
        let mut room = looked.at;
        if !hit {
            if self.fills_on_write && home.is_none() {
                let got = far.read(
                    write.at,
                    write.class,
                    looked.at,
                    &mut plan.because(Cause::Near),
                );
                // The whole line is overwritten, once it is there.
                let known = got.value.or(Some(*write.data.value));
                let got = Fetched {
                    value: known,
                    at: got.at,
                };
                let free = self.expel(tag, &looked, far, plan);
                room = self
                    .fill(slot, write.at, write.class, &got, free, plan)
                    .done;
            } else {
                room = self.expel(tag, &looked, far, plan);
            }
        }
        self.keep(slot, write, home, room, plan)
    }

    /// See [`Controller::flush_line`].
    pub fn flush_line(&mut self, line: Logical, far: &mut Controller, plan: &mut Plan) -> Stored {
        if !self.flushes_below() {
            return Stored::at(Step::PAST);
        }
        if self.blocks.is_some() {
            return self.block_flush(line, far, plan);
        }
        let slot = self.only_slot(line);
        let tag = self.tag(slot, plan);
        let looked = self.get(slot, Step::PAST, &mut plan.because(Cause::Near));
        let Some(tag) = tag.filter(|tag| tag.line == line && tag.dirty) else {
            let safe = self.safe_home(line);
            return Stored::at(plan.both(looked.at, safe));
        };
        self.flushed += 1;
        plan.exercise(&NEAR_FLUSHED);
        let home = self.write_home(tag, &looked, far, plan);
        let data = At::new(looked.value.as_ref(), looked.at);
        let plan = &mut plan.because(Cause::Near);
        self.put(slot, tag.clean(), data, looked.at, plan);
        home
    }

    /// The step after which the persistent medium has what it was last sent of a line.
    fn safe_home(&self, line: Logical) -> Step {
        self.homeward.get(&line.0).copied().unwrap_or(Step::PAST)
    }

    /// Writes all dirty lines to the persistent medium, and the near stack's metadata back, as an orderly shutdown does.
    pub fn flush(&mut self, far: &mut Controller, plan: &mut Plan) {
        if self.form == NearForm::Cache {
            let slots = match &self.blocks {
                None => plan.near_sidebands(),
                Some(blocks) => blocks.slots(),
            };
            for slot in slots.into_iter().map(Logical) {
                let Some(tag) = self.tag(slot, plan).filter(|tag| tag.dirty) else {
                    continue;
                };
                let got = self.get(slot, Step::PAST, plan);
                self.write_home(tag, &got, far, plan);
                let data = At::new(got.value.as_ref(), got.at);
                self.put(slot, tag.clean(), data, got.at, plan);
            }
        }
        let stack = &mut self.stack;
        plan.in_near(self.bits, |plan| stack.flush(plan));
    }

    /// Has the near stack learn from what a power cut has left, if it leaves anything.
    pub fn recover(&mut self, plan: &mut Plan) {
        if self.bits == Place::NEAR_SAVED {
            let stack = &mut self.stack;
            plan.in_near(self.bits, |plan| stack.recover(plan));
        }
    }

    /// See [`super::Layer::preload`].
    pub fn preload(
        &mut self,
        line: Logical,
        data: &Line,
        far: &mut Controller,
        plan: &mut Plan,
    ) -> bool {
        let here = match self.form {
            NearForm::Beside => self.has(line).then(|| self.beside(line)),
            NearForm::None => None,
            NearForm::Cache => {
                let held = self.slot(line).and_then(|slot| {
                    let tag = self.tag(slot, plan).filter(|tag| tag.line == line);
                    tag.map(|tag| (slot, tag))
                });
                if held.is_some_and(|(_, tag)| !tag.unknown) {
                    return false;
                }
                held.map(|(slot, _)| slot)
            }
        };
        let Some(slot) = here else {
            return far.preload(line, data, plan);
        };
        if self.form == NearForm::Beside {
            let stack = &mut self.stack;
            return plan.in_near(self.bits, |plan| stack.preload(slot, data, plan));
        }
        // What the cache holds of it came from below, so both learn of it.
        if !far.preload(line, data, plan) {
            return false;
        }
        let beside = match &mut self.blocks {
            None => Some(Tag::of(line).to_beside(self.lines)),
            Some(blocks) => {
                blocks.learn(slot);
                None
            }
        };
        // Until now zeros lay there in its stead, under a pad or none.
        let reveal = |held: &mut Line| {
            held.iter_mut()
                .zip(data)
                .for_each(|(held, byte)| *held ^= byte)
        };
        plan.in_near(self.bits, |plan| {
            plan.preload(Place(slot.0), beside, reveal)
        });
        true
    }

    /// See [`super::Layer::hint`].
    pub fn hint(&self, line: Logical, far: &Controller, plan: &Plan) {
        match self.form {
            NearForm::Cache => {
                if let Some(slot) = self.slot(line) {
                    plan.touch_ahead(Place(slot.0 | Place::NEAR));
                }
                far.top.hint(line, plan);
            }
            NearForm::Beside if self.has(line) => {
                plan.touch_ahead(Place(self.beside(line).0 | Place::NEAR));
            }
            NearForm::Beside | NearForm::None => far.top.hint(line, plan),
        }
    }

    /// Counts from zero again; state stays.
    pub fn forget_figures(&mut self) {
        (self.reads, self.written) = ([0; 2], [0; 2]);
        (self.filled, self.victims) = (0, 0);
        (self.flushed, self.passed) = (0, 0);
        self.stack.forget_figures();
    }

    /// Adds the cache's figures.
    pub fn figures(&self, out: &mut Figures) {
        if self.form != NearForm::Cache {
            return;
        }
        let rate = |[missed, hit]: [u64; 2]| Amount::share(hit as f64, (missed + hit) as f64);
        out.put(&HIT_RATE, rate(self.reads));
        out.put(&WRITE_HIT_RATE, rate(self.written));
        out.put(&FILLED, self.filled);
        out.put(&VICTIMS, self.victims);
        out.put(&FLUSHED, self.flushed);
        if self.blocks.is_some() {
            out.put(&PASSED, self.passed);
        }
    }
}
