//! What Bonsai trees share: a Merkle tree over lines of versions alone. Source of the idea: Rogers et al., "Using
//! Address Independent Seed Encryption and Bonsai Merkle Trees", MICRO 2007; from memory.
//!
//! Lines of a group may share nodes ([`super::guarded`]). What a scheme decides is a [`Policy`]: which lines go to the
//! medium with the group, in which order paths are computed, and what a recovery does.
//! Left out: versions that are encryption counters.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::guarded::{Guarded, Pending, Scheme, Settled, Trees, differing, root};
use super::levels::{Levels, Open};
use super::macs::{CACHE, PER_LINE, VERIFY, Vouched, word};
use super::root::Learns;
use super::tree::{ARITY, Hashes, Node, put};
use super::versions::{Bump, Format, MINOR_BITS, Versions};
use crate::controller::layers::Integrity;
use crate::controller::metadata_cache::SETS;
use crate::line::{Line, Place, ZERO_LINE};
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::plan::guard::Guard;
use crate::plan::{At, Plan, Queue, Step, Stored};
use crate::settings::{AnyKey, Settings, keys, words};

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

/// What a scheme with a Bonsai tree declares.
pub const fn bonsai(
    name: &'static str,
    keys: &'static [&'static dyn AnyKey],
    cut: &'static str,
    build: super::guarded::Build,
) -> Integrity {
    let power_fail = |settings: &Settings, layout: &Layout| {
        let format = Format::from_settings(settings);
        root::<Hashes>((format, Learns::Macs), settings, layout)
    };
    super::guarded::tree(name, keys, cut, &[], (build, power_fail))
}

/// The guard of a Bonsai tree under the policy that `policy` makes.
pub fn build<P: Policy>(
    settings: &Settings,
    layout: &mut Layout,
    policy: impl FnOnce(&BonsaiTrees, &mut Layout) -> P,
) -> Option<Box<dyn Guard>> {
    let format = Format::from_settings(settings);
    let trees = Trees::reserve(format, Queue::Counter, settings, layout);
    let scheme = Bonsai {
        policy: policy(&trees, layout),
        accepts: settings.get(&ACCEPTS),
        through: vec![Step::PAST; trees.levels.tree.levels.len()],
    };
    Some(Box::new(Guarded { trees, scheme }))
}

/// Trees of hashes over versions.
pub type BonsaiTrees = Trees<Hashes>;

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
pub trait Policy: Send + 'static {
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
    fn recover(&mut self, trees: &mut BonsaiTrees, plan: &mut Plan);
}

type Changed = ((usize, u64), Open);

/// A policy, and how far paths have been computed.
pub struct Bonsai<P> {
    policy: P,
    accepts: Accepts,
    /// The steps after which the last path was through each level.
    through: Vec<Step>,
}

