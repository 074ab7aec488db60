//! Crash tests of real programs: what their memory could hold after a power cut, and whether their own recovery copes.
//!
//! [`recording`] reads a recording of level `cpu`; [`state`] says what is persistent when, by the architecture's rules; [`images`] which
//! images a cut could leave; [`copy`] makes them; [`recovery`] runs the program's recovery on one; [`explore`] does so at all cuts, as a
//! [`question`] asks; [`search`] says in which order, from the cut on that `start` finds, and `rounds` leave out what causes that are [`known`] explain;
//! [`found`] is what comes of it, on the [`bench`] of each worker and by the [`clock`] of the budget; [`reduce`] finds the stores that matter; [`source`]
//! their lines of code; [`lint`] what needs no run, and [`oracle`] what needs no check. `docs/crash-test.md` tells the whole.
//! [`pools`] are the files that are cut together, and [`orders`] other orders of the program's threads. Left out: bit errors, reserve power that fails.

pub mod bench;
pub mod clock;
pub mod copy;
mod crew;
pub mod designs;
mod elsewhere;
pub mod events;
pub mod explore;
mod fate;
pub mod file_copy;
pub mod found;
pub mod images;
pub mod known;
pub mod lint;
#[cfg(test)]
mod made;
pub mod oracle;
pub mod orders;
pub mod pools;
pub mod question;
mod reading;
pub mod recording;
pub mod recovery;
pub mod reduce;
mod registers;
pub mod report;
mod rounds;
pub mod search;
pub mod source;
mod start;
pub mod state;
mod suspects;
#[cfg(test)]
mod tests_rules;
pub mod touched;
mod undisturbed;
pub mod versions;

/// What cannot be done, with the place and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum PersistError {
    /// Bad input.
    #[error("{0}")]
    Request(String),
    /// The recording cannot be read.
    #[error(transparent)]
    Trace(#[from] sardonyx::trace::TraceError),
    /// A file or a process failed.
    #[error("{0}: {1}; check the space and the permissions")]
    Io(String, std::io::Error),
    /// The user asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The budget is spent.
    #[error("the budget is spent")]
    Late,
}

impl PersistError {
    fn new(message: impl Into<String>) -> PersistError {
        PersistError::Request(message.into())
    }

    fn io(place: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> PersistError {
        move |e| PersistError::Io(place.to_string(), e)
    }
}
