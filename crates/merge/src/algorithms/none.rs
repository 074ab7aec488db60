//! Nothing merges: the baseline of the others.

use super::Algorithm;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    name: "none",
    line: "nothing merges",
    source: "the simulator",
    keys: Vec::new,
    timed_keys: Vec::new,
    merges: None,
};
