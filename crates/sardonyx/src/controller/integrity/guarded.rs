//! What all schemes with versions share: a MAC binds each line to its place and its version, versions are in lines of
//! their own, and a tree stands over those, whose root is a register on chip. A [`Scheme`] decides when which of it is
//! written, and what a recovery does.
//!
//! A request's writes are settled when it has been handled ([`Guard::finish`]) and their groups are known: of each group
//! every line of versions, MACs and nodes is changed once and written at most once.
//! Left out: what reserve power keeps ([`super::root`]); the time of a recovery.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::levels::{Levels, Open};
use super::mac::{FIGURES, INTEGRITY_CACHE_HIT_RATE, UNITS};
use super::macs::{
    MECHANISMS, PER_LINE, VERIFIED_NODE, VERIFY, Verify, Vouched, Where, beside, verified, word,
};
use super::root::{Learns, Root};
use super::tree::{Node, REGISTER_BYTES, put};
use super::versions::{VersionFormat, Versions};
use crate::controller::layers::{About, Integrity, Limit, MakePowerFail, PowerFail, Refuses};
use crate::figures::Figures;
use crate::line::{Line, Place, ZERO_LINE};
use crate::mechanisms::{Mechanism, RESTORING};
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::plan::guard::Guard;
use crate::plan::storey::Storey;
use crate::plan::{At, Fetched, Plan, Promise, Queue, Step, Stored, Written};
use crate::settings::{AnyKey, Settings};
use crate::stats::Cause;

/// Builds a scheme's guard.
pub type Build = fn(&Settings, &mut Layout) -> Option<Box<dyn Guard>>;

/// What trees use, if a cut leaves the medium without some of their nodes.
pub const TRIES: &[&[&Mechanism]] = &[MECHANISMS, &[&RESTORING]];

/// Declares a scheme with a tree.
pub const fn tree(
    name: &'static str,
    keys: &'static [&'static dyn AnyKey],
    cut: &'static str,
    limits: &'static [Limit],
    (build, power_fail): (Build, MakePowerFail),
) -> Integrity {
    Integrity {
        about: About {
            name,
            keys,
            units: UNITS,
            figures: &[FIGURES],
            cut,
            tries: TRIES,
            limits,
        },
        build,
        promises: Refuses::ALL,
        settles_groups: true,
        registers: |_| REGISTER_BYTES,
        power_fail: Some(power_fail),
    }
}

/// Builds the register and the reserve power of a tree over versions in this format. Both learn versions as `learns`
/// says.
pub fn root<N: Node>(
    (format, learns): (VersionFormat, Learns),
    settings: &Settings,
    layout: &Layout,
) -> Box<dyn PowerFail> {
    Box::new(Root::<N>::from_layout(format, learns, settings, layout))
}

/// A write that has not been settled.
pub struct Pending {
    pub place: Place,
    pub line: At<Line>,
    pub sideband: Option<[u8; 8]>,
    pub stored: Stored,
    /// The counter that the line is encrypted under, where counters are versions.
    pub counter: Option<u64>,
    /// A promise that has to be kept before the write is accepted.
    pub held: Option<Promise>,
}

/// A group: its number, the last of its writes, and all of them.
pub type Group = (u32, Step, Vec<Pending>);

/// The state of a line that the request at hand writes, as seen between its groups: as the last settled group leaves
/// it, or else as the request found it. A group is accepted before the groups that are settled after it.
pub struct Settled {
    pub line: Fetched,
    pub sideband: Option<[u8; 8]>,
}

/// MACs, versions and the tree, and the parts of them that are on chip.
pub struct Trees<N> {
    pub macs: Where,
    pub versions: Versions,
    /// The lines of versions, and the levels above.
    pub levels: Levels<N>,
    verify: Verify,
    pending: Vec<Pending>,
    unsettled: Vec<Place>,
    pub under_way: FxHashMap<Place, Settled>,
    /// The line that was read last and has not been verified, and the step after which it was asked for.
    asked: Option<(Place, Step)>,
    /// The promise that the coming write waits for.
    held: Option<Promise>,
    open_macs: BTreeMap<u64, Open>,
    beside: BTreeMap<Place, At<u64>>,
}

impl<N: Node> Trees<N> {
    /// Reserves room for all of it and knows nothing yet. The cache's write-backs wait in `queue`.
    pub fn reserve(
        format: VersionFormat,
        queue: Queue,
        settings: &Settings,
        layout: &mut Layout,
    ) -> Trees<N> {
        let (macs, versions, tree) = Versions::reserve(format, settings, layout);
        Trees {
            macs,
            versions,
            levels: Levels::new(tree, queue, settings),
            verify: settings.get(&VERIFY),
            pending: Vec::new(),
            unsettled: Vec::new(),
            under_way: FxHashMap::default(),
            asked: None,
            held: None,
            open_macs: BTreeMap::new(),
            beside: BTreeMap::new(),
        }
    }

