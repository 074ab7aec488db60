//! Versions: how often each line of the medium has been written, in lines of their own. What a MAC binds a line to,
//! and what a Bonsai tree stands over. Source of the split format: Yan et al. (ISCA 2006), from memory: a line has a
//! major number of 8 bytes and 64 minor ones of 7 bits.
//! They are the integrity's own; or those of data are the encryption's counters ([`Leaves`]), as papers have it.
//! Tables and logs have no counters and must be as fresh as data, so they always have versions.
//! Left out: minor numbers of more bits, or of several lengths.

use super::counter_tree::{COUNTER_BITS, counted, counter, sum};
use super::macs::{MAC_PLACE, PER_LINE, Where, word};
use super::tree::{ARITY, Tree, put};
use crate::controller::split_counters::{self, Bump, minor, set_minor};
use crate::line::Line;
use crate::medium::layout::{CounterLines, Layout, Region};
use crate::settings::{Settings, keys, words};

keys! {
    MINOR_BITS: u64 = int("integrity.minor_bits", (0, 7), 7),
        Source("split counters, Yan et al. (ISCA 2006), from memory"),
        "Bits of the minor versions, 64 to a line under one major; 0: eight versions of eight bytes, and no minor ones"
        in Between("0", "7", "the tree is a level higher and nothing overflows, or minor numbers do")
        under |by| by.stride.map(|stride| if stride > 2 { 2 } else { 0 });
}

/// The leaves of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// The integrity keeps a version of every line.
    OwnVersions,
    /// The encryption's counters are the versions of data; only tables and logs have versions of their own.
    Counters,
}

words!(Leaves { "own-versions" => OwnVersions, "counters" => Counters });

keys! {
    LEAVES: Leaves = word("integrity.leaves", "own-versions"),
        Assumed("papers have one number for a line's version and its encryption counter; some policies have none that fits"),
        "What Bonsai trees stand over: versions of every line, or the encryption's counters, and versions of tables and logs";
}

// No layer lists it: no machine sets it, the crash explorer does.
keys! {
    FIRST_VERSION: u64 = int("integrity.first_version", (0, 1 << 56), 0),
        Source("for the crash explorer: a machine that has run for long"),
        "From where on versions are counted, the major ones where there are minor ones";
}

/// Names of the regions of versions, by the bits of a minor number.
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

/// The format of versions in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionFormat {
    /// A line has eight versions of eight bytes.
    Whole,
    /// A line has a major number and 64 minor ones of this many bits.
    Split(u64),
    /// A line has eight versions of seven bytes and a MAC: a node of a counter tree.
    Node,
}

impl VersionFormat {
    /// The format that the settings give for versions below a Bonsai tree.
    pub fn from_settings(settings: &Settings) -> VersionFormat {
        match settings.get(&MINOR_BITS) {
            0 => VersionFormat::Whole,
            bits => VersionFormat::Split(bits),
        }
    }

    fn per_line(self) -> u64 {
        match self {
            VersionFormat::Whole | VersionFormat::Node => PER_LINE,
            VersionFormat::Split(_) => split_counters::PER_LINE,
        }
    }

    fn region(self) -> &'static str {
        match self {
            VersionFormat::Whole | VersionFormat::Node => NAMES[0],
            VersionFormat::Split(bits) => NAMES[bits as usize],
        }
    }
}

/// The places of versions. Protected lines are known by their numbers.
#[derive(Clone, Debug)]
pub struct Versions {
    /// The lines of own versions.
    pub region: Region,
    format: VersionFormat,
    first: u64,
    /// The counters that are versions of data, and the number of the first line after the data.
    pub counters: Option<(CounterLines, u64)>,
    /// The index of the first line of counters in the lowest level of the tree.
    first_counters: u64,
}

impl Versions {
    /// Reserves room for MACs of all lines that `layout` has so far, for their versions, and for a tree over these.
    pub fn reserve(
        format: VersionFormat,
        settings: &Settings,
        layout: &mut Layout,
    ) -> (Where, Versions, Tree) {
        let counters = counters(format, settings, layout);
        let by = (format.per_line(), settings.get(&MAC_PLACE));
        let macs = Where::reserve(by, counters.as_ref(), settings, layout);
        let first = first_own(format, counters.is_some(), layout);
        let lines = (macs.count - first).div_ceil(format.per_line());
        let region = layout.reserve_sparse(format.region(), lines);
        let more = counters.as_ref().map(|counters| counters.region.clone());
        let tree = Tree::reserve(region.clone(), more, layout);
        let versions = Versions {
            region,
            format,
            first: settings.get(&FIRST_VERSION),
            first_counters: tree.first_more().unwrap_or(u64::MAX),
            counters: counters.map(|counters| (counters, first)),
        };
        (macs, versions, tree)
    }

