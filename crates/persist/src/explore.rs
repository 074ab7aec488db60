//! Runs the recovery on what each cut could leave, by several workers, and gathers what fails.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;

use crate::PersistError;
use crate::copy::{self, Copy};
use crate::elsewhere;
use crate::images::{self, Floors, Image, Kind, PASSES, Scope};
use crate::recording::{Act, Recording};
use crate::recovery::{Ended, Recovery, said};
use crate::reduce::{self, Reduced};
use crate::source::Sources;
use crate::state::{Course, Platform};

/// Violations after which there is nothing more to learn.
const ENOUGH: usize = 60;
/// Violations of one kind of cut and image that are looked for.
const SAME: u32 = 2;
/// Violations that are reduced, at most; and after how many that show nothing new there is an end.
const REDUCED: usize = 24;
const NOTHING_NEW: usize = 6;
/// Of a budget, what is spent on looking if there is something to reduce.
const LOOKING: f64 = 0.7;
/// A recovery's time, in times of the undisturbed one, and at least.
const PATIENCE: u32 = 50;
const LEAST_TIME: Duration = Duration::from_secs(2);
/// Where a time-out decides no violation (the search for the start, reductions), a recovery's time, in times of the slowest that
/// coped, and at least.
const HASTE: u32 = 10;
const LEAST_HASTE: Duration = Duration::from_millis(200);
/// Of a budget, what is spent on waiting for recoveries that do not end.
const WAITING: f64 = 0.25;
/// The search for the start tries so many cuts one by one, then one in so many that came before.
const CLOSELY: u32 = 256;
const SPARSE: u32 = 32;
/// Jobs that wait for a worker.
const QUEUE: usize = 16;

/// What is asked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The trace.
    pub recording: PathBuf,
    /// The mapped file.
    pub pool: PathBuf,
    /// Words of the recovery's command.
    pub recover: Vec<String>,
    /// Exit statuses that are none of a violation.
    pub ok: Vec<i32>,
    /// Seconds for one recovery; by default what the undisturbed one suggests.
    pub time_limit: Option<f64>,
    /// Bytes of memory for one recovery.
    pub memory_limit: u64,
    /// `adr` or `eadr`.
    pub platform: String,
    /// Lines tear at words.
    pub tear: bool,
    /// A mark, or a row of the recording, from which on cuts are tried.
    pub start: Option<String>,
    /// Seconds in all.
    pub budget: f64,
    /// Of drawn subsets.
    pub seed: u64,
    /// Workers; 0 for one a processor.
    pub threads: usize,
    /// One image instead of all.
    pub replay: Option<String>,
    /// A folder in which the images of each cause are left.
    pub keep: Option<PathBuf>,
    /// Lines of code are wanted, if the recording has places.
    pub source: bool,
}

/// A failed recovery.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Of what.
    pub image: Image,
    /// How.
    pub ended: Ended,
    /// What it said.
    pub said: String,
    /// Seconds after the beginning.
    pub seconds: f64,
}

/// What an exploration found.
#[derive(Debug)]
pub struct Found {
    /// In the order of cuts.
    pub violations: Vec<Violation>,
    /// Causes of some of them: the violation's index, and what it comes down to.
    pub reduced: Vec<(usize, Reduced)>,
    /// Kinds of violations that there was no time to reduce, or not to the end.
    pub unreduced: usize,
    /// The first cut that was tried.
    pub start: u32,
    /// Seconds until it was known.
    pub start_seconds: f64,
    /// Images tried.
    pub images: u64,
    /// Recoveries run, those of reductions included.
    pub recoveries: u64,
    /// Images tried and failed, by cut.
    pub by_cut: FxHashMap<u32, (u32, u32)>,
    /// Images by how they were come by.
    pub kinds: Vec<(Kind, u64)>,
    /// Seconds of looking, and of all.
    pub looking: f64,
    /// Seconds in all.
    pub seconds: f64,
    /// All passes were made.
    pub finished: bool,
    /// Passes that were.
    pub passes: usize,
    /// The undisturbed recovery's seconds.
    pub undisturbed: f64,
    /// The limit of each.
    pub time_limit: f64,
}

