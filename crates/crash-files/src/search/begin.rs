//! What comes before images are tried: whether the recording says anything, the recovery without a cut, and the first cut
//! at which it copes.

use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use sardonyx_crash_test::recovery::damage::FORMS;
use sardonyx_crash_test::recovery::ending::Ended;
use sardonyx_crash_test::verdict::{self, Doubt, Reason};
use sardonyx_crash_test::{CrashTestError, Result};

use crate::folder_copy::{Case, Worker};
use crate::image_choice::FolderImage;
use crate::operations::{Inode, Operation};
use crate::question::Question;
use crate::recording::RecordedRun;
use crate::search::findings::Found;
use crate::tree::FileTree;

/// The recovery is tried at this many cuts until it first copes.
const STARTS: usize = 500;

/// How the recovery refuses the folder from before, if it does, and the first cut at which it copes with what is sure.
pub(crate) type Begun = (Option<Ended>, Option<u32>);

/// Runs the recovery on the folder as the program left it, unless its time is known, and looks for the first cut.
pub(crate) fn begin(
    case: &Case,
    folder: &Path,
    alone: Option<f64>,
    found: &mut Found,
) -> Result<Result<Begun, Doubt>> {
    let mut worker = Worker::new(case, &folder.join("first"))?;
    let doubt = match alone {
        Some(known) => {
            found.alone = known;
            None
        }
        None => undisturbed(case, &mut worker, folder, found)?,
    };
    match doubt {
        Some(doubt) => Ok(Err(doubt)),
        None => {
            let begun = first_success(case, &mut worker)?;
            if let (Some(start), None) = (begun.1, alone) {
                busiest(case, &mut worker, start, found)?;
            }
            Ok(Ok(begun))
        }
    }
}

/// Sees what the recovery reads at the cut, from one on, where most effects are pending.
fn busiest(case: &Case, worker: &mut Worker<'_>, start: u32, found: &mut Found) -> Result<()> {
    let model = &case.model;
    let mut pending = 0;
    let changes = (1..).zip(model.of_operation.iter().zip(&model.made_sure));
    let pending = changes.map(|(cut, (begun, sure))| {
        pending += begun.len();
        pending -= sure.len();
        (pending, std::cmp::Reverse(cut))
    });
    let busiest = pending.filter(|(_, cut)| cut.0 >= start).max();
    let Some((_, std::cmp::Reverse(cut))) = busiest else {
        return Ok(());
    };
    let tree = worker.tree(&case.whole(cut));
    match worker.bench.opened(&tree, case.acked(cut)) {
        Err(CrashTestError::Late) => {} // it is only about the order of images
        opened => found.reads.extend(read_files(&tree, opened?.read)),
    }
    Ok(())
}

/// The bytes that were read of each file of a tree.
fn read_files(
    tree: &FileTree,
    read: Vec<Vec<Range<u64>>>,
) -> impl Iterator<Item = (Inode, Vec<Range<u64>>)> {
    tree.files().map(|(inode, _)| inode).zip(read)
}

/// Runs the recovery on the folder as the program left it, takes its time, and sees what it reads. Returns what is wrong
/// if it fails, or looks at nothing.
fn undisturbed(
    case: &Case,
    worker: &mut Worker<'_>,
    folder: &Path,
    found: &mut Found,
) -> Result<Option<Doubt>> {
    let cut = case.last_cut();
    let (tree, acked) = (worker.tree(&case.whole(cut)), case.acked(cut));
    let (bench, recovery) = (&mut worker.bench, &case.trial.recovery);
    let began = Instant::now();
    let ended = bench.run(&tree, acked, recovery.time)?;
    let took = began.elapsed();
    found.alone = took.as_secs_f64();
    if recovery.fails(ended) {
        let said = bench.said();
        let said = said.lines().next_back().unwrap_or("it printed nothing");
        return Ok(Some(Reason::FailsUndisturbed.because(format!(
            "the recovery fails on the folder as the program left it ({ended}: {said}); mend the recovery's command, or give its status \
             with --ok"
        ))));
    }
    let opened = bench.opened(&tree, acked)?;
    found.reads.extend(read_files(&tree, opened.read));
    if opened.acks == Some(false) {
        found.rests_on.push(verdict::ACKS_UNREAD.to_owned());
    }
    let noticed = bench.noticed_damage(&tree, acked, (&folder.join("damaged"), took))?;
    // The first form is an empty folder.
    if noticed != Some(0) && recovery.wants_acks() && !case.trial.printed.is_empty() {
        found.notes.push(
            "the recovery also copes with an empty folder, whatever had been promised: that all is lost is no violation to it"
                .to_owned(),
        );
    }
    if noticed.is_some() {
        return Ok(None);
    }
    if opened.copies.is_some_and(|seen| !seen.contains(&true)) {
        return Ok(Some(Reason::OpensNothing.because(
            "the recovery opens no file of the folder, and copes with an empty one: have it look at what the program keeps",
        )));
    }
    found.notes.push(format!(
        "the recovery copes with {} damages to the bytes of all files: only a failure or a time-out of its own is a violation to it",
        FORMS - 1
    ));
    Ok(None)
}