    fn open_macs(&mut self, index: u64, plan: &mut Plan) -> &mut Open {
        let place = self.macs.region.line(index);
        let levels = &mut self.levels;
        self.open_macs.entry(index).or_insert_with(|| {
            let cached = levels.look(place, Step::PAST, plan);
            Open {
                line: *levels.cache.line(cached),
                at: cached.at,
                ripe: Step::PAST,
            }
        })
    }

    /// The MAC of line `number` before the group, as memory or the group's opened line has it.
    pub fn old_mac(&mut self, number: u64, sideband: Option<[u8; 8]>, plan: &mut Plan) -> u64 {
        match self.macs.beside {
            true => beside(sideband),
            false => {
                let macs = &self.open_macs(number / PER_LINE, plan).line;
                word(macs, (number % PER_LINE) as usize)
            }
        }
    }

    /// Records the MAC of line `number` at `place`, which is computed once all of its inputs are known.
    pub fn put_mac(&mut self, (place, number): (Place, u64), mac: At<u64>, plan: &mut Plan) {
        let at = plan.unit(Unit::Mac, mac.at);
        if self.macs.beside {
            self.beside.insert(place, At::new(mac.value, at));
            return;
        }
        let open = self.open_macs(number / PER_LINE, plan);
        put(&mut open.line, number % PER_LINE, mac.value);
        open.at = plan.both(at, open.at);
    }

    /// Lets the group's writes go once `known` is finished, with their MACs. Returns the additional writes that bring
    /// MACs to the medium.
    pub fn write_macs(
        &mut self,
        group: &[Pending],
        known: Step,
        plan: &mut Plan,
    ) -> SmallVec<[Stored; 16]> {
        let beside = std::mem::take(&mut self.beside);
        let mut written: SmallVec<[Stored; 16]> = SmallVec::new();
        for write in group {
            let mac = beside.get(&write.place).copied();
            if let Some(mac) = mac {
                plan.put_beside(write.place, write.stored, mac.value.to_le_bytes());
            }
            if let Some(held) = write.held {
                let known = mac.map_or(known, |mac| plan.both(mac.at, known));
                plan.keep(held, known);
            }
        }
        let others = beside.iter();
        let others = others.filter(|(at, _)| group.iter().all(|write| write.place != **at));
        for (place, mac) in others {
            let line = plan.peek(*place).unwrap_or(ZERO_LINE);
            let line = At::new(&line, plan.both(mac.at, known));
            let bytes = Some(mac.value.to_le_bytes());
            written.push(plan.write_words(*place, line, 0xff, bytes, Step::PAST, Queue::Data));
        }
        for (index, open) in std::mem::take(&mut self.open_macs) {
            let place = self.macs.region.line(index);
            let words = differing(place, &open.line, plan);
            let line = At::new(&open.line, plan.both(open.at, known));
            written.push(plan.write_words(place, line, words, None, Step::PAST, Queue::Data));
            self.levels.cache.renew(place, &open.line, Step::PAST);
        }
        written
    }

    /// The index in the tree's lowest level of the line at `place`, if it holds the encryption's counters.
    pub fn leaf(&self, place: Place) -> Option<u64> {
        let (counters, _) = self.versions.counters.as_ref()?;
        let is_counters = counters.region.contains(place);
        let (_, index) = is_counters.then(|| self.levels.tree.find(place))??;
        Some(index)
    }

    /// Whether the request at hand writes the line in a group that has not been settled.
    pub fn is_pending(&self, place: Place) -> bool {
        self.unsettled.contains(&place)
    }

    fn is_guarded(&self, place: Place) -> bool {
        self.macs.number(place).is_some() || self.leaf(place).is_some()
    }

    /// The step that metadata of a read have to wait for. A read may wait for a write of the same request, which cannot
    /// go before its versions and MACs: these must not wait for what the read waits for.
    fn after(&self, after: Step) -> Step {
        match self.pending.is_empty() {
            true => after,
            false => Step::PAST,
        }
    }

    fn verify(
        &mut self,
        (place, number): (Place, u64),
        got: Fetched,
        version: At<u64>,
        after: Step,
        plan: &mut Plan,
    ) -> Fetched {
        let sideband = plan.peek_sideband(place);
        let mac = match self.macs.beside {
            true => At::new(beside(sideband), version.at),
            false => {
                let macs = self.macs.region.line(number / PER_LINE);
                let cached = self.levels.look(macs, after, plan);
                let mac = word(self.levels.cache.line(cached), (number % PER_LINE) as usize);
                At::new(mac, plan.both(version.at, cached.at))
            }
        };
        let by = Vouched {
            version: version.value,
            mac: mac.value,
        };
        let is_right = self.macs.vouches(by, place, got.value.as_ref(), sideband);
        verified(place, got, (is_right, mac.at), self.verify, plan)
    }

