//! The engine: executes plans against queues, banks, units and buses, on one clock. It is event-driven:
//! it jumps from one event to the next.
//!
//! Every event comes from a *source* whose times only grow (a unit's results, a channel's returning
//! data ...), so the next event is the earliest of a dozen sources' heads. Only timers need a heap.

mod activates;
mod active_queue;
mod activity;
pub(crate) mod booking;
mod buffer;
mod cells;
pub(crate) mod channel;
mod command_queues;
mod constraints;
mod execution;
mod heads;
mod link;
mod listening;
mod media;
mod pausing;
mod queue;
pub(crate) mod slots;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rustc_hash::FxHashMap;

use crate::exhausted::Exhausted;
use crate::line::{Place, Tier};
use crate::medium::image::Image;
use crate::medium::link::Message;
use crate::medium::params::{EngineParams, Unit};
use crate::plan::orders::Choice;
pub use crate::plan::request::{Answer, Asked, Request};
use crate::plan::steps::{Action, Notify, Step};
use crate::plan::{Holding, Plan, Stored, Timer};
use crate::stats::{Cause, Direction, Ledger, Purpose};
use crate::units::{Energy, Time};
use booking::BookedRequests;
pub use buffer::Blocks;
use cells::Cells;
pub use cells::Programmed;
use channel::{Channel, NEVER};
use heads::{Head, Heads};
use link::Link;
use media::{Clock, Medium};
pub use pausing::Interruptions;
use slots::Waiting;

/// A request admitted by [`Engine::admit_announced`] is accepted: what it wrote is in the persistence
/// domain. A write of a group is accepted with its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acceptance {
    /// Number of the core that made the request.
    pub core: u32,
    /// The core's own name for the request.
    pub tag: u64,
    /// When the request was accepted.
    pub at: Time,
}

/// How the medium's queues have served reads, or writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// Accesses done.
    pub accesses: u64,
    /// Accesses that hit the open row.
    pub row_hits: u64,
    /// Time from entering the queue to leaving it, summed.
    pub queued: Time,
    /// Time from entering the queue to being done, summed.
    pub total: Time,
    /// Reads answered from a queued write, and writes merged with one.
    pub short_cuts: u64,
    /// Energy of the accesses.
    pub energy: Energy,
}

/// How a bank was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BankUse {
    /// Accesses.
    pub accesses: u64,
    /// The time during which an access was selected and not done.
    pub busy: Time,
    /// The time at which the latest of its accesses is done, in picoseconds.
    until: u64,
}

/// Executes plans.
pub struct Engine {
    params: EngineParams,
    /// The media: the persistent one, and the near one (the same again where there is none).
    media: [Medium; 2],
    clocks: [Clock; 2],
    plan: Plan,
    timers: BinaryHeap<Reverse<(Time, Timer)>>,
    channels: Vec<Channel>,
    /// The next event of each source. The sources are the channels, and then those whose `results` wait in queues:
    /// returning reads, finished writes, units, the link's messages, forwarded reads.
    heads: Heads,
    results: Vec<VecDeque<(u64, Step)>>,
    unit_free: [Vec<u64>; Unit::ALL.len()],
    link: Option<Link>,
    cells: Option<Box<Cells>>,
    /// Whether channels have varying writes, interruptions, a buffer or queues of commands, and so act in single cycles.
    special: bool,
    /// Whether array writes may end in another order than they began in.
    reorders: bool,
    now: u64,
    waiting: Waiting,
    accepted: u64,
    ready: Vec<Step>,
    requests: BookedRequests,
    in_ingress: usize,
    answers: Vec<Answer>,
    read_answered: bool,
    acceptances: Vec<Acceptance>,
    ledger: Ledger,
    /// Uses of the banks, channel after channel; none behind a module's buffer.
    banks: Vec<BankUse>,
    unit_uses: [u64; Unit::ALL.len()],
}

impl Engine {
    /// An engine over an empty medium.
    pub fn new(params: &EngineParams) -> Engine {
        Engine::with_image(params, Image::new())
    }

