//! The time that the conventional store takes on the paper's server, from counts of what it did: cycles of its
//! processors, and the bytes and look-ups of its drive. Source: ReCAM Sec. IV, which names the server and prints no cost.
//! Left out: how requests queue; the paper's benchmark has one at a time.

use serde::{Deserialize, Serialize};

use super::Activity;
use crate::parameters::Bracket;

/// The costs of what the store does. A bracket's middle is taken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CostModel {
    /// An E5-4650's clock.
    pub clock_mhz: u32,
    /// Cores among which the cycles are divided. *assumed*
    pub cores: u32,
    /// Cycles of a request beside what is listed here: system calls, the file system, the benchmark. *assumed*
    pub request_cycles: Bracket,
    /// SHA-1 on Sandy Bridge: 4.99 with AVX, 7.70 without vectors, as OpenSSL's `sha1-x86_64.pl` lists it.
    pub hash_cycles_per_byte: Bracket,
    /// Bytes compared before a fingerprint is believed. *assumed*
    pub compare_cycles_per_byte: Bracket,
    /// A look-up in memory, of the index, its summary or the translation table: some misses of a cache. *assumed*
    pub lookup_cycles: Bracket,
    /// Microseconds of a look-up that goes to the drive. *assumed*
    pub fetch_us: Bracket,
    /// Whether the drive works while the processors do. *assumed*
    pub overlap: bool,
}

/// Bytes that an 800 GB P3700 writes and reads in a second, as specified.
const WRITTEN_PER_SECOND: f64 = 1.9e9;
const READ_PER_SECOND: f64 = 2.8e9;

impl Default for CostModel {
    fn default() -> CostModel {
        let between = |low, high| Bracket { low, high };
        CostModel {
            clock_mhz: 2_700,
            cores: 1,
            request_cycles: between(5e3, 5e4),
            hash_cycles_per_byte: between(4.99, 7.7),
            compare_cycles_per_byte: between(0.1, 1.0),
            lookup_cycles: between(300.0, 3e3),
            fetch_us: between(20.0, 100.0),
            overlap: false,
        }
    }
}

impl CostModel {
    /// How long the processors work.
    pub fn processor_seconds(&self, done: &Activity) -> f64 {
        let in_memory =
            done.requests + done.bloom_answers + done.cache_answers + done.engine_lookups;
        let cycles = [
            (done.requests, self.request_cycles),
            (done.bytes_hashed, self.hash_cycles_per_byte),
            (done.bytes_compared, self.compare_cycles_per_byte),
            (in_memory, self.lookup_cycles),
        ];
        let cycles: f64 = cycles
            .iter()
            .map(|(times, each)| *times as f64 * each.middle())
            .sum();
        cycles / (f64::from(self.clock_mhz) * 1e6 * f64::from(self.cores))
    }

    /// How long it all takes.
    pub fn seconds(&self, done: &Activity) -> f64 {
        let drive = done.bytes_written as f64 / WRITTEN_PER_SECOND
            + done.bytes_read as f64 / READ_PER_SECOND
            + done.engine_lookups as f64 * self.fetch_us.middle() / 1e6;
        let processors = self.processor_seconds(done);
        match self.overlap {
            true => processors.max(drive),
            false => processors + drive,
        }
    }
}
