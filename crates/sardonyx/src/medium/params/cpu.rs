//! The processor's side: how a trace's gaps become time (`cpu`).

use super::int;
use crate::settings::{clock, latency, section};
use crate::units::Time;

section! {
    /// The processor's side: how a trace's gaps become time (`cpu`).
    CoreParams "core.";
    [clock: Time] "clock_ns" clock(), "Length of a core cycle";
    [width: u64] "width" int(1, 64), "Instructions fetched and retired a cycle";
    [window: u64] "window" int(1, 65_536), "Reorder-buffer entries";
    [mshrs: usize] "mshrs" int(1, 4_096),
        "Read misses in flight; with caches simulated, misses of loads and stores";
    [store_queue: usize] "store_queue" int(1, 4_096),
        "With caches simulated: stores that wait for their line";
    [cache_latency: Time] "cache_latency_ns" latency(),
        "Caches on the way to memory, added to a read that missed them all";
}
