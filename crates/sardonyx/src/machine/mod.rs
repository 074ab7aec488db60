//! The machine above its memory controller: agents (cores, and modules that ask memory for something by
//! themselves) on one clock, their caches and page tables, and the port through which all of them reach
//! the controller. Operations are interpreted here and nowhere else.
//!
//! `docs/inside/core-model.md` has the cores' equations, their sources and what is assumed.

pub mod accesses;
mod adversity;
mod agent;
mod bytes;
mod caches;
mod cores;
pub mod curve;
pub mod drain;
mod energies;
pub mod epochs;
mod error;
pub mod hosted;
mod locks;
mod near_figures;
mod ops;
pub mod outcome;
mod outcome_json;
mod page_table;
mod port;
pub mod recordings;
mod requester;
mod sampled;
mod streams;
mod system;
mod untimed;
pub mod usage;

pub use adversity::Adversity;
pub use agent::{Agent, AgentAnswer, CoreFigures, Counts, Passing, Turn, Waiter};
pub use bytes::{Bytes, COUNTER_SPAN, Numbers, PersistentMemory, pieces};
pub use caches::{Caches, Hit, HitLevel, MAX_CORES, WriteBack};
pub use cores::{Player, ReadId, Taken, TraceBus, TraceCore};
pub use error::{RunError, TraceUse};
pub use ops::{Batch, Mark, Op, OpKind, OpSource, Phase};
pub use outcome::Outcome;
pub use page_table::{
    AddressSpace, DIRECT, Mapped, OutOfMemory, PAGE_LINES, PageFrames, PageTable,
};
pub use port::{Backing, Port};
pub use sampled::{LEAST_WINDOWS, Sample, Sampling, TAIL};
pub use streams::{Access, Copies, HELD, LOOK_AHEAD, Stream, Threads, TraceOps};
pub use system::{System, Warmup};
pub use untimed::{UntimedMemory, noise, read_untimed, write_untimed};
