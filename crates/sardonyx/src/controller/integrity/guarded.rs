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
use super::macs::{MECHANISMS, PER_LINE, VERIFY, Verify, Vouched, Where, verified, word};
use super::root::{Learns, Root};
use super::tree::{Node, REGISTER_BYTES, Tree};
use super::versions::{Format, Versions};
use crate::controller::layers::{About, Integrity, Limit, MakePowerFail, PowerFail, Refuses};
use crate::figures::Figures;
use crate::line::{Line, Place, ZERO_LINE};
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::plan::guard::Guard;
use crate::plan::storey::Storey;
use crate::plan::{At, Plan, Queue, Step, Stored};
use crate::settings::{AnyKey, Settings};
use crate::stats::Cause;

/// Builds a scheme's guard.
pub type Build = fn(&Settings, &mut Layout) -> Option<Box<dyn Guard>>;

/// What a scheme with a tree declares.
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
            tries: &[MECHANISMS],
            limits,
        },
        build,
        promises: Refuses::ALL,
        registers: |_| REGISTER_BYTES,
        power_fail: Some(power_fail),
    }
}

/// The register of a tree over versions that lie so, and reserve power; both learn versions as `learns` says.
pub fn root<N: Node>(
    (format, learns): (Format, Learns),
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
}

/// The number of a group, the last of its writes, and all.
pub type Group = (u32, Step, Vec<Pending>);

/// What a line that the request at hand writes is to whoever comes between its groups: as the last of them that has
/// been settled leaves it, or as the request found it. A group is accepted before those that are settled after it.
pub struct Settled {
    pub line: At<Option<Line>>,
    pub sideband: Option<[u8; 8]>,
}

/// MACs, versions and the tree, and what of them is on chip.
pub struct Trees<N> {
    pub macs: Where,
    pub versions: Versions,
    /// The lines of versions, and the levels above.
    pub levels: Levels<N>,
    verify: Verify,
    pending: Vec<Pending>,
    pub under_way: FxHashMap<Place, Settled>,
    /// Lines of MACs that the group at hand has changed.
    pub open_macs: BTreeMap<u64, Open>,
}

impl<N: Node> Trees<N> {
    /// Reserves room for all of it, and knows nothing yet; what its cache writes back waits in `queue`.
    pub fn reserve(
        format: Format,
        queue: Queue,
        settings: &Settings,
        layout: &mut Layout,
    ) -> Trees<N> {
        let (macs, versions) = Versions::reserve(format, settings, layout);
        let tree = Tree::reserve(versions.region.clone(), layout);
        Trees {
            macs,
            versions,
            levels: Levels::new(tree, queue, settings),
            verify: settings.get(&VERIFY),
            pending: Vec::new(),
            under_way: FxHashMap::default(),
            open_macs: BTreeMap::new(),
        }
    }

    /// The line of MACs with that number, as one that the group changes.
    pub fn open_macs(&mut self, index: u64, plan: &mut Plan) -> &mut Open {
        let place = self.macs.region.line(index);
        let cache = &mut self.levels.cache;
        self.open_macs.entry(index).or_insert_with(|| {
            let cached = cache.get(place, Step::PAST, plan);
            Open {
                line: *cache.line(cached),
                at: cached.at,
                ripe: Step::PAST,
            }
        })
    }

    /// The writes of the lines of MACs that the group has changed, which wait for `known`.
    pub fn write_macs(&mut self, known: Step, plan: &mut Plan) -> SmallVec<[Stored; 16]> {
        let changed = std::mem::take(&mut self.open_macs).into_iter();
        let written = changed.map(|(index, open)| {
            let place = self.macs.region.line(index);
            let words = differing(place, &open.line, plan);
            let line = At::new(&open.line, plan.both(open.at, known));
            let written = plan.write_words(place, line, words, None, Step::PAST, Queue::Data);
            self.levels.cache.renew(place, &open.line, Step::PAST);
            written
        });
        written.collect()
    }

    /// Whether the line with that number is what its version, in `versions`, and its MAC, in `macs`, vouch for.
    fn vouches(&self, number: u64, got: Option<&Line>, kept: (&Line, &Line), plan: &Plan) -> bool {
        let Some(place) = self.macs.place(number) else {
            return false;
        };
        let (_, slot) = self.versions.of_number(number);
        let by = Vouched {
            version: self.versions.get(kept.0, slot),
            mac: word(kept.1, (number % PER_LINE) as usize),
        };
        self.macs.vouches(by, place, got, plan.peek_sideband(place))
    }

