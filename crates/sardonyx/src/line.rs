//! A cache line's bytes, the three kinds of line number, which do not mix, and what a write of a line
//! says of it: what the line is to the program, and when it must persist.

/// Bytes in a line, everywhere in Sardonyx.
pub const LINE_BYTES: usize = 64;

/// The 64 bytes of a cache line.
pub type Line = [u8; LINE_BYTES];

/// A line of zeros.
pub const ZERO_LINE: Line = [0; LINE_BYTES];

/// A byte address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteAddr(pub u64);

impl ByteAddr {
    /// The line of the recorded address space that holds this byte.
    pub const fn line(self) -> Virtual {
        Virtual(self.0 / LINE_BYTES as u64)
    }
}

/// A line number in a recorded program's address space (virtual byte address / 64).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Virtual(pub u64);

impl Virtual {
    /// The first byte of this line.
    pub const fn byte(self) -> ByteAddr {
        ByteAddr(self.0 * LINE_BYTES as u64)
    }
}

/// A line number as the processor addresses memory: what a mapping layer takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Logical(pub u64);

/// A line number in the medium: what a mapping layer gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub u64);

/// What a line is to the program; log lines must bypass deduplication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// The program's data.
    #[default]
    Data,
    /// An undo or redo record.
    Log,
}

/// The ordering that a write demands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Persist {
    /// Whenever it likes.
    #[default]
    Relaxed,
    /// With its encryption counter, or not at all.
    CounterAtomic,
}

/// Lines whose metadata are written back together, aligned: eight counters to a line (SCA Sec. 5.2.1).
pub const SPAN: u64 = 8;
