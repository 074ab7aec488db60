//! The life of a step: it starts when it is ready, waits in a unit or a queue, and ends, which lets other
//! steps start. This is the timed side of the engine; `mod.rs` has its interface.

use super::channel::{Acted, NEVER, Slots, Transaction, Turned};
use super::{Acceptance, Engine};
use crate::line::{Place, Tier, ZERO_LINE};
use crate::medium::cells::GROUP_INVERTED;
use crate::medium::params::{FORWARD, Unit};
use crate::medium::pausing::{LAST_INTERRUPTION, WRITE_INTERRUPTED};
use crate::plan::command::CommandKind;
use crate::plan::journal::MediumWrite;
use crate::plan::performed::{Performed, Work};
use crate::plan::steps::{Action, Critical, Notify, State, Step};
use crate::stats::{Direction, Purpose};
use crate::units::{Energy, Time};

impl Engine {
    pub(super) fn start_fresh(&mut self) {
        // Steps are pushed one by one, because `ready` is a stack and fresh steps start in the order of their creation.
        for at in 0..self.plan.steps.fresh.len() {
            self.ready.push(self.plan.steps.fresh[at]);
            self.start_ready();
        }
        self.plan.steps.fresh.clear();
    }

    #[inline]
    pub(super) fn finish(&mut self, step: Step) {
        self.end_here(step);
        if !self.ready.is_empty() {
            self.start_ready();
        }
    }

    #[inline(never)]
    pub(super) fn start_ready(&mut self) {
        while let Some(step) = self.ready.pop() {
            self.start(step);
        }
    }

    /// Finishes one step. Steps that become ready are left in `ready`.
    pub(super) fn end(&mut self, step: Step) {
        self.end_here(step);
    }

    #[inline(always)]
    fn end_here(&mut self, step: Step) {
        if self.plan.observers.of_ends() {
            self.note_end(step, self.plan.steps.get(step).action);
        }
        let record = self.plan.steps.get(step);
        let (place, flight, notify) = (Place(record.place), record.flight, record.notify);
        match record.action {
            Action::Read => self.plan.contents.overlay.leave(flight, None),
            Action::Store => {
                let index = record.link as u32;
                let contents = &mut self.plan.contents;
                let payload = contents.overlay.payload(index);
                payload.store(place, &mut contents.image);
                // Lifetimes need the writes that layers ask for; moves by wear levelling are counted apart.
                if let Some(worn) = &mut self.plan.worn
                    && !payload.moved.only
                {
                    *worn.entry(payload.of.0).or_default() += 1;
                }
                contents.overlay.leave(flight, Some(step.accepted()));
                contents.overlay.drop_payload(index);
            }
            Action::Coalesced => self
                .plan
                .contents
                .overlay
                .leave(flight, Some(step.accepted())),
            Action::Join | Action::Unit(_) | Action::Cross(_) | Action::Accept | Action::Notify => {
            }
        }
        // The bytes are in the image before any step starts that waited for them.
        self.plan.steps.finish(step, &mut self.ready);
        if notify != 0 {
            self.notify(step, notify);
        }
    }

    fn notify(&mut self, step: Step, notify: u8) {
        let record = self.plan.steps.get(step);
        let index = record.request;
        if notify & (Notify::LEAVE | Notify::ACCEPTANCE) != 0 {
            self.in_ingress -= 1;
            if self.plan.observers.any() {
                let (now, request) = (self.now(), *self.requests.get(index));
                self.plan
                    .observers
                    .tell(|one| one.accepted(now, index, &request));
            }
        }
        if notify & Notify::ACCEPTANCE != 0 {
            let request = self.requests.get(index);
            self.acceptances.push(Acceptance {
                core: request.core,
                tag: request.tag,
                at: Time::from_ps(self.now),
            });
        }
        if notify & Notify::ANSWER != 0 {
            let critical = match record.action {
                Action::Notify => record.critical,
                _ => Critical {
                    step,
                    purpose: record.purpose,
                },
            };
            self.answer(index, critical);
        }
    }

