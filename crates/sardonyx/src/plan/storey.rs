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
    /// Its buckets, the oldest first: the number of each, and what lines held by it.
    pub buckets: Vec<(u16, Vec<(Logical, Line)>)>,
}

/// The part of a layer's interface that has no address. Every method is about this layer alone, and does nothing unless
/// the layer overrides it.
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

    /// What a hardware log says of transactions that a power cut found under way: what
    /// [`Storey::undo`] is about to put back.
    fn unfinished(&mut self, _plan: &mut Plan) -> Vec<Unfinished> {
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

    /// Hit rates, counts and footprints: those that the layer's description lists.
    fn figures(&self, _out: &mut Figures) {}
}
