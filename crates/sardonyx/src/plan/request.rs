//! A request to memory, and its answer: what the ingress sees of it.

use crate::line::Logical;
use crate::stats::Direction;
use crate::units::Time;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A line.
    Read(Logical),
    /// That a line is written.
    Write(Logical),
    /// That the metadata of a line are written back.
    Metadata(Logical),
    /// That the transaction of its core ends.
    Commit,
}

impl Asked {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Asked::Read(_) => "read",
            Asked::Write(_) => "write",
            Asked::Metadata(_) => "metadata",
            Asked::Commit => "commit",
        }
    }

    /// The line, if it is about one.
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
    /// When the core presented it.
    pub arrival: Time,
    /// Number of the core that made the request.
    pub core: u32,
    /// The core's own name for it.
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
    /// When it left the core and entered the ingress: its latency counts from its arrival, which may be
    /// earlier.
    pub admitted: Time,
    /// When it was answered (a read) or done (a write).
    pub at: Time,
}
