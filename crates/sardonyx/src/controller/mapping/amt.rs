//! The address mapping table: logical line → place, five bytes an entry, indexed directly, in a
//! region of the medium. Source: ESD (HPCA 2023) Sec. III-B; the counts beside it are *assumed*.
//! Left out: the cache that it is read through, which its owner may use for other tables as well.

use crate::controller::metadata_cache::{Got, MetadataCache};
use crate::controller::{Encryption, SPAN};
use crate::line::{Line, Logical, Place};
use crate::medium::layout::{Layout, Region};
use crate::plan::{At, Plan, Step, Stored};
use crate::stats::Cause;

/// Bytes of a place: ESD's `Addr_base` and `Addr_offsets` (Sec. III-B).
pub(super) const ENTRY: usize = 5;
/// The table's region.
const REGION: &str = "mapping";
/// Hashed slots for mappings decided of late; two lines that share one only wait longer.
const RECENT: usize = 4096;

/// Entries of a line, and bytes of one, with a count beside each or without.
fn shape(counted: bool) -> (u64, usize) {
    match counted {
        true => (10, ENTRY + 1),
        false => (12, ENTRY),
    }
}

/// A count at which it stays for ever.
pub const SATURATED: u8 = u8::MAX;

/// The table.
pub struct Amt {
    region: Region,
    per_line: u64,
    entry_bytes: usize,
    recent: Vec<Step>,
    mapped: u64,
    /// An entry beyond them is no mapping (a power cut may have torn it).
    places: u64,
}

impl Amt {
    /// A table for the data lines of `layout`: ten entries a line with a count beside each, of the
    /// references to the *place* of that number, or twelve without.
    pub fn new(counted: bool, layout: &mut Layout) -> Amt {
        let places = layout.data_lines();
        let (per_line, entry) = shape(counted);
        let lines = layout.data_lines().div_ceil(per_line);
        Amt {
            region: layout.reserve(REGION, lines),
            per_line,
            entry_bytes: entry,
            recent: vec![Step::PAST; RECENT],
            mapped: 0,
            places,
        }
    }

    /// Logical lines with a place.
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    /// Bytes of the table that a logical line takes, the unused end of each line shared out.
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
    pub fn find(
        &self,
        cache: &mut MetadataCache,
        line: Logical,
        after: Step,
        plan: &mut Plan,
    ) -> (Option<Place>, Got) {
        let (place, from) = self.spot(line.0);
        let got = cache.get(place, after, &mut plan.because(Cause::Mapping));
        (self.entry(cache.line(got), from), got)
    }

    /// Looks up where `line` lies, for a read: after the newest mapping of it is decided.
    pub fn translate(
        &self,
        cache: &mut MetadataCache,
        line: Logical,
        after: Step,
        plan: &mut Plan,
    ) -> At<Option<Place>> {
        let (place, got) = self.find(cache, line, after, plan);
        let decided = self.recent[line.0 as usize % RECENT];
        let at = plan.because(Cause::Mapping).both(got.at, decided);
        At::new(place, at)
    }

    /// Maps `line`, just found, to `place`: decided after `decided`, on its way after `ripe`.
    pub fn set(
        &mut self,
        cache: &mut MetadataCache,
        (line, got): (Logical, Got),
        place: Place,
        (decided, ripe): (Step, Step),
        plan: &mut Plan,
    ) {
        let (_, from) = self.spot(line.0);
        self.mapped += u64::from(self.entry(cache.line(got), from).is_none());
        let mut plan = plan.because(Cause::Mapping);
        cache.set_bytes(got, from, &to_bytes(place), ripe, &mut plan);
        let recent = &mut self.recent[line.0 as usize % RECENT];
        *recent = plan.both(*recent, decided);
    }

    /// The references to `place`.
    pub fn count(
        &self,
        cache: &mut MetadataCache,
        place: Place,
        after: Step,
        plan: &mut Plan,
    ) -> (u8, Got) {
        let (line, from) = self.spot(place.0);
        let got = cache.get(line, after, &mut plan.because(Cause::Reclaim));
        (cache.line(got)[from + ENTRY], got)
    }

    /// Sets the count of `place`, just looked up.
    pub fn set_count(
        &self,
        cache: &mut MetadataCache,
        (place, got): (Place, Got),
        count: u8,
        ripe: Step,
        plan: &mut Plan,
    ) {
        let (_, from) = self.spot(place.0);
        let mut plan = plan.because(Cause::Reclaim);
        cache.set_bytes(got, from + ENTRY, &[count], ripe, &mut plan);
    }

    /// The line of the table that maps `line`.
    pub fn table_line(&self, line: Logical) -> Place {
        self.spot(line.0).0
    }

