//! What a host asks of memory, and what it is told: the vocabulary of [`super::Hosted`].

use crate::controller::designs::UnknownDesign;
use crate::exhausted::Exhausted;
use crate::line::{LINE_BYTES, Line};
use crate::machine::OutOfMemory;
use crate::memory::Wrong;
use crate::units::Time;

crate::names::named! {
    /// When a write is answered.
    #[derive(Default)]
    Posted {
        /// When it is in the persistence domain
        #[default]
        Accepted = "accepted",
        /// When it is in the array
        Array = "array",
    }
}

crate::names::named! {
    /// What a line that nobody has written reads as.
    #[derive(Default)]
    Unwritten {
        /// Zeros.
        #[default]
        Zeros = "zeros",
        /// Noise, the same for the same line.
        Noise = "noise",
    }
}

/// How a host's memory is to be.
#[derive(Clone, Copy, Debug)]
pub struct HostOptions {
    /// Sources of requests: the host's cores, or its ports.
    pub sources: usize,
    /// When writes are answered.
    pub posted: Posted,
    /// What unwritten lines read as.
    pub unwritten: Unwritten,
    /// What the host has written last is kept beside memory: for parts of lines, for looks, and to hold what
    /// memory reads against. Without, it takes whole lines alone.
    pub keep: bool,
    /// A journal is kept, so that the power may be cut.
    pub journal: bool,
    /// Requests that warm the machine up and are left out of the statistics.
    pub warmup: u64,
}

impl Default for HostOptions {
    fn default() -> HostOptions {
        HostOptions {
            sources: 1,
            posted: Posted::default(),
            unwritten: Unwritten::default(),
            keep: true,
            journal: false,
            warmup: 0,
        }
    }
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRequestKind<'b> {
    /// Read so many bytes.
    Read(usize),
    /// Write these; `persist` if the next fence of the source waits for it.
    Write {
        /// At most a line.
        bytes: &'b [u8],
        /// The next fence of the source waits for it.
        persist: bool,
        /// With its encryption counter, or not at all.
        counter_atomic: bool,
        /// Told once more when it is in the array, if it is answered before.
        tell_array: bool,
    },
    /// Write the metadata of the line back (`counter_cache_writeback`); the next fence waits for it.
    WriteCounters,
}

/// A request of the host's.
#[derive(Clone, Copy, Debug)]
pub struct HostRequest<'b> {
    /// What to do.
    pub kind: HostRequestKind<'b>,
    /// The first byte.
    pub address: u64,
    /// Which source asks.
    pub source: u32,
    /// The host's own name for it.
    pub tag: u64,
    /// When the host had it: latencies count from here. `None`: now.
    pub presented: Option<Time>,
}

/// What an answer is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// A read: its bytes are there.
    Read,
    /// A write.
    Written,
    /// A write that was answered before is in the array.
    InArray,
    /// A write-back of metadata.
    Counters,
    /// A flush: all earlier writes of the line are in the persistence domain.
    Flushed,
    /// A fence: all that the source had persist or flushed is.
    Fenced,
}

/// An answer.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// To what.
    pub what: AnswerKind,
    /// The host's name for it.
    pub tag: u64,
    /// Who asked.
    pub source: u32,
    /// When the host had it.
    pub presented: Time,
    /// When it entered the controller.
    pub admitted: Time,
    /// When it was in the persistence domain, if it has been.
    pub accepted: Option<Time>,
    /// When it was in the array, if it has been.
    pub array: Option<Time>,
    /// When it was answered.
    pub answered: Time,
    /// The line, for a read.
    pub line: Line,
    /// Which byte of it the host asked for first, and how many.
    pub part: (u8, u8),
    /// A read's line had been written before.
    pub written: bool,
}

/// Why something that a host asked for was not done.
#[derive(Debug, thiserror::Error)]
pub enum HostedError {
    /// There is no such design.
    #[error(transparent)]
    Design(#[from] UnknownDesign),
    /// The run needs more than there is.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// An address lies nowhere.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// The address is beyond the machine.
    #[error(
        "address {address:#x}: the machine has {capacity} bytes; give a larger machine, or \
         addresses=wrapped or addresses=first-touch"
    )]
    Beyond {
        /// The address.
        address: u64,
        /// Bytes of the machine.
        capacity: u64,
    },
    /// More bytes than a request may have, or none.
    #[error(
        "{size} bytes at {address:#x}: a request has 1 to {LINE_BYTES} bytes of one line; split it at lines"
    )]
    Size {
        /// The address.
        address: u64,
        /// Bytes asked for.
        size: usize,
    },
    /// No such source.
    #[error("source {source_number}: there are {sources}, numbered from 0; give host.sources")]
    Source {
        /// What was given.
        source_number: u32,
        /// How many there are.
        sources: usize,
    },
    /// No sources, or more than can be told apart.
    #[error("host.sources={0}: give 1 to {MAX_SOURCES}")]
    Sources(usize),
    /// A line of the medium is not what was last written there.
    #[error(
        "line {line} of {region} is not authentic: the medium returned what was not last written there"
    )]
    NotAuthentic {
        /// The region of the medium.
        region: String,
        /// The line within it.
        line: u64,
    },
    /// A read did not return what the host wrote last to its line.
    #[error("{design}: request {request}: the line at {address:#x} {why}")]
    Wrong {
        /// The design.
        design: String,
        /// The number of the read among all requests, from 1.
        request: u64,
        /// Where it read.
        address: u64,
        /// What was read, and what was written.
        why: Box<Wrong>,
    },
    /// What was asked for cannot be done now.
    #[error("{0}")]
    NotNow(&'static str),
    /// What the host has written is not kept.
    #[error("{0} needs what was written last, and with host.keep=no nobody keeps it")]
    NotKept(&'static str),
    /// Requests that were never answered.
    #[error("{0} requests were never answered: a bug in Sardonyx")]
    Lost(usize),
}

/// Sources that requests are told apart by.
pub const MAX_SOURCES: usize = 1024;
