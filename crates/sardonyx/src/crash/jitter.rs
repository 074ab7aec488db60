//! Legal delays: a layer over a controller that holds some writes and counter write-backs back for
//! a while, so that they are accepted in orders that one fixed schedule would never show.
//! Nothing that a fence or a group promises is touched: a held request is not accepted yet.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashMap;

use crate::controller::{Class, Layer, Storey, Top, Write, stands_on_below};
use crate::line::{Line, Logical};
use crate::plan::{At, Plan, Promise, Step, Stored, Timer};
use crate::units::Time;

/// One request in so many is held.
const ONE_IN: u32 = 3;
/// The longest that one is held.
const LONGEST_NS: u32 = 3000;

/// A layer whose requests are held back at random.
pub struct Jitter {
    below: Top,
    random: ChaCha8Rng,
    held: FxHashMap<Timer, Promise>,
}

impl Jitter {
    /// Over `below`, by `seed`.
    pub fn new(below: Top, seed: u64) -> Jitter {
        Jitter {
            below,
            random: ChaCha8Rng::seed_from_u64(seed),
            held: FxHashMap::default(),
        }
    }

    /// `gate`, or some time after it.
    fn hold(&mut self, gate: Step, plan: &mut Plan) -> Step {
        if !self.random.next_u32().is_multiple_of(ONE_IN) {
            return gate;
        }
        let wait = f64::from(self.random.next_u32() % LONGEST_NS + 1);
        let promise = plan.promise();
        let timer = plan.wake_at(plan.now() + Time::from_ns(wait));
        self.held.insert(timer, promise);
        plan.both(gate, promise.step())
    }
}

impl Storey for Jitter {
    stands_on_below!();

    fn wake(&mut self, timer: Timer, _now: Time, plan: &mut Plan) -> bool {
        let Some(promise) = self.held.remove(&timer) else {
            return false;
        };
        plan.keep(promise, Step::PAST);
        true
    }
}

impl Layer for Jitter {
    type Addr = Logical;

    fn read(&mut self, a: Logical, class: Class, after: Step, plan: &mut Plan) -> At<Option<Line>> {
        self.below.read(a, class, after, plan)
    }

    fn write(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        let gate = self.hold(write.gate, plan);
        self.below.write(Write { gate, ..write }, plan)
    }

    fn persist_metadata(&mut self, a: Logical, after: Step, plan: &mut Plan) -> Stored {
        let after = self.hold(after, plan);
        self.below.persist_metadata(a, after, plan)
    }
}