/// What all workers share.
#[derive(Debug)]
pub struct Shared {
    /// The recovery.
    pub recovery: Recovery,
    /// The recording.
    pub recording: Recording,
    /// Its cuts.
    pub course: Course,
    /// What reserve power saves.
    pub platform: Platform,
    /// Recoveries so far.
    pub recoveries: AtomicU64,
    /// When the budget is spent.
    deadline: Instant,
    /// Nanoseconds of the slowest recovery that coped.
    slowest: AtomicU64,
    /// Whether it copes, by image; and of a time-out, after how long.
    verdicts: Mutex<FxHashMap<(u64, usize), (bool, Duration)>>,
    /// Images that wait for a worker are not tried any more.
    enough: AtomicBool,
    /// Everybody is to stop.
    pub stop: AtomicBool,
}

impl Shared {
    /// How long to wait where a time-out decides no violation.
    pub fn haste(&self) -> Duration {
        let slowest = Duration::from_nanos(self.slowest.load(Ordering::Relaxed));
        (slowest * HASTE).max(LEAST_HASTE).min(self.recovery.time)
    }
}

/// What one worker has: a copy of the pool and files for the recovery.
#[derive(Debug)]
pub struct Bench<'a> {
    /// Shared with the others.
    pub shared: &'a Shared,
    copy: Copy<'a>,
    floors: Floors<'a>,
    acks: PathBuf,
    acked: Option<usize>,
    output: PathBuf,
}

impl<'a> Bench<'a> {
    fn new(shared: &'a Shared, ground: &File, folder: &Path) -> Result<Bench<'a>, PersistError> {
        std::fs::create_dir(folder).map_err(PersistError::io(folder.display()))?;
        Ok(Bench {
            copy: Copy::new(&shared.recording, &shared.course, ground, folder)?,
            floors: Floors::new(&shared.recording, &shared.course),
            acks: folder.join("acks"),
            acked: None,
            output: folder.join("output"),
            shared,
        })
    }

    /// What had been acknowledged by a cut.
    pub fn acked(&self, cut: u32) -> usize {
        let shared = self.shared;
        shared.recording.acked(shared.course.cuts[cut as usize].row)
    }

    /// Runs the recovery on an image, with so much acknowledged, at most so long.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn run(
        &mut self,
        image: &Image,
        acked: usize,
        time: Duration,
    ) -> Result<Ended, PersistError> {
        let recording = &self.shared.recording;
        if self.shared.recovery.wants_acks() && self.acked != Some(acked) {
            let mut file =
                File::create(&self.acks).map_err(PersistError::io(self.acks.display()))?;
            file.write_all(&recording.printed(acked))
                .map_err(PersistError::io(self.acks.display()))?;
            self.acked = Some(acked);
        }
        self.copy.make(image);
        self.shared.recoveries.fetch_add(1, Ordering::Relaxed);
        let recovery = &self.shared.recovery;
        let begun = Instant::now();
        let ended = recovery.run(self.copy.path(), &self.acks, &self.output, time);
        if ended.as_ref().is_ok_and(|&ended| !recovery.fails(ended)) {
            let took = begun.elapsed().as_nanos() as u64;
            self.shared.slowest.fetch_max(took, Ordering::Relaxed);
        }
        self.copy.restore(image)?;
        ended
    }

    /// The files outside of its own folder that the recovery opens for writing.
    fn elsewhere(&mut self, image: &Image) -> Result<Vec<PathBuf>, PersistError> {
        self.copy.make(image);
        let command = (self.shared.recovery).command(self.copy.path(), &self.acks);
        let folder = self.copy.path().parent().expect("it is in a folder");
        let files = elsewhere::written(&command, folder);
        self.copy.restore(image)?;
        Ok(files)
    }

