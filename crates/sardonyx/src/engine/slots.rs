//! Slots of the queues. A step takes a slot when it is ready, first come first served; slots are never
//! reserved. A group takes all of its slots at one instant or none. A write may instead be merged with
//! the queued write of its line; of a group all members or none, or those that can be, as the medium says.
//! What can be merged may later need a slot, never the other way round: so a group waits in the queues of
//! all its members.

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::Engine;
use super::channel::Slots;
use crate::line::{Place, Tier};
use crate::medium::params::GroupMerging;
use crate::plan::steps::{Action, Critical, State, Step};
use crate::stats::Direction;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotWaiter {
    Single(Step),
    Group(u32),
}

pub(crate) struct Waiting {
    queues: Vec<[VecDeque<SlotWaiter>; 3]>,
    count: usize,
}

impl Waiting {
    pub fn new(channels: usize) -> Waiting {
        Waiting {
            queues: (0..channels).map(|_| Default::default()).collect(),
            count: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline]
    pub fn is_free(&self, queue: (usize, Slots)) -> bool {
        self.front(queue).is_none()
    }

    fn front(&self, (channel, slots): (usize, Slots)) -> Option<SlotWaiter> {
        self.queues[channel][slots as usize].front().copied()
    }

    fn push(&mut self, (channel, slots): (usize, Slots), waiter: SlotWaiter) {
        self.queues[channel][slots as usize].push_back(waiter);
        self.count += 1;
    }

    fn pop(&mut self, (channel, slots): (usize, Slots)) {
        self.queues[channel][slots as usize].pop_front();
        self.count -= 1;
    }
}

impl Engine {
    pub(super) fn write_slots(&self, accept: Step) -> Slots {
        let record = self.plan.steps.get(accept);
        let has_queue = || {
            let medium = &self.media[Tier::of(Place(record.place)) as usize];
            medium.params.queues.counter_writes > 0
        };
        match record.counter && has_queue() {
            true => Slots::CounterWrite,
            false => Slots::Write,
        }
    }

    pub(super) fn queue_of(&self, step: Step, slots: Slots) -> (usize, Slots) {
        let place = Place(self.plan.steps.get(step).place);
        let medium = &self.media[Tier::of(place) as usize];
        let place = Place(place.in_medium());
        (medium.channels.start + medium.decoder.channel(place), slots)
    }

    /// Takes a slot now, or waits behind the steps that wait already.
    pub(super) fn want_slot(&mut self, step: Step, slots: Slots) {
        let queue = self.queue_of(step, slots);
        if self.waiting.is_free(queue) && self.channels[queue.0].take_slots(slots, 1) {
            self.slot_taken(step, queue);
        } else {
            self.waiting.push(queue, SlotWaiter::Single(step));
        }
    }

    fn slot_taken(&mut self, step: Step, (channel, slots): (usize, Slots)) {
        self.accepted += 1;
        let (now, sequence) = (self.now, self.accepted);
        if slots == Slots::Read {
            self.plan.steps.get_mut(step).queued = now;
            self.enqueue(step, (channel, slots), sequence);
            return;
        }
        if self.plan.observers.closely() {
            self.note_ready(step, None);
        }
        let store = Step(step.0 + 1);
        let group = self.plan.steps.get(step).group;
        let record = self.plan.steps.get_mut(store);
        (record.queued, record.sequence) = (now, sequence);
        (record.group, record.counter) = (group, slots == Slots::CounterWrite);
        self.end(step);
        self.release_store(store);
    }

    /// Frees the store step of an accepted write from waiting for its acceptance.
    fn release_store(&mut self, store: Step) {
        let accept = store.accepted();
        let purpose = self.plan.steps.get(accept).purpose;
        self.plan.steps.get_mut(store).critical = Critical {
            step: accept,
            purpose,
        };
        if self.plan.steps.release(store) {
            self.ready.push(store);
        }
    }

