//! A tree of counters, as in SGX: a version of each line counts its writes, eight versions and a MAC are a node, and
//! above them are nodes of eight counters and a MAC each, up to a register on chip. A line's MAC is under its version,
//! a node's under the counter above it. Source: Gueron, "A memory encryption engine suitable for general purpose
//! processors", 2016, from memory; and Huang and Hua, "A write-friendly and fast-recovery scheme for security metadata
//! in non-volatile memories" and "Root crash consistency of SGX-style integrity trees" (HPCA 2021 and 2023), from
//! memory of their abstracts and not checked.
//! * `sgx` is as published, for a memory that forgets: nodes are written back when they leave their cache, and a cut
//!   loses those that are there. A recovery takes what the medium has, so the first line whose version was lost is
//!   refused, honest as it is.
//! * `sgx-sound` writes the node of versions in one group with the line and its MAC. A counter above is the sum of those
//!   in the node below it, so that a recovery makes all nodes anew from the versions, and the sums in the register show
//!   whether these are the newest: an older one is less, and nobody makes a greater one without the key.
//!
//! Left out: that SGX counts write-backs of a node in the counter above it; here that is the sum in both, which also
//! says how often something below it was written. Versions of 56 bits do not overflow.

use super::keyed::SipHasher24;
use std::collections::BTreeMap;
use std::ops::Range;

use super::mac::{INTEGRITY_CACHE_HIT_RATE, KEYS, UNITS};
use super::macs::{
    CACHE, MECHANISMS, PER_LINE, VERIFIED_NODE, VERIFY, Verify, Vouched, Where, verified, word,
};
use super::tree::{ARITY, REGISTER_BYTES, Tree};
use super::versions::FIRST_VERSION;
use crate::controller::layers::{About, File, Integrity, Limit, PowerFail, Reached, Refuses};
use crate::controller::metadata_cache::{Lookup, MetadataCache};
use crate::figures::Figures;
use crate::line::{Line, Place, ZERO_LINE};
use crate::medium::layout::{Layout, Region};
use crate::medium::params::Unit;
use crate::plan::guard::Guard;
use crate::plan::start_gap::Places;
use crate::plan::storey::Storey;
use crate::plan::{At, Plan, Queue, Step, Stored};
use crate::settings::Settings;
use crate::stats::Cause;

/// The region of versions, which is the tree's lowest level.
pub(super) const VERSIONS: &str = "versions";
pub(super) const COUNTER_BYTES: usize = 7;
pub(super) const MAC_AT: usize = ARITY as usize * COUNTER_BYTES;
/// The key of MACs of nodes, as public as all others.
const NODE_KEY: &[u8; 16] = b"sardonyx: counte";

pub(super) const LIMITS: &[Limit] = &[Limit {
    name: "versions of a counter tree",
    bits: 56,
    begins: None,
    pads: false,
    reached: Reached::Never("it takes 2^56 writes of a line"),
}];

/// What this file has.
pub static FILE: File<Integrity> = File {
    layers: &[
        Integrity {
            about: About {
                name: "sgx",
                keys: KEYS,
                units: UNITS,
                figures: &[super::mac::FIGURES],
                cut: "loses the versions and counters that are in the cache, and honest lines are refused",
                tries: &[MECHANISMS],
                limits: LIMITS,
            },
            build: |settings, layout| Some(Box::new(Sgx::new(false, settings, layout))),
            promises: Refuses::ALL,
            registers: |_| REGISTER_BYTES,
            power_fail: Some(|layout| Box::new(Sums::from_layout(layout))),
        },
        Integrity {
            about: About {
                name: "sgx-sound",
                keys: KEYS,
                units: UNITS,
                figures: &[super::mac::FIGURES],
                cut: "each line's version is atomic with it; counters are made anew as sums, which the register has",
                tries: &[MECHANISMS],
                limits: LIMITS,
            },
            build: |settings, layout| Some(Box::new(Sgx::new(true, settings, layout))),
            promises: Refuses::ALL,
            registers: |_| REGISTER_BYTES,
            power_fail: Some(|layout| Box::new(Sums::from_layout(layout))),
        },
    ],
    designs: &[],
};

