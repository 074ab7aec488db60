//! Crash tests of real programs: the contents of their memory that a power cut could leave, and whether their own
//! recovery copes.
//!
//! [`recording`] holds what a program did to its files and when that is persistent; [`images`] what a cut could leave;
//! [`recovery`] the program's own recovery, run on one image; [`search`] which cuts and images are tried, as a
//! [`question`] asks, and how a failure is reduced; [`report`] the findings, by line of code; [`verdict`] what they come
//! to. Each knows only those further down: `report`, `search`, `question`, `images`, `recording`, `recovery`, `verdict`.
//!
//! `docs/crash-test/real-programs.md` tells the whole. Left out: bit errors, and reserve power that fails.

pub mod images;
pub mod interrupt;
pub mod question;
pub mod recording;
pub mod recovery;
pub mod report;
pub mod search;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests_rules;
pub mod verdict;

pub type Result<T, E = CrashTestError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum CrashTestError {
    #[error("{0}")]
    Request(String),
    #[error(transparent)]
    Trace(#[from] sardonyx_trace::TraceError),
    #[error("{0}: {1}; check the space and the permissions")]
    Io(String, std::io::Error),
    #[error("cancelled")]
    Cancelled,
    #[error("the budget is spent")]
    Late,
}

impl CrashTestError {
    pub fn new(message: impl Into<String>) -> CrashTestError {
        CrashTestError::Request(message.into())
    }

    /// An error of the operating system with the file at which it happened.
    pub fn io(place: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> CrashTestError {
        move |e| CrashTestError::Io(place.to_string(), e)
    }
}
