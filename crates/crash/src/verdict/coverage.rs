//! The coverage that a verdict rests on: how far the runs have come, how far they must have come, and which options
//! prevent that.

use rustc_hash::FxHashSet;
use serde::{Serialize, Serializer};

use crate::findings::ExploredCuts;
use crate::history::{History, classes};
use crate::options::{Cuts, Options};
use sardonyx::config::Machine;
use sardonyx::controller::designs::{self, Stack};
use sardonyx::controller::layers::About;
use sardonyx::controller::logging::undo::{NEXT_BUCKET, UNDONE};
use sardonyx::line::Place;
use sardonyx::mechanisms::{
    BESIDE, CAPACITY_EVICTION, DIRTY_EVICTION, ENDURED, Exercised, HANDED_LINE, MARKED_EVICTION,
    MIXED_COUNTER_LINE, Mechanism, NEAR_ZERO, NEXT_LIFE, NO_ROOM, OTHER_CONTENTS, RESTORING,
    Reached, SHARED_COUNTER_LINE, UNWRITTEN, Value,
};
use sardonyx::medium::near::NEAR_VICTIM;
use sardonyx::medium::params::{FORWARD, JOINED_EVICTION, MERGE, Queues};
use sardonyx::medium::parts;
use sardonyx::plan::journal::Event;
use sardonyx::settings::{AnyKey, Pressure};
use sardonyx_workload::DurabilityKind;

/// Mechanisms of every stack that is written through caches.
const EVERYWHERE: [&Mechanism; 8] = [
    &DIRTY_EVICTION,
    &CAPACITY_EVICTION,
    &MARKED_EVICTION,
    &JOINED_EVICTION,
    &NEXT_LIFE,
    &NEAR_ZERO,
    &UNWRITTEN,
    &ENDURED,
];
const OF_CORES: [&Mechanism; 3] = [&SHARED_COUNTER_LINE, &HANDED_LINE, &BESIDE];
const ALWAYS: [Value; 9] = [
    Value::Runs,
    Value::States,
    Value::Transactions,
    Value::LongestRun,
    Value::Lives,
    Value::LaterRun,
    Value::Cores,
    Value::Queued,
    Value::Waiting,
];
/// By default life goes on after one cut in this many. If a user asks for rarer ones, that may be why later lives are
/// few.
pub(crate) const USUAL_RECOVERY_CUTS: u64 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Used(&'static Mechanism),
    Reached(Value),
}

impl Need {
    pub fn name(self) -> &'static str {
        match self {
            Need::Used(mechanism) => mechanism.name,
            Need::Reached(value) => value.name(),
        }
    }

    pub fn least(self) -> u64 {
        match self {
            Need::Used(mechanism) => mechanism.least,
            Need::Reached(value) => value.least(),
        }
    }

    /// The options that are known to bring a run to this need.
    fn options(self) -> Vec<String> {
        let by = match self {
            Need::Used(mechanism) => mechanism.by,
            Need::Reached(_) => &[],
        };
        let options = by.iter();
        let options = options.map(|(key, value)| format!("--set {key}={value}"));
        options.collect()
    }
}

pub struct Bounds<'a> {
    pub stack: &'a Stack,
    pub machine: &'a Machine,
    /// The log that makes transactions durable: the program's, or the hardware's.
    pub durability: DurabilityKind,
    pub options: Options,
    pub cores: Option<usize>,
    pub transactions: Option<u64>,
    pub overrides: &'a [(String, String)],
    pub once: bool,
}

