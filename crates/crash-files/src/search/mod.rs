//! The search: several workers try images until the budget is spent or nothing new is found.

pub mod bench;
pub mod reduce;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};
use sardonyx_crash_test::images::copy::scratch;
use sardonyx_crash_test::interrupt::Interrupt;
use sardonyx_crash_test::question::seconds;
use sardonyx_crash_test::recording::NOWHERE;
use sardonyx_crash_test::recording::source::{Frame, Sources, caller};
use sardonyx_crash_test::recovery::damage::FORMS;
use sardonyx_crash_test::recovery::ending::Ended;
use sardonyx_crash_test::recovery::{Recovery, said, without_numbers};
use sardonyx_crash_test::report::verdict::{self, Doubt, Reason};
use sardonyx_crash_test::search::clock::Clock;
use sardonyx_crash_test::{CrashTestError, Result};

use crate::image_choice::{FolderImage, ImageKind, ImagePlan, OperationPart};
use crate::model::{Class, Model, Platform};
use crate::operations::{Act, Operation};
use crate::question::Question;
use crate::recording::{Fault, RecordedRun, Run, record};
use crate::tree::Inode;
use bench::{Bench, Case};
use reduce::{Reduced, reduce};

/// A recovery may take this many times as long as without a cut, or the time below if that is longer.
const SLOWER: f64 = 50.0;
const LEAST: f64 = 2.0;
/// A recovery that takes this many times as long on a damaged folder, and at least the time below, has noticed the
/// damage.
const HASTE: f64 = 10.0;
const LEAST_HASTE: f64 = 0.2;
/// This many failing images of one cause are run; more are left out.
const SAME: u64 = 8;
/// At most this many causes are looked for.
const MOST: usize = 24;
/// At most this many calls are made to fail, each in a run of its own.
const FAULTS: usize = 32;
/// More files than this that differ in numbers only are a series.
const SERIES: usize = 4;
/// The place of the file in a [`CallSite::key`].
const FILE: usize = 1;
/// At most this many functions tell two operations of one line apart: the innermost ones.
const FUNCTIONS: usize = 4;
/// The recovery is tried at this many cuts until it first copes.
const STARTS: usize = 500;

/// The line of code, or the command, that asked for an operation.
#[derive(Clone, Debug)]
pub struct CallSite {
    /// `FILE:LINE`, or the command.
    pub text: String,
    pub frame: Option<Frame>,
    pub stack: Vec<Frame>,
    /// What else tells this operation from others: the call, the file, and the user's functions that led to it.
    pub key: Vec<String>,
}

#[derive(Debug)]
pub struct Cause {
    pub reduced: Reduced,
    /// Places and classes, by which other images of the cause are known.
    early: FxHashSet<OperationPart>,
    late: FxHashSet<OperationPart>,
    pub violations: u64,
    pub seconds: f64,
}

#[derive(Debug, Default)]
pub struct Found {
    pub causes: Vec<Cause>,
    pub images: u64,
    pub kinds: FxHashMap<ImageKind, u64>,
    pub cuts: FxHashSet<u32>,
    pub violations: u64,
    pub unreduced: u64,
    /// The number of images that failed once and passed when they were run again.
    pub flaky: u64,
    pub left_out: u64,
    /// The number of refusals like that of the untouched folder, before anything was promised.
    pub refused: u64,
    /// The number of passes over all cuts that came to their end.
    pub passes: usize,
    pub finished: bool,
    pub recoveries: u64,
    pub seconds: f64,
    /// The seconds of the recovery without a cut.
    pub alone: f64,
    /// The first cut at which the recovery copes with what is sure.
    pub start: Option<u32>,
    pub doubts: Vec<Doubt>,
    pub rests_on: Vec<String>,
    pub notes: Vec<String>,
}

pub struct Explored {
    pub recording: RecordedRun,
    pub model: Model,
    pub platform: Platform,
    pub places: Vec<CallSite>,
    pub found: Found,
    /// The end of the program's standard error.
    pub said: String,
    /// The runs in which one call failed, each with that call.
    pub errors: Vec<(String, Explored)>,
}