    /// Whether the recovery copes with an image within some time; asked once of each.
    ///
    /// # Errors
    /// It cannot be run, everybody is to stop, or the budget is spent.
    pub fn copes(
        &mut self,
        image: &Image,
        acked: usize,
        time: Duration,
    ) -> Result<bool, PersistError> {
        if self.shared.stop.load(Ordering::Relaxed) {
            return Err(PersistError::Cancelled);
        }
        self.floors.go(image.cut, |_, _| ());
        let key = (
            self.floors.hash(&image.over),
            match self.shared.recovery.wants_acks() {
                true => acked,
                false => 0,
            },
        );
        let lock = || self.shared.verdicts.lock().expect("nobody panics with it");
        if let Some(&(copes, waited)) = lock().get(&key)
            && waited >= time
        {
            return Ok(copes);
        }
        if Instant::now() >= self.shared.deadline {
            return Err(PersistError::Late);
        }
        let ended = self.run(image, acked, time)?;
        let copes = !self.shared.recovery.fails(ended);
        let waited = match ended {
            Ended::TimedOut => time,
            _ => Duration::MAX,
        };
        lock().insert(key, (copes, waited));
        Ok(copes)
    }

    /// Leaves an image behind.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save(&mut self, image: &Image, path: &Path) -> Result<(), PersistError> {
        self.copy.make(image);
        self.copy.save(path)?;
        self.copy.restore(image)
    }

    fn said(&self) -> String {
        said(&self.output)
    }
}

enum Job {
    Try(Image, Duration),
    Reduce(usize, Image),
}

enum Answer {
    Tried(Image, Result<(Ended, String), PersistError>),
    Reduced(usize, Result<Reduced, PersistError>),
}

/// Workers and the two ends of their queues.
struct Crew {
    jobs: SyncSender<Job>,
    answers: Receiver<Answer>,
    waiting: usize,
}

impl Crew {
    fn give(&mut self, job: Job) {
        self.waiting += 1;
        let _ = self.jobs.send(job);
    }

    fn next(&mut self) -> Option<Answer> {
        if self.waiting == 0 {
            return None;
        }
        self.waiting -= 1;
        self.answers.recv().ok()
    }

    fn ready(&mut self) -> Option<Answer> {
        let answer = self.answers.try_recv().ok()?;
        self.waiting -= 1;
        Some(answer)
    }
}

fn work(
    shared: &Shared,
    bench: Result<Bench<'_>, PersistError>,
    jobs: &Mutex<Receiver<Job>>,
    answers: &Sender<Answer>,
    start: &AtomicU64,
) {
    let mut bench = match bench {
        Ok(bench) => bench,
        Err(e) => {
            let _ = answers.send(Answer::Tried(Image::fenced(0), Err(e)));
            return;
        }
    };
    loop {
        let job = jobs.lock().expect("nobody panics with it").recv();
        let answer = match job {
            Err(_) => return,
            Ok(Job::Try(image, time)) => {
                let acked = bench.acked(image.cut);
                let set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
                let result = match (set(&shared.stop), set(&shared.enough)) {
                    (true, _) => Err(PersistError::Cancelled),
                    (_, true) => Err(PersistError::Late),
                    _ => bench.run(&image, acked, time).map(|ended| {
                        let said = match shared.recovery.fails(ended) {
                            true => bench.said(),
                            false => String::new(),
                        };
                        (ended, said)
                    }),
                };
                Answer::Tried(image, result)
            }
            Ok(Job::Reduce(number, image)) => {
                let start = start.load(Ordering::Relaxed) as u32;
                Answer::Reduced(number, reduce::reduce(&mut bench, &image, start))
            }
        };
        if answers.send(answer).is_err() {
            return;
        }
    }
}

