//! The locality ladder: twelve synthetic traces that span the applications of ESD Fig. 1.
//!
//! Duplicate rates run from 33.1 % to 99.9 % with a mean of 62.9 %, and on the mean 0.08 % of the distinct
//! contents are written over 1000 times and hold 42.7 % of the writes (Sec. II-A). Which rung has which
//! hot share is *assumed*; the figures hold at the 500,000 records (300,000 writes) of each rung.

use super::{Addresses, Spec};

/// Name, duplicate rate, share and number of hot contents, share of zeros.
type Rung = (&'static str, f64, f64, u32, f64);

const RUNGS: [Rung; 12] = [
    ("rung-33", 0.331, 0.12, 24, 0.02),
    ("rung-38", 0.38, 0.16, 30, 0.03),
    ("rung-42", 0.42, 0.20, 40, 0.02),
    ("rung-46", 0.46, 0.22, 44, 0.05),
    ("rung-50", 0.50, 0.26, 52, 0.03),
    ("rung-55", 0.55, 0.29, 58, 0.06),
    ("rung-60", 0.60, 0.33, 66, 0.04),
    ("rung-66", 0.66, 0.38, 76, 0.10),
    ("rung-72", 0.72, 0.434, 66, 0.15),
    ("rung-93", 0.93, 0.75, 36, 0.30),
    // Nearly nothing but zeros, as in two of the applications.
    ("rung-99.8", 0.998, 0.986, 1, 0.986),
    ("rung-99.9", 0.999, 0.994, 1, 0.994),
];

/// The twelve specifications, from the fewest duplicates to the most.
pub fn locality_ladder() -> Vec<Spec> {
    RUNGS
        .iter()
        .enumerate()
        .map(
            |(i, &(name, duplicate_rate, hot_share, hot_contents, zero_share))| Spec {
                name: name.to_owned(),
                duplicate_rate,
                hot_share,
                hot_contents,
                zero_share,
                addresses: [Addresses::HotCold, Addresses::Random, Addresses::Sequential][i % 3],
                ..Spec::default()
            },
        )
        .collect()
}
