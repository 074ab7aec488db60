//! The search: several workers try images until the budget is spent or nothing new is found.

pub mod bench;
pub mod reduce;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};
use sardonyx_crash_test::images::copy::scratch;
use sardonyx_crash_test::recording::NOWHERE;
use sardonyx_crash_test::recording::source::{Frame, Sources, caller};
use sardonyx_crash_test::recovery::damage::FORMS;
use sardonyx_crash_test::recovery::ending::Ended;
use sardonyx_crash_test::recovery::{Recovery, said};
use sardonyx_crash_test::search::clock::Clock;
use sardonyx_crash_test::{CrashTestError, Result};

use crate::image_choice::{FolderImage, ImageKind, ImagePlan, OperationPart};
use crate::model::{Class, Model, Platform};
use crate::operations::{Act, Operation};
use crate::question::Question;
use crate::recording::{Fault, RecordedRun, Run, record};
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
/// The recovery is tried at this many cuts until it first copes.
const STARTS: usize = 500;

/// The line of code, or the command, that asked for an operation.
#[derive(Clone, Debug)]
pub struct CallSite {
    /// `FILE:LINE`, or the command.
    pub text: String,
    pub frame: Option<Frame>,
    pub stack: Vec<Frame>,
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
    pub unsaid: Option<String>,
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
    clock: &'a Clock,
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
pub fn explore(question: &Question, tell: &(dyn Fn(u64, u64) -> bool + Sync)) -> Result<Explored> {
    let mut clean = question.clone();
    if question.errors {
        clean.budget /= 2.0;
    }
    let mut explored = explore_one(&clean, None, tell)?;
    if !question.errors || explored.found.unsaid.is_some() {
        return Ok(explored);
    }
    let faults = faults(&explored.recording);
    clean.budget /= faults.len().max(1) as f64;
    clean.keep = None;
    for (fault, shown) in faults {
        let start = &explored.recording.start;
        let failed = CrashTestError::io(question.files.display());
        start.restore(&question.files).map_err(failed)?;
        let alone = explored.found.alone;
        let one = explore_one(&clean, Some((fault, alone)), tell)?;
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
    tell: &(dyn Fn(u64, u64) -> bool + Sync),
) -> Result<Explored> {
    let platform = Platform::named(&question.platform).ok_or_else(|| {
        let names = Platform::NAMES.join(", ");
        CrashTestError::new(format!("--platform: give one of {names}"))
    })?;
    let folder = scratch()?;
    let outputs = [folder.path().join("stdout"), folder.path().join("stderr")];
    let recording = record(&Run {
        words: &question.program,
        folder: &question.files,
        limit: Duration::from_secs_f64(question.record_limit),
        outputs: [&outputs[0], &outputs[1]],
        acks_fd: question.acks_fd,
        fault: fault.map(|(fault, _)| fault),
        go_on: &|| tell(0, 0),
    })?;
    let said = said(&outputs[1]);
    let model = Model::new(&recording.start, &recording.operations, platform);
    let places = places(&recording);
    let mut case = Case::new(question, recording, model);
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
    fn new(question: &Question, recording: RecordedRun, model: Model) -> Case {
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
            recording,
            model,
            recovery: Recovery {
                words: words.collect(),
                ok: question.ok.clone(),
                time: Duration::from_secs_f64(question.time_limit.unwrap_or(question.budget)),
                memory: question.memory_limit,
                oracle: None,
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
    let place = |one: &Operation| place(recording, &mut sources, one.site, one.command);
    recording.operations.iter().map(place).collect()
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
    CallSite { text, frame, stack }
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
    if let Some(problem) = nothing(&case.recording) {
        found.unsaid = Some(problem);
        return Ok(found);
    }
    let mut clock = Clock::new(Some(Duration::from_secs_f64(question.budget)));
    clock.begin();
    let (refusal, start);
    {
        let mut bench = Bench::new(case, &folder.join("first"))?;
        if let Some(known) = alone {
            found.alone = known;
        } else {
            found.unsaid = undisturbed(case, &mut bench, &mut found)?;
        }
        if found.unsaid.is_some() {
            found.seconds = clock.passed().as_secs_f64();
            return Ok(found);
        }
        (refusal, start) = first_success(case, &mut bench)?;
    }
    if question.time_limit.is_none() {
        case.recovery.time = Duration::from_secs_f64((found.alone * SLOWER).max(LEAST));
    }
    clock.takes(Duration::from_secs_f64(found.alone));
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
        clock: &clock,
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

/// Runs the recovery on the folder as the program left it, and takes its time. Returns what is wrong if it fails.
fn undisturbed(case: &Case, bench: &mut Bench<'_>, found: &mut Found) -> Result<Option<String>> {
    let last = case.last();
    let tree = bench.tree(&last);
    let began = Instant::now();
    let (ended, said) = bench.run(&tree, last.cut, case.recovery.time)?;
    found.alone = began.elapsed().as_secs_f64();
    let said = said.lines().next_back().unwrap_or("it printed nothing");
    if case.recovery.fails(ended) {
        return Ok(Some(format!(
            "the recovery fails on the folder as the program left it ({ended}: {said}); mend the recovery's command, or give its status \
             with --ok"
        )));
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
    if !bench.opens_a_file(&tree)? {
        return Ok(Some(
            "the recovery opens no file of the folder, and copes with an empty one: have it look at what the program keeps"
                .to_owned(),
        ));
    }
    found.notes.push(format!(
        "the recovery copes with {} damages to the bytes of all files: only a failure or a time-out of its own is a violation to it",
        FORMS - 1
    ));
    Ok(None)
}

fn nothing(recording: &RecordedRun) -> Option<String> {
    if let Some(path) = &recording.unexplained {
        return Some(format!(
            "{path}: is not as the recorded operations leave it, so something wrote it that was not recorded (a program \
             that ran beside, or a system call that is not followed); run it alone"
        ));
    }
    let quiet = |one: &Operation| one.syncs() || one.acknowledges();
    recording.operations.iter().all(quiet).then(|| {
        "the program changed nothing below the folder; name the folder that it works in with --files".to_owned()
    })
}

fn keys(places: &[CallSite]) -> Vec<u32> {
    let mut known: FxHashMap<&str, u32> = FxHashMap::default();
    let key = |place| {
        let new = known.len() as u32;
        *known.entry(place).or_insert(new)
    };
    places
        .iter()
        .map(|place| place.text.as_str())
        .map(key)
        .collect()
}

/// Finds how the recovery refuses the folder from before, if it does, and the first cut at which it copes with what is
/// sure.
fn first_success(case: &Case, bench: &mut Bench<'_>) -> Result<(Option<Ended>, Option<u32>)> {
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
        found.seconds = self.clock.passed().as_secs_f64();
        found.unsaid = unsaid(&found, self.wants_acks);
        if let Some(keep) = &question.keep {
            leave(self.case, &found, folder, keep)?;
        }
        Ok(found)
    }

    fn work(&self, folder: &Path, tell: &(dyn Fn(u64, u64) -> bool + Sync)) -> Result<()> {
        let mut bench = Bench::new(self.case, folder)?;
        while !self.clock.is_spent() && !self.stop.load(Ordering::Relaxed) {
            let Some(image) = lock(&self.plan).next() else {
                lock(&self.found).finished = true;
                break;
            };
            if !tell(self.recoveries.load(Ordering::Relaxed), 0) {
                self.clock.end(); // whoever wants it to end gets what there is
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
        let seconds = self.clock.passed().as_secs_f64();
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
        if self.clock.is_spent() {
            return Err(CrashTestError::Late);
        }
        let (whole, allowed) = (
            self.case.recovery.time,
            self.clock.allows(self.case.recovery.time),
        );
        let (ended, said) = bench.run(tree, cut, allowed)?;
        self.recoveries.fetch_add(1, Ordering::Relaxed);
        match ended {
            Ended::TimedOut if allowed < whole => Err(CrashTestError::Late),
            _ => Ok((ended, said)),
        }
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

/// The reason why the search can say nothing, if no violation was found.
fn unsaid(found: &Found, wants_acks: bool) -> Option<String> {
    if found.violations > 0 {
        return None;
    }
    if found.passes == 0 {
        return Some("the budget ended before all cuts were tried once; raise --budget".to_owned());
    }
    if found.start.is_none() {
        let promise = match wants_acks {
            true => "and it printed nothing that it could be held to",
            false => "and --recover has no {acks}, what the program had printed, to hold it to",
        };
        return Some(format!(
            "the recovery copes with nothing that is sure at any cut, {promise}; have the program sync its files, or start it on a \
             folder with which the recovery copes"
        ));
    }
    (found.flaky > 0).then(|| {
        format!(
            "the recovery is flaky: on {} images it failed in one run and coped in another; have it do the same each time",
            found.flaky
        )
    })
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
            tree.put(&place)
                .map_err(CrashTestError::io(place.display()))?;
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
