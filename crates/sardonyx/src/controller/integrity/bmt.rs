//! What Bonsai trees share: MACs that bind each line to its place and its version, versions in lines of their own, and
//! a Merkle tree over those lines alone, whose root is a register on chip. Source of the idea: Rogers et al., "Using
//! Address Independent Seed Encryption and Bonsai Merkle Trees", MICRO 2007; from memory.
//!
//! A request's writes are settled when it has been handled ([`Guard::finish`]) and their groups are known: of each
//! group every line of versions, MACs and nodes is changed once and written at most once, so that lines of a group may
//! share nodes. What a scheme decides is a [`Policy`]: which of them go to the medium with the group, in which order
//! paths are computed, and what a recovery does.
//! Left out: what reserve power keeps ([`super::root`]); the time of a recovery.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::macs::{CACHE, PER_LINE, VERIFIED_NODE, VERIFY, Verify, Vouched, Where, verified, word};
use super::tree::{ARITY, Tree, kept, put};
use super::versions::{Bump, MINOR_BITS, Versions};
use crate::controller::metadata_cache::{MetadataCache, SETS};
use crate::figures::Figures;
use crate::line::{Line, Place, ZERO_LINE};
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::plan::guard::Guard;
use crate::plan::storey::Storey;
use crate::plan::{At, Plan, Queue, Step, Stored};
use crate::settings::{AnyKey, Settings, keys, words};
use crate::stats::Cause;

/// When a write is in the persistence domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// When the root that has it has been computed.
    WithRoot,
    /// Before; reserve power computes the rest of a path that a cut finds under way.
    BeforeRoot,
}

words!(Accepts { "with-root" => WithRoot, "before-root" => BeforeRoot });

keys! {
    ACCEPTS: Accepts = word("integrity.accepts", "with-root"),
        Assumed("the sound reading; most papers are silent, and some of their figures cannot be had so"),
        "When a write is in the persistence domain: with the root that has it, or before that is computed";
}

/// The keys of all Bonsai trees.
pub const KEYS: &[&dyn AnyKey] = &[&VERIFY, &CACHE, &SETS, &MINOR_BITS, &ACCEPTS];

/// In which order the hashes of paths are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A path begins when the one before it has come to the root.
    Sequential,
    /// A level of a path begins when the one before it has been through that level.
    Pipelined,
    /// The same, and paths of lines that are written as one are one where they meet.
    Coalesced,
}

/// What becomes of a line that the cache has, and the medium has not.
pub enum Kept {
    /// It stays there; what has changed it is not accepted before this.
    After(Step),
    /// It goes to the medium with what has changed it.
    Through,
}

/// What a scheme decides.
pub trait Policy: Send {
    /// Whether a changed line of `level` (0 is versions) goes to the medium in the group of what has changed it.
    fn through(&self, level: usize) -> bool;

    /// Whether a changed line of versions does, in which these versions have been counted on and none has
    /// overflowed; [`Policy::through`] if it is not said.
    fn through_versions(&self, _versions: &Versions, _line: &Line, _counted: &[u64]) -> bool {
        self.through(0)
    }

    /// In which order hashes are computed.
    fn order(&self) -> Order {
        Order::Pipelined
    }

    fn merges(&self) -> bool {
        false
    }

    /// The line at `place`, in that slot of the cache, is about to differ from the medium.
    fn dirtied(&mut self, _slot: usize, _place: Place, _plan: &mut Plan) -> Kept {
        Kept::After(Step::PAST)
    }

    /// What has to be accepted with all that a group has made differ.
    fn noted(&mut self, _plan: &mut Plan) -> SmallVec<[Stored; 4]> {
        SmallVec::new()
    }

    /// Makes the tree whole after a cut, and compares it with the register where the scheme does so.
    fn recover(&mut self, trees: &mut Trees, plan: &mut Plan);
}

/// A line that the group at hand has changed.
struct Open {
    line: Line,
    /// When its bytes exist.
    at: Step,
    /// When all that earlier groups have changed of it may leave the chip.
    ripe: Step,
}

pub(super) struct Pending {
    pub place: Place,
    pub line: At<Line>,
    pub sideband: Option<[u8; 8]>,
    pub stored: Stored,
}

type Changed = ((usize, u64), Open);

/// The number of a group, the last of its writes, and all.
pub(super) type Group = (u32, Step, Vec<Pending>);