    #[cold]
    pub(super) fn note_end(&mut self, step: Step, action: Action) {
        let now = self.now();
        let is_lost = Place(self.plan.steps.get(step).place).is_lost();
        self.plan.observers.tell(|one| match action {
            Action::Store if is_lost => {} // in a power cut, whatever happens
            Action::Store => one.done(now, step.0 - 1),
            Action::Join | Action::Notify => one.ended(now, step),
            _ => {}
        });
        if self.plan.observers.of_steps() {
            let performed = self.performed(step, action);
            self.plan.observers.tell(|one| one.performed(&performed));
        }
    }

    fn performed(&self, step: Step, action: Action) -> Performed {
        let record = self.plan.steps.get(step);
        let merged = |store| self.plan.steps.get(store).action == Action::Coalesced;
        let work = match action {
            Action::Join | Action::Notify => Work::Join,
            Action::Unit(unit) => Work::Unit(Unit::ALL[unit as usize]),
            Action::Cross(message) => Work::Cross(message),
            Action::Read if Step(record.link) != Step::PAST && record.queued == 0 => Work::Forward,
            Action::Read => Work::Read,
            Action::Accept if merged(Step(step.0 + 1)) => Work::Merge,
            Action::Accept => Work::Accept,
            Action::Store => Work::Store,
            Action::Coalesced => Work::Merged,
        };
        Performed {
            step,
            work,
            purpose: record.purpose,
            place: Place(record.place),
            counter: record.counter && self.params.medium.queues.counter_writes > 0,
            grouped: record.group > 0,
            ready: Time::from_ps(record.ready),
            queued: Time::from_ps(record.queued),
            begun: Time::from_ps(record.begun),
            ended: self.now(),
            after: record.critical.step,
            after_as: record.critical.purpose,
        }
    }

    /// Tells observers that the write of step `accept` is in the persistence domain, merged with the queued write of
    /// step `into` if there is one.
    #[cold]
    pub(super) fn note_ready(&mut self, accept: Step, into: Option<Step>) {
        let now = self.now();
        if Place(self.plan.steps.get(accept).place).is_lost() {
            return;
        }
        let write = MediumWrite {
            merged_into: into.map(|step| step.0),
            ..self.noted(accept, accept)
        };
        self.plan.observers.tell(|one| one.ready(now, &write));
    }

    #[cold]
    pub(super) fn note_begun(&mut self, store: Step) {
        let now = self.now();
        if Place(self.plan.steps.get(store).place).is_lost() {
            return;
        }
        let write = self.noted(store.accepted(), store);
        self.plan.observers.tell(|one| one.begun(now, &write));
    }

    fn noted(&self, accept: Step, step: Step) -> MediumWrite {
        let record = self.plan.steps.get(step);
        let payload = self.plan.contents.overlay.payload(record.link as u32);
        MediumWrite::new(accept.0, Place(record.place), payload)
    }

    #[inline(always)]
    fn start(&mut self, step: Step) {
        let now = self.now;
        let record = self.plan.steps.get_mut(step);
        (record.ready, record.state) = (now, State::Started);
        match record.action {
            // Nobody but the steps that wait for it learns of its end.
            Action::Join if record.notify == 0 && !self.plan.observers.of_ends() => {
                record.begun = now;
                self.plan.steps.finish(step, &mut self.ready);
            }
            Action::Join | Action::Notify | Action::Coalesced => {
                record.begun = now;
                self.end(step);
            }
            Action::Unit(unit) => {
                let purpose = record.purpose;
                self.start_unit(step, unit as usize, purpose);
            }
            Action::Cross(message) => self.cross(step, message),
            Action::Read => {
                let writer = Step(record.link);
                // The newest write of the line is not in the array yet, but the controller still has its bytes.
                if writer != Step::PAST && !self.plan.steps.is_finished(Step(writer.0 + 1)) {
                    self.forward(step);
                } else {
                    self.want_slot(step, Slots::Read);
                }
            }
            Action::Accept if record.group > 0 => {
                let group = record.group;
                self.group_member_ready(group);
            }
            Action::Accept => {
                if !self.coalesce(step) {
                    let slots = self.write_slots(step);
                    self.want_slot(step, slots);
                }
            }
            Action::Store => {
                let sequence = record.sequence;
                let queue = self.queue_of(step, self.write_slots(step.accepted()));
                self.enqueue(step, queue, sequence);
            }
        }
    }