    /// The line `index` of versions as the MACs of its lines say, by trial of less than `stride` versions further than
    /// memory's; written if memory has an older one. A line whose MAC no version is right for is left, for who reads it
    /// to refuse.
    pub fn restore_versions(&mut self, index: u64, stride: u64, plan: &mut Plan) -> Line {
        let mut line = self.levels.own(0, index, plan);
        let first = index * self.versions.per_line();
        for number in first..first + self.versions.per_line() {
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
        let (_, slot) = self.versions.of_number(number);
        let macs = plan.peek(self.macs.region.line(number / PER_LINE));
        let macs = macs.unwrap_or(ZERO_LINE);
        if word(&macs, (number % PER_LINE) as usize) == 0 {
            return (self.versions.get(line, slot) == 0).then_some(*line);
        }
        let data = plan.peek(place)?;
        (0..stride).find_map(|steps| {
            let later = self.versions.later(line, number, steps)?;
            if steps > 0 {
                plan.unit(Unit::Mac, Step::PAST); // one for the line itself is counted with its read
            }
            self.vouches(number, Some(&data), (&later, &macs), plan)
                .then_some(later)
        })
    }
}

/// The same groups as the layers above have made, in the order of their last writes.
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

/// The words in which `line` differs from the newest one at `place`.
pub fn differing(place: Place, line: &Line, plan: &Plan) -> u8 {
    let newest = plan.peek(place).unwrap_or(ZERO_LINE);
    let differs = |at: &usize| word(&newest, *at) != word(line, *at);
    (0..8).filter(differs).fold(0, |all, at| all | 1 << at)
}

/// What a scheme decides.
pub trait Scheme<N: Node>: Send + 'static {
    /// A protected line is written: gives the step after which all that belongs to it is in the array. If nothing else
    /// is said, it is settled with its group.
    fn write(&mut self, trees: &mut Trees<N>, write: Pending, _plan: &mut Plan) -> Step {
        let done = write.stored.done;
        trees.pending.push(write);
        done
    }

    /// Counts the writes of a group, and writes with it what has to be accepted with it.
    fn settle(&mut self, trees: &mut Trees<N>, group: &[Pending], plan: &mut Plan);

    /// Makes the tree whole after a cut, and compares it with the register where the scheme does so.
    fn recover(&mut self, trees: &mut Trees<N>, plan: &mut Plan);
}

/// Trees under a scheme.
pub struct Guarded<N, S> {
    pub trees: Trees<N>,
    pub scheme: S,
}

impl<N: Node, S: Scheme<N>> Storey for Guarded<N, S> {
    fn flush(&mut self, plan: &mut Plan) {
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
        let (index, _) = trees.versions.of_number(number);
        let versions = trees.levels.known(0, index, after, plan);
        let macs = trees.macs.region.line(number / PER_LINE);
        let cached = trees.levels.cache.get(macs, after, plan);
        let kept = plan.both(versions.at, cached.at);
        let by = (&versions.value, trees.levels.cache.line(cached));
        let is_right = trees.vouches(number, got.value.as_ref(), by, plan);
        verified(place, got, (is_right, kept), trees.verify, plan)
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
        if self.trees.macs.number(place).is_none() {
            return stored.done;
        }
        let write = Pending {
            place,
            line: At::new(*line.value, line.at),
            sideband: sideband.or_else(|| plan.peek_sideband(place)),
            stored,
        };
        self.scheme.write(&mut self.trees, write, plan)
    }

    fn holds(&self, place: Place, plan: &Plan) -> bool {
        let trees = &self.trees;
        let Some(number) = trees.macs.number(place) else {
            return true;
        };
        if trees.under_way.contains_key(&place) {
            return true;
        }
        let (index, _) = trees.versions.of_number(number);
        let version = trees.levels.peek(trees.versions.region.line(index), plan);
        let macs = trees.macs.region.line(number / PER_LINE);
        let macs = trees.levels.peek(macs, plan);
        let line = plan.peek(place);
        trees.vouches(number, line.as_ref(), (&version, &macs), plan)
    }

    fn finish(&mut self, plan: &mut Plan) {
        let plan = &mut plan.because(Cause::Integrity);
        let pending = std::mem::take(&mut self.trees.pending);
        if let [_] = pending.as_slice() {
            self.scheme.settle(&mut self.trees, &pending, plan);
        } else {
            for (.., group) in groups(pending, plan) {
                self.scheme.settle(&mut self.trees, &group, plan);
            }
        }
        self.trees.under_way.clear();
    }
}
