//! The journal: one total order of everything that a power cut could fall between. A cut is a
//! *position* in it, never a second run of the engine; `crash` reads it.
//!
//! Not a log of commands (that is [`super::command`]): only what changes which bytes survive, and what
//! the program could have relied on.

use rustc_hash::FxHashMap;

use super::observe::Observer;
pub use super::overlay::Moved;
use super::overlay::Payload;
use super::request::Request;
use super::steps::Step;
use crate::exhausted::Exhausted;
use crate::line::{Class, Line, Logical, Persist, Place};
use crate::mechanisms::{ENDED_FULL, Exercised, Mechanism, Reached, Value};
use crate::units::Time;

/// A write of the medium, or a change of an on-chip line that has a place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediumWrite {
    /// The write's number in the order of handling. Of two writes of a word the one with the greater number is the
    /// newer.
    pub order: u64,
    /// The line, as the layers know it.
    pub place: Place,
    /// The line's place in the array, the same unless wear is levelled.
    pub at: Place,
    /// The write's relation to moves of lines, where wear is levelled.
    pub moved: Moved,
    /// The line as it looks after this write.
    pub line: Line,
    /// Which of its 8-byte words this write carries.
    pub words: u8,
    /// Eight bytes beside the line, atomic with it.
    pub sideband: Option<[u8; 8]>,
    /// The queued write that this one was merged with, by that one's `order`.
    pub merged_into: Option<u64>,
}

impl MediumWrite {
    pub(crate) fn new(order: u64, at: Place, payload: &Payload) -> MediumWrite {
        MediumWrite {
            order,
            place: payload.of,
            at,
            moved: payload.moved,
            line: payload.line,
            words: payload.words,
            sideband: payload.sideband,
            merged_into: None,
        }
    }

    /// Whether no layer asked for the write: it moves a line, or records where lines have moved.
    pub fn is_move(&self) -> bool {
        self.moved.only
    }
}

/// The means by which an on-chip line survives a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// A metadata cache, which is drained where caches are (`eadr`).
    Cache,
    /// Registers, which reserve power dumps even where only the write queues are drained (`adr`).
    Registers,
}

/// A change of some bytes of an on-chip line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnChip {
    /// The part that reserve power has to drain for the bytes to survive.
    pub domain: Domain,
    /// The write that draining would cause, of which only these bytes count: others may describe what is not accepted
    /// yet.
    pub write: MediumWrite,
    /// The bytes of the line that changed, a bit each.
    pub bytes: u64,
    /// Lines that are no longer locked.
    pub unlocked: Vec<Logical>,
}

/// The encryption of a line, as the design states it, for the auditor of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The write's [`MediumWrite::order`].
    pub order: u64,
    /// The place in the medium where the encrypted line goes.
    pub place: Place,
    /// The encryption counter that it was encrypted under.
    pub counter: u64,
    /// The order of the counter's own write, if the two were to be accepted as one.
    pub paired_with: Option<u64>,
}

/// A write request to the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handled {
    /// The line, as the processor knows it.
    pub line: Logical,
    /// The line's unencrypted content.
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
    /// The first number that its write, [`MediumWrite::order`], may have.
    pub from: u64,
    /// The number after the last that its write may have.
    pub until: u64,
    /// The line's unencrypted content.
    pub data: Line,
}

/// A mark of a program, told by whoever drives the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A fence has retired, so that what it waited for is complete.
    Fence,
    /// The core's transaction of this number has begun.
    Begin(u64),
    /// The store that commits this transaction has been issued: from here on it may be visible.
    Committing(u64),
    /// The fence after the commit has retired: from here on the transaction must be visible.
    Committed(u64),
}

/// One event of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Writes `from .. from + count` of [`Journal::writes`] became ready at one instant: they are in the persistence
    /// domain.
    Ready {
        /// Index of the first of them.
        from: u32,
        /// The number of these writes, more than one for a group.
        count: u32,
    },
    /// The array begins to change: write `.0` of [`Journal::array`].
    Begun(u32),
    /// The array has changed: write `.0` of [`Journal::array`].
    Done(u32),
    /// Bytes of an on-chip line changed, and all that they describe is accepted: number `.0` of [`Journal::on_chip`].
    OnChip(u32),
    /// The write request `.0` of [`Journal::handled`] is accepted, so a fence need not wait for it.
    Accepted(u32),
    /// Memory must not have this line yet: a copy in a processor's cache is not drained until it is unlocked.
    Locked(Logical),
    /// A store is in the cache hierarchy: number `.0` of [`Journal::stores`].
    Store(u32),
    /// A program's mark.
    Mark {
        /// Number of the core that runs the program.
        core: u32,
        /// The mark that the program has reached.
        mark: Mark,
    },
}

