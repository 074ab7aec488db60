//! Split counters: a line has a major number of 8 bytes and 64 minor ones of 7 bits or fewer, one for each line of a page.
//! Where a minor number overflows the major one is one more, and all lines of the page have other counters. Source: Yan
//! et al. (ISCA 2006), from memory.
//! Left out: what an overflow makes of the page's lines, which who counts has to say.

use std::ops::Range;

use crate::line::{LINE_BYTES, Line};

/// Minor numbers of a line.
pub const PER_LINE: u64 = 64;
/// Bits in which a minor number is stored.
const ROOM: u64 = 7;
/// The most that a minor number can be.
pub const MOST_MINOR: u64 = (1 << ROOM) - 1;
/// The first bit after the major number.
const FIRST_BIT: u64 = 64;

/// The effect of one more write on a line's counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bump {
    /// The counter is one more.
    Counted,
    /// The major number is one more, which changes the counters of all lines that share it.
    Overflowed,
}

/// The bits of a line that only minor number `slot` uses.
pub fn bits_of(slot: u64) -> Range<usize> {
    let first = (FIRST_BIT + slot * ROOM) as usize;
    first..first + ROOM as usize
}

/// The two bytes that contain minor number `slot`: the index of the first, and the number's lowest bit in them.
fn two_bytes(slot: u64) -> (usize, u64) {
    let bit = FIRST_BIT + slot * ROOM;
    let byte = ((bit / 8) as usize).min(LINE_BYTES - 2);
    (byte, bit - byte as u64 * 8)
}

/// The major number.
pub fn major(line: &Line) -> u64 {
    u64::from_le_bytes(line.as_chunks().0[0])
}

fn set_major(line: &mut Line, major: u64) {
    line[..8].copy_from_slice(&major.to_le_bytes());
}

/// Minor number `slot`; 0 for a line that the run has not written.
pub fn minor(line: &Line, slot: u64) -> u64 {
    let (byte, low) = two_bytes(slot);
    let two = u16::from_le_bytes([line[byte], line[byte + 1]]);
    u64::from(two) >> low & MOST_MINOR
}

/// Sets minor number `slot`.
pub fn set_minor(line: &mut Line, slot: u64, minor: u64) {
    let (byte, low) = two_bytes(slot);
    let two = u16::from_le_bytes([line[byte], line[byte + 1]]);
    let two = two & !((MOST_MINOR << low) as u16) | (minor << low) as u16;
    line[byte..byte + 2].copy_from_slice(&two.to_le_bytes());
}

/// Sets minor number `slot`, under a major number of at least `first`.
pub fn set(line: &mut Line, slot: u64, minor: u64, first: u64) {
    set_major(line, major(line).max(first));
    set_minor(line, slot, minor);
}

/// Counter `slot`, made of both numbers; 0 for a line that the run has not written.
pub fn get(line: &Line, slot: u64) -> u64 {
    match minor(line, slot) {
        0 => 0,
        minor => major(line) << ROOM | minor,
    }
}

/// The counter of a line of the page that has just been encrypted anew.
pub fn fresh(line: &Line) -> u64 {
    major(line) << ROOM | 1
}

/// Counts one more write of `slot` in minor numbers of `bits` bits. The major number is at least `first`. After its
/// first write a line's minor number is at least 1.
pub fn bump(line: &mut Line, slot: u64, bits: u64, first: u64) -> Bump {
    if minor(line, slot) < (1 << bits) - 1 {
        set(line, slot, minor(line, slot) + 1, first);
        return Bump::Counted;
    }
    // A page whose first write overflows has no major number yet. An attacker's bytes may be any number.
    set_major(line, major(line).max(first).wrapping_add(1));
    for slot in 0..PER_LINE {
        set_minor(line, slot, minor(line, slot).min(1));
    }
    Bump::Overflowed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::ZERO_LINE;

    /// A page that was written before the run overflows at its first write in it, and then counts on from there.
    #[test]
    fn counters_never_fall_behind_the_first() {
        let (first, bits) = (256, 2);
        let mut line = ZERO_LINE;
        set_minor(&mut line, 5, 3);
        assert_eq!(bump(&mut line, 5, bits, first), Bump::Overflowed);
        assert_eq!((major(&line), minor(&line, 5)), (first + 1, 1));
        assert_eq!(bump(&mut line, 9, bits, first), Bump::Counted);
        assert_eq!((major(&line), minor(&line, 9)), (first + 1, 1));
        assert_eq!(get(&line, 5), fresh(&line));
    }
}
