//! A machine that is as disobliging as its instructions allow, for the crash explorer: any line may be
//! evicted at any time, dirty and counter-atomic ones above all; instructions take irregular times; and
//! memory that nobody has written holds noise.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Batch, OpSource, RunError};
use crate::line::Lines;
use crate::units::Time;

/// Operations between two evictions, in the mean.
const EVICT_ONE_IN: u32 = 48;
/// Instructions before an operation at most, added to its own.
const LONGEST_PAUSE: u32 = 16;

/// What goes wrong, drawn from a seed.
pub struct Adversity {
    random: ChaCha8Rng,
}

impl Adversity {
    /// By `seed`.
    pub fn new(seed: u64) -> Adversity {
        Adversity {
            random: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// Whether a line has to go after this operation.
    pub(super) fn evicts(&mut self) -> bool {
        self.random.next_u32().is_multiple_of(EVICT_ONE_IN)
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
        })
    }
}

struct Pausing<'s> {
    source: Box<dyn OpSource + 's>,
    random: ChaCha8Rng,
}

impl OpSource for Pausing<'_> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn refill(&mut self, now: Time, batch: &mut Batch) -> Result<bool, RunError> {
        let more = self.source.refill(now, batch)?;
        for op in batch.ops_mut() {
            op.gap += self.random.next_u32() % LONGEST_PAUSE;
        }
        Ok(more)
    }

    fn log_lines(&self) -> Lines {
        self.source.log_lines()
    }

    fn pages(&self) -> u64 {
        self.source.pages()
    }
}
