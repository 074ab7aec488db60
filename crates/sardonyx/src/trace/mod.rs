//! The trace: what a program asked of memory below its last-level cache, with the bytes.
//!
//! `docs/trace-format.md` describes the file.

use crate::line::{Line, Virtual};

/// What happened; the discriminant is the file's `op` column (version 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// A read that missed the last-level cache.
    ReadMiss = 0,
    /// A dirty line evicted from the last-level cache.
    DirtyEviction = 1,
    /// A whole line written past the caches.
    NonTemporalWrite = 2,
    /// A write-back forced by a flush instruction.
    FlushWriteBack = 3,
    /// sfence or mfence.
    Fence = 4,
    /// clwb.
    Clwb = 5,
    /// clflushopt.
    ClflushOpt = 6,
    /// clflush.
    Clflush = 7,
}

/// One row of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Instructions since the previous record, all threads together.
    pub gap: u32,
    /// The thread that caused it.
    pub thread: u16,
    /// What happened.
    pub op: Op,
    /// The line touched, in the program's address space.
    pub line: Virtual,
    /// The line's bytes, for operations that carry them.
    pub data: Option<Line>,
}
