//! What a tree over versions keeps over a power cut: the register, which follows the version of each line at the instant
//! at which the line is in the persistence domain, whether or not its line of versions is. What the chip knows then, and
//! the medium may not, is had from what is accepted ([`Learns`]).
//!
//! Where reserve power dumps lines past the guard (registers of a hardware log, caches under `eadr`) its logic counts
//! their versions on, and writes MACs, versions and nodes of them (*assumed*, as [`super::merkle`] says). From the
//! first such dump on all of these are what this logic has made, not what the run has written.
//! Left out: what that costs in reserve power.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::Range;

use super::asit;
use super::macs::{LOW_BITS, PER_LINE, Vouched, Where, beside, word};
use super::star;
use super::tree::{ARITY, Node, Nodes, Tree, put};
use super::versions::{VersionFormat, Versions};
use crate::controller::layers::PowerFail;
use crate::controller::split_counters::Bump;
use crate::line::{Line, Place, ZERO_LINE};
use crate::medium::layout::{Layout, Region};
use crate::plan::start_gap::Places;
use crate::settings::Settings;

/// The most that a version on chip is ahead of the medium's: as far as a minor number counts.
const MOST_AHEAD: u64 = crate::controller::split_counters::MOST_MINOR;

/// The lines from which reserve power learns the versions that the chip knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learns {
    /// It learns from accepted lines of versions only.
    Versions,
    /// It learns from lines of versions, and from accepted MACs: the version is the one under which the line's MAC is
    /// right.
    Macs,
    /// It learns as with `Macs`. A table names the nodes that only the chip has, so a dump must clear the table.
    NamedMacs,
    /// It learns as with `NamedMacs`, and MACs have low bits of versions.
    LowBits,
    /// It learns from lines of versions, and from the copies of nodes in the table.
    Table,
}

/// The nodes above the lowest level, and the register.
pub struct Followed<N> {
    pub tree: Tree,
    pub levels: Vec<Nodes>,
    register: Line,
    nodes: PhantomData<N>,
}

impl<N: Node> Followed<N> {
    pub fn new(tree: Tree) -> Followed<N> {
        Followed {
            levels: vec![Nodes::new(); tree.height() - 1],
            tree,
            register: ZERO_LINE,
            nodes: PhantomData,
        }
    }

    /// Builds the tree over these lines.
    pub fn begin(&mut self, leaves: Nodes) {
        (self.levels, self.register) = self.tree.rebuild::<N>(0, leaves);
    }

    /// Sets line `index` of the lowest level to `line`, and updates the nodes above it and the register's line in the
    /// medium. The nodes are written only if asked for.
    pub fn follow(&mut self, index: u64, line: Line, writes_nodes: bool, image: &mut Places) {
        let (mut index, mut line) = (index, line);
        for level in 0..self.tree.height() {
            let of = N::of(level, index, &line);
            if self.tree.is_top(level) {
                put(&mut self.register, index, of);
                break;
            }
            let node = self.levels[level].entry(index / ARITY).or_insert(ZERO_LINE);
            self.tree.put::<N>(level, index, node, of);
            (index, line) = (index / ARITY, *node);
            if writes_nodes {
                let place = self.tree.line(level + 1, index).expect("a node");
                image.write(place, &line, 0xff, None);
            }
        }
        image.write(self.tree.register.line(0), &self.register, 0xff, None);
    }
}

/// The register, and everything that it follows from.
pub struct Root<N> {
    macs: Where,
    versions: Versions,
    learns: Learns,
    /// The table that names nodes on chip.
    table: Option<Region>,
    /// Lines of versions as the chip knows them, as of what has been accepted.
    newest: Nodes,
    above: Followed<N>,
    /// Lines of MACs that have been searched for versions.
    known: BTreeMap<u64, Line>,
    dumps: bool,
}

impl<N: Node> Root<N> {
    /// Makes the register of a layout, which knows nothing yet.
    pub fn from_layout(
        format: VersionFormat,
        learns: Learns,
        settings: &Settings,
        layout: &Layout,
    ) -> Root<N> {
        let (mut macs, versions, tree) = Versions::from_layout(format, settings, layout);
        let table = match learns {
            Learns::Versions | Learns::Macs => None,
            Learns::Table | Learns::NamedMacs => Some(asit::REGION),
            Learns::LowBits => {
                macs.low_bits = settings.get(&LOW_BITS);
                Some(star::REGION)
            }
        };
        Root {
            above: Followed::new(tree),
            table: table.map(|name| layout.region(name).expect("it has been reserved").clone()),
            macs,
            versions,
            learns,
            newest: Nodes::new(),
            known: BTreeMap::new(),
            dumps: false,
        }
    }

    fn newest(&self, index: u64) -> Line {
        self.newest.get(&index).copied().unwrap_or(ZERO_LINE)
    }

