//! How many logical lines refer to a place: one byte beside the place, whichever table that is in. A full count
//! is no longer a count: nobody knows when the last line lets go, so the place stays in use for ever and is
//! counted as leaked. Source: ESD (HPCA 2023) Sec. III-B has one byte for `referH`; that a count in the medium is
//! one as well, and stays when it is full, is *assumed*. Left out: where the byte lies.

/// A count of references in one byte, as the table stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct References(u8);

/// The count after a line gave up its reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The number is unknown: the count was full, and stays.
    Unknown,
    /// No line was counted, because a power cut has taken the count.
    Nobody,
    /// The remaining lines; [`References::NONE`] after the last.
    Some(References),
}

impl References {
    /// The count of no line.
    pub const NONE: References = References(0);
    /// The count of one line.
    pub const ONE: References = References(1);
    /// A count that never falls again.
    pub const FULL: References = References(u8::MAX);

    /// Reads a count from its byte in the table.
    pub const fn of_byte(byte: u8) -> References {
        References(byte)
    }

    /// The byte for the table.
    pub const fn byte(self) -> u8 {
        self.0
    }

    /// The count of this many lines.
    pub fn up_to(lines: u32) -> References {
        References(u8::try_from(lines).unwrap_or(u8::MAX))
    }

    /// Whether the count is too large to be trusted to fall.
    pub fn is_full(self) -> bool {
        self == References::FULL
    }

    /// Counts one line more. A full count stays.
    pub fn one_more(self) -> References {
        References(self.0.saturating_add(1))
    }

    /// Counts one line less.
    pub fn one_less(self) -> Left {
        match self {
            References::FULL => Left::Unknown,
            References::NONE => Left::Nobody,
            References(count) => Left::Some(References(count - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_up_and_down_below_the_top() {
        let mut count = References::NONE;
        for lines in 1..255u32 {
            count = count.one_more();
            assert_eq!(count, References::up_to(lines));
            assert_eq!(count.one_less(), Left::Some(References::up_to(lines - 1)));
            assert!(!count.is_full(), "{lines}");
            assert_eq!(References::of_byte(count.byte()), count);
        }
        assert_eq!(References::ONE.one_less(), Left::Some(References::NONE));
    }

    #[test]
    fn a_full_count_stays_and_no_count_is_not_the_last() {
        assert!(References::up_to(254).one_more().is_full());
        assert_eq!(References::FULL.one_more(), References::FULL);
        assert_eq!(References::FULL.one_less(), Left::Unknown);
        assert_eq!(References::NONE.one_less(), Left::Nobody);
        for lines in [255, 256, 511, u32::MAX] {
            assert_eq!(References::up_to(lines), References::FULL, "{lines}");
        }
    }
}
