//! The controller: a stack of layers, logging over mapping over encryption over the medium, which may have a guard
//! before it (integrity). A layer calls only the one below, through [`Layer`]. Calls without an address go through the
//! whole stack ([`Controller`]), and each layer does its own part ([`Storey`]). A design is a named composition of
//! layers (`designs`).

pub mod designs;
pub mod encryption;
#[cfg(test)]
mod harness;
pub mod integrity;
pub mod layers;
pub mod logging;
pub mod mapping;
pub mod metadata_cache;
pub mod near;
pub mod planted;
mod split_counters;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_examples;
#[cfg(test)]
mod tests_sharing;

pub use crate::figures::Figures;
pub use crate::line::{Class, Persist};
use crate::line::{Line, Logical, Place};
use crate::plan::guard::Guard;
use crate::plan::start_gap::StartGap;
pub use crate::plan::storey::{Storey, Unfinished};
use crate::plan::{At, Fetched, Plan, Step, Stored, Timer};
use crate::stats::Cause;
use crate::units::Time;
use near::Near;

/// A write of one line.
#[derive(Clone, Copy, Debug)]
pub struct Write<'d, A> {
    /// The line, as the layer that is called numbers it.
    pub at: A,
    /// Its content; a layer computes with the bytes as soon as they exist.
    pub data: At<&'d Line>,
    /// The step before which nothing is sent to the layer below.
    pub gate: Step,
    /// Whether the line is data or log.
    pub class: Class,
    /// The order in which the write must persist.
    pub order: Persist,
    /// The core that writes; 0 where it is not known.
    pub core: u32,
    /// The number of that core's transaction; 0 where it is not known.
    pub transaction: u64,
    /// Whether somebody waits until the line outlives a power cut.
    pub flushed: bool,
}

impl<'d, A> Write<'d, A> {
    /// A relaxed write of data that waits for nothing, by no known core.
    pub fn new(at: A, data: At<&'d Line>) -> Write<'d, A> {
        Write {
            at,
            data,
            gate: Step::PAST,
            class: Class::Data,
            order: Persist::Relaxed,
            core: 0,
            transaction: 0,
            flushed: false,
        }
    }

    /// The same write of another line, as a layer hands it to the one below.
    pub fn to<B>(self, at: B) -> Write<'d, B> {
        Write {
            at,
            data: self.data,
            gate: self.gate,
            class: self.class,
            order: self.order,
            core: self.core,
            transaction: self.transaction,
            flushed: self.flushed,
        }
    }
}

/// One layer of the controller.
pub trait Layer: Storey {
    /// The address that the layer takes: logical above a mapping, a place below it.
    type Addr: Copy;

    /// Reads a line. `None` is one that the run has not written and whose content is unknown.
    fn read(&mut self, a: Self::Addr, class: Class, after: Step, plan: &mut Plan) -> Fetched;

    /// Writes a line.
    fn write(&mut self, write: Write<Self::Addr>, plan: &mut Plan) -> Stored;

    /// Encrypts a line that exists after `data` as a write would, and discards the result, because the line was
    /// encrypted ahead and turned out to be a duplicate.
    fn discard_encryption(&mut self, _a: Self::Addr, _data: Step, _plan: &mut Plan) {}

    /// Writes back the metadata of the [`crate::line::SPAN`] lines around `a`, as many as a line of counters covers
    /// (`counter_cache_writeback()` and its kin). A write-back that is already in flight is waited for. By default there
    /// are none to write back.
    fn persist_metadata(&mut self, _a: Self::Addr, after: Step, _plan: &mut Plan) -> Stored {
        Stored::at(after)
    }

    /// Puts `data` into the medium, with all that the layers keep there about it, as what the line at `a` has held since
    /// before the run, if the run has not written it. Takes no time, and brings nothing on chip. Returns whether it was
    /// done; otherwise the content stays unknown.
    fn preload(&mut self, _a: Self::Addr, _data: &Line, _plan: &mut Plan) -> bool {
        false
    }

    /// The newest content at `a`. Hardware does nothing for this.
    fn peek(&self, _a: Self::Addr, _plan: &Plan) -> Option<Line> {
        None
    }

    /// Announces a request for `a`, so that what it will touch is prefetched into the host's caches. No effect on
    /// results.
    fn hint(&self, _a: Self::Addr, _plan: &Plan) {}
}

/// A layer that stands on the medium: an encryption policy.
pub type Encryption = Box<dyn Layer<Addr = Place>>;

/// A layer that takes the processor's lines: a mapping, or what stands on one.
pub type Top = Box<dyn Layer<Addr = Logical>>;

/// A whole controller.
pub struct Controller {
    top: Top,
    /// The guard between all layers and the medium. A plan has it while a layer is at work.
    guard: Option<Box<dyn Guard>>,
    /// Wear levelling below the guard, if lines move. A plan has it like the guard.
    levelling: Option<Box<StartGap>>,
    /// The near medium, if there is one, and its own layers.
    near: Option<Box<Near>>,
}

