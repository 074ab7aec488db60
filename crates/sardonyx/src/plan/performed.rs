//! What single steps have done, and what a request's latency is made of: for listeners that draw or write down a run.

use super::steps::Step;
use crate::line::Place;
use crate::medium::link::Message;
use crate::medium::params::Unit;
use crate::stats::Purpose;
use crate::units::Time;

/// What hardware did in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing: a step that others are joined by, or that tells of a request.
    Join,
    /// Used an on-chip unit.
    Unit(Unit),
    /// Crossed the link to the processor.
    Cross(Message),
    /// Read a line from the array.
    Read,
    /// Read a line from its queued write.
    Forward,
    /// Took a slot of a write queue.
    Accept,
    /// Was merged with the queued write of its line, instead of taking a slot.
    Merge,
    /// Wrote a line to the array.
    Store,
    /// Waited for the write that it was merged with.
    Merged,
}

/// A step that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Performed {
    /// The step; a later one has a greater number.
    pub step: Step,
    /// What hardware did in the step.
    pub work: Work,
    /// Its purpose: for what and for whom.
    pub purpose: Purpose,
    /// The line of a medium access.
    pub place: Place,
    /// The write is one of encryption counters, and these have a queue of their own.
    pub counter: bool,
    /// It is one of several writes that take their slots at one instant.
    pub grouped: bool,
    /// When everything that it depends on was done.
    pub ready: Time,
    /// When a medium access took its queue's slot.
    pub queued: Time,
    /// When a unit or the link began, or an access left its queue.
    pub begun: Time,
    /// When it ended.
    pub ended: Time,
    /// The step that ended last among those that it depends on; the past if it waited for nothing.
    pub after: Step,
    /// The purpose under which waiting for that step is booked.
    pub after_as: Purpose,
}

/// A part of a request's latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its purpose.
    pub purpose: Purpose,
    /// Its length.
    pub latency: Time,
    /// The part of it spent waiting for a slot, a unit or another request.
    pub waited: Time,
}
