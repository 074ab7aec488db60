//! The controller: a stack of layers, logging over mapping over encryption over the medium. A layer
//! speaks only to the one below, through [`Layer`]; what has no address goes through the whole stack
//! ([`Controller`]), and a layer says of it only what concerns itself ([`Storey`]).
//! A design is a named composition of layers (`designs`).

pub mod designs;
pub mod encryption;
#[cfg(test)]
mod harness;
pub mod logging;
pub mod mapping;
pub mod metadata_cache;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_sharing;

pub use crate::line::{Class, Persist};
use crate::line::{Line, Logical, Place};
use crate::plan::{At, Plan, Step, Stored, Timer};
use crate::units::Time;

/// Named figures of a layer, in the order in which a report shows them.
pub type Figures = Vec<(&'static str, f64)>;

/// A write of one line.
#[derive(Clone, Copy, Debug)]
pub struct Write<'d, A> {
    /// The line, as the layer that is asked knows it.
    pub at: A,
    /// Its content; a layer computes with the bytes as soon as they exist.
    pub data: At<&'d Line>,
    /// Nothing is sent to the layer below before this.
    pub gate: Step,
    /// Data or log.
    pub class: Class,
    /// What the program demands.
    pub order: Persist,
    /// Which core writes; 0 where nobody knows.
    pub core: u32,
    /// In which transaction of that core; 0 where nobody knows.
    pub transaction: u64,
}

impl<'d, A> Write<'d, A> {
    /// A relaxed write of data that nothing holds back, by nobody in particular.
    pub fn new(at: A, data: At<&'d Line>) -> Write<'d, A> {
        Write {
            at,
            data,
            gate: Step::PAST,
            class: Class::Data,
            order: Persist::Relaxed,
            core: 0,
            transaction: 0,
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
        }
    }
}

impl Stored {
    /// Both writes: accepted and done when this one and `other` are.
    pub(crate) fn and(self, other: Stored, plan: &mut Plan) -> Stored {
        Stored {
            accepted: plan.both(self.accepted, other.accepted),
            done: plan.both(self.done, other.done),
        }
    }
}

/// What of a layer has no address. Every method is about this layer alone, and does nothing unless
/// the layer says otherwise.
pub trait Storey: Send {
    /// The layer below; none stands below an encryption.
    fn below(&self) -> Option<&dyn Storey> {
        None
    }

    /// The same, to be changed.
    fn below_mut(&mut self) -> Option<&mut dyn Storey> {
        None
    }

    /// Writes all dirty metadata back, as an orderly shutdown does.
    fn flush(&mut self, _plan: &mut Plan) {}

    /// Learns from the medium's bytes what a fresh layer has to know; called once, before the first
    /// request, when the layers below have.
    fn recover(&mut self, _plan: &mut Plan) {}

    /// Puts back what a power cut has left half done; called once, when all layers have recovered.
    /// Gives the lines that it has put back.
    fn undo(&mut self, _plan: &mut Plan) -> Vec<Logical> {
        Vec::new()
    }

    /// `core` begins a transaction of that number; only a hardware log listens to this.
    fn begin(&mut self, _core: u32, _transaction: u64, _plan: &mut Plan) {}

    /// `core` is about to store into `line` for the first time in its transaction, and as far as its L1
    /// cache knows: the line is `old`.
    fn log_old(&mut self, _core: u32, _line: Logical, _old: At<&Line>, _plan: &mut Plan) {}

    /// All that the transaction of `core` has changed is accepted: what is logged of it is needed no more.
    fn commit(&mut self, _core: u32, _plan: &mut Plan) -> Stored {
        Stored::at(Step::PAST)
    }

    /// A timer has run out; true if it is one of this layer's.
    fn wake(&mut self, _timer: Timer, _now: Time, _plan: &mut Plan) -> bool {
        false
    }

    /// Forgets the figures counted so far (after a warm-up); state stays.
    fn forget_figures(&mut self) {}

    /// Hit rates, counts and footprints.
    fn figures(&self, _out: &mut Figures) {}
}

/// One layer of the controller.
pub trait Layer: Storey {
    /// Logical above a mapping, a place below it.
    type Addr: Copy;

    /// Reads a line. `None` is a line that has never been written: its content is unknown.
    fn read(
        &mut self,
        a: Self::Addr,
        class: Class,
        after: Step,
        plan: &mut Plan,
    ) -> At<Option<Line>>;

    /// Writes a line.
    fn write(&mut self, write: Write<Self::Addr>, plan: &mut Plan) -> Stored;

