//! Counter-mode encryption with counters in lines of their own, eight to a line, behind a counter
//! cache; and the policies of when a line's counter persists with it. Source: SCA (HPCA 2018).
//! Left out: integrity (no MACs, no tree), split counters (`split`), and counters beside their lines.

use super::global_counter::{
    self, FIRST_COUNTER, GlobalCounter, LIMITS, LIMITS_PER_LINE, MARK_STRIDE, SURVIVAL,
};
use super::pad::{CHARGED, Pads};
use super::{COUNTER_CACHE_HIT_RATE, Counted, ENABLED, FIGURES, WASTED_ENCRYPTIONS};
use crate::controller::layers::{About, Counters, Design, File, Guarantee, Policy};
use crate::controller::metadata_cache::{self, METADATA_EVICTION, MetadataCache, SETS};
use crate::controller::{Class, Encryption, Figures, Layer, Persist, Storey, Write};
use crate::line::{LINE_BYTES, Line, Place, ZERO_LINE};
use crate::mechanisms::{MIXED_COUNTER_LINE, Mechanism, SHARED_COUNTER_LINE};
use crate::medium::layout::{CounterLines, Layout, Region};
use crate::medium::params::Unit;
use crate::plan::{At, Fetched, Plan, Queue, Step, Stored};
use crate::settings::{AnyKey, Settings, keys, words};
use crate::stats::Cause;

/// The choice of counters that go with a counter line which is written for one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Siblings {
    /// Only counters whose data are accepted are written.
    Accepted,
    /// All eight are written, accepted or not: the naive way, for the crash explorer to catch.
    RideAlong,
}

words!(Siblings { "accepted" => Accepted, "ride-along" => RideAlong });

keys! {
    SIBLINGS: Siblings = word("encryption.siblings", "accepted"),
        Source("what SCA needs to be right; ride-along is for the crash explorer to catch"),
        "Which other counters a line of counters carries with the one it is written for";
    COUNTER_CACHE_PER_CORE: bool = flag("encryption.counter_cache.per_core", false),
        Assumed("ESD states no counter cache"),
        "Its bytes are for each core: N cores share N times as much";
}

keys! {
    COUNTER_CACHE = cache("encryption.counter_cache.", LINE_BYTES, 524_288),
        Assumed("ESD states no counter cache; EASY-PM's Table I has 512 KB"),
        "Counter cache", "Ways of the counter cache"
        in Between("131072", "2097152", "from the least to the middle of what SCA Fig. 15 sweeps (128 KB to 8 MB); SCA's own is 1 MB a core");
}

const ON_DEMAND: &str =
    "counters not yet written back are lost; those of marked writes are atomic with their lines";

const ON_DEMAND_TRIES: &[&[&Mechanism]] = &[metadata_cache::MECHANISMS, COUNTER_LINES];
const MARKED_TRIES: &[&[&Mechanism]] = &[
    global_counter::MECHANISMS,
    metadata_cache::MECHANISMS,
    COUNTER_LINES,
];
const COUNTER_LINES: &[&Mechanism] = &[&MIXED_COUNTER_LINE, &SHARED_COUNTER_LINE];

const KEYS: &[&dyn AnyKey] = &[
    &ENABLED,
    &CHARGED,
    &SIBLINGS,
    &SURVIVAL,
    &MARK_STRIDE,
    &FIRST_COUNTER,
    &COUNTER_CACHE,
    &COUNTER_CACHE_PER_CORE,
    &SETS,
];

