//! Legal delays, for the crash explorer: some writes are held back for a while before they may be
//! accepted, so that they are accepted in orders that one fixed schedule would never show. Each write of a
//! request by itself: its line, its counter, its mapping, its mark.
//! Nothing that a fence or a group promises is touched: a write that is held is not accepted yet.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashMap;

use super::script::{ScriptIndex, Scripting};
use super::{Promise, Timer};
use crate::line::Place;
use crate::units::Time;

/// One write in so many is held, depending on the seed.
const ONE_IN: [u32; 3] = [2, 4, 12];
/// The longest delay, depending on the seed: shorter than an array write, a few of them, or many.
const LONGEST_NS: [u32; 3] = [120, 1000, 4000];
/// The odds and the longest delay are drawn again after so many writes.
const STRETCH: u32 = 64;

/// Draws from a seed which writes are held and for how long.
pub(crate) struct Delays {
    random: ChaCha8Rng,
    one_in: u32,
    longest_ns: u32,
    left: u32,
    held: FxHashMap<Timer, Promise>,
    scripting: Scripting,
    told: Option<ScriptIndex>,
    writes: FxHashMap<u64, u64>,
}

impl Delays {
    pub fn new(seed: u64, scripting: Scripting) -> Delays {
        Delays {
            one_in: ONE_IN[0],
            longest_ns: LONGEST_NS[0],
            left: 0,
            random: ChaCha8Rng::seed_from_u64(seed),
            held: FxHashMap::default(),
            told: scripting.index(|script| &script.delays),
            scripting,
            writes: FxHashMap::default(),
        }
    }

    pub fn draw(&mut self, place: Place) -> Option<Time> {
        if self.scripting.is_idle() {
            let nanoseconds = self.drawn()?;
            return Some(Time::from_ns(f64::from(nanoseconds)));
        }
        let number = self.writes.entry(place.0).or_default();
        let at = (place.0, *number);
        *number += 1;
        let nanoseconds = match &self.told {
            Some(told) => told.get(&at).copied()? as u32,
            None => self.drawn()?,
        };
        let note = [at.0, at.1, u64::from(nanoseconds)];
        self.scripting.note(|script| script.delays.push(note));
        Some(Time::from_ns(f64::from(nanoseconds)))
    }

    fn drawn(&mut self) -> Option<u32> {
        if self.left == 0 {
            self.left = STRETCH;
            self.one_in = ONE_IN[self.random.next_u32() as usize % ONE_IN.len()];
            self.longest_ns = LONGEST_NS[self.random.next_u32() as usize % LONGEST_NS.len()];
        }
        self.left -= 1;
        let held = self.random.next_u32().is_multiple_of(self.one_in);
        held.then(|| self.random.next_u32() % self.longest_ns + 1)
    }

    pub fn hold(&mut self, timer: Timer, promise: Promise) {
        self.held.insert(timer, promise);
    }

    pub fn release(&mut self, timer: Timer) -> Option<Promise> {
        self.held.remove(&timer)
    }
}