pub(super) fn counter(node: &Line, number: u64) -> u64 {
    let mut bytes = [0; 8];
    let from = number as usize * COUNTER_BYTES;
    bytes[..COUNTER_BYTES].copy_from_slice(&node[from..][..COUNTER_BYTES]);
    u64::from_le_bytes(bytes)
}

pub(super) fn sum(node: &Line) -> u64 {
    (0..ARITY).map(|number| counter(node, number)).sum()
}

/// The MAC of a node under the counter above it; 0 of one that has counted nothing.
fn mac_of_node(level: usize, index: u64, node: &Line, above: u64) -> u64 {
    if above == 0 && node[..MAC_AT].iter().all(|byte| *byte == 0) {
        return 0;
    }
    let mut hasher = SipHasher24::new_with_key(NODE_KEY);
    hasher.write(&(level as u64).to_le_bytes());
    hasher.write(&index.to_le_bytes());
    hasher.write(&above.to_le_bytes());
    hasher.write(&node[..MAC_AT]);
    hasher.finish().max(1)
}

/// `node` with counter `number` at `value`, and the MAC that follows.
pub(super) fn counted(level: usize, index: u64, node: &Line, number: u64, value: u64) -> Line {
    let mut node = *node;
    let from = number as usize * COUNTER_BYTES;
    node[from..][..COUNTER_BYTES].copy_from_slice(&value.to_le_bytes()[..COUNTER_BYTES]);
    let mac = mac_of_node(level, index, &node, sum(&node));
    node[MAC_AT..].copy_from_slice(&mac.to_le_bytes());
    node
}

pub(super) fn is_right(level: usize, index: u64, node: &Line, above: u64) -> bool {
    sum(node) == above && word(node, 7) == mac_of_node(level, index, node, above)
}

/// Whether memory has at `place` what versions and MACs say, which may be newer in the cache.
pub(super) fn is_held(
    at: &Where,
    tree: &Tree,
    cache: &MetadataCache,
    place: Place,
    plan: &Plan,
) -> bool {
    let Some((macs, number)) = at.of_line(place) else {
        return true;
    };
    let known = |at: Place| {
        let cached = cache.peek(at).copied();
        cached.or_else(|| plan.peek(at)).unwrap_or(ZERO_LINE)
    };
    let node = known(tree.levels[0].line(macs.0 - at.region.first.0));
    let by = Vouched {
        version: counter(&node, number as u64),
        mac: word(&known(macs), number),
    };
    at.vouches(
        by,
        place,
        plan.peek(place).as_ref(),
        plan.peek_sideband(place),
    )
}

/// Counter `number` of the register, which has no MAC.
pub(super) fn kept(register: &Line, number: u64) -> u64 {
    word(register, (number % ARITY) as usize)
}

struct Sgx {
    at: Where,
    tree: Tree,
    /// Of lines of MACs, which never differ from the medium's, and of nodes.
    cache: MetadataCache,
    verify: Verify,
    sound: bool,
    /// Sums of the highest level's nodes, as of what has been handled.
    register: Line,
    first: u64,
}

impl Sgx {
    fn new(sound: bool, settings: &Settings, layout: &mut Layout) -> Sgx {
        let at = Where::reserve(settings, layout);
        let versions = layout.reserve_sparse(VERSIONS, at.region.lines);
        Sgx {
            tree: Tree::reserve(versions, layout),
            at,
            cache: MetadataCache::new(&CACHE, Unit::Metadata, Queue::Data, settings),
            verify: settings.get(&VERIFY),
            sound,
            register: ZERO_LINE,
            first: settings.get(&FIRST_VERSION),
        }
    }

