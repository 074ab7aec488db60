//! What a run of the crash explorer has tried: mechanisms that a power cut could find a fault in, and how
//! often each was used; and the values that the run has reached. A verdict rests on these amounts. Whoever counts a
//! mechanism declares it: a layer those of its own, this file those of machine and explorer.

use serde::{Serialize, Serializer};

use crate::settings::Settings;

/// A state or a transition of a machine, counted to see whether runs reach it.
#[derive(Debug)]
pub struct Mechanism {
    /// Its name in reports.
    pub name: &'static str,
    /// The least number of uses that a verdict rests on (argued in `docs/crash/explorer.md`); 0 if the number is
    /// reported and no verdict depends on it.
    pub least: u64,
    /// Keys with values that bring runs to it.
    pub by: &'static [(&'static str, u64)],
    /// Whether it can occur at all under the machine's settings.
    pub occurs: fn(&Settings) -> bool,
}

impl Mechanism {
    /// The mechanism that is called `name`, of which a verdict needs `least` uses.
    pub const fn new(name: &'static str, least: u64) -> Mechanism {
        Mechanism {
            name,
            least,
            by: &[],
            occurs: |_| true,
        }
    }

    /// The mechanism, restricted to settings under which it can occur.
    #[must_use]
    pub const fn under(mut self, occurs: fn(&Settings) -> bool) -> Mechanism {
        self.occurs = occurs;
        self
    }

    /// The mechanism, to which these keys bring runs.
    #[must_use]
    pub const fn by(mut self, keys: &'static [(&'static str, u64)]) -> Mechanism {
        self.by = keys;
        self
    }
}

impl PartialEq for Mechanism {
    fn eq(&self, other: &Mechanism) -> bool {
        self.name == other.name
    }
}

impl Eq for Mechanism {}

/// Declares mechanisms: for each its name, the least amount that a verdict rests on, the keys with values that bring
/// runs to it if the plan may not, and the settings under which it occurs if not under all. `MECHANISMS` lists them.
#[macro_export]
#[doc(hidden)]
macro_rules! mechanisms {
    ($($mechanism:ident = $name:literal, least $least:literal $(, by $by:expr)? $(, under $occurs:expr)?;)+) => {
        $(#[doc = $name]
        pub static $mechanism: $crate::mechanisms::Mechanism =
            $crate::mechanisms::Mechanism::new($name, $least)$(.by($by))?$(.under($occurs))?;)+

        /// The mechanisms that are declared here.
        pub const MECHANISMS: &[&$crate::mechanisms::Mechanism] = &[$(&$mechanism),+];
    };
}
pub use mechanisms;

mechanisms! {
    DIRTY_EVICTION = "dirty evictions", least 30;
    MARKED_EVICTION = "marked evictions", least 30;
    CAPACITY_EVICTION = "evictions by capacity", least 30, by &[("pages.crash_cached", 2)];
    MARKED_CAPACITY_EVICTION = "marked evictions by capacity", least 0;
    MIXED_COUNTER_LINE = "mixed counter lines", least 30;
    SHARED_COUNTER_LINE = "shared counter lines", least 30;
    HANDED_LINE = "lines handed between cores", least 30;
    BESIDE = "transactions beside another core's", least 30;
    ENDED_FULL = "runs ended by what is full", least 1, by &[("pages.crash_short", 1)];
    NO_ROOM = "recoveries without a place", least 0;
    OTHER_CONTENTS = "runs with other contents", least 10;
    NEXT_LIFE = "cuts of a second life", least 300;
    RESTORING = "recoveries that restore nodes", least 300;
    NEAR_ZERO = "lines near zero", least 30;
    ENDURED = "writes of an endurance life", least 70_000, by &[("pages.crash_endured", 80_000)];
    UNWRITTEN = "unwritten lines read", least 300;
}

