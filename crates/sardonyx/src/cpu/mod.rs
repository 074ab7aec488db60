//! The processor's side: address spaces, a core's stream of accesses, and the core's clock.
//!
//! `docs/core-model.md` has the equations, their sources and what is assumed.

mod below;
mod cache;
mod core;
mod frames;
mod op;
mod player;
mod stream;
mod trace_ops;
mod window;

pub use self::below::{Below, Waiter};
pub use self::cache::{Caches, Hit, Level, MAX_CORES, WriteBack};
pub use self::core::{Core, ReadId, Taken};
pub use frames::{Frames, OutOfMemory, PAGE_LINES};
pub use op::{Batch, Mark, Op, OpKind, OpSource, Phase};
pub use player::{Counts, Player};
pub use stream::{Access, Copies, Kind, LOOK_AHEAD, Stream};
pub use trace_ops::TraceOps;

use crate::trace::TraceError;

/// Why a core cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum CpuError {
    /// The trace is broken.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The trace was taken at another level, or counts something else than what can be played.
    #[error("{trace}: {problem}; {remedy}")]
    Level {
        /// The trace's name.
        trace: String,
        /// What does not fit.
        problem: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The trace touches more than the machine holds.
    #[error("{trace}: {why}")]
    Memory {
        /// The trace's name.
        trace: String,
        /// What it asked for.
        why: OutOfMemory,
    },
}
