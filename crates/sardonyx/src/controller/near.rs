//! The near medium: a cache before the persistent one, or lines beside it, with a stack of layers of its own. It stands
//! above the rest of the controller, which is the far side here: a line that a layer below never hears of costs nothing
//! there. The keys, and their sources, are in `medium/near`.
//!
//! The cache is direct mapped. A line's tag lies in the eight bytes beside it, as in Optane's memory mode, and comes and
//! goes with the line: a look-up is a read of the near medium.

use rustc_hash::FxHashMap;

use super::{Class, Controller, Persist, Write};
use crate::figures::{Amount, Figures, figures};
use crate::line::{Line, Logical, Place, ZERO_LINE};
use crate::medium::image::Image;
use crate::medium::near::{
    self, FILLS, FORM, LOOKS, NEAR_FLUSHED, NEAR_HIT, NEAR_VICTIM, NearForm, WRITES, Writes, bits,
    counted_on, used,
};
use crate::medium::params::Geometry;
use crate::plan::{At, Fetched, Plan, Step, Stored};
use crate::settings::Settings;
use crate::stats::Cause;

figures! { "The near medium";
    HIT_RATE: Ratio More "near_hit_rate", "`near.form=cache`: share of the reads that the cache answered";
    WRITE_HIT_RATE: Ratio More "near_write_hit_rate", "likewise, share of the writes whose line it held";
    FILLED: Count Less "near_fills", "likewise, lines brought from the persistent medium";
    VICTIMS: Count Less "near_victims", "likewise, dirty lines written to the persistent medium for another's sake";
    FLUSHED: Count Less "near_flushes", "likewise, lines that a flush sent on to the persistent medium";
}

/// What lies beside a line of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tag {
    line: Logical,
    /// Whether the persistent medium has older bytes.
    dirty: bool,
    /// Whether nobody knows the bytes: they were written before the run.
    unknown: bool,
    /// Whether the line must reach the persistent medium with its counter.
    atomic: bool,
    log: bool,
}

/// Which lines a cache holds that a power cut leaves, for readers of the medium's bytes.
#[derive(Clone, Debug)]
pub struct SavedSlots {
    lines: u64,
}

impl SavedSlots {
    /// The slots of a machine with these settings; `None` if it has no such cache.
    pub fn saved(settings: &Settings) -> Option<SavedSlots> {
        let own = near::settings(settings)?;
        let saved = settings.get(&FORM) == NearForm::Cache && bits(settings) == Place::NEAR_SAVED;
        let lines = used(settings, Geometry::from_settings(&own).lines());
        saved.then_some(SavedSlots { lines })
    }

    /// The line that lies at `place` with `beside` beside it; `None` if none does, or if that is no slot.
    pub fn held(&self, place: Place, beside: Option<[u8; 8]>) -> Option<Logical> {
        let slot = Some(place.in_medium()).filter(|slot| place.is_near() && *slot < self.lines)?;
        let bits = beside
            .map(u64::from_le_bytes)
            .filter(|bits| bits & VALID != 0)?;
        Some(Logical((bits >> FLAGS) * self.lines + slot))
    }

    /// The lines that all slots in `image` hold, by place.
    pub fn all(&self, image: &Image) -> FxHashMap<Place, u64> {
        let near = image.near().into_iter().flat_map(Image::with_sideband);
        let places = near.map(|place| Place(place.0 | Place::NEAR_SAVED));
        let held = places.filter_map(|place| {
            let line = self.held(place, image.sideband(place))?;
            Some((place, line.0))
        });
        held.collect()
    }
}

