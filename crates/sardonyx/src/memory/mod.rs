//! A memory: a controller and the engine that times it, behind one interface. Its driver hands requests in, moves time
//! on and takes answers. The memory itself tells layers when their timers run out, forces queued writes out when no
//! more requests come, and empties the queues at the end of the input. Left out: caches, page tables and cores, which
//! stand on it (`machine`).

mod checks;
mod contents;
mod drain;

pub use checks::{Checked, Checks, Wrong};
pub use contents::Contents;

use crate::config::Machine;
use crate::controller::designs::{self, UnknownDesign};
use crate::controller::{Class, Controller, Figures, Write};
use crate::engine::{
    Acceptance, Answer, Asked, BankUse, Blocks, Engine, Interruptions, Programmed, Request, Service,
};
use crate::exhausted::Exhausted;
use crate::line::{Line, Logical, Place, Tier};
use crate::medium::image::Image;
use crate::medium::layout::Layout;
use crate::medium::link::Message;
use crate::medium::params::{PAST, Past, Unit};
use crate::plan::journal::Journal;
use crate::plan::observe::{Observer, Observers};
use crate::plan::orders::Choice;
use crate::plan::{At, Fetched, Holding, Plan, Step, Stored};
use crate::stats::{Direction, Ledger};
use crate::units::Time;

/// Lets `handle` do its part behind the link, if there is one: the request crosses the link as `message`, and the
/// notice of its acceptance comes back.
#[inline]
fn across(
    link: bool,
    message: Message,
    plan: &mut Plan,
    handle: impl FnOnce(&mut Plan) -> Stored,
) -> Stored {
    if !link {
        return handle(plan);
    }
    plan.arrive(message);
    let stored = handle(plan);
    let told = plan.depart(Message::Done, stored.accepted);
    Stored {
        accepted: told,
        done: plan.both(told, stored.done),
    }
}

/// A memory under one design.
pub struct Memory {
    engine: Engine,
    controller: Controller,
    design: String,
    layout: Layout,
    ended: bool,
    past: Past,
    checks: Option<Box<Checks>>,
}

impl Memory {
    /// Whether memory takes a request now.
    #[inline]
    pub fn accepts(&self) -> bool {
        self.engine.admits()
    }

    /// Reads `line` for `request`, which is presented at `now`. The bytes exist when the request is answered; `None` if
    /// the line was never written.
    pub fn read(&mut self, request: Request, now: Time, line: Logical, class: Class) -> Fetched {
        self.ask(Asked::Read(line));
        let link = self.crosses(line);
        let controller = &mut self.controller;
        let mut got = At::past(None);
        self.engine.admit(request, now, |plan| {
            if link {
                plan.arrive(Message::Read);
            }
            got = controller.read(line, class, Step::PAST, plan);
            if link {
                got.at = plan.depart(Message::Line, got.at);
            }
            Stored::at(got.at)
        });
        if let Some(checks) = &mut self.checks {
            checks.read(line, got.value.as_ref());
        }
        got
    }

    /// Learns that `line` has held `data` since before the run, if it was written then and not since. Costs nothing. A
    /// design that cannot take it leaves the content unknown.
    pub fn preload(&mut self, line: Logical, data: &Line) {
        let known = |checks: &Checks| checks.contents.get(line).is_some();
        if self.past == Past::Empty || self.checks.as_deref().is_some_and(known) {
            return;
        }
        let controller = &mut self.controller;
        let held = self
            .engine
            .alter(|plan| controller.preload(line, data, plan));
        if let Some(checks) = self.checks.as_mut().filter(|_| held) {
            checks.preloaded(line, data);
        }
    }

    /// Writes a line for `request`, which is presented at `now`.
    pub fn write(&mut self, request: Request, now: Time, write: Write<Logical>) {
        self.ask(Asked::Write(write.at));
        self.wrote(write.at, write.data.value);
        let link = self.crosses(write.at);
        let controller = &mut self.controller;
        self.engine.admit(request, now, |plan| {
            across(link, Message::Write, plan, |plan| {
                controller.write(write, plan)
            })
        });
    }

    /// Writes a line as [`Memory::write`] does. The acceptance will be among [`Memory::acceptances`].
    pub fn write_announced(&mut self, request: Request, now: Time, write: Write<Logical>) {
        self.ask(Asked::Write(write.at));
        self.wrote(write.at, write.data.value);
        let link = self.crosses(write.at);
        let controller = &mut self.controller;
        self.engine.admit_announced(request, now, |plan| {
            plan.handled(write.at, write.data.value, write.class, write.order);
            across(link, Message::Write, plan, |plan| {
                controller.write(write, plan)
            })
        });
    }