    /// An engine over a medium that an earlier engine has written.
    pub fn with_image(params: &EngineParams, image: Image) -> Engine {
        let medium = &params.medium;
        let far = Medium::new(medium, 0, 0);
        let next = (far.channels.end, far.banks());
        let near = match &params.near {
            Some(near) => Medium::new(near, next.0, next.1),
            None => Medium::new(medium, 0, 0),
        };
        let media = [far, near];
        let channels = media[1].channels.end;
        let banks = media[1].first_bank + media[1].banks();
        let of = |medium: &Medium| -> Vec<Channel> {
            let channels = medium.channels.clone();
            channels
                .map(|index| Channel::new(index, &medium.params))
                .collect()
        };
        let mut all = of(&media[0]);
        if params.near.is_some() {
            all.extend(of(&media[1]));
        }
        let reorders = medium.cells.is_some() || medium.pausing.is_some();
        let sources = channels * 2 + Unit::ALL.len() + Message::ALL.len() + 1;
        let special = reorders || media.iter().any(|medium| medium.params.is_special());
        Engine {
            clocks: [media[0].clock(), media[1].clock()],
            media,
            plan: Plan::new(image, medium.queues.forwarding),
            timers: BinaryHeap::new(),
            channels: all,
            heads: Heads::new(channels, sources),
            results: vec![VecDeque::new(); sources],
            unit_free: params.units.map(|unit| vec![0; unit.number.max(1)]),
            link: params.link.map(Link::new),
            cells: medium
                .cells
                .map(|cells| Box::new(Cells::new(cells, &medium.timing))),
            special,
            reorders,
            now: 0,
            waiting: Waiting::new(channels),
            accepted: 0,
            ready: Vec::new(),
            requests: BookedRequests::default(),
            in_ingress: 0,
            answers: Vec::new(),
            read_answered: false,
            acceptances: Vec::new(),
            ledger: Ledger::default(),
            banks: vec![BankUse::default(); banks],
            unit_uses: [0; Unit::ALL.len()],
            params: params.clone(),
        }
    }

    /// The present time.
    pub fn now(&self) -> Time {
        Time::from_ps(self.now)
    }

    /// Whether the ingress takes another request now: there is room in it, the run has not failed, and no access
    /// waits for a slot of a full queue, unless others pass it.
    pub fn admits(&self) -> bool {
        self.in_ingress < self.params.ingress
            && (self.waiting.is_empty() || self.params.medium.passing)
            && !self.heads.stopped
    }

    /// The number of the medium that a channel belongs to.
    #[inline]
    fn tier(&self, channel: usize) -> usize {
        usize::from(channel >= self.media[0].channels.end)
    }

    /// Whether requests cross a link.
    pub fn has_link(&self) -> bool {
        self.link.is_some()
    }

    /// Why the run cannot go on; `None` while it can. After the clock's end there are no more events and nothing is
    /// admitted, so a run loop ends as if all work were done: ask here before relying on the results.
    pub fn failure(&self) -> Option<Exhausted> {
        let clock = self.heads.stopped.then_some(Exhausted::FIVE_HOURS);
        self.plan.failure.or(clock)
    }

    /// The first line of the medium that was refused as not authentic, if any was.
    pub fn refused(&self) -> Option<Place> {
        self.plan.refused.first().copied()
    }

    /// Admits a request at `now`. `handle` plans at once everything that the controller does for the request, and the
    /// engine times the plan from here on. `handle` returns the steps at which a write is accepted and done; for a read
    /// both are the step of its answer.
    pub fn admit(&mut self, request: Request, now: Time, handle: impl FnOnce(&mut Plan) -> Stored) {
        self.admit_as(Notify::LEAVE, request, now, handle);
    }

    /// Admits a request as [`Engine::admit`] does. The acceptance, which a fence waits for, will be among
    /// [`Engine::acceptances`].
    pub fn admit_announced(
        &mut self,
        request: Request,
        now: Time,
        handle: impl FnOnce(&mut Plan) -> Stored,
    ) {
        self.admit_as(Notify::ACCEPTANCE, request, now, handle);
    }

    fn admit_as(
        &mut self,
        leave: u8,
        request: Request,
        now: Time,
        handle: impl FnOnce(&mut Plan) -> Stored,
    ) {
        self.now = self.now.max(now.ps());
        let first = self.plan.steps.upcoming();
        if self.plan.observers.any() {
            let (now, number) = (self.now(), self.requests.upcoming());
            let observers = &mut self.plan.observers;
            observers.tell(|one| one.admitted(now, number, &request));
        }
        let stored = self.plan(handle);
        let last = Step(self.plan.steps.upcoming().0 - 1);
        let index = self.requests.add(request, self.now, first, last);
        if self.plan.observers.of_steps() {
            let observers = &mut self.plan.observers;
            observers.tell(|one| one.planned(index, first, last));
        }
        if first <= last {
            self.plan.steps.get_mut(first).kept = true;
        }
        if !self.plan.observers.closely() && self.can_notify(first, stored) {
            self.notify_at(stored.accepted, index, leave);
            self.notify_at(stored.done, index, Notify::ANSWER);
            self.in_ingress += 1;
        } else {
            self.add_notify_steps(stored, index, leave);
        }
        self.start_fresh();
    }

