//! Handles a history's first requests again with fresh controllers, and handles requests of no history that reach what
//! runs are too short for: many sharers of a content, transactions of many lines. Left out: the conclusions from the
//! results.

mod churn;
mod contents;
mod endurance;
mod flushed;
mod handling;
mod life;
mod sharers;
mod splices;
mod undo;

pub use handling::{Again, Handling};

use std::cell::Cell;

use sardonyx_base::random::mix;

use crate::history::History;
use sardonyx::controller::logging::fwb::LINES;
use sardonyx::controller::mapping::DUPLICATE;
use sardonyx::controller::mapping::places::RETIRED;
use sardonyx::exhausted::Exhausted;
use sardonyx::line::{Line, Logical, Place, ZERO_LINE};
use sardonyx::settings::{Pressure, Settings, Value};

/// Lines of a circular log that no probe fills.
const ROOM: u64 = 1 << 13;

/// What the probes of a run are told, and how much they have looked at.
#[derive(Default)]
pub struct Looked {
    /// Whether a cut drains the caches of metadata.
    pub drains_caches: bool,
    /// The number of times that requests were handled with other contents that could show something.
    pub masked: Cell<u64>,
    /// The number of lines near zero that a controller was asked to write and read.
    pub near_zero: Cell<u64>,
    /// The number of writes of an endurance life.
    pub endured: Cell<u64>,
    /// The number of unwritten lines that a controller was asked to read.
    pub unwritten: Cell<u64>,
}

/// A failure where a medium or a log has just enough room.
pub enum Crowded {
    Misread(Logical),
    /// A pad covers two contents of this place.
    Padded(Place),
    /// The design says that there is no room.
    Full(Exhausted),
}

impl History {
    pub fn keeps_log(&self) -> bool {
        self.stack.keeps_log()
    }

    /// Whether fingerprints are made short, as a plan has them, so that they collide.
    pub fn collides(&self) -> bool {
        let pressure = Pressure {
            collisions: true,
            ..Pressure::default()
        };
        let pressed = self.pressed(&pressure).into_iter();
        let mut pressed = pressed.map(|(name, value)| (name, Some(Value::Int(value))));
        pressed.any(|(name, value)| self.small.find(name) == value)
    }

    fn pressed(&self, pressure: &Pressure) -> Vec<(&'static str, u64)> {
        let layers = self.stack.layers().into_iter();
        let keys = layers.flat_map(|layer| layer.about().keys);
        keys.flat_map(|key| key.pressed(pressure)).collect()
    }

    fn finds_duplicates(&self) -> bool {
        self.stack.tries().any(|one| *one == DUPLICATE)
    }

    /// The settings of a medium with a place for each of its lines, where the run's own may have fewer, and of a circular
    /// log in which all that is logged has room.
    fn with_room(&self) -> Settings {
        let mut settings = Settings::clone(&self.small);
        settings.set(&RETIRED, 0);
        settings.set(&LINES, ROOM);
        settings
    }
}

/// A content that has nothing in common with that of another line or number.
fn content(line: u64, number: u64) -> Line {
    let mut content = ZERO_LINE;
    for (at, word) in (0..).zip(content.as_chunks_mut::<8>().0) {
        *word = mix(mix(mix(line) ^ number) ^ at).to_le_bytes();
    }
    content
}
