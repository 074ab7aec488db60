//! What a run may run out of: places in the medium, or time that the clock can count. The run then ends with an error,
//! not with a panic: [`crate::plan::Plan::fail`] keeps the first one, and whoever drives the engine asks
//! [`crate::engine::Engine::failure`].

/// Why a run cannot go on, and what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {remedy}")]
pub struct Exhausted {
    /// The shortage, in words.
    pub problem: &'static str,
    /// What the user can do about it.
    pub remedy: &'static str,
    /// The parameter that is too small for what the programs do at one time, whatever the run did before; `None` where
    /// something is used up.
    pub key: Option<&'static str>,
}

impl Exhausted {
    /// No place of the medium is free.
    pub const fn medium_full(remedy: &'static str) -> Exhausted {
        Exhausted {
            problem: "the medium is full",
            remedy,
            key: None,
        }
    }

    /// An event lies beyond the end of the engine's clock.
    pub const FIVE_HOURS: Exhausted = Exhausted {
        problem: "the run takes over five hours of simulated time",
        remedy: "give a trace with shorter gaps, or fewer of its records",
        key: None,
    };
}
