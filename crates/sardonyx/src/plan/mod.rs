//! A plan: what one request makes the hardware do, as a small graph of timed steps.
//!
//! A design handles a request at once, on real bytes, and calls these methods while it does so.
//! Every value that they give is a *timed value*: the bytes, and the step after which they exist.
//! Kept in a table it keeps its step, so a later request that finds it there waits as hardware
//! would. The engine times the graph afterwards; a plan needs no clock.

pub mod command;
pub(crate) mod contents;
pub(crate) mod delays;
pub mod guard;
pub mod journal;
pub mod observe;
pub mod orders;
pub(crate) mod overlay;
pub mod performed;
pub mod request;
pub mod script;
pub mod start_gap;
pub mod steps;
pub mod storey;
pub mod untimed;

use std::cell::RefCell;
use std::ops::{Deref, DerefMut, Range};

use smallvec::SmallVec;

use crate::exhausted::Exhausted;
use crate::line::{Class, LINE_BYTES, Line, Logical, Persist, Place, ZERO_LINE};
use crate::mechanisms::{Mechanism, Value};
use crate::medium::image::{Content, Image};
use crate::medium::layout::Region;
use crate::medium::link::Message;
use crate::medium::params::Unit;
use crate::stats::{Cause, Purpose};
use crate::units::Time;
use contents::PlanContents;
use delays::Delays;
use guard::Guard;
use journal::{Domain, Handled, Logged, MediumWrite, OnChip, Sealed};
use observe::Observers;
use orders::{Choice, Orders};
use overlay::{Moved, Payload};
use rustc_hash::FxHashMap;
use script::Scripting;
use start_gap::StartGap;
pub use steps::Step;
use steps::{Action, Steps};

/// A value and the step after which it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At<T> {
    /// The value, known to the simulator at once.
    pub value: T,
    /// When hardware would have it.
    pub at: Step,
}

impl<T> At<T> {
    /// A value that exists after `at`.
    pub fn new(value: T, at: Step) -> At<T> {
        At { value, at }
    }

    /// A value that has always been there.
    pub fn past(value: T) -> At<T> {
        At::new(value, Step::PAST)
    }
}

/// The two moments of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The step after which the write is in the persistence domain: a power cut leaves it.
    pub accepted: Step,
    /// The step after which the write is in the medium's array.
    pub done: Step,
}

impl Stored {
    /// Both writes: accepted and done when this one and `other` are.
    pub fn and(self, other: Stored, plan: &mut Plan) -> Stored {
        Stored {
            accepted: plan.both(self.accepted, other.accepted),
            done: plan.both(self.done, other.done),
        }
    }

    /// Nothing had to be written: both moments are `step`.
    pub fn at(step: Step) -> Stored {
        Stored {
            accepted: step,
            done: step,
        }
    }
}

/// Which queue a write waits in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queue {
    /// The data write queue.
    #[default]
    Data,
    /// The counter write queue, if the medium has one.
    Counter,
}

/// A step that does not exist yet, for others to depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise(Step);

impl Promise {
    /// The step that will be finished when the promise is kept.
    pub fn step(self) -> Step {
        self.0
    }
}

/// A timer that a layer has asked for; no two are the same, and a later one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timer(u64);

/// How writes are held back, for the crash explorer.
#[derive(Clone, Debug)]
pub enum Holding {
    /// Some of them for a while, drawn from this seed, or as a script says.
    Drawn(u64, Scripting),
    /// All of them, until nothing else can happen: then one goes, of those that can, the one with the number
    /// that is next here; when there is none, the first. See [`orders::Choice`].
    Chosen(Vec<u16>),
}

#[derive(Default)]
pub(crate) enum Schedule {
    /// As soon as there is room.
    #[default]
    Prompt,
    /// Some later, as drawn.
    Drawn(Box<Delays>),
    /// One after the other, as chosen.
    Chosen(Box<Orders>),
}

/// The accept steps of writes that take their slots at one instant.
pub(crate) type Group = SmallVec<[Step; 4]>;

