//! The scoreboard: a ring of step records with inline dependencies. A plan creates a step; the step is
//! ready when all that it depends on is finished; then the engine times it.
//!
//! The ring's base follows the oldest step that is unfinished or belongs to an unanswered request. Every
//! step before the base is finished.

use std::cell::Cell;

use std::hint::select_unpredictable;

use crate::medium::link::Message;
use crate::stats::{Cause, Purpose};

/// A step: its number in the one sequence of all steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step(pub(crate) u64);

impl Step {
    /// A step that is always finished.
    pub const PAST: Step = Step(0);

    /// The step's number in the one sequence of all steps.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The step at which this store's write was accepted: the one before.
    pub fn accepted(self) -> Step {
        Step(self.0 - 1)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Action {
    /// The step does nothing, and is finished when all that it depends on is.
    #[default]
    Join,
    Unit(u8),
    Cross(Message),
    /// The step reads a line from the medium, or from its queued write if that is not done.
    Read,
    /// The step takes a slot of a write queue: the write is then in the persistence domain.
    Accept,
    Store,
    /// The write was coalesced with an earlier one, and is done when that is.
    Coalesced,
    /// The step only carries out its [`Notify`], for a request whose own steps cannot.
    Notify,
}

/// The effects of a step's end on the request in its `request`, a set of bits.
pub(crate) struct Notify;

impl Notify {
    /// The request is answered: its latency ends.
    pub const ANSWER: u8 = 1;
    /// The request leaves the ingress, which then has room for another.
    pub const LEAVE: u8 = 2;
    /// The request leaves the ingress, and its core is told that it is accepted.
    pub const ACCEPTANCE: u8 = 4;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Waiting,
    Started,
    Finished,
}

/// The dependency that finished last, and the purpose that the wait for it is booked under.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Critical {
    pub step: Step,
    pub purpose: Purpose,
}

pub(crate) const DEPENDENCIES: usize = 3;
/// The dependency slot for the order of a line's accesses. A wait for it is booked under `hazard`.
pub(crate) const HAZARD: usize = 2;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StepRecord {
    pub action: Action,
    pub state: State,
    pub pending: u8,
    pub counter: bool,
    /// Whether the step uses a unit a further time for the same line.
    pub again: bool,
    /// Whether the write is merged with the queued write of its line whatever becomes of its group's other writes.
    pub merges: bool,
    pub purpose: Purpose,
    /// The times at which the step was ready and began, in picoseconds.
    pub ready: u64,
    pub begun: u64,
    pub critical: Critical,
    /// The time at which a medium access entered its queue, in picoseconds; 0 before that.
    pub queued: u64,
    /// For a store in its queue its place in the order of acceptance, else 0; or the store that it was merged with. For an
    /// accept step the earlier write of the line.
    pub sequence: u64,
    /// The first step that waits for this one, as step << 2 | dependency slot; 0 for none.
    waiters: u64,
    next: [u64; DEPENDENCIES],
    /// The line of a medium access, and the overlay's number for it.
    pub place: u64,
    pub flight: u32,
    /// The payload of a write, or the writer that a read depends on.
    pub link: u64,
    /// The effects of the step's end ([`Notify`]), and the request that they are on, an index into the table of
    /// requests.
    pub request: u32,
    pub notify: u8,
    /// Whether this is the first step of an unanswered request. The booking of its latency will read the steps from
    /// here on.
    pub kept: bool,
    /// The group of an accept step, plus one; 0 for none.
    pub group: u32,
}

pub(crate) struct Steps {
    ring: Vec<StepRecord>,
    base: u64,
    next: u64,
    /// Steps created with nothing to wait for.
    pub fresh: Vec<Step>,
    pub at_once: bool,
    /// Whether steps ever finish.
    pub timed: bool,
    /// The step that all steps of the present plan wait for, because its request has to cross the link first; the past
    /// if there is no link.
    pub arrived: Step,
}

thread_local! {
    /// The ring of the last steps that this thread has given up. A crash run makes plans by the thousand, and a ring
    /// that has grown is so large that the allocator would take its pages from the system each time.
    static SPARE: Cell<Vec<StepRecord>> = const { Cell::new(Vec::new()) };
}

/// Steps of a ring that is kept for reuse, at most: 10 MB.
const MOST_SPARE: usize = 1 << 16;

impl Drop for Steps {
    fn drop(&mut self) {
        let ring = std::mem::take(&mut self.ring);
        if ring.len() <= MOST_SPARE {
            // None is left while the thread ends.
            let _ = SPARE.try_with(|spare| spare.set(ring));
        }
    }
}

impl Steps {
    pub fn new() -> Steps {
        let spare = SPARE.take();
        Steps {
            ring: match spare.is_empty() {
                true => vec![StepRecord::default(); 1 << 10],
                false => spare,
            },
            base: 1,
            next: 1,
            fresh: Vec::new(),
            at_once: false,
            timed: true,
            arrived: Step::PAST,
        }
    }

    #[inline]
    pub fn get(&self, step: Step) -> &StepRecord {
        &self.ring[step.0 as usize & (self.ring.len() - 1)]
    }

    #[inline]
    pub fn get_mut(&mut self, step: Step) -> &mut StepRecord {
        let mask = self.ring.len() - 1;
        &mut self.ring[step.0 as usize & mask]
    }

    #[inline]
    pub fn upcoming(&self) -> Step {
        Step(self.next)
    }

    #[inline]
    pub fn is_finished(&self, step: Step) -> bool {
        step.0 < self.base || self.get(step).state == State::Finished
    }