/// A change of a line in a processor's cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheStore {
    /// The line.
    pub line: Logical,
    /// The line's content from now on.
    pub data: Line,
    /// Whether the line now has the counter-atomic mark.
    pub persist: Persist,
}

/// The record of a run, in order.
#[derive(Debug, Default)]
pub struct Journal {
    /// The events in their total order, each with its time.
    pub events: Vec<(Time, Event)>,
    /// Writes in the order in which they became ready.
    pub writes: Vec<MediumWrite>,
    /// Array writes in the order in which they began. One that others were merged with has all their words, and the
    /// `order` of the newest.
    pub array: Vec<MediumWrite>,
    /// Changes of on-chip lines.
    pub on_chip: Vec<OnChip>,
    /// Lines that were encrypted, in the order of handling.
    pub sealed: Vec<Sealed>,
    /// Write requests, in the order of handling.
    pub handled: Vec<Handled>,
    /// Lines of a hardware log, in the order of handling.
    pub logged: Vec<Logged>,
    /// Stores of the cores.
    pub stores: Vec<CacheStore>,
    /// Counts of mechanisms that were used, as far as they are counted during the run.
    pub exercised: Exercised,
    /// The amounts that values have reached, as far as they are known during the run.
    pub reached: Reached,
    /// The reason why the run has ended before the programs did.
    pub ended: Option<Exhausted>,
    /// The number of events before the run failed, if it has. Events after it are of meaningless values.
    sound: Option<usize>,
    /// The `order` of the newest write merged with each queued one.
    merged: FxHashMap<u64, u64>,
    begun: FxHashMap<u64, u32>,
    group: Option<u32>,
    /// On-chip changes that have not happened yet, by the step that ends when they have.
    pending: FxHashMap<u64, OnChip>,
    /// The first write that the request under way has brought to the controller.
    presented: Option<u32>,
    /// Write requests that are not yet accepted, by the step with which they leave.
    leaving: FxHashMap<u64, u32>,
}

impl Journal {
    /// The write request that the write numbered `order` was planned for; `None` before the first.
    pub fn request_of(&self, order: u64) -> Option<usize> {
        let next = self
            .handled
            .partition_point(|handled| handled.order <= order);
        next.checked_sub(1)
    }

    /// The line of a hardware log to which the write numbered `order` belongs.
    pub fn logged_by(&self, order: u64) -> Option<&Logged> {
        let next = self.logged.partition_point(|logged| logged.from <= order);
        let last = &self.logged[next.checked_sub(1)?];
        (order < last.until).then_some(last)
    }

    /// The counter under which the write numbered `order` was encrypted, as the design states it.
    pub fn counter_of(&self, order: u64) -> Option<u64> {
        let index = self.sealed.binary_search_by_key(&order, |s| s.order);
        Some(self.sealed[index.ok()?].counter)
    }

    /// The writes that `event` accepts.
    pub fn accepted_by(&self, event: Event) -> &[MediumWrite] {
        match event {
            Event::Ready { from, count } => &self.writes[from as usize..(from + count) as usize],
            _ => &[],
        }
    }

    /// The accepted writes, each with the first position at which it is accepted.
    pub fn accepted(&self) -> impl Iterator<Item = (u64, &MediumWrite)> {
        let events = self.events.iter().zip(1..);
        events.flat_map(|((_, event), at)| self.accepted_by(*event).iter().map(move |w| (at, w)))
    }

    /// The changes of on-chip lines, each with the first position at which it has happened.
    pub fn changed_on_chip(&self) -> impl Iterator<Item = (u64, &OnChip)> {
        let events = self.events.iter().zip(1..);
        events.filter_map(|((_, event), at)| match event {
            Event::OnChip(index) => Some((at, &self.on_chip[*index as usize])),
            _ => None,
        })
    }

    /// The journal of a run that had to end because of `why`.
    pub fn ended_by(mut self: Box<Self>, why: Exhausted) -> Box<Journal> {
        self.events.truncate(self.sound.unwrap_or(usize::MAX));
        self.exercised.count(&ENDED_FULL);
        self.ended = Some(why);
        self
    }

