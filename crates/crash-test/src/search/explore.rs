//! Runs the recovery on the images of each cut, with several workers, and collects those that fail.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::images::Image;
use crate::images::grounds;
use crate::interrupt::Interrupt;
use crate::question::Question;
use crate::recording::orders;
use crate::recording::platform::Platform;
use crate::recording::source::Sources;
use crate::recording::{Act, Recording, Sure};
use crate::recovery::bench::ImageCopy;
use crate::recovery::bench::{Clock, Tell, Trial};
use crate::recovery::ending::Ended;
use crate::recovery::unknown_pool;
use crate::search::findings::{Findings, NoStart};
use crate::search::judge::{Judge, Refusal, SearchState};
use crate::search::prefixes::learn_oracle;
use crate::search::rounds;
use crate::search::undisturbed::undisturbed;
use crate::verdict::{Doubt, Reason};
use crate::{CrashTestError, Result};

/// Refuses a recording without stores, or without anything that makes them persistent.
fn check(recording: &Recording, platform: Platform, has_promises: bool) -> Result<()> {
    let any = |what: fn(&Act) -> bool| recording.walk().any(|event| what(&event.act));
    let pool = recording.called();
    if recording.lines.is_empty() && recording.pools.iter().any(|pool| pool.elsewhere) {
        return Err(CrashTestError::new(format!(
            "{pool}: the program mapped it and stored nothing to it, and yet it ended with other contents: the program wrote it through a \
             descriptor (write, pwrite), or another program did; only stores through a mapping are cut: have the program store to the \
             pool where it maps it, or record what starts both"
        )));
    }
    if recording.lines.is_empty() {
        return Err(CrashTestError::new(format!(
            "{pool}: the program mapped it and stored nothing to it, so that there is nothing to cut"
        )));
    }
    if has_promises {
        return Ok(()); // what is never sure was promised all the same: that is what the search shows
    }
    if platform.is_disk() && recording.sure.syncs == 0 {
        return Err(CrashTestError::new(format!(
            "{pool}: the program never syncs it (msync with MS_SYNC, fsync, fdatasync, sync), so that on a disk nothing it stored is ever \
             sure to be there: sync what must last; or, if it flushes lines of persistent memory, --platform adr (recordings made \
             before Sardonyx told a sync from a flush have none; record again)"
        )));
    }
    let flushed = any(|act| matches!(act, Act::Flush { .. } | Act::Store { past: true, .. }));
    if platform == Platform::Adr && !flushed {
        return Err(CrashTestError::new(format!(
            "{pool}: the program never flushes a line of it (no clwb, clflushopt, clflush, non-temporal store or msync), so \
             that nothing it stored is ever sure to be there: flush and fence what must last (libpmem does it on an ordinary \
             file only if PMEM_IS_PMEM_FORCE=1 is set while it is recorded), or test a platform that saves its caches: \
             --platform eadr"
        )));
    }
    let fenced = any(|act| matches!(act, Act::Fence | Act::Flush { ordered: true, .. }));
    if platform == Platform::Adr && !fenced {
        return Err(CrashTestError::new(format!(
            "{pool}: the program flushes lines and never fences (sfence, mfence or a locked instruction), so that no flush \
             is ever sure to be done: put a fence after the flushes"
        )));
    }
    Ok(())
}

pub struct Explored {
    pub shared: SearchState,
    pub found: Findings,
    pub replayed: Option<(Image, Ended, String)>,
}

/// Explores. `tell` is told the number of images tried; if it answers false, everything stops, as with the interrupt.
///
/// In turn: the recording is opened and checked; stores that the user assumes persistent are counted so; the oracle is
/// learned; the recovery runs without a cut; then the one image that is asked for is replayed, or rounds of searches are
/// made; and the images of causes are kept.
///
/// # Errors
/// Bad input, before any work; the recovery does not cope with the undisturbed pool, or with no image.
pub fn explore(question: &Question, interrupt: &Interrupt, tell: Tell<'_>) -> Result<Explored> {
    let loading = Instant::now();
    let mut recording = opened(question, interrupt)?;
    let assumed = rounds::assumed(question, &mut recording)?;
    let recovery = (question.options).recovery(question.recover.clone(), interrupt)?;
    let clock = match question.options.clock(interrupt)? {
        _ if question.replay.is_some() => Clock::new(None, interrupt.clone()),
        clock => clock,
    };
    let refusal = Refusal::named(&question.creation)
        .ok_or_else(|| CrashTestError::new("--creation: give orderly, status or skip"))?;
    let mut shared = SearchState::new(Trial::new(recovery, clock), recording, refusal);
    let oracle = learn_oracle(question, &shared.recording, &shared.trial.recovery)?;
    shared.trial.recovery.oracle = oracle;
    let folder = grounds::scratch()?;
    let grounds = grounds::grounds(&shared.recording, folder.path())?;
    let replay = match &question.replay {
        Some(name) => Some(Image::named(name, &shared.recording, &shared.course)?),
        None => None,
    };
    let undisturbed = undisturbed(
        &mut shared,
        question,
        &grounds,
        &folder.path().join("first"),
    )?;
    let mut found = Findings {
        undisturbed: undisturbed.map(|time| time.as_secs_f64()),
        time_limit: shared.trial.recovery.time.as_secs_f64(),
        loading: (loading.elapsed() - shared.trial.clock.passed()).as_secs_f64(),
        ..Findings::default()
    };
    if let Some(image) = replay {
        let replayed = replayed(question, &shared, &grounds, folder.path(), image)?;
        return Ok(Explored {
            shared,
            found,
            replayed: Some(replayed),
        });
    }
    match undisturbed {
        Some(_) => {
            let place = (&grounds[..], folder.path());
            rounds::look(question, &mut shared, place, assumed, &mut found, tell)?;
        }
        None => found.no_start = Some(NoStart::Undisturbed),
    }
    if let Some(keep) = &question.options.keep {
        leave(&mut shared, &grounds, folder.path(), &found, keep)?;
    }
    found.recoveries = shared.trial.count();
    let flaky = shared.trial.flaky.load(Ordering::Relaxed);
    if flaky > 0 {
        shared.recording.doubts.push(Reason::Flaky.because(format!(
            "the recovery is flaky: on {flaky} images it failed in one run and coped in another, and nothing is said of \
             these; have it do the same each time"
        )));
    }
    found.doubts = shared.recording.doubts.clone();
    found.seconds = shared.trial.clock.passed().as_secs_f64();
    Ok(Explored {
        shared,
        found,
        replayed: None,
    })
}

