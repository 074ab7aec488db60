//! Where things lie in the medium: data from line 0, then each layer's tables in regions of their
//! own, each so many lines further as the medium says ([`REGIONS_SKEW`]). Regions lie beyond the data's capacity, as extra rows; a table that is hashed, and so
//! touched one line here and one there, is *sparse* and stored line by line.

use std::ops::Range;

use super::near;
use super::params::Geometry;
use crate::line::{Line, Place, Tier};
use crate::settings::{Settings, keys};

keys! {
    REGIONS_SKEW: u64 = int("medium.regions_skew", (0, 1 << 20), 0),
        Assumed("no paper says where tables begin: data, counters and tables all in the first bank"),
        "Lines left free before each region of counters or tables: in which bank it begins"
        in Between("0", "960", "the same bank as the data, to the last of 16 banks of rows of 64 lines");
}

/// Sparse regions begin here, so that a single comparison identifies them.
pub const SPARSE_START: u64 = 1 << 48;

/// A run of lines with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// What lives there.
    pub name: &'static str,
    /// Its first line.
    pub first: Place,
    /// Lines in it.
    pub lines: u64,
}

impl Region {
    /// Whether `place` is one of its lines.
    pub fn contains(&self, place: Place) -> bool {
        (self.first.0..self.first.0 + self.lines).contains(&place.0)
    }

    /// The place of line `index` of this region.
    ///
    /// # Panics
    /// If the region has no such line.
    pub fn line(&self, index: u64) -> Place {
        assert!(
            index < self.lines,
            "{}: line {index} is beyond it",
            self.name
        );
        Place(self.first.0 + index)
    }
}

/// The layout of encryption counters in lines of a region of their own, for readers of the medium's bytes. The counter
/// of a place is in line number `place / per_line`.
#[derive(Clone, Debug)]
pub struct CounterLines {
    /// The region.
    pub region: Region,
    /// Places whose counters one line holds.
    pub per_line: u64,
    /// Whether a line and its counter there are always accepted as one.
    pub persist: bool,
    /// Whether a write may take other lines of data into its group.
    pub groups_lines: bool,
    /// The 8-byte words of a line, a bit each, that counter number `0..per_line` in it consists of.
    pub words: fn(u64) -> u8,
    /// The bits of a line that only counter number `0..per_line` in it uses.
    pub bits: fn(u64) -> Range<usize>,
    /// Reads counter number `0..per_line` of a line; 0 is that of a line that the run has not written.
    pub counter: fn(&Line, u64) -> u64,
}

impl CounterLines {
    /// The line with the counter of `place`, if `place` is one of data.
    pub fn line_of(&self, place: Place) -> Option<Place> {
        let index = place.0 / self.per_line;
        (index < self.region.lines).then(|| self.region.line(index))
    }

    /// The counter of `place` in its line.
    pub fn counter_in(&self, line: &Line, place: Place) -> u64 {
        (self.counter)(line, place.0 % self.per_line)
    }

    /// The places whose counters depend on the words `words` of the line at `at`; empty if it is no line of counters.
    pub fn covered(&self, at: Place, words: u8) -> Vec<Place> {
        if !self.region.contains(at) {
            return Vec::new();
        }
        let first = (at.0 - self.region.first.0) * self.per_line;
        let covered = (0..self.per_line).filter(|number| (self.words)(*number) & words != 0);
        covered.map(|number| Place(first + number)).collect()
    }
}

/// Assigns regions of the medium.
#[derive(Clone, Debug)]
pub struct Layout {
    data_lines: u64,
    skew: u64,
    /// The next line of a region, and of one that is touched without order: in the persistent medium and in the near one.
    next: [[u64; 2]; 2],
    /// The medium in which regions are reserved now.
    tier: Tier,
    regions: Vec<Region>,
    counters: Option<CounterLines>,
    beside: Option<&'static str>,
}

