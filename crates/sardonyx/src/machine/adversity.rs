//! A machine that is as adversarial as its instructions allow, for the crash explorer: small caches; any
//! line may be evicted at any time, dirty and counter-atomic ones above all; instructions take irregular
//! times; and memory that nobody has written holds noise. How much of each a seed draws.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Batch, OpSource, RunError};
use crate::line::{Lines, Logical};
use crate::plan::script::{ScriptIndex, Scripting};
use crate::units::Time;

const EVICT_ONE_IN: [u32; 3] = [8, 24, 64];
/// One in so many counter-atomic stores is followed by an eviction.
const EVICT_MARKED_ONE_IN: u32 = 4;
/// One eviction in so many is followed by others, one after each of up to so many operations, so that the evicted lines
/// wait together.
const BURST_ONE_IN: u32 = 32;
const LONGEST_BURST: u32 = 16;
/// The longest pause before an operation, in instructions that are added to its own.
const LONGEST_PAUSE: [u32; 3] = [4, 16, 256];
/// The odds and the longest pause are drawn again after so many operations.
const STRETCH: u32 = 256;
const CACHED_LINES: [usize; 3] = [32, 64, 256];

/// The disturbances of a run, drawn from a seed.
pub struct Adversity {
    random: ChaCha8Rng,
    evict_one_in: u32,
    left: u32,
    burst: u32,
    /// The number of lines that the caches hold for each core.
    pub cached_lines: usize,
    scripting: Scripting,
    told: Option<ScriptIndex>,
    operations: Vec<u64>,
    pausing: u64,
}

impl Adversity {
    /// Draws disturbances from `seed`, or follows a script.
    pub fn new(seed: u64, scripting: &Scripting) -> Adversity {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let cached_lines = CACHED_LINES[random.next_u32() as usize % 3];
        let cached_lines = match &scripting.told {
            Some(script) => script.cached_lines as usize,
            None => cached_lines,
        };
        scripting.note(|script| script.cached_lines = cached_lines as u64);
        Adversity {
            evict_one_in: EVICT_ONE_IN[0],
            left: 0,
            burst: 0,
            cached_lines,
            random,
            scripting: scripting.clone(),
            told: scripting.index(|script| &script.evictions),
            operations: Vec::new(),
            pausing: 0,
        }
    }

    pub(super) fn scripted(&mut self, core: usize) -> Option<Option<Logical>> {
        if self.scripting.is_idle() {
            return None;
        }
        let most = self.operations.len().max(core + 1);
        self.operations.resize(most, 0);
        let at = (core as u64, self.operations[core]);
        self.operations[core] += 1;
        let told = self.told.as_ref()?;
        Some(told.get(&at).map(|line| Logical(*line)))
    }

    pub(super) fn evicted(&self, core: usize, line: Logical) {
        if !self.scripting.is_idle() {
            let note = [core as u64, self.operations[core] - 1, line.0];
            self.scripting.note(|script| script.evictions.push(note));
        }
    }

    pub(super) fn evicts(&mut self, marked: bool) -> bool {
        if self.burst > 0 {
            self.burst -= 1;
            return true;
        }
        if self.left == 0 {
            self.left = STRETCH;
            self.evict_one_in = EVICT_ONE_IN[self.random.next_u32() as usize % 3];
        }
        self.left -= 1;
        let one_in = match marked {
            true => EVICT_MARKED_ONE_IN.min(self.evict_one_in),
            false => self.evict_one_in,
        };
        let goes = self.random.next_u32().is_multiple_of(one_in);
        if goes && self.random.next_u32().is_multiple_of(BURST_ONE_IN) {
            self.burst = 1 + self.random.next_u32() % LONGEST_BURST;
        }
        goes
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.random.next_u32() as usize % end
    }

    /// Draws a seed for another part of the run.
    pub fn seed(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// Adds irregular pauses between the operations of `source`.
    pub fn pausing<'s>(&mut self, source: Box<dyn OpSource + 's>) -> Box<dyn OpSource + 's> {
        self.pausing += 1;
        Box::new(Pausing {
            source,
            random: ChaCha8Rng::seed_from_u64(self.seed()),
            longest: LONGEST_PAUSE[0],
            left: 0,
            core: self.pausing - 1,
            operations: 0,
            told: self.scripting.index(|script| &script.pauses),
            scripting: self.scripting.clone(),
        })
    }
}

struct Pausing<'s> {
    source: Box<dyn OpSource + 's>,
    random: ChaCha8Rng,
    longest: u32,
    left: u32,
    core: u64,
    operations: u64,
    told: Option<ScriptIndex>,
    scripting: Scripting,
}

impl OpSource for Pausing<'_> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn refill(&mut self, now: Time, batch: &mut Batch) -> Result<bool, RunError> {
        let more = self.source.refill(now, batch)?;
        for op in batch.ops_mut() {
            let at = (self.core, self.operations);
            if self.left == 0 {
                self.left = STRETCH;
                self.longest = LONGEST_PAUSE[self.random.next_u32() as usize % 3];
            }
            self.left -= 1;
            let pause = match &self.told {
                Some(told) => told.get(&at).map_or(0, |pause| *pause as u32),
                None => self.random.next_u32() % self.longest,
            };
            self.operations += 1;
            op.gap += pause;
            if pause > 0 {
                let note = [at.0, at.1, u64::from(pause)];
                self.scripting.note(|script| script.pauses.push(note));
            }
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
