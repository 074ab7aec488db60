//! Why a run cannot be made or cannot go on.

use super::{MAX_CORES, OutOfMemory};
use crate::controller::designs::UnknownDesign;
use crate::exhausted::Exhausted;
use crate::memory::Wrong;
use crate::trace::TraceError;

/// The reason why a run cannot be made or cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The design does not exist.
    #[error(transparent)]
    Design(#[from] UnknownDesign),
    /// The trace is broken.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The trace cannot be played as asked.
    #[error(transparent)]
    Use(#[from] TraceUse),
    /// The trace touches more memory than the machine has.
    #[error("{trace}: {why}")]
    Memory {
        /// The trace's name.
        trace: String,
        /// The pages or lines that it touched beyond the machine's.
        why: OutOfMemory,
    },
    /// A record keeps its address, and the machine ends before it.
    #[error(
        "{trace}: record {record} is at address {address:#x}, and {}{machine} has {capacity} bytes; give a machine \
         with more medium.geometry.rows, or --addresses wrapped", copy_of(*.copies)
    )]
    Beyond {
        /// The trace's name.
        trace: String,
        /// The record's number, from 1.
        record: u64,
        /// Its address.
        address: u64,
        /// The machine.
        machine: String,
        /// Bytes that a copy of the trace has.
        capacity: u64,
        /// Copies that play.
        copies: u32,
    },
    /// The trace has nothing to simulate.
    #[error("{trace}: no reads and no writes in it; give a longer --limit or another trace")]
    Empty {
        /// The trace's name.
        trace: String,
    },
    /// Everything went to the warm-up.
    #[error("{trace}: the warm-up of {warmup} {unit} leaves none of its {all}; lower --warmup")]
    OnlyWarmup {
        /// The trace's name.
        trace: String,
        /// The amount that was to be warm-up.
        warmup: u64,
        /// The unit of the amounts: requests, or transactions.
        unit: &'static str,
        /// The amount that the trace has.
        all: u64,
    },
    /// There are more cores than the caches can tell apart, or none.
    #[error("{cores} cores; give 1 to {MAX_CORES} for what is simulated from the core down")]
    Cores {
        /// How many were asked for.
        cores: usize,
    },
    /// A line of the medium is not what was last written there.
    #[error(
        "{trace} on {design}: line {line} of {region} is not authentic: the medium returned what was not \
         last written there"
    )]
    NotAuthentic {
        /// The trace or program.
        trace: String,
        /// The design.
        design: String,
        /// The region of the medium.
        region: String,
        /// The line within the region, from 0.
        line: u64,
    },
    /// A read did not return what was written last to its line.
    #[error("{design} on {trace}: {at}: line {line} {why}")]
    Wrong {
        /// The trace or program.
        trace: String,
        /// The design.
        design: String,
        /// The record or the operation that read.
        at: String,
        /// The line, as the trace or program numbers it.
        line: u64,
        /// The byte that was read and the byte that was written.
        why: Box<Wrong>,
    },
    /// The run needs more than there is: a place for a line, or time that the clock can tell.
    #[error("{trace} on {design}: {why}")]
    Exhausted {
        /// The trace or program.
        trace: String,
        /// The design.
        design: String,
        /// The shortage, and its remedy.
        why: Exhausted,
    },
    /// Somebody asked for the run to end.
    #[error("cancelled")]
    Cancelled,
}

fn copy_of(copies: u32) -> String {
    match copies {
        0 | 1 => String::new(),
        _ => format!("one of {copies} copies on "),
    }
}

/// A trace that was taken at another level, or that counts something else, than can be played.
#[derive(Debug, thiserror::Error)]
#[error("{trace}: {problem}; {remedy}")]
pub struct TraceUse {
    /// The trace's name.
    pub trace: String,
    /// The property of the trace that does not fit.
    pub problem: String,
    /// The user's remedy.
    pub remedy: &'static str,
}
