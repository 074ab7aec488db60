//! Versions: how often each line of the medium has been written, in lines of their own. What a MAC binds a line to,
//! and what a Bonsai tree stands over. Source of the split format: Yan et al. (ISCA 2006), from memory: a line has a
//! major number of 8 bytes and 64 minor ones of 7 bits.
//! They are the integrity's own, beside the counters of an encryption: policies here count globally, in a cache of
//! their own or not at all, and tables and logs must be as fresh as data. Papers have one counter for both, so the
//! traffic of theirs is that of a scheme over `identity+no-encryption`.
//! Left out: bits of a minor number other than 7.

use crate::line::{LINE_BYTES, Line};
use crate::medium::layout::{Layout, Region};
use crate::settings::{Settings, keys, words};

/// How versions lie in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A major number of 64 lines and a minor one of each.
    Split,
    /// Eight bytes of each of eight lines.
    Whole,
}

words!(Format { "split" => Split, "whole" => Whole });

keys! {
    FORMAT: Format = word("integrity.versions", "split"),
        Assumed("split counters of 64 lines, as most work on Bonsai trees takes"),
        "How the versions of lines lie that a tree stands over: 64 to a line, or eight"
        in Between("whole", "split", "the tree is a level higher, or no minor number overflows");
}

/// The regions of versions, by format.
const NAMES: [(Format, &str); 2] = [
    (Format::Split, "split-versions"),
    (Format::Whole, "versions"),
];

/// Bits of a minor number.
const MINOR_BITS: u64 = 7;
/// The greatest.
pub const MOST_MINOR: u64 = (1 << MINOR_BITS) - 1;
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
    format: Format,
}

impl Format {
    /// Versions of a line.
    pub fn per_line(self) -> u64 {
        match self {
            Format::Split => 64,
            Format::Whole => 8,
        }
    }
}

impl Versions {
    /// Reserves room for versions of `count` lines.
    pub fn reserve(settings: &Settings, count: u64, layout: &mut Layout) -> Versions {
        let format = settings.get(&FORMAT);
        let name = NAMES.iter().find(|(known, _)| *known == format);
        let name = name.expect("each has one").1;
        let region = layout.reserve_sparse(name, count.div_ceil(format.per_line()));
        Versions { region, format }
    }

    /// The same in a layout in which they are reserved.
    pub fn of(layout: &Layout) -> Versions {
        let known = NAMES.iter().find_map(|(format, name)| {
            let region = layout.region(name)?.clone();
            Some(Versions {
                region,
                format: *format,
            })
        });
        known.expect("they have been reserved")
    }

    /// Versions of a line.
    #[inline]
    pub fn per_line(&self) -> u64 {
        self.format.per_line()
    }

    /// The line of the version of the protected line with that number, and which of its versions it is.
    #[inline]
    pub fn of_number(&self, number: u64) -> (u64, u64) {
        (number / self.per_line(), number % self.per_line())
    }

    /// Version `slot` of `line`; 0 is that of a line that was never written.
    pub fn get(&self, line: &Line, slot: u64) -> u64 {
        match self.format {
            Format::Whole => super::macs::word(line, slot as usize),
            Format::Split => match minor(line, slot) {
                0 => 0,
                minor => super::macs::word(line, 0) << MINOR_BITS | minor,
            },
        }
    }

    /// How far version `slot` of `line` is from the last multiple of `stride`, which a minor number's overflow is.
    pub fn since(&self, line: &Line, slot: u64, stride: u64) -> u64 {
        match self.format {
            Format::Whole => self.get(line, slot) % stride,
            Format::Split => minor(line, slot) % stride,
        }
    }

    /// Counts one more write of `slot`. A line that has been written has a minor number of 1 at least.
    pub fn bump(&self, line: &mut Line, slot: u64) -> Bump {
        let of_word = |line: &Line, word| super::macs::word(line, word) + 1;
        match self.format {
            Format::Whole => {
                let next = of_word(line, slot as usize);
                super::tree::put(line, slot, next);
                Bump::Counted
            }
            Format::Split if minor(line, slot) < MOST_MINOR => {
                set_minor(line, slot, minor(line, slot) + 1);
                Bump::Counted
            }
            Format::Split => {
                let major = of_word(line, 0);
                super::tree::put(line, 0, major);
                for slot in 0..self.per_line() {
                    set_minor(line, slot, minor(line, slot).min(1));
                }
                Bump::Overflowed
            }
        }
    }

    /// Whether so many further writes of a line may overflow.
    pub fn may_overflow(&self, line: &Line, writes: u64) -> bool {
        self.format == Format::Split
            && (0..self.per_line()).any(|slot| minor(line, slot) + writes > MOST_MINOR)
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
        let major = |line: &Line| match self.format {
            Format::Split => super::macs::word(line, 0),
            Format::Whole => 0,
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
                match self.format {
                    Format::Whole => super::tree::put(&mut newest, slot, found),
                    Format::Split => set_minor(&mut newest, slot, found & MOST_MINOR),
                }
            }
        }
        newest
    }
}

/// The bytes that minor number `slot` has bits in, as a number, and its lowest bit there.
fn minor_bits(slot: u64) -> (usize, u64) {
    let bit = FIRST_BIT + slot * MINOR_BITS;
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
        for format in [Format::Split, Format::Whole] {
            let mut layout = Layout::new(64);
            let mut settings = Settings::default();
            settings.set(&FORMAT, format);
            let versions = Versions::reserve(&settings, 64, &mut layout);
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
                    assert_eq!(now > seen[other as usize], changes, "{format:?} {other}");
                    seen[other as usize] = now;
                }
                assert_eq!(versions.newest(&line, &before), line);
                assert_eq!(versions.newest(&before, &line), line);
            }
            assert_eq!(overflows > 0, format == Format::Split);
        }
    }
}