impl Bounds<'_> {
    /// The amounts that a verdict has to rest on.
    pub fn needs(&self) -> Vec<Need> {
        let queues = &self.machine.engine.medium.queues;
        let mut used = EVERYWHERE.to_vec();
        used.extend(classes::MECHANISMS);
        used.extend(queues.coalescing.then_some(&MERGE));
        used.extend(queues.forwarding.then_some(&FORWARD));
        used.extend(self.stack.tries());
        used.extend(parts::in_use(&self.machine.settings).flat_map(|part| part.tries));
        used.retain(|mechanism| (mechanism.occurs)(&self.machine.settings));
        // A log in hardware sees each write, so that a near cache has nothing newer.
        used.retain(|mechanism| !(self.stack.keeps_log() && **mechanism == NEAR_VICTIM));
        // Where metadata caches outlive a cut, no node is lost.
        let keeps_nodes = self.options.platform.drains_caches();
        used.retain(|mechanism| !(keeps_nodes && **mechanism == RESTORING));
        let encrypts = self.stack.encrypts(&self.machine.settings);
        used.extend(encrypts.then_some(&OTHER_CONTENTS));
        used.extend([&HANDED_LINE, &BESIDE]);
        let mut reached = ALWAYS.to_vec();
        reached.extend(self.has_caches().then_some(Value::CacheSizes));
        if used.contains(&&NEXT_BUCKET) {
            reached.push(Value::LogBuckets);
        }
        reached.extend(self.options.attacks.map(|_| Value::Attacks));
        if self.options.recovery_cuts == 0 {
            used.retain(|mechanism| **mechanism != NEXT_LIFE);
            reached.retain(|value| ![Value::Lives, Value::LaterRun].contains(value));
        }
        if self.cores == Some(1) {
            used.retain(|mechanism| !OF_CORES.contains(mechanism));
            reached.retain(|value| *value != Value::Cores);
        }
        if self.durability == DurabilityKind::Hardware {
            // Programs with such a log mark no variable as counter-atomic.
            let marks = [&MARKED_EVICTION, &MIXED_COUNTER_LINE];
            used.retain(|mechanism| !marks.contains(mechanism));
        }
        let used = used.into_iter().map(Need::Used);
        let mut needs: Vec<Need> = used.chain(reached.into_iter().map(Need::Reached)).collect();
        let mut known = Vec::new();
        needs.retain(|need| {
            let is_new = !known.contains(need);
            known.push(*need);
            is_new
        });
        needs
    }

    /// The needs that options have removed, by which a verdict of `holds` is limited.
    pub fn narrowed(&self) -> Vec<&'static str> {
        let one_core = (self.cores == Some(1)).then_some("one core");
        let one_life = (self.options.recovery_cuts == 0).then_some("one life");
        let guarded = self.stack.integrity.power_fail.is_some();
        let attacks = (guarded && self.options.attacks.is_none()).then_some("no attacks");
        [one_core, one_life, attacks]
            .into_iter()
            .flatten()
            .collect()
    }

    fn keys(&self) -> impl Iterator<Item = &'static dyn AnyKey> {
        let layers = self.stack.layers().into_iter();
        layers.flat_map(|layer| layer.about().keys).copied()
    }

    fn has_caches(&self) -> bool {
        self.keys().any(|key| key.cache().is_some())
    }

    pub fn lacks(&self, needs: &[Need], exercised: &Exercised, reached: &Reached) -> Vec<Lack> {
        let lacks = needs.iter().filter_map(|need| {
            let had = match *need {
                Need::Used(mechanism) => exercised.of(mechanism),
                Need::Reached(value) => reached.of(value),
            };
            (had < need.least()).then(|| Lack {
                what: need.name(),
                had,
                least: need.least(),
                kept_by: self.keeping(*need),
                reached_by: need.options(),
            })
        });
        lacks.collect()
    }

    /// The options that may keep runs from `need`, as they were given.
    fn keeping(&self, need: Need) -> Vec<String> {
        if self.once {
            return vec!["crash once".to_owned()];
        }
        let mut keeping = Vec::new();
        let of_cuts = match need {
            Need::Used(mechanism) => [&NEXT_LIFE, &UNDONE, &RESTORING].contains(&mechanism),
            Need::Reached(value) => [Value::States, Value::Lives, Value::LaterRun].contains(&value),
        };
        let of_size = matches!(need, Need::Reached(Value::CacheSizes | Value::Cores));
        match self.transactions {
            Some(count) if !of_size => keeping.push(format!("--transactions {count}")),
            _ => {}
        }
        match self.options.cuts {
            Cuts::Sample(count) if of_cuts => keeping.push(format!("--cuts {count}")),
            _ => {}
        }
        let rarely = self.options.recovery_cuts;
        if rarely > USUAL_RECOVERY_CUTS && of_cuts && need != Need::Reached(Value::States) {
            keeping.push(format!("--recovery-cuts {rarely}"));
        }
        let pins = |(key, _): &&(String, String)| self.pins(key, need);
        let pins = self.overrides.iter().filter(pins);
        keeping.extend(pins.map(|(key, value)| format!("--set {key}={value}")));
        keeping
    }

    /// Whether a pass would set `key` to have runs come to `need`.
    fn pins(&self, key: &str, need: Need) -> bool {
        let varies = |all: &[&dyn AnyKey]| {
            let pressure = Pressure::all();
            let mut pressed = all.iter().flat_map(|one| one.pressed(&pressure));
            pressed.any(|(name, _)| name == key)
        };
        let mut layers = self.stack.layers().into_iter().map(|layer| layer.about());
        let is_of_queues = Queues::SHORT.iter().any(|(name, _)| *name == key);
        match need {
            Need::Reached(Value::CacheSizes) => self
                .keys()
                .filter(|one| one.cache().is_some())
                .any(|one| varies(&[one])),
            Need::Reached(Value::LogBuckets) => self.pins(key, Need::Used(&NEXT_BUCKET)),
            Need::Used(mechanism) => {
                let has = |about: &About| about.tries.iter().any(|own| own.contains(&mechanism));
                mechanism.by.iter().any(|(name, _)| *name == key)
                    || layers.any(|about| has(about) && varies(about.keys))
                    || parts::in_use(&self.machine.settings)
                        .any(|part| part.tries.contains(&mechanism) && varies(part.keys))
            }
            Need::Reached(Value::Queued | Value::Waiting) => is_of_queues,
            Need::Reached(_) => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lack {
    pub what: &'static str,
    pub had: u64,
    pub least: u64,
    /// The options that may prevent it; if there are none a plan goes on by itself.
    pub kept_by: Vec<String>,
    /// The options that are known to bring a run to it.
    pub reached_by: Vec<String>,
}

/// The different sizes of each metadata cache over the runs; a verdict counts those of the cache with the fewest.
#[derive(Clone, Default)]
pub struct CacheSizes(Vec<FxHashSet<u64>>);

impl CacheSizes {
    /// The sizes of a run on `machine`, before the caches are scaled to the number of cores.
    pub fn from_stack(stack: &Stack, machine: &Machine) -> CacheSizes {
        let layers = stack.layers().into_iter();
        let keys = layers.flat_map(|layer| layer.about().keys);
        let caches = keys.filter_map(|key| key.cache());
        let sizes = caches.map(|key| FxHashSet::from_iter([machine.settings.cache(key).bytes]));
        CacheSizes(sizes.collect())
    }

    pub fn append(&mut self, other: &CacheSizes) {
        self.0
            .resize_with(self.0.len().max(other.0.len()), FxHashSet::default);
        for (mine, others) in self.0.iter_mut().zip(&other.0) {
            mine.extend(others);
        }
    }

    pub fn count(&self) -> u64 {
        let counts = self.0.iter().map(|sizes| sizes.len() as u64);
        counts.min().unwrap_or(0)
    }
}

pub fn mechanisms() -> Vec<&'static Mechanism> {
    let mut all = designs::mechanisms();
    all.extend(classes::MECHANISMS);
    all
}

/// All amounts by name, for serde.
pub(crate) fn by_name<S: Serializer>(used: &Exercised, to: S) -> Result<S::Ok, S::Error> {
    let all = mechanisms().into_iter();
    to.collect_map(all.map(|mechanism| (mechanism.name, used.of(mechanism))))
}

pub fn exercised(history: &History, explored: &ExploredCuts) -> Exercised {
    let mut exercised = history.exercised();
    exercised.add(&NEXT_LIFE, explored.covered.recovery_cuts);
    exercised.add(&UNDONE, explored.covered.undone);
    exercised.add(&RESTORING, explored.covered.restored);
    exercised.add(&OTHER_CONTENTS, explored.covered.masked);
    exercised.add(&NO_ROOM, explored.covered.no_room);
    exercised.add(&NEAR_ZERO, explored.covered.near_zero);
    exercised.add(&ENDURED, explored.covered.endured);
    exercised.add(&UNWRITTEN, explored.covered.unwritten);
    exercised
}

pub fn reached(history: &History, explored: &ExploredCuts) -> Reached {
    let journal = &history.journal;
    let mut reached = journal.reached;
    let committed = history.committed();
    let mut queued = 0u64;
    for (_, event) in &journal.events {
        match event {
            Event::Ready { .. } => {
                let own = journal.accepted_by(*event).iter();
                queued += own.filter(|write| write.merged_into.is_none()).count() as u64;
                reached.reach(Value::Queued, queued);
            }
            Event::Done(_) => queued = queued.saturating_sub(1),
            _ => {}
        }
    }
    let data = history.data_lines();
    let mut places: FxHashSet<Place> = history.image.written_lines().map(|(at, _)| at).collect();
    places.extend(journal.writes.iter().map(|write| write.place));
    places.retain(|place| place.0 < data);
    let counters = journal.sealed.iter().map(|sealed| sealed.counter);
    for (value, amount) in [
        (Value::Runs, 1),
        (Value::States, explored.covered.states),
        (Value::Transactions, committed.iter().sum()),
        (Value::LongestRun, committed.into_iter().max().unwrap_or(0)),
        (Value::Lives, 1 + explored.covered.later_lives),
        (Value::LaterRun, explored.covered.later_run),
        (Value::Cores, history.programs.len() as u64),
        (Value::Counter, counters.max().unwrap_or(0)),
        (Value::Places, 100 * places.len() as u64 / data.max(1)),
    ] {
        reached.reach(value, amount);
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Platform;

    #[test]
    fn no_plan_waits_for_nodes_that_no_cut_loses() {
        let machine = Machine::load::<&str, &str>("sca", &[]).expect("a machine");
        let stack = &Stack::named("sca@star").expect("a design");
        for (platform, loses) in [
            (Platform::Adr, true),
            (Platform::Bbb, true),
            (Platform::Eadr, false),
        ] {
            let options = Options {
                platform,
                ..Options::default()
            };
            let bounds = Bounds {
                stack,
                machine: &machine,
                durability: DurabilityKind::on(stack),
                options,
                cores: None,
                transactions: None,
                overrides: &[],
                once: false,
            };
            let needs = bounds.needs();
            assert_eq!(needs.contains(&Need::Used(&RESTORING)), loses);
        }
    }
}
