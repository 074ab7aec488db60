//! Finds the first cut to be tried: the one that the user names, or the first at which the recovery copes.

use rustc_hash::FxHashSet;

use crate::images::{self, EVERYTHING, Given, Image, Scope};
use crate::recording::Recording;
use crate::recording::persistence::Course;
use crate::recovery::ending::Ended;
use crate::report::findings::NoStart;
use crate::search::Search;
use crate::search::workers::{Crew, QUEUE, SearchJob, WorkerAnswer};
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

impl Search<'_> {
    /// Finds the first cut at which the recovery copes with what was fenced: each early cut is tried, of later ones
    /// some until one is found, and then those before it. `None` if the budget ended first.
    pub(crate) fn first_success(&mut self, crew: &mut Crew) -> Result<Option<u32>> {
        let cuts = self.shared.course.cuts.len() as u32;
        let mut sparse: Vec<u32> = vec![0];
        while let Some(&last) = sparse.last()
            && last + 1 < cuts
        {
            let step = 1 + last.saturating_sub(CLOSELY) / SPARSE;
            sparse.push((last + step).min(cuts - 1));
        }
        let mut tried = 0;
        let mut found = self.first_of(crew, &sparse, &mut tried)?;
        let before = match found {
            Some(cut) => sparse[sparse.partition_point(|&s| s < cut).saturating_sub(1)]..cut,
            None => 0..cuts,
        };
        let between: Vec<u32> = before
            .filter(|cut| sparse.binary_search(cut).is_err())
            .collect();
        if let Some(earlier) = self.first_of(crew, &between, &mut tried)? {
            found = Some(earlier);
        }
        if found.is_none() && tried < cuts {
            let refused = self.refused.take();
            self.found.no_start = Some(NoStart::Search { tried, refused });
            return Ok(None);
        }
        if found.is_none() {
            found = self.first_whole(crew, &sparse)?;
        }
        if found.is_none() {
            let refused = self.refused.as_ref().map(of_refusal).unwrap_or_default();
            return Err(CrashTestError::new(format!(
                "--recover: it copes at none of the {cuts} cuts with what was fenced there{refused}: nothing that the program \
                 makes sure of is a pool that it accepts; say with --start from where on it should be one"
            )));
        }
        Ok(found)
    }

    /// The first of some cuts at which the recovery copes with everything. It copes with what was fenced at none,
    /// because something that it needs is never made sure.
    fn first_whole(&mut self, crew: &mut Crew, cuts: &[u32]) -> Result<Option<u32>> {
        let shared = self.shared;
        let scope = Scope {
            platform: shared.recording.platform,
            tear: false,
            start: 0,
            end: u32::MAX,
            seed: self.question.seed,
            acks: shared.recovery.wants_acks(),
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
        let found = self.first_among(crew, whole, &mut 0)?;
        self.found.never_sure = found.is_some();
        Ok(found)
    }

    /// The first of some cuts at which the recovery copes with what was fenced, as far as there is time; `tried` is
    /// counted up.
    fn first_of(&mut self, crew: &mut Crew, cuts: &[u32], tried: &mut u32) -> Result<Option<u32>> {
        let images = cuts.iter().map(|&cut| Image::fenced(cut));
        self.first_among(crew, images, tried)
    }

    /// The first cut of images with which the recovery copes, as far as there is time; `tried` is counted up.
    fn first_among(
        &mut self,
        crew: &mut Crew,
        images: impl IntoIterator<Item = Image>,
        tried: &mut u32,
    ) -> Result<Option<u32>> {
        let mut least: Option<u32> = None;
        let mut next = images.into_iter();
        loop {
            while least.is_none()
                && crew.waiting < QUEUE
                && !self.shared.clock.is_spent()
                && let Some(image) = next.next()
            {
                crew.give(SearchJob::Try(image, self.shared.haste()));
            }
            match crew.next() {
                None => return Ok(least),
                Some(WorkerAnswer::Tried(_, Err(CrashTestError::Late))) => {}
                Some(WorkerAnswer::Tried(image, result)) => {
                    let (ended, said) = result?;
                    *tried += 1;
                    if image.cut == 0 && image.over.is_empty() {
                        let refused = self.shared.recovery.fails(ended).then_some(ended);
                        *self.shared.refused.lock().expect("nobody panics with it") = refused;
                    }
                    if self.shared.recovery.fails(ended) {
                        self.refused = Some((ended, said));
                    } else {
                        least = Some(least.map_or(image.cut, |l| l.min(image.cut)));
                    }
                }
                Some(WorkerAnswer::Reduced(..)) => {}
            }
            self.listen();
        }
    }
}
