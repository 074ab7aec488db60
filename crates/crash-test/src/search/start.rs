//! Finds the first cut to be tried: the one that the user names, or the first at which the recovery copes.

use rustc_hash::FxHashSet;

use crate::images::{self, EVERYTHING, Given, Image, Scope};
use crate::question::Question;
use crate::recording::Recording;
use crate::recording::persistence::Course;
use crate::recovery::bench::Tell;
use crate::recovery::ending::Ended;
use crate::search::crew::QUEUE;
use crate::search::findings::NoStart;
use crate::search::jobs::{PoolCrew, SearchJob, WorkerAnswer};
use crate::search::judge::{Outcome, SearchState};
use crate::{CrashTestError, Result};

/// The search for the start tries this many cuts one by one, then one in this many that came before.
pub(crate) const CLOSELY: u32 = 256;
const SPARSE: u32 = 32;
/// If the recovery copes at no cut with what was fenced, it is tried with everything at this many cuts.
const WHOLE: usize = 256;

pub(crate) fn named_start(recording: &Recording, course: &Course, start: &str) -> Result<u32> {
    let row = match start.parse::<u64>() {
        Ok(row) => row,
        Err(_) => {
            let known: Vec<&str> = recording
                .marks
                .iter()
                .map(|(_, text)| text.as_str())
                .collect();
            let found = recording.marks.iter().find(|(_, text)| text == start);
            found.map(|(row, _)| *row).ok_or_else(|| {
                CrashTestError::new(match known.is_empty() {
                    true => format!(
                        "--start {start}: the recording has no marks (SARDONYX_MARK of sardonyx.h makes them); give a row"
                    ),
                    false => format!("--start {start}: is not a mark; there are {}", known.join(", ")),
                })
            })?
        }
    };
    let cut = course
        .cuts
        .partition_point(|cut| recording.row(cut.event) < row);
    match cut < course.cuts.len() {
        true => Ok(cut as u32),
        false => Err(CrashTestError::new(format!(
            "--start {start}: no cut comes after it; the recording has {} rows",
            recording.rows
        ))),
    }
}

pub(crate) fn of_refusal((ended, said): &(Ended, String)) -> String {
    let colon = if said.is_empty() { "" } else { ": " };
    format!(" ({ended}{colon}{said})")
}

/// The cut from which on images are tried.
pub(crate) struct Start {
    pub(crate) first: std::result::Result<u32, NoStart>,
    /// Set if the recovery copes at no cut with what was fenced, but with everything.
    pub(crate) never_sure: bool,
}

/// Finds the first cut at which the recovery copes with what was fenced.
///
/// Each early cut is tried, of later ones some until one is found, and then those before it. If the recovery copes at
/// none, it is tried with everything, because something that it needs may never be made sure.
///
/// # Errors
/// It copes with nothing; or as of a recovery.
pub(crate) fn first_success(
    question: &Question,
    shared: &SearchState,
    crew: &mut PoolCrew,
    tell: Tell<'_>,
) -> Result<Start> {
    let cuts = shared.course.cuts.len() as u32;
    let mut sparse: Vec<u32> = vec![0];
    while let Some(&last) = sparse.last()
        && last + 1 < cuts
    {
        let step = 1 + last.saturating_sub(CLOSELY) / SPARSE;
        sparse.push((last + step).min(cuts - 1));
    }
    let mut seeking = Seeking {
        shared,
        crew,
        tell,
        tried: 0,
        refused: None,
    };
    let mut found = seeking.first_of(&sparse)?;
    let before = match found {
        Some(cut) => sparse[sparse.partition_point(|&s| s < cut).saturating_sub(1)]..cut,
        None => 0..cuts,
    };
    let between: Vec<u32> = before
        .filter(|cut| sparse.binary_search(cut).is_err())
        .collect();
    found = seeking.first_of(&between)?.or(found);
    let (tried, sure) = (seeking.tried, found.is_some());
    if !sure && tried < cuts {
        let refused = seeking.refused;
        let first = Err(NoStart::Search { tried, refused });
        return Ok(Start {
            first,
            never_sure: false,
        });
    }
    if !sure {
        let images = whole(question, shared, &sparse);
        found = seeking.first_among(images)?;
    }
    match found {
        Some(first) => Ok(Start {
            first: Ok(first),
            never_sure: !sure,
        }),
        None => {
            let refused = seeking.refused.as_ref().map(of_refusal).unwrap_or_default();
            Err(CrashTestError::new(format!(
                "--recover: it copes at none of the {cuts} cuts with what was fenced there{refused}: nothing that the program \
                 makes sure of is a pool that it accepts; say with --start from where on it should be one"
            )))
        }
    }
}

/// The images of some cuts with everything.
fn whole(question: &Question, shared: &SearchState, cuts: &[u32]) -> Vec<Image> {
    let scope = Scope {
        platform: shared.recording.platform,
        tear: false,
        start: 0,
        end: u32::MAX,
        seed: question.options.seed,
        acks: shared.trial.recovery.wants_acks(),
    };
    let (mut seen, mut whole) = (FxHashSet::default(), Vec::new());
    let give = |image: Image| {
        if cuts.binary_search(&image.cut).is_ok() {
            whole.push(image);
        }
        match whole.len() < WHOLE {
            true => Given::Taken,
            false => Given::Enough,
        }
    };
    let (recording, course) = (&shared.recording, &shared.course);
    images::each(
        recording,
        course,
        scope,
        EVERYTHING,
        &mut seen,
        &|| true,
        give,
    );
    whole
}

struct Seeking<'s> {
    shared: &'s SearchState,
    crew: &'s mut PoolCrew,
    tell: Tell<'s>,
    /// The number of images tried.
    tried: u32,
    /// The end and the output of a recovery that did not cope.
    refused: Option<(Ended, String)>,
}

impl Seeking<'_> {
    /// The first of some cuts at which the recovery copes with what was fenced, as far as there is time.
    fn first_of(&mut self, cuts: &[u32]) -> Result<Option<u32>> {
        self.first_among(cuts.iter().map(|&cut| Image::fenced(cut)))
    }

    /// The first cut of images with which the recovery copes, as far as there is time.
    fn first_among(&mut self, images: impl IntoIterator<Item = Image>) -> Result<Option<u32>> {
        let trial = &self.shared.trial;
        let mut least: Option<u32> = None;
        let mut next = images.into_iter();
        loop {
            while least.is_none()
                && self.crew.waiting < QUEUE
                && !trial.clock.is_spent()
                && let Some(image) = next.next()
            {
                self.crew.give(SearchJob::Try(image, trial.haste()));
            }
            match self.crew.next() {
                None => return Ok(least),
                Some(Ok(WorkerAnswer::Tried(image, outcome))) => {
                    let Outcome { ended, said, .. } = outcome;
                    self.tried += 1;
                    if image.cut == 0 && image.over.is_empty() {
                        self.shared.refuses_untouched(ended);
                    }
                    if trial.recovery.fails(ended) {
                        self.refused = Some((ended, said));
                    } else {
                        least = Some(least.map_or(image.cut, |l| l.min(image.cut)));
                    }
                }
                Some(Ok(WorkerAnswer::Reduced(..)) | Err(CrashTestError::Late)) => {}
                Some(Err(e)) => return Err(e),
            }
            trial.listen(self.tell);
        }
    }
}