    /// The changes on chip where no time passes, oldest first.
    pub fn changes(&self) -> Vec<&OnChip> {
        let mut changes: Vec<&OnChip> = self.pending.values().collect();
        changes.sort_unstable_by_key(|change| change.write.order);
        changes
    }

    /// The contents of registers where no time passes, oldest first.
    pub fn registers(&self) -> Vec<&MediumWrite> {
        let registers = self.changes().into_iter();
        let registers = registers.filter(|change| change.domain == Domain::Registers);
        registers.map(|change| &change.write).collect()
    }

    /// Forgets requests, writes and encryptions; counts of mechanisms and values stay.
    pub(crate) fn forget(&mut self) {
        self.handled.clear();
        self.logged.clear();
        self.events.clear();
        self.sealed.clear();
        self.pending.clear();
        self.presented = None;
        self.sound = None;
    }
}

impl Observer for Journal {
    fn closely(&self) -> bool {
        true
    }

    fn admitted(&mut self, _now: Time, _number: u32, _request: &Request) {
        self.presented = None;
    }

    fn used(&mut self, mechanism: &'static Mechanism) {
        self.exercised.count(mechanism);
    }

    fn reached(&mut self, value: Value, amount: u64) {
        self.reached.reach(value, amount);
    }

    fn handled(&mut self, handled: Handled) {
        self.presented.get_or_insert(self.handled.len() as u32);
        self.handled.push(handled);
    }

    fn handled_again(&mut self, handled: Handled) {
        self.handled.push(handled);
    }

    fn leaves_with(&mut self, leave: Step) {
        if let Some(first) = self.presented.take() {
            self.leaving.insert(leave.0, first);
            let waiting = self.leaving.len() as u64;
            self.reached.reach(Value::Waiting, waiting);
        }
    }

    fn sealed(&mut self, sealed: Sealed) {
        self.sealed.push(sealed);
    }

    fn logged(&mut self, logged: Logged) {
        self.logged.push(logged);
    }

    fn locked(&mut self, now: Time, line: Logical) {
        self.events.push((now, Event::Locked(line)));
    }

    fn changes(&mut self, step: Step, change: OnChip) {
        self.pending.insert(step.0, change);
    }

    fn open_group(&mut self) {
        self.group = Some(self.writes.len() as u32);
    }

    fn close_group(&mut self, now: Time) {
        let from = self.group.take().expect("a group was open");
        let count = self.writes.len() as u32 - from;
        self.events.push((now, Event::Ready { from, count }));
    }

    fn ready(&mut self, now: Time, write: &MediumWrite) {
        // The array write carries the newest of them, so its number is what a cut is compared by.
        if let Some(into) = write.merged_into {
            self.merged.insert(into, write.order);
        }
        if self.group.is_none() {
            let from = self.writes.len() as u32;
            self.events.push((now, Event::Ready { from, count: 1 }));
        }
        self.writes.push(write.clone());
    }

    fn begun(&mut self, now: Time, write: &MediumWrite) {
        let index = self.array.len() as u32;
        self.begun.insert(write.order, index);
        let order = self.merged.remove(&write.order).unwrap_or(write.order);
        self.array.push(MediumWrite {
            order,
            ..write.clone()
        });
        self.events.push((now, Event::Begun(index)));
    }

    fn done(&mut self, now: Time, order: u64) {
        let index = self.begun.remove(&order).expect("it was begun");
        self.events.push((now, Event::Done(index)));
    }

    fn ended(&mut self, now: Time, step: Step) {
        if let Some(change) = self.pending.remove(&step.0) {
            let index = self.on_chip.len() as u32;
            self.events.push((now, Event::OnChip(index)));
            self.on_chip.push(change);
        } else if let Some(index) = self.leaving.remove(&step.0) {
            self.events.push((now, Event::Accepted(index)));
        }
    }

    fn stored(&mut self, now: Time, stored: &CacheStore) {
        let index = self.stores.len() as u32;
        self.events.push((now, Event::Store(index)));
        self.stores.push(stored.clone());
    }

    fn marked(&mut self, now: Time, core: u32, mark: Mark) {
        self.events.push((now, Event::Mark { core, mark }));
    }

    fn failed(&mut self) {
        // A layer without a place goes on with a harmless value, which must not count as an outcome.
        self.sound.get_or_insert(self.events.len());
    }
}