pub(super) const fn global(
    name: &'static str,
    build: fn(&Settings, &mut Layout) -> Encryption,
    guarantee: Guarantee,
    cut: &'static str,
    tries: &'static [&'static [&'static Mechanism]],
) -> Policy {
    Policy {
        about: About {
            name,
            keys: KEYS,
            units: &[Unit::Aes],
            figures: &[FIGURES],
            cut,
            tries,
            limits: LIMITS,
        },
        build,
        guarantee,
        counters: Counters::Global,
        keeps: None,
    }
}

/// The layers and designs of this file.
pub static FILE: File<Policy> = File {
    layers: &[
        Policy {
            about: About {
                name: "per-line",
                keys: &[
                    &ENABLED,
                    &CHARGED,
                    &SIBLINGS,
                    &FIRST_COUNTER,
                    &COUNTER_CACHE,
                    &COUNTER_CACHE_PER_CORE,
                    &SETS,
                ],
                units: &[Unit::Aes],
                figures: &[FIGURES],
                cut: ON_DEMAND,
                tries: ON_DEMAND_TRIES,
                limits: LIMITS_PER_LINE,
            },
            build: |settings, layout| Box::new(CounterMode::per_line(settings, layout)),
            guarantee: Guarantee::AfterProgramRecovery,
            counters: Counters::PerLine,
            keeps: None,
        },
        global(
            "ideal",
            |settings, layout| CounterMode::global(settings, Atomicity::Free, layout),
            Guarantee::EveryLine,
            "counters survive by fiat",
            &[global_counter::MECHANISMS, &[&METADATA_EVICTION]],
        ),
        global(
            "fca",
            |settings, layout| CounterMode::global(settings, Atomicity::Every, layout),
            Guarantee::EveryLine,
            "every counter is atomic with its line",
            &[global_counter::MECHANISMS, &[&SHARED_COUNTER_LINE]],
        ),
        global(
            "sca",
            |settings, layout| CounterMode::global(settings, Atomicity::Marked, layout),
            Guarantee::AfterProgramRecovery,
            ON_DEMAND,
            MARKED_TRIES,
        ),
        global(
            "no-atomicity",
            |settings, layout| CounterMode::global(settings, Atomicity::Never, layout),
            Guarantee::Nothing,
            "counters that the cache has not evicted are lost",
            &[global_counter::MECHANISMS, &[&METADATA_EVICTION]],
        ),
    ],
    designs: &[
        Design {
            name: "ideal",
            source: "SCA (HPCA 2018), Ideal",
            line: "counter mode whose counters survive a power cut at no cost",
            stack: "identity+ideal",
        },
        Design {
            name: "fca",
            source: "SCA (HPCA 2018), FCA",
            line: "every write persists with its counter or not at all",
            stack: "identity+fca",
        },
        Design {
            name: "sca",
            source: "SCA (HPCA 2018)",
            line: "marked writes persist with their counters, the rest on demand",
            stack: "identity+sca",
        },
        Design {
            name: "no-atomicity",
            source: "SCA (HPCA 2018), what a naive system does",
            line: "counters persist when the counter cache evicts them",
            stack: "identity+no-atomicity",
        },
    ],
};

const REGION: &str = "counters";
const PER_LINE: u64 = 8;

/// The writes that are counter-atomic, which means that the line and its counter are one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Atomicity {
    /// Writes that demand it (SCA's selective counter-atomicity).
    Marked,
    /// All writes (SCA's full counter-atomicity).
    Every,
    /// No write, and nobody writes counters back on demand: they leave the cache when they are evicted.
    Never,
    /// No write has to be: the counter of whatever the array shows is known (SCA's ideal).
    Free,
}

enum Numbers {
    /// Each line counts its own writes, from this number on at least.
    PerLine(u64),
    Global(GlobalCounter),
}

struct CounterMode {
    pads: Pads,
    region: Region,
    cache: MetadataCache,
    numbers: Numbers,
    atomicity: Atomicity,
    siblings: Siblings,
    counted: Counted,
    wasted: u64,
}

impl CounterMode {
    fn per_line(settings: &Settings, layout: &mut Layout) -> CounterMode {
        let lines = layout.data_lines().div_ceil(PER_LINE);
        let region = layout.reserve(REGION, lines);
        layout.keep_counters(counter_lines(&region, false));
        CounterMode {
            pads: Pads::new(settings),
            region,
            cache: MetadataCache::new(&COUNTER_CACHE, Unit::Counters, Queue::Counter, settings),
            numbers: Numbers::PerLine(global_counter::first(settings)),
            atomicity: Atomicity::Marked,
            siblings: settings.get(&SIBLINGS),
            counted: Counted::none(),
            wasted: 0,
        }
    }

    fn global(settings: &Settings, atomicity: Atomicity, layout: &mut Layout) -> Encryption {
        let mut mode = CounterMode::per_line(settings, layout);
        mode.numbers = Numbers::Global(GlobalCounter::new(settings, layout));
        mode.atomicity = atomicity;
        layout.keep_counters(counter_lines(&mode.region, atomicity == Atomicity::Every));
        if atomicity == Atomicity::Free {
            layout.keep_beside("the counter that it was written under");
        }
        Box::new(mode)
    }

