//! How hard one pass of the crash explorer presses on a machine: what makes a power cut dangerous, said without
//! naming a layer. A key answers with the value that brings its mechanism to its limit ([`super::Key::pressed`]).

/// What one pass asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Lines that a cache of metadata has room for; as many as the machine says if none.
    pub cache_lines: Option<u64>,
    /// Queues, and whatever else is filled and then written, have room for a few entries.
    pub short: bool,
    /// Writes from one persisted mark to the limit that it sets, and other distances; the machine's if none.
    pub stride: Option<u64>,
    /// Contents that differ have equal fingerprints.
    pub collisions: bool,
    /// A transaction changes some hundred lines.
    pub long_transactions: bool,
    /// A run comes to the limits of what its layers keep in so many bits, or have room for.
    pub limits: bool,
}

impl Pressure {
    /// All at once: the keys that answer are those that some pass sets.
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