struct Search<'a> {
    case: &'a Case,
    /// A number for the call site of each operation.
    keys: Vec<u32>,
    start: Option<u32>,
    refusal: Option<Ended>,
    wants_acks: bool,
    plan: Mutex<ImagePlan<'a>>,
    seen: Mutex<FxHashSet<(blake3::Hash, usize)>>,
    found: Mutex<Found>,
    recoveries: AtomicU64,
    stop: AtomicBool,
}

/// Records the program, and searches; if the question asks for it, it repeats that with one sync or write after the
/// other failing.
///
/// # Errors
/// Bad input; the program or the recovery cannot be run.
pub fn explore(
    question: &Question,
    interrupt: &Interrupt,
    tell: &(dyn Fn(u64, u64) -> bool + Sync),
) -> Result<Explored> {
    let mut clean = question.clone();
    if question.errors {
        clean.budget /= 2.0;
    }
    let mut explored = explore_one(&clean, None, interrupt, tell)?;
    if !question.errors || !explored.found.doubts.is_empty() {
        return Ok(explored);
    }
    clean.allow_failure = true; // a call of it fails
    let faults = faults(&explored.recording);
    clean.budget /= faults.len().max(1) as f64;
    clean.keep = None;
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
    tell: &(dyn Fn(u64, u64) -> bool + Sync),
) -> Result<Explored> {
    let platform = Platform::named(&question.platform).ok_or_else(|| {
        let names = Platform::NAMES.join(", ");
        CrashTestError::new(format!("--platform: give one of {names}"))
    })?;
    let budget = seconds("--budget", question.budget)?;
    let time = match question.time_limit {
        Some(limit) => seconds("--time-limit", limit)?,
        None => budget,
    };
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
    let mut case = Case::new(question, recording, model, (budget, time), interrupt);
    let mut found = Found::default();
    if !question.recover.is_empty() {
        let alone = fault.map(|(_, alone)| alone);
        found = search(
            question,
            &mut case,
            &places,
            folder.path(),
            platform,
            alone,
            tell,
        )?;
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

impl Case {
    fn new(
        question: &Question,
        recording: RecordedRun,
        model: Model,
        (budget, time): (Duration, Duration),
        interrupt: &Interrupt,
    ) -> Case {
        let mut acks = Vec::new();
        let mut acked = vec![0];
        for operation in &recording.operations {
            if let Act::Acknowledge { text } = &operation.act {
                acks.extend_from_slice(text);
            }
            acked.push(acks.len());
        }
        // The folder of the images takes the place of the folder of pools.
        let words = question
            .recover
            .iter()
            .map(|word| word.replace("{dir}", "{pools}"));
        Case {
            clock: Clock::interrupted_by(Some(budget), interrupt.clone()),
            recording,
            model,
            recovery: Recovery {
                words: words.collect(),
                ok: question.ok.clone(),
                time,
                memory: question.memory_limit,
                oracle: None,
                interrupt: interrupt.clone(),
            },
            acks,
            acked,
        }
    }

    fn last(&self) -> FolderImage {
        let cut = self.recording.operations.len() as u32;
        self.whole(cut)
    }

    fn whole(&self, cut: u32) -> FolderImage {
        FolderImage {
            cut,
            kind: ImageKind::Whole,
            present: self.model.optional(cut),
            stale: false,
        }
    }
}

fn places(recording: &RecordedRun) -> Vec<CallSite> {
    let mut sources = Sources::new(&recording.places);
    let names = last_names(recording);
    let place = |one: &Operation| {
        let mut place = place(recording, &mut sources, one.site, one.command);
        let file = one.act.inode().and_then(|inode| names.get(&inode));
        let file = file.unwrap_or(&one.path);
        let call = one.shown.split('(').next().unwrap_or_default();
        place.key = vec![call.to_owned(), file.clone()];
        let own = place.stack.iter().filter(|frame| frame.own());
        let mut functions: Vec<String> = own.filter_map(|frame| frame.function.clone()).collect();
        functions.dedup();
        functions.truncate(FUNCTIONS);
        place.key.extend(functions);
        place
    };
    let mut places: Vec<CallSite> = recording.operations.iter().map(place).collect();
    join_series(&mut places);
    places
}

/// Gives files one name whose names differ in their numbers only, if one place of the program treats many of them: a
/// loop has made them, and one fault is in all. Few are told apart, because an interpreter's one line does all that its
/// script does.
fn join_series(places: &mut [CallSite]) {
    let pattern = |place: &CallSite| {
        let mut key = place.key.clone();
        key[FILE] = without_numbers(&key[FILE]);
        (place.text.clone(), key)
    };
    let mut files: FxHashMap<_, FxHashSet<String>> = FxHashMap::default();
    for place in places.iter() {
        let names = files.entry(pattern(place)).or_default();
        names.insert(place.key[FILE].clone());
    }
    for place in places {
        let (text, key) = pattern(place);
        if files[&(text, key.clone())].len() > SERIES {
            place.key = key;
        }
    }
}

/// The last path that each inode was given. A file that is written under a temporary name is known by its final one.
fn last_names(recording: &RecordedRun) -> FxHashMap<Inode, String> {
    let inodes = 0..recording.start.nodes.len() as Inode;
    let known = |inode| Some((inode, recording.start.path(inode)?));
    let mut names: FxHashMap<Inode, String> = inodes.filter_map(known).collect();
    for one in &recording.operations {
        if let Act::Create { inode, .. } | Act::Link { inode, .. } | Act::Rename { inode, .. } =
            one.act
        {
            names.insert(inode, one.path.clone());
        }
    }
    names
}

/// A line of source if the program has lines, or else its command.
fn place(recording: &RecordedRun, sources: &mut Sources<'_>, site: u32, command: u32) -> CallSite {
    let stack = match site {
        NOWHERE => Vec::new(),
        site => sources.stack(site),
    };
    let frame = caller(&stack).cloned();
    let command = recording
        .commands
        .get(command as usize)
        .map_or("?", String::as_str);
    let text = frame
        .as_ref()
        .map_or_else(|| format!("'{command}'"), Frame::place);
    CallSite {
        text,
        frame,
        stack,
        key: Vec::new(),
    }
}

fn search(
    question: &Question,
    case: &mut Case,
    places: &[CallSite],
    folder: &Path,
    platform: Platform,
    alone: Option<f64>,
    tell: &(dyn Fn(u64, u64) -> bool + Sync),
) -> Result<Found> {
    let mut found = Found::default();
    if let Some(doubt) = nothing(&case.recording) {
        found.doubts.push(doubt);
        return Ok(found);
    }
    found.doubts.extend(recorded_badly(question, case));
    found.rests_on.extend(nothing_sure(case));
    case.clock.begin();
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
            found.seconds = case.clock.passed().as_secs_f64();
            return Ok(found);
        }
    };
    if question.time_limit.is_none() {
        case.recovery.time = Duration::from_secs_f64((found.alone * SLOWER).max(LEAST));
    }
    case.clock.takes(Duration::from_secs_f64(found.alone));
    found.start = start;
    let operations = &case.recording.operations;
    let plan = ImagePlan::new(
        &case.model,
        operations,
        platform.shows_stale(),
        question.seed,
    );
    let search = Search {
        keys: keys(places),
        start,
        refusal,
        wants_acks: case.recovery.wants_acks(),
        plan: Mutex::new(plan),
        seen: Mutex::default(),
        found: Mutex::new(found),
        recoveries: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        case,
    };
    search.run(question, folder, tell)
}

