//! A group of accesses in one word, as its callback gets it, and the place where each group of the running block was
//! looked up last.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::caches::LINE_BYTES;

pub const GROUPS: usize = 1 << ORDINAL;

/// The lowest address of each group of the running block, if it has stores to come. One block runs at a time.
static LOW: [AtomicU64; GROUPS] = [const { AtomicU64::new(0) }; GROUPS];

/// The lowest address of the group with this number when it was looked up last.
pub fn low_of(ordinal: usize) -> u64 {
    LOW[ordinal].load(Relaxed)
}

/// The bits of a number below a line's bytes.
const BYTE: u32 = 6;
const ORDINAL: u32 = 8;

/// A group in the one word that its callback gets: to load more would cost as much as the look. From the lowest bit on
/// it has the distance from its lowest address to its last byte, to the first stored byte and to the last one; the
/// distance of the first member from the lowest address; whether any member stores; the group's number in the block;
/// and the number of the list of groups with stores to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    pub last: u8,
    /// The distances to the first and the last stored byte.
    pub stored: Option<(u8, u8)>,
    pub first: u8,
    pub ordinal: u8,
    /// The number of the list of groups that have stores to come there.
    pub open: u32,
}

impl Word {
    pub fn new(parts: Parts) -> Word {
        let (first_store, last_store) = parts.stored.unwrap_or_default();
        let mut word = u64::from(parts.open);
        word = word << ORDINAL | u64::from(parts.ordinal);
        word = word << 1 | u64::from(parts.stored.is_some());
        for byte in [parts.first, last_store, first_store, parts.last] {
            word = word << BYTE | u64::from(byte);
        }
        Word(word)
    }

    pub fn data(self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.0 as usize)
    }

    #[inline(always)]
    pub fn from_pointer(data: *mut c_void) -> Word {
        Word(data.addr() as u64)
    }

    #[inline(always)]
    fn byte(self, number: u32) -> u64 {
        self.0 >> (number * BYTE) & (LINE_BYTES - 1)
    }

    #[inline(always)]
    pub fn last(self) -> u64 {
        self.byte(0)
    }

    #[inline(always)]
    pub fn stores(self) -> bool {
        self.0 >> (4 * BYTE) & 1 != 0
    }

    #[inline(always)]
    pub fn stores_at(self, split: u64) -> (bool, bool) {
        let stores = self.stores();
        (
            stores & (self.byte(1) < split),
            stores & (self.byte(2) >= split),
        )
    }

    #[inline(always)]
    pub fn ordinal(self) -> usize {
        (self.0 >> (4 * BYTE + 1)) as usize % GROUPS
    }

    pub fn open(self) -> usize {
        (self.0 >> (4 * BYTE + 1 + ORDINAL)) as usize
    }

    #[inline(always)]
    pub fn looked_up(self, low: u64) {
        LOW[self.ordinal()].store(low, Relaxed);
    }

    /// An address in each line that it has stores to come to.
    pub fn to_come(self) -> impl Iterator<Item = u64> {
        let lines = self.lines(low_of(self.ordinal()));
        lines.filter(|line| line.2).map(|(start, _, _)| start)
    }

    /// The lowest address, given the first member's.
    #[inline(always)]
    pub fn low(self, address: u64) -> u64 {
        address.wrapping_sub(self.byte(3))
    }

    /// The one or two lines: an address and a number of bytes in each, and whether any of them is stored.
    pub fn lines(self, low: u64) -> impl Iterator<Item = (u64, u64, bool)> {
        let (split, all) = (LINE_BYTES - low % LINE_BYTES, self.last() + 1);
        let (below, above) = self.stores_at(split);
        let first = (low, split.min(all), below);
        let second = (low.wrapping_add(split), all.saturating_sub(split), above);
        [first, second].into_iter().filter(|line| line.1 > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_what_it_was_given_and_which_lines_are_stored() {
        for (last, from, to) in [
            (0, 0, 0),
            (7, 0, 7),
            (63, 0, 63),
            (63, 40, 47),
            (31, 8, 8),
            (17, 9, 16),
        ] {
            for stores in [false, true] {
                let parts = Parts {
                    last,
                    stored: stores.then_some((from, to)),
                    first: last / 2,
                    ordinal: 201,
                    open: (1 << 31) - 1,
                };
                let group = Word::from_pointer(Word::new(parts).data());
                assert_eq!((group.ordinal(), group.open()), (201, (1 << 31) - 1));
                for low in 1000..1064u64 {
                    assert_eq!(group.low(low + u64::from(last / 2)), low);
                    let mut lines: Vec<(u64, bool)> = Vec::new();
                    for byte in low..=low + u64::from(last) {
                        let stored =
                            stores && (low + u64::from(from)..=low + u64::from(to)).contains(&byte);
                        match lines.last_mut() {
                            Some((line, any)) if *line == byte / 64 => *any |= stored,
                            _ => lines.push((byte / 64, stored)),
                        }
                    }
                    let said: Vec<(u64, bool)> = group
                        .lines(low)
                        .map(|(start, _, store)| (start / 64, store))
                        .collect();
                    assert_eq!(said, lines);
                    let bytes: u64 = group.lines(low).map(|line| line.1).sum();
                    assert_eq!(bytes, u64::from(last) + 1);
                }
            }
        }
    }
}
