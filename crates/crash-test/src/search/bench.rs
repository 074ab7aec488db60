//! The state of one worker, and the state that all workers share: the recovery is run here, and its verdicts are kept.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::images::copy::{self, Copy};
use crate::images::touched::TouchedPages;
use crate::images::{Floors, Image};
use crate::recording::persistence::Course;
use crate::recording::{LINE, Recording};
use crate::recovery::damage;
use crate::recovery::ending::Ended;
use crate::recovery::left_behind::LeftBehind;
use crate::recovery::opened_files::{self, Opened};
use crate::recovery::{Reason, Recovery, RecoveryFiles, said};
use crate::search::clock::Clock;
use crate::{CrashTestError, Result};

/// The time limit if a time-out decides no violation (in the search for the start, and in reductions): a multiple of
/// the slowest recovery that coped, or the time below if that is longer.
const HASTE: u32 = 10;
const LEAST_HASTE: Duration = Duration::from_millis(200);

/// The reason for which an image fails, if it does, and the time after which that was known.
type Known = (Option<Reason>, Duration);

/// This many recoveries that hang are waited for to the limit; later ones are given up like all others.
const HUNG: u64 = 4;
/// An image that fails is tried again this often.
const AGAIN: usize = 2;

#[derive(Debug)]
pub struct SearchState {
    pub recovery: Recovery,
    pub recording: Recording,
    pub course: Arc<Course>,
    pub recoveries: AtomicU64,
    pub(crate) clock: Clock,
    pub(crate) slowest: AtomicU64,
    /// The verdict on each image, and for a time-out the time that it took.
    pub(crate) verdicts: Mutex<FxHashMap<(u64, usize), Known>>,
    /// The sites whose stores came too early, for each known cause.
    pub(crate) known: Mutex<Vec<FxHashSet<u32>>>,
    /// The event up to which the pool is being made; before it the recovery may refuse the pool.
    pub(crate) made: AtomicU64,
    pub(crate) refusal: Refusal,
    /// The number of bytes that were printed before the first store, such as a greeting: they cannot speak of what is
    /// stored.
    greeting: usize,
    /// The number of images with which the recovery did not end within the whole limit.
    hung: AtomicU64,
    /// The end of the recovery on the pool before the first store.
    pub(crate) refused: Mutex<Option<Ended>>,
    /// An image for each kind of moment that the recovery copes with and writes to.
    pub(crate) repaired: Mutex<FxHashMap<u32, Image>>,
    /// Set once the start is known: from here on an image that fails is a violation.
    pub(crate) looks: AtomicBool,
    /// The number of images that failed in one run and not in another.
    pub(crate) flaky: AtomicU64,
    /// Set if images that wait for a worker are not tried any more.
    pub(crate) enough: AtomicBool,
    pub stop: AtomicBool,
}

fn damaged(recording: &Recording, pools: &[PathBuf], form: u32) -> Result<()> {
    let open = |path: &PathBuf| {
        (OpenOptions::new().write(true).open(path)).map_err(CrashTestError::io(path.display()))
    };
    let files: Vec<File> = pools.iter().map(open).collect::<Result<_, _>>()?;
    for unit in &recording.lines {
        let file = usize::from(unit.file);
        for (line, mut data) in unit.versions.lines(unit.versions.last()) {
            let at = u64::from(line) * LINE as u64;
            damage::damage(form, at, &mut data);
            let length = data
                .len()
                .min(recording.pools[file].bytes.saturating_sub(at) as usize);
            let written = files[file].write_all_at(&data[..length], at);
            written.map_err(CrashTestError::io(pools[file].display()))?;
        }
    }
    Ok(())
}

/// Ways in which the recovery may refuse a pool that the program is still making.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Orderly,
    /// By the exit status that the pool before the first store gets.
    Status,
    Skip,
}

impl Refusal {
    pub fn named(name: &str) -> Option<Refusal> {
        match name {
            "orderly" => Some(Refusal::Orderly),
            "status" => Some(Refusal::Status),
            "skip" => Some(Refusal::Skip),
            _ => None,
        }
    }
}

