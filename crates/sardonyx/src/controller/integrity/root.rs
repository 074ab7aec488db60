//! What a Bonsai tree keeps over a power cut: the register, which follows the version of each line at the instant at
//! which the line is in the persistence domain, whether or not its line of versions is. What the chip knows then, and
//! the medium may not, is had from what is accepted: the version under which the line's MAC is right.
//!
//! Where reserve power dumps lines past the guard (registers of a hardware log, caches under `eadr`) its logic counts
//! their versions on, and writes MACs, versions and nodes of them (*assumed*, as [`super::merkle`] says). From the
//! first such dump on all of these are what this logic has made, not what the run has written.
//! Left out: what that costs in reserve power.

use std::collections::BTreeMap;
use std::ops::Range;

use super::macs::{PER_LINE, Where, word};
use super::tree::{ARITY, Nodes, Tree, put};
use super::versions::{Bump, Versions};
use crate::controller::layers::PowerFail;
use crate::line::{Line, Place, ZERO_LINE};
use crate::medium::layout::{Layout, Region};
use crate::plan::start_gap::Places;

/// Versions that a line on chip is ahead of the medium's, at most: all that a minor number counts.
const MOST_AHEAD: u64 = super::versions::MOST_MINOR;

/// The register, and all that it follows from.
pub struct Root {
    macs: Where,
    versions: Versions,
    tree: Tree,
    /// Lines of versions as the chip knows them, of what is accepted.
    newest: BTreeMap<u64, Line>,
    levels: Vec<Nodes>,
    register: Line,
    /// The lines of MACs that have been looked at.
    known: BTreeMap<u64, Line>,
    dumps: bool,
}

impl Root {
    /// Knows nothing yet.
    pub fn from_layout(layout: &Layout) -> Root {
        let (macs, versions) = Versions::from_layout(layout);
        let tree = Tree::from_layout(versions.region.clone(), layout);
        Root {
            macs,
            newest: BTreeMap::new(),
            levels: vec![Nodes::new(); tree.levels.len() - 1],
            register: ZERO_LINE,
            known: BTreeMap::new(),
            dumps: false,
            versions,
            tree,
        }
    }

    /// Whether the line at `place` is what its MAC says under the version in `line`.
    fn is_right(&self, number: u64, line: &Line, kept: u64, image: &Places) -> bool {
        let Some(place) = self.macs.place(number) else {
            return false;
        };
        let (_, slot) = self.versions.of_number(number);
        let version = self.versions.get(line, slot);
        let right = |data| {
            self.macs
                .mac_of_version(place, version, &data, image.sideband(place))
                == kept
        };
        version != 0 && image.read(place).is_some_and(right)
    }

    /// The versions of the lines of line `index` of MACs, which has been written.
    fn look(&mut self, index: u64, image: &Places) -> Option<u64> {
        let now = image
            .read(self.macs.region.line(index))
            .unwrap_or(ZERO_LINE);
        let before = self.known.insert(index, now).unwrap_or(ZERO_LINE);
        let mut changed = None;
        for at in (0..PER_LINE as usize).filter(|at| word(&now, *at) != word(&before, *at)) {
            let number = index * PER_LINE + at as u64;
            let (of, slot) = self.versions.of_number(number);
            let kept = image
                .read(self.versions.region.line(of))
                .unwrap_or(ZERO_LINE);
            let newest = self.newest.get(&of).copied().unwrap_or(ZERO_LINE);
            let newest = self.versions.newest(&newest, &kept);
            let mut ahead =
                (0..MOST_AHEAD).map_while(|steps| self.versions.later(&newest, slot, steps));
            let right = ahead.find(|line| self.is_right(number, line, word(&now, at), image));
            if let Some(line) = right {
                self.newest.insert(of, line);
                changed = Some(of);
            }
        }
        changed
    }

    /// All above the line `index` of versions follows, and the register's line in the medium does.
    fn follow(&mut self, index: u64, image: &mut Places) {
        let (mut index, mut line) = (index, self.newest.get(&index).copied().unwrap_or(ZERO_LINE));
        for level in 0..self.tree.levels.len() {
            let hash = Tree::hash(level, index, &line);
            if self.tree.is_top(level) {
                put(&mut self.register, index, hash);
                break;
            }
            let node = self.levels[level].entry(index / ARITY).or_insert(ZERO_LINE);
            put(node, index % ARITY, hash);
            (index, line) = (index / ARITY, *node);
            if self.dumps {
                image.write(self.tree.levels[level + 1].line(index), &line, 0xff, None);
            }
        }
        image.write(self.tree.register.line(0), &self.register, 0xff, None);
    }