/// What a line that the request at hand writes is to whoever comes between its groups: as the last of them that has
/// been settled leaves it, or as the request found it. A group is accepted before those that are settled after it.
struct Settled {
    line: At<Option<Line>>,
    sideband: Option<[u8; 8]>,
}

/// MACs, versions and the tree, and what of them is on chip.
pub struct Trees {
    /// Where the MACs lie.
    pub macs: Where,
    /// Where the versions lie.
    pub versions: Versions,
    /// Their lines, and the levels above.
    pub tree: Tree,
    /// Hashes of the highest level's lines, as of what has been handled.
    pub register: Line,
    cache: MetadataCache,
    verify: Verify,
    accepts: Accepts,
    pending: Vec<Pending>,
    under_way: FxHashMap<Place, Settled>,
    /// Of the group that is being settled: lines of versions (level 0) and of nodes.
    open: BTreeMap<(usize, u64), Open>,
    open_macs: BTreeMap<u64, Open>,
    /// When the last path was through each level.
    through: Vec<Step>,
    /// Nothing is written before: what a recovery has written is accepted then.
    recovered: Step,
}

impl Trees {
    /// Reserves room for all of it, and knows nothing yet.
    pub fn reserve(settings: &Settings, layout: &mut Layout) -> Trees {
        let (macs, versions) = Versions::reserve(settings, layout);
        let tree = Tree::reserve(versions.region.clone(), layout);
        Trees {
            through: vec![Step::PAST; tree.levels.len()],
            macs,
            versions,
            tree,
            register: ZERO_LINE,
            cache: MetadataCache::new(&CACHE, Unit::Metadata, Queue::Counter, settings),
            verify: settings.get(&VERIFY),
            accepts: settings.get(&ACCEPTS),
            pending: Vec::new(),
            under_way: FxHashMap::default(),
            open: BTreeMap::new(),
            open_macs: BTreeMap::new(),
            recovered: Step::PAST,
        }
    }

    /// The line `index` of `level`, verified against the node above it if it was not on chip.
    fn fetch(&mut self, level: usize, index: u64, after: Step, plan: &mut Plan) -> At<Line> {
        if let Some(open) = self.open.get(&(level, index)) {
            return At::new(open.line, open.at);
        }
        let place = self.tree.levels[level].line(index);
        if self.cache.peek(place).is_some() {
            let cached = self.cache.get(place, after, plan);
            return At::new(*self.cache.line(cached), cached.at);
        }
        let above = match self.tree.is_top(level) {
            true => At::past(kept(&self.register, index)),
            false => {
                let above = self.fetch(level + 1, index / ARITY, after, plan);
                At::new(kept(&above.value, index), above.at)
            }
        };
        let cached = self.cache.get(place, after, plan);
        let line = *self.cache.line(cached);
        let both = plan.both(cached.at, above.at);
        let at = plan.unit(Unit::Mac, both);
        plan.exercise(&VERIFIED_NODE);
        if Tree::hash(level, index, &line) != above.value {
            plan.refuse(place);
        }
        At::new(line, at)
    }

    fn open(&mut self, level: usize, index: u64, plan: &mut Plan) -> &mut Open {
        if !self.open.contains_key(&(level, index)) {
            let line = self.fetch(level, index, Step::PAST, plan);
            let place = self.tree.levels[level].line(index);
            // It has just been looked up, and may have made room for none but the one above it.
            let ripe = self.cache.ripe_at(place);
            let open = Open {
                line: line.value,
                at: line.at,
                ripe,
            };
            self.open.insert((level, index), open);
        }
        self.open.get_mut(&(level, index)).expect("just opened")
    }

    /// The line of MACs with that number, as one that the group changes.
    fn open_macs(&mut self, index: u64, plan: &mut Plan) -> &mut Open {
        if !self.open_macs.contains_key(&index) {
            let cached = self
                .cache
                .get(self.macs.region.line(index), Step::PAST, plan);
            let open = Open {
                line: *self.cache.line(cached),
                at: cached.at,
                ripe: Step::PAST,
            };
            self.open_macs.insert(index, open);
        }
        self.open_macs.get_mut(&index).expect("just opened")
    }

    /// The line at `place` as it is on chip, or as memory says.
    fn known(&self, place: Place, plan: &Plan) -> Line {
        let cached = self.cache.peek(place).copied();
        cached.or_else(|| plan.peek(place)).unwrap_or(ZERO_LINE)
    }