    /// Writes the metadata of `line` back. The acceptance will be among [`Memory::acceptances`].
    pub fn persist_metadata(&mut self, request: Request, now: Time, line: Logical) {
        self.ask(Asked::Metadata(line));
        let link = self.crosses(line);
        let controller = &mut self.controller;
        self.engine.admit_announced(request, now, |plan| {
            across(link, Message::Read, plan, |plan| {
                controller.persist_metadata(line, Step::PAST, plan)
            })
        });
    }

    /// Whether a line may be newer in a cache before the persistent medium than there.
    #[inline]
    pub fn flushes_below(&self) -> bool {
        self.controller.flushes_below()
    }

    /// Sends a line that a cache before the persistent medium holds, and nobody else, to the persistent one. The
    /// acceptance will be among [`Memory::acceptances`].
    pub fn flush_line(&mut self, request: Request, now: Time, line: Logical) {
        self.ask(Asked::Write(line));
        let (controller, link) = (&mut self.controller, self.engine.has_link());
        self.engine.admit_announced(request, now, |plan| {
            across(link, Message::Read, plan, |plan| {
                controller.flush_line(line, plan)
            })
        });
    }

    #[inline]
    fn wrote(&mut self, line: Logical, data: &Line) {
        if let Some(checks) = &mut self.checks {
            checks.wrote(line, data);
        }
    }

    /// Whether requests for `line` cross a link: there is one, and the line does not lie on this side of it.
    #[inline]
    fn crosses(&self, line: Logical) -> bool {
        self.engine.has_link() && !self.controller.is_near(line)
    }

    #[inline]
    fn ask(&mut self, asked: Asked) {
        if let Some(observers) = self.engine.observers() {
            observers.tell(|one| one.asked(asked));
        }
    }

    /// Begins transaction `number` of `core` in the hardware, at `now`.
    pub fn begin(&mut self, core: u32, number: u64, now: Time) {
        let (controller, link) = (&mut self.controller, self.engine.has_link());
        self.engine.background_at(now, |plan| {
            if link {
                plan.arrive(Message::Read);
            }
            controller.begin(core, number, plan);
        });
    }

    /// Logs `old`, the content of `line` before its first change in the transaction of `core`, at `now`.
    pub fn log_old(&mut self, core: u32, line: Logical, old: At<&Line>, now: Time) {
        let (controller, link) = (&mut self.controller, self.engine.has_link());
        self.engine.background_at(now, |plan| {
            if link {
                plan.arrive(Message::Write);
            }
            controller.log_old(core, line, old, plan);
        });
    }

    /// Ends the transaction of the request's core. The acceptance will be among [`Memory::acceptances`].
    pub fn commit(&mut self, request: Request, now: Time) {
        self.ask(Asked::Commit);
        let (controller, link) = (&mut self.controller, self.engine.has_link());
        self.engine.admit_announced(request, now, |plan| {
            across(link, Message::Read, plan, |plan| {
                controller.commit(request.core, plan)
            })
        });
    }

    /// Announces a request for `line`, so that this computer prefetches what it needs. No effect on results.
    pub fn hint(&mut self, line: Logical) {
        if let Some(checks) = &mut self.checks {
            checks.contents.touch(line);
        }
        self.engine.look(|plan| self.controller.hint(line, plan));
    }

    /// Requests answered since the last call.
    pub fn answers(&mut self) -> std::vec::Drain<'_, Answer> {
        self.engine.answers()
    }

    /// Whether requests were answered since [`Memory::answers`] was called.
    #[inline]
    pub fn has_answers(&self) -> bool {
        self.engine.has_answers()
    }

    /// Announced requests accepted since the last call, in order.
    pub fn acceptances(&mut self) -> std::vec::Drain<'_, Acceptance> {
        self.engine.acceptances()
    }

    /// Whether requests were accepted since [`Memory::acceptances`] was called.
    #[inline]
    pub fn has_acceptances(&self) -> bool {
        self.engine.has_acceptances()
    }
}

impl Memory {
    /// The present time.
    #[inline]
    pub fn now(&self) -> Time {
        self.engine.now()
    }