const VALID: u64 = 1;
const DIRTY: u64 = 2;
const UNKNOWN: u64 = 4;
const ATOMIC: u64 = 8;
const LOG: u64 = 16;
const FLAGS: u32 = 8;

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
    /// Lines on their way to the persistent medium, and the step at which they are safe, for flushes that find them gone.
    homeward: FxHashMap<u64, Step>,
    reads: [u64; 2],
    written: [u64; 2],
    filled: u64,
    victims: u64,
    flushed: u64,
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
            lines: used(settings, lines),
            far_lines,
            stack: Box::new(stack),
            homeward: FxHashMap::default(),
            reads: [0; 2],
            written: [0; 2],
            filled: 0,
            victims: 0,
            flushed: 0,
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

    fn slot(&self, line: Logical) -> Logical {
        Logical(line.0 % self.lines)
    }

    fn tag(&self, slot: Logical, plan: &mut Plan) -> Option<Tag> {
        let beside = plan.in_near(self.bits, |plan| plan.peek_sideband(Place(slot.0)));
        let bits = u64::from_le_bytes(beside?);
        (bits & VALID != 0).then(|| Tag {
            line: Logical((bits >> FLAGS) * self.lines + slot.0),
            dirty: bits & DIRTY != 0,
            unknown: bits & UNKNOWN != 0,
            atomic: bits & ATOMIC != 0,
            log: bits & LOG != 0,
        })
    }

    /// What a slot holds, as if it were known.
    fn held(&self, slot: Logical, plan: &mut Plan) -> Option<Line> {
        plan.in_near(self.bits, |plan| self.stack.top.peek(slot, plan))
    }

    fn get(&mut self, slot: Logical, after: Step, plan: &mut Plan) -> Fetched {
        let stack = &mut self.stack;
        plan.in_near(self.bits, |plan| stack.read(slot, Class::Data, after, plan))
    }

    /// Puts a line with its tag into its slot, not before `gate`.
    fn put(&mut self, tag: Tag, data: At<Option<&Line>>, gate: Step, plan: &mut Plan) -> Stored {
        let slot = self.slot(tag.line);
        let flags = [
            (true, VALID),
            (tag.dirty, DIRTY),
            (data.value.is_none(), UNKNOWN),
            (tag.atomic, ATOMIC),
            (tag.log, LOG),
        ];
        let flags = flags
            .into_iter()
            .filter(|(set, _)| *set)
            .map(|(_, bit)| bit);
        let bits = flags.fold((tag.line.0 / self.lines) << FLAGS, |bits, bit| bits | bit);
        let line = data.value.unwrap_or(&ZERO_LINE);
        let write = Write {
            gate,
            ..Write::new(slot, At::new(line, data.at))
        };
        let stack = &mut self.stack;
        plan.in_near(self.bits, |plan| {
            let stored = stack.write(write, plan);
            plan.put_beside_newest(Place(slot.0), bits.to_le_bytes());
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
        let slot = self.slot(line);
        let tag = self.tag(slot, plan);
        let hit = tag.filter(|tag| tag.line == line);
        self.reads[usize::from(hit.is_some())] += 1;
        if let Some(tag) = hit {
            let mut got = self.get(slot, after, plan);
            if tag.unknown {
                got.value = None;
            }
            plan.exercise(&NEAR_HIT);
            return got;
        }
        let looked = self.get(slot, after, &mut plan.because(Cause::Near));
        let got = far.read(line, class, looked.at, plan);
        let room = self.expel(tag, &looked, far, plan);
        self.fill(line, class, &got, room, plan);
        got
    }

    /// Puts a line that the persistent medium has given into its slot, whose last line has left it after `gate`.
    fn fill(
        &mut self,
        line: Logical,
        class: Class,
        got: &Fetched,
        gate: Step,
        plan: &mut Plan,
    ) -> Stored {
        self.filled += 1;
        let clean = Tag {
            line,
            dirty: false,
            unknown: false,
            atomic: false,
            log: class == Class::Log,
        };
        let data = At::new(got.value.as_ref(), got.at);
        self.put(clean, data, gate, &mut plan.because(Cause::Near))
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
            NearForm::Cache => self.cached_write(write, far, plan),
        }
    }

    fn cached_write(
        &mut self,
        write: Write<Logical>,
        far: &mut Controller,
        plan: &mut Plan,
    ) -> Stored {
        let slot = self.slot(write.at);
        let tag = self.tag(slot, plan);
        let hit = tag.is_some_and(|tag| tag.line == write.at);
        self.written[usize::from(hit)] += 1;
        let through = match self.writes {
            Writes::Through => true,
            Writes::Back => write.flushed && !self.is_safe,
            Writes::Stop => false,
        };
        // The persistent medium first: its steps are those of the request's own line.
        let home = through.then(|| self.write_on(write, far, plan));
        if through && write.flushed {
            self.flushed += 1;
            plan.exercise(&NEAR_FLUSHED);
        }
        let looked = match self.looks_before_write {
            true => self.get(slot, write.gate, &mut plan.because(Cause::Near)),
            false => At::new(self.held(slot, plan), write.gate),
        };
        let mut room = looked.at;
        if !hit {
            if self.fills_on_write && !through {
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
                room = self.fill(write.at, write.class, &got, free, plan).done;
            } else {
                room = self.expel(tag, &looked, far, plan);
            }
        }
        let own = Tag {
            line: write.at,
            dirty: !through,
            unknown: false,
            atomic: write.order == Persist::CounterAtomic,
            log: write.class == Class::Log,
        };
        let data = At::new(Some(write.data.value), write.data.at);
        let kept = self.put(own, data, room, plan);
        match home {
            None => kept,
            Some(home) => home,
        }
    }

    /// See [`Controller::flush_line`].
    pub fn flush_line(&mut self, line: Logical, far: &mut Controller, plan: &mut Plan) -> Stored {
        if !self.flushes_below() {
            return Stored::at(Step::PAST);
        }
        let slot = self.slot(line);
        let tag = self.tag(slot, plan);
        let looked = self.get(slot, Step::PAST, &mut plan.because(Cause::Near));
        let Some(tag) = tag.filter(|tag| tag.line == line && tag.dirty) else {
            let safe = self.homeward.get(&line.0).copied();
            return Stored::at(plan.both(looked.at, safe.unwrap_or(Step::PAST)));
        };
        self.flushed += 1;
        plan.exercise(&NEAR_FLUSHED);
        let home = self.write_home(tag, &looked, far, plan);
        let clean = Tag {
            dirty: false,
            ..tag
        };
        let data = At::new(looked.value.as_ref(), looked.at);
        self.put(clean, data, looked.at, &mut plan.because(Cause::Near));
        home
    }

    /// Writes all dirty lines to the persistent medium, and the near stack's metadata back, as an orderly shutdown does.
    pub fn flush(&mut self, far: &mut Controller, plan: &mut Plan) {
        if self.form == NearForm::Cache {
            for slot in plan.near_sidebands() {
                let slot = Logical(slot);
                let Some(tag) = self.tag(slot, plan).filter(|tag| tag.dirty) else {
                    continue;
                };
                let got = self.get(slot, Step::PAST, plan);
                self.write_home(tag, &got, far, plan);
                let data = At::new(got.value.as_ref(), got.at);
                self.put(
                    Tag {
                        dirty: false,
                        ..tag
                    },
                    data,
                    got.at,
                    plan,
                );
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
                let slot = self.slot(line);
                let tag = self.tag(slot, plan).filter(|tag| tag.line == line);
                if tag.is_some_and(|tag| !tag.unknown) {
                    return false;
                }
                tag.map(|_| slot)
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
        let bits = (((line.0 / self.lines) << FLAGS) | VALID).to_le_bytes();
        // Until now zeros lay there in its stead, under a pad or none.
        let reveal = |held: &mut Line| {
            held.iter_mut()
                .zip(data)
                .for_each(|(held, byte)| *held ^= byte)
        };
        plan.in_near(self.bits, |plan| {
            plan.preload(Place(slot.0), Some(bits), reveal)
        });
        true
    }

    /// See [`super::Layer::hint`].
    pub fn hint(&self, line: Logical, far: &Controller, plan: &Plan) {
        match self.form {
            NearForm::Cache => {
                plan.touch_ahead(Place(self.slot(line).0 | Place::NEAR));
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
        (self.filled, self.victims, self.flushed) = (0, 0, 0);
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
    }
}
