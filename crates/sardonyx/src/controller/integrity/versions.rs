//! Versions: how often each line of the medium has been written, in lines of their own. What a MAC binds a line to,
//! and what a Bonsai tree stands over. Source of the split format: Yan et al. (ISCA 2006), from memory: a line has a
//! major number of 8 bytes and 64 minor ones of 7 bits.
//! They are the integrity's own, beside the counters of an encryption: policies here count globally, in a cache of
//! their own or not at all, and tables and logs must be as fresh as data. Papers have one counter for both, so the
//! traffic of theirs is that of a scheme over `identity+no-encryption`.
//! Left out: minor numbers of more bits, or of several lengths.

use super::macs::Where;
use crate::line::{LINE_BYTES, Line};
use crate::medium::layout::{Layout, Region};
use crate::settings::{Settings, keys};

keys! {
    MINOR_BITS: u64 = int("integrity.minor_bits", (0, 7), 7),
        Source("split counters, Yan et al. (ISCA 2006), from memory"),
        "Bits of the minor versions, 64 to a line under one major; 0: eight versions of eight bytes, and no minor ones"
        in Between("0", "7", "the tree is a level higher and nothing overflows, or minor numbers do")
        under |by| by.stride.map(|stride| if stride > 2 { 2 } else { 0 });
}

// No layer lists it: no machine sets it, the crash explorer does.
keys! {
    FIRST_VERSION: u64 = int("integrity.first_version", (0, 1 << 56), 0),
        Source("for the crash explorer: a machine that has run for long"),
        "From where on versions are counted, the major ones where there are minor ones";
}

/// The regions of versions, by the bits of a minor number.
const NAMES: [&str; 8] = [
    "versions",
    "versions-1",
    "versions-2",
    "versions-3",
    "versions-4",
    "versions-5",
    "versions-6",
    "versions-7",
];

const ROOM: u64 = 7;
/// What they hold.
pub const MOST_MINOR: u64 = (1 << ROOM) - 1;
/// The first bit after the major number.
const FIRST_BIT: u64 = 64;

/// What one more write of a line does to its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bump {
    /// It is one more.
    Counted,
    /// The major number is one more, so the versions of all 64 lines are others.
    Overflowed,
}

/// Where the versions lie.
#[derive(Clone, Debug)]
pub struct Versions {
    /// Their lines.
    pub region: Region,
    minor_bits: u64,
    first: u64,
}

/// Versions of a line whose minor numbers have so many bits.
fn per_line(minor_bits: u64) -> u64 {
    match minor_bits {
        0 => 8,
        _ => 64,
    }
}

impl Versions {
    /// Reserves room for MACs of all lines that `layout` has so far, and for their versions.
    pub fn reserve(settings: &Settings, layout: &mut Layout) -> (Where, Versions) {
        let minor_bits = settings.get(&MINOR_BITS);
        let macs = Where::reserve_by(per_line(minor_bits), settings, layout);
        let lines = macs.count.div_ceil(per_line(minor_bits));
        let region = layout.reserve_sparse(NAMES[minor_bits as usize], lines);
        let versions = Versions {
            region,
            minor_bits,
            first: settings.get(&FIRST_VERSION),
        };
        (macs, versions)
    }

    /// The same in a layout in which they are reserved.
    pub fn from_layout(layout: &Layout) -> (Where, Versions) {
        let known = NAMES.iter().zip(0..).find_map(|(name, minor_bits)| {
            let region = layout.region(name)?.clone();
            Some(Versions {
                region,
                minor_bits,
                first: 0,
            })
        });
        let versions = known.expect("they have been reserved");
        (Where::of_by(versions.per_line(), layout), versions)
    }

    /// Versions of a line.
    #[inline]
    pub fn per_line(&self) -> u64 {
        per_line(self.minor_bits)
    }

    /// The bits of a line that version `slot` has to itself.
    pub fn bits_of(&self, slot: u64) -> std::ops::Range<usize> {
        let (first, bits) = match self.minor_bits {
            0 => (64 * slot, 64),
            _ => (FIRST_BIT + slot * ROOM, ROOM),
        };
        first as usize..(first + bits) as usize
    }

    fn most(&self) -> u64 {
        (1 << self.minor_bits) - 1
    }

    /// The line of the version of the protected line with that number, and which of its versions it is.
    #[inline]
    pub fn of_number(&self, number: u64) -> (u64, u64) {
        (number / self.per_line(), number % self.per_line())
    }

    /// Version `slot` of `line`; 0 is that of a line that was never written.
    pub fn get(&self, line: &Line, slot: u64) -> u64 {
        match self.minor_bits {
            0 => super::macs::word(line, slot as usize),
            _ => match minor(line, slot) {
                0 => 0,
                minor => super::macs::word(line, 0) << ROOM | minor,
            },
        }
    }

