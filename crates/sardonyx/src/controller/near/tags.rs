//! The tags of a near cache: what lies beside a line, and what a power cut leaves of it.

use rustc_hash::FxHashMap;

use crate::line::{Logical, Place};
use crate::medium::image::Image;
use crate::medium::near::{self, FORM, NearForm, bits, used};
use crate::medium::params::Geometry;
use crate::settings::Settings;

const VALID: u64 = 1;
const DIRTY: u64 = 2;
const UNKNOWN: u64 = 4;
const ATOMIC: u64 = 8;
const LOG: u64 = 16;
const FLAGS: u32 = 8;

/// What lies beside a line of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    pub line: Logical,
    /// Whether the persistent medium has older bytes.
    pub dirty: bool,
    /// Whether nobody knows the bytes: they were written before the run.
    pub unknown: bool,
    /// Whether the line must reach the persistent medium with its counter.
    pub atomic: bool,
    pub log: bool,
}

impl Tag {
    /// A line as it lies below.
    pub fn of(line: Logical) -> Tag {
        Tag {
            line,
            dirty: false,
            unknown: false,
            atomic: false,
            log: false,
        }
    }

    pub fn clean(self) -> Tag {
        Tag {
            dirty: false,
            ..self
        }
    }

    /// The tag beside `slot` of a cache of `lines` slots; `None` if it holds no line.
    pub fn beside(bits: [u8; 8], slot: Logical, lines: u64) -> Option<Tag> {
        let bits = u64::from_le_bytes(bits);
        (bits & VALID != 0).then(|| Tag {
            line: Logical((bits >> FLAGS) * lines + slot.0),
            dirty: bits & DIRTY != 0,
            unknown: bits & UNKNOWN != 0,
            atomic: bits & ATOMIC != 0,
            log: bits & LOG != 0,
        })
    }

    /// The bytes beside the line's only slot.
    pub fn to_beside(self, lines: u64) -> [u8; 8] {
        let flags = [
            (self.dirty, DIRTY),
            (self.unknown, UNKNOWN),
            (self.atomic, ATOMIC),
            (self.log, LOG),
        ];
        let set = flags.into_iter().filter(|(set, _)| *set);
        let bits = set.fold((self.line.0 / lines) << FLAGS | VALID, |bits, (_, bit)| {
            bits | bit
        });
        bits.to_le_bytes()
    }
}

/// Which lines a cache holds that a power cut leaves, for readers of the medium's bytes.
#[derive(Clone, Debug)]
pub struct SavedSlots {
    lines: u64,
}

impl SavedSlots {
    /// The slots of a machine with these settings; `None` if it has no such cache.
    pub fn saved(settings: &Settings) -> Option<SavedSlots> {
        let own = near::settings(settings)?;
        let saved = settings.get(&FORM) == NearForm::Cache && bits(settings) == Place::NEAR_SAVED;
        let lines = used(settings, Geometry::from_settings(&own).lines());
        saved.then_some(SavedSlots { lines })
    }

    /// The line that lies at `place` with `beside` beside it; `None` if none does, or if that is no slot.
    pub fn held(&self, place: Place, beside: Option<[u8; 8]>) -> Option<Logical> {
        let slot = Some(place.in_medium()).filter(|slot| place.is_near() && *slot < self.lines)?;
        Some(Tag::beside(beside?, Logical(slot), self.lines)?.line)
    }

    /// The lines that all slots in `image` hold, by place.
    pub fn all(&self, image: &Image) -> FxHashMap<Place, u64> {
        let near = image.near().into_iter().flat_map(Image::with_sideband);
        let places = near.map(|place| Place(place.0 | Place::NEAR_SAVED));
        let held = places.filter_map(|place| {
            let line = self.held(place, image.sideband(place))?;
            Some((place, line.0))
        });
        held.collect()
    }
}