/// The recording in the units of the question's platform. A program that flushes no line and syncs gets those of a
/// disk, unless the question says otherwise.
fn on_platform(question: &Question, interrupt: &Interrupt) -> Result<Recording> {
    let named = match question.platform.as_str() {
        "auto" => None,
        name => Some(Platform::named(name).ok_or_else(|| {
            CrashTestError::new("--platform: give auto, adr, eadr, pages or sectors")
        })?),
    };
    let mut recording = question.opened(named.unwrap_or(Platform::Adr), interrupt)?;
    let Sure { flushes, syncs } = recording.sure;
    let times = if syncs == 1 { "once" } else { "several times" };
    match (named, flushes, syncs) {
        (None, 0, 1..) => {
            recording = question.opened(Platform::Pages, interrupt)?;
            recording.notes.push(format!(
                "the program flushes no line and syncs {times} (msync, fsync), so it is tested as on a file on a disk, where each page of \
                 4096 bytes may be as it was at any moment since it was synced: --platform pages; sectors is a disk that may tear a page \
                 between its sectors of 512 bytes, adr is persistent memory"
            ));
        }
        (None | Some(Platform::Adr), _, 1..) => recording.notes.push(format!(
            "the program also syncs {times} (msync, fsync); were the file on a disk, only that would make sure of anything: --platform pages \
             tests that"
        )),
        (Some(Platform::Pages | Platform::Sectors), 1.., _) => recording.notes.push(
            "the program flushes lines, which makes sure of nothing on a file on a disk; --platform adr is persistent memory".to_owned(),
        ),
        _ => {}
    }
    Ok(recording)
}

/// Opens the recording of a question, which must have stores and what the question asks for.
fn opened(question: &Question, interrupt: &Interrupt) -> Result<Recording> {
    let mut recording = on_platform(question, interrupt)?;
    let platform = recording.platform;
    if question.tear && platform.is_disk() {
        return Err(CrashTestError::new(format!(
            "--tear words: is for lines of persistent memory; on --platform {} a {} is written whole or not at all, as its name says",
            platform.name(),
            platform.of_unit(),
        )));
    }
    let wants_acks = question.wants_acks();
    check(
        &recording,
        platform,
        wants_acks && !recording.acks.is_empty(),
    )?;
    if wants_acks {
        recording.cut_at_promises();
    }
    if let Some(order) = &question.thread_order {
        orders::apply(&mut recording, order, wants_acks)?;
    }
    if question.source {
        Sources::new(&recording).check()?;
    }
    if wants_acks && !recording.has_acks {
        return Err(CrashTestError::new(format!(
            "--recover asks for {{acks}}, and {} does not keep what the program printed; record it with --acks",
            question.recording.display()
        )));
    }
    if let Some(name) = unknown_pool(&question.recover, recording.pools.len()) {
        return Err(CrashTestError::new(format!(
            "--recover: {name} stands for no pool, there are {}: {}",
            recording.pools.len(),
            recording.called()
        )));
    }
    if wants_acks && recording.acks.is_empty() {
        recording.doubts.push(Reason::nothing_printed(
            "the recording keeps what the program printed",
            "name the descriptor with --acks-fd when it is recorded",
        ));
    }
    if !question.options.allow_failure {
        let doubts = ended_badly(&recording);
        recording.doubts.extend(doubts);
    }
    Ok(recording)
}

