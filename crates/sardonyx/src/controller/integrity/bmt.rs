//! What Bonsai trees share: a Merkle tree over lines of versions alone. Source of the idea: Rogers et al., "Using
//! Address Independent Seed Encryption and Bonsai Merkle Trees", MICRO 2007; from memory.
//!
//! Lines of a group may share nodes ([`super::guarded`]). What a scheme decides is a [`TreePolicy`]: which lines go to the
//! medium with the group, in which order paths are computed, and what a recovery does.
//! Lines of the encryption's counters may be versions of data ([`super::versions::Leaves`]): who writes such a line is the
//! encryption, and the nodes above it follow what memory has of it.
//! Left out: how a counter comes to memory, which the encryption says.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::guarded::{Guarded, Pending, Scheme, Settled, Trees, differing, root};
use super::levels::{Levels, Open};
use super::macs::{CACHE, MAC_PLACE, VERIFY, Vouched};
use super::root::Learns;
use super::tree::{ARITY, Hashes, Node, put};
use super::versions::{LEAVES, MINOR_BITS, VersionFormat, Versions};
use crate::controller::layers::Integrity;
use crate::controller::metadata_cache::SETS;
use crate::controller::split_counters::Bump;
use crate::exhausted::Exhausted;
use crate::line::{Line, Place, ZERO_LINE};
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::plan::guard::Guard;
use crate::plan::{At, Plan, Queue, Step, Stored};
use crate::settings::{AnyKey, Settings, keys, words};

/// The moment when a write is in the persistence domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// The root that includes it has been computed.
    WithRoot,
    /// Its root need not be computed: reserve power completes a path that a cut finds under way.
    BeforeRoot,
}

words!(Accepts { "with-root" => WithRoot, "before-root" => BeforeRoot });

keys! {
    ACCEPTS: Accepts = word("integrity.accepts", "with-root"),
        Assumed("the sound reading; most papers are silent, and some of their figures cannot be had so"),
        "When a write is in the persistence domain: with the root that has it, or before that is computed";
}

/// The keys of Bonsai trees whose versions go to memory with their lines.
pub const KEYS: &[&dyn AnyKey] = &[
    &VERIFY,
    &CACHE,
    &SETS,
    &MINOR_BITS,
    &ACCEPTS,
    &LEAVES,
    &MAC_PLACE,
];

/// Declares a scheme with a Bonsai tree.
pub const fn bonsai(
    name: &'static str,
    keys: &'static [&'static dyn AnyKey],
    cut: &'static str,
    build: super::guarded::Build,
) -> Integrity {
    let power_fail = |settings: &Settings, layout: &Layout| {
        let format = VersionFormat::from_settings(settings);
        root::<Hashes>((format, Learns::Macs), settings, layout)
    };
    super::guarded::tree(name, keys, cut, &[], (build, power_fail))
}

/// Builds the guard of a Bonsai tree under the policy that `policy` makes.
pub fn build<P: TreePolicy>(
    settings: &Settings,
    layout: &mut Layout,
    policy: impl FnOnce(&BonsaiTrees, &mut Layout) -> P,
) -> Option<Box<dyn Guard>> {
    let format = VersionFormat::from_settings(settings);
    let trees = Trees::reserve(format, Queue::Counter, settings, layout);
    let scheme = Bonsai {
        policy: policy(&trees, layout),
        accepts: settings.get(&ACCEPTS),
        through: vec![Step::PAST; trees.levels.tree.height()],
    };
    Some(Box::new(Guarded { trees, scheme }))
}

/// Trees of hashes over versions.
pub type BonsaiTrees = Trees<Hashes>;

/// The order in which the hashes of paths are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A path begins when the one before it has come to the root.
    Sequential,
    /// A level of a path begins when the one before it has been through that level.
    Pipelined,
    /// Paths are pipelined, and those of lines that are written as one are merged where they meet.
    Coalesced,
}

/// The fate of a line that the cache has and the medium has not.
pub enum KeptTree {
    /// It stays in the cache. Its changes are not accepted before this step.
    After(Step),
    /// It goes to the medium together with its changes.
    Through,
}

