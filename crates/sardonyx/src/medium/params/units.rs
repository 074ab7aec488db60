//! The on-chip units of a controller, and what a use of each costs.

use super::int;
use crate::settings::{Allowed, Doubt, Origin, Row, Settings, Value, latency};
use crate::units::{Energy, Time};

macro_rules! units {
    ($($(#[$doc:meta])* $unit:ident $name:literal $what:literal, $number:expr $(, $cost:expr)?;)*) => {
        /// The on-chip units of the controller.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Unit {
            $(#[doc = $what] $(#[$doc])* $unit,)*
        }

        impl Unit {
            /// All units, in the order of their discriminants.
            pub const ALL: [Unit; 8] = [$(Unit::$unit),*];

            /// The name used in configuration and reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Unit::$unit => $name,)*
                }
            }
        }

        impl UnitParams {
            /// The parameters of all units.
            pub const ROWS: &'static [Row] = &[$(
                Row {
                    $(default: Some($cost[0].0), doubt: Some($cost[0].1),)?
                    ..Row::required(
                    concat!("units.", $name, ".latency_ns"),
                    latency(),
                    concat!($what, ": from start to result"),
                )},
                Row {
                    $(default: Some($cost[1].0), doubt: Some($cost[1].1),)?
                    ..Row::required(
                    concat!("units.", $name, ".interval_ns"),
                    latency(),
                    concat!($what, ": from one start to the next; 0 is any number at once"),
                )},
                Row {
                    $(default: Some($cost[2].0), doubt: Some($cost[2].1),)?
                    ..Row::required(
                    concat!("units.", $name, ".energy_nj"),
                    Allowed::Nj,
                    concat!($what, ": energy of one use"),
                )},
                Row {
                    default: Some($number.0),
                    doubt: $number.1,
                    ..Row::required(
                        concat!("units.", $name, ".number"),
                        int(0, 4_096),
                        concat!($what, ": units side by side; 0 is one a core"),
                    )
                },
            )*];
        }
    };
}

/// The number of units with its source, and its alternatives.
type SourcedNumber = ((Value, Origin), Option<Doubt>);

const ONE: SourcedNumber = (
    (Value::Int(1), Origin::Source("its interval speaks for it")),
    None,
);
/// One unit for each core, which computes a line's hash.
const A_CORE: SourcedNumber = (
    (
        Value::Int(0),
        Origin::Assumed(
            "one a core: ESD Sec. IV-E has the core compute hashes, and Fig. 17 leaves no room for a queue",
        ),
    ),
    Some(Doubt::Between(
        "0",
        "1",
        "one a core, or one for all: ESD Sec. III-C's cascade blocking may mean a single unit",
    )),
);

/// The latency, interval and energy of a unit that no machine has to give.
type Cost = [((Value, Origin), Doubt); 3];

/// The cost of the integrity unit, which no machine's paper has.
const MAC: Cost = [
    (
        (
            Value::Time(Time::from_ps(10_000)),
            Origin::Assumed(
                "no paper of these machines has one; 40 cycles at 4 GHz, as work on secure memory often takes",
            ),
        ),
        Doubt::Between(
            "2.5",
            "80",
            "a short universal hash, to a keyed SHA-1 of 80 stages",
        ),
    ),
    (
        (
            Value::Time(Time::from_ps(2_500)),
            Origin::Assumed("a pipeline of four stages; no source"),
        ),
        Doubt::Between("0", "10", "any number at once, and no pipeline"),
    ),
    (
        (
            Value::Energy(Energy::from_fj(1_500_000)),
            Origin::Assumed("no source; as CRC-32's 1.5 nJ, and below AES's"),
        ),
        Doubt::Between(
            "0.1",
            "36",
            "exclusive-ors of 512 bits at 0.2 pJ, and SHA-1's",
        ),
    ),
];

units! {
    Aes "aes" "AES-128 of a line's pad", ONE;
    Sha1 "sha1" "SHA-1 of a line", A_CORE;
    Crc32 "crc32" "CRC-32 of a line", A_CORE;
    Compare "compare" "Comparison of two lines", ONE;
    /// (ESD's EFIT, the rivals' fingerprint caches).
    Fingerprints "fingerprints" "Look-up of a fingerprint on chip", ONE;
    Metadata "metadata" "Look-up in a metadata cache", ONE;
    Counters "counters" "Look-up in the counter cache", ONE;
    Mac "mac" "Keyed hash of a line (integrity)", ONE, MAC;
}

/// On-chip units of a kind: the time of a use, the distance between two uses, the energy and the number of units. A use
/// goes to the unit that is free first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitParams {
    /// The time from a use's start to its result.
    pub latency: Time,
    /// The time from one start to the next; 0 allows any number at once.
    pub interval: Time,
    /// Energy of one use.
    pub energy: Energy,
    /// How many units work side by side.
    pub number: usize,
}

impl UnitParams {
    /// The parameters of `unit` in `settings`, which gives their `cores` if there is one unit for each core.
    pub fn from_settings(unit: Unit, settings: &Settings) -> UnitParams {
        let name = unit.name();
        let number = match settings.named(&format!("units.{name}.number")) {
            0 => settings.named("cores"),
            number => number,
        };
        UnitParams {
            number,
            latency: settings.named(&format!("units.{name}.latency_ns")),
            interval: settings.named(&format!("units.{name}.interval_ns")),
            energy: settings.named(&format!("units.{name}.energy_nj")),
        }
    }
}
