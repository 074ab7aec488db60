//! The keys of the processor's caches, which matter to programs and to traces taken at the core.
//! Left out: the caches of the controller.

use crate::config::kinds::{Key, Kind, Value, latency};

const fn bytes(min: u64) -> Kind {
    Kind::Int { min, max: 1 << 32 }
}

const fn ways() -> Kind {
    Kind::Int { min: 1, max: 64 }
}

pub(super) static CACHES: [Key; 10] = [
    int!(
        "caches.l1.bytes",
        bytes(64),
        caches.l1.bytes as u64,
        "Data cache of each core"
    ),
    int!(
        "caches.l1.ways",
        ways(),
        caches.l1.ways as usize,
        "Its ways"
    ),
    time!(
        "caches.l1.latency_ns",
        latency(),
        caches.l1.latency,
        "Its answer; a miss asks the next level then"
    ),
    int!(
        "caches.l2.bytes",
        bytes(0),
        caches.l2.bytes as u64,
        "Second cache of each core; 0 for none"
    ),
    int!(
        "caches.l2.ways",
        ways(),
        caches.l2.ways as usize,
        "Its ways"
    ),
    time!(
        "caches.l2.latency_ns",
        latency(),
        caches.l2.latency,
        "Its answer, asked after L1"
    ),
    int!(
        "caches.llc.bytes",
        bytes(64),
        caches.llc.bytes as u64,
        "Last-level cache, shared by all cores; it holds what any of them has"
    ),
    int!(
        "caches.llc.ways",
        ways(),
        caches.llc.ways as usize,
        "Its ways"
    ),
    time!(
        "caches.llc.latency_ns",
        latency(),
        caches.llc.latency,
        "Its answer, asked after the private levels"
    ),
    flag!(
        "caches.llc.per_core",
        caches.llc_per_core,
        "Its bytes are for each core: N cores share N times as much"
    ),
];