/// The decisions of a scheme.
pub trait TreePolicy: Send + 'static {
    /// Whether a changed line of `level` (0 is versions) goes to the medium in the group that changes it. By default none
    /// does.
    fn through(&self, _level: usize) -> bool {
        false
    }

    /// Whether a changed line of versions goes to the medium in the group that counts on these versions, if none of
    /// them has overflowed. The default is [`TreePolicy::through`].
    fn through_versions(&self, _versions: &Versions, _line: &Line, _counted: &[u64]) -> bool {
        self.through(0)
    }

    /// The order in which hashes are computed.
    fn order(&self) -> Order {
        Order::Pipelined
    }

    fn merges(&self) -> bool {
        false
    }

    /// Hears that the line at `place`, in that slot of the cache, is about to differ from the medium.
    fn dirtied(&mut self, _slot: usize, _place: Place, _plan: &mut Plan) -> KeptTree {
        KeptTree::After(Step::PAST)
    }

    /// Writes that have to be accepted with everything that a group has made differ.
    fn noted(&mut self, _plan: &mut Plan) -> SmallVec<[Stored; 4]> {
        SmallVec::new()
    }

    /// Hears that a group's path ended at this root of a forest.
    fn used(&mut self, _root: (usize, u64)) {}

    /// Chooses the roots of a forest again, once a group is complete.
    fn grow(&mut self, _levels: &mut Levels<Hashes>, _plan: &mut Plan) {}

    /// Brings everything above the lines that it belongs to, before all is written.
    fn flush(&mut self, _levels: &mut Levels<Hashes>, _plan: &mut Plan) {}

    /// Repairs the tree after a cut, and compares it with the register where the scheme does so.
    fn recover(&mut self, trees: &mut BonsaiTrees, plan: &mut Plan);
}

type Changed = ((usize, u64), Open);

/// A policy, and the state of its path computations.
pub struct Bonsai<P> {
    policy: P,
    accepts: Accepts,
    /// The step after which the last path has passed each level.
    through: Vec<Step>,
}

