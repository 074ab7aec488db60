//! Why a plan does what it does: the cause under which its costs are booked.

use std::ops::{Deref, DerefMut};

use super::Plan;
use crate::stats::{Cause, Purpose};

impl Plan {
    /// Charges the following steps to `cause`, until the guard is dropped.
    pub fn because(&mut self, cause: Cause) -> Because<'_> {
        let before = self.enter(cause);
        Because { plan: self, before }
    }

    /// Charges the following steps to `cause`, until [`Plan::leave`] gets what this returns.
    pub fn enter(&mut self, cause: Cause) -> Purpose {
        let before = self.purpose;
        self.purpose = Purpose {
            what: cause,
            whom: before.what,
        };
        // At the top a step serves itself: data is not done for anybody else's sake.
        if before == Purpose::new(Cause::Data) {
            self.purpose.whom = cause;
        }
        before
    }

    /// Charges the following steps to this purpose.
    pub fn leave(&mut self, before: Purpose) {
        self.purpose = before;
    }
}

/// A plan with another cause; dropping it restores the one before.
pub struct Because<'p> {
    plan: &'p mut Plan,
    before: Purpose,
}

impl Deref for Because<'_> {
    type Target = Plan;
    fn deref(&self) -> &Plan {
        self.plan
    }
}

impl DerefMut for Because<'_> {
    fn deref_mut(&mut self) -> &mut Plan {
        self.plan
    }
}

impl Drop for Because<'_> {
    fn drop(&mut self) {
        self.plan.purpose = self.before;
    }
}
