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
mod preload;
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

/// A timer that a layer has asked for. All timers differ, and a later one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timer(u64);

/// The graph of one request, being written, and the state that earlier requests have left: writes in flight over the
/// medium's bytes.
pub struct Plan {
    pub(crate) steps: Steps,
    pub(crate) contents: PlanContents,
    pub(crate) groups: Vec<Group>,
    pub(crate) timers: Vec<(Time, Timer)>,
    next_timer: u64,
    pub(crate) failure: Option<Exhausted>,
    pub(crate) observers: Observers,
    pub(crate) schedule: Schedule,
    pub(crate) now: Time,
    purpose: Purpose,
    /// The bits of the medium whose layers are at work: 0 for the persistent one.
    medium: u64,
    /// The guard between the layers and the medium. It is away while it is at work itself.
    pub(crate) guard: Option<Box<dyn Guard>>,
    /// Wear levelling, if lines move. It is lent like the guard, which stands above it.
    pub(crate) levelling: Option<Box<StartGap>>,
    /// Array writes of each place, without moves; only where lines move.
    pub(crate) worn: Option<FxHashMap<u64, u64>>,
    pub(crate) refused: Vec<Place>,
    /// Lines that integrity has looked at, if its recovery's work is counted.
    pub(crate) looked: Option<RefCell<Vec<Place>>>,
    /// The contents before each write that took effect at once, if those are to be undone.
    pub(crate) undo: Option<Vec<(Place, Option<Content>)>>,
}

impl Plan {
    /// An empty plan over `image`. `forwarding` lets a read have a queued write's bytes.
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
            medium: 0,
            guard: None,
            levelling: None,
            worn: None,
            refused: Vec::new(),
            looked: None,
            undo: None,
        }
    }

    /// A plan over an empty medium, in the place of one that is lent.
    pub fn idle() -> Plan {
        Plan::new(Image::new(), true)
    }

    /// The time at which the request was admitted.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Has layers of the near medium, whose places have the bits `near`, do something.
    pub(crate) fn in_near<T>(&mut self, near: u64, act: impl FnOnce(&mut Plan) -> T) -> T {
        self.medium = near;
        let done = act(self);
        self.medium = 0;
        done
    }

    /// Whether `step` is finished, to keep tables of steps small. No decision may depend on it.
    pub fn is_past(&self, step: Step) -> bool {
        self.steps.is_finished(step)
    }

    /// Whether reads and units make no steps: all is done at once, or nobody times or counts them.
    fn takes_no_steps(&self) -> bool {
        self.steps.at_once || !self.steps.timed && self.looked.is_none()
    }

    /// Uses an on-chip unit after `after`.
    pub fn unit(&mut self, unit: Unit, after: Step) -> Step {
        if self.takes_no_steps() {
            return Step::PAST;
        }
        let after = [after, Step::PAST, Step::PAST];
        let action = Action::Unit(unit as u8);
        self.steps.create(action, self.purpose, after, false)
    }

    /// Sends the plan's request across the link to the memory. All its further steps wait for that.
    pub(crate) fn arrive(&mut self, message: Message) {
        if !self.steps.at_once {
            let none = [Step::PAST; 3];
            let link = Purpose::new(Cause::Link);
            self.steps.arrived = self.steps.create(Action::Cross(message), link, none, false);
        }
    }

    /// Sends a message that exists after `after` across the link back to the processor.
    pub(crate) fn depart(&mut self, message: Message, after: Step) -> Step {
        if self.steps.at_once {
            return Step::PAST;
        }
        let (link, after) = (Purpose::new(Cause::Link), [after, Step::PAST, Step::PAST]);
        self.steps
            .create(Action::Cross(message), link, after, false)
    }

    /// Uses a unit a further time for the same work, or for work that nobody is charged for: takes its time, and no
    /// energy.
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

    /// Asks for the controller to be woken at `time`. The layer that keeps the timer will know it.
    pub fn wake_at(&mut self, time: Time) -> Timer {
        let timer = Timer(self.next_timer);
        self.next_timer += 1;
        self.timers.push((time, timer));
        timer
    }

    /// Notes that the run cannot continue, and ends soon. The first reason counts. The caller continues with a harmless
    /// value until then.
    #[cold]
    pub fn fail(&mut self, why: Exhausted) {
        self.failure.get_or_insert(why);
        self.observers.tell(|observer| observer.failed());
    }
}