impl SearchState {
    pub(crate) fn new(
        recovery: Recovery,
        recording: Recording,
        clock: Clock,
        refusal: Refusal,
    ) -> SearchState {
        let events = &recording.events;
        let first = (0..events.len()).find(|&number| events.is_store(number));
        SearchState {
            greeting: first.map_or(0, |first| recording.acked(events.row(first))),
            hung: AtomicU64::new(0),
            recovery,
            course: Arc::new(Course::from_recording(&recording, recording.platform)),
            recording,
            recoveries: AtomicU64::new(0),
            clock,
            slowest: AtomicU64::new(0),
            verdicts: Mutex::default(),
            known: Mutex::default(),
            repaired: Mutex::default(),
            made: AtomicU64::new(0),
            refusal,
            refused: Mutex::default(),
            looks: AtomicBool::new(false),
            flaky: AtomicU64::new(0),
            enough: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        }
    }

    pub fn creates(&self, cut: u32) -> bool {
        u64::from(self.course.cuts[cut as usize].event) < self.made.load(Ordering::Relaxed)
    }

    pub fn fails(&self, cut: u32, ended: Ended) -> bool {
        let refusal = || match (ended, self.refusal) {
            (Ended::Status(_), Refusal::Orderly | Refusal::Skip) => true,
            (Ended::Status(_), Refusal::Status) => {
                let refused = *self.refused.lock().expect("nobody panics with it");
                // If it accepts the untouched pool, or breaks on it, there is no status to go by.
                refused == Some(ended) || !matches!(refused, Some(Ended::Status(_)))
            }
            _ => false,
        };
        self.recovery.fails(ended) && !(self.creates(cut) && !self.has_promised(cut) && refusal())
    }

    /// Whether something was acknowledged before the cut and after the first store, so that a pool must exist.
    fn has_promised(&self, cut: u32) -> bool {
        let row = self.recording.row(self.course.cuts[cut as usize].event);
        self.recovery.wants_acks() && self.recording.acked(row) > self.greeting
    }

    pub fn haste(&self) -> Duration {
        let slowest = Duration::from_nanos(self.slowest.load(Ordering::Relaxed));
        (slowest * HASTE).max(LEAST_HASTE).min(self.recovery.time)
    }
}

