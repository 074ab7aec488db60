//! The medium's keys: geometry, timing by JEDEC names, queues and energy of a channel.
//! What each means in full stands in `medium::params`.
//! Left out: endurance, which stands with the machine's few single keys.

use crate::config::kinds::{Key, Kind, Value, clock};
use crate::medium::params::{PagePolicy, Scheduler};

macro_rules! cycles {
    ($name:literal, $min:literal, $field:ident, $meaning:literal) => {
        Key {
            name: $name,
            kind: Kind::Cycles { min: $min },
            meaning: $meaning,
            get: |m| Some(Value::Int(m.engine.medium.timing.$field)),
            set: |m, v| m.engine.medium.timing.$field = v.int(),
        }
    };
}

pub(super) static GEOMETRY: [Key; 5] = [
    int!(
        "medium.geometry.channels",
        Kind::PowerOfTwo { max: 64 },
        engine.medium.geometry.channels as u64,
        "Channels"
    ),
    int!(
        "medium.geometry.ranks",
        Kind::PowerOfTwo { max: 64 },
        engine.medium.geometry.ranks as u64,
        "Ranks in a channel"
    ),
    int!(
        "medium.geometry.banks",
        Kind::PowerOfTwo { max: 64 },
        engine.medium.geometry.banks as u64,
        "Banks in a rank; ranks x banks at most 64"
    ),
    int!(
        "medium.geometry.rows",
        Kind::Int {
            min: 1,
            max: 1 << 36
        },
        engine.medium.geometry.rows as u64,
        "Rows in a bank"
    ),
    int!(
        "medium.geometry.columns",
        Kind::PowerOfTwo { max: 65_536 },
        engine.medium.geometry.columns as u64,
        "64-byte lines in a row"
    ),
];

pub(super) static TIMING: [Key; 18] = [
    time!(
        "medium.timing.clock_ns",
        clock(),
        engine.medium.timing.clock,
        "Length of a memory-clock cycle"
    ),
    cycles!("medium.timing.tRCD", 0, tRCD, "Activate to column command"),
    cycles!("medium.timing.tCL", 0, tCL, "Column read to first data"),
    cycles!("medium.timing.tCWD", 0, tCWD, "Column write to first data"),
    cycles!("medium.timing.tRP", 0, tRP, "Precharge to activate"),
    cycles!("medium.timing.tRAS", 0, tRAS, "Activate to precharge"),
    cycles!("medium.timing.tBURST", 1, tBURST, "Data transfer of a line"),
    cycles!(
        "medium.timing.tCCD",
        1,
        tCCD,
        "Column command to column command"
    ),
    cycles!(
        "medium.timing.tRRD",
        0,
        tRRD,
        "Activate to activate, other bank of the rank"
    ),
    cycles!(
        "medium.timing.tFAW",
        0,
        tFAW,
        "Window of at most four activates of a rank; 0 for none"
    ),
    cycles!(
        "medium.timing.tWTR",
        0,
        tWTR,
        "End of write data to column read"
    ),
    cycles!(
        "medium.timing.tRTP",
        0,
        tRTP,
        "Column read to precharge, less tBURST - tCCD"
    ),
    cycles!(
        "medium.timing.tRTRS",
        0,
        tRTRS,
        "Data-bus bubble, read to write or rank to rank"
    ),
    cycles!(
        "medium.timing.tWR",
        0,
        tWR,
        "End of write data (and array write) to precharge"
    ),
    cycles!(
        "medium.timing.tWP",
        0,
        tWP,
        "Array write of a PCM bank; 0 for DRAM"
    ),
    cycles!("medium.timing.tRFC", 0, tRFC, "Length of a refresh"),
    cycles!(
        "medium.timing.tREFI",
        0,
        tREFI,
        "Time between refreshes of a rank; 0 for none"
    ),
    cycles!(
        "medium.timing.off_chip",
        0,
        off_chip,
        "Added to every completion (links, pins)"
    ),
];

