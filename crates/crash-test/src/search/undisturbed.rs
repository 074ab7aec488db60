//! The recovery on the pool as the program left it: it must cope and write to nothing but its copy, and its time says
//! how long a recovery takes.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::images::{Floors, Image, Kind, Over, WHOLE};
use crate::question::Question;
use crate::recording::Recording;
use crate::recording::persistence::Course;
use crate::recording::pools::{Pool, hash};
use crate::recovery::bench::ImageCopy;
use crate::recovery::damage::FORMS;
use crate::recovery::ending::Ended;
use crate::recovery::opened_files::Opened;
use crate::search::judge::{Judge, SearchState};
use crate::verdict::{self, Reason};
use crate::{CrashTestError, Result};

/// Runs the recovery twice on the pool as the program left it: it must cope, and it must leave the program's own pool
/// unchanged. The budget's clock begins here. Returns the shorter time, or `None` if the budget ends before the first
/// end.
///
/// In turn: it copes twice; the files that it opens are looked at; damaged copies tell whether it checks anything; and its
/// time says how long a recovery may take.
///
/// # Errors
/// The recovery does not cope, or writes elsewhere.
pub(crate) fn undisturbed(
    shared: &mut SearchState,
    question: &Question,
    grounds: &[File],
    folder: &Path,
) -> Result<Option<Duration>> {
    let before = hashes(&shared.recording)?;
    let last = shared.course.cuts.len() as u32 - 1;
    let all = everything(&shared.recording, &shared.course);
    let image = Image {
        cut: last,
        over: all,
        kind: Kind::All,
    };
    let mut judge = Judge::new(shared, grounds, folder)?;
    let (bench, recovery) = (&mut judge.bench, &shared.trial.recovery);
    // The first image of all takes long to make, because every line differs.
    bench.copy.make(&image)?;
    shared.trial.clock.begin();
    let acked = shared.recording.acked(u64::MAX);
    let mut least: Option<Duration> = None;
    for _ in 0..2 {
        let begun = Instant::now();
        let ended = match bench.run(&image, acked, recovery.time) {
            Err(CrashTestError::Late) => break,
            ended => ended?,
        };
        if recovery.fails(ended) {
            return Err(failed(&shared.recording, &bench.said(), ended));
        }
        let took = begun.elapsed();
        least = Some(least.map_or(took, |least| least.min(took)));
    }
    let opened = match least {
        Some(_) => bench.opened(&image, acked)?,
        None => Opened::default(),
    };
    let checks = match least {
        Some(least) if question.replay.is_none() => {
            let place = folder.join("damaged");
            let noticed = bench.noticed_damage(&image, acked, (&place, least))?;
            noticed.is_some()
        }
        _ => true,
    };
    drop(judge);
    check_opened(&mut shared.recording, &opened, &before)?;
    if !checks {
        shared.recording.notes.push(format!(
            "the recovery copes with all that the program wrote turned into zeros, into random bytes and into {} mixtures of both with what \
             it was: only a failure or a time-out of its own is a violation to it",
            FORMS - 2
        ));
    }
    if let Some(least) = least {
        let limit = question.options.time_limit;
        shared.trial.learn_time(least, limit);
    }
    Ok(least)
}

/// The error for a recovery that failed on the pool as the program left it, with the remedy.
fn failed(recording: &Recording, said: &str, ended: Ended) -> CrashTestError {
    let said = match said {
        "" => String::new(),
        said => format!(": {said}"),
    };
    if let (Ended::Signal(_), Some((address, count))) = (ended, recording.addresses()) {
        return CrashTestError::new(format!(
            "--recover: it dies of {ended} on the pool as the program left it, and the pool holds {count} addresses of its own, \
             of where it lay while it was recorded ({address:#x}): have the recovery map it there as well (mmap with that address; for \
             libpmem PMEM_MMAP_HINT={address:x} in the environment of both the recording and the crash test){said}"
        ));
    }
    if recording.pools.iter().any(|pool| pool.elsewhere) {
        return CrashTestError::new(format!(
            "--recover: it fails ({ended}) on what the recording's stores make of {}, which is not what the program left: it was also \
             written in a way that was not recorded (by a child that was left out, by another program, or through a descriptor); have \
             the program store to it where it maps it, and record all that does{said}",
            recording.called()
        ));
    }
    CrashTestError::new(format!(
        "--recover: it fails on the pool as the program left it ({ended}), so that a failure after a cut would say \
         nothing; correct the check, or name its statuses with --ok{said}"
    ))
}

/// Refuses a recovery that opens or writes to other files than its copies, and notes copies that it did not open.
/// `before` has the hash of each of the program's own pools from before the recovery ran.
fn check_opened(
    recording: &mut Recording,
    opened: &Opened,
    before: &[Option<blake3::Hash>],
) -> Result<()> {
    if let Some(file) = opened.written.first() {
        return Err(CrashTestError::new(format!(
            "--recover: it opens {} for writing, and not only the copy that it is given: many run at a time, and each may \
             write to {{pool}} and beside it only; have it do so, or print",
            file.display()
        )));
    }
    for ((pool, hash), now) in recording.pools.iter().zip(before).zip(hashes(recording)?) {
        if *hash != now {
            return Err(CrashTestError::new(format!(
                "--recover: it writes to {}, and not to the copy that it is given; use {{pool}} in its command",
                pool.path.display()
            )));
        }
    }
    let several = recording.pools.len() > 1;
    if let (true, Some(file)) = (several, opened.own.first()) {
        return Err(CrashTestError::new(format!(
            "--recover: it opens {}, the program's own, and not the copy that it is given; use {{pool}}, {{pool2}} .. in its command, or \
             {{pools}} for the folder that holds all copies under their names",
            file.display()
        )));
    }
    if opened.copies.iter().any(|seen| !seen.contains(&true)) {
        recording.doubts.push(Reason::OpensNothing.because(format!(
            "the recovery opens no copy of {}, so that what a cut leaves of it decides nothing; have it open {{pool}}",
            recording.called()
        )));
    }
    if opened.acks == Some(false) {
        recording.rests_on.push(verdict::ACKS_UNREAD.to_owned());
    }
    let notes = &mut recording.notes;
    for (pool, seen) in recording.pools.iter().zip(opened.copies.iter().flatten()) {
        if several && !seen {
            notes.push(format!(
                "the recovery did not open its copy of {}, so that what a cut leaves of it decides nothing: give it {{pool}}, {{pool2}} .. in \
                 the order of --pool, or {{pools}} for the folder that holds all under their names",
                pool.path.display()
            ));
        }
    }
    Ok(())
}

/// The hash of each of the program's own pools; `None` if it cannot be read.
fn hashes(recording: &Recording) -> Result<Vec<Option<blake3::Hash>>> {
    let one = |pool: &Pool| match sardonyx_base::regular::open(&pool.path) {
        Ok(mut file) => Ok(hash(&mut file, &recording.interrupt)?.ok()),
        Err(_) => Ok(None),
    };
    recording.pools.iter().map(one).collect()
}

fn everything(recording: &Recording, course: &Course) -> Vec<Over> {
    let mut floors = Floors::without_hashes(recording, course);
    floors.go(course.cuts.len() as u32 - 1, |_, _| ());
    let last = recording.lines.iter().enumerate().map(|(slot, line)| Over {
        slot: slot as u32,
        version: line.versions.last(),
        words: WHOLE,
    });
    last.filter(|over| floors.floor[over.slot as usize] != over.version)
        .collect()
}