impl Controller {
    /// Assembles a controller from the layers `top`, over `guard` if there is one, over wear levelling if there is any.
    pub fn new(top: Top, guard: Option<Box<dyn Guard>>, levelling: Option<StartGap>) -> Controller {
        Controller {
            top,
            guard,
            levelling: levelling.map(Box::new),
            near: None,
        }
    }

    /// The controller with another medium near the processor.
    #[must_use]
    pub fn with_near(mut self, near: Option<Near>) -> Controller {
        self.near = near.map(Box::new);
        self
    }

    /// Lets the near medium have the request, with the rest of the controller in its hands.
    #[cold]
    fn nearby<T>(&mut self, ask: impl FnOnce(&mut Near, &mut Controller) -> T) -> T {
        let mut near = self.near.take().expect("there is one");
        let answer = ask(&mut near, self);
        self.near = Some(near);
        answer
    }

    /// Whether a flush of a line that no cache of the processor has may still have something to do.
    pub fn flushes_below(&self) -> bool {
        self.near.as_ref().is_some_and(|near| near.flushes_below())
    }

    /// Sends a line that a cache before the persistent medium holds and nobody else has to the persistent one.
    pub fn flush_line(&mut self, line: Logical, plan: &mut Plan) -> Stored {
        match self.near {
            None => Stored::at(Step::PAST),
            Some(_) => self.nearby(|near, far| near.flush_line(line, far, plan)),
        }
    }

    /// Whether `line` lies in the near medium for good.
    pub fn is_near(&self, line: Logical) -> bool {
        self.near.as_ref().is_some_and(|near| near.has(line))
    }

    /// Lets the layers do a part of a request. The guard sees all that they read and write.
    #[inline]
    fn guarded<T>(&mut self, plan: &mut Plan, ask: impl FnOnce(&mut Top, &mut Plan) -> T) -> T {
        if self.guard.is_none() && self.levelling.is_none() {
            return ask(&mut self.top, plan);
        }
        self.levelled(plan, |controller, plan| {
            plan.guard = controller.guard.take();
            let answer = ask(&mut controller.top, plan);
            controller.guard = plan.guard.take();
            if let Some(guard) = &mut controller.guard {
                guard.finish(plan);
            }
            answer
        })
    }

    /// Runs a part of a request with a plan that finds lines where they have moved, and then moves the lines that are
    /// due.
    fn levelled<T>(
        &mut self,
        plan: &mut Plan,
        with: impl FnOnce(&mut Controller, &mut Plan) -> T,
    ) -> T {
        plan.levelling = self.levelling.take();
        let answer = with(self, plan);
        plan.level();
        self.levelling = plan.levelling.take();
        answer
    }

    /// Wear levelling, if there is any.
    pub fn levelling(&self) -> Option<&StartGap> {
        self.levelling.as_deref()
    }

    /// See [`Layer::read`].
    pub fn read(&mut self, line: Logical, class: Class, after: Step, plan: &mut Plan) -> Fetched {
        if self.near.is_some() {
            return self.nearby(|near, far| near.read(line, class, after, far, plan));
        }
        self.guarded(plan, |top, plan| top.read(line, class, after, plan))
    }

    /// See [`Layer::write`].
    pub fn write(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        if self.near.is_some() {
            return self.nearby(|near, far| near.write(write, far, plan));
        }
        self.guarded(plan, |top, plan| top.write(write, plan))
    }

    /// See [`Layer::preload`]. A guard knows lines by their writes, so that nothing can be put under it.
    pub fn preload(&mut self, line: Logical, data: &Line, plan: &mut Plan) -> bool {
        if self.near.is_some() {
            return self.nearby(|near, far| near.preload(line, data, far, plan));
        }
        self.guard.is_none() && self.guarded(plan, |top, plan| top.preload(line, data, plan))
    }

    /// See [`Layer::persist_metadata`].
    pub fn persist_metadata(&mut self, line: Logical, after: Step, plan: &mut Plan) -> Stored {
        if self.is_near(line) {
            return Stored::at(after);
        }
        self.guarded(plan, |top, plan| top.persist_metadata(line, after, plan))
    }

    /// See [`Layer::hint`].
    pub fn hint(&self, line: Logical, plan: &Plan) {
        match &self.near {
            None => self.top.hint(line, plan),
            Some(near) => near.hint(line, self, plan),
        }
    }

    /// See [`Storey::begin`].
    pub fn begin(&mut self, core: u32, transaction: u64, plan: &mut Plan) {
        self.guarded(plan, |top, plan| top.begin(core, transaction, plan));
    }

    /// See [`Storey::log_old`].
    pub fn log_old(&mut self, core: u32, line: Logical, old: At<&Line>, plan: &mut Plan) {
        self.guarded(plan, |top, plan| top.log_old(core, line, old, plan));
    }

