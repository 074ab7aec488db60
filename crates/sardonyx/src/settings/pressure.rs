//! How hard one pass of the crash explorer presses on a machine: what makes a power cut dangerous, without naming a
//! layer. A key answers with the value that brings its mechanism to its limit ([`super::Key::pressed`]). And the limits
//! that layers and parts of the machine declare.

use super::Key;

/// The pressure of one pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// The number of lines in a metadata cache; `None`: the machine's.
    pub cache_lines: Option<u64>,
    /// Whether queues, and everything else that is filled and then written, have room for a few entries only.
    pub short: bool,
    /// The number of writes from one persisted mark to the limit that it sets, and similar distances; `None` leaves the
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
    /// All pressures at once. The keys that respond are those that some pass sets.
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

/// A number that a layer or a part of the machine keeps in a fixed number of bits, or a table of a fixed size. At such
/// a limit a fault can show that no run from the beginning reaches. The crash explorer's plan has passes that reach the
/// limit, or says that none does.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The name of what is limited, for reports.
    pub name: &'static str,
    /// The number of bits.
    pub bits: u32,
    /// The key that sets where counting begins, if it can begin elsewhere than at 0.
    pub begins: Option<&'static Key<u64>>,
    /// Whether pads, or the values that they begin with, are made of the number: then different numbers must not give
    /// the same pad.
    pub pads: bool,
    /// The way in which a run reaches the limit.
    pub reached: Reached,
}

const CRASH_FIRST: &str = "pages.crash_first";
const PAGE_LINES: u64 = 64;
/// Powers of two beyond which lines lie in passes about high places.
pub const HIGH: &[u32] = &[16, 24, 32];

impl Limit {
    /// A limit of a number that begins at 0 and of which no pad is made, and the reason why no run reaches it.
    pub const fn unreached(name: &'static str, bits: u32, why: &'static str) -> Limit {
        Limit {
            name,
            bits,
            begins: None,
            pads: false,
            reached: Reached::Never(why),
        }
    }

    /// The number of passes that reach the limit.
    pub fn passes(&self) -> usize {
        match self.reached {
            Reached::Near { bits, .. } | Reached::High { bits } => bits.len(),
            Reached::Pressed => 1,
            Reached::Never(_) => 0,
        }
    }

    /// The settings of pass `number`: keys and values.
    pub fn at(&self, number: usize) -> Vec<(&'static str, u64)> {
        match self.reached {
            Reached::Near { bits, below } => {
                let key = self.begins.map(Key::name);
                let near = bits.get(number).map(|bits| (1 << bits) - below);
                key.zip(near).into_iter().collect()
            }
            Reached::High { bits } => {
                let pages = bits.get(number).map(|bits| (1 << bits) / PAGE_LINES - 1);
                let pages = pages.map(|pages| (CRASH_FIRST, pages));
                pages.into_iter().collect()
            }
            Reached::Pressed | Reached::Never(_) => Vec::new(),
        }
    }

    /// The limit's name and the reason why no run reaches it, if none does.
    pub fn never(&self) -> Option<(&'static str, &'static str)> {
        match self.reached {
            Reached::Never(why) => Some((self.name, why)),
            _ => None,
        }
    }
}

/// How a run reaches a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The number begins `below` before 2 to each of these powers, one power for each pass: where the number is carried
    /// into another byte, and where a narrower width than the declared one would overflow.
    Near {
        /// The powers.
        bits: &'static [u32],
        /// The distance below the power of two.
        below: u64,
    },
    /// Lines lie on both sides of 2 to each of these powers, one power for each pass, in a medium that has as many.
    High {
        /// The powers.
        bits: &'static [u32],
    },
    /// Keys under [`Pressure::limits`] make every run of such a pass reach the limit.
    Pressed,
    /// No run reaches the limit, for this reason.
    Never(&'static str),
}