    fn counter_line(&self, a: Place) -> Place {
        self.region.line(a.0 / PER_LINE)
    }

    /// The counter under which the newest content of `a` was encrypted.
    fn counter(&self, cached: &Line, a: Place, plan: &Plan) -> u64 {
        match self.atomicity {
            Atomicity::Free => plan.peek_sideband(a).map_or(0, u64::from_le_bytes),
            _ => counter_of(cached, a),
        }
    }

    /// The same, if it is stored anywhere.
    fn stored_counter(&self, a: Place, plan: &Plan) -> u64 {
        self.counter(&self.cache.newest(self.counter_line(a), plan), a, plan)
    }

    /// The step after which a changed counter may leave the chip: after its data are accepted, or at once.
    fn ripe(&self, stored: Stored, known: Step) -> Step {
        let waits = self.siblings == Siblings::Accepted && self.atomicity != Atomicity::Never;
        if waits { stored.accepted } else { known }
    }

    fn is_paired(&self, order: Persist) -> bool {
        match self.atomicity {
            Atomicity::Marked => order == Persist::CounterAtomic,
            Atomicity::Every => true,
            Atomicity::Never | Atomicity::Free => false,
        }
    }
}

/// Describes lines of eight counters of eight bytes. With `persist` each counter is accepted with its line.
fn counter_lines(region: &Region, persist: bool) -> CounterLines {
    CounterLines {
        region: region.clone(),
        per_line: PER_LINE,
        persist,
        groups_lines: false,
        words: |number| 1 << number,
        bits: |number| 64 * number as usize..64 * number as usize + 64,
        counter: |line, number| counter_of(line, Place(number)),
    }
}

fn counter_of(line: &Line, a: Place) -> u64 {
    let from = (a.0 % PER_LINE) as usize * 8;
    u64::from_le_bytes(line[from..from + 8].try_into().expect("8 bytes"))
}

/// The number of lines that the medium shows a counter of, and the greatest counter.
fn shown(region: &Region, atomicity: Atomicity, plan: &mut Plan) -> (u64, u64) {
    if atomicity == Atomicity::Free {
        return plan.greatest_sideband();
    }
    let (mut lines, mut greatest) = (0, 0);
    for place in plan.written(region) {
        let line = plan.scan(place).unwrap_or(ZERO_LINE);
        for counter in (0..PER_LINE).map(|word| counter_of(&line, Place(word))) {
            lines += u64::from(counter != 0);
            greatest = greatest.max(counter);
        }
    }
    (lines, greatest)
}

impl Storey for CounterMode {
    fn flush(&mut self, plan: &mut Plan) {
        self.cache.flush(&mut plan.because(Cause::Counter));
    }

    fn recover(&mut self, plan: &mut Plan) {
        let (region, atomicity) = (&self.region, self.atomicity);
        let shown = plan.looks_through().then(|| shown(region, atomicity, plan));
        self.counted = Counted(shown.map(|(lines, _)| lines));
        if let Numbers::Global(global) = &mut self.numbers {
            let shown =
                |plan: &mut Plan| shown.unwrap_or_else(|| self::shown(region, atomicity, plan));
            global.recover(|plan| shown(plan).1, plan);
        }
    }

    fn forget_figures(&mut self) {
        self.cache.forget_figures();
        self.wasted = 0;
    }

    fn figures(&self, out: &mut Figures) {
        out.put(&COUNTER_CACHE_HIT_RATE, self.cache.hits());
        self.counted.put(8, out);
        out.put(&WASTED_ENCRYPTIONS, self.wasted as f64);
    }
}

impl Layer for CounterMode {
    type Addr = Place;

    fn read(&mut self, a: Place, _class: Class, after: Step, plan: &mut Plan) -> Fetched {
        let stored = plan.read(a, after);
        let place = self.counter_line(a);
        let cached = self
            .cache
            .get(place, after, &mut plan.because(Cause::Counter));
        let counter = self.counter(self.cache.line(cached), a, plan);
        self.pads
            .decrypt(a, stored, At::new(counter, cached.at), plan)
    }

