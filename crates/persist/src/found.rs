//! What an exploration found, and what that comes to.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::images::{FIRST, Image, Kind};
use crate::recovery::Ended;
use crate::reduce::Reduced;
use crate::state::Course;

/// A failed recovery.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The image that the recovery was run on.
    pub image: Image,
    /// How the recovery ended.
    pub ended: Ended,
    /// The beginning of what the recovery printed.
    pub said: String,
    /// Seconds from the first recovery until it was found.
    pub seconds: f64,
    /// In which round, as an index of [`Found::rounds`].
    pub round: usize,
}

/// A round of looking: what the causes that were known left.
#[derive(Clone, Debug)]
pub struct Round {
    /// Its cuts; other stores count as persistent at once than in the first round's.
    pub course: Arc<Course>,
    /// Lines of code whose stores count as persistent at once, of this round and those before.
    pub assumed: Vec<String>,
}

/// What an exploration found.
#[derive(Debug, Default)]
pub struct Found {
    /// Every recovery that failed, in the order of cuts.
    pub violations: Vec<Violation>,
    /// Causes of some of them: the violation's index, and what it comes down to.
    pub reduced: Vec<(usize, Reduced)>,
    /// Kinds of violations that there was no time to reduce, or not to the end.
    pub unreduced: usize,
    /// The first cut to be tried; `None` if the budget ended before it was known.
    pub start: Option<u32>,
    /// The recovery copes with what was fenced at no cut, and with everything from the start on.
    pub never_sure: bool,
    /// Why it is not known.
    pub no_start: Option<NoStart>,
    /// Seconds from the first recovery until the first cut to be tried was known.
    pub start_seconds: f64,
    /// Images tried.
    pub images: u64,
    /// Recoveries run, those of reductions included.
    pub recoveries: u64,
    /// Images tried and failed, by the event that they are cut before.
    pub by_event: FxHashMap<u32, (u32, u32)>,
    /// What was looked at, again and again.
    pub rounds: Vec<Round>,
    /// Violations that a known cause explains, without a reduction.
    pub explained: usize,
    /// Contents of images that were tried.
    pub(crate) seen: FxHashSet<u64>,
    /// Violations of the present rounds by kind of moment and image.
    pub(crate) failed: FxHashMap<(u32, Kind), u32>,
    /// Images tried of cuts at which the pool is still being made.
    pub creation: u64,
    /// How many of [`images::PASSES`] were made to their end over these cuts, and whether all of them were to be.
    pub creation_passes: usize,
    /// Cuts of the first round at which an image was tried, or all of whose images had been tried at others.
    pub cuts: FxHashSet<u32>,
    /// Images by how they were come by.
    pub kinds: Vec<(Kind, u64)>,
    /// Seconds before the first recovery, for the recording and the pool.
    pub loading: f64,
    /// Seconds from the first recovery until all images had been tried, before any was reduced.
    pub looking: f64,
    /// Seconds from the first recovery to the end, reductions included.
    pub seconds: f64,
    /// All passes were made.
    pub finished: bool,
    /// How many of [`images::PASSES`] were made to their end.
    pub passes: usize,
    /// Seconds that the recovery takes on the pool as the program left it, if the budget was long enough to see it.
    pub undisturbed: Option<f64>,
    /// Seconds after which a recovery counts as one that does not end.
    pub time_limit: f64,
}

/// Why the first cut to be tried is not known: the budget ended.
#[derive(Clone, Debug)]
pub enum NoStart {
    /// During the first recovery, of the pool as the program left it.
    Undisturbed,
    /// While the first cut at which the recovery copes was looked for.
    Search {
        /// Cuts that were tried.
        tried: u32,
        /// How the recovery ended there, and what it said.
        refused: Option<(Ended, String)>,
    },
}

/// What an exploration comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A recovery failed.
    Violation,
    /// None failed, and the first pass over the cuts was completed.
    NoViolation,
    /// None failed, and the budget ended before the first pass over the cuts did.
    Unsaid,
}

impl Verdict {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Violation => "violation",
            Verdict::NoViolation => "no violation",
            Verdict::Unsaid => "nothing can be said",
        }
    }
}

impl Found {
    /// What it comes to.
    pub fn verdict(&self) -> Verdict {
        match (self.violations.is_empty(), self.passes >= FIRST) {
            (false, _) => Verdict::Violation,
            (true, true) => Verdict::NoViolation,
            (true, false) => Verdict::Unsaid,
        }
    }
}
