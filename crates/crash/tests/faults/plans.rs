//! Small plans: each is one run with its first seed, and some of its cuts. They press what the faults of one part hide in.

use sardonyx_workload::{Contents, Sharing};

/// A small plan: one run, some of its cuts, one seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    pub program: &'static str,
    pub cores: u64,
    pub sharing: Sharing,
    /// What the program writes: of numbers more is equal than of what is drawn.
    pub contents: Contents,
    pub item_bytes: u64,
    pub footprint: u64,
    pub transactions: u64,
    pub settings: &'static [(&'static str, &'static str)],
    pub cuts: u64,
    /// One state in this many is followed by a later life, which is cut at every position.
    pub recovery_cuts: u64,
    /// At the end of one short later life in this many everything is checked.
    pub full_life_in: u64,
    /// Attacks of each kind at each look, where there is an integrity.
    pub attacks: u64,
    /// Whether the attacks are made of which none is drawn.
    pub enumerates: bool,
    pub seed: u64,
}

/// Two lines in the cache of counters, short queues and a mark every other counter: a small machine comes in a short run
/// to all that a large one comes to under load.
pub const TIGHT: &[(&str, &str)] = &[
    ("encryption.counter_cache.bytes", "128"),
    ("encryption.counter_cache.ways", "2"),
    ("encryption.mark_stride", "2"),
    ("medium.queues.writes", "4"),
    ("medium.queues.counter_writes", "4"),
    ("medium.queues.high_watermark", "3"),
    ("medium.queues.low_watermark", "1"),
];

pub const SMALL: Plan = Plan {
    program: "btree",
    cores: 1,
    sharing: Sharing::Packed,
    contents: Contents::Drawn,
    item_bytes: 64,
    footprint: 4096,
    transactions: 24,
    settings: TIGHT,
    cuts: 300,
    recovery_cuts: 32,
    full_life_in: 8,
    attacks: 16,
    enumerates: false,
    seed: 1,
};

/// Two cores whose lines share lines of counters, and items larger than the caches of counters.
pub const SHARED: Plan = Plan {
    cores: 2,
    sharing: Sharing::Interleaved { cores: 2 },
    item_bytes: 256,
    footprint: 8192,
    transactions: 24,
    ..SMALL
};

/// Two cores that write what is there already.
pub const DUPLICATES: Plan = Plan {
    program: "duplicates",
    cores: 2,
    sharing: Sharing::Interleaved { cores: 2 },
    footprint: 4096,
    transactions: 40,
    ..SMALL
};

/// Two cores over a hardware log whose buckets hold two records.
pub const LOGGED: Plan = Plan {
    cores: 2,
    sharing: Sharing::Interleaved { cores: 2 },
    item_bytes: 128,
    settings: &[
        ("medium.queues.writes", "4"),
        ("medium.queues.high_watermark", "3"),
        ("medium.queues.low_watermark", "1"),
        ("log.records", "2"),
        ("log.buckets", "320"),
        ("log.timeout_ns", "200"),
    ],
    ..SMALL
};

/// A queue of eight lines before encryption, and short queues below.
pub const WAITING: Plan = Plan {
    settings: &[
        ("medium.queues.writes", "4"),
        ("medium.queues.high_watermark", "3"),
        ("medium.queues.low_watermark", "1"),
        ("dolos.queue", "8"),
    ],
    ..SMALL
};

/// Two cores over a log whose entries wait on chip, where there is room for two or three lines.
pub const PENDING: Plan = Plan {
    settings: &[
        ("medium.queues.writes", "4"),
        ("medium.queues.high_watermark", "3"),
        ("medium.queues.low_watermark", "1"),
        ("log.records", "2"),
        ("log.buckets", "320"),
        ("proteus.queue", "6"),
        ("silo.entries", "2"),
        ("lad.queue", "3"),
    ],
    ..LOGGED
};

