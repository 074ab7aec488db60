//! A plan: what one request makes the hardware do, as a small graph of timed steps.
//!
//! A design handles a request at once, on real bytes, and calls these methods while it does so.
//! Every value that they give is a *timed value*: the bytes, and the step after which they exist.
//! Kept in a table it keeps its step, so a later request that finds it there waits as hardware
//! would. The engine times the graph afterwards; a plan needs no clock.

mod cause;
pub mod command;
pub(crate) mod contents;
pub(crate) mod delays;
mod groups;
pub mod guard;
pub mod journal;
mod notices;
pub mod observe;
pub mod orders;
pub(crate) mod overlay;
pub mod performed;
mod read;
pub mod request;
mod schedule;
pub mod script;
pub mod start_gap;
pub mod steps;
pub mod storey;
pub mod untimed;
mod values;
mod write;

pub use cause::Because;
pub(crate) use groups::Group;
pub use schedule::Holding;
pub use steps::Step;
pub use values::{At, Fetched, Promise, Stored, Written};
pub use write::{Queue, merged};

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use crate::exhausted::Exhausted;
use crate::line::Place;
use crate::medium::image::{Content, Image};
use crate::medium::link::Message;
use crate::medium::params::Unit;
use crate::stats::{Cause, Purpose};
use crate::units::Time;
use contents::PlanContents;
use guard::Guard;
use observe::Observers;
use schedule::Schedule;
use start_gap::StartGap;
use steps::{Action, Steps};

/// A timer that a layer has asked for; no two are the same, and a later one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timer(u64);

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