impl Levels<Hashes> {
    fn open(&mut self, level: usize, index: u64, plan: &mut Plan) -> &mut Open {
        if !self.open.contains_key(&(level, index)) {
            let line = self.known(level, index, Step::PAST, plan);
            let place = self.line(level, index);
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
}

impl BonsaiTrees {
    /// Counts the write, and returns the line of versions and whether it overflowed. An overflow gives all lines that
    /// the line of versions covers new MACs, except those of `group`, which get theirs anyway.
    fn count(&mut self, number: u64, group: &[Pending], plan: &mut Plan) -> (u64, Bump) {
        let index = self.versions.index_of(number);
        let open = self.levels.open(0, index, plan);
        let before = open.line;
        let bump = self.versions.bump(&mut open.line, number);
        if bump == Bump::Overflowed {
            let others = self.versions.numbers(index);
            for number in others.filter(|other| *other != number) {
                let place = self.macs.place(number);
                if let Some(place) = place.filter(|at| group.iter().all(|one| one.place != *at)) {
                    if self.macs.beside && self.is_pending(place) {
                        // Its MAC would have to change under a write that is on its way already.
                        plan.fail(Exhausted {
                            problem: "a version overflows whose neighbour the same request writes by itself",
                            remedy: "integrity.minor_bits=0, or integrity.mac_place=region",
                            key: None,
                        });
                        continue;
                    }
                    self.carry_over(number, place, &before, plan);
                }
            }
        }
        (index, bump)
    }

    /// Renews the MAC of a line that is not written, but whose version has changed with the major number.
    fn carry_over(&mut self, number: u64, place: Place, before: &Line, plan: &mut Plan) {
        let old = self.versions.get(before, number);
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
        let mac = self.old_mac(number, sideband, plan);
        let by = Vouched { version: old, mac };
        if !self.macs.vouches(by, place, read.value.as_ref(), sideband) {
            plan.refuse(place);
            return;
        }
        let line = read.value.unwrap_or(ZERO_LINE);
        let index = self.versions.index_of(number);
        let versions = self.levels.open(0, index, plan).line;
        let version = self.versions.get(&versions, number);
        let mac = self.macs.mac_of_version(place, version, &line, sideband);
        self.put_mac((place, number), At::new(mac, read.at), plan);
    }
}

impl<P: TreePolicy> Bonsai<P> {
    /// Updates everything above line `index` of versions. The register is known after the step that this returns.
    fn follow(&mut self, levels: &mut Levels<Hashes>, index: u64, plan: &mut Plan) -> Step {
        let start = levels.open(0, index, plan).at;
        let mut at = match self.policy.order() {
            Order::Sequential => plan.both(start, *self.through.last().expect("a level")),
            Order::Pipelined | Order::Coalesced => start,
        };
        let mut index = index;
        for level in 0..levels.tree.height() {
            let hash = Hashes::of(level, index, &levels.open(level, index, plan).line);
            at = plan.both(at, self.through[level]);
            at = plan.unit(Unit::Mac, at);
            self.through[level] = at;
            if levels.set_root((level, index), hash) {
                self.policy.used((level, index));
                return at;
            }
            if levels.tree.is_top(level) {
                put(&mut levels.register, index, hash);
                return at;
            }
            let above = levels.open(level + 1, index / ARITY, plan);
            put(&mut above.line, index % ARITY, hash);
            at = plan.both(at, above.at);
            above.at = at;
            index /= ARITY;
        }
        at
    }

    /// Updates everything above several lines of versions, each node once.
    fn follow_all(
        &mut self,
        levels: &mut Levels<Hashes>,
        leaves: Vec<u64>,
        plan: &mut Plan,
    ) -> Step {
        let (mut indices, mut done) = (leaves, Step::PAST);
        for level in 0..levels.tree.height() {
            indices.retain(|index| {
                let open = levels.open(level, *index, plan);
                let hash = Hashes::of(level, *index, &open.line);
                let at = plan.both(open.at, self.through[level]);
                let at = plan.unit(Unit::Mac, at);
                self.through[level] = at;
                let is_root = levels.set_root((level, *index), hash);
                if is_root {
                    self.policy.used((level, *index));
                } else if levels.tree.is_top(level) {
                    put(&mut levels.register, *index, hash);
                } else {
                    let above = levels.open(level + 1, index / ARITY, plan);
                    put(&mut above.line, index % ARITY, hash);
                    above.at = plan.both(above.at, at);
                    return true;
                }
                done = plan.both(done, at);
                false
            });
            indices.iter_mut().for_each(|index| *index /= ARITY);
            indices.dedup();
        }
        done
    }

    /// Puts a changed line into the cache, which writes it back when its room is wanted.
    fn keep(
        &mut self,
        levels: &mut Levels<Hashes>,
        (place, open): (Place, &Open),
        accepted: Step,
        plan: &mut Plan,
    ) -> KeptTree {
        let cached = levels.cache.revisit(place, Step::PAST, plan);
        let old = *levels.cache.line(cached);
        let differs = |at: &usize| old[*at] != open.line[*at];
        let (Some(first), Some(last)) =
            ((0..old.len()).find(differs), (0..old.len()).rfind(differs))
        else {
            return KeptTree::After(Step::PAST);
        };
        let kept = self.policy.dirtied(levels.cache.slot(cached), place, plan);
        if let KeptTree::Through = kept {
            // Were it dirty, another line of this group could push it out, and its write-back would wait for the
            // group, whose own write of it comes after that.
            return kept;
        }
        let bytes = &open.line[first..=last];
        let ripe = plan.both(open.at, accepted);
        levels
            .cache
            .set_bytes_drained(cached, first, bytes, ripe, accepted, plan);
        kept
    }
}

/// The lines of versions that a group counts on: by index, the versions counted and whether one has overflowed.
type Counted = BTreeMap<u64, (SmallVec<[u64; 4]>, bool)>;

impl BonsaiTrees {
    /// Counts the versions of the lines that `group` writes. A line of the encryption's counters in the group is a line
    /// of versions itself: its new bytes are on their way already, so nothing in it is counted.
    fn count_all(&mut self, group: &[Pending], plan: &mut Plan) -> Counted {
        let mut counted = Counted::new();
        for write in group {
            if let Some(index) = self.leaf(write.place) {
                let (line, at) = (write.line.value, write.line.at);
                let ripe = Step::PAST;
                self.levels.open.insert((0, index), Open { line, at, ripe });
                counted.entry(index).or_default();
                continue;
            }
            let number = self.macs.number(write.place).expect("it is protected");
            if self.versions.is_counter(number) {
                continue;
            }
            let (index, bump) = self.count(number, group, plan);
            let (numbers, overflowed) = counted.entry(index).or_default();
            numbers.push(number);
            *overflowed |= bump == Bump::Overflowed;
        }
        counted
    }

    fn protect(&mut self, write: &Pending, plan: &mut Plan) {
        let mut settled = Settled {
            line: At::new(Some(write.line.value), write.line.at),
            sideband: write.sideband,
        };
        if let Some(number) = self.macs.number(write.place) {
            let (version, at) = if self.versions.is_counter(number) {
                let counter = write.counter.expect("data are sealed");
                (counter, write.line.at)
            } else {
                let index = self.versions.index_of(number);
                let open = self.levels.open(0, index, plan);
                let version = self.versions.get(&open.line, number);
                (version, plan.both(write.line.at, open.at))
            };
            let (line, beside) = (&write.line.value, write.sideband);
            let mac = (self.macs).mac_of_version(write.place, version, line, beside);
            self.put_mac((write.place, number), At::new(mac, at), plan);
            if self.macs.beside {
                settled.sideband = Some(mac.to_le_bytes());
            }
        }
        self.under_way.insert(write.place, settled);
    }
}

impl<P: TreePolicy> Bonsai<P> {
    /// Updates everything above these lines of versions. The group is accepted after the step that this returns.
    fn follow_leaves(
        &mut self,
        levels: &mut Levels<Hashes>,
        leaves: Vec<u64>,
        plan: &mut Plan,
    ) -> Step {
        let root = match self.policy.order() {
            Order::Coalesced => self.follow_all(levels, leaves, plan),
            Order::Sequential | Order::Pipelined => {
                let follow = leaves.into_iter();
                let follow = follow.map(|index| self.follow(levels, index, plan));
                follow.last().unwrap_or(Step::PAST)
            }
        };
        match self.accepts {
            Accepts::WithRoot => plan.both(root, levels.recovered),
            Accepts::BeforeRoot => levels.recovered,
        }
    }

    /// Whether a changed line of the tree goes to the medium with the group that has counted on `counted`.
    fn is_through(&self, versions: &Versions, counted: &Counted, changed: &Changed) -> bool {
        let ((level, index), open) = changed;
        // After an overflow the line of versions has to be there with its new MACs, whatever the policy.
        match counted.get(index).filter(|_| *level == 0) {
            None => self.policy.through(*level),
            Some((_, true)) => true,
            Some((slots, false)) => self.policy.through_versions(versions, &open.line, slots),
        }
    }

    fn write_node(
        &self,
        levels: &mut Levels<Hashes>,
        ((level, index), open): Changed,
        accepted: Step,
        plan: &mut Plan,
    ) -> Stored {
        let place = levels.line(level, index);
        let words = differing(place, &open.line, plan);
        let at = plan.both(open.at, open.ripe);
        let line = At::new(&open.line, at);
        let queue = match level {
            0 => Queue::Counter,
            _ => Queue::Data,
        };
        let written = plan.write_words(place, line, words, None, Step::PAST, queue);
        if level == 0 && self.policy.merges() {
            plan.merges(written);
        }
        levels.cache.renew(place, &open.line, accepted);
        written
    }
}

impl<P: TreePolicy> Scheme<Hashes> for Bonsai<P> {
    fn settle(&mut self, trees: &mut BonsaiTrees, group: &[Pending], plan: &mut Plan) {
        let counted = trees.count_all(group, plan);
        for write in group {
            trees.protect(write, plan);
        }
        let leaves = counted.keys().copied().collect();
        let root = self.follow_leaves(&mut trees.levels, leaves, plan);
        let levels = &mut trees.levels;
        // A line of counters in the group is on its way already, and must not be written once more as a leaf.
        for write in group {
            if let Some((_, index)) = levels.tree.find(write.place) {
                levels.open.remove(&(0, index));
                if self.policy.merges() {
                    plan.merges(write.stored);
                }
            }
        }
        let accepted = group[0].stored.accepted;
        let mut stored: SmallVec<[Stored; 16]> = group.iter().map(|write| write.stored).collect();
        let changed = std::mem::take(&mut levels.open).into_iter();
        let (mut through, lazy): (Vec<Changed>, Vec<Changed>) =
            changed.partition(|one| self.is_through(&trees.versions, &counted, one));
        let mut known = root;
        for ((level, index), open) in lazy {
            let place = levels.line(level, index);
            match self.keep(levels, (place, &open), accepted, plan) {
                KeptTree::After(step) => known = plan.both(known, step),
                KeptTree::Through => through.push(((level, index), open)),
            }
        }
        stored.extend(self.policy.noted(plan));
        stored.extend(trees.write_macs(group, known, plan));
        for changed in through {
            stored.push(self.write_node(&mut trees.levels, changed, accepted, plan));
        }
        plan.group(&stored);
        self.policy.grow(&mut trees.levels, plan);
    }

    fn flush(&mut self, trees: &mut BonsaiTrees, plan: &mut Plan) {
        self.policy.flush(&mut trees.levels, plan);
    }

    fn recover(&mut self, trees: &mut BonsaiTrees, plan: &mut Plan) {
        self.policy.recover(trees, plan);
    }
}
