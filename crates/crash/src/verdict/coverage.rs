//! What a verdict rests on: how far the runs have come, how far they must have come, and what prevents that.

use rustc_hash::FxHashSet;
use serde::Serialize;

use crate::history::History;
use crate::options::{Cuts, Options};
use crate::verdict::findings::Explored;
use sardonyx::config::Machine;
use sardonyx::controller::designs::Stack;
use sardonyx::line::Place;
use sardonyx::mechanisms::{Exercised, Mechanism, Reached, Value};
use sardonyx::medium::levelling::LevellingParams;
use sardonyx::medium::params::{CRASH_CACHED, CRASH_SHORT, Queues};
use sardonyx::plan::journal::{Event, Mark};
use sardonyx::settings::{AnyKey, Pressure};
use sardonyx::workload::DurabilityKind;

/// Mechanisms of every stack that is written through caches.
const EVERYWHERE: [Mechanism; 5] = [
    Mechanism::DirtyEviction,
    Mechanism::CapacityEviction,
    Mechanism::MarkedEviction,
    Mechanism::JoinedEviction,
    Mechanism::NextLife,
];
const OF_CORES: [Mechanism; 3] = [
    Mechanism::SharedCounterLine,
    Mechanism::HandedLine,
    Mechanism::Beside,
];
/// Mechanisms that hang on how long the write queues are.
const OF_QUEUES: [Mechanism; 3] = [
    Mechanism::JoinedEviction,
    Mechanism::Merge,
    Mechanism::Forward,
];
const ALWAYS: [Value; 8] = [
    Value::Runs,
    Value::States,
    Value::Transactions,
    Value::LongestRun,
    Value::Lives,
    Value::Cores,
    Value::Queued,
    Value::Waiting,
];
/// Of one cut in so many life goes on unless something else is asked for: if more rarely, that may be why
/// later lives are few.
const USUAL_RECOVERY_CUTS: u64 = 64;

/// An amount that a verdict may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// How often a mechanism was used.
    Used(Mechanism),
    /// How far a value has come.
    Reached(Value),
}

impl Need {
    pub fn name(self) -> &'static str {
        match self {
            Need::Used(mechanism) => mechanism.name(),
            Need::Reached(value) => value.name(),
        }
    }

    pub fn least(self) -> u64 {
        match self {
            Need::Used(mechanism) => mechanism.least(),
            Need::Reached(value) => value.least(),
        }
    }
}

/// The options that limit what runs can reach.
pub struct Bounds<'a> {
    pub stack: &'a Stack,
    pub machine: &'a Machine,
    /// What makes transactions durable: the program's log, or the hardware's.
    pub durability: DurabilityKind,
    pub options: Options,
    /// Cores, if the user has set them.
    pub cores: Option<usize>,
    /// Transactions, if the user has set them.
    pub transactions: Option<u64>,
    /// Keys and values that the user has set.
    pub overrides: &'a [(String, String)],
    pub once: bool,
}