/// What the recording's program must have done to be worth a cut.
fn check(recording: &Recording, platform: Platform) -> Result<(), PersistError> {
    let any = |what: fn(&Act) -> bool| recording.events.iter().any(|event| what(&event.act));
    let pool = recording.pool.display();
    if recording.lines.is_empty() {
        return Err(PersistError::new(format!(
            "{pool}: the program mapped it and stored nothing to it, so that there is nothing to cut"
        )));
    }
    let flushed = any(|act| matches!(act, Act::Flush { .. } | Act::Store { past: true, .. }));
    if platform == Platform::Adr && !flushed {
        return Err(PersistError::new(format!(
            "{pool}: the program never flushes a line of it (no clwb, clflushopt, clflush, non-temporal store or msync), so \
             that nothing it stored is ever sure to be there: flush and fence what must last (libpmem does it on an ordinary \
             file only if PMEM_IS_PMEM_FORCE=1 is set while it is recorded), or test a platform that saves its caches: \
             --platform eadr"
        )));
    }
    let fenced = any(|act| matches!(act, Act::Fence | Act::Flush { ordered: true, .. }));
    if platform == Platform::Adr && !fenced {
        return Err(PersistError::new(format!(
            "{pool}: the program flushes lines and never fences (sfence, mfence or a locked instruction), so that no flush \
             is ever sure to be done: put a fence after the flushes"
        )));
    }
    Ok(())
}

/// The cut at which `start` says that the pool is made.
fn named_start(recording: &Recording, course: &Course, start: &str) -> Result<u32, PersistError> {
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
                PersistError::new(match known.is_empty() {
                    true => format!(
                        "--start {start}: the recording has no marks (SARDONYX_MARK of sardonyx.h makes them); give a row"
                    ),
                    false => format!("--start {start}: is no mark; there are {}", known.join(", ")),
                })
            })?
        }
    };
    let cut = course.cuts.partition_point(|cut| cut.row < row);
    match cut < course.cuts.len() {
        true => Ok(cut as u32),
        false => Err(PersistError::new(format!(
            "--start {start}: no cut comes after it; the recording has {} rows",
            recording.rows
        ))),
    }
}

/// The answer to a question, and what it is about.
pub struct Explored {
    /// The recording and its cuts.
    pub shared: Shared,
    /// What was found.
    pub found: Found,
    /// Of a replay: how it ended and what it said.
    pub replayed: Option<(Image, Ended, String)>,
}