/// The graph of one request, being written, and all that requests before it have left: what is in
/// flight, over the medium's bytes.
pub struct Plan {
    pub(crate) steps: Steps,
    pub(crate) contents: PlanContents,
    pub(crate) groups: Vec<Group>,
    /// The timers asked for since the engine last took them.
    pub(crate) timers: Vec<(Time, Timer)>,
    next_timer: u64,
    pub(crate) failure: Option<Exhausted>,
    pub(crate) observers: Observers,
    /// Which writes are held back: none but for the crash explorer.
    pub(crate) schedule: Schedule,
    pub(crate) now: Time,
    purpose: Purpose,
    /// Stands between the layers and the medium; away while it is asked itself.
    pub(crate) guard: Option<Box<dyn Guard>>,
    /// Says where a place lies in the array, if lines move; lent like the guard, which stands above it.
    pub(crate) levelling: Option<Box<StartGap>>,
    /// Array writes of each place, moves apart; only where lines move.
    pub(crate) worn: Option<FxHashMap<u64, u64>>,
    pub(crate) refused: Vec<Place>,
    /// Lines that were looked at on behalf of integrity, if somebody counts what its recovery does.
    pub(crate) looked: Option<RefCell<Vec<Place>>>,
    /// What lines were before each write that took effect at once, if that is to be undone.
    pub(crate) undo: Option<Vec<(Place, Option<Content>)>>,
}

impl Plan {
    /// Nothing planned yet, over `image`; `forwarding` lets a read have a queued write's bytes.
    pub(crate) fn new(image: Image, forwarding: bool) -> Plan {
        Plan {
            steps: Steps::new(),
            contents: PlanContents::new(image, forwarding),
            groups: Vec::new(),
            timers: Vec::new(),
            next_timer: 0,
            failure: None,
            observers: Observers::default(),
            schedule: Schedule::Prompt,
            now: Time::ZERO,
            purpose: Purpose::new(Cause::Data),
            guard: None,
            levelling: None,
            worn: None,
            refused: Vec::new(),
            looked: None,
            undo: None,
        }
    }

    /// A plan over an empty medium that stands in for one that is lent.
    pub fn idle() -> Plan {
        Plan::new(Image::new(), true)
    }

