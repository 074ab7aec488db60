//! Records a program and searches for images with which its recovery fails; and does so again with one call failing.

use std::path::Path;
use std::time::Duration;

use sardonyx_crash_test::images::grounds::scratch;
use sardonyx_crash_test::interrupt::Interrupt;
use sardonyx_crash_test::question::seconds;
use sardonyx_crash_test::recording::source::Sources;
use sardonyx_crash_test::recovery::bench::ImageCopy;
use sardonyx_crash_test::recovery::bench::{Tell, Trial};
use sardonyx_crash_test::recovery::said;
use sardonyx_crash_test::verdict::{Doubt, Reason};
use sardonyx_crash_test::{CrashTestError, Result};

use crate::file_system::{ALL, FileSystem};
use crate::folder_copy::{Case, Worker};
use crate::image_choice::ImagePlan;
use crate::image_order::ImageOrder;
use crate::model::Model;
use crate::places::{CallSite, keys, place, places};
use crate::question::Question;
use crate::reads::RecoveryReads;
use crate::recording::tracing::{Run, record};
use crate::recording::{Fault, RecordedRun};
use crate::search::begin::{begin, nothing, nothing_sure, recorded_badly};
use crate::search::findings::{Explored, Found};
use crate::search::look::Search;

/// At most this many calls are made to fail, each in a run of its own.
const FAULTS: usize = 32;

/// Records the program, and searches; if the question asks for it, it repeats that with one sync or write after the
/// other failing.
///
/// # Errors
/// Bad input; the program or the recovery cannot be run.
pub fn explore(question: &Question, interrupt: &Interrupt, tell: Tell<'_>) -> Result<Explored> {
    let mut clean = question.clone();
    if question.errors {
        clean.options.budget /= 2.0;
    }
    let mut explored = explore_one(&clean, None, interrupt, tell)?;
    if !question.errors || !explored.found.doubts.is_empty() {
        return Ok(explored);
    }
    clean.options.allow_failure = true; // a call of it fails
    let faults = faults(&explored.recording);
    clean.options.budget /= faults.len().max(1) as f64;
    clean.options.keep = None;
    for (fault, shown) in faults {
        let start = &explored.recording.start;
        let failed = CrashTestError::io(question.files.display());
        let restored = start.restore(&question.files, &|| !interrupt.is_set());
        if interrupt.is_set() {
            break; // what there is until then is told
        }
        restored.map_err(failed)?;
        let alone = explored.found.alone;
        let one = match explore_one(&clean, Some((fault, alone)), interrupt, tell) {
            Err(CrashTestError::Cancelled) => break,
            one => one?,
        };
        explored.errors.push((shown, one));
    }
    Ok(explored)
}

/// The first and the last call of each site, as they are shown.
fn faults(recording: &RecordedRun) -> Vec<(Fault, String)> {
    let mut sources = Sources::new(&recording.places);
    let mut at: Vec<(String, Vec<usize>)> = Vec::new();
    for (number, call) in recording.faultable.iter().enumerate() {
        let place = place(recording, &mut sources, call.site, call.command).text;
        let name = call.shown.split('(').next().unwrap_or_default();
        let key = format!("{name} at {place}");
        match at.iter_mut().find(|(known, _)| *known == key) {
            Some((_, numbers)) => numbers.push(number),
            None => at.push((key, vec![number])),
        }
    }
    let mut found = Vec::new();
    for (key, numbers) in at {
        let (_, place) = key.split_once(" at ").unwrap_or_default();
        for number in [numbers[0], *numbers.last().unwrap_or(&0)] {
            let call = &recording.faultable[number];
            let (error, name) = match call.syncs {
                true => (libc::EIO, "EIO"),
                false => (libc::ENOSPC, "ENOSPC"),
            };
            let shown = format!("{} at {place} failing with {name}", call.shown);
            found.push((Fault { number, error }, shown));
        }
        if numbers.len() == 1 {
            found.pop();
        }
    }
    found.truncate(FAULTS);
    found
}

/// One run. With a fault it is known how many seconds the recovery takes.
fn explore_one(
    question: &Question,
    fault: Option<(Fault, f64)>,
    interrupt: &Interrupt,
    tell: Tell<'_>,
) -> Result<Explored> {
    let platform = FileSystem::named(&question.platform).ok_or_else(|| {
        let names = ALL.map(|known| known.name).join(", ");
        CrashTestError::new(format!("--platform: give one of {names}"))
    })?;
    let keys = platform.with(question.sector, question.atomic_page);
    let platform = keys.map_err(CrashTestError::new)?;
    // The folder of the images takes the place of the folder of pools.
    let words = question.recover.iter();
    let words = words.map(|word| word.replace("{dir}", "{pools}")).collect();
    let recovery = question.options.recovery(words, interrupt)?;
    let trial = Trial::new(recovery, question.options.clock(interrupt)?);
    let folder = scratch()?;
    let outputs = [folder.path().join("stdout"), folder.path().join("stderr")];
    let recording = record(&Run {
        words: &question.program,
        folder: &question.files,
        limit: seconds("--record-limit", question.record_limit)?,
        outputs: [&outputs[0], &outputs[1]],
        acks_fd: question.acks_fd,
        acks_socket: question.acks_socket,
        fault: fault.map(|(fault, _)| fault),
        interrupt,
    })?;
    let said = said(&outputs[1]);
    let model = Model::new(&recording.start, &recording.operations, platform);
    let places = places(&recording);
    interrupt.check()?;
    let mut case = Case::new(trial, recording, model);
    let mut found = Found::default();
    if !question.recover.is_empty() {
        let alone = fault.map(|(_, alone)| alone);
        let known = (&places[..], platform);
        found = search(question, &mut case, known, (folder.path(), alone), tell)?;
    }
    Ok(Explored {
        recording: case.recording,
        model: case.model,
        platform,
        places,
        found,
        said,
        errors: Vec::new(),
    })
}