    /// Gives a slot that has become free to the waiting steps and groups, in their order.
    pub(super) fn slot_is_free(&mut self, channel: usize, slots: Slots) {
        let queue = (channel, slots);
        while let Some(waiter) = self.waiting.front(queue) {
            match waiter {
                SlotWaiter::Single(step) => {
                    if !self.channels[channel].take_slots(slots, 1) {
                        return;
                    }
                    self.waiting.pop(queue);
                    self.slot_taken(step, queue);
                }
                SlotWaiter::Group(group) => {
                    if !self.has_room(group, queue) {
                        return;
                    }
                    // A group that is first here but not in another member's queue would overtake somebody there.
                    let queues = self.queues_of(group);
                    let first = |q: &(usize, Slots)| self.waiting.front(*q) == Some(waiter);
                    if !queues.iter().all(first) || !self.take_group(group) {
                        return;
                    }
                    for queue in &queues {
                        self.waiting.pop(*queue);
                    }
                    self.group_taken(group);
                    // In its other queues, slots may be free for those behind the group.
                    for other in queues.into_iter().filter(|other| *other != queue) {
                        self.slot_is_free(other.0, other.1);
                    }
                }
            }
        }
    }

    /// Notes that a member of a group is ready. The last member makes the group ask for its slots.
    pub(super) fn group_member_ready(&mut self, group: u32) {
        let members = &self.plan.groups[group as usize - 1];
        let ready = |member: &Step| self.plan.steps.get(*member).state == State::Started;
        if !members.iter().all(ready) || self.coalesce_group(group) {
            return;
        }
        let queues = self.queues_of(group);
        let free = queues.iter().all(|queue| self.waiting.is_free(*queue));
        if free && self.take_group(group) {
            self.group_taken(group);
        } else {
            for queue in queues {
                self.waiting.push(queue, SlotWaiter::Group(group));
            }
        }
    }

    fn queues_of(&self, group: u32) -> SmallVec<[(usize, Slots); 4]> {
        let mut queues = SmallVec::new();
        for member in &self.plan.groups[group as usize - 1] {
            let queue = self.queue_of(*member, self.write_slots(*member));
            if !queues.contains(&queue) {
                queues.push(queue);
            }
        }
        queues
    }

    fn has_room(&self, group: u32, queue: (usize, Slots)) -> bool {
        let of = |member: &&Step| {
            self.queue_of(**member, self.write_slots(**member)) == queue
                && self.mergeable_alone(**member).is_none()
        };
        let members = &self.plan.groups[group as usize - 1];
        let wanted = members.iter().filter(of).count();
        // Merged members need no slot, so a queue may be full or closed if all of its members are merged.
        wanted == 0 || self.channels[queue.0].has_slots(queue.1, wanted)
    }

    fn take_group(&mut self, group: u32) -> bool {
        let members = &self.plan.groups[group as usize - 1];
        let queues = self.queues_of(group);
        let count = |queue: &(usize, Slots)| {
            let of = |m: &&Step| {
                self.queue_of(**m, self.write_slots(**m)) == *queue
                    && self.mergeable_alone(**m).is_none()
            };
            members.iter().filter(of).count()
        };
        let wanted: SmallVec<[usize; 4]> = queues.iter().map(count).collect();
        let wanted = || queues.iter().zip(&wanted).filter(|(_, count)| **count > 0);
        // SCA, Sec. 5: a pair is ready, and drained by ADR, once both of its entries are in their queues. A slot taken for
        // one alone would let two pairs wait for each other.
        let free = wanted().all(|(queue, count)| self.channels[queue.0].has_slots(queue.1, *count));
        for (queue, count) in wanted().filter(|_| free) {
            self.channels[queue.0].take_slots(queue.1, *count);
        }
        free
    }

    fn group_taken(&mut self, group: u32) {
        self.accept_group(group, |engine, member| {
            match engine.mergeable_alone(member) {
                Some(target) => engine.merge(member, target),
                None => {
                    let queue = engine.queue_of(member, engine.write_slots(member));
                    engine.slot_taken(member, queue);
                }
            }
        });
    }