    /// Creates a step. If `held`, it waits for [`Steps::release`] as well as for its dependencies. Most dependencies
    /// are the past, which is known at the call, so the function is inlined there.
    #[inline(always)]
    pub fn create(
        &mut self,
        action: Action,
        purpose: Purpose,
        after: [Step; DEPENDENCIES],
        held: bool,
    ) -> Step {
        // The dependencies go on as they are where there is no link: a copy of what was just stored stalls.
        if self.arrived == Step::PAST || held {
            return self.add(action, purpose, &after, held);
        }
        let after = self.not_before(self.arrived, after, purpose);
        self.add(action, purpose, &after, held)
    }

    #[inline(always)]
    fn add(
        &mut self,
        action: Action,
        purpose: Purpose,
        after: &[Step; DEPENDENCIES],
        held: bool,
    ) -> Step {
        if self.next - self.base == self.ring.len() as u64 {
            self.make_room();
        }
        let step = Step(self.next);
        self.next += 1;
        let mut pending = u8::from(held);
        let mut next = [0; DEPENDENCIES];
        for (slot, &on) in after.iter().enumerate() {
            if !self.is_finished(on) {
                next[slot] = self.wait_for(on, step, slot);
                pending += 1;
            }
        }
        *self.get_mut(step) = StepRecord {
            action,
            purpose,
            pending,
            next,
            ..StepRecord::default()
        };
        if pending == 0 {
            self.fresh.push(step);
        }
        step
    }

    /// Makes a step wait for the arrival of its plan's request too, unless one of its dependencies is a step of the
    /// plan that waits itself.
    #[cold]
    fn not_before(
        &mut self,
        arrived: Step,
        mut after: [Step; DEPENDENCIES],
        purpose: Purpose,
    ) -> [Step; DEPENDENCIES] {
        let waits = |on: &Step| *on >= arrived && !self.is_finished(*on);
        if self.is_finished(arrived) || after.iter().any(waits) {
            return after;
        }
        match (0..HAZARD).find(|&slot| self.is_finished(after[slot])) {
            Some(slot) => after[slot] = arrived,
            None => {
                let both = [after[0], arrived, Step::PAST];
                after[0] = self.create(Action::Join, purpose, both, false);
            }
        }
        after
    }

    /// Puts dependency `slot` of `step` first among those that wait for `on`, which is not finished. Returns the
    /// previous first.
    #[inline]
    fn wait_for(&mut self, on: Step, step: Step, slot: usize) -> u64 {
        let waiter = step.0 << 2 | slot as u64;
        std::mem::replace(&mut self.get_mut(on).waiters, waiter)
    }

    /// Adds a dependency to a held step, by a free slot. Returns false if `on` is finished.
    pub fn depend_more(&mut self, step: Step, on: Step, slot: usize) -> bool {
        assert!(
            self.get(step).pending > 0 && self.get(step).next[slot] == 0,
            "a step takes dependencies only while it is held"
        );
        if self.is_finished(on) {
            return false;
        }
        let next = self.wait_for(on, step, slot);
        let record = self.get_mut(step);
        record.next[slot] = next;
        record.pending += 1;
        true
    }

    /// Releases a held step. Returns whether it is ready now.
    pub fn release(&mut self, step: Step) -> bool {
        let record = self.get_mut(step);
        record.pending -= 1;
        record.pending == 0
    }

    /// Finishes `step` and appends to `ready` the steps that waited for nothing else.
    #[inline]
    pub fn finish(&mut self, step: Step, ready: &mut Vec<Step>) {
        let record = self.get_mut(step);
        debug_assert_ne!(record.state, State::Finished);
        record.state = State::Finished;
        let purpose = record.purpose;
        let mut link = std::mem::take(&mut record.waiters);
        while link != 0 {
            let (waiter, slot) = (Step(link >> 2), (link & 3) as usize);
            let record = self.get_mut(waiter);
            link = std::mem::take(&mut record.next[slot]);
            record.pending -= 1;
            if record.pending == 0 {
                let hazard = Purpose::new(Cause::Hazard);
                let ordered = (slot == HAZARD) & (record.action != Action::Coalesced);
                let ordered = ordered | (record.purpose == hazard);
                let purpose = select_unpredictable(ordered, hazard, purpose);
                record.critical = Critical { step, purpose };
                ready.push(waiter);
            }
        }
    }

    /// Takes every step for finished, for plans without a clock.
    pub fn forget(&mut self) {
        self.base = self.next;
        self.fresh.clear();
    }

    pub fn unfinished(&self) -> impl Iterator<Item = (Step, &StepRecord)> {
        self.since(self.base)
            .filter(|(_, record)| record.state != State::Finished)
    }

    pub fn waiters(&self, step: Step) -> Vec<Step> {
        let (mut waiters, mut link) = (Vec::new(), self.get(step).waiters);
        while link != 0 {
            let (waiter, slot) = (Step(link >> 2), (link & 3) as usize);
            waiters.push(waiter);
            link = self.get(waiter).next[slot];
        }
        waiters
    }

    pub fn since(&self, from: u64) -> impl Iterator<Item = (Step, &StepRecord)> {
        let steps = (from.max(self.base)..self.next).map(Step);
        steps.map(|step| (step, self.get(step)))
    }

    #[cold]
    fn make_room(&mut self) {
        while self.base < self.next {
            let oldest = self.get(Step(self.base));
            if oldest.state != State::Finished || oldest.kept {
                break;
            }
            self.base += 1;
        }
        let len = self.ring.len() as u64;
        if self.next - self.base < len * 3 / 4 {
            return;
        }
        let mut bigger = vec![StepRecord::default(); len as usize * 2];
        for id in self.base..self.next {
            bigger[id as usize & (len as usize * 2 - 1)] = *self.get(Step(id));
        }
        self.ring = bigger;
    }
}
