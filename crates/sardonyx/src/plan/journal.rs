//! The journal: one total order of everything that a power cut could fall between. A cut is a
//! *position* in it, never a second run of the engine; `crash` reads it. Costs nothing when off.
//!
//! Not a log of commands (that is [`crate::engine::log`]): only what changes which bytes survive, and what
//! the program could have relied on.

use rustc_hash::FxHashMap;

use super::overlay::Payload;
use super::steps::Step;
use crate::line::{Class, Line, Logical, Persist, Place};
use crate::mechanisms::Exercised;
use crate::units::Time;

/// A write of the medium, or a change of an on-chip line that has a place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Its number in the order of handling: of two writes of a word the greater is the newer.
    pub order: u64,
    /// The line.
    pub place: Place,
    /// The line as it looks after this write.
    pub line: Line,
    /// Which of its 8-byte words this write carries.
    pub words: u8,
    /// Eight bytes beside the line, atomic with it.
    pub sideband: Option<[u8; 8]>,
    /// The queued write that it was merged with, by that one's `order`.
    pub merged_into: Option<u64>,
}

impl Write {
    pub(super) fn new(order: u64, place: Place, payload: &Payload) -> Write {
        Write {
            order,
            place,
            line: payload.line,
            words: payload.words,
            sideband: payload.sideband,
            merged_into: None,
        }
    }
}

/// Who sees to it that an on-chip line survives a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// A metadata cache: drained where caches are (`eadr`).
    Cache,
    /// Registers that reserve power dumps even where only the write queues are drained (`adr`).
    Registers,
}

/// Bytes of an on-chip line that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnChip {
    /// What reserve power has to drain for the bytes to survive.
    pub domain: Domain,
    /// What draining it would write: of its words these bytes, as others may describe what is not
    /// accepted yet.
    pub write: Write,
    /// The bytes of the line that changed, a bit each.
    pub bytes: u64,
    /// Lines that are not locked any more.
    pub unlocked: Vec<Logical>,
}

/// A line that was encrypted, as the design says: what the auditor of pairs needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The write's [`Write::order`].
    pub order: u64,
    /// The place in the medium where the encrypted line goes.
    pub place: Place,
    /// The encryption counter that it was encrypted under.
    pub counter: u64,
    /// The order of the counter's own write, if the two were to be one.
    pub paired_with: Option<u64>,
}

/// A write that the controller was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handled {
    /// The line, as the processor knows it.
    pub line: Logical,
    /// What the line holds, unencrypted.
    pub data: Line,
    /// Data or log.
    pub class: Class,
    /// Whether the program demanded that it be counter-atomic.
    pub persist: Persist,
    /// The number of the next write of the medium when this one was handled.
    pub order: u64,
}

/// A line that the controller wrote to its hardware log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// The first number that its write, [`Write::order`], may have.
    pub from: u64,
    /// The number after the last that its write may have.
    pub until: u64,
    /// What the line holds, unencrypted.
    pub data: Line,
}

/// What a program did; told by whoever drives the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A fence has retired: what it waited for is complete.
    Fence,
    /// Transaction number so-and-so of this core has begun.
    Begin(u64),
    /// The store that commits it has been issued: from here on it may be visible.
    Committing(u64),
    /// The fence after it has retired: from here on it must be visible.
    Committed(u64),
}

/// One thing that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Writes `from .. from + count` of [`Journal::writes`] became ready, at one instant: they are
    /// in the persistence domain.
    Ready {
        /// Index of the first of them.
        from: u32,
        /// How many: more than one for a group.
        count: u32,
    },
    /// The array begins to change: write `.0` of [`Journal::array`].
    Begun(u32),
    /// The array has changed: write `.0` of [`Journal::array`].
    Done(u32),
    /// Bytes of an on-chip line changed, and all that they describe is accepted: number `.0` of
    /// [`Journal::on_chip`].
    OnChip(u32),
    /// Write request `.0` of [`Journal::handled`] is accepted: a fence need not wait for it.
    Accepted(u32),
    /// Memory must not have this line yet: a copy in a processor's cache is not drained until it is
    /// unlocked.
    Locked(Logical),
    /// A store is in the cache hierarchy: number `.0` of [`Journal::stores`].
    Store(u32),
    /// A program's mark.
    Mark {
        /// Number of the core that runs the program.
        core: u32,
        /// What the program has come to.
        mark: Mark,
    },
}

/// A line of a processor's cache that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The line.
    pub line: Logical,
    /// Its content from now on.
    pub data: Line,
    /// Whether the line now carries the counter-atomic mark.
    pub persist: Persist,
}

