//! The address mapping table: logical line → place, five bytes an entry, indexed directly, in a
//! region of the medium. Source: ESD (HPCA 2023) Sec. III-B; the counts beside it are *assumed*.
//! Left out: which lines share a place.

use super::places::Paged;
use super::references::References;
use crate::controller::layers::{Entries, HIGH, Limit, Placement, Reached};
use crate::controller::metadata_cache::{Lookup, MetadataCache};
use crate::controller::{Class, Encryption, Persist};
use crate::line::{Line, Logical, Place, SPAN, ZERO_LINE};
use crate::medium::layout::{Layout, Region};
use crate::plan::{At, Fetched, Plan, Step, Stored};
use crate::stats::Cause;

/// Bytes of a place: ESD's `Addr_base` and `Addr_offsets` (Sec. III-B).
pub(super) const ENTRY: usize = 5;
const REGION: &str = "mapping";
pub(super) const PLACES: Limit = Limit {
    name: "places in mappings",
    bits: 8 * ENTRY as u32,
    begins: None,
    pads: false,
    reached: Reached::High { bits: HIGH },
};
pub(super) const FREE_PLACES: Limit = Limit::unreached(
    "free places",
    8 * ENTRY as u32,
    "the programs' lines of zeros share one place; a pass without spare lines comes near",
);
/// Slots, chosen by a hash, for recently decided mappings. Two lines that share one only wait longer.
const RECENT: usize = 4096;

/// The number of entries in a line, and the bytes of one, with a count beside each entry or without.
fn shape(counted: bool) -> (u64, usize) {
    match counted {
        true => (10, ENTRY + 1),
        false => (12, ENTRY),
    }
}

/// The entry of a line, after a look-up.
#[derive(Clone, Copy, Debug)]
pub struct AmtEntry {
    /// The line.
    pub line: Logical,
    /// The place of the line, if it has one.
    pub place: Option<Place>,
    /// The line of the table that has the entry.
    pub cached: Lookup,
}

/// The count of references to a place, after a look-up.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    place: Place,
    /// How many lines refer to it.
    pub refer: References,
    /// The line of the table that has the count.
    pub cached: Lookup,
}

/// The two moments of a change in a table.
#[derive(Clone, Copy, Debug)]
pub struct When {
    /// Later requests find the change from here on.
    pub decided: Step,
    /// The change may leave the chip from here on.
    pub ripe: Step,
}

impl When {
    /// A change that may leave the chip as soon as it is found.
    pub fn at(step: Step) -> When {
        When {
            decided: step,
            ripe: step,
        }
    }
}

/// The address mapping table.
pub struct Amt {
    region: Region,
    /// The cache of the table. Its owner may use it for other tables as well.
    pub cache: MetadataCache,
    per_line: u64,
    entry_bytes: usize,
    recent: Vec<Step>,
    mapped: u64,
    /// The number of places. An entry beyond it is not a mapping: a power cut may have torn it.
    places: u64,
}

impl Amt {
    /// Reserves a table for the data lines of `layout`. A table line has ten entries with a count each, of the
    /// references to the *place* of that number, or twelve entries without counts.
    pub fn new(counted: bool, cache: MetadataCache, layout: &mut Layout) -> Amt {
        let places = layout.data_lines();
        let (per_line, entry) = shape(counted);
        let lines = layout.data_lines().div_ceil(per_line);
        Amt {
            region: layout.reserve(REGION, lines),
            cache,
            per_line,
            entry_bytes: entry,
            recent: vec![Step::PAST; RECENT],
            mapped: 0,
            places,
        }
    }

    /// The number of logical lines that have a place.
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    /// Bytes of the table for each logical line, including its share of a table line's unused end.
    pub fn bytes_per_line(&self) -> f64 {
        64.0 / self.per_line as f64
    }

    fn entry(&self, line: &Line, from: usize) -> Option<Place> {
        number(line, from).filter(|n| *n < self.places).map(Place)
    }

    fn spot(&self, number: u64) -> (Place, usize) {
        let line = self.region.line(number / self.per_line);
        (line, (number % self.per_line) as usize * self.entry_bytes)
    }

