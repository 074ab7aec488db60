//! A cache line's bytes; the three kinds of line numbers, which do not mix; and what a write says of its line: whether
//! it is data or log, and when it must persist.

pub use sardonyx_trace::line::{ByteAddr, LINE_BYTES, Line, Virtual, ZERO_LINE};

/// A line number as the processor addresses memory: what a mapping layer takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Logical(pub u64);

/// A line number in the medium: what a mapping layer gives. Lines of the near medium have a bit set, and one more if they
/// survive a power cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub u64);

impl Place {
    /// The bit of the near medium's lines.
    pub const NEAR: u64 = 1 << 60;
    /// The bits of the near medium's lines where reserve power saves them.
    pub const NEAR_SAVED: u64 = Place::NEAR | 1 << 59;

    /// Whether the line lies in the near medium.
    #[inline]
    pub fn is_near(self) -> bool {
        self.0 & Place::NEAR != 0
    }

    /// Whether a power cut loses the line whatever the platform drains.
    #[inline]
    pub fn is_lost(self) -> bool {
        self.0 & Place::NEAR_SAVED == Place::NEAR
    }

    /// The line's number in its medium.
    #[inline]
    pub fn in_medium(self) -> u64 {
        self.0 & !Place::NEAR_SAVED
    }
}

/// One of the media of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// The persistent medium, which each memory has.
    Far,
    /// The medium beside it or before it, whose lines a power cut loses.
    Near,
}

impl Tier {
    /// The medium of `place`.
    #[inline]
    pub fn of(place: Place) -> Tier {
        match place.is_near() {
            true => Tier::Near,
            false => Tier::Far,
        }
    }
}

/// Lines of the medium at equal distances: every `stride`-th line from `first` on, `count` in all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The number of the first line.
    pub first: u64,
    /// The distance from one line to the next.
    pub stride: u64,
    /// How many lines.
    pub count: u64,
}

impl Lines {
    /// No lines.
    pub const NONE: Lines = Lines {
        first: 0,
        stride: 1,
        count: 0,
    };

    /// The line with that index.
    pub fn at(&self, index: u64) -> u64 {
        self.first + index * self.stride
    }

    /// The index of `line`; `None` if it is not among them.
    pub fn index_of(&self, line: u64) -> Option<u64> {
        let behind = line.checked_sub(self.first)?;
        let index = behind / self.stride;
        (behind.is_multiple_of(self.stride) && index < self.count).then_some(index)
    }

    /// Whether `line` is one of them.
    pub fn contains(&self, line: u64) -> bool {
        self.index_of(line).is_some()
    }

    /// Iterates over the lines in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<> {
        let Lines {
            first,
            stride,
            count,
        } = *self;
        (0..count).map(move |index| first + index * stride)
    }

    /// The first number after all of these lines.
    pub fn end(&self) -> u64 {
        self.at(self.count)
    }

    /// The lines with indices `from..to`.
    pub fn part(&self, from: u64, to: u64) -> Lines {
        Lines {
            first: self.at(from),
            stride: self.stride,
            count: to - from,
        }
    }
}

/// The use that a program has for a line. Log lines must bypass deduplication.
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
    /// At any time after it was accepted.
    #[default]
    Relaxed,
    /// Together with its encryption counter, or not at all.
    CounterAtomic,
}

/// Lines whose metadata are written back together, aligned: eight counters to a line (SCA Sec. 5.2.1).
pub const SPAN: u64 = 8;