    /// Whether the request's own steps can tell that it leaves the ingress and that it is answered. Both must happen
    /// with one of its steps, or with the two steps of one write.
    #[inline]
    fn can_notify(&self, first: Step, stored: Stored) -> bool {
        let Stored { accepted, done } = stored;
        let one_write = || {
            let of_a_write = self.plan.steps.get(accepted).action == Action::Accept;
            of_a_write && done.0 == accepted.0 + 1
        };
        accepted >= first && (done == accepted || one_write())
    }

    #[inline]
    fn notify_at(&mut self, step: Step, index: u32, what: u8) {
        let record = self.plan.steps.get_mut(step);
        record.request = index;
        record.notify |= what;
    }

    fn add_notify_steps(&mut self, stored: Stored, index: u32, leave: u8) {
        let Stored { accepted, done } = stored;
        let purpose = Purpose::new(Cause::Data);
        let mut step = |after, notify| {
            let step = self
                .plan
                .steps
                .create(Action::Notify, purpose, after, false);
            let record = self.plan.steps.get_mut(step);
            (record.request, record.notify) = (index, notify);
            step
        };
        // Steps that wait for the same step start in the order of creation; the answer comes last.
        let left = step([accepted, Step::PAST, Step::PAST], leave);
        step([done, accepted, Step::PAST], Notify::ANSWER);
        self.plan.observers.tell(|one| one.leaves_with(left));
        self.in_ingress += 1;
    }

    /// Runs `handle` over a plan for which no request waits (a flush, a timer).
    pub fn background<T>(&mut self, handle: impl FnOnce(&mut Plan) -> T) -> T {
        let value = self.plan(handle);
        self.start_fresh();
        value
    }

    /// Runs `handle` at `now` as [`Engine::background`] does. No event may come before `now`.
    pub fn background_at<T>(&mut self, now: Time, handle: impl FnOnce(&mut Plan) -> T) -> T {
        self.now = self.now.max(now.ps());
        self.background(handle)
    }

    /// Runs `handle` over a plan that takes effect at once, without steps, time or cost: it fills the
    /// medium before a run begins. Wear is counted; see [`Engine::forget_figures`].
    ///
    /// # Panics
    /// If anything is in flight.
    pub fn at_once<T>(&mut self, handle: impl FnOnce(&mut Plan) -> T) -> T {
        assert!(
            self.plan.contents.overlay.is_empty(),
            "only a medium at rest can be changed at once"
        );
        self.plan.steps.at_once = true;
        let value = self.plan(handle);
        self.plan.steps.at_once = false;
        value
    }

    fn plan<T>(&mut self, handle: impl FnOnce(&mut Plan) -> T) -> T {
        self.plan.now = self.now();
        let value = handle(&mut self.plan);
        // Only steps of a request that crosses a link wait for its arrival.
        self.plan.steps.arrived = Step::PAST;
        if !self.plan.timers.is_empty() {
            self.timers.extend(self.plan.timers.drain(..).map(Reverse));
        }
        value
    }

    /// Lets `change` alter what memory holds, without any hardware.
    pub fn alter<T>(&mut self, change: impl FnOnce(&mut Plan) -> T) -> T {
        change(&mut self.plan)
    }

    /// Holds writes back from now on.
    pub fn hold_back(&mut self, holding: Holding) {
        self.plan.hold(holding);
    }

    /// Releases the writes that are chosen to go next, where writes are held until chosen; returns whether there were
    /// any.
    pub fn release_chosen(&mut self) -> bool {
        let released = self.plan.release_chosen();
        self.start_fresh();
        released
    }

    /// The choices that were made, where writes are held until chosen.
    pub fn take_choices(&mut self) -> Vec<Choice> {
        self.plan.take_choices()
    }

    /// Shows `hint` a read-only plan, to prefetch what a request will need.
    pub fn look(&self, hint: impl FnOnce(&Plan)) {
        hint(&self.plan);
    }

