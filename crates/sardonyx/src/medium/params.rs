//! The medium's parameters: geometry, timing by JEDEC names, queues and energy of one channel.
//!
//! Everything here is in memory-clock cycles, as the parts' own files give it; `config` turns
//! nanoseconds into cycles (rounding up) and validates. Sources are given with each preset.

use crate::units::{Energy, Time};

/// Memory-clock cycles.
pub type Cycles = u64;

/// Most banks (ranks times banks) a channel may have: the scheduler keeps them in one bit mask.
pub const MAX_BANKS: usize = 64;

/// How many of everything, and how an address is cut up: from the top row, rank, bank, channel,
/// column (the order of NVMain's default decoder).
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    /// Channels; a power of two.
    pub channels: u64,
    /// Ranks in a channel; a power of two.
    pub ranks: u64,
    /// Banks in a rank; a power of two.
    pub banks: u64,
    /// Rows in a bank.
    pub rows: u64,
    /// Lines in a row; a power of two.
    pub columns: u64,
}

impl Geometry {
    /// Lines that the medium holds.
    pub fn lines(&self) -> u64 {
        self.channels * self.ranks * self.banks * self.rows * self.columns
    }
}

/// Timing constraints in memory-clock cycles, by their JEDEC names.
#[derive(Clone, Debug, PartialEq)]
#[allow(non_snake_case)]
pub struct Timing {
    /// Length of a memory-clock cycle.
    pub clock: Time,
    /// Activate to column command.
    pub tRCD: Cycles,
    /// Column read to first data (CAS latency).
    pub tCL: Cycles,
    /// Column write to first data.
    pub tCWD: Cycles,
    /// Precharge to activate.
    pub tRP: Cycles,
    /// Activate to precharge.
    pub tRAS: Cycles,
    /// Data transfer of a line.
    pub tBURST: Cycles,
    /// Column command to column command.
    pub tCCD: Cycles,
    /// Activate to activate, different banks of a rank.
    pub tRRD: Cycles,
    /// Window in which at most four activates of a rank may fall.
    pub tFAW: Cycles,
    /// End of write data to column read.
    pub tWTR: Cycles,
    /// Column read to precharge, less tBURST - tCCD.
    pub tRTP: Cycles,
    /// Bubble on the data bus between a read and a write, or between ranks.
    pub tRTRS: Cycles,
    /// End of write data (and array write) to precharge.
    pub tWR: Cycles,
    /// Array write of a PCM bank after the data have arrived; 0 for DRAM.
    pub tWP: Cycles,
    /// Length of a refresh.
    pub tRFC: Cycles,
    /// Time between refreshes of a rank; 0 for none.
    pub tREFI: Cycles,
    /// Added to every completion outside the medium (links, pins).
    pub off_chip: Cycles,
}

/// Which of the queued requests goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// First ready (row hit), first come; after `starvation` row hits in a bank the oldest goes.
    FrFcfs {
        /// Row hits of one bank in a row before an older conflict must go; NVMain's is 4.
        starvation: u32,
    },
    /// Strictly in order of arrival.
    Fcfs,
}

/// What becomes of a row after its column command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePolicy {
    /// It stays open until another row is needed.
    Open,
    /// It is precharged unless another queued request hits it.
    Closed,
}

/// The queues of a channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Queues {
    /// Read entries.
    pub reads: usize,
    /// Data write entries.
    pub writes: usize,
    /// Counter write entries; 0 lets counters share the data write queue.
    pub counter_writes: usize,
    /// Ready writes at which a drain begins.
    pub high_watermark: usize,
    /// Ready writes at which a drain ends.
    pub low_watermark: usize,
    /// Writes also go whenever no read is queued, not only in a drain.
    pub idle_writes: bool,
    /// A read of a queued write's line is answered from the queue.
    pub forwarding: bool,
    /// Memory cycles to find that line and copy it.
    pub forwarding_cycles: u64,
    /// A write to a queued write's line replaces its bytes and takes no slot.
    pub coalescing: bool,
    /// A full write queue takes new writes during its drain; NVMain's does not.
    pub refill_in_drain: bool,
    /// Which goes next.
    pub scheduler: Scheduler,
    /// Open or closed page.
    pub page: PagePolicy,
}