    pub(super) fn start_unit(&mut self, step: Step, unit: usize, purpose: Purpose) {
        let params = &self.params.units[unit];
        let units = self.unit_free[unit].iter_mut();
        let free = units.min().expect("there is one unit at least");
        let begun = self.now.max(*free);
        // A pipelined unit takes the next one after its interval, long before this one is done.
        *free = begun + params.interval.ps();
        self.unit_uses[unit] += 1;
        let account = self.ledger.of(purpose);
        let record = self.plan.steps.get_mut(step);
        if !record.again {
            account.energy += params.energy;
            account.unit_uses += 1;
        }
        record.begun = begun;
        let done = begun + params.latency.ps();
        let source = self.channels.len() * 2 + unit;
        if done == self.now {
            self.end(step);
        } else {
            self.result(source, done, step);
        }
    }

    /// Answers a read from its line's write, which is still on its way to the array.
    pub(super) fn forward(&mut self, step: Step) {
        let now = self.now;
        let record = self.plan.steps.get_mut(step);
        record.begun = now;
        let medium = &mut self.media[Tier::of(Place(record.place)) as usize];
        medium.service[Direction::Read as usize].short_cuts += 1;
        self.plan.exercise(&FORWARD);
        // The controller forwards, at the rate of the persistent medium's queues: answers come in order.
        let done = now + self.params.medium.queues.forwarding_cycles * self.clocks[0].period;
        self.result(self.results.len() - 1, done, step);
    }

    /// Notes that `step` will be finished at `done`. The times of a source only grow, unless its writes may overtake
    /// each other.
    #[inline(always)]
    pub(super) fn result(&mut self, source: usize, done: u64, step: Step) {
        let results = &mut self.results[source];
        if self.reorders && results.back().is_some_and(|last| last.0 > done) {
            // Short writes overtake long ones of other banks, and any writes those that are interrupted.
            let at = results.partition_point(|before| before.0 <= done);
            results.insert(at, (done, step));
            let first = results[0].0;
            return self.heads.set_result(source, first);
        }
        debug_assert!(results.back().is_none_or(|last| last.0 <= done));
        results.push_back((done, step));
        if results.len() == 1 {
            self.heads.set_result(source, done);
        }
    }

    pub(super) fn enqueue(&mut self, step: Step, (index, slots): (usize, Slots), sequence: u64) {
        let place = Place(self.plan.steps.get(step).place);
        if self.channels[index].insert(step, place, slots, sequence) {
            self.wake_channel(index);
        }
    }

    /// Has the channel act in the next cycle, because an access is not eligible in the cycle of its arrival.
    pub(super) fn wake_channel(&mut self, index: usize) {
        let tier = self.tier(index);
        let clock = &mut self.clocks[tier];
        let ahead = self.now - clock.began;
        if ahead >= clock.period {
            clock.cycle += ahead / clock.period;
            clock.began = self.now - ahead % clock.period;
        }
        let (cycle, time) = (clock.cycle + 1, clock.began + clock.period);
        self.act_at(index, cycle, time);
    }

    pub(super) fn act_at(&mut self, index: usize, cycle: u64, time: u64) {
        if time < self.heads.act(index) {
            self.channels[index].next_act = cycle;
            self.heads.set_act(index, time);
        }
    }

