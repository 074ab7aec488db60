//! Listeners that are told what happens: the journal of a crash run, the command log, a table of requests, a timeline.
//! Without a listener an event costs one comparison.

use std::any::Any;

use super::command::Command;
use super::journal::{CacheStore, Handled, Logged, Mark, MediumWrite, OnChip, Sealed};
use super::performed::{Part, Performed};
use super::request::{Answer, Asked, Request};
use super::steps::Step;
use crate::line::{Line, Logical};
use crate::mechanisms::{Mechanism, Value};
use crate::units::Time;

/// A listener. Each method is one event, and does nothing unless the listener overrides it. Times are simulated.
pub trait Observer: Any + Send {
    /// Whether the listener has to know of single writes and of changes on chip ([`Observer::ready`] and what follows
    /// it). Requests and changes then get steps of their own, which take no time.
    fn closely(&self) -> bool {
        false
    }

    /// Whether the listener has to know of each step and of the parts of latencies ([`Observer::planned`],
    /// [`Observer::performed`], [`Observer::booked`]).
    fn of_steps(&self) -> bool {
        false
    }

    /// Whether the listener has to know of each command ([`Observer::command`]). Without one, a channel skips the
    /// refreshes of an idle time.
    fn of_commands(&self) -> bool {
        false
    }

    /// Tells the purpose of the request that is admitted next.
    fn asked(&mut self, _asked: Asked) {}

    /// A request has entered the ingress; until it is answered no other has its number.
    fn admitted(&mut self, _now: Time, _number: u32, _request: &Request) {}

    /// Tells that the steps of the request admitted last are those from `_first` to `_last`. There are none if `_first`
    /// comes after `_last`.
    fn planned(&mut self, _number: u32, _first: Step, _last: Step) {}

    /// A request has left the ingress: what it wrote is in the persistence domain.
    fn accepted(&mut self, _now: Time, _number: u32, _request: &Request) {}

    /// Tells the parts of the latency of the request that is answered next: first the wait before its admission, then
    /// the parts from its answer back to its admission.
    fn booked(&mut self, _number: u32, _parts: &[Part]) {}

    /// A read has its line, a write is in the array.
    fn answered(&mut self, _number: u32, _answer: &Answer) {}

    /// A channel has issued a command; those of a channel come in order.
    fn command(&mut self, _command: &Command) {}

    /// The bytes that the column command told last moves over the bus: `None` if nobody knows them.
    fn moves(&mut self, _line: Option<&Line>) {}

    /// A step has ended; of a medium access the commands have been told before.
    fn performed(&mut self, _performed: &Performed) {}

    /// A mechanism was used once more.
    fn used(&mut self, _mechanism: &'static Mechanism) {}

    /// A value has been `_amount`.
    fn reached(&mut self, _value: Value, _amount: u64) {}

    /// The controller is asked to write a line.
    fn handled(&mut self, _handled: Handled) {}

    /// The controller writes a line again that it was asked to write before, for another line's sake: nobody waits for it.
    fn handled_again(&mut self, _handled: Handled) {}

    /// What the controller was asked for leaves the ingress with step `leave`.
    fn leaves_with(&mut self, _leave: Step) {}

    /// A line was encrypted.
    fn sealed(&mut self, _sealed: Sealed) {}

    /// A line was written to a hardware log.
    fn logged(&mut self, _logged: Logged) {}

    /// Memory must not have a line yet.
    fn locked(&mut self, _now: Time, _line: Logical) {}

    /// An on-chip line will have changed when step `.0` ends.
    fn changes(&mut self, _step: Step, _change: OnChip) {}

    /// Until [`Observer::close_group`] all writes that become ready do so as one.
    fn open_group(&mut self) {}

    /// The group is whole.
    fn close_group(&mut self, _now: Time) {}

    /// A write is in the persistence domain, by itself or merged with a queued one.
    fn ready(&mut self, _now: Time, _write: &MediumWrite) {}

    /// The array begins to change to what the write, and those that were merged with it, say.
    fn begun(&mut self, _now: Time, _write: &MediumWrite) {}

    /// The array has changed; the write is named by its [`MediumWrite::order`].
    fn done(&mut self, _now: Time, _order: u64) {}

    /// A step without an access has ended: a change on chip, or a request that leaves the ingress.
    fn ended(&mut self, _now: Time, _step: Step) {}

    /// A store is in the cache hierarchy.
    fn stored(&mut self, _now: Time, _stored: &CacheStore) {}

    /// A program is at a mark.
    fn marked(&mut self, _now: Time, _core: u32, _mark: Mark) {}

    /// The run cannot go on: what is told from here on may be about values that only do no harm.
    fn failed(&mut self) {}
}

/// The listeners of a run.
#[derive(Default)]
pub struct Observers {
    all: Vec<Box<dyn Observer>>,
    closely: bool,
    of_steps: bool,
    of_commands: bool,
}

impl Observers {
    /// Adds a listener.
    pub fn add(&mut self, observer: Box<dyn Observer>) {
        self.closely |= observer.closely();
        self.of_steps |= observer.of_steps();
        self.of_commands |= observer.of_commands();
        self.all.push(observer);
    }

    /// Whether there is any listener.
    #[inline]
    pub fn any(&self) -> bool {
        !self.all.is_empty()
    }

    /// Whether any listener wants to know of single writes.
    #[inline]
    pub fn closely(&self) -> bool {
        self.closely
    }

    /// Whether any listener wants to know of each step.
    #[inline]
    pub fn of_steps(&self) -> bool {
        self.of_steps
    }

    /// Whether any listener wants to know of each command.
    pub fn of_commands(&self) -> bool {
        self.of_commands
    }

    #[inline]
    pub(crate) fn of_ends(&self) -> bool {
        self.of_steps | self.closely
    }

    /// Tells all listeners.
    pub fn tell(&mut self, mut of: impl FnMut(&mut dyn Observer)) {
        for observer in &mut self.all {
            of(&mut **observer);
        }
    }

    /// The first listener that is a `T`.
    pub fn find<T: Observer>(&self) -> Option<&T> {
        let all = self.all.iter();
        let mut these = all.filter_map(|one| (&**one as &dyn Any).downcast_ref::<T>());
        these.next()
    }

    /// The first listener that is a `T`, mutable.
    pub fn find_mut<T: Observer>(&mut self) -> Option<&mut T> {
        let all = self.all.iter_mut();
        let mut these = all.filter_map(|one| (&mut **one as &mut dyn Any).downcast_mut::<T>());
        these.next()
    }

    /// Removes the first listener that is a `T`, and returns it.
    pub fn take<T: Observer>(&mut self) -> Option<Box<T>> {
        let mut each = self.all.iter();
        let index = each.position(|one| (&**one as &dyn Any).is::<T>())?;
        let taken: Box<dyn Any> = self.all.remove(index);
        self.closely = self.all.iter().any(|one| one.closely());
        self.of_steps = self.all.iter().any(|one| one.of_steps());
        self.of_commands = self.all.iter().any(|one| one.of_commands());
        taken.downcast().ok()
    }
}
