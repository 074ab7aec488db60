//! Judges images of mapped pools: whether one fails, and for which reason, with what all workers know of images.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::images::copy::Copy;
use crate::images::{Floors, Image};
use crate::recording::Recording;
use crate::recording::persistence::Course;
use crate::recovery::Reason;
use crate::recovery::bench::Bench;
use crate::recovery::bench::Trial;
use crate::recovery::ending::Ended;
use crate::{CrashTestError, Result};

/// The reason for which an image fails, if it does, and the time after which that was known.
type Known = (Option<Reason>, Duration);

#[derive(Debug)]
pub struct SearchState {
    pub trial: Trial,
    pub recording: Recording,
    pub course: Arc<Course>,
    /// The verdict on each image, and for a time-out the time that it took.
    verdicts: Mutex<FxHashMap<(u64, usize), Known>>,
    /// The sites whose stores came too early, for each known cause.
    known: Mutex<Vec<FxHashSet<u32>>>,
    /// The event up to which the pool is being made; before it the recovery may refuse the pool.
    pub(crate) made: AtomicU64,
    pub(crate) refusal: Refusal,
    /// The number of bytes that were printed before the first store, such as a greeting: they cannot speak of what is
    /// stored.
    greeting: usize,
    /// The end of the recovery on the pool before the first store.
    refused: Mutex<Option<Ended>>,
    /// Set once the start is known: from here on an image that fails is a violation.
    pub(crate) looks: AtomicBool,
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

/// How the recovery ended on an image.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) ended: Ended,
    /// Whether that is a violation.
    pub(crate) fails: bool,
    /// Whether the pool is still being made at the image's cut.
    pub(crate) creates: bool,
    /// What a recovery that did not cope has said.
    pub(crate) said: String,
    /// Whether one that coped wrote to the pool.
    pub(crate) repaired: bool,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().expect("nobody panics with it")
}

impl SearchState {
    pub(crate) fn new(mut trial: Trial, recording: Recording, refusal: Refusal) -> SearchState {
        trial.printed = recording.printed(usize::MAX).to_vec();
        let events = &recording.events;
        let first = (0..events.len()).find(|&number| events.is_store(number));
        SearchState {
            greeting: first.map_or(0, |first| recording.acked(events.row(first))),
            trial,
            course: Arc::new(Course::from_recording(&recording, recording.platform)),
            recording,
            verdicts: Mutex::default(),
            known: Mutex::default(),
            made: AtomicU64::new(0),
            refusal,
            refused: Mutex::default(),
            looks: AtomicBool::new(false),
        }
    }

    pub fn creates(&self, cut: u32) -> bool {
        u64::from(self.course.cuts[cut as usize].event) < self.made.load(Ordering::Relaxed)
    }

    pub fn fails(&self, cut: u32, ended: Ended) -> bool {
        let refusal = || match (ended, self.refusal) {
            (Ended::Status(_), Refusal::Orderly | Refusal::Skip) => true,
            (Ended::Status(_), Refusal::Status) => {
                let refused = *lock(&self.refused);
                // If it accepts the untouched pool, or breaks on it, there is no status to go by.
                refused == Some(ended) || !matches!(refused, Some(Ended::Status(_)))
            }
            _ => false,
        };
        self.trial.recovery.fails(ended)
            && !(self.creates(cut) && !self.has_promised(cut) && refusal())
    }

    /// Whether something was acknowledged before the cut and after the first store, so that a pool must exist.
    fn has_promised(&self, cut: u32) -> bool {
        let acked = self.course.cuts[cut as usize].acked as usize;
        self.trial.recovery.wants_acks() && acked > self.greeting
    }

    /// Keeps how the recovery ended on the pool before the first store, if it refused it.
    pub(crate) fn refuses_untouched(&self, ended: Ended) {
        *lock(&self.refused) = self.trial.recovery.fails(ended).then_some(ended);
    }

    /// The sites whose stores came too early, for each known cause.
    pub(crate) fn known(&self) -> Vec<FxHashSet<u32>> {
        lock(&self.known).clone()
    }

    /// Adds a cause of stores that came too early. Returns whether it is new.
    pub(crate) fn learn(&self, sites: FxHashSet<u32>) -> bool {
        let mut known = lock(&self.known);
        let new = !known.contains(&sites);
        known.extend(new.then_some(sites));
        new
    }
}

/// A bench with a copy of the pools.
#[derive(Debug)]
pub struct Judge<'a> {
    pub shared: &'a SearchState,
    pub bench: Bench<'a, Copy<'a>>,
    floors: Floors<'a>,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(
        shared: &'a SearchState,
        grounds: &[File],
        folder: &Path,
    ) -> Result<Judge<'a>> {
        let copy = |folder: &Path| Copy::new(&shared.recording, &shared.course, grounds, folder);
        Ok(Judge {
            shared,
            bench: Bench::new(&shared.trial, folder, copy)?,
            floors: Floors::new(&shared.recording, &shared.course),
        })
    }

    pub fn acked(&self, cut: u32) -> usize {
        self.shared.course.cuts[cut as usize].acked as usize
    }

    /// The reason why the recovery fails on an image within some time, or `None`; each image is tried once.
    ///
    /// # Errors
    /// It cannot be run, all workers are to stop, or the budget is spent.
    pub fn fails(&mut self, image: &Image, acked: usize, time: Duration) -> Result<Option<Reason>> {
        if self.shared.trial.stop.load(Ordering::Relaxed) {
            return Err(CrashTestError::Cancelled);
        }
        self.floors.go(image.cut, |_, _| ());
        let key = (
            self.floors.hash(&image.over),
            match self.shared.trial.recovery.wants_acks() {
                true => acked,
                false => 0,
            } << 1
                | usize::from(self.shared.creates(image.cut)),
        );
        if let Some((reason, waited)) = lock(&self.shared.verdicts).get(&key)
            && *waited >= time
        {
            return Ok(reason.clone());
        }
        if self.shared.trial.clock.is_spent() {
            return Err(CrashTestError::Late);
        }
        let ended = self.bench.run(image, acked, time)?;
        let reason = (self.shared.fails(image.cut, ended))
            .then(|| Reason::from_ending(ended, &self.bench.said()));
        let waited = match ended {
            Ended::TimedOut => time,
            _ => Duration::MAX,
        };
        lock(&self.shared.verdicts).insert(key, (reason.clone(), waited));
        Ok(reason)
    }

    pub(crate) fn floors(&mut self, cut: u32) -> Vec<u32> {
        self.floors.go(cut, |_, _| ());
        self.floors.floor.clone()
    }
}