    /// The node `index` of `level`, in the cache and verified: under the counter above it if it was not there.
    fn fetch(&mut self, level: usize, index: u64, after: Step, plan: &mut Plan) -> Lookup {
        let place = self.tree.levels[level].line(index);
        if self.cache.peek(place).is_some() {
            return self.cache.get(place, after, plan);
        }
        let above = match self.tree.is_top(level) {
            true => At::past(kept(&self.register, index)),
            false => {
                let above = self.fetch(level + 1, index / ARITY, after, plan);
                let counter = counter(self.cache.line(above), index % ARITY);
                At::new(counter, above.at)
            }
        };
        let mut cached = self.cache.get(place, after, plan);
        let both = plan.both(cached.at, above.at);
        cached.at = plan.unit(Unit::Mac, both);
        plan.exercise(&VERIFIED_NODE);
        if !is_right(level, index, self.cache.line(cached), above.value) {
            plan.refuse(place);
        }
        cached
    }

    /// Counter `number` of the node `index` of `level`, just looked up, is now `value`: gives the node.
    fn count(
        &mut self,
        (level, index): (usize, u64),
        cached: Lookup,
        (number, value): (u64, At<u64>),
        plan: &mut Plan,
    ) -> At<Line> {
        let node = counted(level, index, self.cache.line(cached), number, value.value);
        let both = plan.both(cached.at, value.at);
        let at = plan.unit(Unit::Mac, both);
        self.cache.set_bytes(cached, 0, &node, at, plan);
        At::new(node, at)
    }

    /// The node `index` of versions has become `node`, and all above it follow.
    fn follow(&mut self, index: u64, node: At<Line>, plan: &mut Plan) {
        let (mut index, mut node) = (index, node);
        for level in 0..self.tree.levels.len() {
            let number = index % ARITY;
            let value = At::new(sum(&node.value), node.at);
            if self.tree.is_top(level) {
                super::tree::put(&mut self.register, number, value.value);
                return;
            }
            index /= ARITY;
            let above = self.fetch(level + 1, index, Step::PAST, plan);
            node = self.count((level + 1, index), above, (number, value), plan);
        }
    }

    fn index(&self, at: Place) -> u64 {
        at.0 - self.at.region.first.0
    }
}

impl Storey for Sgx {
    fn flush(&mut self, plan: &mut Plan) {
        let plan = &mut plan.because(Cause::Integrity);
        self.cache.flush(plan);
        let register = self.register;
        plan.write(self.tree.register.line(0), At::past(&register), Step::PAST);
    }

    /// As published, believes the register; else makes all nodes anew from the versions, and compares with it.
    fn recover(&mut self, plan: &mut Plan) {
        let at = self.tree.register.line(0);
        self.register = plan.peek(at).unwrap_or(ZERO_LINE);
        if !self.sound {
            return;
        }
        let versions = self.tree.levels[0].clone();
        let mut below = BTreeMap::new();
        for place in plan.written(&versions) {
            let (index, node) = (
                place.0 - versions.first.0,
                plan.peek(place).unwrap_or(ZERO_LINE),
            );
            if !is_right(0, index, &node, sum(&node)) {
                plan.refuse(place);
            }
            below.insert(index, node);
        }
        for level in 1..=self.tree.levels.len() {
            let mut above: BTreeMap<u64, Line> = BTreeMap::new();
            let is_register = level == self.tree.levels.len();
            for (index, node) in &below {
                let parent = above.entry(index / ARITY).or_insert(ZERO_LINE);
                match is_register {
                    true => super::tree::put(parent, index % ARITY, sum(node)),
                    false => {
                        let (above, number) = (index / ARITY, index % ARITY);
                        *parent = counted(level, above, parent, number, sum(node));
                    }
                }
            }
            if is_register {
                let sums = above.remove(&0).unwrap_or(ZERO_LINE);
                if sums != self.register {
                    plan.refuse(at);
                }
                self.register = sums;
                return;
            }
            let region = self.tree.levels[level].clone();
            for place in plan.written(&region) {
                let right = above.get(&(place.0 - region.first.0));
                if right.is_none() && plan.peek(place) != Some(ZERO_LINE) {
                    plan.write(place, At::past(&ZERO_LINE), Step::PAST);
                }
            }
            for (index, node) in &above {
                let place = region.line(*index);
                if plan.peek(place) != Some(*node) {
                    plan.write(place, At::past(node), Step::PAST);
                }
            }
            below = above;
        }
    }

