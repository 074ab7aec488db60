//! Runs the recovery on what each cut could leave, by several workers, and gathers what fails.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::PersistError;
use crate::bench::{Bench, Shared};
use crate::copy;
use crate::crew::{Crew, QUEUE, work};
use crate::images::{self, Floors, Image, Kind};
use crate::recording::{Act, Recording};
use crate::recovery::{Ended, Recovery};
use crate::search::{Found, Search};
use crate::source::Sources;
use crate::state::{Course, Platform};

/// A recovery's time, in times of the undisturbed one, and at least.
const PATIENCE: u32 = 50;
const LEAST_TIME: Duration = Duration::from_secs(2);

/// A recording, one of its mapped files, and the command that recovers from an image of it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "CrashTestQuestion")]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The recording, a trace of level `cpu`.
    pub recording: PathBuf,
    /// The mapped file, under the path that the recorded program used.
    pub pool: PathBuf,
    /// Words of the recovery's command.
    pub recover: Vec<String>,
    /// Exit statuses that are none of a violation.
    #[serde(default = "defaults::zero")]
    pub ok: Vec<i32>,
    /// Seconds for one recovery; by default what the undisturbed one suggests.
    pub time_limit: Option<f64>,
    /// Bytes of memory for one recovery.
    #[serde(default = "defaults::four_gigabytes")]
    pub memory_limit: u64,
    /// `adr` or `eadr`.
    #[serde(default = "defaults::adr")]
    pub platform: String,
    /// Lines tear at words.
    #[serde(default)]
    pub tear: bool,
    /// A mark, or a row of the recording, from which on cuts are tried.
    pub start: Option<String>,
    /// Seconds that the whole exploration may take.
    #[serde(default = "defaults::fifty")]
    pub budget: f64,
    /// The seed that subsets of pending lines are drawn from.
    #[serde(default = "defaults::one")]
    pub seed: u64,
    /// Workers; 0 for one a processor.
    #[serde(default)]
    pub threads: usize,
    /// The name of the one image to run the recovery on, instead of exploring.
    pub replay: Option<String>,
    /// A folder in which the images of each cause are left.
    pub keep: Option<PathBuf>,
    /// Lines of code are wanted, if the recording has places.
    #[serde(default = "defaults::yes")]
    pub source: bool,
}

/// What a question says that does not say it.
mod defaults {
    pub(super) fn zero() -> Vec<i32> {
        vec![0]
    }

    pub(super) fn four_gigabytes() -> u64 {
        4 << 30
    }

    pub(super) fn adr() -> String {
        "adr".to_owned()
    }

    pub(super) fn fifty() -> f64 {
        50.0
    }

    pub(super) fn one() -> u64 {
        1
    }

    pub(super) fn yes() -> bool {
        true
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
    let platform = Platform::named(&question.platform)
        .ok_or_else(|| PersistError::new("--platform: give adr or eadr"))?;
    let recording = opened(question, platform)?;
    let mut shared = Shared {
        recovery: Recovery {
            words: question.recover.clone(),
            ok: question.ok.clone(),
            time: Duration::from_secs_f64(question.time_limit.unwrap_or(question.budget)),
            memory: question.memory_limit,
        },
        course: Course::of(&recording, platform),
        recording,
        platform,
        recoveries: AtomicU64::new(0),
        deadline: started + Duration::from_secs_f64(question.budget),
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
        undisturbed: undisturbed.as_secs_f64(),
        time_limit: shared.recovery.time.as_secs_f64(),
        ..Found::default()
    };
    if let Some(image) = replay {
        let replayed = replayed(question, &shared, &ground, folder.path(), image)?;
        return Ok(Explored {
            shared,
            found,
            replayed: Some(replayed),
        });
    }
    search(
        question,
        &shared,
        &ground,
        folder.path(),
        started,
        &mut found,
        tell,
    )?;
    if let Some(keep) = &question.keep {
        leave(&shared, &ground, &folder.path().join("keep"), &found, keep)?;
    }
    found.recoveries = shared.recoveries.load(Ordering::Relaxed);
    found.seconds = started.elapsed().as_secs_f64();
    Ok(Explored {
        shared,
        found,
        replayed: None,
    })
}

/// The recording of a question, which must be worth a cut and have what the question asks for.
fn opened(question: &Question, platform: Platform) -> Result<Recording, PersistError> {
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
    Ok(recording)
}

/// Runs the recovery on one image; leaves that behind if it is to be kept.
fn replayed(
    question: &Question,
    shared: &Shared,
    ground: &File,
    folder: &Path,
    image: Image,
) -> Result<(Image, Ended, String), PersistError> {
    let mut bench = Bench::new(shared, ground, &folder.join("replay"))?;
    let acked = bench.acked(image.cut);
    let ended = bench.run(&image, acked, shared.recovery.time)?;
    let said = bench.said();
    if let Some(keep) = &question.keep {
        std::fs::create_dir_all(keep).map_err(PersistError::io(keep.display()))?;
        bench.save(&image, &keep.join("replayed.pool"))?;
    }
    Ok((image, ended, said))
}

/// The search at all cuts, by as many workers as the question says, each in a folder of its own.
fn search(
    question: &Question,
    shared: &Shared,
    ground: &File,
    folder: &Path,
    started: Instant,
    found: &mut Found,
    tell: &(dyn Fn(u64, u64) -> bool + Sync),
) -> Result<(), PersistError> {
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
            let (waiting, start) = (&waiting, &start);
            let folder = folder.join(format!("{worker}"));
            let answers = answers.clone();
            scope.spawn(move || {
                let bench = Bench::new(shared, ground, &folder);
                work(shared, bench, waiting, &answers, start);
            });
        }
        drop(answers);
        let mut crew = Crew {
            jobs,
            answers: answered,
            waiting: 0,
        };
        let mut search = Search::new(question, shared, started, found, threads, tell);
        let outcome = search.all(&mut crew, &start);
        if outcome.is_err() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        outcome // the crew is dropped, and with it the queue: the workers go
    })
}

/// Leaves the images of each cause in a folder: the one that fails, and the one that passes.
fn leave(
    shared: &Shared,
    ground: &File,
    folder: &Path,
    found: &Found,
    keep: &Path,
) -> Result<(), PersistError> {
    let mut bench = Bench::new(shared, ground, folder)?;
    std::fs::create_dir_all(keep).map_err(PersistError::io(keep.display()))?;
    for (number, (_, reduced)) in found.reduced.iter().enumerate() {
        let number = number + 1;
        bench.save(&reduced.image, &keep.join(format!("{number}-fails.pool")))?;
        if let Some(passes) = &reduced.passes {
            bench.save(passes, &keep.join(format!("{number}-passes.pool")))?;
        }
    }
    Ok(())
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
