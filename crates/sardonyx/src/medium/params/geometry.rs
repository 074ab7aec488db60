//! How many channels, ranks, banks, rows and lines a medium has.

use super::{int, power_of_two};
use crate::settings::section;

/// Banks (ranks times banks) that a channel may have, at most: the scheduler keeps them in one bit mask.
pub const MAX_BANKS: usize = 64;

section! {
    /// How many of everything; [`AddressMapping`](crate::medium::mapping::AddressMapping) says how an address is cut up.
    Geometry "medium.geometry.";
    [channels: u64] "channels" int(1, 64), "Channels; a number that is not a power of two needs the channel below the row in `medium.mapping`";
    [ranks: u64] "ranks" power_of_two(64), "Ranks in a channel";
    [banks: u64] "banks" power_of_two(64), "Banks in a rank; ranks x banks at most 64";
    [columns: u64] "columns" power_of_two(65_536), "64-byte lines in a row";
    [rows: u64] "rows" int(1, 1 << 36), "Rows in a bank; as `medium.geometry.capacity_bytes` they follow from the rest, and fill so many bytes or a few less";
}

impl Geometry {
    /// Settings of a crash run whose medium has as many lines as its programs, or a few more.
    pub const FULL: [(&str, u64); 5] = [
        ("medium.geometry.channels", 1),
        ("medium.geometry.ranks", 1),
        ("medium.geometry.banks", 1),
        ("medium.geometry.columns", 64),
        ("pages.crash_spare", 0),
    ];

    /// Settings of a crash run whose lines, and groups of them, lie in several channels and ranks.
    pub const WIDE: [(&str, u64); 2] = [
        ("medium.geometry.channels", 4),
        ("medium.geometry.ranks", 2),
    ];

    /// Lines that the medium holds.
    pub fn lines(&self) -> u64 {
        self.channels * self.ranks * self.banks * self.rows * self.columns
    }
}
