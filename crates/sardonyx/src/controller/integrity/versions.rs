//! Versions: how often each line of the medium has been written, in lines of their own. What a MAC binds a line to,
//! and what a Bonsai tree stands over. Source of the split format: Yan et al. (ISCA 2006), from memory: a line has a
//! major number of 8 bytes and 64 minor ones of 7 bits.
//! They are the integrity's own, beside the counters of an encryption: policies here count globally, in a cache of
//! their own or not at all, and tables and logs must be as fresh as data. Papers have one counter for both, so the
//! traffic of theirs is that of a scheme over `identity+no-encryption`.
//! Left out: minor numbers of more bits, or of several lengths.

use super::counter_tree::{COUNTER_BITS, counted, counter, sum};
use super::macs::{PER_LINE, Where, word};
use super::tree::put;
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

/// How versions lie in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Eight of eight bytes.
    Whole,
    /// A major number and 64 minor ones of so many bits.
    Split(u64),
    /// Eight of seven bytes and a MAC: a node of a counter tree.
    Node,
}

impl Format {
    /// What the settings say of the versions below a Bonsai tree.
    pub fn from_settings(settings: &Settings) -> Format {
        match settings.get(&MINOR_BITS) {
            0 => Format::Whole,
            bits => Format::Split(bits),
        }
    }

    fn per_line(self) -> u64 {
        match self {
            Format::Whole | Format::Node => PER_LINE,
            Format::Split(_) => 64,
        }
    }

    fn region(self) -> &'static str {
        match self {
            Format::Whole | Format::Node => NAMES[0],
            Format::Split(bits) => NAMES[bits as usize],
        }
    }
}

/// Where the versions lie.
#[derive(Clone, Debug)]
pub struct Versions {
    /// Their lines.
    pub region: Region,
    format: Format,
    first: u64,
}

impl Versions {
    /// Reserves room for MACs of all lines that `layout` has so far, and for their versions.
    pub fn reserve(format: Format, settings: &Settings, layout: &mut Layout) -> (Where, Versions) {
        let macs = Where::reserve_by(format.per_line(), settings, layout);
        let lines = macs.count.div_ceil(format.per_line());
        let region = layout.reserve_sparse(format.region(), lines);
        let versions = Versions {
            region,
            format,
            first: settings.get(&FIRST_VERSION),
        };
        (macs, versions)
    }

    /// The same in a layout in which they are reserved, for reserve power, which counts on from what is there.
    pub fn from_layout(format: Format, settings: &Settings, layout: &Layout) -> (Where, Versions) {
        let region = layout.region(format.region());
        let versions = Versions {
            region: region.expect("it has been reserved").clone(),
            format,
            first: 0,
        };
        (Where::of_by(format.per_line(), settings, layout), versions)
    }

    /// Versions of a line.
    #[inline]
    pub fn per_line(&self) -> u64 {
        self.format.per_line()
    }

    /// The bits of a line that version `slot` has to itself.
    pub fn bits_of(&self, slot: u64) -> std::ops::Range<usize> {
        let (first, bits) = match self.format {
            Format::Whole => (64 * slot, 64),
            Format::Split(_) => (FIRST_BIT + slot * ROOM, ROOM),
            Format::Node => (COUNTER_BITS * slot, COUNTER_BITS),
        };
        first as usize..(first + bits) as usize
    }

    /// The line of the version of the protected line with that number, and which of its versions it is.
    #[inline]
    pub fn of_number(&self, number: u64) -> (u64, u64) {
        (number / self.per_line(), number % self.per_line())
    }

    /// Version `slot` of `line`; 0 is that of a line that was never written.
    pub fn get(&self, line: &Line, slot: u64) -> u64 {
        match self.format {
            Format::Whole => word(line, slot as usize),
            Format::Split(_) => match minor(line, slot) {
                0 => 0,
                minor => word(line, 0) << ROOM | minor,
            },
            Format::Node => counter(line, slot),
        }
    }

    /// How far version `slot` of `line` is from the last multiple of `stride`, which a minor number's overflow is.
    pub fn since(&self, line: &Line, slot: u64, stride: u64) -> u64 {
        match self.format {
            Format::Split(_) => minor(line, slot) % stride,
            Format::Whole | Format::Node => self.get(line, slot) % stride,
        }
    }

    /// Counts one more write of the protected line with that number. A line that has been written has a minor number of
    /// 1 at least.
    pub fn bump(&self, line: &mut Line, number: u64) -> Bump {
        let (index, slot) = self.of_number(number);
        match self.format {
            Format::Whole => {
                let next = (word(line, slot as usize) + 1).max(self.first);
                put(line, slot, next);
                Bump::Counted
            }
            Format::Node => {
                let next = (counter(line, slot) + 1).max(self.first);
                *line = counted(0, index, line, slot, next);
                Bump::Counted
            }
            Format::Split(bits) if minor(line, slot) < (1 << bits) - 1 => {
                let major = word(line, 0).max(self.first);
                put(line, 0, major);
                set_minor(line, slot, minor(line, slot) + 1);
                Bump::Counted
            }
            Format::Split(_) => {
                let major = word(line, 0) + 1;
                put(line, 0, major);
                for slot in 0..self.per_line() {
                    set_minor(line, slot, minor(line, slot).min(1));
                }
                Bump::Overflowed
            }
        }
    }

    /// `line`, in which the version of the protected line with that number is `steps` writes later; none if it would
    /// overflow meanwhile.
    pub fn later(&self, line: &Line, number: u64, steps: u64) -> Option<Line> {
        let mut later = *line;
        (0..steps)
            .all(|_| self.bump(&mut later, number) == Bump::Counted)
            .then_some(later)
    }

    /// The newer versions of two lines, each by itself; of two nodes the one that has counted more.
    pub fn newest(&self, one: &Line, other: &Line) -> Line {
        let age = |line: &Line| match self.format {
            Format::Whole => 0,
            Format::Split(_) => word(line, 0),
            Format::Node => sum(line),
        };
        if age(one) != age(other) {
            return if age(one) > age(other) { *one } else { *other };
        }
        let mut newest = *one;
        for slot in 0..self.per_line() {
            let found = self.get(other, slot);
            if found > self.get(one, slot) {
                match self.format {
                    Format::Split(_) => set_minor(&mut newest, slot, found & MOST_MINOR),
                    Format::Whole | Format::Node => put(&mut newest, slot, found),
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
            let format = Format::from_settings(&settings);
            let (_, versions) = Versions::reserve(format, &settings, &mut layout);
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
