//! What single steps have done, and what a request's latency is made of: for listeners that draw or write down a run.

use super::steps::Step;
use crate::line::Place;
use crate::medium::link::Message;
use crate::medium::params::Unit;
use crate::stats::Purpose;
use crate::units::Time;

/// The work of hardware in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Hardware did nothing: the step joins others, or tells of a request.
    Join,
    /// An on-chip unit was used.
    Unit(Unit),
    /// A message crossed the link.
    Cross(Message),
    /// A line was read from the array.
    Read,
    /// A line was read from its queued write.
    Forward,
    /// A write took a slot of a write queue.
    Accept,
    /// A write was merged with the queued write of its line, instead of taking a slot.
    Merge,
    /// A line was written to the array.
    Store,
    /// A merged write waited for the write that it was merged with.
    Merged,
}

/// A step that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Performed {
    /// The step's number. A later step has a greater one.
    pub step: Step,
    /// The work of hardware in the step.
    pub work: Work,
    /// Its purpose: for what and for whom.
    pub purpose: Purpose,
    /// The line of a medium access.
    pub place: Place,
    /// Whether the write is one of encryption counters, and these have a queue of their own.
    pub counter: bool,
    /// Whether the write is one of several that take their slots at one instant.
    pub grouped: bool,
    /// The time at which everything that the step depends on was done.
    pub ready: Time,
    /// The time at which a medium access took its queue's slot.
    pub queued: Time,
    /// The time at which a unit or the link began, or an access left its queue.
    pub begun: Time,
    /// The time at which the step ended.
    pub ended: Time,
    /// The step that ended last among those that it depends on; the past if it waited for nothing.
    pub after: Step,
    /// The purpose under which waiting for that step is booked.
    pub after_as: Purpose,
}

/// A part of a request's latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The purpose of the part.
    pub purpose: Purpose,
    /// The length of the part.
    pub latency: Time,
    /// The part of it spent waiting for a slot, a unit or another request.
    pub waited: Time,
}
