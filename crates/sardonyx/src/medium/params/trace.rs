//! What the addresses and moments of a trace are taken for.

use crate::settings::{Allowed, Word, keys, words};

/// The placement of a trace's addresses, or of a host's that has its own cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// Physical addresses are placed as traced, others at first touch.
    #[default]
    ByTrace,
    /// Addresses keep their numbers, which have to be below the machine's capacity.
    AsTraced,
    /// Pages take the next free frame when they are first touched.
    FirstTouch,
    /// Pages take any frame, as on a host that has been up for long.
    Scattered,
    /// Addresses keep their numbers modulo the capacity.
    Wrapped,
}

words!(Addresses {
    "by-trace" => ByTrace,
    "as-traced" => AsTraced,
    "first-touch" => FirstTouch,
    "scattered" => Scattered,
    "wrapped" => Wrapped,
});

impl Addresses {
    const KIND: Allowed = Allowed::Text {
        known: |text| (Addresses::WORDS.iter().copied()).find(|word| *word == text),
        range: "by-trace, as-traced, first-touch, scattered or wrapped",
        tried: &["scattered"],
    };

    /// Resolves [`Addresses::ByTrace`] for addresses that are `physical` or virtual.
    #[must_use]
    pub fn of(self, physical: bool) -> Addresses {
        match (self, physical) {
            (Addresses::ByTrace, true) => Addresses::AsTraced,
            (Addresses::ByTrace, false) => Addresses::FirstTouch,
            (given, _) => given,
        }
    }
}

/// The meaning of a trace's moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moments {
    /// The trace decides.
    #[default]
    ByTrace,
    /// Moments are arrivals at memory.
    Open,
    /// Moments are gaps of a core.
    Closed,
}

words!(Moments { "by-trace" => ByTrace, "open" => Open, "closed" => Closed });

keys! {
    ADDRESSES: Addresses = text("addresses", Addresses::KIND, "by-trace"),
        Assumed("no paper says where an operating system lays pages"),
        "Where addresses of a trace or a host lie; by-trace is as-traced for physical ones, else first-touch";
    ARRIVALS: Moments = word("arrivals", "by-trace"),
        Source("a trace says whether its moments are stamps of a memory bus"),
        "Whether a trace's cycles are arrivals (open) or gaps of a core (closed)";
}
