//! The controller: a stack of layers, mapping over encryption over the medium. Each speaks only to
//! the one below, through [`Layer`]. A design is a named composition of layers.

pub mod designs;
pub mod encryption;
#[cfg(test)]
mod harness;
pub mod mapping;
pub mod metadata_cache;
pub mod params;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_sharing;

use crate::line::{Line, Logical, Place};
use crate::plan::{At, Plan, Step, Stored, Token};
use crate::units::Time;

/// What a line is to the program; log lines must bypass deduplication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The program's data.
    Data,
    /// An undo or redo record.
    Log,
}

/// The ordering that a write demands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Persist {
    /// Whenever it likes.
    #[default]
    Relaxed,
    /// With its encryption counter, or not at all.
    CounterAtomic,
}

/// Lines whose metadata are written back together, aligned: eight counters to a line (SCA Sec. 5.2.1).
pub const SPAN: u64 = 8;

/// Named figures of a layer, in the order in which a report shows them.
pub type Figures = Vec<(&'static str, f64)>;

/// One storey of the controller.
pub trait Layer: Send {
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

    /// Writes a line, computing with the bytes as soon as they exist but sending nothing to the
    /// layer below before `gate`.
    fn write(
        &mut self,
        a: Self::Addr,
        data: At<&Line>,
        gate: Step,
        class: Class,
        order: Persist,
        plan: &mut Plan,
    ) -> Stored;

    /// Does what a write would compute and throws it away: a wasted speculation.
    fn waste(&mut self, _a: Self::Addr, _data: Step, _plan: &mut Plan) {}

    /// Writes back the metadata that belong to the [`SPAN`] lines around `a`, as many as a line of
    /// counters is about (`counter_cache_writeback()` and its kin); what of them is on its way
    /// already is waited for.
    fn persist_metadata(&mut self, a: Self::Addr, after: Step, plan: &mut Plan) -> Stored;

    /// Writes all dirty metadata back, as an orderly shutdown does.
    fn flush(&mut self, plan: &mut Plan);

    /// Learns from the medium's bytes what a fresh controller has to know, of this layer and those
    /// below it; called once, before the first request.
    fn recover(&mut self, _plan: &mut Plan) {}

    /// A request for `a` will come: fetch what it will touch into the host's caches. No effect on
    /// results.
    fn hint(&self, _a: Self::Addr, _plan: &Plan) {}

    /// A timer has run out; only designs that decide by time have any.
    fn wake(&mut self, _token: Token, _now: Time, _plan: &mut Plan) {}

    /// Forgets the figures counted so far (after a warm-up); state stays.
    fn forget_figures(&mut self);

    /// Hit rates, counts and footprints of this layer and those below it.
    fn figures(&self, out: &mut Figures);
}

/// A layer that stands on the medium.
pub type Encryption = Box<dyn Layer<Addr = Place>>;

/// A whole controller.
pub type Controller = Box<dyn Layer<Addr = Logical>>;
