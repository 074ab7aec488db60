//! The findings of an exploration, and the verdict.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::images::{FIRST, Image, Kind};
use crate::recording::persistence::Course;
use crate::recovery::ending::Ended;
use crate::search::reduce::Reduced;
use crate::verdict::Doubt;

#[derive(Clone, Debug)]
pub struct Violation {
    pub image: Image,
    pub ended: Ended,
    pub said: String,
    /// Seconds from the first recovery to this violation.
    pub seconds: f64,
    /// The round, as an index of [`Findings::rounds`].
    pub round: usize,
}

/// A round of the search, which leaves out what the causes known by then explain.
#[derive(Clone, Debug)]
pub struct Round {
    /// The round's cuts, with more stores that count as persistent at once than in the first round.
    pub course: Arc<Course>,
    /// Lines of code whose stores count as persistent at once in this round.
    pub assumed: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Findings {
    pub violations: Vec<Violation>,
    /// Violations that were reduced: the violation's index, and the lines that decide.
    pub reduced: Vec<(usize, Reduced)>,
    /// The number of kinds of violations that there was no time to reduce completely.
    pub unreduced: usize,
    /// The first cut to be tried; `None` if the budget ended before it was found.
    pub start: Option<u32>,
    /// Set if the recovery copes at no cut with what was fenced, but with everything from the start on.
    pub never_sure: bool,
    pub no_start: Option<NoStart>,
    /// Seconds from the first recovery until the first cut to be tried was found.
    pub start_seconds: f64,
    pub images: u64,
    pub recoveries: u64,
    /// The number of images tried, and of images that failed, by the event that the cut comes before.
    pub by_event: FxHashMap<u32, (u32, u32)>,
    pub rounds: Vec<Round>,
    /// The number of violations that a known cause explains, without a reduction of their own.
    pub explained: usize,
    pub(crate) seen: FxHashSet<u64>,
    pub(crate) failed: FxHashMap<(u32, Kind), u32>,
    /// An image of the last round for each kind of moment that the recovery coped with and wrote to.
    pub repaired: FxHashMap<u32, Image>,
    /// The number of images tried at cuts at which the pool is still being made.
    pub creation: u64,
    /// The number of [`images::PASSES`] completed over these cuts, and whether all of them were to be.
    pub creation_passes: usize,
    /// Cuts of the first round at which an image was tried, or whose images had all been tried at other cuts.
    pub cuts: FxHashSet<u32>,
    pub kinds: Vec<(Kind, u64)>,
    /// Seconds before the first recovery, for the recording and the pool.
    pub loading: f64,
    /// Seconds from the first recovery until all images had been tried, reductions left out.
    pub looking: f64,
    /// Seconds from the first recovery to the end, reductions included.
    pub seconds: f64,
    pub finished: bool,
    /// Reasons why finding no violation says nothing, besides a budget that ended too early.
    pub doubts: Vec<Doubt>,
    /// The number of [`images::PASSES`] that were completed.
    pub passes: usize,
    /// Seconds that the recovery takes on the pool as the program left it; `None` if the budget ended before that.
    pub undisturbed: Option<f64>,
    /// Seconds after which a recovery counts as one that does not end.
    pub time_limit: f64,
}

/// The stage in which the budget ended before the first cut to be tried was found.
#[derive(Clone, Debug)]
pub enum NoStart {
    /// The budget ended in the first recovery, of the pool as the program left it.
    Undisturbed,
    /// The budget ended in the search for the first cut at which the recovery copes.
    Search {
        tried: u32,
        /// The end of the recovery at the last cut that was tried, and its output.
        refused: Option<(Ended, String)>,
    },
}

impl Findings {
    /// Whether the first pass over the cuts was completed: before that, finding no violation says nothing.
    pub fn has_looked(&self) -> bool {
        self.passes >= FIRST
    }
}
