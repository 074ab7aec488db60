//! The end of a recovery.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Status(i32),
    Signal(i32),
    TimedOut,
    /// The recovery succeeded, but printed what no beginning of the operations leaves.
    NoPrefix,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Status(status) => write!(f, "exit status {status}"),
            Ended::Signal(signal) => write!(f, "signal {signal}"),
            Ended::TimedOut => write!(f, "no end in time"),
            Ended::NoPrefix => write!(f, "what no beginning of the operations leaves"),
        }
    }
}
