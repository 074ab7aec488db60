//! A cache line's bytes, the three kinds of line number, which do not mix, and what a write of a line
//! says of it: what the line is to the program, and when it must persist.

pub use sardonyx_trace::line::{ByteAddr, LINE_BYTES, Line, Virtual, ZERO_LINE};

/// A line number as the processor addresses memory: what a mapping layer takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Logical(pub u64);

/// A line number in the medium: what a mapping layer gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub u64);

/// Every `stride`-th line from `first` on, `count` of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The first.
    pub first: u64,
    /// How far each lies behind the one before.
    pub stride: u64,
    /// How many.
    pub count: u64,
}

impl Lines {
    /// No line.
    pub const NONE: Lines = Lines {
        first: 0,
        stride: 1,
        count: 0,
    };

    /// Line number `index` of them.
    pub fn at(&self, index: u64) -> u64 {
        self.first + index * self.stride
    }

    /// Which of them `line` is.
    pub fn index_of(&self, line: u64) -> Option<u64> {
        let behind = line.checked_sub(self.first)?;
        let index = behind / self.stride;
        (behind.is_multiple_of(self.stride) && index < self.count).then_some(index)
    }

    /// Whether `line` is one of them.
    pub fn contains(&self, line: u64) -> bool {
        self.index_of(line).is_some()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<> {
        let Lines {
            first,
            stride,
            count,
        } = *self;
        (0..count).map(move |index| first + index * stride)
    }

    /// The line after the last that any of them could be.
    pub fn end(&self) -> u64 {
        self.at(self.count)
    }

    /// Those from number `from` to before number `to`.
    pub fn part(&self, from: u64, to: u64) -> Lines {
        Lines {
            first: self.at(from),
            stride: self.stride,
            count: to - from,
        }
    }
}

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
