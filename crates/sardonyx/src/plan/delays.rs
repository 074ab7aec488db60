//! Legal delays, for the crash explorer: some writes are held back for a while before they may be
//! accepted, so that they are accepted in orders that one fixed schedule would never show. Each write of a
//! request by itself: its line, its counter, its mapping, its mark.
//! Nothing that a fence or a group promises is touched: a write that is held is not accepted yet.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashMap;

use super::{Promise, Timer};
use crate::units::Time;

/// One write in so many is held, by the seed.
const ONE_IN: [u32; 3] = [2, 4, 12];
/// The longest that one is held, by the seed: shorter than an array write, a few, and many of them.
const LONGEST_NS: [u32; 3] = [120, 1000, 4000];

/// Which writes are held, and for how long, drawn from a seed.
pub(crate) struct Delays {
    random: ChaCha8Rng,
    one_in: u32,
    longest_ns: u32,
    held: FxHashMap<Timer, Promise>,
}

impl Delays {
    /// By `seed`.
    pub fn new(seed: u64) -> Delays {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        Delays {
            one_in: ONE_IN[random.next_u32() as usize % ONE_IN.len()],
            longest_ns: LONGEST_NS[random.next_u32() as usize % LONGEST_NS.len()],
            random,
            held: FxHashMap::default(),
        }
    }

    /// How long the next write is held, if it is.
    pub fn draw(&mut self) -> Option<Time> {
        let held = self.random.next_u32().is_multiple_of(self.one_in);
        held.then(|| Time::from_ns(f64::from(self.random.next_u32() % self.longest_ns + 1)))
    }

    /// A write waits for `promise`, which is kept when `timer` runs out.
    pub fn hold(&mut self, timer: Timer, promise: Promise) {
        self.held.insert(timer, promise);
    }

    /// What waits for `timer`, if anything does.
    pub fn release(&mut self, timer: Timer) -> Option<Promise> {
        self.held.remove(&timer)
    }
}