    /// Counts the write on, and gives the line of versions and the slot; at an overflow all 64 lines get new MACs, those
    /// of `group` with the others of the group.
    fn count(&mut self, number: u64, group: &[Pending], plan: &mut Plan) -> (u64, u64, Bump) {
        let (index, slot) = self.versions.of_number(number);
        let before = self.open(0, index, plan).line;
        let versions = self.versions.clone();
        let bump = versions.bump(&mut self.open(0, index, plan).line, slot);
        if bump == Bump::Overflowed {
            for other in (0..versions.per_line()).filter(|other| *other != slot) {
                let number = index * versions.per_line() + other;
                let place = self.macs.place(number);
                if let Some(place) = place.filter(|at| group.iter().all(|one| one.place != *at)) {
                    self.carry_over(number, place, &before, plan);
                }
            }
        }
        (index, slot, bump)
    }

    /// A MAC of what is in a line that is not written, whose version has become another with the major number.
    fn carry_over(&mut self, number: u64, place: Place, before: &Line, plan: &mut Plan) {
        let (index, slot) = self.versions.of_number(number);
        let old = self.versions.get(before, slot);
        if old == 0 {
            return;
        }
        // What is on its way is known on chip; to read it would be to wait for it, and it may wait for this.
        let (read, sideband) = match self.under_way.get(&place) {
            Some(settled) => (settled.line, settled.sideband),
            None => {
                let is_known = plan.under_way(place).accepted != Step::PAST;
                let read = match is_known {
                    true => At::past(plan.peek(place)),
                    false => plan.read(place, Step::PAST),
                };
                (read, plan.peek_sideband(place))
            }
        };
        let macs = &self.open_macs(number / PER_LINE, plan).line;
        let by = Vouched {
            version: old,
            mac: word(macs, (number % PER_LINE) as usize),
        };
        if !self.macs.vouches(by, place, read.value.as_ref(), sideband) {
            plan.refuse(place);
            return;
        }
        let versions = self.open(0, index, plan).line;
        let version = self.versions.get(&versions, slot);
        let line = read.value.unwrap_or(ZERO_LINE);
        self.put_mac(
            number,
            self.macs.mac_of_version(place, version, &line, sideband),
            read.at,
            plan,
        );
    }

    fn put_mac(&mut self, number: u64, mac: u64, known: Step, plan: &mut Plan) {
        let at = plan.unit(Unit::Mac, known);
        let before = self.open_macs(number / PER_LINE, plan).at;
        let at = plan.both(at, before);
        let open = self.open_macs(number / PER_LINE, plan);
        put(&mut open.line, number % PER_LINE, mac);
        open.at = at;
    }

    /// All above the line `index` of versions follows; the register is known after the step that this gives.
    fn follow(&mut self, index: u64, policy: &dyn Policy, plan: &mut Plan) -> Step {
        let start = self.open(0, index, plan).at;
        let mut at = match policy.order() {
            Order::Sequential => plan.both(start, *self.through.last().expect("a level")),
            Order::Pipelined | Order::Coalesced => start,
        };
        let mut index = index;
        for level in 0..self.tree.levels.len() {
            let hash = Tree::hash(level, index, &self.open(level, index, plan).line);
            at = plan.both(at, self.through[level]);
            at = plan.unit(Unit::Mac, at);
            self.through[level] = at;
            if self.tree.is_top(level) {
                put(&mut self.register, index, hash);
                return at;
            }
            let above = self.open(level + 1, index / ARITY, plan);
            put(&mut above.line, index % ARITY, hash);
            let before = above.at;
            at = plan.both(at, before);
            self.open(level + 1, index / ARITY, plan).at = at;
            index /= ARITY;
        }
        at
    }

    /// The same of several lines, each node once.
    fn follow_all(&mut self, leaves: Vec<u64>, plan: &mut Plan) -> Step {
        let (mut indices, mut done) = (leaves, Step::PAST);
        for level in 0..self.tree.levels.len() {
            for index in &indices {
                let open = self.open(level, *index, plan);
                let (hash, known) = (Tree::hash(level, *index, &open.line), open.at);
                let at = plan.both(known, self.through[level]);
                let at = plan.unit(Unit::Mac, at);
                self.through[level] = at;
                if self.tree.is_top(level) {
                    put(&mut self.register, *index, hash);
                    done = plan.both(done, at);
                } else {
                    let above = self.open(level + 1, index / ARITY, plan);
                    put(&mut above.line, index % ARITY, hash);
                    let before = above.at;
                    let at = plan.both(before, at);
                    self.open(level + 1, index / ARITY, plan).at = at;
                }
            }
            indices.iter_mut().for_each(|index| *index /= ARITY);
            indices.dedup();
        }
        done
    }