/// Explores. `tell` is told how many images are done, of how many seconds; if it says no, everything stops.
///
/// # Errors
/// Bad input, before any work; the recovery does not cope with the undisturbed pool, or with nothing.
pub fn explore(
    question: &Question,
    tell: &(dyn Fn(u64, u64) -> bool + Sync),
) -> Result<Explored, PersistError> {
    let started = Instant::now();
    let deadline = started + Duration::from_secs_f64(question.budget);
    let platform = Platform::named(&question.platform)
        .ok_or_else(|| PersistError::new("--platform: give adr or eadr"))?;
    let mut recording = Recording::open(&question.recording, &question.pool)?;
    check(&recording, platform)?;
    if question.source {
        Sources::new(&recording).check()?;
    }
    let wants_acks = question.recover.iter().any(|word| word.contains("{acks}"));
    if wants_acks && !recording.has_acks {
        return Err(PersistError::new(format!(
            "--recover asks for {{acks}}, and {} does not keep what the program printed; record it with --acks",
            question.recording.display()
        )));
    }
    if wants_acks && recording.acks.is_empty() {
        recording.notes.push(
            "the recording keeps what the program printed, and it printed nothing, so that {acks} is empty at every cut: \
             have the program write what it promises (and flush its output), or name the descriptor with --acks-fd when \
             it is recorded"
                .to_owned(),
        );
    }
    let course = Course::of(&recording, platform);
    let mut shared = Shared {
        recovery: Recovery {
            words: question.recover.clone(),
            ok: question.ok.clone(),
            time: Duration::from_secs_f64(question.time_limit.unwrap_or(question.budget)),
            memory: question.memory_limit,
        },
        recording,
        course,
        platform,
        recoveries: AtomicU64::new(0),
        deadline,
        slowest: AtomicU64::new(0),
        verdicts: Mutex::default(),
        enough: AtomicBool::new(false),
        stop: AtomicBool::new(false),
    };
    let folder = copy::scratch()?;
    let ground = copy::ground(&shared.recording, folder.path())?;
    let replay = match &question.replay {
        Some(name) => Some(Image::named(name, &shared.recording, &shared.course)?),
        None => None,
    };
    let undisturbed = undisturbed(&mut shared, question, &ground, &folder.path().join("first"))?;
    let mut found = Found {
        violations: Vec::new(),
        reduced: Vec::new(),
        unreduced: 0,
        start: 0,
        start_seconds: 0.0,
        images: 0,
        recoveries: 0,
        by_cut: FxHashMap::default(),
        kinds: Vec::new(),
        looking: 0.0,
        seconds: 0.0,
        finished: false,
        passes: 0,
        undisturbed: undisturbed.as_secs_f64(),
        time_limit: shared.recovery.time.as_secs_f64(),
    };
    if let Some(image) = replay {
        let mut bench = Bench::new(&shared, &ground, &folder.path().join("replay"))?;
        let acked = bench.acked(image.cut);
        let ended = bench.run(&image, acked, shared.recovery.time)?;
        let said = bench.said();
        if let Some(keep) = &question.keep {
            std::fs::create_dir_all(keep).map_err(PersistError::io(keep.display()))?;
            bench.save(&image, &keep.join("replayed.pool"))?;
        }
        drop(bench);
        return Ok(Explored {
            shared,
            found,
            replayed: Some((image, ended, said)),
        });
    }
    let threads = match question.threads {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
        threads => threads,
    };
    let start = AtomicU64::new(0);
    let (jobs, waiting) = sync_channel(QUEUE);
    let waiting = Mutex::new(waiting);
    let (answers, answered) = channel();
    std::thread::scope(|scope| {
        for worker in 0..threads {
            let (shared, waiting, ground, start) = (&shared, &waiting, &ground, &start);
            let folder = folder.path().join(format!("{worker}"));
            let answers = answers.clone();
            scope.spawn(move || {
                work(
                    shared,
                    Bench::new(shared, ground, &folder),
                    waiting,
                    &answers,
                    start,
                );
            });
        }
        drop(answers);
        let mut crew = Crew {
            jobs,
            answers: answered,
            waiting: 0,
        };
        let mut search = Search {
            question,
            shared: &shared,
            platform,
            started,
            found: &mut found,
            kinds: FxHashMap::default(),
            failed: FxHashMap::default(),
            refused: (Ended::Status(0), String::new()),
            waited: Duration::ZERO,
            workers: threads as f64,
            problem: None,
            tell,
        };
        let outcome = search.all(&mut crew, &start);
        if outcome.is_err() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        outcome // the crew is dropped, and with it the queue: the workers go
    })?;
    if let Some(keep) = &question.keep {
        let mut bench = Bench::new(&shared, &ground, &folder.path().join("keep"))?;
        std::fs::create_dir_all(keep).map_err(PersistError::io(keep.display()))?;
        for (number, (_, reduced)) in found.reduced.iter().enumerate() {
            bench.save(
                &reduced.image,
                &keep.join(format!("{}-fails.pool", number + 1)),
            )?;
            if let Some(passes) = &reduced.passes {
                bench.save(passes, &keep.join(format!("{}-passes.pool", number + 1)))?;
            }
        }
    }
    found.recoveries = shared.recoveries.load(Ordering::Relaxed);
    found.seconds = started.elapsed().as_secs_f64();
    Ok(Explored {
        shared,
        found,
        replayed: None,
    })
}

