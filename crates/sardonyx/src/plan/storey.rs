//! What every part of a controller's stack does without an address: recovery, an orderly shutdown, timers, figures.
//! Left out: reads and writes, which layers and guards each have in their own form.

use super::{At, Plan, Step, Stored, Timer};
use crate::figures::Figures;
use crate::line::{Line, Logical};
use crate::units::Time;

/// A transaction that a power cut found under way, as a hardware log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The index of the log's registers that name it.
    pub registers: u64,
    /// Its number.
    pub transaction: u64,
    /// Headers of its last bucket, by the registers.
    pub headers: u64,
    /// The buckets, the oldest first: the number of each, and the old content of lines in it.
    pub buckets: Vec<(u16, Vec<(Logical, Line)>)>,
}

/// The part of a layer's interface that has no address. Every method concerns this layer only, and does nothing unless
/// the layer overrides it.
pub trait Storey: Send {
    /// The layer below; `None` below an encryption.
    fn below(&self) -> Option<&dyn Storey> {
        None
    }

    /// The layer below, mutable.
    fn below_mut(&mut self) -> Option<&mut dyn Storey> {
        None
    }

    /// Writes all dirty metadata back, as an orderly shutdown does.
    fn flush(&mut self, _plan: &mut Plan) {}

    /// Learns from the medium's bytes what a fresh layer has to know. Called once, before the first request, after the
    /// layers below have recovered.
    fn recover(&mut self, _plan: &mut Plan) {}

    /// Puts back what a power cut has left half done. Called once, after all layers have recovered. Returns the lines
    /// that were put back.
    fn undo(&mut self, _plan: &mut Plan) -> Vec<Logical> {
        Vec::new()
    }

    /// Transactions that a power cut found under way, as a hardware log has them: [`Storey::undo`] is about to put them
    /// back.
    fn unfinished(&mut self, _plan: &mut Plan) -> Vec<Unfinished> {
        Vec::new()
    }

    /// Begins a transaction of `core`. Only a hardware log needs this.
    fn begin(&mut self, _core: u32, _transaction: u64, _plan: &mut Plan) {}

    /// Hears that `core` is about to store into `line`, whose content is `old`, for the first time in its transaction
    /// as far as its L1 cache knows.
    fn log_old(&mut self, _core: u32, _line: Logical, _old: At<&Line>, _plan: &mut Plan) {}

    /// Hears that all changes of `core`'s transaction are accepted, so that its log is needed no more.
    fn commit(&mut self, _core: u32, _plan: &mut Plan) -> Stored {
        Stored::at(Step::PAST)
    }

    /// Hears that a timer has run out. Returns true if it is one of this layer's.
    fn wake(&mut self, _timer: Timer, _now: Time, _plan: &mut Plan) -> bool {
        false
    }

    /// Forgets the figures counted so far (after a warm-up); state stays.
    fn forget_figures(&mut self) {}

    /// Adds hit rates, counts and footprints: the figures that the layer's description lists.
    fn figures(&self, _out: &mut Figures) {}
}
