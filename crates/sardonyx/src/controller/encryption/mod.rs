//! The layers that stand on the medium: each takes places and keeps their bytes secret, or not,
//! and each is a policy of when an encryption counter persists with its line.
//! Source: counter mode as SCA, DeWrite and ESD use it; the policies are SCA's (HPCA 2018).
//! Left out: where lines go, which is the mapping layers' to say.

pub mod cfb;
pub mod counter_tags;
pub mod global_counter;
pub mod pad;

use super::Figures;
use super::layers::{Policy, files};
use crate::figures::figures;
use crate::settings::keys;

figures! { "Encryption";
    COUNTER_CACHE_HIT_RATE: Ratio More "counter_cache_hit_rate", "share of look-ups in the counter cache that hit";
    COUNTER_BYTES: Bytes Less "counter_bytes", "bytes of the counters of all lines that have one";
    WASTED_ENCRYPTIONS: Count Less "wasted_encryptions", "encryptions whose result was not used";
}

/// The number of lines that have a counter; unknown after a recovery that did not look through all lines
/// ([`Plan::looks_through`](crate::plan::Plan::looks_through)).
struct Counted(Option<u64>);

impl Counted {
    fn none() -> Counted {
        Counted(Some(0))
    }

    /// Counts a line if it has been `given` its counter now.
    fn add(&mut self, given: bool) {
        if let Some(lines) = &mut self.0 {
            *lines += u64::from(given);
        }
    }

    fn put(&self, bytes_each: u64, out: &mut Figures) {
        if let Some(lines) = self.0 {
            out.put(&COUNTER_BYTES, (lines * bytes_each) as f64);
        }
    }
}

files! { Policy: none counter_mode co_located deuce split }

// Without it `no-encryption` takes the place of any policy.
keys! {
    ENABLED: bool = flag("encryption.enabled", true),
        Assumed("ESD encrypts and does not say how; counter mode as in DeWrite and SCA"),
        "Lines are encrypted in the medium";
}
