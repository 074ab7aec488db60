//! Rounds of the search: each leaves out what known causes explain, until nothing more is found or the budget ends.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::images::grounds;
use crate::question::Question;
use crate::recording::Recording;
use crate::recording::persistence::Course;
use crate::recovery::bench::Tell;
use crate::search::crew::with_workers;
use crate::search::findings::{Findings, Round};
use crate::search::judge::{Judge, SearchState};
use crate::search::known_causes::StorePlaces;
use crate::search::look::{Search, work};
use crate::{CrashTestError, Result};

/// There are at most this many rounds, and they end earlier after some in a row that show no new cause.
const MOST: usize = 16;
const NOTHING_NEW: usize = 3;

/// Counts the stores that the question names as persistent at once, and returns their lines of code.
pub fn assumed(question: &Question, recording: &mut Recording) -> Result<Vec<String>> {
    if question.assume_persisted.is_empty() {
        return Ok(Vec::new());
    }
    if recording.sites.is_empty() || !question.source {
        return Err(CrashTestError::new(
            "--assume-persisted: the recording has no places in the program, or --no-source leaves them out; record with --pc",
        ));
    }
    let places = StorePlaces::from_recording(recording, true);
    for named in &question.assume_persisted {
        let sites = places.named(named)?;
        recording.assumed.extend(sites);
    }
    Ok(question.assume_persisted.clone())
}

/// Looks in rounds, each in a folder of its own, with as many workers as the question says.
///
/// A round is the last one if it found nothing, if the budget is spent, or if a few rounds in a row taught nothing new.
pub fn look(
    question: &Question,
    shared: &mut SearchState,
    (grounds, folder): (&[File], &Path),
    mut assumed: Vec<String>,
    found: &mut Findings,
    tell: Tell<'_>,
) -> Result<()> {
    // A copy of a large pool is much memory.
    let workers = match question.options.threads {
        0 if grounds::fill_memory(grounds, &shared.recording) => 1,
        _ => question.options.workers(),
    };
    let mut places = None;
    let mut stale = 0;
    for round in 0..MOST {
        found.rounds.push(Round {
            course: shared.course.clone(),
            assumed: assumed.clone(),
        });
        let folder = folder.join(format!("round-{round}"));
        std::fs::create_dir(&folder).map_err(CrashTestError::io(folder.display()))?;
        let before = (found.reduced.len(), found.violations.len());
        let all: &SearchState = shared;
        let judge = |number: usize| Judge::new(all, grounds, &folder.join(format!("{number}")));
        with_workers(&all.trial, workers, judge, work, |crew| {
            Search::new(question, all, found, workers, tell).all(crew)
        })?;
        let _ = std::fs::remove_dir_all(&folder);
        if found.violations.len() == before.1 || shared.trial.clock.is_spent() {
            break;
        }
        let places = places
            .get_or_insert_with(|| StorePlaces::from_recording(&shared.recording, question.source));
        let learned = learn(shared, found, before.0, places, &mut assumed);
        stale = if learned { 0 } else { stale + 1 };
        if stale >= NOTHING_NEW {
            break;
        }
        shared.trial.enough.store(false, Ordering::Relaxed);
        found.repaired.clear();
    }
    Ok(())
}

/// Learns from the last reductions: late stores count as persistent from now on, and early ones are noted. Returns
/// whether there was anything new.
fn learn(
    shared: &mut SearchState,
    found: &mut Findings,
    from: usize,
    places: &StorePlaces,
    assumed: &mut Vec<String>,
) -> bool {
    let (mut late, mut learned) = (false, false);
    for (_, reduced) in &found.reduced[from..] {
        let sites = places.sites(&shared.recording, &reduced.late);
        let new = sites.difference(&shared.recording.assumed).count() > 0;
        if new {
            assumed.extend(places.names(&shared.recording, &reduced.late).cloned());
            shared.recording.assumed.extend(sites);
            late = true;
        } else if reduced.late.is_empty() && !reduced.early.is_empty() {
            let sites = places.sites(&shared.recording, &reduced.early);
            learned |= shared.learn(sites);
        }
    }
    if late {
        assumed.sort_unstable();
        assumed.dedup();
        shared.course = Arc::new(Course::from_recording(
            &shared.recording,
            shared.recording.platform,
        ));
        found.failed.clear();
    }
    late || learned
}