pub(super) static QUEUES: [Key; 16] = [
    int!(
        "medium.queues.reads",
        Kind::Int { min: 1, max: 4_096 },
        engine.medium.queues.reads as usize,
        "Read entries of a channel"
    ),
    int!(
        "medium.queues.writes",
        Kind::Int { min: 1, max: 4_096 },
        engine.medium.queues.writes as usize,
        "Data write entries of a channel"
    ),
    int!(
        "medium.queues.counter_writes",
        Kind::Int { min: 0, max: 4_096 },
        engine.medium.queues.counter_writes as usize,
        "Counter write entries; 0 lets counters share the data write queue"
    ),
    int!(
        "medium.queues.high_watermark",
        Kind::Int { min: 1, max: 4_096 },
        engine.medium.queues.high_watermark as usize,
        "Ready writes at which a drain begins; at most writes"
    ),
    int!(
        "medium.queues.low_watermark",
        Kind::Int { min: 0, max: 4_095 },
        engine.medium.queues.low_watermark as usize,
        "Ready writes at which a drain ends; below high_watermark"
    ),
    flag!(
        "medium.queues.idle_writes",
        engine.medium.queues.idle_writes,
        "Writes also go whenever no read is queued"
    ),
    flag!(
        "medium.queues.forwarding",
        engine.medium.queues.forwarding,
        "A read of a queued write's line is answered from the queue"
    ),
    int!(
        "medium.queues.forwarding_cycles",
        Kind::Int {
            min: 1,
            max: 1_000_000
        },
        engine.medium.queues.forwarding_cycles as u64,
        "Memory cycles to find a queued write's line and copy it"
    ),
    flag!(
        "medium.queues.coalescing",
        engine.medium.queues.coalescing,
        "A write to a queued write's line replaces its bytes"
    ),
    flag!(
        "medium.queues.refill_in_drain",
        engine.medium.queues.refill_in_drain,
        "New writes are accepted while the write queue drains"
    ),
    Key {
        name: "medium.queues.scheduler",
        kind: Kind::Word(&["fr-fcfs", "fcfs"]),
        meaning: "First ready, first come; or strictly in order of arrival",
        get: |m| {
            Some(Value::Word(match m.engine.medium.queues.scheduler {
                Scheduler::FrFcfs { .. } => "fr-fcfs",
                Scheduler::Fcfs => "fcfs",
            }))
        },
        set: |m, v| {
            m.engine.medium.queues.scheduler = match v.word() {
                "fcfs" => Scheduler::Fcfs,
                _ => Scheduler::FrFcfs { starvation: 1 },
            }
        },
    },
    Key {
        name: "medium.queues.starvation",
        kind: Kind::Int {
            min: 1,
            max: 1_000_000,
        },
        meaning: "Row hits of a bank before an older conflict must go; fr-fcfs only",
        get: |m| match m.engine.medium.queues.scheduler {
            Scheduler::FrFcfs { starvation } => Some(Value::Int(starvation.into())),
            Scheduler::Fcfs => None,
        },
        set: |m, v| {
            if let Scheduler::FrFcfs { starvation } = &mut m.engine.medium.queues.scheduler {
                *starvation = v.int() as u32;
            }
        },
    },
    word!("medium.queues.page", engine.medium.queues.page,
        { "open" => PagePolicy::Open, "closed" => PagePolicy::Closed },
        "Whether a row stays open after its column command"),
    energy!(
        "medium.energy.read_nj",
        engine.medium.energy.read,
        "Reading a line that is not in the row buffer"
    ),
    energy!(
        "medium.energy.row_hit_read_nj",
        engine.medium.energy.row_hit_read,
        "Reading a line that is in the row buffer"
    ),
    energy!(
        "medium.energy.write_nj",
        engine.medium.energy.write,
        "Writing a line"
    ),
];