/// Two cores over a circular log that comes round several times.
pub const CIRCULAR: Plan = Plan {
    settings: &[
        ("medium.queues.writes", "4"),
        ("medium.queues.high_watermark", "3"),
        ("medium.queues.low_watermark", "1"),
        ("fwb.log_lines", "160"),
    ],
    ..LOGGED
};

/// Many later lives, of which some are as long as the first.
pub const LONG_LIVES: Plan = Plan {
    recovery_cuts: 2,
    transactions: 40,
    cuts: 12_000,
    seed: 4,
    ..LOGGED
};

pub const MANY: Plan = Plan {
    cores: 4,
    sharing: Sharing::Interleaved { cores: 4 },
    ..LOGGED
};

/// Words of eight bytes keep their ciphertext.
pub const WORDS: Plan = Plan {
    settings: &[
        ("encryption.deuce.word_bytes", "8"),
        ("encryption.deuce.epoch", "8"),
        ("medium.queues.writes", "4"),
        ("medium.queues.high_watermark", "3"),
        ("medium.queues.low_watermark", "1"),
    ],
    ..SHARED
};

macro_rules! begun_at {
    ($first:literal) => {
        &[
            ("encryption.first_counter", $first),
            ("memory.past", "empty"), // counter 1, to which a lost carry leads, is the run's
            ("encryption.mark_stride", "7"),
            ("encryption.counter_cache.bytes", "128"),
            ("encryption.counter_cache.ways", "2"),
        ]
    };
}

/// Counters come to 2^32, from 100 below.
pub const BEYOND_32: Plan = Plan {
    settings: begun_at!("4294967196"),
    ..SMALL
};

/// Counters come to 2^56, from 100 below.
pub const BEYOND_56: Plan = Plan {
    settings: begun_at!("72057594037927836"),
    ..SMALL
};

/// With a life of 70,000 writes without a clock.
pub const ENDURED: Plan = Plan {
    settings: &[("pages.crash_endured", "70000")],
    cuts: 20,
    ..SMALL
};

/// Counters of lines come to 2^16, from eight below.
pub const WORDS_BEYOND_16: Plan = Plan {
    settings: &[
        ("encryption.deuce.word_bytes", "8"),
        ("encryption.deuce.epoch", "8"),
        ("encryption.first_counter", "65528"),
    ],
    ..SMALL
};

/// One attack in 256 shows the fault, so there are many.
pub const ATTACKED: Plan = Plan {
    attacks: 128,
    ..SMALL
};

/// A medium that gets full: it has as many places as the run takes.
pub const FULL: Plan = Plan {
    program: "array-swap",
    settings: &[
        ("pages.crash_short", "1"),
        ("pages.crash_spare", "0"),
        ("medium.geometry.channels", "1"),
        ("medium.geometry.ranks", "1"),
        ("medium.geometry.banks", "1"),
        ("medium.geometry.columns", "64"),
        ("esd.amt_bytes", "64"),
        ("esd.amt_ways", "1"),
    ],
    ..SMALL
};

/// A medium that two cores fill with lines that share places.
pub const FULL_OF_DUPLICATES: Plan = Plan {
    settings: FULL.settings,
    cuts: 2000,
    ..DUPLICATES
};

/// A longer run, because a few cuts in many thousands show the fault.
pub const LONG_FULL_OF_DUPLICATES: Plan = Plan {
    transactions: 150,
    contents: Contents::Numbered,
    cuts: 8000,
    seed: 7,
    ..FULL_OF_DUPLICATES
};

/// A log of long transactions, for a rare schedule.
pub const LONG_LOGGED: Plan = Plan {
    transactions: 150,
    contents: Contents::Numbered,
    cuts: 8000,
    recovery_cuts: 4,
    ..LOGGED
};

/// Fewer transactions than the log has registers for.
pub const LOGGED_BRIEFLY: Plan = Plan {
    transactions: 12,
    ..LOGGED
};

/// A drawn attack is unlikely to meet what is wrong, so all are made.
pub const ENUMERATED: Plan = Plan {
    cuts: 20,
    recovery_cuts: 0,
    attacks: 0,
    enumerates: true,
    ..SMALL
};