impl Layout {
    /// A medium whose first `data_lines` lines hold data.
    pub fn new(data_lines: u64) -> Layout {
        Layout {
            data_lines,
            skew: 0,
            next: [[data_lines.next_multiple_of(64), SPARSE_START]; 2],
            tier: Tier::Far,
            regions: Vec::new(),
            counters: None,
            beside: None,
        }
    }

    /// Places regions as `settings` say. Call it before any region is reserved.
    pub fn lie_as(&mut self, settings: &Settings) {
        debug_assert!(self.regions.is_empty());
        self.skew = settings.get(&REGIONS_SKEW);
        if let Some(near) = near::settings(settings) {
            let (lines, bits) = (Geometry::from_settings(&near).lines(), near::bits(settings));
            let data = near::used(settings, lines).next_multiple_of(64);
            self.next[Tier::Near as usize] = [data, SPARSE_START].map(|first| bits | first);
        }
    }

    /// Reserves regions from now on in the near medium, if `near`, or in the persistent one.
    pub fn reserve_near(&mut self, near: bool) {
        self.tier = if near { Tier::Near } else { Tier::Far };
    }

    /// Adds lines of data that a logging keeps for itself. Call it before any region is reserved.
    pub fn extend_data(&mut self, lines: u64) {
        debug_assert!(self.regions.is_empty() || lines == 0);
        self.data_lines += lines;
        let [dense, _] = &mut self.next[Tier::Far as usize];
        *dense = (*dense).max(self.data_lines.next_multiple_of(64));
    }

    /// Lines that hold data.
    pub fn data_lines(&self) -> u64 {
        self.data_lines
    }

    /// The end of all regions reserved so far in the persistent medium, except those that are touched without order.
    pub fn end(&self) -> u64 {
        self.next[Tier::Far as usize][0]
    }

    /// Reserves a region of `lines` lines.
    pub fn reserve(&mut self, name: &'static str, lines: u64) -> Region {
        let [dense, _] = &mut self.next[self.tier as usize];
        let first = *dense + self.skew;
        *dense = first + lines.next_multiple_of(64);
        self.push(name, first, lines)
    }

    /// Reserves a region of `lines` lines that are touched without order (a hash table).
    pub fn reserve_sparse(&mut self, name: &'static str, lines: u64) -> Region {
        let [_, sparse] = &mut self.next[self.tier as usize];
        let first = *sparse + self.skew;
        *sparse = first + lines;
        self.push(name, first, lines)
    }

    fn push(&mut self, name: &'static str, first: u64, lines: u64) -> Region {
        let region = Region {
            name,
            first: Place(first),
            lines,
        };
        self.regions.push(region.clone());
        region
    }

    /// The name of the region that `place` is in, and its line there; data if it is in none.
    pub fn name_of(&self, place: Place) -> (&'static str, u64) {
        match self.regions.iter().find(|region| region.contains(place)) {
            Some(region) => (region.name, place.0 - region.first.0),
            None if place.is_near() => ("near", place.in_medium()),
            None => ("data", place.0),
        }
    }

    /// The region of that name.
    pub fn region(&self, name: &str) -> Option<&Region> {
        self.regions.iter().find(|region| region.name == name)
    }

    /// Sets the layout of data's encryption counters.
    pub fn keep_counters(&mut self, counters: CounterLines) {
        self.counters = Some(counters);
    }

    /// Where the encryption counters of data lie, if they have lines of their own.
    pub fn counters(&self) -> Option<&CounterLines> {
        self.counters.as_ref()
    }

    /// Sets what is kept in the eight bytes beside each line.
    pub fn keep_beside(&mut self, what: &'static str) {
        self.beside = Some(what);
    }

    /// What the eight bytes beside each line hold; `None` if a guard may use them.
    pub fn beside(&self) -> Option<&'static str> {
        self.beside
    }

    /// All regions, in the order in which they were reserved.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }
}