    /// Looks up where `line` lies, for a write that will change it.
    pub fn find(&mut self, line: Logical, after: Step, plan: &mut Plan) -> AmtEntry {
        let (place, from) = self.spot(line.0);
        let cached = self
            .cache
            .get(place, after, &mut plan.because(Cause::Mapping));
        AmtEntry {
            line,
            place: self.entry(self.cache.line(cached), from),
            cached,
        }
    }

    /// Reads the line through `below`. A line that is not mapped takes as long as a read of its own place, where
    /// another line may lie.
    pub fn read(
        &mut self,
        below: &mut Encryption,
        line: Logical,
        class: Class,
        after: Step,
        plan: &mut Plan,
    ) -> Fetched {
        let entry = self.find(line, after, plan);
        // After the newest mapping of it is decided.
        let decided = self.recent[line.0 as usize % RECENT];
        let at = plan.because(Cause::Mapping).both(entry.cached.at, decided);
        let read = below.read(entry.place.unwrap_or(Place(line.0)), class, at, plan);
        At::new(read.value.filter(|_| entry.place.is_some()), read.at)
    }

    /// Maps the line of `entry` to `place`.
    pub fn set(&mut self, entry: &AmtEntry, place: Place, when: When, plan: &mut Plan) {
        let (line, cached) = (entry.line.0, entry.cached);
        let (_, from) = self.spot(line);
        self.mapped += u64::from(self.entry(self.cache.line(cached), from).is_none());
        let mut plan = plan.because(Cause::Mapping);
        self.cache
            .set_bytes(cached, from, &number_bytes(place.0), when.ripe, &mut plan);
        let recent = &mut self.recent[line as usize % RECENT];
        *recent = plan.both(*recent, when.decided);
    }

    /// Where `line` lies, without any hardware.
    pub fn peek(&self, line: Logical, plan: &Plan) -> Option<Place> {
        let (table, from) = self.spot(line.0);
        self.entry(&self.cache.newest(table, plan), from)
    }

    /// Maps `line`, which has no place, to `place`, as the table has said since before the run.
    pub fn preload(&mut self, line: Logical, place: Place, plan: &mut Plan) {
        let (table, from) = self.spot(line.0);
        self.mapped += 1;
        self.cache.preload(table, plan, |entries| {
            entries[from..from + ENTRY].copy_from_slice(&number_bytes(place.0));
        });
    }

    /// Sets the count of `place` to one reference, as the table has said since before the run.
    pub fn preload_count(&mut self, place: Place, plan: &mut Plan) {
        let (table, from) = self.spot(place.0);
        let count = References::ONE.byte();
        self.cache
            .preload(table, plan, |counts| counts[from + ENTRY] = count);
    }

    /// The references to `place`.
    pub fn count(&mut self, place: Place, after: Step, plan: &mut Plan) -> Count {
        let (line, from) = self.spot(place.0);
        let cached = self
            .cache
            .get(line, after, &mut plan.because(Cause::Reclaim));
        Count {
            place,
            refer: References::of_byte(self.cache.line(cached)[from + ENTRY]),
            cached,
        }
    }

    /// Replaces a count.
    pub fn set_count(&mut self, count: Count, refer: References, ripe: Step, plan: &mut Plan) {
        let (_, from) = self.spot(count.place.0);
        let mut plan = plan.because(Cause::Reclaim);
        let byte = [refer.byte()];
        self.cache
            .set_bytes(count.cached, from + ENTRY, &byte, ripe, &mut plan);
    }

    /// The line of the table that maps `line`.
    pub fn table_line(&self, line: Logical) -> Place {
        self.spot(line.0).0
    }

    /// Adds the mapping of `line` to `stored`, after it, if `order` demands that.
    pub fn persist(
        &mut self,
        line: Logical,
        stored: Stored,
        order: Persist,
        plan: &mut Plan,
    ) -> Stored {
        if order == Persist::Relaxed {
            return stored;
        }
        let mut plan = plan.because(Cause::Mapping);
        let map = self
            .cache
            .persist(self.table_line(line), stored.accepted, &mut plan);
        map.and(stored, &mut plan)
    }