/// The doubt of a recording whose program failed, or was ended before its end.
fn ended_badly(recording: &Recording) -> Option<Doubt> {
    match recording.ended {
        Some(ended) if ended != Ended::Status(0) => {
            Some(Reason::program_failed(&ended.to_string()))
        }
        _ if recording.cut_short => Some(Reason::recording_ended(
            "--limit, Ctrl-C or SIGKILL",
            "record all of it",
        )),
        _ => None,
    }
}

/// Runs the recovery on one image, and saves the image if it is to be kept.
fn replayed(
    question: &Question,
    shared: &SearchState,
    grounds: &[File],
    folder: &Path,
    image: Image,
) -> Result<(Image, Ended, String)> {
    let mut judge = Judge::new(shared, grounds, &folder.join("replay"))?;
    let acked = judge.acked(image.cut);
    let bench = &mut judge.bench;
    let ended = bench.run(&image, acked, shared.trial.recovery.time)?;
    let said = bench.said();
    if let Some(keep) = &question.options.keep {
        std::fs::create_dir_all(keep).map_err(CrashTestError::io(keep.display()))?;
        bench.copy.save(&image, &keep.join("replayed.pool"))?;
        if shared.trial.recovery.wants_acks() {
            let to = keep.join("replayed.acks");
            std::fs::copy(&bench.acks, &to).map_err(CrashTestError::io(to.display()))?;
        }
    }
    Ok((image, ended, said))
}

/// Saves the images of each cause in a folder: the one that fails, and the one that passes.
fn leave(
    shared: &mut SearchState,
    grounds: &[File],
    folder: &Path,
    found: &Findings,
    keep: &Path,
) -> Result<()> {
    std::fs::create_dir_all(keep).map_err(CrashTestError::io(keep.display()))?;
    for (round, looked) in found.rounds.iter().enumerate() {
        // A cut's number is that among the cuts of its round.
        shared.course = looked.course.clone();
        let judge = Judge::new(shared, grounds, &folder.join(format!("keep-{round}")));
        let copy = &mut judge?.bench.copy;
        for (number, (violation, reduced)) in found.reduced.iter().enumerate() {
            if found.violations[*violation].round != round {
                continue;
            }
            let number = number + 1;
            copy.save(&reduced.image, &keep.join(format!("{number}-fails.pool")))?;
            if let Some(passes) = &reduced.passes {
                copy.save(passes, &keep.join(format!("{number}-passes.pool")))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::report;
    use crate::testing::{question, written};
    use serde_json::{Map, Value, json};

    /// The report on a recording whose provenance `change` has changed, with a recovery of these words.
    fn told(
        recover: &[&str],
        allow_failure: bool,
        change: impl FnOnce(&mut Map<String, Value>),
    ) -> Value {
        let folder = tempfile::tempdir().unwrap();
        let mut asked = question();
        asked.recording = written(folder.path(), change);
        asked.recover = recover.iter().map(|&word| word.to_owned()).collect();
        asked.options.allow_failure = allow_failure;
        report(
            &asked,
            &explore(&asked, &Interrupt::default(), &|_, _| true).unwrap(),
        )
    }

    #[test]
    fn a_program_that_failed_or_was_ended_says_nothing_unless_that_is_allowed() {
        let cases = [
            ("exit", json!({"status": 0}), None),
            ("exit", json!({"status": 1}), Some("program-failed")),
            ("exit", json!({"signal": 6}), Some("program-failed")),
            ("complete", json!(true), None),
            ("complete", json!(false), Some("recording-ended")),
        ];
        for (key, value, reason) in cases {
            for allowed in [false, true] {
                let told = told(&["head", "-c", "1", "{pool}"], allowed, |more| {
                    more.insert(key.to_owned(), value.clone());
                });
                let wanted = reason.filter(|_| !allowed);
                assert_eq!(told["doubt"]["reason"].as_str(), wanted, "{value}");
                assert_eq!(told["unsaid"].is_string(), wanted.is_some(), "{value}");
            }
        }
    }

    #[test]
    fn a_time_that_is_none_is_an_error() {
        for budget in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
            for limits in [false, true] {
                let folder = tempfile::tempdir().unwrap();
                let mut asked = question();
                asked.recording = written(folder.path(), |_| ());
                asked.recover = vec!["true".to_owned()];
                match limits {
                    true => asked.options.time_limit = Some(budget),
                    false => asked.options.budget = budget,
                }
                let error = explore(&asked, &Interrupt::default(), &|_, _| true)
                    .err()
                    .unwrap();
                assert!(error.to_string().contains("is no time"), "{error}");
            }
        }
    }

    #[test]
    fn what_was_promised_and_is_not_looked_for_is_told() {
        let acks = |more: &mut Map<String, Value>| {
            more.insert("acks".to_owned(), json!([[3, "done"]]));
        };
        let rests_on = |script| {
            let told = told(&["sh", "-c", script, "{pool}", "{acks}"], false, acks);
            assert_eq!(told["verdict"], "no violation");
            told["rests_on"].as_array().unwrap().len()
        };
        assert_eq!(rests_on("head -c 1 $0"), 1);
        assert_eq!(rests_on("head -c 1 $0 < $1"), 0);
    }
}