    /// Whether line `number` is the one that its version, in `versions`, and its MAC vouch for, as they are on chip or
    /// in memory.
    fn vouches(&self, number: u64, got: Option<&Line>, versions: &Line, plan: &Plan) -> bool {
        let Some(place) = self.macs.place(number) else {
            return false;
        };
        let by = Vouched {
            version: self.versions.get(versions, number),
            mac: self.mac_of((place, number), plan),
        };
        self.macs.vouches(by, place, got, plan.peek_sideband(place))
    }

    /// The word with the MAC of line `number` at `place`, on chip or in memory, unverified.
    pub fn mac_of(&self, (place, number): (Place, u64), plan: &Plan) -> u64 {
        match self.macs.beside {
            true => beside(plan.peek_sideband(place)),
            false => {
                let macs = self.macs.region.line(number / PER_LINE);
                let macs = self.levels.peek(macs, plan);
                word(&macs, (number % PER_LINE) as usize)
            }
        }
    }

    /// Restores line `index` of versions by trying versions, less than `stride` writes further than memory's, against
    /// the MACs of its lines. It is written if memory has an older one. A line whose MAC fits no version is left to its
    /// readers to refuse.
    pub fn restore_versions(&mut self, index: u64, stride: u64, plan: &mut Plan) -> Line {
        let mut line = self.levels.own(0, index, plan);
        for number in self.versions.numbers(index) {
            if let Some(found) = self.tried(&line, number, stride, plan) {
                line = found;
            }
        }
        let place = self.versions.region.line(index);
        self.levels.restore(place, &line, plan);
        line
    }

    fn tried(&self, line: &Line, number: u64, stride: u64, plan: &mut Plan) -> Option<Line> {
        let place = self.macs.place(number)?;
        // A line without a MAC was never written, so its version must be 0.
        if self.mac_of((place, number), plan) == 0 {
            return (self.versions.get(line, number) == 0).then_some(*line);
        }
        let data = plan.peek(place)?;
        (0..stride).find_map(|steps| {
            let later = self.versions.later(line, number, steps)?;
            if steps > 0 {
                plan.unit(Unit::Mac, Step::PAST); // one for the line itself is counted with its read
            }
            self.vouches(number, Some(&data), &later, plan)
                .then_some(later)
        })
    }
}

/// Sorts writes into the groups that the layers above have made, in the order of the groups' last writes.
fn groups(pending: Vec<Pending>, plan: &Plan) -> Vec<Group> {
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

/// The words in which `line` differs from the newest line at `place`.
pub fn differing(place: Place, line: &Line, plan: &Plan) -> u8 {
    let newest = plan.peek(place).unwrap_or(ZERO_LINE);
    let differs = |at: &usize| word(&newest, *at) != word(line, *at);
    (0..8).filter(differs).fold(0, |all, at| all | 1 << at)
}

/// The decisions of a scheme.
pub trait Scheme<N: Node>: Send + 'static {
    /// Hears that a protected line is written, and returns the step after which all that belongs to it is in the array.
    /// By default the write is settled with its group.
    fn write(&mut self, trees: &mut Trees<N>, write: Pending, _plan: &mut Plan) -> Step {
        let done = write.stored.done;
        trees.pending.push(write);
        done
    }

    /// Counts the writes of a group, and adds the writes that have to be accepted with it.
    fn settle(&mut self, trees: &mut Trees<N>, group: &[Pending], plan: &mut Plan);

    /// Brings everything above the lines that it belongs to, before all is written.
    fn flush(&mut self, _trees: &mut Trees<N>, _plan: &mut Plan) {}

    /// Repairs the tree after a cut, and compares it with the register where the scheme does so.
    fn recover(&mut self, trees: &mut Trees<N>, plan: &mut Plan);
}

/// Trees under a scheme, as a guard.
pub struct Guarded<N, S> {
    pub trees: Trees<N>,
    pub scheme: S,
}

impl<N: Node, S: Scheme<N>> Storey for Guarded<N, S> {
    fn flush(&mut self, plan: &mut Plan) {
        let plan = &mut plan.because(Cause::Integrity);
        self.scheme.flush(&mut self.trees, plan);
        self.trees.levels.flush(plan);
    }

    fn recover(&mut self, plan: &mut Plan) {
        self.scheme.recover(&mut self.trees, plan);
    }

    fn forget_figures(&mut self) {
        self.trees.levels.cache.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        out.put(&INTEGRITY_CACHE_HIT_RATE, self.trees.levels.cache.hits());
    }
}