    fn write(&mut self, write: Write<Place>, plan: &mut Plan) -> Stored {
        let Write {
            at: a,
            data,
            gate,
            order,
            ..
        } = write;
        let place = self.counter_line(a);
        let cached = self
            .cache
            .get(place, data.at, &mut plan.because(Cause::Counter));
        let old = self.counter(self.cache.line(cached), a, plan);
        self.counted.add(old == 0);
        let (counter, known, gate) = match &mut self.numbers {
            Numbers::PerLine(first) => (old.wrapping_add(1).max(*first), cached.at, gate),
            Numbers::Global(global) => {
                // A miss does not stall the write: its counter is a new one.
                let next = global.next(&mut plan.because(Cause::Counter));
                (next.value, data.at, plan.both(gate, next.at))
            }
        };
        let pad = plan.because(Cause::Encryption).unit(Unit::Aes, known);
        let at = plan.both(data.at, pad);
        let line = self.pads.crypt(a, counter, data.value);
        let bytes = counter.to_le_bytes();
        let beside = (self.atomicity == Atomicity::Free).then_some(bytes);
        let line = At::new(&line, at);
        let stored = plan.write_words(a, line, 0xff, beside, gate, Queue::Data);

        let word = (a.0 % PER_LINE) as usize;
        let ripe = self.ripe(stored, cached.at);
        let mut plan = plan.because(Cause::Counter);
        // A new counter whose line of eight is still on its way is drained all the same.
        let (from, drained) = (word * 8, stored.accepted);
        self.cache
            .set_bytes_drained(cached, from, &bytes, ripe, drained, &mut plan);
        if !self.is_paired(order) {
            plan.sealed(stored, a, counter, None);
            return stored;
        }
        let words = match self.siblings {
            Siblings::Accepted => 1 << word,
            Siblings::RideAlong => self.cache.dirty(cached),
        };
        let line = At::new(self.cache.line(cached), cached.at);
        let paired = plan.write_words(place, line, words, None, gate, Queue::Counter);
        self.cache.clean(cached, words);
        plan.group(&[stored, paired]);
        plan.sealed(stored, a, counter, Some(paired));
        Stored {
            accepted: stored.accepted,
            done: plan.both(stored.done, paired.done),
        }
    }

    fn discard_encryption(&mut self, a: Place, data: Step, plan: &mut Plan) {
        self.wasted += 1;
        let place = self.counter_line(a);
        let mut plan = plan.because(Cause::Encryption);
        let cached = self.cache.get(place, data, &mut plan);
        self.pads.unstored(cached.at, &mut plan);
    }

    /// Writes a dirty hit back whole and keeps it, `counter_cache_writeback()` of SCA. Its bytes exist already.
    fn persist_metadata(&mut self, a: Place, after: Step, plan: &mut Plan) -> Stored {
        if matches!(self.atomicity, Atomicity::Never | Atomicity::Free) {
            return Stored::at(after);
        }
        let place = self.counter_line(a);
        self.cache
            .persist(place, after, &mut plan.because(Cause::Counter))
    }

    fn preload(&mut self, a: Place, data: &Line, plan: &mut Plan) -> bool {
        let counter = self.pads.before();
        if plan.peek(a).is_some() || self.stored_counter(a, plan) != 0 || counter == 0 {
            return false;
        }
        self.counted.add(true);
        let (secret, bytes) = (self.pads.crypt(a, counter, data), counter.to_le_bytes());
        let beside = (self.atomicity == Atomicity::Free).then_some(bytes);
        plan.preload(a, beside, |line| *line = secret);
        let (counters, from) = (self.counter_line(a), (a.0 % PER_LINE) as usize * 8);
        self.cache.preload(counters, plan, |line| {
            line[from..from + 8].copy_from_slice(&bytes);
        });
        true
    }

    fn peek(&self, a: Place, plan: &Plan) -> Option<Line> {
        let counter = self.stored_counter(a, plan);
        let line = plan.peek(a).filter(|_| counter != 0)?;
        Some(self.pads.crypt(a, counter, &line))
    }

    fn hint(&self, a: Place, plan: &Plan) {
        plan.touch_ahead(a);
        self.cache.touch_ahead(self.counter_line(a), plan);
    }
}