/// Searches one recorded run. The budget begins here.
///
/// A recording that says nothing is not searched; what makes an answer doubtful is told all the same. Then the recovery
/// runs without a cut, the first cut is found, and images are tried.
fn search(
    question: &Question,
    case: &mut Case,
    (places, platform): (&[CallSite], FileSystem),
    (folder, alone): (&Path, Option<f64>),
    tell: Tell<'_>,
) -> Result<Found> {
    let mut found = Found::default();
    if let Some(doubt) = nothing(&case.recording) {
        found.doubts.push(doubt);
        return Ok(found);
    }
    found.doubts.extend(recorded_badly(question, case));
    found.rests_on.extend(nothing_sure(case));
    case.trial.clock.begin();
    let begun = match begin(case, folder, alone, &mut found) {
        Err(CrashTestError::Late) => Err(Reason::Budget.because(
            "the budget ended before it was known from which cut on the recovery copes; raise --budget",
        )),
        begun => begun?,
    };
    let (refusal, start) = match begun {
        Ok(begun) => begun,
        Err(doubt) => {
            found.doubts.push(doubt);
            found.seconds = case.trial.clock.passed().as_secs_f64();
            return Ok(found);
        }
    };
    let undisturbed = Duration::from_secs_f64(found.alone);
    case.trial
        .learn_time(undisturbed, question.options.time_limit);
    found.start = start;
    let reads = RecoveryReads::new(std::mem::take(&mut found.reads));
    let case: &Case = case;
    let search = Search::new(case, keys(places), (start, refusal), found);
    let operations = &case.recording.operations;
    let (stale, seed) = (platform.shows_stale, question.options.seed);
    let held_to = case.trial.recovery.wants_acks();
    let order = match question.reads_first {
        true => ImageOrder::new(&case.model, operations, (&reads, held_to)),
        false => ImageOrder::of_all(&case.model),
    };
    let plan = ImagePlan::new(&case.model, order, stale, seed);
    let mut found = search.all(plan, question.options.workers(), folder, tell)?;
    let doubts = doubts(&found, case.trial.recovery.wants_acks());
    found.doubts.extend(doubts);
    if let Some(keep) = &question.options.keep {
        leave(case, &found, folder, keep)?;
    }
    Ok(found)
}

/// The reasons why the search says nothing if it found no violation.
fn doubts(found: &Found, wants_acks: bool) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    if found.passes == 0 {
        doubts.push(
            Reason::Budget
                .because("the budget ended before all cuts were tried once; raise --budget"),
        );
    }
    if found.start.is_none() {
        let promise = match wants_acks {
            true => "and it printed nothing that it could be held to",
            false => "and --recover has no {acks}, what the program had printed, to hold it to",
        };
        doubts.push(Reason::NeverSure.because(format!(
            "the recovery copes with nothing that is sure at any cut, {promise}; have the program sync its files, or start it on a \
             folder with which the recovery copes"
        )));
    }
    if found.flaky > 0 {
        doubts.push(Reason::Flaky.because(format!(
            "the recovery is flaky: on {} images it failed in one run and coped in another; have it do the same each time",
            found.flaky
        )));
    }
    doubts
}

/// Saves the images of each cause in a folder: the one that fails, and the one with everything until the cut.
fn leave(case: &Case, found: &Found, folder: &Path, keep: &Path) -> Result<()> {
    std::fs::create_dir_all(keep).map_err(CrashTestError::io(keep.display()))?;
    let mut worker = Worker::new(case, &folder.join("keep"))?;
    for (number, cause) in (1..).zip(&found.causes) {
        let image = &cause.reduced.image;
        for (name, image) in [("fails", image.clone()), ("whole", case.whole(image.cut))] {
            let place = keep.join(format!("{number}-{name}"));
            let tree = worker.tree(&image);
            worker.bench.copy.save(&tree, &place)?;
        }
        let acks = keep.join(format!("{number}-acks"));
        let printed = &case.trial.printed[..case.acked(image.cut)];
        std::fs::write(&acks, printed).map_err(CrashTestError::io(acks.display()))?;
    }
    Ok(())
}
