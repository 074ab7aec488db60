//! The budget's clock, which starts with the first recovery.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::interrupt::Interrupt;

#[derive(Debug)]
pub struct Clock {
    began: OnceLock<Instant>,
    budget: Option<Duration>,
    /// The undisturbed recovery's time, by which a recovery may overrun the budget's end.
    one: Duration,
    interrupt: Interrupt,
}

impl Clock {
    /// A clock that has not started; without a budget it never ends.
    pub fn new(budget: Option<Duration>) -> Clock {
        Clock::interrupted_by(budget, Interrupt::default())
    }

    /// A clock whose budget also ends with the user's wish.
    pub fn interrupted_by(budget: Option<Duration>, interrupt: Interrupt) -> Clock {
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

    pub fn takes(&mut self, one: Duration) {
        self.one = one;
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
        let mut clock = Clock::new(Some(hour));
        clock.takes(second);
        assert_eq!(clock.passed(), Duration::ZERO, "it has not begun");
        clock.begin();
        assert!(!clock.is_spent() && clock.passed() > Duration::ZERO);
        assert_eq!(clock.allows(second), second);
        let most = clock.allows(hour * 2);
        assert!(most > hour && most < hour + second, "{most:?}");
        clock.end();
        assert!(clock.is_spent() && clock.allows(hour) == second);
        let mut spent = Clock::new(Some(Duration::ZERO));
        spent.takes(second);
        assert!(spent.is_spent());
        assert_eq!(spent.allows(hour), second);
        let endless = Clock::new(None);
        assert!(!endless.is_spent());
        assert_eq!(endless.allows(hour), hour);
    }
}