/// How the recovery refuses the folder from before, if it does, and the first cut at which it copes with what is sure.
type Begun = (Option<Ended>, Option<u32>);

/// Runs the recovery on the folder as the program left it, unless its time is known, and looks for the first cut.
fn begin(
    case: &Case,
    folder: &Path,
    alone: Option<f64>,
    found: &mut Found,
) -> Result<Result<Begun, Doubt>> {
    let mut bench = Bench::new(case, &folder.join("first"))?;
    let doubt = match alone {
        Some(known) => {
            found.alone = known;
            None
        }
        None => undisturbed(case, &mut bench, found)?,
    };
    match doubt {
        Some(doubt) => Ok(Err(doubt)),
        None => Ok(Ok(first_success(case, &mut bench)?)),
    }
}

/// Runs the recovery on the folder as the program left it, and takes its time. Returns what is wrong if it fails.
fn undisturbed(case: &Case, bench: &mut Bench<'_>, found: &mut Found) -> Result<Option<Doubt>> {
    let last = case.last();
    let tree = bench.tree(&last);
    let began = Instant::now();
    let (ended, said) = bench.run(&tree, last.cut, case.recovery.time)?;
    found.alone = began.elapsed().as_secs_f64();
    let said = said.lines().next_back().unwrap_or("it printed nothing");
    if case.recovery.fails(ended) {
        return Ok(Some(Reason::FailsUndisturbed.because(format!(
            "the recovery fails on the folder as the program left it ({ended}: {said}); mend the recovery's command, or give its status \
             with --ok"
        ))));
    }
    let (opens_file, opens_acks) = bench.opens(&tree, last.cut)?;
    if !opens_acks {
        found.rests_on.push(verdict::ACKS_UNREAD.to_owned());
    }
    let patience = Duration::from_secs_f64((found.alone * HASTE).max(LEAST_HASTE));
    for form in 0..FORMS {
        let (ended, _) = bench.run(&tree.damaged(form), last.cut, patience)?;
        if case.recovery.fails(ended) {
            return Ok(None);
        }
        if form == 0 && case.recovery.wants_acks() && !case.acks.is_empty() {
            found.notes.push(
                "the recovery also copes with an empty folder, whatever had been promised: that all is lost is no violation to it"
                    .to_owned(),
            );
        }
    }
    if !opens_file {
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
fn nothing(recording: &RecordedRun) -> Option<Doubt> {
    if let Some(path) = &recording.unexplained {
        return Some(Reason::Unexplained.because(format!(
            "{path}: is not as the recorded operations leave it, so something wrote it that was not recorded (a program \
             that ran beside, or a system call that is not followed); run it alone"
        )));
    }
    let quiet = |one: &Operation| one.syncs() || one.acknowledges();
    recording.operations.iter().all(quiet).then(|| {
        Reason::NothingChanged.because(
            "the program changed nothing below the folder; name the folder that it works in with --files",
        )
    })
}

/// The doubts of a recording whose program failed, was ended early, or promised nothing where it was listened to.
fn recorded_badly(question: &Question, case: &Case) -> Vec<Doubt> {
    let recording = &case.recording;
    let mut doubts = Vec::new();
    match recording.ended {
        _ if question.allow_failure => {}
        Ended::Status(0) => {}
        Ended::TimedOut => doubts.push(Reason::recording_ended(
            &format!("--record-limit {} s", question.record_limit),
            "raise it",
        )),
        ended => doubts.push(Reason::program_failed(&ended.to_string())),
    }
    if case.recovery.names_acks() && case.acks.is_empty() {
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
fn nothing_sure(case: &Case) -> Option<String> {
    let syncs = case.recording.operations.iter().any(Operation::syncs);
    (!syncs && !case.recovery.names_acks()).then(|| {
        "the program syncs nothing, and --recover has no {acks}: nothing had to be there after a cut, and only that the recovery copes \
         with whatever is there was tried"
            .to_owned()
    })
}

fn keys(places: &[CallSite]) -> Vec<u32> {
    let mut known = FxHashMap::default();
    let mut numbers = Vec::with_capacity(places.len());
    for place in places {
        let new = known.len() as u32;
        numbers.push(*known.entry((&place.text, &place.key)).or_insert(new));
    }
    numbers
}

/// Finds how the recovery refuses the folder from before, if it does, and the first cut at which it copes with what is
/// sure.
fn first_success(case: &Case, bench: &mut Bench<'_>) -> Result<Begun> {
    let mut refusal = None;
    let changes = |cut: &u32| *cut == 0 || !case.model.made_sure[*cut as usize - 1].is_empty();
    let cuts = 0..=case.recording.operations.len() as u32;
    for cut in cuts.filter(changes).take(STARTS) {
        let tree = bench.tree(&FolderImage {
            cut,
            kind: ImageKind::Sure,
            present: Vec::new(),
            stale: false,
        });
        // The printed text is left out, so that only what is sure counts.
        let (ended, _) = bench.run(&tree, 0, case.recovery.time)?;
        match case.recovery.fails(ended) {
            false => return Ok((refusal, Some(cut))),
            true => refusal = refusal.or(Some(ended)),
        }
    }
    Ok((refusal, None))
}

impl Search<'_> {
    fn run(
        self,
        question: &Question,
        folder: &Path,
        tell: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<Found> {
        let threads = match question.threads {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
            threads => threads,
        };
        let work = |number: usize| {
            let done = self.work(&folder.join(format!("{number}")), tell);
            self.stop.fetch_or(done.is_err(), Ordering::Relaxed);
            done
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|n| scope.spawn(move || work(n))).collect();
            workers
                .into_iter()
                .try_for_each(|worker| match worker.join() {
                    Ok(done) => done,
                    Err(panic) => std::panic::resume_unwind(panic),
                })
        })?;
        let mut found = self.found.into_inner().unwrap_or_else(|e| e.into_inner());
        let plan = self.plan.into_inner().unwrap_or_else(|e| e.into_inner());
        found.passes = plan.pass;
        found.recoveries = self.recoveries.load(Ordering::Relaxed);
        found.seconds = self.case.clock.passed().as_secs_f64();
        let doubts = doubts(&found, self.wants_acks);
        found.doubts.extend(doubts);
        if let Some(keep) = &question.keep {
            leave(self.case, &found, folder, keep)?;
        }
        Ok(found)
    }

    fn work(&self, folder: &Path, tell: &(dyn Fn(u64, u64) -> bool + Sync)) -> Result<()> {
        let mut bench = Bench::new(self.case, folder)?;
        while !self.case.clock.is_spent() && !self.stop.load(Ordering::Relaxed) {
            let Some(image) = lock(&self.plan).next() else {
                lock(&self.found).finished = true;
                break;
            };
            if !tell(self.recoveries.load(Ordering::Relaxed), 0) {
                self.case.clock.end(); // whoever wants it to end gets what there is
                break;
            }
            match self.try_one(&mut bench, &image) {
                Err(CrashTestError::Late) => break,
                tried => tried?,
            }
        }
        Ok(())
    }

    fn try_one(&self, bench: &mut Bench<'_>, image: &FolderImage) -> Result<()> {
        let tree = bench.tree(image);
        let hash = (tree.hash(), self.moment(image.cut));
        lock(&self.found).cuts.insert(image.cut);
        if !lock(&self.seen).insert(hash) {
            return Ok(());
        }
        lock(&self.plan).new_images += 1;
        if self.is_known(image, true) {
            return Ok(());
        }
        let (ended, _) = self.recover(bench, &tree, image.cut)?;
        let mut found = lock(&self.found);
        found.images += 1;
        *found.kinds.entry(image.kind).or_default() += 1;
        if !self.case.recovery.fails(ended) {
            return Ok(());
        }
        if self.is_refusal(image.cut, ended) {
            found.refused += 1;
            return Ok(());
        }
        drop(found);
        if self.is_known(image, false) {
            return Ok(());
        }
        self.explain(bench, image)
    }

    fn explain(&self, bench: &mut Bench<'_>, image: &FolderImage) -> Result<()> {
        let seconds = self.case.clock.passed().as_secs_f64();
        let mut run = |image: &FolderImage| {
            let tree = bench.tree(image);
            let (ended, said) = self.recover(bench, &tree, image.cut)?;
            let fails = self.case.recovery.fails(ended) && !self.is_refusal(image.cut, ended);
            Ok(fails.then_some((ended, said)))
        };
        let reduced = reduce(&self.case.model, image, &mut run);
        let mut found = lock(&self.found);
        let reduced = match reduced {
            Ok(Some(reduced)) => reduced,
            Ok(None) => {
                found.flaky += 1;
                return Ok(());
            }
            Err(e) => {
                found.violations += 1;
                found.unreduced += 1;
                return Err(e);
            }
        };
        found.violations += 1;
        let key = |parts: &[OperationPart]| parts.iter().map(|part| self.key(*part)).collect();
        let (early, late) = (key(&reduced.early), key(&reduced.late));
        let same = |cause: &&mut Cause| cause.early == early && cause.late == late;
        if let Some(known) = found.causes.iter_mut().find(same) {
            known.violations += 1;
            return Ok(());
        }
        found.causes.push(Cause {
            reduced,
            early,
            late,
            violations: 1,
            seconds,
        });
        let enough = found.causes.len() >= MOST;
        self.stop.fetch_or(enough, Ordering::Relaxed);
        Ok(())
    }

    /// A part by its site; data and sizes of one site are one.
    fn key(&self, (operation, class): OperationPart) -> OperationPart {
        let class = if class == Class::Size {
            Class::Data
        } else {
            class
        };
        (self.keys[operation as usize], class)
    }

    /// Whether a known cause makes an image fail. Counts it, as left out if it has not been run.
    fn is_known(&self, image: &FolderImage, left_out: bool) -> bool {
        let mut found = lock(&self.found);
        if found.causes.is_empty() {
            return false;
        }
        let part = |number: u32| {
            let effect = &self.case.model.effects[number as usize];
            self.key((effect.operation, effect.class()))
        };
        let (mut there, mut missing) = (FxHashSet::default(), FxHashSet::default());
        for number in self.case.model.optional(image.cut) {
            match image.present.binary_search(&number) {
                Ok(_) => there.insert(part(number)),
                Err(_) => missing.insert(part(number)),
            };
        }
        let explains = |cause: &&mut Cause| {
            !cause.reduced.in_order
                && (!left_out || cause.violations >= SAME)
                && cause.early.is_subset(&there)
                && cause.late.is_subset(&missing)
        };
        let Some(cause) = found.causes.iter_mut().find(explains) else {
            return false;
        };
        if left_out {
            found.left_out += 1;
        } else {
            cause.violations += 1;
            found.violations += 1;
        }
        true
    }

    fn recover(
        &self,
        bench: &mut Bench<'_>,
        tree: &crate::tree::FileTree,
        cut: u32,
    ) -> Result<(Ended, String)> {
        let ended = bench.run(tree, cut, self.case.recovery.time)?;
        self.recoveries.fetch_add(1, Ordering::Relaxed);
        Ok(ended)
    }

    /// A number for all that a recovery can tell one cut from another by, besides the folder.
    fn moment(&self, cut: u32) -> usize {
        let acked = self.case.acked[cut as usize];
        match self.wants_acks {
            true => acked,
            false => usize::from(self.start.is_some_and(|start| cut >= start)),
        }
    }

    /// Whether the recovery refuses the folder as it refuses the untouched one, which it may do before it first copes
    /// and before it was given any printed text.
    fn is_refusal(&self, cut: u32, ended: Ended) -> bool {
        self.refusal == Some(ended)
            && (self.case.acked[cut as usize] == 0 || !self.wants_acks)
            && self.start.is_none_or(|start| cut < start)
    }
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
    let mut bench = Bench::new(case, &folder.join("keep"))?;
    for (number, cause) in (1..).zip(&found.causes) {
        let image = &cause.reduced.image;
        for (name, image) in [("fails", image.clone()), ("whole", case.whole(image.cut))] {
            let place: PathBuf = keep.join(format!("{number}-{name}"));
            let tree = bench.tree(&image);
            let interrupt = &case.recovery.interrupt;
            let put = tree.put(&place, &|| !interrupt.is_set());
            interrupt.check()?;
            put.map_err(CrashTestError::io(place.display()))?;
        }
        let acks = keep.join(format!("{number}-acks"));
        let printed = &case.acks[..case.acked[image.cut as usize]];
        std::fs::write(&acks, printed).map_err(CrashTestError::io(acks.display()))?;
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_numbered_files_are_told_apart_and_many_are_a_series() {
        let joined = |count: usize| {
            let place = |number: usize| CallSite {
                text: "'script'".to_owned(),
                frame: None,
                stack: Vec::new(),
                key: vec!["write".to_owned(), format!("log.{number}")],
            };
            let mut places: Vec<CallSite> = (0..count).map(place).collect();
            join_series(&mut places);
            keys(&places).into_iter().max().unwrap() as usize + 1
        };
        assert_eq!(
            [1, 2, SERIES, SERIES + 1, 100].map(joined),
            [1, 2, SERIES, 1, 1]
        );
    }
}
