//! Figures: what is counted, measured or derived of a run, each declared where it is counted, with its unit,
//! the direction that is better and its meaning. Left out: how they are written, which the border does.

use serde::{Serialize, Serializer};

use crate::units::{Energy, Time};

crate::names::named! {
    /// What a figure's value is of, and so its unit.
    Quantity {
        /// A number of things or of times.
        Count = "",
        /// A part of a whole, or one amount over another.
        Ratio = "ratio",
        /// Simulated time.
        Nanoseconds = "ns",
        /// Energy.
        Nanojoules = "nJ",
        /// Energy by time.
        Milliwatts = "mW",
        /// Bytes.
        Bytes = "bytes",
        /// Time at a constant rate of wear.
        Years = "years",
        /// Things per second.
        PerSecond = "1/s",
        /// Bytes per second, by the billion.
        GigabytesPerSecond = "GB/s",
    }
}

crate::names::named! {
    /// Which direction of a figure is better, all else being equal.
    Better {
        /// Less of it.
        Less = "less",
        /// More of it.
        More = "more",
        /// Neither: it says what a run did.
        Neither = "",
    }
}

/// A figure.
#[derive(Debug)]
pub struct Figure {
    /// Its name in results, as in `mean_write_latency_ns`.
    pub name: &'static str,
    /// Its group: a heading of the page of metrics.
    pub about: &'static str,
    /// The unit of its value.
    pub unit: Quantity,
    /// Which direction is better.
    pub better: Better,
    /// The meaning of the figure, in a line.
    pub meaning: &'static str,
}

/// Declares figures: their heading, and for each its unit, the better direction, its name and its meaning. `FIGURES`
/// lists them.
#[macro_export]
#[doc(hidden)]
macro_rules! figures {
    ($about:literal; $($figure:ident: $unit:ident $better:ident $name:literal, $meaning:literal;)+) => {
        $(#[doc = $meaning]
        pub static $figure: $crate::figures::Figure = $crate::figures::Figure {
            name: $name,
            about: $about,
            unit: $crate::figures::Quantity::$unit,
            better: $crate::figures::Better::$better,
            meaning: $meaning,
        };)+

        /// The figures that are declared here.
        pub const FIGURES: &[&$crate::figures::Figure] = &[$(&$figure),+];
    };
}
pub use figures;

/// The value of a figure, which is written as a number or as null.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// A whole number.
    Count(u64),
    /// Any other number.
    Real(f64),
    /// A share: `part` of `of`; 0 if both are 0.
    Part {
        /// The whole, a count.
        of: u64,
        /// The part, a count.
        part: u64,
    },
    /// The value is not known, or the figure does not apply.
    Absent,
}

impl Amount {
    /// `part / whole`; absent if `whole` is 0.
    pub fn share(part: f64, whole: f64) -> Amount {
        if whole > 0.0 {
            Amount::Real(part / whole)
        } else {
            Amount::Absent
        }
    }

    /// The amount as a number, if there is one.
    pub fn number(self) -> Option<f64> {
        match self {
            Amount::Count(count) => Some(count as f64),
            Amount::Real(real) => Some(real),
            Amount::Part { of: 0, .. } => Some(0.0),
            Amount::Part { of, part } => Some(part as f64 / of as f64),
            Amount::Absent => None,
        }
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Amount::Count(count) => serializer.serialize_u64(*count),
            other => other.number().serialize(serializer),
        }
    }
}

impl From<u64> for Amount {
    fn from(count: u64) -> Amount {
        Amount::Count(count)
    }
}

impl From<usize> for Amount {
    fn from(count: usize) -> Amount {
        Amount::Count(count as u64)
    }
}

impl From<f64> for Amount {
    fn from(real: f64) -> Amount {
        Amount::Real(real)
    }
}

impl From<Time> for Amount {
    fn from(time: Time) -> Amount {
        Amount::Real(time.ns())
    }
}

impl From<Energy> for Amount {
    fn from(energy: Energy) -> Amount {
        Amount::Real(energy.nj())
    }
}

impl<T: Into<Amount>> From<Option<T>> for Amount {
    fn from(value: Option<T>) -> Amount {
        value.map_or(Amount::Absent, Into::into)
    }
}

/// Figures with their values, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Figures(Vec<(&'static Figure, Amount)>);

impl Figures {
    /// Adds a figure with its value.
    pub fn put(&mut self, figure: &'static Figure, value: impl Into<Amount>) {
        self.0.push((figure, value.into()));
    }

    /// Replaces the figure's value, or adds the figure if it is not here.
    pub fn set(&mut self, figure: &'static Figure, value: impl Into<Amount>) {
        match self
            .0
            .iter_mut()
            .find(|(known, _)| known.name == figure.name)
        {
            Some((_, known)) => *known = value.into(),
            None => self.put(figure, value),
        }
    }

    /// Iterates over the figures and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Figure, Amount)> {
        self.0.iter().copied()
    }

    /// Appends all figures of `other`.
    pub fn append(&mut self, mut other: Figures) {
        self.0.append(&mut other.0);
    }

    /// The value of `figure`; absent if it has not been added.
    pub fn of(&self, figure: &'static Figure) -> Amount {
        self.named(figure.name)
    }

    /// The value of the figure called `name`; absent if it has not been added.
    pub fn named(&self, name: &str) -> Amount {
        let found = self.iter().find(|(known, _)| known.name == name);
        found.map_or(Amount::Absent, |(_, value)| value)
    }
}

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(figure, amount)| (figure.name, amount)))
    }
}

impl PartialEq for Figures {
    fn eq(&self, other: &Figures) -> bool {
        let names = |figures: &Figures| -> Vec<_> {
            figures
                .iter()
                .map(|(known, value)| (known.name, value))
                .collect()
        };
        names(self) == names(other)
    }
}