    /// See [`Storey::commit`].
    pub fn commit(&mut self, core: u32, plan: &mut Plan) -> Stored {
        self.guarded(plan, |top, plan| top.commit(core, plan))
    }

    /// Writes all dirty metadata back, from the top down.
    pub fn flush(&mut self, plan: &mut Plan) {
        if self.near.is_some() {
            self.nearby(|near, far| near.flush(far, plan));
        }
        self.guarded(plan, |top, plan| {
            each(&mut **top, |layer| layer.flush(plan))
        });
        self.levelled(plan, |controller, plan| {
            if let Some(guard) = &mut controller.guard {
                guard.flush(plan);
            }
        });
        self.levelled(plan, |_, plan| plan.flush_levelling());
    }

    /// Has each layer learn from the medium's bytes what a fresh controller must know, from the bottom up, so that a
    /// layer may read through those below it.
    pub fn recover(&mut self, plan: &mut Plan) {
        if let Some(near) = &mut self.near {
            near.recover(plan);
        }
        self.recover_integrity(plan);
        self.recover_layers(plan);
    }

    /// Recovers the guard, the first part of [`Controller::recover`].
    pub fn recover_integrity(&mut self, plan: &mut Plan) {
        self.levelled(plan, |controller, plan| {
            plan.recover_levelling();
            if let Some(guard) = &mut controller.guard {
                guard.recover(&mut plan.because(Cause::Integrity));
            }
        });
    }

    /// Recovers the layers, the second part of [`Controller::recover`].
    pub fn recover_layers(&mut self, plan: &mut Plan) {
        fn up(layer: &mut dyn Storey, plan: &mut Plan) {
            if let Some(below) = layer.below_mut() {
                up(below, plan);
            }
            layer.recover(plan);
        }
        self.guarded(plan, |top, plan| up(&mut **top, plan));
    }

    /// Puts back what a power cut has left half done, after [`Controller::recover`] and after reserve power has drained
    /// the processor's caches. Returns the lines that were put back.
    pub fn undo(&mut self, plan: &mut Plan) -> Vec<Logical> {
        self.guarded(plan, |top, plan| top.undo(plan))
    }

    /// The transactions that a power cut found unfinished according to the hardware log, before [`Controller::undo`].
    pub fn unfinished(&mut self, plan: &mut Plan) -> Vec<Unfinished> {
        self.guarded(plan, |top, plan| top.unfinished(plan))
    }

    /// Tells the layer whose timer has run out.
    pub fn wake(&mut self, timer: Timer, now: Time, plan: &mut Plan) {
        let mut known = false;
        self.guarded(plan, |top, plan| {
            each(&mut **top, |layer| {
                known = known || layer.wake(timer, now, plan)
            });
        });
        self.levelled(plan, |controller, plan| {
            if let Some(guard) = controller.guard.as_mut().filter(|_| !known) {
                known = guard.wake(timer, now, plan);
            }
        });
        debug_assert!(known, "{timer:?} is nobody's");
    }

    /// Forgets the figures counted so far (after a warm-up); state stays.
    pub fn forget_figures(&mut self) {
        each(&mut *self.top, |layer| layer.forget_figures());
        if let Some(near) = &mut self.near {
            near.forget_figures();
        }
        if let Some(guard) = &mut self.guard {
            guard.forget_figures();
        }
        if let Some(levelling) = &mut self.levelling {
            levelling.forget_figures();
        }
    }

    /// The figures of all layers, from the top down.
    pub fn figures(&self) -> Figures {
        let mut out = Figures::default();
        let mut layer: Option<&dyn Storey> = Some(&*self.top);
        while let Some(this) = layer {
            this.figures(&mut out);
            layer = this.below();
        }
        if let Some(guard) = &self.guard {
            guard.figures(&mut out);
        }
        if let Some(near) = &self.near {
            near.figures(&mut out);
        }
        out
    }
}

fn each(top: &mut dyn Storey, mut act: impl FnMut(&mut dyn Storey)) {
    let mut layer = Some(top);
    while let Some(this) = layer {
        act(this);
        layer = this.below_mut();
    }
}

/// Implements [`Storey::below`] for a type whose field `below` is the layer below.
macro_rules! stands_on_below {
    () => {
        fn below(&self) -> Option<&dyn crate::controller::Storey> {
            Some(&*self.below)
        }

        fn below_mut(&mut self) -> Option<&mut dyn crate::controller::Storey> {
            Some(&mut *self.below)
        }
    };
}
pub(crate) use stands_on_below;

/// Implements [`Layer::preload`] and [`Layer::hint`] for a layer that has no place for lines of its own over its `below`.
macro_rules! knows_what_is_below {
    () => {
        fn preload(&mut self, a: Logical, data: &Line, plan: &mut Plan) -> bool {
            self.below.preload(a, data, plan)
        }

        fn hint(&self, a: Logical, plan: &Plan) {
            self.below.hint(a, plan);
        }
    };
}
pub(crate) use knows_what_is_below;
