//! A machine that is as disobliging as its instructions allow, for the crash explorer: small caches; any
//! line may be evicted at any time, dirty and counter-atomic ones above all; instructions take irregular
//! times; and memory that nobody has written holds noise. How much of each a seed draws.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Batch, OpSource, RunError};
use crate::line::Lines;
use crate::units::Time;

/// Operations between two evictions, in the mean.
const EVICT_ONE_IN: [u32; 3] = [8, 24, 64];
/// After a counter-atomic store one in so many is followed by an eviction.
const EVICT_MARKED_ONE_IN: u32 = 4;
/// Instructions before an operation at most, added to its own.
const LONGEST_PAUSE: [u32; 3] = [4, 16, 256];
/// Lines that the caches hold for each core.
const CACHED_LINES: [usize; 3] = [32, 64, 256];

/// What goes wrong, drawn from a seed.
pub struct Adversity {
    random: ChaCha8Rng,
    evict_one_in: u32,
    longest_pause: u32,
    /// Lines that the caches hold for each core.
    pub cached_lines: usize,
}

impl Adversity {
    /// By `seed`.
    pub fn new(seed: u64) -> Adversity {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut one_of_three = || random.next_u32() as usize % 3;
        Adversity {
            evict_one_in: EVICT_ONE_IN[one_of_three()],
            longest_pause: LONGEST_PAUSE[one_of_three()],
            cached_lines: CACHED_LINES[one_of_three()],
            random,
        }
    }

    /// Whether a line has to go after this operation, which has left a `marked` line dirty.
    pub(super) fn evicts(&mut self, marked: bool) -> bool {
        let one_in = match marked {
            true => EVICT_MARKED_ONE_IN.min(self.evict_one_in),
            false => self.evict_one_in,
        };
        self.random.next_u32().is_multiple_of(one_in)
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.random.next_u32() as usize % end
    }

    /// A seed for somebody else.
    pub fn seed(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// `source`, with irregular pauses between its operations.
    pub fn pausing<'s>(&mut self, source: Box<dyn OpSource + 's>) -> Box<dyn OpSource + 's> {
        Box::new(Pausing {
            source,
            random: ChaCha8Rng::seed_from_u64(self.seed()),
            longest: self.longest_pause,
        })
    }
}

struct Pausing<'s> {
    source: Box<dyn OpSource + 's>,
    random: ChaCha8Rng,
    longest: u32,
}

impl OpSource for Pausing<'_> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn refill(&mut self, now: Time, batch: &mut Batch) -> Result<bool, RunError> {
        let more = self.source.refill(now, batch)?;
        for op in batch.ops_mut() {
            op.gap += self.random.next_u32() % self.longest;
        }
        Ok(more)
    }

    fn log_lines(&self) -> Lines {
        self.source.log_lines()
    }

    fn pages(&self) -> u64 {
        self.source.pages()
    }

    fn holds(&self) -> Vec<u64> {
        self.source.holds()
    }
}