    fn forget_figures(&mut self) {
        self.cache.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        out.put(&INTEGRITY_CACHE_HIT_RATE, self.cache.hits());
    }
}

impl Guard for Sgx {
    fn read(
        &mut self,
        place: Place,
        got: At<Option<Line>>,
        after: Step,
        plan: &mut Plan,
    ) -> At<Option<Line>> {
        let plan = &mut plan.because(Cause::Integrity);
        let Some((at, number)) = self.at.of_line(place) else {
            return got;
        };
        let node = self.fetch(0, self.index(at), after, plan);
        let version = counter(self.cache.line(node), number as u64);
        let macs = self.cache.get(at, after, plan);
        let mac = word(self.cache.line(macs), number);
        let by = At::new(Vouched { version, mac }, plan.both(node.at, macs.at));
        verified(place, got, (&self.at, by), self.verify, plan)
    }

    fn write(
        &mut self,
        place: Place,
        line: At<&Line>,
        sideband: Option<[u8; 8]>,
        stored: Stored,
        plan: &mut Plan,
    ) -> Step {
        let plan = &mut plan.because(Cause::Integrity);
        let Some((at, number)) = self.at.of_line(place) else {
            return stored.done;
        };
        let sideband = sideband.or_else(|| plan.peek_sideband(place));
        let index = self.index(at);
        let cached = self.fetch(0, index, Step::PAST, plan);
        let version = counter(self.cache.line(cached), number as u64) + 1;
        let version = version.max(self.first);
        let next = (number as u64, At::past(version));
        let node = self.count((0, index), cached, next, plan);
        let mut done = stored.done;
        if self.sound {
            let place = self.tree.levels[0].line(index);
            let after = At::new(&node.value, node.at);
            let kept = plan.write_words(place, after, 0xff, None, Step::PAST, Queue::Data);
            self.cache.clean(cached, 0xff);
            plan.group(&[stored, kept]);
            done = plan.both(done, kept.done);
        }
        let macs = self.cache.get(at, Step::PAST, plan);
        let known = plan.both(line.at, cached.at);
        let computed = plan.unit(Unit::Mac, known);
        let right = self
            .at
            .mac_of_version(place, version, line.value, sideband)
            .to_le_bytes();
        self.cache
            .set_bytes(macs, number * 8, &right, stored.accepted, plan);
        let lines = At::new(self.cache.line(macs), plan.both(computed, macs.at));
        let kept = plan.write_words(at, lines, 1 << number, None, Step::PAST, Queue::Data);
        self.cache.clean(macs, 1 << number);
        plan.group(&[stored, kept]);
        done = plan.both(done, kept.done);
        self.follow(index, node, plan);
        done
    }

    fn holds(&self, place: Place, plan: &Plan) -> bool {
        is_held(&self.at, &self.tree, &self.cache, place, plan)
    }
}

/// The register, as it follows the versions that come into the persistence domain. Where reserve power dumps lines
/// past the guard its logic counts their versions on, and makes their MACs and nodes; from the first dump on versions
/// and MACs are what this logic has made, not what the run has written.
pub(super) struct Sums {
    pub at: Where,
    pub tree: Tree,
    /// Nodes of versions.
    pub newest: BTreeMap<u64, Line>,
    pub register: Line,
    dumps: bool,
}

impl Sums {
    pub fn from_layout(layout: &Layout) -> Sums {
        let versions = layout.region(VERSIONS).expect("it has been reserved");
        Sums {
            at: Where::from_layout(layout),
            tree: Tree::from_layout(versions.clone(), layout),
            newest: BTreeMap::new(),
            register: ZERO_LINE,
            dumps: false,
        }
    }