crate::names::named! {
    /// How far runs have come in what a fault could hang on.
    Value {
        /// Runs: one draw each of the caches' size, of delays, pauses and evictions.
        Runs = "runs",
        /// States: cuts that leave bytes that no earlier cut of their run left.
        States = "states",
        /// Transactions committed before a first cut.
        Transactions = "transactions",
        /// Transactions that one core has committed in one run, at most.
        LongestRun = "transactions of a core",
        /// Lives of the programs, at most: one more for each cut in the one before.
        Lives = "lives",
        /// Transactions that one core has committed in a life after the first, at most.
        LaterRun = "transactions of a core in a later life",
        /// Cores, at most.
        Cores = "cores",
        /// Different sizes of each metadata cache.
        CacheSizes = "sizes of metadata caches",
        /// Writes accepted and not in the array yet, at most.
        Queued = "writes queued",
        /// Write requests handled and not accepted yet, at most.
        Waiting = "write requests waiting",
        /// Buckets of the hardware log in use at one time, at most.
        LogBuckets = "log buckets in use",
        /// Places of a mapping in use at one time, at most.
        PlacesInUse = "places in use",
        /// The greatest encryption counter.
        Counter = "greatest counter",
        /// Attacks of each kind, with the power off and in a run: of the one that was tried least.
        Attacks = "attacks of each kind",
        /// Per cent of the medium's places that were ever written, in the fullest run.
        Places = "per cent of places",
    }
}

impl Value {
    /// The least amount that a verdict rests on.
    pub const fn least(self) -> u64 {
        match self {
            Value::States => 1_000,
            Value::Transactions => 100,
            Value::LongestRun | Value::Attacks => 20,
            Value::Runs => 5,
            Value::LaterRun => 10,
            Value::Queued => 4,
            Value::Lives | Value::Cores | Value::CacheSizes => 2,
            Value::Waiting | Value::LogBuckets => 2,
            Value::PlacesInUse | Value::Counter | Value::Places => 0,
        }
    }

    /// Whether the amounts of several runs add up; otherwise the greatest one counts.
    const fn adds_up(self) -> bool {
        matches!(
            self,
            Value::Runs | Value::States | Value::Transactions | Value::Attacks
        )
    }
}

/// The amount that the runs have reached for each [`Value`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached([u64; Value::ALL.len()]);

impl Reached {
    /// Notes that `value` has reached `amount`.
    pub fn reach(&mut self, value: Value, amount: u64) {
        let most = &mut self.0[value as usize];
        *most = amount.max(*most);
    }

    /// Combines these amounts with those of other runs.
    pub fn append(&mut self, other: &Reached) {
        for value in Value::ALL {
            match value.adds_up() {
                true => self.0[value as usize] += other.of(value),
                false => self.reach(value, other.of(value)),
            }
        }
    }

    /// The amount reached for `value`.
    pub fn of(&self, value: Value) -> u64 {
        self.0[value as usize]
    }
}

/// How often each mechanism was used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exercised(Vec<(&'static Mechanism, u64)>);

impl Exercised {
    /// Counts one use of `mechanism`.
    pub fn count(&mut self, mechanism: &'static Mechanism) {
        self.add(mechanism, 1);
    }

    /// Counts `times` uses of `mechanism`.
    pub fn add(&mut self, mechanism: &'static Mechanism, times: u64) {
        let mut known = self.0.iter_mut();
        match known.find(|(known, _)| std::ptr::eq(*known, mechanism)) {
            Some((_, all)) => *all += times,
            None => self.0.push((mechanism, times)),
        }
    }

    /// Adds all uses of `other`.
    pub fn append(&mut self, other: &Exercised) {
        for (mechanism, times) in &other.0 {
            self.add(mechanism, *times);
        }
    }

    /// How often `mechanism` was used.
    pub fn of(&self, mechanism: &Mechanism) -> u64 {
        let known = self.0.iter().filter(|(known, _)| *known == mechanism);
        known.map(|(_, times)| times).sum()
    }
}

impl Serialize for Reached {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Value::ALL.map(|v| (v.name(), self.of(v))))
    }
}
