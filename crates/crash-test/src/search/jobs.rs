//! What a worker of a search of mapped pools is asked, and what it answers.

use std::time::Duration;

use crate::images::Image;
use crate::recovery::Reason;
use crate::search::crew::Crew;
use crate::search::judge::Outcome;
use crate::search::reduce::Reduced;

/// What a worker is asked to do.
pub(crate) enum SearchJob {
    Try(Image, Duration),
    /// A violation by its number, its image and reason, and the first cut that a reduction may try.
    Reduce(usize, Image, Reason, u32),
}

pub(crate) enum WorkerAnswer {
    Tried(Image, Outcome),
    Reduced(usize, Reduced),
}

pub(crate) type PoolCrew = Crew<SearchJob, WorkerAnswer>;