    fn settle(&mut self, group: &[Pending], policy: &mut dyn Policy, plan: &mut Plan) {
        let mut counted: BTreeMap<u64, (SmallVec<[u64; 4]>, bool)> = BTreeMap::new();
        for write in group {
            let number = self.macs.number(write.place).expect("it is protected");
            let (index, slot, bump) = self.count(number, group, plan);
            let (slots, overflowed) = counted.entry(index).or_default();
            slots.push(slot);
            *overflowed |= bump == Bump::Overflowed;
        }
        for write in group {
            let number = self.macs.number(write.place).expect("it is protected");
            let (index, slot) = self.versions.of_number(number);
            let open = self.open(0, index, plan);
            let (line, known) = (open.line, open.at);
            let version = self.versions.get(&line, slot);
            let at = plan.both(write.line.at, known);
            let mac =
                self.macs
                    .mac_of_version(write.place, version, &write.line.value, write.sideband);
            self.put_mac(number, mac, at, plan);
            let settled = Settled {
                line: At::new(Some(write.line.value), write.line.at),
                sideband: write.sideband,
            };
            self.under_way.insert(write.place, settled);
        }
        let leaves: Vec<u64> = counted.keys().copied().collect();
        let root = match policy.order() {
            Order::Coalesced => self.follow_all(leaves, plan),
            Order::Sequential | Order::Pipelined => {
                let follow = leaves
                    .into_iter()
                    .map(|index| self.follow(index, &*policy, plan));
                follow.last().expect("a group has writes")
            }
        };
        let root = match self.accepts {
            Accepts::WithRoot => plan.both(root, self.recovered),
            Accepts::BeforeRoot => self.recovered,
        };
        let accepted = group[0].stored.accepted;
        let mut stored: SmallVec<[Stored; 16]> = group.iter().map(|write| write.stored).collect();
        let is_through = |((level, index), open): &((usize, u64), Open)| match counted
            .get(index)
            .filter(|_| *level == 0)
        {
            None => policy.through(*level),
            Some((_, true)) => true,
            Some((slots, false)) => policy.through_versions(&self.versions, &open.line, slots),
        };
        let changed = std::mem::take(&mut self.open).into_iter();
        let (through, lazy): (Vec<Changed>, Vec<Changed>) = changed.partition(is_through);
        let (mut known, mut through) = (root, through);
        for ((level, index), open) in lazy {
            let place = self.tree.levels[level].line(index);
            match self.keep(place, &open, accepted, policy, plan) {
                Kept::After(step) => known = plan.both(known, step),
                Kept::Through => through.push(((level, index), open)),
            }
        }
        stored.extend(policy.noted(plan));
        for (index, open) in std::mem::take(&mut self.open_macs) {
            let place = self.macs.region.line(index);
            let (words, at) = (
                differing(place, &open.line, plan),
                plan.both(open.at, known),
            );
            let line = At::new(&open.line, at);
            stored.push(plan.write_words(place, line, words, None, Step::PAST, Queue::Data));
            self.cache.renew(place, &open.line, Step::PAST);
        }
        for ((level, index), open) in through {
            let place = self.tree.levels[level].line(index);
            let words = differing(place, &open.line, plan);
            let at = plan.both(open.at, open.ripe);
            let line = At::new(&open.line, at);
            let queue = if level == 0 {
                Queue::Counter
            } else {
                Queue::Data
            };
            let written = plan.write_words(place, line, words, None, Step::PAST, queue);
            if level == 0 && policy.merges() {
                plan.merges(written);
            }
            stored.push(written);
            self.cache.renew(place, &open.line, accepted);
        }
        plan.group(&stored);
    }

    /// Puts a changed line into the cache, from where it goes when its room is wanted.
    fn keep(
        &mut self,
        place: Place,
        open: &Open,
        accepted: Step,
        policy: &mut dyn Policy,
        plan: &mut Plan,
    ) -> Kept {
        let cached = self.cache.revisit(place, Step::PAST, plan);
        let old = *self.cache.line(cached);
        let differs = |at: &usize| old[*at] != open.line[*at];
        let (Some(first), Some(last)) =
            ((0..old.len()).find(differs), (0..old.len()).rfind(differs))
        else {
            return Kept::After(Step::PAST);
        };
        let kept = policy.dirtied(self.cache.slot(cached), place, plan);
        if let Kept::Through = kept {
            // Were it dirty, another line of this group could push it out, and its write-back would wait for the
            // group, whose own write of it comes after that.
            return kept;
        }
        let bytes = &open.line[first..=last];
        let ripe = plan.both(open.at, accepted);
        self.cache
            .set_bytes_drained(cached, first, bytes, ripe, accepted, plan);
        kept
    }

