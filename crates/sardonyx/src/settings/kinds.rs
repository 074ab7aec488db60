//! What a key may take. A value that has passed its key's range is a [`Value`]; anything else is still
//! text.

use crate::units::{Energy, Time};

/// A checked value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A count, bytes or cycles.
    Int(u64),
    /// A duration, written in nanoseconds.
    Time(Time),
    /// An energy, written in nanojoules.
    Energy(Energy),
    /// Yes or no.
    Bool(bool),
    /// One of the key's words.
    Word(&'static str),
}

/// The values that a key takes.
#[derive(Clone, Copy, Debug)]
pub enum Allowed {
    /// An integer of the range, both ends included.
    Int {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// A power of two of the range.
    PowerOfTwo {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// Memory-clock cycles, or nanoseconds (rounded up) under the name with `_ns`.
    Cycles {
        /// Fewest.
        min: u64,
    },
    /// Nanoseconds, kept to the picosecond.
    Ns {
        /// Shortest, in picoseconds.
        min_ps: u64,
        /// Longest, in picoseconds.
        max_ps: u64,
    },
    /// Nanojoules, kept to the femtojoule.
    Nj,
    /// `true` or `false`.
    Bool,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A word of the key's own grammar.
    Text {
        /// Finds the word that a text stands for.
        known: fn(&str) -> Option<&'static str>,
        /// A description of the grammar.
        range: &'static str,
        /// Words that stand for all others when an assumed value is varied.
        tried: &'static [&'static str],
    },
}

/// Longest latency: one second, in picoseconds.
pub const MAX_LATENCY_PS: u64 = 1_000_000_000_000;
/// Largest energy of one use: 10 microjoules, so that 10^9 uses still fit in a sum.
pub const MAX_ENERGY_NJ: u64 = 10_000;

impl Allowed {
    /// Describes the allowed values, for errors and the documentation.
    pub fn range(&self) -> String {
        match *self {
            Allowed::Int { min, max } => format!("{min} to {max}"),
            Allowed::PowerOfTwo { min, max } => format!("a power of two from {min} to {max}"),
            Allowed::Cycles { min } => format!("{min} or more cycles, at most 1 s"),
            Allowed::Ns { min_ps, max_ps } => {
                format!(
                    "{} to {} ns",
                    Time::from_ps(min_ps).ns(),
                    Time::from_ps(max_ps).ns()
                )
            }
            Allowed::Nj => format!("0 to {MAX_ENERGY_NJ} nJ"),
            Allowed::Bool => "true or false".to_owned(),
            Allowed::Word(words) => format!("one of \"{}\"", words.join("\", \"")),
            Allowed::Text { range, .. } => range.to_owned(),
        }
    }
}

/// A latency's range.
pub const fn latency() -> Allowed {
    Allowed::Ns {
        min_ps: 0,
        max_ps: MAX_LATENCY_PS,
    }
}

/// A clock period's range.
pub const fn clock() -> Allowed {
    Allowed::Ns {
        min_ps: 10,
        max_ps: 1_000_000,
    }
}