    /// Encrypts a line that exists after `data` as a write would, and throws the result away: the line
    /// was encrypted ahead and turned out to be a duplicate.
    fn discard_encryption(&mut self, _a: Self::Addr, _data: Step, _plan: &mut Plan) {}

    /// Writes back the metadata that belong to the [`crate::line::SPAN`] lines around `a`, as many as a
    /// line of counters is about (`counter_cache_writeback()` and its kin). A write-back that is already
    /// in flight is waited for.
    fn persist_metadata(&mut self, a: Self::Addr, after: Step, plan: &mut Plan) -> Stored;

    /// A request for `a` will come: fetch what it will touch into the host's caches. No effect on
    /// results.
    fn hint(&self, _a: Self::Addr, _plan: &Plan) {}
}

/// A layer that stands on the medium.
pub type Encryption = Box<dyn Layer<Addr = Place>>;

/// A layer that takes the processor's lines: a mapping, or what stands on one.
pub type Top = Box<dyn Layer<Addr = Logical>>;

/// A whole controller.
pub struct Controller {
    top: Top,
}

impl Controller {
    /// The stack under `top`.
    pub fn new(top: Top) -> Controller {
        Controller { top }
    }

    /// See [`Layer::read`].
    pub fn read(
        &mut self,
        line: Logical,
        class: Class,
        after: Step,
        plan: &mut Plan,
    ) -> At<Option<Line>> {
        self.top.read(line, class, after, plan)
    }

    /// See [`Layer::write`].
    pub fn write(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        self.top.write(write, plan)
    }

    /// See [`Layer::persist_metadata`].
    pub fn persist_metadata(&mut self, line: Logical, after: Step, plan: &mut Plan) -> Stored {
        self.top.persist_metadata(line, after, plan)
    }

    /// See [`Layer::hint`].
    pub fn hint(&self, line: Logical, plan: &Plan) {
        self.top.hint(line, plan);
    }

    /// See [`Storey::begin`].
    pub fn begin(&mut self, core: u32, transaction: u64, plan: &mut Plan) {
        self.top.begin(core, transaction, plan);
    }

    /// See [`Storey::log_old`].
    pub fn log_old(&mut self, core: u32, line: Logical, old: At<&Line>, plan: &mut Plan) {
        self.top.log_old(core, line, old, plan);
    }

    /// See [`Storey::commit`].
    pub fn commit(&mut self, core: u32, plan: &mut Plan) -> Stored {
        self.top.commit(core, plan)
    }

    /// Writes all dirty metadata back, from the top down.
    pub fn flush(&mut self, plan: &mut Plan) {
        self.each(|layer| layer.flush(plan));
    }

    /// Learns from the medium's bytes what a fresh controller has to know, from the bottom up, so that a
    /// layer may read through what is below it.
    pub fn recover(&mut self, plan: &mut Plan) {
        fn up(layer: &mut dyn Storey, plan: &mut Plan) {
            if let Some(below) = layer.below_mut() {
                up(below, plan);
            }
            layer.recover(plan);
        }
        up(&mut *self.top, plan);
    }

    /// Puts back what a power cut has left half done, after [`Controller::recover`] and what reserve power
    /// has drained from the processor's caches. Gives the lines that were put back.
    pub fn undo(&mut self, plan: &mut Plan) -> Vec<Logical> {
        self.top.undo(plan)
    }

    /// Tells the layer whose timer has run out.
    pub fn wake(&mut self, timer: Timer, now: Time, plan: &mut Plan) {
        let mut known = false;
        self.each(|layer| known = known || layer.wake(timer, now, plan));
        debug_assert!(known, "{timer:?} is nobody's");
    }

    /// Forgets the figures counted so far (after a warm-up); state stays.
    pub fn forget_figures(&mut self) {
        self.each(|layer| layer.forget_figures());
    }

    /// The figures of all layers, from the top down.
    pub fn figures(&self) -> Figures {
        let mut out = Figures::new();
        let mut layer: Option<&dyn Storey> = Some(&*self.top);
        while let Some(this) = layer {
            this.figures(&mut out);
            layer = this.below();
        }
        out
    }

    /// Calls `act` with every layer, from the top down.
    fn each(&mut self, mut act: impl FnMut(&mut dyn Storey)) {
        let mut layer: Option<&mut dyn Storey> = Some(&mut *self.top);
        while let Some(this) = layer {
            act(this);
            layer = this.below_mut();
        }
    }
}

/// Says in an `impl Storey` that the field `below` is the layer below.
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