    /// How far version `slot` of `line` is from the last multiple of `stride`, which a minor number's overflow is.
    pub fn since(&self, line: &Line, slot: u64, stride: u64) -> u64 {
        match self.minor_bits {
            0 => self.get(line, slot) % stride,
            _ => minor(line, slot) % stride,
        }
    }

    /// Counts one more write of `slot`. A line that has been written has a minor number of 1 at least.
    pub fn bump(&self, line: &mut Line, slot: u64) -> Bump {
        let of_word = |line: &Line, word| super::macs::word(line, word) + 1;
        match self.minor_bits {
            0 => {
                let next = of_word(line, slot as usize).max(self.first);
                super::tree::put(line, slot, next);
                Bump::Counted
            }
            _ if minor(line, slot) < self.most() => {
                let major = super::macs::word(line, 0).max(self.first);
                super::tree::put(line, 0, major);
                set_minor(line, slot, minor(line, slot) + 1);
                Bump::Counted
            }
            _ => {
                let major = of_word(line, 0);
                super::tree::put(line, 0, major);
                for slot in 0..self.per_line() {
                    set_minor(line, slot, minor(line, slot).min(1));
                }
                Bump::Overflowed
            }
        }
    }

    /// `line`, in which version `slot` is `steps` writes later; none if it would overflow meanwhile.
    pub fn later(&self, line: &Line, slot: u64, steps: u64) -> Option<Line> {
        let mut later = *line;
        (0..steps)
            .all(|_| self.bump(&mut later, slot) == Bump::Counted)
            .then_some(later)
    }

    /// The newer versions of two lines, each by itself.
    pub fn newest(&self, one: &Line, other: &Line) -> Line {
        let major = |line: &Line| match self.minor_bits {
            0 => 0,
            _ => super::macs::word(line, 0),
        };
        if major(one) != major(other) {
            return if major(one) > major(other) {
                *one
            } else {
                *other
            };
        }
        let mut newest = *one;
        for slot in 0..self.per_line() {
            let found = self.get(other, slot);
            if found > self.get(one, slot) {
                match self.minor_bits {
                    0 => super::tree::put(&mut newest, slot, found),
                    _ => set_minor(&mut newest, slot, found & MOST_MINOR),
                }
            }
        }
        newest
    }
}

/// The bytes that minor number `slot` has bits in, as a number, and its lowest bit there.
fn minor_bits(slot: u64) -> (usize, u64) {
    let bit = FIRST_BIT + slot * ROOM;
    let byte = ((bit / 8) as usize).min(LINE_BYTES - 2);
    (byte, bit - byte as u64 * 8)
}

fn minor(line: &Line, slot: u64) -> u64 {
    let (byte, low) = minor_bits(slot);
    let two = u16::from_le_bytes([line[byte], line[byte + 1]]);
    u64::from(two) >> low & MOST_MINOR
}

fn set_minor(line: &mut Line, slot: u64, minor: u64) {
    let (byte, low) = minor_bits(slot);
    let two = u16::from_le_bytes([line[byte], line[byte + 1]]);
    let two = two & !((MOST_MINOR << low) as u16) | (minor << low) as u16;
    line[byte..byte + 2].copy_from_slice(&two.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::ZERO_LINE;

    /// Against 64 numbers of their own: each write gives its line a version that it never had, and no other
    /// line another one, but where the minor number overflows, which gives all of them newer ones.
    #[test]
    fn a_version_is_never_had_twice() {
        for bits in [7, 2, 1, 0] {
            let mut layout = Layout::new(64);
            let mut settings = Settings::default();
            settings.set(&MINOR_BITS, bits);
            let (_, versions) = Versions::reserve(&settings, &mut layout);
            let per_line = versions.per_line();
            let (mut line, mut random, mut overflows) = (ZERO_LINE, 1u64, 0);
            let mut seen = vec![0; per_line as usize];
            for _ in 0..4000 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let slot = (random >> 40) % per_line;
                let slot = if random >> 60 == 0 { slot } else { slot.min(3) };
                let before = line;
                let bump = versions.bump(&mut line, slot);
                overflows += u64::from(bump == Bump::Overflowed);
                for other in 0..per_line {
                    let now = versions.get(&line, other);
                    let changes =
                        other == slot || bump == Bump::Overflowed && seen[other as usize] > 0;
                    assert_eq!(now > seen[other as usize], changes, "{bits} {other}");
                    seen[other as usize] = now;
                }
                assert_eq!(versions.newest(&line, &before), line);
                assert_eq!(versions.newest(&before, &line), line);
            }
            assert_eq!(overflows > 0, bits > 0);
        }
    }
}