    /// The time of the next event; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next_event(&self) -> Time {
        self.engine.next_event()
    }

    /// Advances time up to and at `limit`, by at least one event if there is one. Stops after the first event that the
    /// driver must know of: a read's answer, an acceptance, a change of [`Memory::accepts`], a layer's timer.
    pub fn advance_until(&mut self, limit: Time) {
        if let Some(timer) = self.engine.advance_until(limit) {
            let (controller, now) = (&mut self.controller, self.engine.now());
            self.engine
                .background(|plan| controller.wake(timer, now, plan));
        }
    }

    /// Tells memory that no request comes before something happens, and that nothing happens on its own: writes that
    /// are held back go, or queued ones. With `last` no request ever comes again. Returns whether anything is left to
    /// happen.
    pub fn empty_queues(&mut self, last: bool) -> bool {
        if self.engine.release_chosen() {
            return true;
        }
        if last && !self.ended {
            self.ended = true;
            self.engine.end_of_input();
            return true;
        }
        self.engine.force_drain()
    }

    /// Expects requests again after the end of the input.
    pub fn resume(&mut self) {
        self.ended = false;
        self.engine.resume_input();
    }

    /// The reason why the run cannot continue; `None` while it can.
    pub fn failure(&self) -> Option<Exhausted> {
        self.engine.failure()
    }

    /// A line of the medium that was not what was last written there: its region, and its line in the region.
    pub fn refused(&self) -> Option<(&str, u64)> {
        let place = self.engine.refused()?;
        Some(self.layout.name_of(place))
    }

    /// Compares reads from now on with later writes, and with those that `checks` knows of; without `checks` none are
    /// compared. Returns the previous checks.
    pub fn check(&mut self, checks: Option<Box<Checks>>) -> Option<Box<Checks>> {
        std::mem::replace(&mut self.checks, checks)
    }

    /// Counts of reads that were compared with earlier writes; `None` if none are.
    pub fn checked(&self) -> Option<Checked> {
        self.checks.as_ref().map(|checks| checks.checked)
    }

    /// The first read that did not return the last write to its line. Where memory has refused a line, or cannot
    /// continue, its values are meaningless.
    #[inline]
    pub fn wrong(&self) -> Option<&Wrong> {
        let wrong = self.checks.as_ref()?.wrong.as_ref()?;
        let ends = self.refused().is_some() || self.failure().is_some();
        (!ends).then_some(wrong)
    }

    /// The last write to each line, if reads are compared with it.
    #[inline]
    pub fn contents(&mut self) -> Option<&mut Contents> {
        self.checks.as_mut().map(|checks| &mut checks.contents)
    }

    /// Whether no write is on its way to the array and no read on its way back.
    pub fn is_at_rest(&self) -> bool {
        self.engine.is_at_rest()
    }

    /// Checks that nothing is left undone.
    ///
    /// # Panics
    /// As [`Engine::assert_at_rest`].
    pub fn assert_at_rest(&self) {
        self.engine.assert_at_rest();
    }
}

impl Memory {
    /// An empty medium under a fresh controller.
    ///
    /// # Errors
    /// There is no such design.
    pub fn new(machine: &Machine, design: &str) -> Result<Memory, UnknownDesign> {
        let mut layout = Layout::new(machine.engine.medium.geometry.lines());
        Ok(Memory {
            engine: Engine::new(&machine.engine),
            controller: designs::build(design, &machine.settings, &mut layout)?,
            design: design.to_owned(),
            layout,
            ended: false,
            past: machine.settings.get(&PAST),
            checks: None,
        })
    }

    /// Recovers, in time, from a power cut that left `image`, under a fresh `controller`. A journal is kept from then
    /// on, and writes are held back.
    pub fn recovering(
        machine: &Machine,
        design: &str,
        mut controller: Controller,
        layout: Layout,
        image: Image,
        holding: Holding,
    ) -> Memory {
        let mut engine = Engine::with_image(&machine.engine, image);
        engine.observe(Journal::default());
        engine.hold_back(holding);
        engine.background(|plan| {
            controller.recover(plan);
            controller.undo(plan);
        });
        Memory {
            engine,
            controller,
            design: design.to_owned(),
            layout,
            ended: false,
            past: machine.settings.get(&PAST),
            checks: None,
        }
    }

    /// Recovers, in time, from a power cut that left `image`, under a fresh controller.
    ///
    /// # Errors
    /// There is no such design.
    pub fn over(machine: &Machine, design: &str, image: Image) -> Result<Memory, UnknownDesign> {
        let mut memory = Memory::new(machine, design)?;
        memory.engine = Engine::with_image(&machine.engine, image);
        let controller = &mut memory.controller;
        memory.engine.background(|plan| {
            controller.recover(plan);
            controller.undo(plan);
        });
        Ok(memory)
    }

    /// The design's name.
    pub fn design(&self) -> &str {
        &self.design
    }

