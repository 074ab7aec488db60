//! What a host asks of memory, and what it is told: the vocabulary of [`super::Hosted`].

use crate::controller::designs::UnknownDesign;
use crate::exhausted::Exhausted;
use crate::line::{LINE_BYTES, Line};
use crate::machine::page_table::OutOfMemory;
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

/// Options of a host's memory.
#[derive(Clone, Copy, Debug)]
pub struct HostOptions {
    /// Sources of requests: the host's cores, or its ports.
    pub sources: usize,
    /// The moment at which writes are answered.
    pub posted: Posted,
    /// The content of unwritten lines.
    pub unwritten: Unwritten,
    /// Whether the host's last writes are kept beside memory: for parts of lines, for looks, and to compare memory's
    /// reads with. Without this, memory takes whole lines only.
    pub keep: bool,
    /// Whether a journal is kept, so that the power may be cut.
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

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRequestKind<'b> {
    /// Reads so many bytes.
    Read(usize),
    /// Writes bytes.
    Write {
        /// The bytes, a line at most.
        bytes: &'b [u8],
        /// Whether the next fence of the source waits for the write.
        persist: bool,
        /// Whether the write persists with its encryption counter or not at all.
        counter_atomic: bool,
        /// Whether the host is told again when the write is in the array, if it is answered before.
        tell_array: bool,
    },
    /// Writes the metadata of the line back (`counter_cache_writeback()`). The next fence waits for it.
    WriteCounters,
}

/// A request of the host.
#[derive(Clone, Copy, Debug)]
pub struct HostRequest<'b> {
    /// The operation.
    pub kind: HostRequestKind<'b>,
    /// The address of the first byte.
    pub address: u64,
    /// The number of the source that asks.
    pub source: u32,
    /// The host's own name for it.
    pub tag: u64,
    /// The time at which the host had the request, from which latencies count; `None` means now.
    pub presented: Option<Time>,
}

/// The event that an answer reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// The bytes of a read are there.
    Read,
    /// A write is answered.
    Written,
    /// A write that was answered before is now in the array.
    InArray,
    /// A write-back of metadata is answered.
    Counters,
    /// A flush is complete: all earlier writes of the line are in the persistence domain.
    Flushed,
    /// A fence is complete: all that the source had persist or flushed is in the persistence domain.
    Fenced,
}

/// An answer to the host.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// The event that the answer reports.
    pub what: AnswerKind,
    /// The host's name for the request.
    pub tag: u64,
    /// The number of the source that asked.
    pub source: u32,
    /// The time at which the host had the request.
    pub presented: Time,
    /// The time at which the request entered the controller.
    pub admitted: Time,
    /// The time at which it was in the persistence domain, if it has been.
    pub accepted: Option<Time>,
    /// The time at which it was in the array, if it has been.
    pub array: Option<Time>,
    /// The time of the answer.
    pub answered: Time,
    /// The bytes of a read's line.
    pub line: Line,
    /// The first byte of the line that the host asked for, and the number of bytes.
    pub part: (u8, u8),
    /// Whether a read's line had been written before.
    pub written: bool,
}

/// The reason why a host's request was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum HostedError {
    /// The design does not exist.
    #[error(transparent)]
    Design(#[from] UnknownDesign),
    /// The run needs more than there is.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// An address has no place in memory.
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
    /// A request has more bytes than allowed, or none.
    #[error(
        "{size} bytes at {address:#x}: a request has 1 to {LINE_BYTES} bytes of one line; split it at lines"
    )]
    Size {
        /// The address.
        address: u64,
        /// Bytes asked for.
        size: usize,
    },
    /// The source does not exist.
    #[error("source {source_number}: there are {sources}, numbered from 0; give host.sources")]
    Source {
        /// The given number.
        source_number: u32,
        /// The number of existing sources.
        sources: usize,
    },
    /// There are no sources, or more than can be told apart.
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
        /// The address of the read.
        address: u64,
        /// The byte that was read and the byte that was written.
        why: Box<Wrong>,
    },
    /// The request is not possible in the present state.
    #[error("{0}")]
    NotNow(&'static str),
    /// The host's writes are not kept.
    #[error("{0} needs what was written last, and with host.keep=no nobody keeps it")]
    NotKept(&'static str),
    /// The machine is to drain caches, which the host has.
    #[error(
        "drain.lines: the processor's caches are the host's, so nobody knows what they hold; leave it out"
    )]
    Drains,
    /// So many requests were never answered.
    #[error("{0} requests were never answered: a bug in Sardonyx")]
    Lost(usize),
}

/// The number of sources that can be told apart.
pub const MAX_SOURCES: usize = 1024;