/// The recovery on the pool as the program left it, twice: it must cope, and it must leave the program's own pool alone.
fn undisturbed(
    shared: &mut Shared,
    question: &Question,
    ground: &File,
    folder: &Path,
) -> Result<Duration, PersistError> {
    let pool = shared.recording.pool.clone();
    let hash = || {
        let mut file = File::open(&pool).ok()?;
        let mut hasher = blake3::Hasher::new();
        std::io::copy(&mut file, &mut hasher).ok()?;
        Some(hasher.finalize())
    };
    let before = hash();
    let last = shared.course.cuts.len() as u32 - 1;
    let all = everything(&shared.recording, &shared.course);
    let image = Image {
        cut: last,
        over: all,
        kind: Kind::All,
    };
    let mut bench = Bench::new(shared, ground, folder)?;
    let acked = bench.shared.recording.acked(u64::MAX);
    let mut least = Duration::MAX;
    for _ in 0..2 {
        let begun = Instant::now();
        let ended = bench.run(&image, acked, bench.shared.recovery.time)?;
        least = least.min(begun.elapsed());
        if shared.recovery.fails(ended) {
            let said = bench.said();
            let said = if said.is_empty() {
                String::new()
            } else {
                format!(": {said}")
            };
            return Err(PersistError::new(format!(
                "--recover: it fails on the pool as the program left it ({ended}), so that a failure after a cut would say \
                 nothing; correct the check, or name its statuses with --ok{said}"
            )));
        }
    }
    let elsewhere = bench.elsewhere(&image)?;
    drop(bench);
    if let Some(file) = elsewhere.first() {
        return Err(PersistError::new(format!(
            "--recover: it opens {} for writing, and not only the copy that it is given: many run at a time, and each may \
             write to {{pool}} and beside it only; have it do so, or print",
            file.display()
        )));
    }
    if before != hash() {
        return Err(PersistError::new(format!(
            "--recover: it writes to {}, and not to the copy that it is given; use {{pool}} in its command",
            pool.display()
        )));
    }
    if question.time_limit.is_none() {
        shared.recovery.time = (least * PATIENCE).max(LEAST_TIME);
    }
    Ok(least)
}

/// All lines as they were at the end.
fn everything(recording: &Recording, course: &Course) -> Vec<images::Over> {
    let mut floors = Floors::new(recording, course);
    floors.go(course.cuts.len() as u32 - 1, |_, _| ());
    let last = recording
        .lines
        .iter()
        .enumerate()
        .map(|(slot, line)| images::Over {
            slot: slot as u32,
            version: line.versions.len() as u32 - 1,
            words: images::WHOLE,
        });
    last.filter(|over| floors.floor[over.slot as usize] != over.version)
        .collect()
}

struct Search<'a> {
    question: &'a Question,
    shared: &'a Shared,
    platform: Platform,
    started: Instant,
    found: &'a mut Found,
    kinds: FxHashMap<Kind, u64>,
    /// Violations by kind of cut and of image.
    failed: FxHashMap<(u64, Kind), u32>,
    /// How a recovery ended that did not cope while the start was looked for, and what it said.
    refused: (Ended, String),
    /// For recoveries that did not end.
    waited: Duration,
    workers: f64,
    problem: Option<PersistError>,
    tell: &'a (dyn Fn(u64, u64) -> bool + Sync),
}