    /// Writes `data` to `line` through the controller, at no time and no cost.
    pub fn write_at_once(&mut self, line: Logical, data: &Line) {
        self.wrote(line, data);
        let controller = &mut self.controller;
        self.engine
            .at_once(|plan| controller.write(Write::new(line, At::past(data)), plan));
    }

    /// Reads `line` through the controller, at no time and no cost; `None` if it was never written.
    pub fn read_at_once(&mut self, line: Logical) -> Option<Line> {
        let controller = &mut self.controller;
        let read = |plan: &mut Plan| controller.read(line, Class::Data, Step::PAST, plan).value;
        self.engine.at_once(read)
    }

    /// Reads `line` through the controller only for its effect on state, at no time and no cost.
    pub fn pass_read(&mut self, line: Logical, class: Class) {
        let controller = &mut self.controller;
        let read = |plan: &mut Plan| controller.read(line, class, Step::PAST, plan).value;
        let got = self.engine.at_once(read);
        if let Some(checks) = &mut self.checks {
            checks.read(line, got.as_ref());
        }
    }

    /// Sets whether what is done at once causes no wear from now on, for work that will be forgotten.
    pub fn spare(&mut self, spared: bool) {
        self.engine.spare(spared);
    }

    /// Puts everything into the medium, and sets all figures to zero.
    pub fn settle(&mut self) {
        let controller = &mut self.controller;
        self.engine.at_once(|plan| controller.flush(plan));
        self.forget_figures();
    }
}

impl Memory {
    /// Counts from zero again. State stays.
    pub fn forget_figures(&mut self) {
        self.engine.forget_figures();
        self.controller.forget_figures();
    }

    /// Cells that writes have programmed; `None` if cells are not modelled.
    pub fn programmed(&self) -> Option<Programmed> {
        self.engine.programmed()
    }

    /// See [`Engine::active`].
    pub fn active(&self, tier: Tier, until: Time) -> Time {
        self.engine.active(tier, until)
    }

    /// See [`Engine::interruptions`].
    pub fn interruptions(&self) -> Option<Interruptions> {
        self.engine.interruptions()
    }

    /// Lines moved by wear levelling; `None` without wear levelling.
    pub fn moves(&self) -> Option<u64> {
        Some(self.controller.levelling()?.moves())
    }

    /// The number of times that the medium survives the counted run: with lines that stay where they are, and with
    /// lines that move as they do; `None` if nothing was written.
    pub fn lasts(&self, endurance: f64) -> [Option<f64>; 2] {
        let worn = self.engine.worn();
        let most = worn.and_then(|worn| worn.values().max());
        [
            most.map(|most| endurance / *most as f64),
            worn.and_then(|worn| self.controller.levelling()?.lasts(worn, endurance)),
        ]
    }

    /// What the cells behind the modules' buffers have done; `None` if there are no buffers.
    pub fn blocks(&self) -> Option<Blocks> {
        self.engine.blocks()
    }

    /// The figures of all layers, from the top down.
    pub fn figures(&self) -> Figures {
        self.controller.figures()
    }

    /// Latency, energy and accesses by cause.
    pub fn ledger(&self) -> &Ledger {
        self.engine.ledger()
    }

    /// How a medium's queues have served reads or writes.
    pub fn service_of(&self, tier: Tier, kind: Direction) -> Service {
        self.engine.service_of(tier, kind)
    }

    /// How the persistent medium's queues have served reads or writes.
    pub fn service(&self, kind: Direction) -> Service {
        self.engine.service(kind)
    }

    /// See [`Engine::banks`].
    pub fn banks(&self, tier: Tier) -> &[BankUse] {
        self.engine.banks(tier)
    }

    /// How often the units of each kind were used.
    pub fn unit_uses(&self) -> [u64; Unit::ALL.len()] {
        self.engine.unit_uses()
    }

    /// The name of the region that a place is in.
    pub fn region_of(&self, place: Place) -> &'static str {
        self.layout.name_of(place).0
    }

    /// The medium's bytes and wear, as of the last array write that is done.
    pub fn image(&self) -> &Image {
        self.engine.image()
    }

    /// Adds a listener.
    pub fn observe(&mut self, observer: impl Observer) {
        self.engine.observe(observer);
    }

    /// The listeners, if there are any.
    #[inline]
    pub fn observers(&mut self) -> Option<&mut Observers> {
        self.engine.observers()
    }

    /// The choices that were made, where writes are held until chosen.
    pub fn take_choices(&mut self) -> Vec<Choice> {
        self.engine.take_choices()
    }

    /// Removes a listener and returns it.
    pub fn take<T: Observer>(&mut self) -> Option<Box<T>> {
        self.engine.take()
    }
}