    pub fn versions(&self) -> &Region {
        &self.tree.levels[0]
    }

    pub fn node(&self, index: u64) -> Line {
        self.newest.get(&index).copied().unwrap_or(ZERO_LINE)
    }

    /// The node `index` of versions is now `node`.
    pub fn count(&mut self, index: u64, node: Line) {
        let before = self.newest.insert(index, node).unwrap_or(ZERO_LINE);
        let top = (1..self.tree.levels.len()).fold(index, |index, _| index / ARITY);
        let counted = kept(&self.register, top).wrapping_add(sum(&node));
        let counted = counted.wrapping_sub(sum(&before));
        super::tree::put(&mut self.register, top % ARITY, counted);
    }

    /// The MAC of the line with that number, under the version that this logic knows.
    pub fn write_mac(&self, number: u64, image: &mut Places) {
        let place = self.at.place(number);
        let held = place.and_then(|place| Some((place, image.read(place)?)));
        let version = counter(&self.node(number / PER_LINE), number % PER_LINE);
        if let Some((place, line)) = held.filter(|_| version > 0) {
            let right = self
                .at
                .mac_of_version(place, version, &line, image.sideband(place));
            let mut macs = ZERO_LINE;
            super::tree::put(&mut macs, number % PER_LINE, right);
            let at = self.at.region.line(number / PER_LINE);
            image.write(at, &macs, 1 << (number % PER_LINE), None);
        }
    }
}

impl PowerFail for Sums {
    fn begin(&mut self, image: &mut Places) {
        (self.newest, self.register) = (BTreeMap::new(), ZERO_LINE);
        let versions = self.versions().clone();
        for place in image.written_in(&versions) {
            let node = image.read(place).unwrap_or(ZERO_LINE);
            self.count(place.0 - versions.first.0, node);
        }
    }

    fn accepted(&mut self, place: Place, image: &mut Places) {
        let index = |region: &Region| place.0 - region.first.0;
        if self.versions().contains(place) {
            let index = index(self.versions());
            if self.dumps {
                image.write(place, &self.node(index), 0xff, None);
                return;
            }
            self.count(index, image.read(place).unwrap_or(ZERO_LINE));
            image.write(self.tree.register.line(0), &self.register, 0xff, None);
        } else if self.dumps && self.at.region.contains(place) {
            let first = index(&self.at.region) * PER_LINE;
            (first..first + PER_LINE).for_each(|number| self.write_mac(number, image));
        }
    }

    fn dumped(&mut self, place: Place, image: &mut Places) {
        self.dumps = true;
        let Some(number) = self.at.number(place) else {
            return;
        };
        let (index, slot) = (number / PER_LINE, number % PER_LINE);
        let node = self.node(index);
        let node = counted(0, index, &node, slot, counter(&node, slot) + 1);
        self.count(index, node);
        image.write(self.versions().line(index), &node, 0xff, None);
        self.write_mac(number, image);
        image.write(self.tree.register.line(0), &self.register, 0xff, None);
    }

    fn on_chip(&self) -> Option<&Region> {
        Some(&self.tree.register)
    }

    fn kept_of(&self, place: Place) -> Option<(Place, usize)> {
        self.at.of_line(place)
    }

    fn version_of(&self, place: Place) -> Option<(Place, Range<usize>)> {
        let (at, number) = self.at.of_line(place)?;
        let node = self.versions().line(at.0 - self.at.region.first.0);
        let first = 8 * COUNTER_BYTES * number;
        Some((node, first..first + 8 * COUNTER_BYTES))
    }

    fn over(&self, place: Place, level: usize) -> Option<Place> {
        let macs = self.at.of_line(place).map_or(place, |(at, _)| at);
        match self.at.region.contains(macs) {
            true => self.tree.over(macs.0 - self.at.region.first.0, level),
            false => self.tree.over_node(place, level),
        }
    }
}
