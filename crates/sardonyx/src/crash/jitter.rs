//! Legal delays: a layer over a controller that holds some writes and counter write-backs back for
//! a while, so that they are accepted in orders that one fixed schedule would never show.
//! Nothing that a fence or a group promises is touched: a held request is not accepted yet.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashMap;

use crate::controller::{Class, Controller, Figures, Layer, Persist};
use crate::line::{Line, Logical};
use crate::plan::{At, Plan, Promise, Step, Stored, Token};
use crate::units::Time;

/// One request in so many is held.
const ONE_IN: u32 = 3;
/// The longest that one is held.
const LONGEST_NS: u32 = 3000;

/// A controller whose requests are held back at random.
pub struct Jitter {
    below: Controller,
    random: ChaCha8Rng,
    held: FxHashMap<u64, Promise>,
    next: u64,
}

impl Jitter {
    /// Over `below`, by `seed`.
    pub fn new(below: Controller, seed: u64) -> Jitter {
        Jitter {
            below,
            random: ChaCha8Rng::seed_from_u64(seed),
            held: FxHashMap::default(),
            next: 0,
        }
    }

    /// `gate`, or some time after it.
    fn hold(&mut self, gate: Step, plan: &mut Plan) -> Step {
        if !self.random.next_u32().is_multiple_of(ONE_IN) {
            return gate;
        }
        let wait = f64::from(self.random.next_u32() % LONGEST_NS + 1);
        let promise = plan.promise();
        plan.wake_at(plan.now() + Time::from_ns(wait), Token(self.next));
        self.held.insert(self.next, promise);
        self.next += 1;
        plan.both(gate, promise.step())
    }
}

impl Layer for Jitter {
    type Addr = Logical;

    fn read(&mut self, a: Logical, class: Class, after: Step, plan: &mut Plan) -> At<Option<Line>> {
        self.below.read(a, class, after, plan)
    }

    fn write(
        &mut self,
        a: Logical,
        data: At<&Line>,
        gate: Step,
        class: Class,
        order: Persist,
        plan: &mut Plan,
    ) -> Stored {
        let gate = self.hold(gate, plan);
        self.below.write(a, data, gate, class, order, plan)
    }

    fn persist_metadata(&mut self, a: Logical, after: Step, plan: &mut Plan) -> Stored {
        let after = self.hold(after, plan);
        self.below.persist_metadata(a, after, plan)
    }

    fn flush(&mut self, plan: &mut Plan) {
        self.below.flush(plan);
    }

    fn recover(&mut self, plan: &mut Plan) {
        self.below.recover(plan);
    }

    fn wake(&mut self, token: Token, _now: Time, plan: &mut Plan) {
        let promise = self.held.remove(&token.0).expect("it was held");
        plan.keep(promise, Step::PAST);
    }

    fn forget_figures(&mut self) {
        self.below.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        self.below.figures(out);
    }
}