impl Search<'_> {
    fn all(&mut self, crew: &mut Crew, start: &AtomicU64) -> Result<(), PersistError> {
        let first = match &self.question.start {
            Some(named) => named_start(&self.shared.recording, &self.shared.course, named)?,
            None => self.first_success(crew)?,
        };
        start.store(u64::from(first), Ordering::Relaxed);
        self.found.start = first;
        self.found.start_seconds = self.started.elapsed().as_secs_f64();
        self.look(crew, first)?;
        self.found.looking = self.started.elapsed().as_secs_f64();
        let mut kinds: Vec<_> = self.kinds.drain().collect();
        kinds.sort_unstable();
        self.found.kinds = kinds;
        self.found
            .violations
            .sort_by_key(|violation| (violation.image.cut, violation.image.kind));
        self.reduce(crew)
    }

    /// The first cut at which the recovery copes with what was fenced: of the early ones each is tried, of later ones some until one
    /// is found, and then those before it.
    fn first_success(&mut self, crew: &mut Crew) -> Result<u32, PersistError> {
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
        found.ok_or_else(|| {
            let (ended, said) = &self.refused;
            let colon = if said.is_empty() { "" } else { ": " };
            let (tries, why, remedy) = match tried < cuts {
                true => (
                    format!("{tried} of the {cuts} cuts that --budget had time for"),
                    "the start was not found",
                    "give more time with --budget, or say with --start from where on the pool is made",
                ),
                false => (
                    format!("{cuts} cuts"),
                    "nothing that the program makes sure of is a pool that it accepts",
                    "say with --start from where on it should be one",
                ),
            };
            PersistError::new(format!(
                "--recover: it copes at none of the {tries} with what was fenced there ({ended}{colon}{said}): {why}; {remedy}"
            ))
        })
    }

    /// The first of some cuts at which the recovery copes with what was fenced, as far as there is time; `tried` counts.
    fn first_of(
        &mut self,
        crew: &mut Crew,
        cuts: &[u32],
        tried: &mut u32,
    ) -> Result<Option<u32>, PersistError> {
        let mut least: Option<u32> = None;
        let mut next = cuts.iter();
        loop {
            while least.is_none()
                && crew.waiting < QUEUE
                && Instant::now() < self.shared.deadline
                && let Some(&cut) = next.next()
            {
                *tried += 1;
                crew.give(Job::Try(Image::fenced(cut), self.shared.haste()));
            }
            match crew.next() {
                None => return Ok(least),
                Some(Answer::Tried(image, result)) => {
                    let (ended, said) = result?;
                    if self.shared.recovery.fails(ended) {
                        self.refused = (ended, said);
                    } else {
                        least = Some(least.map_or(image.cut, |l| l.min(image.cut)));
                    }
                }
                Some(Answer::Reduced(..)) => {}
            }
            self.listen()?;
        }
    }

    fn listen(&mut self) -> Result<(), PersistError> {
        let done = self.shared.recoveries.load(Ordering::Relaxed);
        match (self.tell)(done, 0) {
            true => Ok(()),
            false => Err(PersistError::Cancelled),
        }
    }

    fn take(&mut self, answer: Answer) {
        let Answer::Tried(image, result) = answer else {
            return;
        };
        match result {
            Ok((ended, said)) => {
                self.found.images += 1;
                *self.kinds.entry(image.kind).or_default() += 1;
                let at = self.found.by_cut.entry(image.cut).or_default();
                at.0 += 1;
                at.1 += u32::from(self.shared.recovery.fails(ended));
                if ended == Ended::TimedOut {
                    self.waited += self.shared.recovery.time;
                }
                if self.shared.recovery.fails(ended) {
                    let cut = self.shared.course.cuts[image.cut as usize];
                    *self.failed.entry((cut.signature, image.kind)).or_default() += 1;
                    self.found.violations.push(Violation {
                        image,
                        ended,
                        said,
                        seconds: self.started.elapsed().as_secs_f64(),
                    });
                }
            }
            Err(PersistError::Late) => {}
            Err(e) => self.problem = Some(e),
        }
    }

    fn look(&mut self, crew: &mut Crew, start: u32) -> Result<(), PersistError> {
        let shared = self.shared;
        let scope = Scope {
            platform: self.platform,
            tear: self.question.tear,
            start,
            seed: self.question.seed,
            acks: shared.recovery.wants_acks(),
        };
        let mut seen = FxHashSet::default();
        let mut ended = false;
        for (number, pass) in PASSES.iter().enumerate() {
            images::each(
                &shared.recording,
                &shared.course,
                scope,
                *pass,
                &mut seen,
                |image| {
                    while let Some(answer) = crew.ready() {
                        self.take(answer);
                    }
                    let cut = shared.course.cuts[image.cut as usize];
                    let known = self.failed.get(&(cut.signature, image.kind));
                    if known.is_none_or(|&count| count < SAME) {
                        crew.give(Job::Try(image, shared.recovery.time));
                    }
                    let share = if self.found.violations.is_empty() {
                        1.0
                    } else {
                        LOOKING
                    };
                    let passed = self.started.elapsed().as_secs_f64();
                    ended = self.found.violations.len() >= ENOUGH
                        || passed > self.question.budget * share
                        || self.waited.as_secs_f64()
                            > self.question.budget * WAITING * self.workers
                        || self.problem.is_some()
                        || self.listen().is_err();
                    !ended
                },
            );
            shared.enough.store(ended, Ordering::Relaxed);
            while let Some(answer) = crew.next() {
                self.take(answer);
            }
            if let Some(problem) = self.problem.take() {
                return Err(problem);
            }
            self.listen()?;
            if ended {
                break;
            }
            self.found.passes = number + 1;
        }
        self.found.finished = !ended;
        Ok(())
    }

    /// One violation of each kind, and as many kinds as there is time for.
    fn reduce(&mut self, crew: &mut Crew) -> Result<(), PersistError> {
        let mut kinds = FxHashSet::default();
        let mut chosen: Vec<usize> = Vec::new();
        for (number, violation) in self.found.violations.iter().enumerate() {
            let cut = self.shared.course.cuts[violation.image.cut as usize];
            if kinds.insert((cut.signature, violation.image.kind)) {
                chosen.push(number);
            }
        }
        // What differs least from what is sure says most; what does not end takes long.
        chosen.sort_by_key(|&number| {
            let violation = &self.found.violations[number];
            let image = &violation.image;
            (violation.ended == Ended::TimedOut, image.kind, image.cut)
        });
        let spread = (chosen.len() / REDUCED).max(1);
        let chosen: Vec<usize> = chosen.into_iter().step_by(spread).take(REDUCED).collect();
        self.found.unreduced = chosen.len();
        let mut next = chosen.iter();
        let (mut known, mut stale) = (FxHashSet::default(), 0);
        loop {
            while crew.waiting < 4 && stale < NOTHING_NEW && Instant::now() < self.shared.deadline {
                let Some(&number) = next.next() else { break };
                let image = self.found.violations[number].image.clone();
                crew.give(Job::Reduce(number, image));
            }
            match crew.next() {
                None => break,
                Some(Answer::Reduced(number, Ok(reduced))) => {
                    let sites = |overs: &[images::Over]| -> Vec<u64> {
                        let recording = &self.shared.recording;
                        let site = |over: &images::Over| {
                            let slot = &recording.lines[over.slot as usize];
                            let event = slot.versions[over.version as usize].event;
                            let site = recording.events[event as usize].site;
                            let pc = recording.sites.get(site as usize).map(|site| site.pc);
                            pc.unwrap_or(u64::from(slot.line))
                        };
                        let mut all: Vec<u64> = overs.iter().map(site).collect();
                        all.sort_unstable();
                        all.dedup();
                        all
                    };
                    match known.insert((sites(&reduced.early), sites(&reduced.late))) {
                        true => stale = 0,
                        false => stale += 1,
                    }
                    self.found.unreduced -= usize::from(reduced.finished);
                    self.found.reduced.push((number, reduced));
                }
                Some(Answer::Reduced(_, Err(e))) | Some(Answer::Tried(_, Err(e))) => return Err(e),
                Some(Answer::Tried(..)) => {}
            }
            self.listen()?;
        }
        if stale >= NOTHING_NEW {
            self.found.unreduced = 0;
        }
        self.found.reduced.sort_by_key(|(number, _)| *number);
        Ok(())
    }
}
