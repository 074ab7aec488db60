//! The locality ladder: twelve synthetic traces that span the applications of ESD Fig. 1.
//!
//! Duplicate rates run from 33.1 % to 99.9 % with a mean of 62.9 %, and on the mean 0.08 % of the distinct
//! contents are written over 1000 times and hold 42.7 % of the writes (Sec. II-A). Which rung has which
//! hot share is *assumed*; the figures hold at the 300,000 writes of each rung.
//!
//! Which lines are asked for, how far back, and with which gaps is like a recording in `traces/`: two rungs
//! each, one over as many lines as the recording touches, one over four times as many (*assumed*).

use super::recorded::SampleRecording::{self, Cc1, PmdkTx, Redis, Sqlite3, Stockfish, X264};
use super::{Addresses, Spec};

/// A rung's name, duplicate rate, share and number of hot contents, share of zeros, the recording that its requests are
/// like, and by how many times its lines exceed the recording's.
type Rung = (&'static str, f64, f64, u32, f64, SampleRecording, u64);

#[rustfmt::skip]
const RUNGS: [Rung; 12] = [
    ("rung-33",   0.331, 0.12,  24, 0.02,  Cc1,       1),
    ("rung-38",   0.38,  0.16,  30, 0.03,  Redis,     4),
    ("rung-42",   0.42,  0.20,  40, 0.02,  Sqlite3,   1),
    ("rung-46",   0.46,  0.22,  44, 0.05,  Stockfish, 4),
    ("rung-50",   0.50,  0.26,  52, 0.03,  X264,      1),
    ("rung-55",   0.55,  0.29,  58, 0.06,  PmdkTx,    4),
    ("rung-60",   0.60,  0.33,  66, 0.04,  Redis,     1),
    ("rung-66",   0.66,  0.38,  76, 0.10,  Cc1,       4),
    ("rung-72",   0.72,  0.434, 66, 0.15,  PmdkTx,    1),
    ("rung-93",   0.93,  0.75,  36, 0.30,  X264,      4),
    // Nearly nothing but zeros, as in two of the applications.
    ("rung-99.8", 0.998, 0.986, 1,  0.986, Stockfish, 1),
    ("rung-99.9", 0.999, 0.994, 1,  0.994, Sqlite3,   4),
];

const WRITES: f64 = 300_000.0;

/// The twelve specifications, from the fewest duplicates to the most.
pub fn locality_ladder() -> Vec<Spec> {
    RUNGS
        .iter()
        .map(
            |&(name, duplicate_rate, hot_share, hot_contents, zero_share, like, times)| {
                let recorded = like.statistics();
                Spec {
                    name: name.to_owned(),
                    records: (WRITES / (1.0 - recorded.read_share)) as u64,
                    duplicate_rate,
                    hot_share,
                    hot_contents,
                    zero_share,
                    footprint_lines: recorded.lines * times,
                    read_share: recorded.read_share,
                    mean_gap: recorded.mean_gap,
                    addresses: Addresses::Like(like),
                    ..Spec::default()
                }
            },
        )
        .collect()
}
