//! The processor's side: address spaces, a core's stream of accesses, and the core's clock.
//!
//! `docs/core-model.md` has the equations, their sources and what is assumed.

mod core;
mod frames;
mod op;
mod stream;

pub use self::core::{Core, ReadId, Taken};
pub use frames::{Frames, OutOfMemory, PAGE_LINES};
pub use op::{Batch, Mark, Op, OpKind, OpSource, Phase};
pub use stream::{Access, Copies, Kind, LOOK_AHEAD, Stream};

use crate::trace::TraceError;

/// Why a core cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum CpuError {
    /// The trace is broken.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The trace touches more than the machine holds.
    #[error("{trace}: {why}")]
    Memory {
        /// The trace's name.
        trace: String,
        /// What it asked for.
        why: OutOfMemory,
    },
}