    /// Learns versions from line `index` of MACs, which has been written. Returns the line of versions that has
    /// changed.
    fn look(&mut self, index: u64, image: &Places) -> Option<u64> {
        let now = image.read(self.macs.region.line(index));
        let now = now.unwrap_or(ZERO_LINE);
        let before = self.known.insert(index, now).unwrap_or(ZERO_LINE);
        let mut changed = None;
        // A word that is as it was belongs to a line that has not been written now.
        for at in (0..PER_LINE as usize).filter(|at| word(&now, *at) != word(&before, *at)) {
            let found = self.look_at(index * PER_LINE + at as u64, word(&now, at), image);
            changed = found.or(changed);
        }
        changed
    }

    /// Learns the version of line `number` from its MAC.
    fn look_at(&mut self, number: u64, mac: u64, image: &Places) -> Option<u64> {
        let place = self.macs.place(number);
        let place = place.filter(|_| !self.versions.is_counter(number))?;
        let of = self.versions.index_of(number);
        let kept = image.read(self.versions.region.line(of));
        let kept = kept.unwrap_or(ZERO_LINE);
        let newest = self.versions.newest(of, &self.newest(of), &kept);
        let (line, beside) = (image.read(place)?, image.sideband(place));
        let is_right = |versions: &Line| {
            let version = self.versions.get(versions, number);
            let by = Vouched { version, mac };
            self.macs.vouches(by, place, Some(&line), beside)
        };
        let right = match self.macs.low_bits {
            0 => (0..=MOST_AHEAD)
                .map_while(|steps| self.versions.later(&newest, number, steps))
                .find(is_right)?,
            bits => self
                .versions
                .newer(&newest, number, (mac, bits))
                .filter(is_right)?,
        };
        self.newest.insert(of, right);
        Some(of)
    }

    fn look_for_macs(&mut self, place: Place, image: &Places) -> Option<u64> {
        let macs = &self.macs.region;
        if macs.contains(place) {
            return self.look(place.0 - macs.first.0, image);
        }
        let number = self.macs.number(place).filter(|_| self.macs.beside)?;
        self.look_at(number, beside(image.sideband(place)), image)
    }

    fn look_up(&mut self, place: Place, image: &Places) -> Option<u64> {
        let entry = image.read(place)?;
        let region = &self.versions.region;
        let node = asit::place_of(&entry).filter(|node| region.contains(*node))?;
        let kept = image.read(node).unwrap_or(ZERO_LINE);
        let copy = asit::node_of(&entry, &kept);
        Some(self.learn(node.0 - region.first.0, copy))
    }

    fn learn(&mut self, index: u64, line: Line) -> u64 {
        let newest = self.versions.newest(index, &self.newest(index), &line);
        self.newest.insert(index, newest);
        index
    }

    /// Updates all nodes above line `index` of versions, and the register's line in the medium.
    fn follow(&mut self, index: u64, image: &mut Places) {
        let writes_nodes = self.dumps && self.learns != Learns::Versions;
        self.above
            .follow(index, self.newest(index), writes_nodes, image);
    }

    /// Writes line `index` of own versions. Counters are left to the encryption.
    fn write_versions(&mut self, index: u64, image: &mut Places) {
        if index < self.versions.region.lines {
            let place = self.versions.region.line(index);
            image.write(place, &self.newest(index), 0xff, None);
        }
    }

    fn learn_counters(&mut self, place: Place, image: &Places) -> Option<u64> {
        let (counters, _) = self.versions.counters.as_ref()?;
        let is_counters = counters.region.contains(place);
        let (_, index) = is_counters.then(|| self.above.tree.find(place))??;
        let line = image.read(place).unwrap_or(ZERO_LINE);
        self.newest.insert(index, line);
        Some(index)
    }

    /// Restores a line that the run has written over what reserve power knows better.
    fn put_back(&mut self, place: Place, image: &mut Places) {
        if self.macs.region.contains(place) {
            // Under versions of the run, and at an overflow of lines that nobody has written now.
            let first = (place.0 - self.macs.region.first.0) * PER_LINE;
            (first..first + PER_LINE).for_each(|number| self.write_mac(number, image));
            return;
        }
        if let Some(number) = self.macs.number(place) {
            if self.macs.beside {
                self.write_mac(number, image);
            }
            return;
        }
        if self.table.as_ref().is_some_and(|at| at.contains(place)) {
            image.write(place, &ZERO_LINE, 0xff, None);
            return;
        }
        match self.above.tree.find(place) {
            None => {}
            Some((0, index)) => self.write_versions(index, image),
            Some(_) if self.learns == Learns::Versions => {}
            Some((level, index)) => {
                let right = self.above.levels[level - 1].get(&index);
                image.write(place, right.unwrap_or(&ZERO_LINE), 0xff, None);
            }
        }
    }

    fn write_mac(&self, number: u64, image: &mut Places) {
        let index = self.versions.index_of(number);
        let version = self.versions.get(&self.newest(index), number);
        let held = self
            .macs
            .place(number)
            .and_then(|place| Some((place, image.read(place)?)));
        if let Some((place, line)) = held.filter(|_| version > 0) {
            let beside = image.sideband(place);
            let right = self.macs.mac_of_version(place, version, &line, beside);
            if self.macs.beside {
                image.write(place, &line, 0, Some(right.to_le_bytes()));
                return;
            }
            let mut macs = ZERO_LINE;
            put(&mut macs, number % PER_LINE, right);
            let at = self.macs.region.line(number / PER_LINE);
            image.write(at, &macs, 1 << (number % PER_LINE), None);
        }
    }