/// The doubt of a recording that says nothing at all.
pub(crate) fn nothing(recording: &RecordedRun) -> Option<Doubt> {
    if let Some(path) = &recording.unexplained {
        return Some(Reason::Unexplained.because(format!(
            "{path}: is not as the recorded operations leave it, so something wrote it that was not recorded (a program \
             that ran beside, or a system call that is not followed); run it alone"
        )));
    }
    let quiet = recording.operations.iter().all(Operation::is_quiet);
    quiet.then(|| {
        Reason::NothingChanged.because(
            "the program changed nothing below the folder; name the folder that it works in with --files",
        )
    })
}

/// The doubts of a recording whose program failed, was ended early, or promised nothing where it was listened to.
pub(crate) fn recorded_badly(question: &Question, case: &Case) -> Vec<Doubt> {
    let recording = &case.recording;
    let mut doubts = Vec::new();
    match recording.ended {
        _ if question.options.allow_failure => {}
        Ended::Status(0) => {}
        Ended::TimedOut => doubts.push(Reason::recording_ended(
            &format!("--record-limit {} s", question.record_limit),
            "raise it",
        )),
        ended => doubts.push(Reason::program_failed(&ended.to_string())),
    }
    if case.trial.recovery.names_acks() && case.trial.printed.is_empty() {
        let kept = match question.acks_socket {
            true => "{acks} keeps what the program sends to sockets".to_owned(),
            false => format!(
                "{{acks}} keeps what the program writes to descriptor {}",
                question.acks_fd
            ),
        };
        let others: Vec<&str> = recording.other_acks.iter().map(|one| one.named()).collect();
        let named = match others[..] {
            [] => "name the descriptor with --acks-fd".to_owned(),
            _ => format!("name where it wrote to, {}", others.join(" or ")),
        };
        doubts.push(Reason::nothing_printed(&kept, &named));
    }
    doubts
}

/// What an answer rests on if nothing that the program did is ever sure, and nothing is held against it either.
pub(crate) fn nothing_sure(case: &Case) -> Option<String> {
    let syncs = case.recording.operations.iter().any(Operation::syncs);
    (!syncs && !case.trial.recovery.names_acks()).then(|| {
        "the program syncs nothing, and --recover has no {acks}: nothing had to be there after a cut, and only that the recovery copes \
         with whatever is there was tried"
            .to_owned()
    })
}

/// Finds how the recovery refuses the folder from before, if it does, and the first cut at which it copes with what is
/// sure. Only cuts at which more has become sure are tried.
fn first_success(case: &Case, worker: &mut Worker<'_>) -> Result<Begun> {
    let mut refusal = None;
    let recovery = &case.trial.recovery;
    let changes = |cut: &u32| *cut == 0 || !case.model.made_sure[*cut as usize - 1].is_empty();
    for cut in (0..=case.last_cut()).filter(changes).take(STARTS) {
        let tree = worker.tree(&FolderImage {
            cut,
            present: Vec::new(),
            stale: false,
        });
        // The printed text is left out, so that only what is sure counts.
        let ended = worker.bench.run(&tree, 0, recovery.time)?;
        match recovery.fails(ended) {
            false => return Ok((refusal, Some(cut))),
            true => refusal = refusal.or(Some(ended)),
        }
    }
    Ok((refusal, None))
}
