//! Parts of the machine that not every machine has, beside the layers of the controller, and what the crash explorer has
//! to know of each: as a layer, a part says what is counted of it and which limits it has. Left out: what a part does.

use super::{cells, levelling, link, near, pausing};
use crate::mechanisms::Mechanism;
use crate::settings::{AnyKey, Limit, Settings};

/// An optional part of a machine.
pub struct Part {
    /// Whether a machine with these settings has it.
    pub met: fn(&Settings) -> bool,
    /// The keys that a pass presses.
    pub keys: &'static [&'static dyn AnyKey],
    /// The mechanisms that a verdict on such a machine rests on.
    pub tries: &'static [&'static Mechanism],
    /// The limits of its counts.
    pub limits: &'static [Limit],
}

static PARTS: [&Part; 5] = [
    &levelling::PART,
    &pausing::PART,
    &link::PART,
    &cells::PART,
    &near::PART,
];

/// All parts that a machine may have.
pub fn all() -> impl Iterator<Item = &'static Part> {
    PARTS.into_iter()
}

/// The parts of a machine with these settings.
pub fn in_use(settings: &Settings) -> impl Iterator<Item = &'static Part> {
    PARTS.into_iter().filter(|part| (part.met)(settings))
}
