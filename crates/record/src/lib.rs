//! The recorder's outer half: runs a program under QEMU with the plugin of `crates/recorder`, reads what it sends, and
//! writes one trace file for each process.
//!
//! [`program`] finds what to run and refuses what cannot be; [`stream`] turns one process's events into records;
//! [`pages`] gives pages frames; [`request`] reads options as people write them;
//! `reader` follows one process, or several that share a trace (`family`). `docs/crash-test/recorder.md` tells the whole.

mod error;
mod family;
mod folder;
pub mod grounds;
mod lists;
pub mod pages;
pub mod program;
mod provenance;
mod reader;
pub mod request;
pub mod session;
pub mod stream;
pub mod verified;

pub use sardonyx_recorder::caches::{Geometry, Hierarchy};
pub use sardonyx_recorder::frames::Reuse;
pub use sardonyx_recorder::options::{Clearing, KernelTime, Level};

pub use error::{RecordError, Result};
pub use pages::PageFrames;
pub use reader::Live;
pub use request::{Request, Wanted, Window};
pub use session::{RecordOutcome, record};