    /// Has the channel act now, and continue until `limit` while no other source has an event and nobody waits for the
    /// slots that become free.
    #[inline(never)]
    pub(super) fn channel_acts<const SPECIAL: bool>(&mut self, index: usize, limit: u64) {
        // The channel does not run past a timer, at which the controller may plan something for it.
        let mut limit = self.heads.alone(index).min(self.next_timer()).min(limit);
        let tier = self.tier(index);
        let clock = self.clocks[tier].period;
        loop {
            let (outcome, share) = match SPECIAL {
                false => (self.channels[index].act::<false>(limit, None), 1.0),
                true => self.channel_acts_specially(index),
            };
            self.now = outcome.cycle * clock;
            (self.clocks[tier].cycle, self.clocks[tier].began) = (outcome.cycle, self.now);
            if self.plan.observers.any() {
                self.tell_commands(index);
            }
            if SPECIAL && let Some(turned) = self.channels[index].turned.take() {
                self.turned(index, turned);
                // The write's result has moved, and may now be the earliest event.
                limit = self.now;
            }
            if let Some(issued) = outcome.issued {
                let done = issued.done * clock;
                self.issued(index, issued.bank, done, share);
                // The access has become an event of another source.
                limit = limit.min(done);
            }
            let next = self.channels[index].next_act.saturating_mul(clock);
            let mut wanted = outcome.drained;
            if let Some((step, slots)) = outcome.selected {
                let record = self.plan.steps.get_mut(step);
                (record.begun, record.sequence) = (self.now, 0);
                wanted |= !self.waiting.is_free((index, slots));
            }
            if wanted {
                self.heads.set_act(index, next);
                return self.slots_are_free(index, &outcome);
            }
            if next > limit {
                return self.heads.set_act(index, next);
            }
        }
    }

    #[inline(never)]
    fn slots_are_free(&mut self, index: usize, outcome: &Acted) {
        if let Some((_, slots)) = outcome.selected {
            self.slot_is_free(index, slots);
            self.start_ready();
        }
        if outcome.drained {
            self.slot_is_free(index, Slots::Write);
            self.slot_is_free(index, Slots::CounterWrite);
            self.start_ready();
        }
    }

    /// Has the channel act in one cycle, in which a write takes as long as its cells do. Also returns the share of a
    /// line's energy that a write takes.
    #[cold]
    fn channel_acts_specially(&mut self, index: usize) -> (Acted, f64) {
        let near = self.tier(index) == Tier::Near as usize;
        let channel = &mut self.channels[index];
        let Some(cells) = self.cells.as_mut().filter(|_| !near) else {
            return (channel.act_specially(None), 1.0);
        };
        let (steps, contents) = (&self.plan.steps, &self.plan.contents);
        let mut share = 1.0;
        let mut program = |access: &Transaction| {
            let payload = contents.overlay.payload(steps.get(access.step).link as u32);
            // The cells hold what the array last took, whatever is queued for the line since.
            let old = contents.image.read(Place(access.place));
            let old = old.unwrap_or(ZERO_LINE);
            let done = cells.write(access.place, &old, &payload.line, payload.words);
            share = cells.share(done);
            cells.cycles(done)
        };
        let outcome = channel.act_specially(Some(&mut program));
        let inverted = std::mem::take(&mut cells.turned);
        (0..inverted).for_each(|_| self.plan.exercise(&GROUP_INVERTED));
        (outcome, share)
    }

    /// Books an interruption or a resumption of an array write. The additional time counts as use of its bank. The lost
    /// part has cost energy and has worn the line.
    #[cold]
    fn turned(&mut self, index: usize, turned: Turned) {
        let source = self.channels.len() * Direction::Write as usize + index;
        match turned {
            Turned::Stopped { access, lost, last } => {
                if last {
                    self.plan.exercise(&LAST_INTERRUPTION);
                }
                // Its result was queued with the column command. It is queued again when the write continues.
                let results = &mut self.results[source];
                let found = results.iter().position(|(_, step)| *step == access.step);
                results.remove(found.expect("its write was not done"));
                let first = results.front().map_or(NEVER, |first| first.0);
                self.heads.set_result(source, first);
                self.plan.exercise(&WRITE_INTERRUPTED);
                if lost > 0.0 {
                    let purpose = self.plan.steps.get(access.step).purpose;
                    let energy = self.params.medium.energy.write.fj() as f64 * lost;
                    let energy = Energy::from_fj(energy.round() as u64);
                    self.ledger.of(purpose).energy += energy;
                    self.media[0].service[Direction::Write as usize].energy += energy;
                    self.plan.contents.image.wear_again(Place(access.place));
                }
            }
            Turned::Resumed {
                access,
                done,
                from,
                was_done,
            } => {
                // The near one has no array writes that can be interrupted.
                let (medium, clock) = (&mut self.media[0], self.clocks[0].period);
                let (from, done) = (from * clock, done * clock);
                medium.service[Direction::Write as usize].total +=
                    Time::from_ps(done - was_done * clock);
                let bank = &mut self.banks[index * medium.of_a_channel + access.bank];
                bank.busy += Time::from_ps(done.saturating_sub(from.max(bank.until)));
                bank.until = bank.until.max(done);
                self.result(source, done, access.step);
            }
        }
    }