    /// Finds the versions again in a layout in which they are reserved. Reserve power counts on from the versions that
    /// it finds.
    pub fn from_layout(
        format: VersionFormat,
        settings: &Settings,
        layout: &Layout,
    ) -> (Where, Versions, Tree) {
        let counters = counters(format, settings, layout);
        let region = layout.region(format.region());
        let region = region.expect("it has been reserved").clone();
        let first = first_own(format, counters.is_some(), layout);
        let more = counters.as_ref().map(|counters| counters.region.clone());
        let tree = Tree::from_layout(region.clone(), more, layout);
        let by = (format.per_line(), settings.get(&MAC_PLACE));
        let macs = Where::from_layout(by, counters.as_ref(), settings, layout);
        let versions = Versions {
            region,
            format,
            first: 0,
            first_counters: tree.first_more().unwrap_or(u64::MAX),
            counters: counters.map(|counters| (counters, first)),
        };
        (macs, versions, tree)
    }

    /// Versions in a line.
    #[inline]
    pub fn per_line(&self) -> u64 {
        self.format.per_line()
    }

    /// The counters, and the slot there, that hold the version of line `number`, if a counter is its version.
    fn counter_of(&self, number: u64) -> Option<(&CounterLines, u64)> {
        let (counters, _) = self
            .counters
            .as_ref()
            .filter(|(_, first)| number < *first)?;
        Some((counters, number % counters.per_line))
    }

    /// Whether the version of line `number` is the encryption's counter.
    pub fn is_counter(&self, number: u64) -> bool {
        self.counter_of(number).is_some()
    }

    /// The numbers of the lines whose versions are in line `index` of the lowest level.
    pub fn numbers(&self, index: u64) -> std::ops::Range<u64> {
        let (first, per_line) = match &self.counters {
            Some((counters, _)) if index >= self.first_counters => {
                let per_line = counters.per_line;
                ((index - self.first_counters) * per_line, per_line)
            }
            Some((_, first)) => (first + index * self.per_line(), self.per_line()),
            None => (index * self.per_line(), self.per_line()),
        };
        first..first + per_line
    }

    /// The bits of a line that only the version of line `number` uses.
    pub fn bits_of(&self, number: u64) -> std::ops::Range<usize> {
        if let Some((counters, slot)) = self.counter_of(number) {
            return (counters.bits)(slot);
        }
        let slot = self.slot(number);
        let (first, bits) = match self.format {
            VersionFormat::Whole => (64 * slot, 64),
            VersionFormat::Split(_) => return split_counters::bits_of(slot),
            VersionFormat::Node => (COUNTER_BITS * slot, COUNTER_BITS),
        };
        first as usize..(first + bits) as usize
    }

    fn own(&self, number: u64) -> u64 {
        number - self.counters.as_ref().map_or(0, |(_, first)| *first)
    }

    fn slot(&self, number: u64) -> u64 {
        self.own(number) % self.per_line()
    }

    /// The index in the tree's lowest level of the line with the version of line `number`.
    #[inline]
    pub fn index_of(&self, number: u64) -> u64 {
        match self.counter_of(number) {
            Some((counters, _)) => self.first_counters + number / counters.per_line,
            None => self.own(number) / self.per_line(),
        }
    }

    /// The version of line `number`, which stands in `line`; 0 if it was never written.
    pub fn get(&self, line: &Line, number: u64) -> u64 {
        if let Some((counters, slot)) = self.counter_of(number) {
            return (counters.counter)(line, slot);
        }
        let slot = self.slot(number);
        match self.format {
            VersionFormat::Whole => word(line, slot as usize),
            VersionFormat::Split(_) => split_counters::get(line, slot),
            VersionFormat::Node => counter(line, slot),
        }
    }

    /// The distance of line `number`'s version from the last multiple of `stride`. An overflow of a minor number is a
    /// multiple.
    pub fn since(&self, line: &Line, number: u64, stride: u64) -> u64 {
        match self.format {
            VersionFormat::Split(_) => minor(line, self.slot(number)) % stride,
            VersionFormat::Whole | VersionFormat::Node => self.get(line, number) % stride,
        }
    }

    /// Counts one more write of protected line `number`. After its first write a line's minor number is at least 1.
    pub fn bump(&self, line: &mut Line, number: u64) -> Bump {
        let (index, slot) = (self.index_of(number), self.slot(number));
        match self.format {
            VersionFormat::Whole => {
                let next = word(line, slot as usize).wrapping_add(1).max(self.first);
                put(line, slot, next);
                Bump::Counted
            }
            VersionFormat::Node => {
                let next = (counter(line, slot) + 1).max(self.first);
                *line = counted(0, index, line, slot, next);
                Bump::Counted
            }
            VersionFormat::Split(bits) => split_counters::bump(line, slot, bits, self.first),
        }
    }