/// Energy of one line's access.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessEnergy {
    /// Reading a line that is not in the row buffer (array and buffer).
    pub read: Energy,
    /// Reading a line that is in the row buffer.
    pub row_hit_read: Energy,
    /// Writing a line.
    pub write: Energy,
}

/// Everything about the medium.
#[derive(Clone, Debug, PartialEq)]
pub struct MediumParams {
    /// How many of everything.
    pub geometry: Geometry,
    /// When commands may follow each other.
    pub timing: Timing,
    /// Where requests wait.
    pub queues: Queues,
    /// What an access costs.
    pub energy: AccessEnergy,
    /// Writes a cell survives, for lifetimes.
    pub endurance: u64,
}

/// The on-chip units of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Unit {
    /// AES-128 of a line's pad.
    Aes,
    /// SHA-1 of a line.
    Sha1,
    /// CRC-32 of a line.
    Crc32,
    /// Comparison of two lines.
    Compare,
    /// Look-up in a fingerprint table on chip (ESD's EFIT, the rivals' fingerprint caches).
    Fingerprints,
    /// Look-up in a cache of mapping or other metadata on chip.
    Metadata,
    /// Look-up in the counter cache.
    Counters,
}

impl Unit {
    /// All units, in the order of their discriminants.
    pub const ALL: [Unit; 7] = [
        Unit::Aes,
        Unit::Sha1,
        Unit::Crc32,
        Unit::Compare,
        Unit::Fingerprints,
        Unit::Metadata,
        Unit::Counters,
    ];

    /// The name used in configuration and reports.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Aes => "aes",
            Unit::Sha1 => "sha1",
            Unit::Crc32 => "crc32",
            Unit::Compare => "compare",
            Unit::Fingerprints => "fingerprints",
            Unit::Metadata => "metadata",
            Unit::Counters => "counters",
        }
    }
}

/// One on-chip unit: how long a use takes, how often one may begin, what it costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitParams {
    /// From start to result.
    pub latency: Time,
    /// From one start to the next (0: any number at once).
    pub interval: Time,
    /// Energy of one use.
    pub energy: Energy,
}

/// What the engine needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineParams {
    /// The medium.
    pub medium: MediumParams,
    /// Requests that may be between admission and acceptance (a write) or answer (a read).
    pub ingress: usize,
    /// The on-chip units, indexed by [`Unit`].
    pub units: [UnitParams; Unit::ALL.len()],
}

/// The processor's side: how a trace's gaps become time (`cpu`).
#[derive(Clone, Debug, PartialEq)]
pub struct CoreParams {
    /// Length of a core cycle.
    pub clock: Time,
    /// Instructions fetched and retired a cycle.
    pub width: u64,
    /// Reorder-buffer entries.
    pub window: u64,
    /// Read misses in flight; with caches simulated, misses of loads and stores.
    pub mshrs: usize,
    /// Stores that have missed and wait for their line.
    pub store_queue: usize,
    /// Latency of the caches on the way to memory, added to a read that missed them all.
    pub cache_latency: Time,
}

/// One level of the processor's caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheLevel {
    /// Capacity in bytes.
    pub bytes: u64,
    /// Ways of a set.
    pub ways: usize,
    /// From asking this level to its answer.
    pub latency: Time,
}

/// The processor's caches, for what is simulated from the core down (`cpu`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachesParams {
    /// Private data cache of each core.
    pub l1: CacheLevel,
    /// Private second level of each core; 0 bytes for none.
    pub l2: CacheLevel,
    /// Shared last level.
    pub llc: CacheLevel,
    /// The last level's bytes are for each core, as is its sharing.
    pub llc_per_core: bool,
}
