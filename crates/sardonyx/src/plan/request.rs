//! A request to memory, and its answer: what the ingress sees of it.

use crate::line::Logical;
use crate::stats::Direction;
use crate::units::Time;

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It reads a line.
    Read(Logical),
    /// It writes a line.
    Write(Logical),
    /// It writes the metadata of a line back.
    Metadata(Logical),
    /// It ends the transaction of its core.
    Commit,
}

impl Asked {
    /// The purpose's name in results.
    pub fn name(self) -> &'static str {
        match self {
            Asked::Read(_) => "read",
            Asked::Write(_) => "write",
            Asked::Metadata(_) => "metadata",
            Asked::Commit => "commit",
        }
    }

    /// The line of the request, if it is about one.
    pub fn line(self) -> Option<Logical> {
        match self {
            Asked::Read(line) | Asked::Write(line) | Asked::Metadata(line) => Some(line),
            Asked::Commit => None,
        }
    }
}

/// A request as the ingress sees it.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The time at which the core presented it.
    pub arrival: Time,
    /// Number of the core that made the request.
    pub core: u32,
    /// The core's own name for the request.
    pub tag: u64,
    /// Read or write.
    pub kind: Direction,
    /// Whether its latency is booked (not during a warm-up).
    pub counted: bool,
}

/// A request that has been answered.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// The request.
    pub request: Request,
    /// The time at which the request left the core and entered the ingress. Its latency counts from its arrival, which
    /// may be earlier.
    pub admitted: Time,
    /// The time at which the request was answered (a read) or done (a write).
    pub at: Time,
}
