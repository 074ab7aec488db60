//! What a run may need beyond what there is (a free place in the medium, time that the clock can tell):
//! it cannot go on then, and says so as an error, not as a bug.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Why a run cannot go on, and what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beyond {
    /// What is the matter.
    pub problem: &'static str,
    /// What helps.
    pub remedy: &'static str,
}

impl Beyond {
    /// No place of the medium is free.
    pub(crate) const fn medium_full(remedy: &'static str) -> Beyond {
        Beyond {
            problem: "the medium is full",
            remedy,
        }
    }

    /// Later than the engine's clock can tell.
    pub(crate) const FIVE_HOURS: Beyond = Beyond {
        problem: "the run takes over five hours of simulated time",
        remedy: "give a trace with shorter gaps, or fewer of its records",
    };

    /// Ends the run: unwinds to the [`Beyond::caught`] around it. Layers plan in values that exist, and
    /// the engine's clock has no end, so neither has anything to answer.
    #[cold]
    pub(crate) fn raise(self) -> ! {
        resume_unwind(Box::new(self))
    }

    /// What `run` gives, unless it went beyond something. Whatever `run` worked on must not be used
    /// afterwards.
    ///
    /// # Errors
    /// It cannot go on.
    pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Beyond> {
        let known = |panic: Box<dyn Any + Send>| match panic.downcast::<Beyond>() {
            Ok(beyond) => *beyond,
            Err(bug) => resume_unwind(bug),
        };
        catch_unwind(AssertUnwindSafe(run)).map_err(known)
    }
}