#[derive(Debug)]
pub struct Bench<'a> {
    pub shared: &'a SearchState,
    copy: Copy<'a>,
    floors: Floors<'a>,
    acks: PathBuf,
    acked: Option<usize>,
    output: PathBuf,
    left: LeftBehind,
    /// The reason why the last recovery's output is none of the allowed ones.
    differs: Option<String>,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(
        shared: &'a SearchState,
        grounds: &[File],
        folder: &Path,
    ) -> Result<Bench<'a>> {
        std::fs::create_dir(folder).map_err(CrashTestError::io(folder.display()))?;
        let copy = Copy::new(&shared.recording, &shared.course, grounds, folder)?;
        Ok(Bench {
            left: LeftBehind::of_folder(copy.folder()),
            copy,
            floors: Floors::new(&shared.recording, &shared.course),
            acks: folder.join("acks"),
            acked: None,
            output: folder.join("output"),
            differs: None,
            shared,
        })
    }

    pub fn acked(&self, cut: u32) -> usize {
        let shared = self.shared;
        let event = shared.course.cuts[cut as usize].event;
        shared.recording.acked(shared.recording.row(event))
    }

    /// Makes the copy hold an image, which takes long if many lines differ.
    pub(crate) fn make(&mut self, image: &Image) {
        self.copy.make(image);
    }

    /// Runs the recovery on an image within some time; the recovery is given what had been acknowledged.
    ///
    /// # Errors
    /// It cannot be run, or the budget ended before it did.
    pub fn run(&mut self, image: &Image, acked: usize, time: Duration) -> Result<Ended> {
        let recording = &self.shared.recording;
        let allowed = self.shared.clock.allows(time);
        if allowed.is_zero() {
            return Err(CrashTestError::Late);
        }
        if self.shared.recovery.wants_acks() && self.acked != Some(acked) {
            let mut file =
                File::create(&self.acks).map_err(CrashTestError::io(self.acks.display()))?;
            file.write_all(recording.printed(acked))
                .map_err(CrashTestError::io(self.acks.display()))?;
            self.acked = Some(acked);
        }
        self.copy.make(image);
        self.shared.recoveries.fetch_add(1, Ordering::Relaxed);
        let recovery = &self.shared.recovery;
        let begun = Instant::now();
        let followed = self.copy.followed();
        let run = recovery.run_seen(self.files(), &self.output, allowed, &followed);
        self.left.ran();
        let (mut ended, seen) = match run {
            Ok((ended, seen)) => (Ok(ended), seen),
            Err(e) => (Err(e), TouchedPages::whole()),
        };
        self.differs = match &ended {
            Ok(copes) if !recovery.fails(*copes) => {
                let printed = || recording.printed(acked);
                let lines = || printed().iter().filter(|&&byte| byte == b'\n').count();
                recovery.differs(&self.output, lines)?
            }
            _ => None,
        };
        if self.differs.is_some() {
            ended = Ok(Ended::NoPrefix);
        }
        if ended.as_ref().is_ok_and(|&ended| !recovery.fails(ended)) {
            let took = begun.elapsed().as_nanos() as u64;
            self.shared.slowest.fetch_max(took, Ordering::Relaxed);
        }
        self.copy.restore(image, &seen)?;
        match ended {
            Ok(Ended::TimedOut) if allowed < time => Err(CrashTestError::Late),
            ended => ended,
        }
    }

    /// Runs the recovery as [`Bench::run`] does, and again if the image fails: a check that fails now and then says
    /// nothing about the image.
    pub(crate) fn run_surely(
        &mut self,
        image: &Image,
        acked: usize,
        time: Duration,
    ) -> Result<Ended> {
        let shared = self.shared;
        if !shared.looks.load(Ordering::Relaxed) {
            return self.run(image, acked, time);
        }
        let first = self.run_in_time(image, acked, time)?;
        if first == Ended::TimedOut {
            return Ok(first);
        }
        let mut ended = first;
        for _ in 0..AGAIN {
            if !shared.fails(image.cut, ended) {
                break;
            }
            ended = self.run(image, acked, time)?;
        }
        let copes = shared.fails(image.cut, first) && !shared.fails(image.cut, ended);
        shared.flaky.fetch_add(copes.into(), Ordering::Relaxed);
        Ok(ended)
    }

    /// Runs the recovery as [`Bench::run`] does, but waits for one that has not ended long after others did only while
    /// few have hung.
    fn run_in_time(&mut self, image: &Image, acked: usize, time: Duration) -> Result<Ended> {
        let shared = self.shared;
        let ended = self.run(image, acked, shared.haste())?;
        if ended != Ended::TimedOut || shared.hung.load(Ordering::Relaxed) >= HUNG {
            return Ok(ended);
        }
        let ended = self.run(image, acked, time)?;
        let hung = u64::from(ended == Ended::TimedOut);
        shared.hung.fetch_add(hung, Ordering::Relaxed);
        Ok(ended)
    }

    /// The file with what had been printed at the cut of the last run.
    pub(crate) fn acks(&self) -> &Path {
        &self.acks
    }

    fn files(&self) -> RecoveryFiles<'_> {
        RecoveryFiles {
            pools: self.copy.paths(),
            folder: self.copy.folder(),
            acks: &self.acks,
        }
    }

    /// Finds the files that the recovery opens: for writing outside of its own folder, the program's own pools, and
    /// which of the copies.
    pub(crate) fn elsewhere(&mut self, image: &Image) -> Result<Opened> {
        self.copy.make(image);
        let time = self.shared.clock.allows(opened_files::PATIENCE);
        let command = (self.shared.recovery).command(self.files());
        let pools = self.shared.recording.pools.iter();
        let own: Vec<&Path> = pools.map(|pool| pool.path.as_path()).collect();
        let opened = opened_files::opened(
            &command,
            &own,
            (self.copy.folder(), self.copy.paths()),
            (self.shared.recovery)
                .names_acks()
                .then_some(self.acks.as_path()),
            (time, &self.shared.recovery.interrupt),
        );
        self.copy.restore(image, &TouchedPages::whole())?;
        Ok(opened)
    }

    /// Whether the recovery fails on an image with any [form](damage) of damage to what the program wrote, in copies in
    /// a folder. A form that takes many times as long as the recovery by itself counts as noticed. If the budget ends
    /// the question stays open, and damage counts as noticed.
    pub(crate) fn notices_damage(
        &mut self,
        image: &Image,
        acked: usize,
        folder: &Path,
        alone: Duration,
    ) -> Result<bool> {
        let (recording, recovery) = (&self.shared.recording, &self.shared.recovery);
        let output = folder.with_extension("output");
        let mut left = LeftBehind::of_folder(folder);
        for form in 0..damage::FORMS {
            let time = (self.shared.clock).allows((alone * HASTE).max(LEAST_HASTE));
            if time.is_zero() {
                return Ok(true);
            }
            let failed = || CrashTestError::io(folder.display());
            if folder.exists() {
                std::fs::remove_dir_all(folder).map_err(failed())?;
            }
            std::fs::create_dir(folder).map_err(failed())?;
            let pools = copy::paths(recording, folder)?;
            self.save(image, if pools.len() == 1 { &pools[0] } else { folder })?;
            damaged(recording, &pools, form)?;
            let given = RecoveryFiles {
                pools: &pools,
                folder,
                acks: &self.acks,
            };
            let ended = recovery.run(given, &output, time)?;
            left.ran();
            let printed = recording.printed(acked);
            let lines = || printed.iter().filter(|&&byte| byte == b'\n').count();
            if recovery.fails(ended) || recovery.differs(&output, lines)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The reason why the recovery fails on an image within some time, or `None`; each image is tried once.
    ///
    /// # Errors
    /// It cannot be run, all workers are to stop, or the budget is spent.
    pub fn fails(&mut self, image: &Image, acked: usize, time: Duration) -> Result<Option<Reason>> {
        if self.shared.stop.load(Ordering::Relaxed) {
            return Err(CrashTestError::Cancelled);
        }
        self.floors.go(image.cut, |_, _| ());
        let key = (
            self.floors.hash(&image.over),
            match self.shared.recovery.wants_acks() {
                true => acked,
                false => 0,
            } << 1
                | usize::from(self.shared.creates(image.cut)),
        );
        let lock = || self.shared.verdicts.lock().expect("nobody panics with it");
        if let Some((reason, waited)) = lock().get(&key)
            && *waited >= time
        {
            return Ok(reason.clone());
        }
        if self.shared.clock.is_spent() {
            return Err(CrashTestError::Late);
        }
        let ended = self.run(image, acked, time)?;
        let reason =
            (self.shared.fails(image.cut, ended)).then(|| Reason::from_ending(ended, &self.said()));
        let waited = match ended {
            Ended::TimedOut => time,
            _ => Duration::MAX,
        };
        lock().insert(key, (reason.clone(), waited));
        Ok(reason)
    }

    /// Keeps an image that the recovery has just coped with, if it wrote to the pool.
    pub(crate) fn repaired(&self, image: &Image) {
        if !self.copy.changed() || self.shared.creates(image.cut) {
            return;
        }
        let cut = self.shared.course.cuts[image.cut as usize];
        let mut kept = self.shared.repaired.lock().expect("nobody panics with it");
        let first = kept.entry(cut.signature).or_insert_with(|| image.clone());
        // The choice does not depend on the workers' turns. Of the images with the most lines it is the last: by then the
        // program has promised most, which a recovery that is cut can lose.
        if (image.over.len(), image.cut, &image.over) > (first.over.len(), first.cut, &first.over) {
            *first = image.clone();
        }
    }

    pub(crate) fn floors(&mut self, cut: u32) -> Vec<u32> {
        self.floors.go(cut, |_, _| ());
        self.floors.floor.clone()
    }

    pub fn save(&mut self, image: &Image, path: &Path) -> Result<()> {
        self.copy.make(image);
        self.copy.save(path)?;
        self.copy.restore(image, &TouchedPages::default())
    }

    pub(crate) fn said(&self) -> String {
        match &self.differs {
            Some(why) => why.clone(),
            // If the output is compared, errors have a file of their own.
            None => match said(&self.output) {
                empty if empty.is_empty() => said(&self.output.with_extension("errors")),
                printed => printed,
            },
        }
    }
}
