//! What one worker has, and what all of them share: the recovery is run here, and its verdicts are kept.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::PersistError;
use crate::clock::Clock;
use crate::copy::Copy;
use crate::elsewhere;
use crate::images::{Floors, Image};
use crate::recording::Recording;
use crate::recovery::{Ended, Recovery, said};
use crate::state::{Course, Platform};

/// Where a time-out decides no violation (the search for the start, reductions), a recovery's time, in times of the slowest that
/// coped, and at least.
const HASTE: u32 = 10;
const LEAST_HASTE: Duration = Duration::from_millis(200);

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
    /// The budget.
    pub(crate) clock: Clock,
    /// Nanoseconds of the slowest recovery that coped.
    pub(crate) slowest: AtomicU64,
    /// Whether it copes, by image; and of a time-out, after how long.
    pub(crate) verdicts: Mutex<FxHashMap<(u64, usize), (bool, Duration)>>,
    /// Images that wait for a worker are not tried any more.
    pub(crate) enough: AtomicBool,
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
    pub(crate) fn new(
        shared: &'a Shared,
        ground: &File,
        folder: &Path,
    ) -> Result<Bench<'a>, PersistError> {
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
    /// It cannot be run, or the budget ended before it did.
    pub fn run(
        &mut self,
        image: &Image,
        acked: usize,
        time: Duration,
    ) -> Result<Ended, PersistError> {
        let recording = &self.shared.recording;
        let allowed = self.shared.clock.allows(time);
        if allowed.is_zero() {
            return Err(PersistError::Late);
        }
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
        let ended = recovery.run(self.copy.path(), &self.acks, &self.output, allowed);
        if ended.as_ref().is_ok_and(|&ended| !recovery.fails(ended)) {
            let took = begun.elapsed().as_nanos() as u64;
            self.shared.slowest.fetch_max(took, Ordering::Relaxed);
        }
        self.copy.restore(image)?;
        match ended {
            Ok(Ended::TimedOut) if allowed < time => Err(PersistError::Late),
            ended => ended,
        }
    }

    /// The files outside of its own folder that the recovery opens for writing.
    pub(crate) fn elsewhere(&mut self, image: &Image) -> Result<Vec<PathBuf>, PersistError> {
        self.copy.make(image);
        let time = self.shared.clock.allows(elsewhere::PATIENCE);
        let command = (self.shared.recovery).command(self.copy.path(), &self.acks);
        let folder = self.copy.path().parent().expect("it is in a folder");
        let files = elsewhere::written(&command, folder, time);
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
        if self.shared.clock.is_spent() {
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

    pub(crate) fn said(&self) -> String {
        said(&self.output)
    }
}
