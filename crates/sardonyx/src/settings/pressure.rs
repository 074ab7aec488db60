//! How hard one pass of the crash explorer presses on a machine: what makes a power cut dangerous, without naming a
//! layer. A key answers with the value that brings its mechanism to its limit ([`super::Key::pressed`]).

/// The pressure of one pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// The number of lines in a metadata cache; `None`: the machine's.
    pub cache_lines: Option<u64>,
    /// Whether queues, and whatever else is filled and then written, have room for a few entries only.
    pub short: bool,
    /// The number of writes from one persisted mark to the limit that it sets, and other distances; `None`: the
    /// machine's.
    pub stride: Option<u64>,
    /// Whether different contents have equal fingerprints.
    pub collisions: bool,
    /// Whether a transaction changes some hundred lines.
    pub long_transactions: bool,
    /// Whether a run reaches the limits of its layers' counters and tables.
    pub limits: bool,
}

impl Pressure {
    /// All pressures at once: the keys that answer are those that some pass sets.
    pub fn all() -> Pressure {
        Pressure {
            cache_lines: Some(2),
            short: true,
            stride: Some(2),
            collisions: true,
            long_transactions: true,
            limits: true,
        }
    }
}