    /// Settles all writes of the request, those of a group together, the groups in the order of their last writes.
    pub fn finish(&mut self, policy: &mut dyn Policy, plan: &mut Plan) {
        if self.pending.is_empty() {
            return;
        }
        let plan = &mut plan.because(Cause::Integrity);
        let pending = std::mem::take(&mut self.pending);
        if let [_] = pending.as_slice() {
            self.settle(&pending, policy, plan);
            self.under_way.clear();
            return;
        }
        for (.., group) in groups(pending, plan) {
            self.settle(&group, policy, plan);
        }
        self.under_way.clear();
    }

    /// Makes all levels above `level` anew from what is there of it, compares with the register, and writes the nodes
    /// that differ.
    pub fn rebuild_above(&mut self, level: usize, plan: &mut Plan) {
        let region = self.tree.levels[level].clone();
        let lines = plan.written(&region).into_iter();
        let lines = lines.map(|at| (at.0 - region.first.0, plan.peek(at).unwrap_or(ZERO_LINE)));
        let lines: Vec<(u64, Line)> = lines.collect();
        let (levels, register) = self.tree.rebuild_from(level, lines.into_iter());
        self.compare(register, plan);
        self.rewrite(level, &levels, plan);
    }

    /// Refuses the medium if its root is not the register's; what is read then has this one.
    pub fn compare(&mut self, register: Line, plan: &mut Plan) {
        if self.kept_register(plan) != register {
            plan.refuse(self.tree.register.line(0));
        }
        self.register = register;
    }

    /// What the register has.
    pub fn kept_register(&self, plan: &Plan) -> Line {
        plan.peek(self.tree.register.line(0)).unwrap_or(ZERO_LINE)
    }

    /// Writes the nodes above `level` that differ from the medium's.
    pub fn rewrite(&mut self, level: usize, levels: &[super::tree::Nodes], plan: &mut Plan) {
        for (nodes, region) in levels.iter().zip(self.tree.levels[level + 1..].to_vec()) {
            for place in plan.written(&region) {
                let right = nodes.get(&(place.0 - region.first.0));
                if right.is_none() && plan.peek(place) != Some(ZERO_LINE) {
                    self.write(place, &ZERO_LINE, plan);
                }
            }
            for (index, node) in nodes {
                let place = region.line(*index);
                if plan.peek(place).unwrap_or(ZERO_LINE) != *node {
                    self.write(place, node, plan);
                }
            }
        }
    }

    /// Writes a line that a recovery has made anew.
    pub fn write(&mut self, place: Place, line: &Line, plan: &mut Plan) {
        let plan = &mut plan.because(Cause::Integrity);
        let written = plan.write(place, At::past(line), Step::PAST);
        self.recovered = plan.both(self.recovered, written.accepted);
    }

    /// The version of the line with that number that its MAC is right under, by trial of less than `stride` further
    /// ones than the one in `line`; the line of versions with it. Nothing if there is none.
    pub fn tried(&self, line: &Line, number: u64, stride: u64, plan: &mut Plan) -> Option<Line> {
        let place = self.macs.place(number)?;
        let (_, slot) = self.versions.of_number(number);
        let macs = plan.peek(self.macs.region.line(number / PER_LINE));
        let kept = word(&macs.unwrap_or(ZERO_LINE), (number % PER_LINE) as usize);
        if kept == 0 {
            return (self.versions.get(line, slot) == 0).then_some(*line);
        }
        let (data, sideband) = (plan.peek(place)?, plan.peek_sideband(place));
        (0..stride).find_map(|steps| {
            let later = self.versions.later(line, slot, steps)?;
            if steps > 0 {
                plan.unit(Unit::Mac, Step::PAST); // one for the line itself is counted with its read
            }
            let version = self.versions.get(&later, slot);
            (version != 0 && self.macs.mac_of_version(place, version, &data, sideband) == kept)
                .then_some(later)
        })
    }
}

