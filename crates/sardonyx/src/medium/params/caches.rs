//! The processor's caches, for what is simulated from the core down (`cpu`).

use super::int;
use crate::settings::{Allowed, Row, Settings, latency, rows};
use crate::units::Time;

/// One level of the processor's caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheLevel {
    /// Capacity in bytes.
    pub bytes: u64,
    /// Ways of a set.
    pub ways: usize,
    /// The time from asking this level to its answer.
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
}

impl CachesParams {
    /// The parameters of the caches.
    pub const ROWS: &'static [Row] = rows! { "caches.";
        "l1.bytes" int(64, 1 << 32), "Data cache of each core";
        "l1.ways" int(1, 64), "Its ways";
        "l1.latency_ns" latency(), "Its answer; a miss asks the next level then";
        "l2.bytes" int(0, 1 << 32), "Second cache of each core; 0 for none";
        "l2.ways" int(1, 64), "Its ways";
        "l2.latency_ns" latency(), "Its answer, asked after L1";
        "llc.bytes" int(64, 1 << 32),
            "Last-level cache, shared by all cores; it holds what any of them has";
        "llc.ways" int(1, 64), "Its ways";
        "llc.latency_ns" latency(), "Its answer, asked after the private levels";
        "llc.per_core" Allowed::Bool, "Its bytes are for each core: N cores share N times as much";
    };

    /// The parameters in `settings`.
    pub fn from_settings(settings: &Settings) -> CachesParams {
        let level = |name| CacheLevel {
            bytes: settings.named(&format!("caches.{name}.bytes")),
            ways: settings.named(&format!("caches.{name}.ways")),
            latency: settings.named(&format!("caches.{name}.latency_ns")),
        };
        CachesParams {
            l1: level("l1"),
            l2: level("l2"),
            llc: level("llc"),
        }
    }
}