    /// When the request was admitted.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The same plan, with what follows done because of `cause` (until the guard is dropped).
    pub fn because(&mut self, cause: Cause) -> Because<'_> {
        let before = self.enter(cause);
        Because { plan: self, before }
    }

    /// What follows is done because of `cause`, until [`Plan::leave`] is given what this gives.
    pub fn enter(&mut self, cause: Cause) -> Purpose {
        let before = self.purpose;
        self.purpose = Purpose {
            what: cause,
            whom: before.what,
        };
        // At the top a step serves itself: data is not done for anybody else's sake.
        if before == Purpose::new(Cause::Data) {
            self.purpose.whom = cause;
        }
        before
    }

    /// What follows is done for this purpose.
    pub fn leave(&mut self, before: Purpose) {
        self.purpose = before;
    }

    /// Whether `step` is the past, to keep tables of steps small; no decision may depend on it.
    pub fn is_past(&self, step: Step) -> bool {
        self.steps.is_finished(step)
    }

    /// Uses an on-chip unit after `after`.
    pub fn unit(&mut self, unit: Unit, after: Step) -> Step {
        if self.steps.at_once {
            return Step::PAST;
        }
        let after = [after, Step::PAST, Step::PAST];
        let action = Action::Unit(unit as u8);
        self.steps.create(action, self.purpose, after, false)
    }

    /// The plan's request crosses the link to the memory: all its further steps wait for that.
    pub(crate) fn arrive(&mut self, message: Message) {
        if !self.steps.at_once {
            let none = [Step::PAST; 3];
            let link = Purpose::new(Cause::Link);
            self.steps.arrived = self.steps.create(Action::Cross(message), link, none, false);
        }
    }

    /// What is there after `after` crosses the link back to the processor.
    pub(crate) fn depart(&mut self, message: Message, after: Step) -> Step {
        if self.steps.at_once {
            return Step::PAST;
        }
        let (link, after) = (Purpose::new(Cause::Link), [after, Step::PAST, Step::PAST]);
        self.steps
            .create(Action::Cross(message), link, after, false)
    }

    /// Uses it for what it has been used for, or what is charged to nobody: takes its time, and no energy.
    pub fn unit_again(&mut self, unit: Unit, after: Step) -> Step {
        let step = self.unit(unit, after);
        if step != Step::PAST {
            self.steps.get_mut(step).again = true;
        }
        step
    }

    /// The step that comes next.
    pub fn upcoming(&self) -> Step {
        self.steps.upcoming()
    }

    /// Finished when both are.
    #[inline]
    pub fn both(&mut self, a: Step, b: Step) -> Step {
        if a == b || self.steps.is_finished(b) {
            return a;
        }
        if self.steps.is_finished(a) {
            return b;
        }
        self.join(a, b)
    }

    #[inline(never)]
    fn join(&mut self, a: Step, b: Step) -> Step {
        self.steps
            .create(Action::Join, self.purpose, [a, b, Step::PAST], false)
    }

    /// Reads a line of the medium after `after`; `None` if it has never been written. A read whose
    /// newest writer is not yet accepted waits for that, and is then forwarded.
    pub fn read(&mut self, place: Place, after: Step) -> At<Option<Line>> {
        let got = self.read_bare(self.at(place), after);
        self.past_guard(got, |guard, got, plan| guard.read(place, got, after, plan))
    }

    /// What was read at `place`, whose encryption counter is `counter`, as the guard leaves it.
    pub fn opened(
        &mut self,
        place: Place,
        got: At<Option<Line>>,
        counter: At<u64>,
    ) -> At<Option<Line>> {
        self.past_guard(got, |guard, got, plan| {
            guard.opened(place, got, counter, plan)
        })
    }

    /// What a recovery finds at `place` in a medium at rest; it takes no time.
    #[inline]
    pub fn scan(&mut self, place: Place) -> Option<Line> {
        self.look(place);
        let line = self.contents.newest(self.at(place));
        if self.guard.is_none() {
            return line; // a recovery reads millions of lines
        }
        self.past_guard(At::past(line), |guard, got, plan| {
            guard.read(place, got, Step::PAST, plan)
        })
        .value
    }

    /// The line at `place` is not what was last written there: whoever reads it gets a value that does no
    /// harm, and whoever runs the plan asks what was refused.
    #[cold]
    pub fn refuse(&mut self, place: Place) {
        self.refused.push(place);
    }

    /// `done` as the guard leaves it, if there is one.
    #[inline]
    fn past_guard<T>(&mut self, done: T, ask: impl FnOnce(&mut dyn Guard, T, &mut Plan) -> T) -> T {
        let Some(mut guard) = self.guard.take() else {
            return done;
        };
        let done = ask(&mut *guard, done, self);
        self.guard = Some(guard);
        done
    }

    fn read_bare(&mut self, place: Place, after: Step) -> At<Option<Line>> {
        if self.steps.at_once {
            return At::past(self.contents.newest(place));
        }
        let index = self.contents.overlay.enter(place);
        let flight = self.contents.overlay.flight(index);
        let (writer, readers, newest) = (flight.writer, flight.readers, flight.payload);
        let value = match writer {
            Step::PAST => self.contents.image.read(place),
            _ => {
                let payload = self.contents.overlay.payload(newest);
                (!payload.moved.unknown).then_some(payload.line)
            }
        };
        let order = match self.contents.forwarding {
            true => writer,
            false if writer == Step::PAST => writer,
            false => Step(writer.0 + 1), // no forwarding: the array must have it
        };
        let after = [after, Step::PAST, order];
        let step = self.steps.create(Action::Read, self.purpose, after, false);
        let record = self.steps.get_mut(step);
        (record.place, record.link, record.flight) = (place.0, writer.0, index);
        let readers = match self.steps.is_finished(readers) {
            true => step,
            false => self.both(readers, step),
        };
        self.contents.overlay.flight(index).readers = readers;
        At::new(value, step)
    }

    /// The newest bytes at `place` and nothing done in hardware: for what is known on chip.
    pub fn peek(&self, place: Place) -> Option<Line> {
        self.look(place);
        self.contents.newest(self.at(place))
    }

    /// Counts that the line at `place` is looked at, if that is counted.
    #[inline]
    fn look(&self, place: Place) {
        if let Some(looked) = &self.looked
            && self.purpose.what == Cause::Integrity
        {
            looked.borrow_mut().push(place);
        }
    }

    /// Fetches the line at `place` into the host's caches; no effect on results.
    #[inline]
    pub fn touch_ahead(&self, place: Place) {
        self.contents.touch_ahead(self.at(place));
    }

    /// The newest sideband at `place`, as [`Plan::peek`].
    pub fn peek_sideband(&self, place: Place) -> Option<[u8; 8]> {
        self.contents.newest_sideband(self.at(place))
    }

    /// The newest write of `place` that is still on its way, the past if there is none.
    pub fn under_way(&self, place: Place) -> Stored {
        match (self.contents.overlay.get(self.at(place))).map(|flight| flight.writer) {
            None | Some(Step::PAST) => Stored::at(Step::PAST),
            Some(writer) => Stored {
                accepted: writer,
                done: Step(writer.0 + 1),
            },
        }
    }

    /// The lines of `region` that have been written, in order: what a recovery may look through.
    pub fn written(&self, region: &Region) -> Vec<Place> {
        match &self.levelling {
            None => self.contents.written(region),
            Some(levelling) => self.written_anywhere(levelling, region),
        }
    }

    /// How many lines have a sideband, and the greatest of them as a number.
    pub fn greatest_sideband(&self) -> (u64, u64) {
        self.contents.greatest_sideband()
    }

    /// Writes a line of the medium, not before the bytes exist and `gate` is finished.
    pub fn write(&mut self, place: Place, data: At<&Line>, gate: Step) -> Stored {
        self.write_words(place, data, 0xff, None, gate, Queue::Data)
    }

    /// Writes those 8-byte words of a line whose bit is set in `words`, and with them, atomically,
    /// the 8 bytes beside the line if `sideband` has any.
    pub fn write_words(
        &mut self,
        place: Place,
        data: At<&Line>,
        words: u8,
        sideband: Option<[u8; 8]>,
        gate: Step,
        queue: Queue,
    ) -> Stored {
        let line = match words {
            0xff => *data.value,
            _ => {
                self.expect_held(place);
                self.over_newest(place, data.value, words)
            }
        };
        self.put(place, At::new(&line, data.at), words, sideband, gate, queue)
    }

    /// The write `stored` of `place`, which a promise holds back, brings these bytes beside the line.
    pub fn put_beside(&mut self, place: Place, stored: Stored, beside: [u8; 8]) {
        let at = self.at(place);
        if !self.steps.at_once {
            let payload = self.steps.get(stored.accepted).link as u32;
            self.contents.overlay.payload_mut(payload).sideband = Some(beside);
            return;
        }
        let image = &mut self.contents.image;
        let content = image.content(at);
        let line = content.map_or(ZERO_LINE, |(line, _)| line);
        if let Some(undo) = &mut self.undo {
            undo.push((at, content));
        }
        image.write(at, &line, 0, Some(beside));
    }

    /// Refuses the line at `place`, some words of which stay, if the guard says that it is another.
    fn expect_held(&mut self, place: Place) {
        let Some(guard) = self.guard.take() else {
            return;
        };
        if !guard.holds(place, self) {
            self.refuse(place);
        }
        self.guard = Some(guard);
    }

    /// The same for a line that differs from the newest one at `place` in those words at most: a cache
    /// writes its copy back. Where an attacker changed the line it differs in others, and the copy counts.
    pub fn write_back(
        &mut self,
        place: Place,
        data: At<&Line>,
        words: u8,
        gate: Step,
        queue: Queue,
    ) -> Stored {
        self.put(place, data, words, None, gate, queue)
    }

    /// The newest line at `place` with those words of `line`.
    fn over_newest(&self, place: Place, line: &Line, words: u8) -> Line {
        let newest = self.contents.newest(self.at(place)).unwrap_or(ZERO_LINE);
        merged(newest, line, words)
    }

    fn put(
        &mut self,
        place: Place,
        data: At<&Line>,
        words: u8,
        sideband: Option<[u8; 8]>,
        gate: Step,
        queue: Queue,
    ) -> Stored {
        let gate = self.past_guard(gate, |guard, gate, plan| {
            let held = guard.before_write(place, plan);
            plan.both(gate, held)
        });
        let (at, gate) = match self.levelling {
            None => (place, gate),
            Some(_) => (self.at(place), self.levelled(place, gate)),
        };
        let written = (place, data, sideband, Moved::default());
        let stored = self.put_at(at, written, words, gate, queue);
        self.past_guard(stored, |guard, stored, plan| Stored {
            done: guard.write(place, data, sideband, stored, plan),
            ..stored
        })
    }

    /// Writes to the array's line at `place` what the layers know under another name.
    fn put_at(
        &mut self,
        place: Place,
        (of, data, sideband, moved): (Place, At<&Line>, Option<[u8; 8]>, Moved),
        words: u8,
        gate: Step,
        queue: Queue,
    ) -> Stored {
        if self.steps.at_once {
            let image = &mut self.contents.image;
            if let Some(undo) = &mut self.undo {
                undo.push((place, image.content(place)));
            }
            image.write(place, data.value, words, sideband);
            moved.settle(place, sideband, image);
            if let Some(worn) = &mut self.worn
                && !moved.only
            {
                *worn.entry(of.0).or_default() += 1;
            }
            return Stored::at(Step::PAST);
        }
        let (own, held) = (gate, self.hold_back(place));
        let gate = held.map_or(gate, |promise| self.both(gate, promise.step()));
        self.contents.image.touch_page_ahead(place);
        let index = self.contents.overlay.enter(place);
        let flight = self.contents.overlay.flight(index);
        let (before, readers, older) = (flight.writer, flight.readers, flight.payload);
        // The newest write in flight holds the newest sideband, be it an older write's.
        let older = (before != Step::PAST && !moved.whole)
            .then(|| self.contents.overlay.payload(older))
            .map(|older| (older.sideband, older.moved.whole));
        let (beside, whole) = older.unwrap_or((None, moved.whole));
        let payload = self.contents.overlay.keep(Payload {
            line: *data.value,
            words,
            sideband: sideband.or(beside),
            of,
            moved: Moved { whole, ..moved },
        });
        // Accepted in the order of handling, after the reads handled before: a write that holds a
        // slot waits for nothing that might need one.
        let order = if self.steps.is_finished(readers) {
            before
        } else if self.steps.is_finished(before) {
            readers
        } else {
            let (hazard, after) = (Purpose::new(Cause::Hazard), [before, readers, Step::PAST]);
            self.steps.create(Action::Join, hazard, after, false)
        };
        let flight = self.contents.overlay.flight(index);
        (flight.writer, flight.payload) = (self.steps.upcoming(), payload);
        let after = [data.at, gate, order];
        let accepted = self
            .steps
            .create(Action::Accept, self.purpose, after, false);
        let record = self.steps.get_mut(accepted);
        (record.place, record.link, record.flight) = (place.0, u64::from(payload), index);
        record.counter = queue == Queue::Counter;
        record.sequence = before.0;
        let before_done = match before {
            Step::PAST => Step::PAST,
            writer => Step(writer.0 + 1),
        };
        let after = [Step::PAST, Step::PAST, before_done];
        let done = self.steps.create(Action::Store, self.purpose, after, true);
        let record = self.steps.get_mut(done);
        (record.place, record.link, record.flight) = (place.0, u64::from(payload), index);
        debug_assert_eq!(done.0, accepted.0 + 1);
        if let (Schedule::Chosen(orders), Some(promise)) = (&mut self.schedule, held) {
            let after = [data.at, own, order];
            orders.hold(promise, accepted, after, (place, data.value, words));
        }
        Stored { accepted, done }
    }

    pub(crate) fn hold(&mut self, holding: Holding) {
        self.schedule = match holding {
            Holding::Drawn(seed, scripting) => {
                Schedule::Drawn(Box::new(Delays::new(seed, scripting)))
            }
            Holding::Chosen(chosen) => Schedule::Chosen(Box::new(Orders::new(chosen))),
        };
    }

    /// What the next write has to wait for besides, if it is held back.
    fn hold_back(&mut self, place: Place) -> Option<Promise> {
        match &mut self.schedule {
            Schedule::Prompt => None,
            Schedule::Chosen(_) => Some(self.promise()),
            Schedule::Drawn(delays) => {
                let wait = delays.draw(place)?;
                let (timer, promise) = (self.wake_at(self.now + wait), self.promise());
                if let Schedule::Drawn(delays) = &mut self.schedule {
                    delays.hold(timer, promise);
                }
                Some(promise)
            }
        }
    }

    /// Lets a write go that has been held back until `timer` runs out; whether there was one.
    pub(crate) fn release(&mut self, timer: Timer) -> bool {
        let Schedule::Drawn(delays) = &mut self.schedule else {
            return false;
        };
        let released = delays.release(timer);
        if let Some(promise) = released {
            self.keep(promise, Step::PAST);
        }
        released.is_some()
    }

    /// Lets the writes go that are chosen to be next, where they are chosen; whether there were any.
    pub(crate) fn release_chosen(&mut self) -> bool {
        let Schedule::Chosen(orders) = &mut self.schedule else {
            return false;
        };
        let journal = self.observers.find().expect("who chooses keeps a journal");
        let going = orders.choose(&self.steps, &self.groups, journal);
        for promise in &going {
            self.keep(*promise, Step::PAST);
        }
        !going.is_empty()
    }

    /// The choices that were made, where they were.
    pub(crate) fn take_choices(&mut self) -> Vec<Choice> {
        match std::mem::take(&mut self.schedule) {
            Schedule::Chosen(orders) => orders.into_made(),
            Schedule::Prompt | Schedule::Drawn(_) => Vec::new(),
        }
    }

    /// Whether somebody has to know of single writes.
    pub fn is_observed(&self) -> bool {
        self.observers.closely()
    }

    /// For observers: `mechanism` has been used once more.
    pub fn exercise(&mut self, mechanism: &'static Mechanism) {
        self.observers.tell(|one| one.used(mechanism));
    }

    /// For observers: `value` has been `amount`.
    pub fn reach(&mut self, value: Value, amount: u64) {
        self.observers.tell(|one| one.reached(value, amount));
    }

    /// Makes writes of this plan one group: all their slots at one instant or none. A write that is in a
    /// group already brings that group along, so whoever writes below another joins its group.
    pub fn group(&mut self, writes: &[Stored]) {
        if self.steps.at_once {
            return;
        }
        let mut members = Group::new();
        for stored in writes {
            match self.steps.get_mut(stored.accepted).group {
                0 => members.push(stored.accepted),
                group => members.extend(std::mem::take(&mut self.groups[group as usize - 1])),
            }
        }
        let index = match self.groups.iter().position(Group::is_empty) {
            Some(free) => free,
            None => {
                self.groups.push(Group::new());
                self.groups.len() - 1
            }
        };
        for member in &members {
            self.steps.get_mut(*member).group = index as u32 + 1;
        }
        self.groups[index] = members;
    }

    /// The group that a write is in, by a number that no other group has meanwhile; 0 if it is in none.
    pub fn group_of(&self, stored: Stored) -> u32 {
        match self.steps.at_once || stored.accepted == Step::PAST {
            true => 0,
            false => self.steps.get(stored.accepted).group,
        }
    }

    /// `stored` is merged with the queued write of its line, if there is one when its group is accepted, whatever
    /// becomes of the others of the group.
    pub fn merges(&mut self, stored: Stored) {
        if !self.steps.at_once {
            self.steps.get_mut(stored.accepted).merges = true;
        }
    }

    /// For observers: the controller is asked to write `data` to `line`.
    pub fn handled(&mut self, line: Logical, data: &Line, class: Class, persist: Persist) {
        let order = self.steps.upcoming().0;
        self.observers.tell(|one| {
            one.handled(Handled {
                line,
                data: *data,
                class,
                persist,
                order,
            });
        });
    }

    /// For observers: what was planned from step `from` on wrote `plain` to a hardware log.
    pub fn logged(&mut self, from: Step, plain: &Line) {
        let (from, until, data) = (from.0, self.steps.upcoming().0, *plain);
        self.observers
            .tell(|one| one.logged(Logged { from, until, data }));
    }

    /// For the guard and observers: `stored` is encrypted under `counter`; `paired` is the counter's own write if
    /// the two are one group.
    pub fn sealed(&mut self, stored: Stored, place: Place, counter: u64, paired: Option<Stored>) {
        if let Some(guard) = &mut self.guard {
            guard.sealed(place, counter);
        }
        let sealed = Sealed {
            order: stored.accepted.0,
            place,
            counter,
            paired_with: paired.map(|counter| counter.accepted.0),
        };
        self.observers.tell(|one| one.sealed(sealed));
    }

    /// For observers: the bytes `bytes` of an on-chip copy of the line at `place` are those of `line`,
    /// and a platform that drains the copy's `domain` may do so after `ripe`.
    pub fn on_chip(
        &mut self,
        place: Place,
        line: &Line,
        bytes: Range<usize>,
        ripe: Step,
        domain: Domain,
    ) {
        self.change_on_chip(place, line, bytes, ripe, (domain, &[]));
    }

    /// For observers: reserve power leaves a copy of `line` where it is, as memory must not have it yet.
    pub fn lock(&mut self, line: Logical) {
        let now = self.now;
        self.observers.tell(|one| one.locked(now, line));
    }

    /// For observers: the registers whose place is `place` have the bytes `line` after `ripe`, and the lines
    /// `unlocked` are locked no more. What relies on that waits for the step that this gives, which takes no
    /// time.
    pub fn registers(
        &mut self,
        place: Place,
        line: &Line,
        ripe: Step,
        unlocked: &[Logical],
    ) -> Step {
        self.change_on_chip(
            place,
            line,
            0..LINE_BYTES,
            ripe,
            (Domain::Registers, unlocked),
        )
    }

    fn change_on_chip(
        &mut self,
        place: Place,
        line: &Line,
        bytes: Range<usize>,
        ripe: Step,
        (domain, unlocked): (Domain, &[Logical]),
    ) -> Step {
        if !self.observers.closely() {
            return ripe;
        }
        let after = [ripe, Step::PAST, Step::PAST];
        let step = self.steps.create(Action::Join, self.purpose, after, false);
        let write = MediumWrite {
            order: step.0,
            place,
            at: place,
            moved: Moved::default(),
            line: *line,
            words: (bytes.start / 8..=(bytes.end - 1) / 8).fold(0, |all, word| all | 1 << word),
            sideband: None,
            merged_into: None,
        };
        let change = OnChip {
            domain,
            write,
            bytes: bytes.fold(0, |all, byte| all | 1 << byte),
            unlocked: unlocked.to_vec(),
        };
        self.observers.tell(|one| one.changes(step, change.clone()));
        step
    }

    /// A step that others may depend on before it is known what it will be.
    pub fn promise(&mut self) -> Promise {
        if self.steps.at_once {
            return Promise(Step::PAST);
        }
        let none = [Step::PAST; 3];
        Promise(self.steps.create(Action::Join, self.purpose, none, true))
    }

    /// The promised step is `step`.
    pub fn keep(&mut self, promise: Promise, step: Step) {
        if self.steps.at_once {
            return;
        }
        self.steps.depend_more(promise.0, step, 0);
        if self.steps.release(promise.0) {
            self.steps.fresh.push(promise.0);
        }
    }

    /// Has the controller woken at `time`: the layer that keeps the timer will know it.
    pub fn wake_at(&mut self, time: Time) -> Timer {
        let timer = Timer(self.next_timer);
        self.next_timer += 1;
        self.timers.push((time, timer));
        timer
    }

    /// The run cannot go on, and ends soon; the first reason counts. Whoever says so goes on with a
    /// value that does no harm until then.
    #[cold]
    pub fn fail(&mut self, why: Exhausted) {
        self.failure.get_or_insert(why);
        self.observers.tell(|observer| observer.failed());
    }
}

/// Takes `words` of `new` over `old`.
pub fn merged(old: Line, new: &Line, words: u8) -> Line {
    let mut line = old;
    for word in (0..8).filter(|word| words >> word & 1 == 1) {
        line[word * 8..word * 8 + 8].copy_from_slice(&new[word * 8..word * 8 + 8]);
    }
    line
}

/// A plan with another cause; dropping it restores the one before.
pub struct Because<'p> {
    plan: &'p mut Plan,
    before: Purpose,
}

impl Deref for Because<'_> {
    type Target = Plan;
    fn deref(&self) -> &Plan {
        self.plan
    }
}

impl DerefMut for Because<'_> {
    fn deref_mut(&mut self) -> &mut Plan {
        self.plan
    }
}

impl Drop for Because<'_> {
    fn drop(&mut self) {
        self.plan.purpose = self.before;
    }
}
