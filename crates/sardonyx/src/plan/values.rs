//! Values with the step after which they exist, and steps that do not exist yet.

use super::steps::Action;
use super::{Plan, Step};
use crate::line::{Line, Place};

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

/// A line as it was read, `None` if it was never written.
pub type Fetched = At<Option<Line>>;

/// The two moments of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The step after which the write is in the persistence domain: a power cut leaves it.
    pub accepted: Step,
    /// The step after which the write is in the medium's array.
    pub done: Step,
}

impl Stored {
    /// Combines two writes: both are accepted and done when the returned one is.
    pub fn and(self, other: Stored, plan: &mut Plan) -> Stored {
        Stored {
            accepted: plan.both(self.accepted, other.accepted),
            done: plan.both(self.done, other.done),
        }
    }

    /// A write that was not necessary: both moments are `step`.
    pub fn at(step: Step) -> Stored {
        Stored {
            accepted: step,
            done: step,
        }
    }
}

/// A line's write as a guard sees it.
#[derive(Clone, Copy, Debug)]
pub struct Written<'l> {
    /// The whole line as it will be, once its bytes exist.
    pub line: At<&'l Line>,
    /// The sideband that is written, if any is.
    pub sideband: Option<[u8; 8]>,
    /// The steps at which the write is accepted and done.
    pub stored: Stored,
}

impl Written<'_> {
    /// The line's sideband after the write.
    pub fn beside(&self, place: Place, plan: &Plan) -> Option<[u8; 8]> {
        self.sideband.or_else(|| plan.peek_sideband(place))
    }
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

impl Plan {
    /// A step that finishes when both given ones have.
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

    /// A step that others may depend on before it is known what it will be.
    pub fn promise(&mut self) -> Promise {
        if self.steps.at_once {
            return Promise(Step::PAST);
        }
        let none = [Step::PAST; 3];
        Promise(self.steps.create(Action::Join, self.purpose, none, true))
    }

    /// Keeps a promise: the promised step is `step`.
    pub fn keep(&mut self, promise: Promise, step: Step) {
        if self.steps.at_once {
            return;
        }
        self.steps.depend_more(promise.0, step, 0);
        if self.steps.release(promise.0) {
            self.steps.fresh.push(promise.0);
        }
    }
}