    /// Returns `line` with the version of line `number` increased by `steps` writes; `None` if it would overflow.
    pub fn later(&self, line: &Line, number: u64, steps: u64) -> Option<Line> {
        let mut later = *line;
        (0..steps)
            .all(|_| self.bump(&mut later, number) == Bump::Counted)
            .then_some(later)
    }

    /// Returns a node with the version of line `number` whose lowest bits, `bits` of them, are those of its MAC's word
    /// and whose upper ones are the node's; `None` where the node's is as great, and of a line without a MAC.
    pub fn newer(&self, node: &Line, number: u64, (mac, bits): (u64, u64)) -> Option<Line> {
        let (kept, mask) = (self.get(node, number), (1 << bits) - 1);
        let version = kept & !mask | mac & mask;
        let is_newer = mac != 0 && version > kept;
        is_newer.then(|| counted(0, self.index_of(number), node, self.slot(number), version))
    }

    /// Merges two lines of versions, both line `index`: each newer version counts. Of two nodes either may be the newer in
    /// one version and the older in another, where groups that count in one node are accepted in any order.
    pub fn newest(&self, index: u64, one: &Line, other: &Line) -> Line {
        if self.format == VersionFormat::Node {
            let (mut newest, older) = match sum(one) >= sum(other) {
                true => (*one, other),
                false => (*other, one),
            };
            for number in 0..ARITY {
                let version = counter(older, number);
                if version > counter(&newest, number) {
                    newest = counted(0, index, &newest, number, version);
                }
            }
            return newest;
        }
        let major = |line: &Line| match self.format {
            VersionFormat::Split(_) => split_counters::major(line),
            VersionFormat::Whole | VersionFormat::Node => 0,
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
            match self.format {
                VersionFormat::Split(_) if minor(other, slot) > minor(one, slot) => {
                    set_minor(&mut newest, slot, minor(other, slot));
                }
                VersionFormat::Whole if word(other, slot as usize) > word(one, slot as usize) => {
                    put(&mut newest, slot, word(other, slot as usize));
                }
                _ => {}
            }
        }
        newest
    }
}

/// The encryption's counters, if they are the leaves of a tree over such versions.
fn counters(format: VersionFormat, settings: &Settings, layout: &Layout) -> Option<CounterLines> {
    let asked = format != VersionFormat::Node && settings.get(&LEAVES) == Leaves::Counters;
    layout.counters().filter(|_| asked).cloned()
}

/// The number of the first protected line whose version is the integrity's own.
fn first_own(format: VersionFormat, counters: bool, layout: &Layout) -> u64 {
    match counters {
        true => layout.data_lines().next_multiple_of(format.per_line()),
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::ZERO_LINE;

    /// Nodes of which each is the newer in one version.
    #[test]
    fn of_two_nodes_each_newer_version_counts() {
        let (mut layout, settings) = (Layout::new(64), Settings::default());
        let (_, versions, _) = Versions::reserve(VersionFormat::Node, &settings, &mut layout);
        let node = |each: &[(u64, u64)]| {
            let counts = each.iter();
            counts.fold(ZERO_LINE, |node, (number, version)| {
                counted(0, 3, &node, *number, *version)
            })
        };
        let (one, other) = (node(&[(0, 4), (1, 5)]), node(&[(0, 3), (1, 7)]));
        let both = node(&[(0, 4), (1, 7)]);
        assert_eq!(versions.newest(3, &one, &other), both);
        assert_eq!(versions.newest(3, &other, &one), both);
        assert_eq!(versions.newest(3, &both, &one), both);
    }

    /// Against 64 numbers of their own: each write gives its line a version that it never had, and no other
    /// line another one, but where the minor number overflows, which gives all of them newer ones.
    #[test]
    fn a_version_is_never_had_twice() {
        for bits in [7, 2, 1, 0] {
            let mut layout = Layout::new(64);
            let mut settings = Settings::default();
            settings.set(&MINOR_BITS, bits);
            let format = VersionFormat::from_settings(&settings);
            let (_, versions, _) = Versions::reserve(format, &settings, &mut layout);
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
                assert_eq!(versions.newest(0, &line, &before), line);
                assert_eq!(versions.newest(0, &before, &line), line);
            }
            assert_eq!(overflows > 0, bits > 0);
        }
    }
}
