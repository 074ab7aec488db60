//! Zero lines: a line of zeros is never written; one bit says that it is there, in a table of its own
//! behind a cache. Source: zero-content elimination (as in Dusser et al., ICS 2009); here it is the
//! worked example of `docs/simulator/add-a-design.md`. Left out: hiding which lines are zeros, which the bits tell.
//!
//! A power cut finds the line or the bit old, never both half: a line that stops being zeros is accepted
//! before its bit is cleared, and reads as zeros until then; a line that becomes zeros changes by its bit
//! alone. The bit persists as a counter does: with a counter-atomic write, and on demand.

use super::figures::{AMT_HIT_RATE, DUPLICATE_WRITES, METADATA_BYTES_PER_LINE};
use crate::controller::layers::Entries;
use crate::controller::layers::{About, Design, File, Guarantee, Mapping, Placement};
use crate::controller::metadata_cache::{self, MetadataCache, SETS, rate};
use crate::controller::{
    Class, Encryption, Figures, Layer, Persist, Storey, Write, stands_on_below,
};
use crate::figures::{Figure, figures};
use crate::line::{LINE_BYTES, Line, Logical, Place, ZERO_LINE};
use crate::mechanisms::mechanisms;
use crate::medium::layout::{Layout, Region};
use crate::medium::params::Unit;
use crate::plan::{At, Fetched, Plan, Queue, Step, Stored};
use crate::settings::{Settings, keys};
use crate::stats::Cause;

/// Lines whose bits are in one line of the table.
const PER_LINE: u64 = 512;
const REGION: &str = "zero-lines";

keys! {
    LOGS: bool = flag("zero_lines.logs", false),
        Assumed("no source; a log is written once and rarely zeros"),
        "Log lines of zeros are kept as a bit as well";
}

keys! {
    CACHE = cache("zero_lines.cache.", LINE_BYTES, 65_536),
        Assumed("no source; bits of 32 MiB"), "Cache of the bits", "Its ways"
        in Between("16384", "262144", "a quarter and four times: bits of 8 to 128 MiB");
}

figures! { "Deduplication";
    ZERO_WRITES_SHARE: Ratio More "zero_writes_share", "`zero-lines`: share of the writes that were lines of zeros";
}
const SHARED: &[&Figure] = &[&DUPLICATE_WRITES, &AMT_HIT_RATE, &METADATA_BYTES_PER_LINE];

mechanisms! {
    BECOMES_ZERO = "lines that become zeros", least 30;
    STAYS_ZERO = "zeros over zeros", least 30;
    WAS_ZERO = "lines that were zeros", least 30;
}

/// The layers and designs of this file.
pub static FILE: File<Mapping> = File {
    layers: &[Mapping {
        about: About {
            name: "zero-lines",
            keys: &[&LOGS, &CACHE, &SETS],
            units: &[Unit::Metadata],
            figures: &[SHARED, FIGURES],
            cut: "bits not written back on demand are lost; nothing has to be rebuilt",
            tries: &[metadata_cache::MECHANISMS, MECHANISMS],
            limits: &[],
        },
        build: |settings, below, layout| Box::new(ZeroLines::new(settings, below, layout)),
        guarantee: Guarantee::on_demand,
        placement: |_, layout| placement(layout),
        shows: &[],
        zeros_apart: true,
        beside: None,
    }],
    designs: &[Design {
        name: "zero-lines",
        source: "zero-content elimination (Dusser et al., ICS 2009), the worked example",
        line: "lines of zeros are a bit and never written",
        stack: "zero-lines+sca",
    }],
};

struct ZeroLines {
    logs: bool,
    table: Region,
    cache: MetadataCache,
    writes: u64,
    zeros: u64,
    below: Encryption,
}

fn bit(line: Logical) -> (usize, u8) {
    let index = line.0 % PER_LINE;
    ((index / 8) as usize, 1 << (index % 8))
}

fn is_set(table: &Line, line: Logical) -> bool {
    let (byte, mask) = bit(line);
    table[byte] & mask != 0
}

fn placement(layout: &Layout) -> Placement {
    let region = layout.regions().iter().find(|known| known.name == REGION);
    Placement::Table(Entries {
        region: region.expect("the table has been laid out").clone(),
        per_line: PER_LINE,
        places: layout.data_lines(),
        place: |table, line, _| (!is_set(table, line)).then_some(Place(line.0)),
    })
}

