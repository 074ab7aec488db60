//! Where recoveries run on images: what all workers share, the recovery, the budget's clock and counters; and the bench of
//! one worker, which makes an image, runs the recovery on it, and takes the image back.

use std::fs::{File, Metadata};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::interrupt::Interrupt;
use crate::recovery::damage::FORMS;
use crate::recovery::ending::Ended;
use crate::recovery::left_behind;
use crate::recovery::opened_files::{self, Opened};
use crate::recovery::oracle::Oracle;
use crate::recovery::touched::TouchedPages;
use crate::recovery::{Recovery, RecoveryFiles, said};
use crate::{CrashTestError, Result};

/// A recovery may take this many times as long as the undisturbed one, or the time below if that is longer.
const PATIENCE: u32 = 50;
const LEAST_TIME: Duration = Duration::from_secs(2);
/// A time-out that decides no violation comes after this multiple of the slowest recovery that coped, or after the time
/// below if that is longer.
const HASTE: u32 = 10;
const LEAST_HASTE: Duration = Duration::from_millis(200);

/// Processes that recoveries leave behind are looked for once in this many of them.
const BETWEEN_LOOKS: u32 = 128;
/// This many recoveries that hang are waited for to the limit; later ones are given up like all others.
const HUNG: u64 = 4;
/// An image that fails is tried again this often.
const AGAIN: usize = 2;

/// Is told the number of recoveries, and ends the search by answering false.
pub type Tell<'a> = &'a (dyn Fn(u64, u64) -> bool + Sync);

#[derive(Debug)]
pub struct Trial {
    pub recovery: Recovery,
    pub clock: Clock,
    /// All that the program had printed where its promises are.
    pub printed: Vec<u8>,
    pub recoveries: AtomicU64,
    /// The number of images that failed in one run and not in another.
    pub flaky: AtomicU64,
    /// The nanoseconds of the slowest recovery that coped.
    slowest: AtomicU64,
    /// The number of images with which the recovery did not end within the whole limit.
    hung: AtomicU64,
    /// Set if images that wait for a worker are not tried any more.
    pub(crate) enough: AtomicBool,
    /// Set if workers are to give up at once, because one of them has failed.
    pub(crate) stop: AtomicBool,
}

impl Trial {
    pub fn new(recovery: Recovery, clock: Clock) -> Trial {
        Trial {
            recovery,
            clock,
            printed: Vec::new(),
            recoveries: AtomicU64::new(0),
            flaky: AtomicU64::new(0),
            slowest: AtomicU64::new(0),
            hung: AtomicU64::new(0),
            enough: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        }
    }

    /// Learns from the undisturbed recovery how long one may take, unless the user has said so.
    pub fn learn_time(&mut self, undisturbed: Duration, limit: Option<f64>) {
        self.clock.one = undisturbed;
        if limit.is_none() {
            self.recovery.time = (undisturbed * PATIENCE).max(LEAST_TIME);
        }
    }

    pub fn haste(&self) -> Duration {
        let slowest = Duration::from_nanos(self.slowest.load(Ordering::Relaxed));
        (slowest * HASTE).max(LEAST_HASTE).min(self.recovery.time)
    }

    pub fn count(&self) -> u64 {
        self.recoveries.load(Ordering::Relaxed)
    }

    /// Tells how far the search is, and ends it if the listener wants so; its findings are kept. Returns the seconds that
    /// have passed, or `None` if the budget is spent.
    pub fn listen(&self, tell: Tell<'_>) -> Option<f64> {
        if !tell(self.recoveries.load(Ordering::Relaxed), 0) {
            self.clock.end();
        }
        (!self.clock.is_spent()).then(|| self.clock.passed().as_secs_f64())
    }

    /// The reason why a recovery may not print this after so much was acknowledged; `None` if it may.
    fn differs(&self, oracle: &Oracle, output: &Path, acked: usize) -> Result<Option<String>> {
        let printed = std::fs::read(output).map_err(CrashTestError::io(output.display()))?;
        let acked = &self.printed[..acked];
        let lines = acked.iter().filter(|&&byte| byte == b'\n').count();
        Ok(oracle.differs(&printed, lines))
    }