    /// The time of the next event; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next_event(&self) -> Time {
        if self.heads.stopped {
            return Time::NEVER;
        }
        Time::from_ps(self.heads.time().min(self.next_timer()))
    }

    #[inline]
    fn next_timer(&self) -> u64 {
        match self.timers.peek() {
            Some(Reverse((time, _))) => time.ps(),
            None => NEVER,
        }
    }

    /// Executes the next event. Without one it forces queued writes out, so that a caller who waits in a loop makes
    /// progress. Returns a timer that has run out, for the controller.
    pub fn advance(&mut self) -> Option<Timer> {
        if self.heads.stopped {
            return None;
        }
        if self.next_event() == Time::NEVER && !self.force_drain() {
            return None;
        }
        let next = self.heads.time();
        if self.next_timer() < next {
            let Reverse((time, timer)) = self.timers.pop()?;
            self.now = self.now.max(time.ps());
            if self.plan.release(timer) {
                self.start_fresh();
                return None;
            }
            return Some(timer);
        }
        self.execute(next, next);
        None
    }

    /// Executes events up to and at `limit`, at least one if there is one. Stops after the first event that the caller
    /// must know of: a read's answer, an acceptance, a timer (which it returns, as [`Engine::advance`] does), or a
    /// change of [`Engine::admits`]. Answers to writes do not stop it and may gather.
    pub fn advance_until(&mut self, limit: Time) -> Option<Timer> {
        let admitted = self.admits();
        if self.heads.stopped {
            return None;
        }
        if !admitted && self.next_event() == Time::NEVER {
            self.force_drain();
        }
        loop {
            let next = self.heads.time();
            if self.next_timer() < next {
                return match self.next_timer() <= limit.ps() {
                    true => self.advance(),
                    false => None,
                };
            }
            if next > limit.ps() || next == NEVER {
                return None;
            }
            self.execute(next, limit.ps());
            if self.read_answered || self.has_acceptances() || self.admits() != admitted {
                return None;
            }
        }
    }

    /// Executes the event at `next`, the earliest of all. A channel may execute further events of its own until `limit`
    /// if no other source has one before.
    #[inline(always)]
    fn execute(&mut self, next: u64, limit: u64) {
        debug_assert!(next >= self.now, "time goes back");
        self.now = next;
        match self.heads.head() {
            Head::Channel(channel) => match self.special {
                false => self.channel_acts::<false>(channel, limit),
                true => self.channel_acts::<true>(channel, limit),
            },
            Head::Source(source) => {
                let results = &mut self.results[source];
                let (_, step) = results.pop_front().expect("a head has a result");
                let next = results.front().map_or(NEVER, |result| result.0);
                self.heads.set_result(source, next);
                self.finish(step);
            }
        }
    }

    /// Forces all queued writes out, as [`Engine::advance`] does without an event. Returns false if no write is queued
    /// or the run has failed.
    pub fn force_drain(&mut self) -> bool {
        if self.heads.stopped {
            return false;
        }
        let mut any = false;
        for index in 0..self.channels.len() {
            if self.channels[index].has_writes() {
                self.channels[index].forced_drain = true;
                self.wake_channel(index);
                any = true;
            }
        }
        any
    }

    /// The input has ended: queued writes go as soon as no read is queued.
    pub fn end_of_input(&mut self) {
        for index in 0..self.channels.len() {
            self.channels[index].input_ended = true;
            if self.channels[index].has_work() {
                self.wake_channel(index);
            }
        }
    }

    /// Expects more input after [`Engine::end_of_input`].
    pub fn resume_input(&mut self) {
        for channel in &mut self.channels {
            channel.input_ended = false;
        }
    }

    /// Runs until no work is left.
    ///
    /// # Panics
    /// As [`Engine::assert_at_rest`].
    pub fn run_to_rest(&mut self) -> Vec<Timer> {
        let mut timers = Vec::new();
        loop {
            while self.next_event() != Time::NEVER {
                timers.extend(self.advance());
            }
            if !self.force_drain() {
                break;
            }
        }
        self.assert_at_rest();
        timers
    }

    /// Whether no line of the medium is on its way to or from the array.
    pub fn is_at_rest(&self) -> bool {
        self.plan.contents.overlay.is_empty()
    }

    /// Checks that every step is finished.
    ///
    /// # Panics
    /// With the wait graph, if a step is not: a bug in a design or in Sardonyx, unless
    /// [`Engine::failure`] says why the run could not go on.
    pub fn assert_at_rest(&self) {
        let unfinished = self.plan.steps.unfinished().take(20);
        let graph = unfinished.map(|(step, r)| {
            let (action, state, waiters) = (r.action, r.state, self.plan.steps.waiters(step));
            let (place, group) = (r.place, r.group);
            format!(
                "{step:?} {action:?} {state:?}, line {place:#x}, group {group}, waits for {}; {waiters:?} wait for it",
                r.pending
            )
        });
        let graph: Vec<String> = graph.collect();
        let pending = "work is pending and nothing will happen";
        assert!(graph.is_empty(), "{pending}: {graph:#?}");
        assert!(self.plan.contents.overlay.is_empty());
    }

    /// Requests answered since the last call.
    pub fn answers(&mut self) -> std::vec::Drain<'_, Answer> {
        self.read_answered = false;
        self.answers.drain(..)
    }

    /// Whether any request has been answered since the last call of [`Engine::answers`].
    pub fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Announced requests accepted since the last call, in order.
    pub fn acceptances(&mut self) -> std::vec::Drain<'_, Acceptance> {
        self.acceptances.drain(..)
    }

    /// Whether any request has been accepted since the last call of [`Engine::acceptances`].
    pub fn has_acceptances(&self) -> bool {
        !self.acceptances.is_empty()
    }

    /// Latency, energy and accesses by cause.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// How the persistent medium's queues have served reads or writes.
    pub fn service(&self, kind: Direction) -> Service {
        self.service_of(Tier::Far, kind)
    }

    /// How a medium's queues have served reads or writes.
    pub fn service_of(&self, tier: Tier, kind: Direction) -> Service {
        self.media[tier as usize].service[kind as usize]
    }

    /// How each bank of a medium was used, channel after channel and rank after rank; none behind a module's buffer.
    pub fn banks(&self, tier: Tier) -> &[BankUse] {
        let medium = &self.media[tier as usize];
        &self.banks[medium.first_bank..medium.first_bank + medium.banks()]
    }

    /// How often the units of each kind were used.
    pub fn unit_uses(&self) -> [u64; Unit::ALL.len()] {
        self.unit_uses
    }

    /// Cells that writes have programmed; `None` if cells are not modelled.
    pub fn programmed(&self) -> Option<Programmed> {
        self.cells.as_ref().map(|cells| cells.programmed)
    }

    /// How often reads have interrupted array writes; `None` where they do not.
    pub fn interruptions(&self) -> Option<Interruptions> {
        let channels = self.channels.iter().filter_map(Channel::interruptions);
        channels.reduce(|sum, one| Interruptions {
            paused: sum.paused + one.paused,
            cancelled: sum.cancelled + one.cancelled,
        })
    }

    /// For how long ranks of a medium had open rows up to `until`, summed; zero where that takes what closed rows take.
    pub fn active(&self, tier: Tier, until: Time) -> Time {
        let medium = &self.media[tier as usize];
        let (channels, clock) = (
            &self.channels[medium.channels.clone()],
            self.clocks[tier as usize].period,
        );
        let cycle = until.ps() / clock;
        let cycles = channels.iter().map(|channel| channel.active(cycle));
        Time::from_ps(cycles.sum::<u64>() * clock)
    }

    /// Array writes of each place, without moves; `None` without wear levelling.
    pub fn worn(&self) -> Option<&FxHashMap<u64, u64>> {
        self.plan.worn.as_ref()
    }

    /// What the cells behind the modules' buffers have done; `None` if there are no buffers.
    pub fn blocks(&self) -> Option<Blocks> {
        let blocks = self.channels.iter().filter_map(Channel::blocks);
        blocks.reduce(|sum, blocks| Blocks {
            reads: sum.reads + blocks.reads,
            writes: sum.writes + blocks.writes,
        })
    }

    /// The medium's bytes and wear, as of the last array write that is done.
    pub fn image(&self) -> &Image {
        &self.plan.contents.image
    }

    /// Whether writes cause no wear from now on; see [`Image::spare`].
    pub fn spare(&mut self, spared: bool) {
        self.plan.contents.image.spare(spared);
    }

    /// Consumes the engine and returns what a power cut would leave in the array.
    pub fn into_image(self) -> Image {
        self.plan.contents.image
    }

    /// Counts from zero again (after a warm-up); state stays.
    pub fn forget_figures(&mut self) {
        self.ledger = Ledger::default();
        for medium in &mut self.media {
            medium.service = [Service::default(); 2];
        }
        self.unit_uses = [0; Unit::ALL.len()];
        for bank in &mut self.banks {
            (bank.accesses, bank.busy) = (0, Time::ZERO);
        }
        self.channels.iter_mut().for_each(Channel::forget_blocks);
        for (medium, clock) in self.media.iter().zip(&self.clocks) {
            for channel in &mut self.channels[medium.channels.clone()] {
                channel.forget_active(self.now / clock.period);
            }
        }
        let channels = self.channels.iter_mut();
        channels.for_each(Channel::forget_interruptions);
        if let Some(cells) = &mut self.cells {
            cells.programmed = Programmed::default();
        }
        self.plan.contents.image.forget_wear();
        if let Some(worn) = &mut self.plan.worn {
            worn.clear();
        }
    }
}
