//! What a run may need more of than there is: places in the medium, time that the clock can tell. The
//! run ends with an error then, not with a panic: [`crate::plan::Plan::fail`] keeps the first one, and
//! whoever drives the engine looks at [`crate::engine::Engine::failure`].

/// Why a run cannot go on, and what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {remedy}")]
pub struct Exhausted {
    /// What there is no more of.
    pub problem: &'static str,
    /// What the user can do about it.
    pub remedy: &'static str,
}

impl Exhausted {
    /// No place of the medium is free.
    pub const fn medium_full(remedy: &'static str) -> Exhausted {
        Exhausted {
            problem: "the medium is full",
            remedy,
        }
    }

    /// Later than the engine's clock can tell.
    pub const FIVE_HOURS: Exhausted = Exhausted {
        problem: "the run takes over five hours of simulated time",
        remedy: "give a trace with shorter gaps, or fewer of its records",
    };
}
