//! Tries images: the leader hands them out pass after pass, and a worker that finds a failure explains it at once, so that
//! others of the same cause are known.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};

use rustc_hash::FxHashSet;
use sardonyx_crash_test::Result;
use sardonyx_crash_test::recovery::bench::Tell;
use sardonyx_crash_test::recovery::ending::Ended;
use sardonyx_crash_test::search::crew::{Lead, with_workers};

use crate::folder_copy::{Case, Worker};
use crate::image_choice::{FolderImage, ImagePlan, OperationPart, PASSES};
use crate::model::Class;
use crate::search::findings::{Cause, Found};
use crate::search::reduce::{Reduced, reduce};
use crate::tree::FileTree;

/// This many failing images of one cause are run; more are left out.
const SAME: u64 = 8;
/// At most this many causes are looked for.
const MOST: usize = 24;

pub(crate) struct Search<'a> {
    case: &'a Case,
    /// A number for the call site of each operation.
    keys: Vec<u32>,
    start: Option<u32>,
    refusal: Option<Ended>,
    wants_acks: bool,
    seen: Mutex<FxHashSet<(blake3::Hash, usize)>>,
    found: Mutex<Found>,
}

/// The leader hands out every image; workers keep what they find.
impl Lead for &Search<'_> {
    type Image = FolderImage;
    type Job = FolderImage;
    type Answer = ();

    fn is_enough(&mut self, _: f64) -> bool {
        lock(&self.found).causes.len() >= MOST
    }

    fn job(&mut self, image: FolderImage) -> Option<FolderImage> {
        Some(image)
    }

    fn take(&mut self, (): ()) {}
}

impl<'a> Search<'a> {
    pub(crate) fn new(
        case: &'a Case,
        keys: Vec<u32>,
        (start, refusal): (Option<u32>, Option<Ended>),
        found: Found,
    ) -> Search<'a> {
        Search {
            keys,
            start,
            refusal,
            wants_acks: case.trial.recovery.wants_acks(),
            seen: Mutex::default(),
            found: Mutex::new(found),
            case,
        }
    }

    /// Makes pass after pass until one that is drawn has nothing new, or the budget is spent, or there are many causes.
    pub(crate) fn all(
        self,
        mut plan: ImagePlan<'_>,
        workers: usize,
        folder: &Path,
        tell: Tell<'_>,
    ) -> Result<Found> {
        let (mut search, trial) = (&self, &self.case.trial);
        let worker = |number: usize| Worker::new(self.case, &folder.join(format!("{number}")));
        let work = |worker: &mut Worker<'_>, image| self.try_one(worker, &image);
        with_workers(trial, workers, worker, work, |crew| {
            for pass in 0.. {
                let before = lock(&self.seen).len();
                if !crew.pass((trial, tell), &mut search, |give| plan.pass(pass, give))? {
                    break;
                }
                let mut found = lock(&self.found);
                if pass + 1 >= PASSES.len() && lock(&self.seen).len() == before {
                    found.finished = true;
                    break;
                }
                found.passes = pass + 1;
            }
            Ok(())
        })?;
        let (recoveries, flaky) = (trial.count(), trial.flaky.load(Ordering::Relaxed));
        let seconds = trial.clock.passed().as_secs_f64();
        let mut found = self.found.into_inner().unwrap_or_else(|e| e.into_inner());
        (found.recoveries, found.flaky, found.seconds) = (recoveries, flaky, seconds);
        Ok(found)
    }

    /// Tries an image.
    ///
    /// In turn: an image whose turn came too late is not tried; equal folders at equal moments are tried once; an image
    /// that a known cause explains is left out after a few of them; a refusal that is allowed is counted; a failure that a
    /// known cause explains is counted; any other is explained.
    fn try_one(&self, worker: &mut Worker<'_>, image: &FolderImage) -> Result<()> {
        self.case.trial.check_in_time()?;
        let tree = worker.tree(image);
        let hash = (tree.hash(), self.moment(image.cut));
        lock(&self.found).cuts.insert(image.cut);
        if !lock(&self.seen).insert(hash) || self.is_known(image, true) {
            return Ok(());
        }
        let ended = self.run(worker, &tree, image.cut)?;
        let mut found = lock(&self.found);
        found.images += 1;
        if !self.case.trial.recovery.fails(ended) {
            return Ok(());
        }
        if self.is_refusal(image.cut, ended) {
            found.refused += 1;
            return Ok(());
        }
        let images = found.images;
        drop(found);
        match self.is_known(image, false) {
            true => Ok(()),
            false => self.explain(worker, image, (&tree, ended), images),
        }
    }

    fn run(&self, worker: &mut Worker<'_>, tree: &FileTree, cut: u32) -> Result<Ended> {
        let time = self.case.trial.recovery.time;
        worker.bench.run(tree, self.case.acked(cut), time)
    }

    /// Finds the cause of a failure of the last of so many images, and adds it to those that are known.
    fn explain(
        &self,
        worker: &mut Worker<'_>,
        image: &FolderImage,
        failed: (&FileTree, Ended),
        images: u64,
    ) -> Result<()> {
        let seconds = self.case.trial.clock.passed().as_secs_f64();
        let reduced = self.reduced(worker, image, failed);
        let mut found = lock(&self.found);
        let reduced = match reduced {
            Ok(Some(reduced)) => reduced,
            Ok(None) => return Ok(()),
            Err(e) => {
                found.first_violation.get_or_insert(images);
                found.violations += 1;
                found.unreduced += 1;
                return Err(e);
            }
        };
        found.violations += 1;
        found.first_violation.get_or_insert(images);
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
        Ok(())
    }

    /// Reduces a failure; `None` if it is flaky.
    fn reduced(
        &self,
        worker: &mut Worker<'_>,
        image: &FolderImage,
        (tree, ended): (&FileTree, Ended),
    ) -> Result<Option<Reduced>> {
        let (case, cut) = (self.case, image.cut);
        let given = (case.acked(cut), case.trial.recovery.time);
        let fails = |ended| self.fails(cut, ended);
        let ended = worker.bench.confirm(tree, given, ended, fails)?;
        if !fails(ended) {
            return Ok(None);
        }
        let last = (ended, worker.bench.said());
        let mut run = |image: &FolderImage| {
            let tree = worker.tree(image);
            let ended = self.run(worker, &tree, image.cut)?;
            Ok(fails(ended).then(|| (ended, worker.bench.said())))
        };
        let reduced = reduce(&case.model, image, last, &mut run)?;
        let flaky = u64::from(reduced.is_none());
        case.trial.flaky.fetch_add(flaky, Ordering::Relaxed);
        Ok(reduced)
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

    /// A number for all that a recovery can tell one cut from another by, besides the folder.
    fn moment(&self, cut: u32) -> usize {
        let acked = self.case.acked(cut);
        match self.wants_acks {
            true => acked,
            false => usize::from(self.start.is_some_and(|start| cut >= start)),
        }
    }

    fn fails(&self, cut: u32, ended: Ended) -> bool {
        self.case.trial.recovery.fails(ended) && !self.is_refusal(cut, ended)
    }

    /// Whether the recovery refuses the folder as it refuses the untouched one, which it may do before it first copes
    /// and before it was given any printed text.
    fn is_refusal(&self, cut: u32, ended: Ended) -> bool {
        self.refusal == Some(ended)
            && (self.case.acked(cut) == 0 || !self.wants_acks)
            && self.start.is_none_or(|start| cut < start)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