    /// # Errors
    /// An image that waited for its turn is not tried any more.
    pub fn check_in_time(&self) -> Result<()> {
        match self.enough.load(Ordering::Relaxed) || self.clock.is_spent() {
            true => Err(CrashTestError::Late),
            false => Ok(()),
        }
    }
}

#[derive(Debug)]
pub struct Clock {
    began: OnceLock<Instant>,
    budget: Option<Duration>,
    /// The undisturbed recovery's time, by which a recovery may overrun the budget's end.
    one: Duration,
    interrupt: Interrupt,
}

impl Clock {
    /// A clock that has not started. Its budget also ends with the user's wish; without a budget only so.
    pub fn new(budget: Option<Duration>, interrupt: Interrupt) -> Clock {
        Clock {
            began: OnceLock::new(),
            budget,
            one: Duration::ZERO,
            interrupt,
        }
    }

    pub fn begin(&self) {
        self.began.get_or_init(Instant::now);
    }

    pub fn passed(&self) -> Duration {
        self.began.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    pub fn end(&self) {
        self.interrupt.set();
    }

    fn left(&self) -> Option<Duration> {
        let passed = self.passed();
        if self.interrupt.is_set() {
            return Some(Duration::ZERO);
        }
        self.budget.map(|budget| budget.saturating_sub(passed))
    }

    pub fn is_spent(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// The part of `time`, which a recovery may take, that the budget still allows.
    pub fn allows(&self, time: Duration) -> Duration {
        self.left().map_or(time, |left| time.min(left + self.one))
    }
}

/// A private copy of what is cut, which becomes one image after another. This is all that a bench knows of an image, be
/// it lines of mapped pools or operations on files.
pub trait ImageCopy {
    type Image;

    /// Becomes an image.
    ///
    /// # Errors
    /// There is no room; the budget ended before it was made.
    fn make(&mut self, image: &Self::Image) -> Result<()>;

    /// Undoes what a recovery wrote to an image, of which it touched these pages. Returns whether it wrote anything.
    ///
    /// # Errors
    /// There is no room; the recovery wrote to other pages as well.
    fn restore(&mut self, image: &Self::Image, touched: &TouchedPages) -> Result<bool>;

    /// What the recovery is given, with the file of what had been printed.
    fn given<'g>(&'g self, acks: &'g Path) -> RecoveryFiles<'g>;

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
pub struct Bench<'a, C: ImageCopy> {
    pub trial: &'a Trial,
    pub copy: C,
    /// The file with what had been printed at the cut of the last run.
    pub acks: PathBuf,
    acked: Option<usize>,
    wants_acks: bool,
    output: PathBuf,
    /// The number of recoveries that ran.
    ran: u32,
    /// Whether the last recovery wrote to its image.
    pub wrote: bool,
    /// The reason why the last recovery's output is none of the allowed ones.
    differs: Option<String>,
}

impl<C: ImageCopy> Drop for Bench<'_, C> {
    fn drop(&mut self) {
        if self.ran > 0 {
            left_behind::end(self.copy.given(&self.acks).folder);
        }
    }
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
            ran: 0,
            wrote: false,
            copy,
            acks: folder.join("acks"),
            acked: None,
            wants_acks: trial.recovery.wants_acks(),
            output: folder.join("output"),
            differs: None,
        })
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
        let (followed, given) = (self.copy.followed(), self.copy.given(&self.acks));
        let run = (trial.recovery).run_seen(given, &self.output, allowed, &followed);
        let (mut ended, touched) = match run {
            Ok((ended, touched)) => (Ok(ended), touched),
            Err(e) => (Err(e), TouchedPages::WHOLE),
        };
        let copes = ended
            .as_ref()
            .is_ok_and(|&ended| !trial.recovery.fails(ended));
        self.differs = None;
        if let (true, Some(oracle)) = (copes, &trial.recovery.oracle) {
            self.differs = trial.differs(oracle, &self.output, acked)?;
        }
        if self.differs.is_some() {
            ended = Ok(Ended::NoPrefix);
        } else if copes {
            let took = begun.elapsed().as_nanos() as u64;
            trial.slowest.fetch_max(took, Ordering::Relaxed);
        }
        self.wrote = self.copy.restore(image, &touched)?;
        // A look at all processes takes about as long as a recovery.
        self.ran += 1;
        if self.ran.is_multiple_of(BETWEEN_LOOKS) {
            left_behind::end(self.copy.given(&self.acks).folder);
        }
        match ended {
            // The budget cut the recovery short, so that it says nothing.
            Ok(Ended::TimedOut) if allowed < time => Err(CrashTestError::Late),
            ended => ended,
        }
    }

    /// Runs the recovery as [`Bench::run`] does, but waits for one that has not ended long after others did only while few
    /// have hung.
    ///
    /// # Errors
    /// As of [`Bench::run`].
    pub fn run_in_time(&mut self, image: &C::Image, acked: usize, time: Duration) -> Result<Ended> {
        let trial = self.trial;
        let ended = self.run(image, acked, trial.haste())?;
        if !matches!(ended, Ended::TimedOut) || trial.hung.load(Ordering::Relaxed) >= HUNG {
            return Ok(ended);
        }
        let ended = self.run(image, acked, time)?;
        let hung = u64::from(matches!(ended, Ended::TimedOut));
        trial.hung.fetch_add(hung, Ordering::Relaxed);
        Ok(ended)
    }

    /// Writes down what the program had printed, if the recovery looks at it.
    fn promise(&mut self, acked: usize) -> Result<()> {
        if self.wants_acks && self.acked != Some(acked) {
            let failed = || CrashTestError::io(self.acks.display());
            let mut file = File::create(&self.acks).map_err(failed())?;
            file.write_all(&self.trial.printed[..acked])
                .map_err(failed())?;
            self.acked = Some(acked);
        }
        Ok(())
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
        let given = self.copy.given(&self.acks);
        let opened = opened_files::opened(
            &recovery.command(given),
            &self.copy.originals(),
            (given.folder, &self.copy.files(image)),
            recovery.names_acks().then_some(self.acks.as_path()),
            (time, &recovery.interrupt),
        );
        self.copy.restore(image, &TouchedPages::WHOLE)?;
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
        let noticed = self.first_noticed(image, acked, (folder, alone));
        left_behind::end(folder);
        noticed
    }

    /// A check is done after the first form that it notices.
    fn first_noticed(
        &mut self,
        image: &C::Image,
        acked: usize,
        (folder, alone): (&Path, Duration),
    ) -> Result<Option<u32>> {
        let recovery = &self.trial.recovery;
        let output = folder.with_extension("output");
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
            let differs = match &recovery.oracle {
                Some(oracle) => self.trial.differs(oracle, &output, acked)?,
                None => None,
            };
            if recovery.fails(ended) || differs.is_some() {
                return Ok(Some(form));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recovery_may_run_past_the_budget_by_its_own_time() {
        let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3600));
        let mut clock = Clock::new(Some(hour), Interrupt::default());
        clock.one = second;
        assert_eq!(clock.passed(), Duration::ZERO, "it has not begun");
        clock.begin();
        assert!(!clock.is_spent() && clock.passed() > Duration::ZERO);
        assert_eq!(clock.allows(second), second);
        let most = clock.allows(hour * 2);
        assert!(most > hour && most < hour + second, "{most:?}");
        clock.end();
        assert!(clock.is_spent() && clock.allows(hour) == second);
        let mut spent = Clock::new(Some(Duration::ZERO), Interrupt::default());
        spent.one = second;
        assert!(spent.is_spent());
        assert_eq!(spent.allows(hour), second);
        let endless = Clock::new(None, Interrupt::default());
        assert!(!endless.is_spent());
        assert_eq!(endless.allows(hour), hour);
    }
}
