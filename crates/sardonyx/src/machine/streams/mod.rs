//! What cores are fed with from recorded traces: accesses of a trace taken below the caches, and
//! operations of one taken at the core.

mod accesses;
mod operations;
mod threads;

pub use accesses::{Access, Copies, LOOK_AHEAD, Stream};
pub use operations::TraceOps;
pub use threads::{HELD, Threads};
