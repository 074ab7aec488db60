//! What the addresses and moments of a trace are taken for.

use crate::settings::{Allowed, Word, keys, words};

/// Where the addresses of a trace lie, or of a host that has its own cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// As traced where they are physical, else at first touch.
    #[default]
    ByTrace,
    /// At their own numbers, which have to be below the machine's capacity.
    AsTraced,
    /// Pages in the next free frame when they are first touched.
    FirstTouch,
    /// Pages in any frame, as on a host that has been up for long.
    Scattered,
    /// At their own numbers modulo the capacity.
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

    /// What is meant for addresses that are `physical` or virtual: never [`Addresses::ByTrace`].
    #[must_use]
    pub fn of(self, physical: bool) -> Addresses {
        match (self, physical) {
            (Addresses::ByTrace, true) => Addresses::AsTraced,
            (Addresses::ByTrace, false) => Addresses::FirstTouch,
            (given, _) => given,
        }
    }
}

/// What the moments of a trace are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moments {
    /// What the trace says.
    #[default]
    ByTrace,
    /// Arrivals at memory.
    Open,
    /// Gaps of a core.
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