    #[cold]
    pub(super) fn tell_commands(&mut self, index: usize) {
        let Some(mut commands) = self.channels[index].issued.take() else {
            return;
        };
        for command in commands.drain(..) {
            self.plan.observers.tell(|one| one.command(&command));
            if matches!(
                command.kind,
                CommandKind::Read { .. } | CommandKind::Write { .. }
            ) {
                let bank = self.channels[index].number_of(&command);
                self.tell_bytes(index, bank);
            }
        }
        self.channels[index].issued = Some(commands);
    }

    /// Tells the bytes of the line of which the last column command of the bank moved all or a burst. A read comes after
    /// the line's earlier writes are in the array.
    #[cold]
    fn tell_bytes(&mut self, index: usize, bank: usize) {
        if !self.plan.observers.of_commands() {
            return;
        }
        let access = self.channels[index].transaction(bank);
        let record = self.plan.steps.get(access.step);
        let contents = &self.plan.contents;
        let line = match access.direction == Direction::Write as usize {
            true => Some(contents.overlay.payload(record.link as u32).line),
            false => contents.image.read(Place(access.place)),
        };
        self.plan.observers.tell(|one| one.moves(line.as_ref()));
    }

    #[inline]
    fn issued(&mut self, index: usize, bank: usize, done: u64, share: f64) {
        let access = *self.channels[index].transaction(bank);
        if self.plan.observers.closely() && access.direction == Direction::Write as usize {
            self.note_begun(access.step);
        }
        let record = self.plan.steps.get(access.step);
        let tier = Tier::of(Place(access.place));
        let medium = &mut self.media[tier as usize];
        let (energy, ranks) = (&medium.params.energy, &medium.params.ranks);
        let begun = match record.begun {
            0 => self.now, // selected and issued in the same cycle
            begun => begun,
        };
        let account = self.ledger.of(record.purpose);
        let service = &mut medium.service[access.direction];
        let spent = if access.direction == Direction::Read as usize {
            match tier {
                Tier::Far => account.medium_reads += 1,
                Tier::Near => account.near_reads += 1,
            }
            match access.hit {
                true => energy.row_hit_read,
                false => energy.read,
            }
        } else {
            match tier {
                Tier::Far => account.medium_writes += 1,
                Tier::Near => account.near_writes += 1,
            }
            let whole = match access.hit {
                true => ranks.row_hit_write,
                false => energy.write,
            };
            // Prefetches the old bytes and the wear, which are read when the write is done.
            let place = Place(access.place);
            self.plan.contents.image.touch_ahead(place, true);
            match share {
                1.0 => whole,
                _ => Energy::from_fj((whole.fj() as f64 * share).round() as u64),
            }
        };
        account.energy += spent;
        service.energy += spent;
        service.accesses += 1;
        service.row_hits += u64::from(access.hit);
        service.queued += Time::from_ps(begun - record.queued);
        service.total += Time::from_ps(done - record.queued);
        let bank = index * medium.of_a_channel + access.bank;
        if let Some(bank) = self.banks.get_mut(medium.bank_base.wrapping_add(bank)) {
            bank.accesses += 1;
            // A bank takes its next access before the last one is done; the overlap counts once.
            bank.busy += Time::from_ps(done.saturating_sub(begun.max(bank.until)));
            bank.until = bank.until.max(done);
        }
        let source = self.channels.len() * access.direction + index;
        self.result(source, done, access.step);
    }
}
