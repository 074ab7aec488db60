//! Time and energy as integers, so that the same inputs give the same output bit for bit.
//!
//! Units live in these types and never in a suffix; at the border (TOML, JSON, Python) the unit is
//! part of the name, as in `read_latency_ns`.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

/// A moment or a duration in integer picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start of the simulation, or no time at all.
    pub const ZERO: Time = Time(0);
    /// A time later than all others, for a source with nothing pending.
    pub const NEVER: Time = Time(u64::MAX);

    /// `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// Rounds `ns` nanoseconds to the nearest picosecond. Negative and absurd values saturate (configuration is
    /// validated before it gets here).
    pub fn from_ns(ns: f64) -> Time {
        Time((ns * 1000.0).round() as u64)
    }

    /// The time in picoseconds.
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// The time in nanoseconds, for reports.
    pub fn ns(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// The time from `earlier` to `self`, zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }
}

macro_rules! sums {
    ($($Unit:ident)+) => {$(
        impl Add for $Unit {
            type Output = $Unit;
            fn add(self, other: $Unit) -> $Unit {
                $Unit(self.0 + other.0)
            }
        }

        impl AddAssign for $Unit {
            fn add_assign(&mut self, other: $Unit) {
                self.0 += other.0;
            }
        }

        impl Mul<u64> for $Unit {
            type Output = $Unit;
            fn mul(self, n: u64) -> $Unit {
                $Unit(self.0 * n)
            }
        }

        impl Sum for $Unit {
            fn sum<I: Iterator<Item = $Unit>>(parts: I) -> $Unit {
                $Unit(parts.map(|part| part.0).sum())
            }
        }
    )+};
}
sums!(Time Energy);

impl Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.ns())
    }
}

/// An amount of energy in integer femtojoules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Energy(u64);

impl Energy {
    /// No energy.
    pub const ZERO: Energy = Energy(0);

    /// `fj` femtojoules.
    pub const fn from_fj(fj: u64) -> Energy {
        Energy(fj)
    }

    /// `nj` nanojoules, rounded to the nearest femtojoule.
    pub fn from_nj(nj: f64) -> Energy {
        Energy((nj * 1e6).round() as u64)
    }

    /// The energy in femtojoules.
    pub const fn fj(self) -> u64 {
        self.0
    }

    /// The energy in nanojoules, for reports.
    pub fn nj(self) -> f64 {
        self.0 as f64 / 1e6
    }
}
