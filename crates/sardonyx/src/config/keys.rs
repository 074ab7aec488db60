//! The table of keys: name, kind, range and meaning of every parameter, one row each, with how to
//! get it from a `Machine` and how to set it. Rows of a section stand together.
//! To add a parameter: its field, its row here, its value in `machines/esd.toml`.

use super::kinds::{Key, Kind, Value, clock, latency};
use crate::medium::params::Unit;

macro_rules! int {
    ($name:literal, $kind:expr, $($field:ident).+ as $type:ty, $meaning:literal) => {
        Key {
            name: $name,
            kind: $kind,
            meaning: $meaning,
            get: |m| Some(Value::Int(m.$($field).+ as u64)),
            set: |m, v| m.$($field).+ = v.int() as $type,
        }
    };
}

macro_rules! time {
    ($name:literal, $kind:expr, $($field:ident).+, $meaning:literal) => {
        Key {
            name: $name,
            kind: $kind,
            meaning: $meaning,
            get: |m| Some(Value::Time(m.$($field).+)),
            set: |m, v| m.$($field).+ = v.time(),
        }
    };
}

macro_rules! flag {
    ($name:literal, $($field:ident).+, $meaning:literal) => {
        Key {
            name: $name,
            kind: Kind::Bool,
            meaning: $meaning,
            get: |m| Some(Value::Bool(m.$($field).+)),
            set: |m, v| m.$($field).+ = v.flag(),
        }
    };
}

macro_rules! energy {
    ($name:literal, $($field:ident).+, $meaning:literal) => {
        Key {
            name: $name,
            kind: Kind::Nj,
            meaning: $meaning,
            get: |m| Some(Value::Energy(m.$($field).+)),
            set: |m, v| m.$($field).+ = v.energy(),
        }
    };
}

/// A field of a plain enum: the words and the variants, side by side.
macro_rules! word {
    ($name:literal, $($field:ident).+, { $($word:literal => $variant:path),+ }, $meaning:literal) => {
        Key {
            name: $name,
            kind: Kind::Word(&[$($word),+]),
            meaning: $meaning,
            get: |m| Some(Value::Word(match m.$($field).+ { $($variant => $word),+ })),
            set: |m, v| {
                let named = [$(($word, $variant)),+];
                let chosen = named.iter().find(|(word, _)| *word == v.word());
                m.$($field).+ = chosen.expect("a checked word is one of the key's").1;
            },
        }
    };
}

macro_rules! unit {
    ($unit:path, $latency:literal, $interval:literal, $energy:literal, $what:literal) => {
        [
            Key {
                name: $latency,
                kind: latency(),
                meaning: concat!($what, ": from start to result"),
                get: |m| Some(Value::Time(m.engine.units[$unit as usize].latency)),
                set: |m, v| m.engine.units[$unit as usize].latency = v.time(),
            },
            Key {
                name: $interval,
                kind: latency(),
                meaning: concat!(
                    $what,
                    ": from one start to the next; 0 is any number at once"
                ),
                get: |m| Some(Value::Time(m.engine.units[$unit as usize].interval)),
                set: |m, v| m.engine.units[$unit as usize].interval = v.time(),
            },
            Key {
                name: $energy,
                kind: Kind::Nj,
                meaning: concat!($what, ": energy of one use"),
                get: |m| Some(Value::Energy(m.engine.units[$unit as usize].energy)),
                set: |m, v| m.engine.units[$unit as usize].energy = v.energy(),
            },
        ]
    };
}

// After the macros, which they use.
mod caches;
mod controller;
mod medium;

static MACHINE: [Key; 9] = [
    int!(
        "cores",
        Kind::Int { min: 1, max: 1024 },
        cores as usize,
        "Cores"
    ),
    time!(
        "core.clock_ns",
        clock(),
        core.clock,
        "Length of a core cycle"
    ),
    int!(
        "core.width",
        Kind::Int { min: 1, max: 64 },
        core.width as u64,
        "Instructions fetched and retired a cycle"
    ),
    int!(
        "core.window",
        Kind::Int {
            min: 1,
            max: 65_536
        },
        core.window as u64,
        "Reorder-buffer entries"
    ),
    int!(
        "core.mshrs",
        Kind::Int { min: 1, max: 4_096 },
        core.mshrs as usize,
        "Read misses in flight; with caches simulated, misses of loads and stores"
    ),
    int!(
        "core.store_queue",
        Kind::Int { min: 1, max: 4_096 },
        core.store_queue as usize,
        "With caches simulated: stores that wait for their line"
    ),
    time!(
        "core.cache_latency_ns",
        latency(),
        core.cache_latency,
        "Caches on the way to memory, added to a read that missed them all"
    ),
    int!(
        "engine.ingress",
        Kind::Int {
            min: 1,
            max: 1 << 20
        },
        engine.ingress as usize,
        "Requests between admission and acceptance or answer"
    ),
    int!(
        "medium.endurance",
        Kind::Int {
            min: 1,
            max: 1 << 60
        },
        engine.medium.endurance as u64,
        "Writes that a cell survives"
    ),
];

static UNITS: [[Key; 3]; 7] = [
    unit!(
        Unit::Aes,
        "units.aes.latency_ns",
        "units.aes.interval_ns",
        "units.aes.energy_nj",
        "AES-128 of a line's pad"
    ),
    unit!(
        Unit::Sha1,
        "units.sha1.latency_ns",
        "units.sha1.interval_ns",
        "units.sha1.energy_nj",
        "SHA-1 of a line"
    ),
    unit!(
        Unit::Crc32,
        "units.crc32.latency_ns",
        "units.crc32.interval_ns",
        "units.crc32.energy_nj",
        "CRC-32 of a line"
    ),
    unit!(
        Unit::Compare,
        "units.compare.latency_ns",
        "units.compare.interval_ns",
        "units.compare.energy_nj",
        "Comparison of two lines"
    ),
    unit!(
        Unit::Fingerprints,
        "units.fingerprints.latency_ns",
        "units.fingerprints.interval_ns",
        "units.fingerprints.energy_nj",
        "Look-up of a fingerprint on chip"
    ),
    unit!(
        Unit::Metadata,
        "units.metadata.latency_ns",
        "units.metadata.interval_ns",
        "units.metadata.energy_nj",
        "Look-up in a metadata cache"
    ),
    unit!(
        Unit::Counters,
        "units.counters.latency_ns",
        "units.counters.interval_ns",
        "units.counters.energy_nj",
        "Look-up in the counter cache"
    ),
];

/// Every key, section by section; a machine is built in this order, so the clock comes before the
/// timings and the scheduler before its threshold.
pub fn all() -> impl DoubleEndedIterator<Item = &'static Key> + Clone {
    static BEFORE_UNITS: [&[Key]; 5] = [
        &MACHINE,
        &caches::CACHES,
        &medium::GEOMETRY,
        &medium::TIMING,
        &medium::QUEUES,
    ];
    static AFTER_UNITS: [&[Key]; 3] = [
        &controller::ENCRYPTION,
        &controller::ESD,
        &controller::RIVALS,
    ];
    let rows = |tables: &'static [&[Key]]| tables.iter().flat_map(|table| table.iter());
    rows(&BEFORE_UNITS)
        .chain(UNITS.iter().flatten())
        .chain(rows(&AFTER_UNITS))
}
