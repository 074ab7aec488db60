//! A worker's place: it makes an image there, runs the recovery on it, and takes the image back.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::recovery::damage::FORMS;
use crate::recovery::ending::Ended;
use crate::recovery::left_behind::LeftBehind;
use crate::recovery::opened_files::{self, Opened};
use crate::recovery::touched::TouchedPages;
use crate::recovery::trial::{HASTE, LEAST_HASTE, Trial};
use crate::recovery::{RecoveryFiles, said};
use crate::{CrashTestError, Result};

/// An image that fails is tried again this often.
const AGAIN: usize = 2;

/// A private copy of what is cut, which becomes one image after another. This is all that a bench knows of an image, be
/// it lines of mapped pools or operations on files.
pub trait ImageCopy {
    type Image;

    /// What the program had printed when it had acknowledged this much.
    fn printed(&self, acked: usize) -> &[u8];

    /// Becomes an image.
    ///
    /// # Errors
    /// There is no room; the budget ended before it was made.
    fn make(&mut self, image: &Self::Image) -> Result<()>;

    /// Undoes what a recovery wrote to an image, of which it touched these pages.
    ///
    /// # Errors
    /// There is no room; the recovery wrote to other pages as well.
    fn restore(&mut self, image: &Self::Image, touched: &TouchedPages) -> Result<()>;

    /// The folder that holds the image and nothing else.
    fn folder(&self) -> &Path;

    /// The files that `{pool}`, `{pool2}` .. stand for.
    fn pools(&self) -> &[PathBuf] {
        &[]
    }

    /// The metadata of each pool, if the pages that a recovery touches are to be followed.
    fn followed(&self) -> Vec<Option<Metadata>> {
        Vec::new()
    }

    /// The program's own files, which a recovery is to leave alone.
    fn originals(&self) -> Vec<&Path> {
        Vec::new()
    }

    /// All files of an image.
    fn files(&self, image: &Self::Image) -> Vec<PathBuf>;

    /// Puts an image with a form of [damage](crate::recovery::damage) into a folder that does not exist. Returns its
    /// pools.
    fn damage(&mut self, image: &Self::Image, form: u32, folder: &Path) -> Result<Vec<PathBuf>>;

    /// Saves an image.
    fn save(&mut self, image: &Self::Image, place: &Path) -> Result<()>;
}

#[derive(Debug)]
pub struct Bench<'a, C> {
    pub trial: &'a Trial,
    pub copy: C,
    /// The file with what had been printed at the cut of the last run.
    pub acks: PathBuf,
    acked: Option<usize>,
    output: PathBuf,
    left: LeftBehind,
    /// The reason why the last recovery's output is none of the allowed ones.
    differs: Option<String>,
}