impl ZeroLines {
    fn new(settings: &Settings, below: Encryption, layout: &mut Layout) -> ZeroLines {
        let lines = layout.data_lines().div_ceil(PER_LINE);
        ZeroLines {
            logs: settings.get(&LOGS),
            table: layout.reserve(REGION, lines),
            cache: MetadataCache::new(&CACHE, Unit::Metadata, Queue::Data, settings),
            writes: 0,
            zeros: 0,
            below,
        }
    }

    fn table_line(&self, line: Logical) -> Place {
        self.table.line(line.0 / PER_LINE)
    }
}

impl Storey for ZeroLines {
    stands_on_below!();

    fn flush(&mut self, plan: &mut Plan) {
        self.cache.flush(&mut plan.because(Cause::Mapping));
    }

    fn forget_figures(&mut self) {
        (self.writes, self.zeros) = (0, 0);
        self.cache.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        out.put(&DUPLICATE_WRITES, self.zeros as f64);
        out.put(&ZERO_WRITES_SHARE, rate(self.zeros, self.writes));
        out.put(&AMT_HIT_RATE, self.cache.hits());
        out.put(&METADATA_BYTES_PER_LINE, 64.0 / PER_LINE as f64);
    }
}

impl Layer for ZeroLines {
    type Addr = Logical;

    fn read(&mut self, a: Logical, class: Class, after: Step, plan: &mut Plan) -> Fetched {
        let table = self.table_line(a);
        let cached = self
            .cache
            .get(table, after, &mut plan.because(Cause::Mapping));
        match is_set(self.cache.line(cached), a) {
            true => At::new(Some(ZERO_LINE), cached.at),
            false => self.below.read(Place(a.0), class, cached.at, plan),
        }
    }

    fn write(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        let (line, home) = (write.at, Place(write.at.0));
        let table = self.table_line(line);
        let cached = self
            .cache
            .get(table, write.data.at, &mut plan.because(Cause::Mapping));
        let was_zero = is_set(self.cache.line(cached), line);
        let is_zero = *write.data.value == ZERO_LINE && (self.logs || write.class == Class::Data);
        self.writes += 1;
        self.zeros += u64::from(is_zero);
        let kept = match is_zero {
            true => Stored::at(plan.because(Cause::Mapping).both(cached.at, write.gate)),
            false => self.below.write(write.to(home), plan),
        };
        if !is_zero && !was_zero {
            return kept;
        }
        let mut plan = plan.because(Cause::Mapping);
        plan.exercise(match (was_zero, is_zero) {
            (false, _) => &BECOMES_ZERO,
            (true, true) => &STAYS_ZERO,
            (true, false) => &WAS_ZERO,
        });
        let ripe = plan.both(cached.at, kept.accepted);
        // A byte has the bits of eight lines: no bit is drained before those that the byte has had before it.
        let ripe = plan.both(ripe, self.cache.ripe_at(table));
        if is_zero != was_zero {
            let (byte, mask) = bit(line);
            let new = [self.cache.line(cached)[byte] ^ mask];
            self.cache.set_bytes(cached, byte, &new, ripe, &mut plan);
        }
        let stored = match write.order {
            Persist::Relaxed => Stored::at(ripe),
            Persist::CounterAtomic => self.cache.persist(table, ripe, &mut plan),
        };
        let accepted = ripe;
        stored.and(Stored { accepted, ..kept }, &mut plan)
    }

    fn persist_metadata(&mut self, a: Logical, after: Step, plan: &mut Plan) -> Stored {
        let table = self.table_line(a);
        let mut mapping = plan.because(Cause::Mapping);
        let bits = self.cache.persist(table, after, &mut mapping);
        drop(mapping);
        let below = self.below.persist_metadata(Place(a.0), after, plan);
        bits.and(below, plan)
    }

    fn preload(&mut self, a: Logical, data: &Line, plan: &mut Plan) -> bool {
        let (table, home) = (self.table_line(a), Place(a.0));
        if *data != ZERO_LINE {
            return self.below.preload(home, data, plan);
        }
        if plan.peek(home).is_some() {
            return false;
        }
        let (byte, mask) = bit(a);
        self.cache.preload(table, plan, |line| line[byte] |= mask);
        true
    }

    fn hint(&self, a: Logical, plan: &Plan) {
        self.cache.touch_ahead(self.table_line(a), plan);
        self.below.hint(Place(a.0), plan);
    }
}