/// All that happened, in order.
#[derive(Debug, Default)]
pub struct Journal {
    /// The total order, with the time of each event.
    pub events: Vec<(Time, Event)>,
    /// Writes in the order in which they became ready.
    pub writes: Vec<Write>,
    /// Array writes in the order in which they began; one that others were merged with has all
    /// their words, and the `order` of the newest.
    pub array: Vec<Write>,
    /// Changes of on-chip lines.
    pub on_chip: Vec<OnChip>,
    /// Lines that were encrypted, in the order of handling.
    pub sealed: Vec<Sealed>,
    /// Write requests, in the order of handling.
    pub handled: Vec<Handled>,
    /// Lines of a hardware log, in the order of handling.
    pub logged: Vec<Logged>,
    /// Stores of the cores.
    pub stores: Vec<Stored>,
    /// What was used how often, of what is counted while the run goes on.
    pub exercised: Exercised,
    /// The `order` of the newest write merged with a queued one.
    merged: FxHashMap<u64, u64>,
    begun: FxHashMap<u64, u32>,
    /// The group that is being accepted.
    group: Option<u32>,
    /// On-chip changes that have not happened yet, by the step that says they have.
    pub(crate) pending: FxHashMap<u64, OnChip>,
    /// Write requests not yet accepted, by their leaving step.
    leaving: FxHashMap<u64, u32>,
}

impl Journal {
    /// The write request that the write numbered `order` was planned for; none before the first.
    pub fn request_of(&self, order: u64) -> Option<usize> {
        let next = self
            .handled
            .partition_point(|handled| handled.order <= order);
        next.checked_sub(1)
    }

    /// The line of a hardware log that the write numbered `order` is of.
    pub fn logged_by(&self, order: u64) -> Option<&Logged> {
        let next = self.logged.partition_point(|logged| logged.from <= order);
        let last = &self.logged[next.checked_sub(1)?];
        (order < last.until).then_some(last)
    }

    /// The counter under which the write numbered `order` was encrypted, as the design says.
    pub fn counter_of(&self, order: u64) -> Option<u64> {
        let index = self.sealed.binary_search_by_key(&order, |s| s.order);
        Some(self.sealed[index.ok()?].counter)
    }

    /// The writes that `event` accepts.
    pub fn accepted_by(&self, event: Event) -> &[Write] {
        match event {
            Event::Ready { from, count } => &self.writes[from as usize..(from + count) as usize],
            _ => &[],
        }
    }

    /// Each accepted write, with the first position at which it is.
    pub fn accepted(&self) -> impl Iterator<Item = (u64, &Write)> {
        let events = self.events.iter().zip(1..);
        events.flat_map(|((_, event), at)| self.accepted_by(*event).iter().map(move |w| (at, w)))
    }

    /// A program's mark.
    pub fn mark(&mut self, now: Time, core: u32, mark: Mark) {
        self.events.push((now, Event::Mark { core, mark }));
    }

    /// A store is in the cache hierarchy.
    pub fn store(&mut self, now: Time, stored: Stored) {
        self.events
            .push((now, Event::Store(self.stores.len() as u32)));
        self.stores.push(stored);
    }

    /// The write handled since there were `before` of them leaves the ingress with `leave`.
    pub(crate) fn handled_until(&mut self, before: usize, leave: Step) {
        if self.handled.len() > before {
            self.leaving.insert(leave.0, before as u32);
        }
    }

    /// Until [`Journal::close_group`] all accepted writes are of one event.
    pub(crate) fn open_group(&mut self) {
        self.group = Some(self.writes.len() as u32);
    }

    pub(crate) fn close_group(&mut self, now: Time) {
        let from = self.group.take().expect("a group was open");
        let count = self.writes.len() as u32 - from;
        self.events.push((now, Event::Ready { from, count }));
    }

    /// The write of `accept` is in the persistence domain; `into` is the accept step of the queued
    /// write that it was merged with.
    pub(crate) fn ready(
        &mut self,
        now: Time,
        accept: Step,
        place: Place,
        payload: &Payload,
        into: Option<Step>,
    ) {
        if let Some(into) = into {
            self.merged.insert(into.0, accept.0);
        }
        if self.group.is_none() {
            let from = self.writes.len() as u32;
            self.events.push((now, Event::Ready { from, count: 1 }));
        }
        self.writes.push(Write {
            merged_into: into.map(|step| step.0),
            ..Write::new(accept.0, place, payload)
        });
    }

    /// The write of `accept` is being programmed from now on.
    pub(crate) fn begun(&mut self, now: Time, accept: Step, place: Place, payload: &Payload) {
        let index = self.array.len() as u32;
        self.begun.insert(accept.0, index);
        let order = self.merged.remove(&accept.0).unwrap_or(accept.0);
        self.array.push(Write::new(order, place, payload));
        self.events.push((now, Event::Begun(index)));
    }

    pub(crate) fn done(&mut self, now: Time, accept: Step) {
        let index = self.begun.remove(&accept.0).expect("it was begun");
        self.events.push((now, Event::Done(index)));
    }

    pub(crate) fn on_chip(&mut self, now: Time, step: Step) {
        if let Some(change) = self.pending.remove(&step.0) {
            self.events
                .push((now, Event::OnChip(self.on_chip.len() as u32)));
            self.on_chip.push(change);
        }
    }

    pub(crate) fn left(&mut self, now: Time, leave: Step) {
        if let Some(index) = self.leaving.remove(&leave.0) {
            self.events.push((now, Event::Accepted(index)));
        }
    }
}