    fn index(region: &Region, place: Place) -> u64 {
        place.0 - region.first.0
    }

    /// Puts back what the run has written over what reserve power knows better.
    fn put_back(&mut self, place: Place, image: &mut Places) {
        if self.macs.region.contains(place) {
            // Under versions of the run, and at an overflow of lines that nobody has written now.
            let first = Root::index(&self.macs.region, place) * PER_LINE;
            for number in first..first + PER_LINE {
                let (index, slot) = self.versions.of_number(number);
                let line = self.newest.get(&index).copied().unwrap_or(ZERO_LINE);
                if self.versions.get(&line, slot) != 0 {
                    self.write_mac(number, &line, image);
                }
            }
            return;
        }
        let levels = self.tree.levels.iter().enumerate();
        let mut levels = levels.filter(|(_, region)| region.contains(place));
        let Some((level, region)) = levels.next() else {
            return;
        };
        let nodes = match level {
            0 => &self.newest,
            level => &self.levels[level - 1],
        };
        let right = nodes.get(&Root::index(region, place)).unwrap_or(&ZERO_LINE);
        image.write(place, right, 0xff, None);
    }

    fn write_mac(&self, number: u64, line: &Line, image: &mut Places) {
        let Some(place) = self.macs.place(number) else {
            return;
        };
        let (_, slot) = self.versions.of_number(number);
        let Some(data) = image.read(place) else {
            return;
        };
        let version = self.versions.get(line, slot);
        let right = self
            .macs
            .mac_of_version(place, version, &data, image.sideband(place));
        let mut kept = ZERO_LINE;
        put(&mut kept, number % PER_LINE, right);
        let at = self.macs.region.line(number / PER_LINE);
        image.write(at, &kept, 1 << (number % PER_LINE), None);
    }
}

impl PowerFail for Root {
    fn begin(&mut self, image: &mut Places) {
        let first = self.versions.region.first.0;
        for at in image.written_in(&self.versions.region) {
            let line = image.read(at).unwrap_or(ZERO_LINE);
            self.newest.insert(at.0 - first, line);
        }
        for at in image.written_in(&self.macs.region) {
            self.look(Root::index(&self.macs.region, at), image);
        }
        let lines = self.newest.iter().map(|(index, line)| (*index, *line));
        (self.levels, self.register) = self.tree.rebuild(lines);
    }

    fn accepted(&mut self, place: Place, image: &mut Places) {
        if self.dumps {
            return self.put_back(place, image);
        }
        if self.macs.region.contains(place) {
            let index = Root::index(&self.macs.region, place);
            if let Some(changed) = self.look(index, image) {
                self.follow(changed, image);
            }
        } else if self.versions.region.contains(place) {
            let index = Root::index(&self.versions.region, place);
            let kept = image.read(place).unwrap_or(ZERO_LINE);
            let newest = self.newest.entry(index).or_insert(ZERO_LINE);
            *newest = self.versions.newest(newest, &kept);
            self.follow(index, image);
        }
    }

    fn dumped(&mut self, place: Place, image: &mut Places) {
        let Some(number) = self.macs.number(place) else {
            return;
        };
        self.dumps = true;
        let (index, slot) = self.versions.of_number(number);
        let mut line = self.newest.get(&index).copied().unwrap_or(ZERO_LINE);
        let bump = self.versions.bump(&mut line, slot);
        image.write(self.versions.region.line(index), &line, 0xff, None);
        self.newest.insert(index, line);
        self.write_mac(number, &line, image);
        if bump == Bump::Overflowed {
            let first = index * self.versions.per_line();
            for number in first..first + self.versions.per_line() {
                let (_, slot) = self.versions.of_number(number);
                if self.versions.get(&line, slot) != 0 {
                    self.write_mac(number, &line, image);
                }
            }
        }
        self.follow(index, image);
    }

    fn on_chip(&self) -> Option<&Region> {
        Some(&self.tree.register)
    }

    fn kept_of(&self, place: Place) -> Option<(Place, usize)> {
        self.macs.of_line(place)
    }

    fn version_of(&self, place: Place) -> Option<(Place, Range<usize>)> {
        let (index, slot) = self.versions.of_number(self.macs.number(place)?);
        Some((
            self.versions.region.line(index),
            self.versions.bits_of(slot),
        ))
    }

    fn over(&self, place: Place, level: usize) -> Option<Place> {
        let macs = &self.macs.region;
        let number = match macs.contains(place) {
            true => Some(Root::index(macs, place) * PER_LINE),
            false => self.macs.number(place),
        };
        match number {
            Some(number) => self.tree.over(self.versions.of_number(number).0, level),
            None => self.tree.over_node(place, level),
        }
    }
}