    /// Writes back the mappings of the lines around `line`, and what the layer below keeps of the
    /// places where they lie.
    pub fn persist_span(
        &self,
        cache: &mut MetadataCache,
        below: &mut Encryption,
        (line, after): (Logical, Step),
        plan: &mut Plan,
    ) -> Stored {
        let first = line.0 - line.0 % SPAN;
        let (mut stored, mut tables, mut spans) = (Stored::at(after), Vec::new(), Vec::new());
        let mut also = |more: Stored, plan: &mut Plan| {
            stored.accepted = plan.both(stored.accepted, more.accepted);
            stored.done = plan.both(stored.done, more.done);
        };
        for line in first..first + SPAN {
            let (table, from) = self.spot(line.min(self.places - 1));
            let got = match tables.iter().find(|(known, _)| *known == table) {
                Some((_, got)) => *got,
                None => {
                    let mut plan = plan.because(Cause::Mapping);
                    let got = cache.get(table, after, &mut plan);
                    let map = cache.persist(table, got.at, &mut plan);
                    also(map, &mut plan);
                    tables.push((table, got));
                    got
                }
            };
            let place = self.entry(cache.line(got), from);
            if let Some(place) = place.filter(|place| !spans.contains(&(place.0 / SPAN))) {
                spans.push(place.0 / SPAN);
                also(below.persist_metadata(place, got.at, plan), plan);
            }
        }
        stored
    }

    /// Fetches what a look-up of `line` will touch into the host's caches; gives the place where it
    /// probably lies. No effect on results.
    pub fn touch_ahead(&self, cache: &MetadataCache, line: Logical, plan: &Plan) -> Place {
        let (place, from) = self.spot(line.0);
        let known = match cache.peek(place) {
            Some(bytes) => self.entry(bytes, from),
            None => {
                plan.touch_ahead(place);
                None
            }
        };
        known.unwrap_or(Place(line.0))
    }

    /// Reads the whole table from the medium's bytes; calls `each` with every mapping.
    pub fn scan(&mut self, plan: &Plan, mut each: impl FnMut(Logical, Place)) {
        self.mapped = 0;
        for place in plan.written(&self.region) {
            let index = place.0 - self.region.first.0;
            let line = plan.peek(place).expect("it has been written");
            for number in 0..self.per_line {
                if let Some(place) = self.entry(&line, number as usize * self.entry_bytes) {
                    self.mapped += 1;
                    each(Logical(index * self.per_line + number), place);
                }
            }
        }
    }
}

impl Amt {
    /// Puts right, in the cache, the counts that differ from `lines_at` (logical lines at a place).
    pub fn recount(
        &self,
        cache: &mut MetadataCache,
        lines_at: &super::places::Paged<u32>,
        plan: &mut Plan,
    ) {
        for place in plan.written(&self.region) {
            let index = place.0 - self.region.first.0;
            for number in 0..self.per_line {
                let spot = Place(index * self.per_line + number);
                let line = plan.peek(place).expect("it has been written");
                let stored = line[number as usize * self.entry_bytes + ENTRY];
                let true_count = lines_at.get(spot.0).min(u32::from(SATURATED)) as u8;
                if stored != true_count {
                    let (_, got) = self.count(cache, spot, Step::PAST, plan);
                    self.set_count(cache, (spot, got), true_count, Step::PAST, plan);
                }
            }
        }
    }
}

/// How the entries lie in the medium, for who reads the table from its bytes alone.
#[derive(Clone, Debug)]
pub struct Entries {
    region: Region,
    per_line: u64,
    entry_bytes: usize,
    places: u64,
}

impl Entries {
    /// Of the table in `layout`, whose data lines have `counted` references or not; `None` if there
    /// is no table.
    pub fn of(counted: bool, layout: &Layout) -> Option<Entries> {
        let region = layout.regions().iter().find(|r| r.name == REGION)?;
        let (per_line, entry_bytes) = shape(counted);
        Some(Entries {
            region: region.clone(),
            per_line,
            entry_bytes,
            places: layout.data_lines(),
        })
    }

    /// The lines of the table.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// What the line `bytes` of the table, at `place`, says: logical lines, and where they lie.
    pub fn read(
        &self,
        place: Place,
        bytes: &Line,
    ) -> impl Iterator<Item = (Logical, Option<Place>)> {
        let first = (place.0 - self.region.first.0) * self.per_line;
        (0..self.per_line).map(move |number_in| {
            let place = number(bytes, number_in as usize * self.entry_bytes);
            let known = place.filter(|place| *place < self.places).map(Place);
            (Logical(first + number_in), known)
        })
    }
}

/// The five-byte number at `from`, less one; a zero is none.
pub(super) fn number(line: &Line, from: usize) -> Option<u64> {
    let mut bytes = [0; 8];
    bytes[..ENTRY].copy_from_slice(&line[from..from + ENTRY]);
    u64::from_le_bytes(bytes).checked_sub(1)
}

/// The five bytes of `number` plus one.
pub(super) fn number_bytes(number: u64) -> [u8; ENTRY] {
    let bytes = (number + 1).to_le_bytes();
    bytes[..ENTRY].try_into().expect("5 bytes")
}

fn to_bytes(place: Place) -> [u8; ENTRY] {
    number_bytes(place.0)
}