    /// Writes back the mappings of the lines around `line`, and the metadata of the places where they lie.
    pub fn persist_span(
        &mut self,
        below: &mut Encryption,
        line: Logical,
        after: Step,
        plan: &mut Plan,
    ) -> Stored {
        let first = line.0 - line.0 % SPAN;
        let (mut stored, mut tables, mut spans) = (Stored::at(after), Vec::new(), Vec::new());
        // Eight lines may have their entries in two lines of the table, each of which is looked up once.
        for line in first..first + SPAN {
            let (table, from) = self.spot(line.min(self.places - 1));
            let cached = match tables.iter().find(|(known, _)| *known == table) {
                Some((_, cached)) => *cached,
                None => {
                    let mut plan = plan.because(Cause::Mapping);
                    let cached = self.cache.get(table, after, &mut plan);
                    let map = self.cache.persist(table, cached.at, &mut plan);
                    stored = stored.and(map, &mut plan);
                    tables.push((table, cached));
                    cached
                }
            };
            let place = self.entry(self.cache.line(cached), from);
            if let Some(place) = place.filter(|place| !spans.contains(&(place.0 / SPAN))) {
                spans.push(place.0 / SPAN);
                let kept = below.persist_metadata(place, cached.at, plan);
                stored = stored.and(kept, plan);
            }
        }
        stored
    }

    /// Prefetches into the host's caches what a look-up of `line`, and of the place where it probably lies, will touch.
    /// No effect on results.
    pub fn hint(&self, below: &Encryption, line: Logical, plan: &Plan) {
        let (place, from) = self.spot(line.0);
        let known = match self.cache.peek(place) {
            Some(bytes) => self.entry(bytes, from),
            None => {
                plan.touch_ahead(place);
                None
            }
        };
        below.hint(known.unwrap_or(Place(line.0)), plan);
    }

    /// Reads the whole table from the medium's bytes; calls `each` with every mapping.
    pub fn scan(&mut self, plan: &mut Plan, mut each: impl FnMut(Logical, Place)) {
        self.mapped = 0;
        for place in plan.written(&self.region) {
            let index = place.0 - self.region.first.0;
            let line = plan.scan(place).unwrap_or(ZERO_LINE);
            for number in 0..self.per_line {
                if let Some(place) = self.entry(&line, number as usize * self.entry_bytes) {
                    self.mapped += 1;
                    each(Logical(index * self.per_line + number), place);
                }
            }
        }
    }

    /// Corrects, in the cache, the counts that differ from `lines_at`, the logical lines at each place.
    pub fn recount(&mut self, lines_at: &Paged<u32>, plan: &mut Plan) {
        for place in plan.written(&self.region) {
            let index = place.0 - self.region.first.0;
            for number in 0..self.per_line {
                let spot = Place(index * self.per_line + number);
                let line = plan.scan(place).unwrap_or(ZERO_LINE);
                let stored = References::of_byte(line[number as usize * self.entry_bytes + ENTRY]);
                let true_count = References::up_to(lines_at.get(spot.0));
                if stored != true_count {
                    let count = self.count(spot, Step::PAST, plan);
                    self.set_count(count, true_count, Step::PAST, plan);
                }
            }
        }
    }
}

/// The table in `layout`, for readers who have only the bytes.
pub fn placement(counted: bool, layout: &Layout) -> Placement {
    let regions = layout.regions().iter();
    let region = regions.clone().find(|region| region.name == REGION);
    let place: fn(&Line, Logical, usize) -> Option<Place> = match counted {
        true => |line, _, slot| number(line, slot * (ENTRY + 1)).map(Place),
        false => |line, _, slot| number(line, slot * ENTRY).map(Place),
    };
    Placement::Table(Entries {
        region: region.expect("the table has been laid out").clone(),
        per_line: shape(counted).0,
        places: layout.data_lines(),
        place,
    })
}

/// The five-byte number at `from`, less one; `None` for zero.
pub(super) fn number(line: &Line, from: usize) -> Option<u64> {
    let mut bytes = [0; 8];
    bytes[..ENTRY].copy_from_slice(&line[from..from + ENTRY]);
    u64::from_le_bytes(bytes).checked_sub(1)
}

pub(super) fn number_bytes(number: u64) -> [u8; ENTRY] {
    let bytes = (number + 1).to_le_bytes();
    bytes[..ENTRY].try_into().expect("5 bytes")
}