impl<N: Node, S: Scheme<N>> Guard for Guarded<N, S> {
    fn read(&mut self, place: Place, got: Fetched, after: Step, plan: &mut Plan) -> Fetched {
        let trees = &mut self.trees;
        let (leaf, number) = (trees.leaf(place), trees.macs.number(place));
        // The request at hand may have written it, and it has not left the chip.
        if leaf.or(number).is_none() || trees.under_way.contains_key(&place) {
            return got;
        }
        let plan = &mut plan.because(Cause::Integrity);
        let after = trees.after(after);
        if let Some(index) = leaf {
            let above = trees.levels.above(0, index, after, plan);
            let line = got.value.unwrap_or(ZERO_LINE);
            let is_right = N::is_right(0, index, &line, above.value);
            plan.exercise(&VERIFIED_NODE);
            return verified(place, got, (is_right, above.at), trees.verify, plan);
        }
        let number = number.expect("it has one");
        if trees.versions.is_counter(number) {
            trees.asked = Some((place, after));
            return got; // it is verified when its counter is known
        }
        let index = trees.versions.index_of(number);
        let versions = trees.levels.known(0, index, after, plan);
        let version = trees.versions.get(&versions.value, number);
        let version = At::new(version, versions.at);
        let verified = trees.verify((place, number), got, version, after, plan);
        trees.levels.bring_up(plan);
        verified
    }

    fn opened(&mut self, place: Place, got: Fetched, counter: At<u64>, plan: &mut Plan) -> Fetched {
        let trees = &mut self.trees;
        let number = trees.macs.number(place);
        let number = number.filter(|number| trees.versions.is_counter(*number));
        match number {
            Some(number) if !trees.under_way.contains_key(&place) => {
                let plan = &mut plan.because(Cause::Integrity);
                // Its MAC is asked for with the line.
                let asked = trees.asked.take().filter(|(asked, _)| *asked == place);
                let after = asked.map_or(counter.at, |(_, after)| after);
                trees.verify((place, number), got, counter, after, plan)
            }
            _ => got,
        }
    }

    fn before_write(&mut self, place: Place, plan: &mut Plan) -> Step {
        let trees = &mut self.trees;
        if !trees.is_guarded(place) {
            return Step::PAST;
        }
        trees.under_way.entry(place).or_insert_with(|| Settled {
            line: At::past(plan.peek(place)),
            sideband: plan.peek_sideband(place),
        });
        // A MAC beside the line is not known before the group is settled, and neither is a leaf's path to the root.
        let is_held = trees.macs.beside || trees.leaf(place).is_some();
        trees.held = is_held.then(|| plan.promise());
        trees.held.map_or(Step::PAST, Promise::step)
    }

    fn write(&mut self, place: Place, written: Written, plan: &mut Plan) -> Step {
        if !self.trees.is_guarded(place) {
            return written.stored.done;
        }
        let write = Pending {
            place,
            line: At::new(*written.line.value, written.line.at),
            sideband: written.beside(place, plan),
            stored: written.stored,
            counter: None,
            held: self.trees.held.take(),
        };
        let done = self.scheme.write(&mut self.trees, write, plan);
        self.trees
            .levels
            .bring_up(&mut plan.because(Cause::Integrity));
        done
    }

    fn sealed(&mut self, place: Place, counter: u64) {
        let mut pending = self.trees.pending.iter_mut().rev();
        if let Some(write) = pending.find(|write| write.place == place) {
            write.counter = Some(counter);
        }
    }

    fn holds(&self, place: Place, plan: &Plan) -> bool {
        let trees = &self.trees;
        if trees.under_way.contains_key(&place) {
            return true;
        }
        let line = plan.peek(place);
        if let Some(index) = trees.leaf(place) {
            let above = trees.levels.peek_above(index, plan);
            return N::is_right(0, index, &line.unwrap_or(ZERO_LINE), above);
        }
        let Some(number) = trees.macs.number(place) else {
            return true;
        };
        let index = trees.versions.index_of(number);
        let version = trees.levels.peek(trees.levels.line(0, index), plan);
        trees.vouches(number, line.as_ref(), &version, plan)
    }

    fn finish(&mut self, plan: &mut Plan) {
        let plan = &mut plan.because(Cause::Integrity);
        let pending = std::mem::take(&mut self.trees.pending);
        // A single write needs no sorting into groups.
        if let [_] = pending.as_slice() {
            self.scheme.settle(&mut self.trees, &pending, plan);
        } else {
            let mut groups = groups(pending, plan).into_iter();
            while let Some((.., group)) = groups.next() {
                let later = groups.as_slice().iter().flat_map(|(.., later)| later);
                self.trees.unsettled = later.map(|write| write.place).collect();
                self.scheme.settle(&mut self.trees, &group, plan);
            }
        }
        self.trees.under_way.clear();
    }
}
