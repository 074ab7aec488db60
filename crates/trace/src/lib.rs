//! The trace: what a program asked of memory below its last-level cache, with the bytes.
//!
//! `docs/simulator/trace-format.md` describes the file. The recorder writes it and the simulator reads it; neither is known here.
#![forbid(unsafe_code)]

mod bursts;
mod check;
mod chunks;
mod columns;
mod contents;
mod convert;
mod cut;
mod error;
mod footer;
mod info;
mod ladder;
pub mod line;
mod mix;
mod pages;
mod provenance;
mod reader;
mod recorded;
mod source;
mod synth;
mod temporary;
mod writer;

pub use check::{CheckReport, Problem, check};
pub use contents::Contents;
pub use convert::{Exported, Fill, Format, ImportOptions, Imported, export, import};
pub use cut::{copy, cut};
pub use error::TraceError;
pub use info::{Bucket, Collisions, Fingerprint, TraceInfo, info};
pub use ladder::locality_ladder;
pub use mix::{FILES, mix};
pub use pages::Checksums;
pub use provenance::{Arrivals, CLOCK_REMEDY, GapUnit, Level, Provenance, VERSION};
pub use reader::{BATCH, TraceReader};
pub use recorded::SampleRecording;
pub use source::Source;
pub use synth::{Addresses, Spec, Synth, synth_to_file};
pub use writer::TraceWriter;

use crate::line::{Line, Virtual, ZERO_LINE};

/// The kind of a record; the discriminant is the file's `op` column (version 1).
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
    /// A load by the core, within one line (level `cpu`).
    Load = 8,
    /// A store by the core, within one line, with the line's bytes after it (level `cpu`).
    Store = 9,
    /// The line was still dirty in a cache when the recording ended; no traffic.
    FinalDirty = 10,
    /// Lines changed without a write: their number is in the data's first eight bytes; no traffic.
    Changed = 11,
}

impl Op {
    /// Every operation, in the order of the codes.
    pub const ALL: [Op; 12] = [
        Op::ReadMiss,
        Op::DirtyEviction,
        Op::NonTemporalWrite,
        Op::FlushWriteBack,
        Op::Fence,
        Op::Clwb,
        Op::ClflushOpt,
        Op::Clflush,
        Op::Load,
        Op::Store,
        Op::FinalDirty,
        Op::Changed,
    ];

    /// The operation whose code in the file is `code`.
    pub fn from_code(code: u8) -> Option<Op> {
        Op::ALL.get(usize::from(code)).copied()
    }

    /// The code in the file.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Whether a record of this kind must carry 64 bytes.
    pub fn has_data(self) -> bool {
        self.is_write() || matches!(self, Op::Store | Op::FinalDirty | Op::Changed)
    }

    /// Whether a core or a cache asks for the line or gives it.
    pub fn touches(self) -> bool {
        !matches!(self, Op::Fence | Op::FinalDirty | Op::Changed)
    }

    /// Whether a whole line reaches memory below the last-level cache.
    pub fn is_write(self) -> bool {
        matches!(
            self,
            Op::DirtyEviction | Op::NonTemporalWrite | Op::FlushWriteBack
        )
    }
}

/// One row of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Instructions since the previous record, all threads together.
    pub gap: u32,
    /// The thread that caused it.
    pub thread: u16,
    /// The kind of access.
    pub op: Op,
    /// The line touched, in the program's address space.
    pub line: Virtual,
    /// The line's bytes, for operations that carry them.
    pub data: Option<Line>,
}

impl Record {
    /// A record with the longest gap and nothing else, for a gap that one record cannot hold: it says that no lines
    /// changed.
    pub fn carry(thread: u16) -> Record {
        Record {
            gap: u32::MAX,
            thread,
            op: Op::Changed,
            line: Virtual(0),
            data: Some(ZERO_LINE),
        }
    }
}
