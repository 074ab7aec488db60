//! What all workers of a search share: the recovery, the budget's clock, which starts with the first recovery, and
//! counters.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::interrupt::Interrupt;
use crate::recovery::Recovery;
use crate::{CrashTestError, Result};

/// A recovery may take this many times as long as the undisturbed one, or the time below if that is longer.
const PATIENCE: u32 = 50;
const LEAST_TIME: Duration = Duration::from_secs(2);
/// A time-out that decides no violation comes after this multiple of the slowest recovery that coped, or after the time
/// below if that is longer.
pub(crate) const HASTE: u32 = 10;
pub(crate) const LEAST_HASTE: Duration = Duration::from_millis(200);

/// Is told the number of recoveries, and ends the search by answering false.
pub type Tell<'a> = &'a (dyn Fn(u64, u64) -> bool + Sync);

#[derive(Debug)]
pub struct Trial {
    pub recovery: Recovery,
    pub clock: Clock,
    pub recoveries: AtomicU64,
    /// The number of images that failed in one run and not in another.
    pub flaky: AtomicU64,
    /// The nanoseconds of the slowest recovery that coped.
    pub(crate) slowest: AtomicU64,
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
            recoveries: AtomicU64::new(0),
            flaky: AtomicU64::new(0),
            slowest: AtomicU64::new(0),
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

    /// Tells how far the search is, and ends it if the listener wants so; its findings are kept.
    pub fn listen(&self, tell: Tell<'_>) {
        if !tell(self.count(), 0) {
            self.clock.end();
        }
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
        if self.interrupt.is_set() {
            return Some(Duration::ZERO);
        }
        let passed = self.passed();
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
