//! Where a trace comes from: the JSON under the key `sardonyx.trace` of the file's metadata.
//!
//! Only `version` decides whether a file can be read; everything else informs. Keys that Sardonyx
//! does not know are kept, so that a copy of a trace loses nothing.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Op;

/// The version of the trace format that this build reads and writes.
pub const VERSION: u32 = 1;

/// The Parquet key-value metadata key that holds the provenance.
pub const KEY: &str = "sardonyx.trace";

/// A trace's provenance; every key but `version` may be absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// Version of the trace format; absent means 1.
    pub version: u32,
    /// The program recorded, or the generator.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// One line for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The level of the records: below the last-level cache, or at the core.
    pub level: Level,
    /// The unit of `gap`.
    pub gap_unit: GapUnit,
    /// What the moments of the records are.
    #[serde(skip_serializing_if = "Arrivals::is_closed")]
    pub arrivals: Arrivals,
    /// Everything else in the object, as it was.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Default for Provenance {
    fn default() -> Provenance {
        Provenance {
            version: VERSION,
            program: String::new(),
            description: String::new(),
            level: Level::default(),
            gap_unit: GapUnit::default(),
            arrivals: Arrivals::default(),
            more: Map::new(),
        }
    }
}

/// The fastest clock that a trace may count: 1 THz.
const CLOCK_KHZ_MOST: f64 = 1e9;

/// The remedy for an impossible clock.
pub const CLOCK_REMEDY: &str = "give 0.001 to 1000000 MHz, or leave it out";

/// The key of [`Provenance::more`] that says what addresses the lines are, and its word for addresses of a memory bus.
pub(super) const ADDRESS_SPACE: &str = "address_space";
/// The key that gives the highest line of a physical trace. Other writers may leave it out.
pub(super) const HIGHEST_LINE: &str = "highest_line";
pub(super) const PHYSICAL: &str = "physical";

impl Provenance {
    /// Whether the lines are physical addresses, as a memory controller gets them.
    pub fn is_physical(&self) -> bool {
        let space = self.more.get(ADDRESS_SPACE);
        space.and_then(Value::as_str) == Some(PHYSICAL)
    }

    /// The clock whose cycles the gaps count, in kHz; `None` if they count instructions, or if the trace does not say.
    ///
    /// # Errors
    /// What `clock_mhz` is instead of a clock; see [`CLOCK_REMEDY`].
    pub fn clock_khz(&self) -> Result<Option<u64>, &Value> {
        let (GapUnit::Cycles, Some(clock)) = (self.gap_unit, self.more.get("clock_mhz")) else {
            return Ok(None);
        };
        match clock.as_f64().map(|mhz| mhz * 1000.0) {
            Some(khz) if (1.0..=CLOCK_KHZ_MOST).contains(&khz) => Ok(Some(khz.round() as u64)),
            _ => Err(clock),
        }
    }
}

/// The level at which a trace was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Below the last-level cache: misses, evictions, flushes.
    #[default]
    Memory,
    /// At the core: every access that it makes.
    Cpu,
}

impl Level {
    /// Checks that a trace of this level may have `op`; the error is one line with the remedy.
    pub(super) fn allows(self, op: Op) -> Result<(), String> {
        let (level, remedy) = match (self, op) {
            (Level::Memory, Op::Load | Op::Store) => (
                "memory",
                "loads and stores are what a core does before any cache; say level cpu if it was taken at the core",
            ),
            (Level::Cpu, Op::ReadMiss | Op::DirtyEviction | Op::FlushWriteBack) => (
                "cpu",
                "misses and evictions are for the simulated caches to make; say level memory if it was taken below \
                 caches",
            ),
            _ => return Ok(()),
        };
        let code = op.code();
        Err(format!("op {code} in a trace of level {level}; {remedy}"))
    }
}

/// The unit of a record's `gap`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GapUnit {
    /// Instructions, all threads together (version 1's own unit).
    #[default]
    Instructions,
    /// Cycles of the clock that `clock_mhz` in the provenance gives; of the core's, if it gives none.
    Cycles,
}

/// What the moments of a trace's records are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Gaps of a core, which waits for what it has read.
    #[default]
    Closed,
    /// Stamps of a memory bus: requests arrive at their moment, whatever became of those before.
    Open,
}

impl Arrivals {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    fn is_closed(&self) -> bool {
        *self == Arrivals::Closed
    }
}
