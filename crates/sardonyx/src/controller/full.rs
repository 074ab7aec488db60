//! A design that finds no free place: a run cannot go on then, and says so as an error, not as a bug.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// No place of the medium is free; what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediumFull(pub &'static str);

impl MediumFull {
    /// Ends the run: unwinds to the [`MediumFull::caught`] around it. A layer plans in values that
    /// exist, so it has nothing to answer without a place.
    pub(crate) fn raise(remedy: &'static str) -> ! {
        resume_unwind(Box::new(MediumFull(remedy)))
    }

    /// What `run` gives, unless a design found no place in it. Whatever `run` worked on must not be
    /// used afterwards.
    ///
    /// # Errors
    /// A design found no place.
    pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, MediumFull> {
        let known = |panic: Box<dyn Any + Send>| match panic.downcast::<MediumFull>() {
            Ok(full) => *full,
            Err(bug) => resume_unwind(bug),
        };
        catch_unwind(AssertUnwindSafe(run)).map_err(known)
    }
}