    /// Makes reserve power write all that it knows from now on, because nodes that a table names are lost with the
    /// cache.
    fn take_over(&mut self, image: &mut Places) {
        self.dumps = true;
        let Some(table) = self.table.clone() else {
            return;
        };
        for index in self.newest.keys().copied().collect::<Vec<_>>() {
            self.write_versions(index, image);
            self.follow(index, image);
        }
        for line in image.written_in(&table) {
            image.write(line, &ZERO_LINE, 0xff, None);
        }
    }
}

impl<N: Node> PowerFail for Root<N> {
    fn begin(&mut self, image: &mut Places) {
        let first = self.versions.region.first.0;
        for at in image.written_in(&self.versions.region) {
            let line = image.read(at).unwrap_or(ZERO_LINE);
            self.newest.insert(at.0 - first, line);
        }
        if let Some((counters, _)) = self.versions.counters.clone() {
            for at in image.written_in(&counters.region) {
                self.learn_counters(at, image);
            }
        }
        match (self.learns, self.table.clone()) {
            (Learns::Table, Some(table)) => {
                for at in image.written_in(&table) {
                    self.look_up(at, image);
                }
            }
            (Learns::Versions, _) => {}
            _ => {
                let regions = std::iter::once(&self.macs.region).chain(self.macs.regions());
                let places: Vec<Place> = regions.flat_map(|at| image.written_in(at)).collect();
                for at in places {
                    self.look_for_macs(at, image);
                }
            }
        }
        self.above.begin(self.newest.clone());
    }

    fn accepted(&mut self, place: Place, image: &mut Places) {
        if self.dumps {
            return self.put_back(place, image);
        }
        let changed = if let Some(index) = self.learn_counters(place, image) {
            Some(index)
        } else if self.versions.region.contains(place) {
            let kept = image.read(place).unwrap_or(ZERO_LINE);
            Some(self.learn(place.0 - self.versions.region.first.0, kept))
        } else {
            match self.learns {
                Learns::Versions => None,
                Learns::Macs | Learns::NamedMacs | Learns::LowBits => {
                    self.look_for_macs(place, image)
                }
                Learns::Table => {
                    let is_in = |table: &Region| table.contains(place);
                    let is_entry = self.table.as_ref().is_some_and(is_in);
                    is_entry.then(|| self.look_up(place, image)).flatten()
                }
            }
        };
        if let Some(index) = changed {
            self.follow(index, image);
        }
    }

    fn dumped(&mut self, place: Place, image: &mut Places) {
        // A node that is drained says of its versions what the dumps of their lines say.
        self.dumps |= self.learns == Learns::Versions;
        let counters = self.learn_counters(place, image);
        let number = self.macs.number(place);
        if counters.or(number).is_none() {
            return;
        }
        if !self.dumps {
            self.take_over(image);
        }
        if let Some(index) = counters {
            // Whichever of them changed: a MAC is under the counter that memory has.
            self.versions
                .numbers(index)
                .for_each(|number| self.write_mac(number, image));
            return self.follow(index, image);
        }
        let number = number.expect("it has one");
        if self.versions.is_counter(number) {
            return self.write_mac(number, image);
        }
        if image.read(place).is_none() {
            return; // a line that nobody has written has moved
        }
        let index = self.versions.index_of(number);
        let mut line = self.newest(index);
        let bump = self.versions.bump(&mut line, number);
        self.newest.insert(index, line);
        self.write_versions(index, image);
        self.write_mac(number, image);
        if bump == Bump::Overflowed {
            self.versions
                .numbers(index)
                .for_each(|number| self.write_mac(number, image));
        }
        self.follow(index, image);
    }

    fn on_chip(&self) -> Option<&Region> {
        Some(&self.above.tree.register)
    }

    fn kept_of(&self, place: Place) -> Option<(Place, usize)> {
        self.macs.of_line(place)
    }

    fn version_of(&self, place: Place) -> Option<(Place, Range<usize>)> {
        let number = self.macs.number(place)?;
        let line = self.above.tree.over(self.versions.index_of(number), 0)?;
        Some((line, self.versions.bits_of(number)))
    }

    fn has_register(&self, place: Place) -> bool {
        let is_in = |table: &Region| table.contains(place);
        self.learns == Learns::LowBits && self.table.as_ref().is_some_and(is_in)
    }

    fn version_in_mac(&self) -> u64 {
        self.macs.low_bits
    }

    fn over(&self, place: Place, level: usize) -> Option<Place> {
        let macs = &self.macs.region;
        let number = match macs.contains(place) {
            true => Some((place.0 - macs.first.0) * PER_LINE),
            false => self.macs.number(place),
        };
        let tree = &self.above.tree;
        match number {
            Some(number) => tree.over(self.versions.index_of(number), level),
            None => tree.over_node(place, level),
        }
    }
}