impl Bounds<'_> {
    /// The amounts that a verdict has to rest on.
    pub fn needs(&self) -> Vec<Need> {
        let queues = &self.machine.engine.medium.queues;
        let mut used = EVERYWHERE.to_vec();
        used.extend(Mechanism::CONTENTS);
        used.extend(queues.coalescing.then_some(Mechanism::Merge));
        used.extend(queues.forwarding.then_some(Mechanism::Forward));
        used.extend(self.stack.tries());
        let interrupts = self.machine.engine.medium.pausing.is_some();
        used.extend(interrupts.then_some(Mechanism::WriteInterrupted));
        let moves = LevellingParams::from_settings(&self.machine.settings).is_some();
        used.extend(moves.then_some(Mechanism::LineMoved));
        let encrypts = self.stack.encrypts(&self.machine.settings);
        used.extend(encrypts.then_some(Mechanism::OtherContents));
        used.extend([Mechanism::HandedLine, Mechanism::Beside]);
        let mut reached = ALWAYS.to_vec();
        reached.extend(self.has_caches().then_some(Value::CacheSizes));
        if used.contains(&Mechanism::NextBucket) {
            reached.push(Value::LogBuckets);
        }
        reached.extend(self.options.attacks.map(|_| Value::Attacks));
        if self.options.recovery_cuts == 0 {
            used.retain(|mechanism| *mechanism != Mechanism::NextLife);
            reached.retain(|value| *value != Value::Lives);
        }
        if self.cores == Some(1) {
            used.retain(|mechanism| !OF_CORES.contains(mechanism));
            reached.retain(|value| *value != Value::Cores);
        }
        if self.durability == DurabilityKind::Hardware {
            // Such a program marks no variable as counter-atomic.
            let marks = [Mechanism::MarkedEviction, Mechanism::MixedCounterLine];
            used.retain(|mechanism| !marks.contains(mechanism));
        }
        let used = used.into_iter().map(Need::Used);
        let mut needs: Vec<Need> = used.chain(reached.into_iter().map(Need::Reached)).collect();
        needs.sort_unstable();
        needs.dedup();
        needs
    }

    /// The needs that options have removed: a verdict of `holds` is limited accordingly.
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

    /// The amounts of `needs` that the runs lack.
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
        let of_cuts = matches!(
            need,
            Need::Reached(Value::States | Value::Lives)
                | Need::Used(Mechanism::NextLife | Mechanism::Undone)
        );
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
            Need::Reached(Value::LogBuckets) => layers
                .any(|about| about.tries.contains(&Mechanism::NextBucket) && varies(about.keys)),
            Need::Used(Mechanism::FullMedium | Mechanism::EndedFull) => key == CRASH_SHORT.name(),
            Need::Used(Mechanism::CapacityEviction) => key == CRASH_CACHED.name(),
            Need::Used(mechanism) => {
                layers.any(|about| about.tries.contains(&mechanism) && varies(about.keys))
                    || OF_QUEUES.contains(&mechanism) && is_of_queues
            }
            Need::Reached(Value::Queued | Value::Waiting) => is_of_queues,
            Need::Reached(_) => false,
        }
    }
}

/// An amount that a verdict needs and the runs have not reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lack {
    pub what: &'static str,
    pub had: u64,
    pub least: u64,
    /// The options that may prevent it; if there are none a plan goes on by itself.
    pub kept_by: Vec<String>,
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

    /// The number of different sizes of the cache with the fewest.
    pub fn count(&self) -> u64 {
        let counts = self.0.iter().map(|sizes| sizes.len() as u64);
        counts.min().unwrap_or(0)
    }
}

pub fn exercised(history: &History, explored: &Explored) -> Exercised {
    let mut exercised = history.exercised();
    exercised.add(Mechanism::NextLife, explored.covered.recovery_cuts);
    exercised.add(Mechanism::Undone, explored.covered.undone);
    exercised.add(Mechanism::OtherContents, explored.covered.masked);
    exercised.add(Mechanism::NoRoom, explored.covered.no_room);
    exercised
}

pub fn reached(history: &History, explored: &Explored) -> Reached {
    let journal = &history.journal;
    let mut reached = journal.reached;
    let mut committed = vec![0u64; history.programs.len()];
    let mut queued = 0u64;
    for (_, event) in &journal.events {
        match event {
            Event::Ready { .. } => {
                let own = journal.accepted_by(*event).iter();
                queued += own.filter(|write| write.merged_into.is_none()).count() as u64;
                reached.reach(Value::Queued, queued);
            }
            Event::Done(_) => queued = queued.saturating_sub(1),
            Event::Mark { core, mark } => {
                committed[*core as usize] += u64::from(matches!(mark, Mark::Committed(_)));
            }
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
        (Value::Cores, history.programs.len() as u64),
        (Value::Counter, counters.max().unwrap_or(0)),
        (Value::Places, 100 * places.len() as u64 / data.max(1)),
    ] {
        reached.reach(value, amount);
    }
    reached
}