/// The same groups as the layers above have made, in the order of their last writes.
pub(super) fn groups(pending: Vec<Pending>, plan: &Plan) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for write in pending {
        let number = plan.group_of(write.stored);
        let known = groups
            .iter_mut()
            .rev()
            .find(|(group, ..)| number != 0 && *group == number);
        match known {
            Some((_, last, group)) => {
                *last = (*last).max(write.stored.accepted);
                group.push(write);
            }
            None => groups.push((number, write.stored.accepted, vec![write])),
        }
    }
    groups.sort_by_key(|(_, last, _)| *last);
    groups
}

/// The words in which `line` differs from the newest one at `place`.
pub(super) fn differing(place: Place, line: &Line, plan: &Plan) -> u8 {
    let newest = plan.peek(place).unwrap_or(ZERO_LINE);
    let differs = |at: &usize| word(&newest, *at) != word(line, *at);
    (0..8).filter(differs).fold(0, |all, at| all | 1 << at)
}

/// A Bonsai tree under a policy.
pub struct Bonsai<P> {
    /// What is kept.
    pub trees: Trees,
    /// What is decided.
    pub policy: P,
}

impl<P: Policy> Storey for Bonsai<P> {
    fn flush(&mut self, plan: &mut Plan) {
        let plan = &mut plan.because(Cause::Integrity);
        self.trees.cache.flush(plan);
        let register = self.trees.register;
        let at = self.trees.tree.register.line(0);
        plan.write(at, At::past(&register), Step::PAST);
    }

    fn recover(&mut self, plan: &mut Plan) {
        self.policy.recover(&mut self.trees, plan);
    }

    fn forget_figures(&mut self) {
        self.trees.cache.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        out.put(
            &super::mac::INTEGRITY_CACHE_HIT_RATE,
            self.trees.cache.hits(),
        );
    }
}

impl<P: Policy> Guard for Bonsai<P> {
    fn read(
        &mut self,
        place: Place,
        got: At<Option<Line>>,
        after: Step,
        plan: &mut Plan,
    ) -> At<Option<Line>> {
        let trees = &mut self.trees;
        let Some(number) = trees.macs.number(place) else {
            return got;
        };
        if trees.under_way.contains_key(&place) {
            return got; // the request at hand has written it, and it has not left the chip
        }
        let plan = &mut plan.because(Cause::Integrity);
        // A read may wait for a write of the same request, which cannot go before its versions and MACs have: these
        // must not wait for what the read waits for.
        let after = match trees.pending.is_empty() {
            true => after,
            false => Step::PAST,
        };
        let (index, slot) = trees.versions.of_number(number);
        let line = trees.fetch(0, index, after, plan);
        let cached = trees
            .cache
            .get(trees.macs.region.line(number / PER_LINE), after, plan);
        let by = Vouched {
            version: trees.versions.get(&line.value, slot),
            mac: word(trees.cache.line(cached), (number % PER_LINE) as usize),
        };
        let by = At::new(by, plan.both(line.at, cached.at));
        verified(place, got, (&trees.macs, by), trees.verify, plan)
    }

    fn before_write(&mut self, place: Place, plan: &Plan) {
        if self.trees.macs.number(place).is_some() {
            let found = self.trees.under_way.entry(place);
            found.or_insert_with(|| Settled {
                line: At::past(plan.peek(place)),
                sideband: plan.peek_sideband(place),
            });
        }
    }

    fn write(
        &mut self,
        place: Place,
        line: At<&Line>,
        sideband: Option<[u8; 8]>,
        stored: Stored,
        plan: &mut Plan,
    ) -> Step {
        if self.trees.macs.number(place).is_some() {
            self.trees.pending.push(Pending {
                place,
                line: At::new(*line.value, line.at),
                sideband: sideband.or_else(|| plan.peek_sideband(place)),
                stored,
            });
        }
        stored.done
    }

    fn holds(&self, place: Place, plan: &Plan) -> bool {
        let trees = &self.trees;
        let Some(number) = trees.macs.number(place) else {
            return true;
        };
        if trees.under_way.contains_key(&place) {
            return true;
        }
        let (index, slot) = trees.versions.of_number(number);
        let version = trees.known(trees.versions.region.line(index), plan);
        let macs = trees.known(trees.macs.region.line(number / PER_LINE), plan);
        let by = Vouched {
            version: trees.versions.get(&version, slot),
            mac: word(&macs, (number % PER_LINE) as usize),
        };
        let sideband = plan.peek_sideband(place);
        trees
            .macs
            .vouches(by, place, plan.peek(place).as_ref(), sideband)
    }

    fn finish(&mut self, plan: &mut Plan) {
        self.trees.finish(&mut self.policy, plan);
    }
}