impl<'a, C: ImageCopy> Bench<'a, C> {
    /// Makes a bench in a folder that does not exist yet, and a copy in it.
    ///
    /// # Errors
    /// There is no room.
    pub fn new(
        trial: &'a Trial,
        folder: &Path,
        copy: impl FnOnce(&Path) -> Result<C>,
    ) -> Result<Bench<'a, C>> {
        std::fs::create_dir(folder).map_err(CrashTestError::io(folder.display()))?;
        let copy = copy(folder)?;
        Ok(Bench {
            trial,
            left: LeftBehind::of_folder(copy.folder()),
            copy,
            acks: folder.join("acks"),
            acked: None,
            output: folder.join("output"),
            differs: None,
        })
    }

    fn command(&self) -> Vec<OsString> {
        self.trial.recovery.command(self.given())
    }

    fn given(&self) -> RecoveryFiles<'_> {
        RecoveryFiles {
            pools: self.copy.pools(),
            folder: self.copy.folder(),
            acks: &self.acks,
        }
    }

    /// Runs the recovery on an image within some time; the recovery is given what had been acknowledged.
    ///
    /// In turn: what was promised is written down, the copy becomes the image, the recovery runs, its output is compared
    /// with what the promises allow, and the copy is restored.
    ///
    /// # Errors
    /// It cannot be run, or the budget ended before it did.
    pub fn run(&mut self, image: &C::Image, acked: usize, time: Duration) -> Result<Ended> {
        let trial = self.trial;
        if trial.clock.allows(time).is_zero() {
            return Err(CrashTestError::Late);
        }
        self.promise(acked)?;
        self.copy.make(image)?;
        trial.recoveries.fetch_add(1, Ordering::Relaxed);
        let (begun, allowed) = (Instant::now(), trial.clock.allows(time));
        let followed = self.copy.followed();
        let run = (trial.recovery).run_seen(self.given(), &self.output, allowed, &followed);
        self.left.ran();
        let (mut ended, touched) = match run {
            Ok((ended, touched)) => (Ok(ended), touched),
            Err(e) => (Err(e), TouchedPages::whole()),
        };
        self.differs = match &ended {
            Ok(ended) if !trial.recovery.fails(*ended) => self.compare(&self.output, acked)?,
            _ => None,
        };
        if self.differs.is_some() {
            ended = Ok(Ended::NoPrefix);
        }
        if ended
            .as_ref()
            .is_ok_and(|&ended| !trial.recovery.fails(ended))
        {
            let took = begun.elapsed().as_nanos() as u64;
            trial.slowest.fetch_max(took, Ordering::Relaxed);
        }
        self.copy.restore(image, &touched)?;
        match ended {
            // The budget cut the recovery short, so that it says nothing.
            Ok(Ended::TimedOut) if allowed < time => Err(CrashTestError::Late),
            ended => ended,
        }
    }

    /// Writes down what the program had printed, if the recovery looks at it.
    fn promise(&mut self, acked: usize) -> Result<()> {
        if self.trial.recovery.wants_acks() && self.acked != Some(acked) {
            let failed = || CrashTestError::io(self.acks.display());
            let mut file = File::create(&self.acks).map_err(failed())?;
            (file.write_all(self.copy.printed(acked))).map_err(failed())?;
            self.acked = Some(acked);
        }
        Ok(())
    }

    fn compare(&self, output: &Path, acked: usize) -> Result<Option<String>> {
        let printed = self.copy.printed(acked);
        let lines = || printed.iter().filter(|&&byte| byte == b'\n').count();
        self.trial.recovery.differs(output, lines)
    }

    /// Runs the recovery again on an image that failed: a check that fails now and then says nothing about the image.
    /// Returns the last end; `fails` says which ends are violations there.
    ///
    /// # Errors
    /// As of [`Bench::run`].
    pub fn confirm(
        &mut self,
        image: &C::Image,
        (acked, time): (usize, Duration),
        mut ended: Ended,
        fails: impl Fn(Ended) -> bool,
    ) -> Result<Ended> {
        for _ in 0..AGAIN {
            if !fails(ended) {
                break;
            }
            ended = self.run(image, acked, time)?;
            let copes = u64::from(!fails(ended));
            self.trial.flaky.fetch_add(copes, Ordering::Relaxed);
        }
        Ok(ended)
    }

    /// Why the last recovery's output is none of the allowed ones, or else what it printed: its errors have a file of
    /// their own if outputs are compared.
    pub fn said(&self) -> String {
        match &self.differs {
            Some(why) => why.clone(),
            None => match said(&self.output) {
                empty if empty.is_empty() => said(&self.output.with_extension("errors")),
                printed => printed,
            },
        }
    }

    /// Finds the files that the recovery opens: for writing outside of its own folder, the program's own, and which of
    /// the copy's.
    ///
    /// # Errors
    /// There is no room.
    pub fn opened(&mut self, image: &C::Image, acked: usize) -> Result<Opened> {
        self.promise(acked)?;
        self.copy.make(image)?;
        let recovery = &self.trial.recovery;
        let time = self.trial.clock.allows(opened_files::PATIENCE);
        let opened = opened_files::opened(
            &self.command(),
            &self.copy.originals(),
            (self.copy.folder(), &self.copy.files(image)),
            recovery.names_acks().then_some(self.acks.as_path()),
            (time, &recovery.interrupt),
        );
        self.copy.restore(image, &TouchedPages::whole())?;
        Ok(opened)
    }

    /// The first form of [damage](crate::recovery::damage) that the recovery notices in an image: it fails, or takes many
    /// times as long as it takes alone. If the budget ends, the question stays open, and damage counts as noticed.
    ///
    /// # Errors
    /// There is no room in `folder`, which does not exist yet.
    pub fn noticed_damage(
        &mut self,
        image: &C::Image,
        acked: usize,
        (folder, alone): (&Path, Duration),
    ) -> Result<Option<u32>> {
        let recovery = &self.trial.recovery;
        let output = folder.with_extension("output");
        let mut left = LeftBehind::of_folder(folder);
        for form in 0..FORMS {
            let time = (self.trial.clock).allows((alone * HASTE).max(LEAST_HASTE));
            if time.is_zero() {
                return Ok(Some(form));
            }
            if folder.exists() {
                std::fs::remove_dir_all(folder).map_err(CrashTestError::io(folder.display()))?;
            }
            let pools = self.copy.damage(image, form, folder)?;
            let given = RecoveryFiles {
                pools: &pools,
                folder,
                acks: &self.acks,
            };
            let ended = recovery.run(given, &output, time)?;
            left.ran();
            if recovery.fails(ended) || self.compare(&output, acked)?.is_some() {
                return Ok(Some(form));
            }
        }
        Ok(None)
    }
}