    /// The queued write that a member of a group can be merged with, whatever becomes of the other members.
    fn mergeable_alone(&self, member: Step) -> Option<Step> {
        match self.params.medium.group_merging {
            GroupMerging::All if self.plan.steps.get(member).merges => self.mergeable(member),
            GroupMerging::All => None,
            GroupMerging::Member => self.mergeable(member),
        }
    }

    fn accept_group(&mut self, group: u32, accept: impl Fn(&mut Engine, Step)) {
        let first = self.plan.groups[group as usize - 1].first();
        let is_lost = first.is_some_and(|step| Place(self.plan.steps.get(*step).place).is_lost());
        let told = self.plan.observers.closely() && !is_lost;
        if told {
            self.plan.observers.tell(|one| one.open_group());
        }
        for member in std::mem::take(&mut self.plan.groups[group as usize - 1]) {
            accept(self, member);
        }
        let now = self.now();
        if told {
            self.plan.observers.tell(|one| one.close_group(now));
        }
    }

    /// Merges a whole group with the queued writes of its lines if every member can be merged; otherwise merges none.
    fn coalesce_group(&mut self, group: u32) -> bool {
        let members = &self.plan.groups[group as usize - 1];
        if !members.iter().all(|m| self.mergeable(*m).is_some()) {
            return false;
        }
        self.accept_group(group, |engine, member| {
            let target = engine.mergeable(member).expect("each has its own line");
            engine.merge(member, target);
        });
        true
    }

    /// Merges a write that is in no group with the queued write of its line, if there is one. The queued write must be
    /// in no group either, unless groups are merged by members.
    pub(super) fn coalesce(&mut self, accept: Step) -> bool {
        let any = self.params.medium.group_merging == GroupMerging::Member;
        match self.mergeable(accept) {
            Some(target) if any || self.plan.steps.get(target).group == 0 => {
                self.merge(accept, target);
                true
            }
            _ => false,
        }
    }

    /// The store step of the queued write of the same line, if it holds its slot and has not left its queue. If the
    /// medium says so, the write that the line's last write was merged with counts too.
    fn mergeable(&self, accept: Step) -> Option<Step> {
        let before = Step(self.plan.steps.get(accept).sequence);
        if !self.params.medium.queues.coalescing || before == Step::PAST {
            return None;
        }
        // The store step of a write has the number after its accept step.
        let mut target = Step(before.0 + 1);
        while !self.plan.steps.is_finished(target)
            && self.plan.steps.get(target).action == Action::Coalesced
            && self.params.medium.remerging
        {
            target = Step(self.plan.steps.get(target).sequence);
        }
        if self.plan.steps.is_finished(target) {
            return None;
        }
        let old = self.plan.steps.get(target);
        // A store gets its number with its slot, and loses it when it is selected: then its data are on their way.
        (old.action == Action::Store && old.sequence != 0).then_some(target)
    }

    fn merge(&mut self, accept: Step, target: Step) {
        if self.plan.observers.closely() {
            self.note_ready(accept, Some(target.accepted()));
        }
        let (record, old) = (*self.plan.steps.get(accept), *self.plan.steps.get(target));
        let (from, to) = (record.link as u32, old.link as u32);
        let new = *self.plan.contents.overlay.payload(from);
        let kept = self.plan.contents.overlay.payload_mut(to);
        kept.merge(&new);
        let flight = self.plan.contents.overlay.flight(record.flight);
        // Later reads of the line find the merged bytes in the queued write.
        if flight.payload == from {
            flight.payload = to;
        }
        self.plan.contents.overlay.drop_payload(from);
        let medium = &mut self.media[Tier::of(Place(record.place)) as usize];
        medium.service[Direction::Write as usize].short_cuts += 1;
        let store = Step(accept.0 + 1);
        let merged = self.plan.steps.get_mut(store);
        (merged.action, merged.sequence) = (Action::Coalesced, target.0);
        self.end(accept);
        self.release_store(store);
    }
}