impl Levels<Hashes> {
    fn open(&mut self, level: usize, index: u64, plan: &mut Plan) -> &mut Open {
        if !self.open.contains_key(&(level, index)) {
            let line = self.known(level, index, Step::PAST, plan);
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
}

impl BonsaiTrees {
    /// Counts the write on, and gives the line of versions and the slot; at an overflow all 64 lines get new MACs, those
    /// of `group` with the others of the group.
    fn count(&mut self, number: u64, group: &[Pending], plan: &mut Plan) -> (u64, u64, Bump) {
        let (index, slot) = self.versions.of_number(number);
        let open = self.levels.open(0, index, plan);
        let before = open.line;
        let bump = self.versions.bump(&mut open.line, number);
        if bump == Bump::Overflowed {
            let first = index * self.versions.per_line();
            let others = first..first + self.versions.per_line();
            for number in others.filter(|other| *other != number) {
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
        let (_, slot) = self.versions.of_number(number);
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
        let line = read.value.unwrap_or(ZERO_LINE);
        self.put_mac(number, place, At::new(&line, read.at), sideband, plan);
    }

    /// The MAC of the line at `place` under the version that the group gives it.
    fn put_mac(
        &mut self,
        number: u64,
        place: Place,
        line: At<&Line>,
        sideband: Option<[u8; 8]>,
        plan: &mut Plan,
    ) {
        let (index, slot) = self.versions.of_number(number);
        let versions = self.levels.open(0, index, plan).line;
        let version = self.versions.get(&versions, slot);
        let mac = self
            .macs
            .mac_of_version(place, version, line.value, sideband);
        let at = plan.unit(Unit::Mac, line.at);
        let open = self.open_macs(number / PER_LINE, plan);
        put(&mut open.line, number % PER_LINE, mac);
        open.at = plan.both(at, open.at);
    }
}

impl<P: Policy> Bonsai<P> {
    /// All above the line `index` of versions follows; the register is known after the step that this gives.
    fn follow(&mut self, levels: &mut Levels<Hashes>, index: u64, plan: &mut Plan) -> Step {
        let start = levels.open(0, index, plan).at;
        let mut at = match self.policy.order() {
            Order::Sequential => plan.both(start, *self.through.last().expect("a level")),
            Order::Pipelined | Order::Coalesced => start,
        };
        let mut index = index;
        for level in 0..levels.tree.levels.len() {
            let hash = Hashes::of(level, index, &levels.open(level, index, plan).line);
            at = plan.both(at, self.through[level]);
            at = plan.unit(Unit::Mac, at);
            self.through[level] = at;
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

    /// The same of several lines, each node once.
    fn follow_all(
        &mut self,
        levels: &mut Levels<Hashes>,
        leaves: Vec<u64>,
        plan: &mut Plan,
    ) -> Step {
        let (mut indices, mut done) = (leaves, Step::PAST);
        for level in 0..levels.tree.levels.len() {
            for index in &indices {
                let open = levels.open(level, *index, plan);
                let hash = Hashes::of(level, *index, &open.line);
                let at = plan.both(open.at, self.through[level]);
                let at = plan.unit(Unit::Mac, at);
                self.through[level] = at;
                if levels.tree.is_top(level) {
                    put(&mut levels.register, *index, hash);
                    done = plan.both(done, at);
                } else {
                    let above = levels.open(level + 1, index / ARITY, plan);
                    put(&mut above.line, index % ARITY, hash);
                    above.at = plan.both(above.at, at);
                }
            }
            indices.iter_mut().for_each(|index| *index /= ARITY);
            indices.dedup();
        }
        done
    }

    /// Puts a changed line into the cache, from where it goes when its room is wanted.
    fn keep(
        &mut self,
        levels: &mut Levels<Hashes>,
        (place, open): (Place, &Open),
        accepted: Step,
        plan: &mut Plan,
    ) -> Kept {
        let cached = levels.cache.revisit(place, Step::PAST, plan);
        let old = *levels.cache.line(cached);
        let differs = |at: &usize| old[*at] != open.line[*at];
        let (Some(first), Some(last)) =
            ((0..old.len()).find(differs), (0..old.len()).rfind(differs))
        else {
            return Kept::After(Step::PAST);
        };
        let kept = self.policy.dirtied(levels.cache.slot(cached), place, plan);
        if let Kept::Through = kept {
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

impl<P: Policy> Scheme<Hashes> for Bonsai<P> {
    fn settle(&mut self, trees: &mut BonsaiTrees, group: &[Pending], plan: &mut Plan) {
        let mut counted: BTreeMap<u64, (SmallVec<[u64; 4]>, bool)> = BTreeMap::new();
        for write in group {
            let number = trees.macs.number(write.place).expect("it is protected");
            let (index, slot, bump) = trees.count(number, group, plan);
            let (slots, overflowed) = counted.entry(index).or_default();
            slots.push(slot);
            *overflowed |= bump == Bump::Overflowed;
        }
        for write in group {
            let number = trees.macs.number(write.place).expect("it is protected");
            let (index, _) = trees.versions.of_number(number);
            let known = trees.levels.open(0, index, plan).at;
            let at = plan.both(write.line.at, known);
            let line = At::new(&write.line.value, at);
            trees.put_mac(number, write.place, line, write.sideband, plan);
            let settled = Settled {
                line: At::new(Some(write.line.value), write.line.at),
                sideband: write.sideband,
            };
            trees.under_way.insert(write.place, settled);
        }
        let leaves: Vec<u64> = counted.keys().copied().collect();
        let levels = &mut trees.levels;
        let root = match self.policy.order() {
            Order::Coalesced => self.follow_all(levels, leaves, plan),
            Order::Sequential | Order::Pipelined => {
                let follow = leaves.into_iter();
                let follow = follow.map(|index| self.follow(levels, index, plan));
                follow.last().expect("a group has writes")
            }
        };
        let root = match self.accepts {
            Accepts::WithRoot => plan.both(root, levels.recovered),
            Accepts::BeforeRoot => levels.recovered,
        };
        let accepted = group[0].stored.accepted;
        let mut stored: SmallVec<[Stored; 16]> = group.iter().map(|write| write.stored).collect();
        let is_through =
            |((level, index), open): &Changed| match counted.get(index).filter(|_| *level == 0) {
                None => self.policy.through(*level),
                Some((_, true)) => true,
                Some((slots, false)) => {
                    self.policy
                        .through_versions(&trees.versions, &open.line, slots)
                }
            };
        let changed = std::mem::take(&mut levels.open).into_iter();
        let (through, lazy): (Vec<Changed>, Vec<Changed>) = changed.partition(is_through);
        let (mut known, mut through) = (root, through);
        for ((level, index), open) in lazy {
            let place = levels.tree.levels[level].line(index);
            match self.keep(levels, (place, &open), accepted, plan) {
                Kept::After(step) => known = plan.both(known, step),
                Kept::Through => through.push(((level, index), open)),
            }
        }
        stored.extend(self.policy.noted(plan));
        stored.extend(trees.write_macs(known, plan));
        let levels = &mut trees.levels;
        for ((level, index), open) in through {
            let place = levels.tree.levels[level].line(index);
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
            stored.push(written);
            levels.cache.renew(place, &open.line, accepted);
        }
        plan.group(&stored);
    }

    fn recover(&mut self, trees: &mut BonsaiTrees, plan: &mut Plan) {
        self.policy.recover(trees, plan);
    }
}
