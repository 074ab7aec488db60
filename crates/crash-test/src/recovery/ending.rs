//! How a recovery ended.

/// How a recovery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this exit status.
    Status(i32),
    /// By this signal.
    Signal(i32),
    /// Not within the time limit.
    TimedOut,
    /// It coped, but printed what no beginning of the operations leaves.
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
