//! Counter mode with split counters: a line of counters is about a page, 64 lines that share a major number and have a
//! minor one each. Every write persists with its counter. Where a minor number overflows, all lines of its page that
//! have been written are read, decrypted and encrypted under their new counters, in one group with the write and the
//! line of counters. Source: Yan et al., "Improving Cost, Performance, and Security of Memory Encryption and
//! Authentication" (ISCA 2006), from memory; it says nothing of power cuts, so that one group does it is *assumed*.
//! Left out: counters that persist on demand, as minor numbers share words and one would carry its neighbours; an
//! encryption of the page in the background.

use super::counter_mode::{COUNTER_CACHE, COUNTER_CACHE_PER_CORE};
use super::global_counter::{FIRST_COUNTER, PLACES};
use super::pad::{CHARGED, Pads};
use super::{COUNTER_BYTES, COUNTER_CACHE_HIT_RATE, Counted, ENABLED, WASTED_ENCRYPTIONS};
use crate::controller::layers::{About, Counters, File, Guarantee, Limit, Policy, Reached};
use crate::controller::metadata_cache::{MetadataCache, SETS, spread};
use crate::controller::split_counters::{self, Bump, PER_LINE};
use crate::controller::{Class, Encryption, Figures, Layer, Storey, Write};
use crate::figures::figures;
use crate::line::{Line, Place, ZERO_LINE};
use crate::mechanisms::SHARED_COUNTER_LINE;
use crate::medium::layout::{CounterLines, Layout, Region};
use crate::medium::params::{Unit, WRITTEN};
use crate::plan::{At, Fetched, Plan, Queue, Step, Stored};
use crate::settings::{Settings, keys, words};
use crate::stats::Cause;

keys! {
    MINOR_BITS: u64 = int("encryption.minor_bits", (1, 7), 7),
        Source("split counters, Yan et al. (ISCA 2006), from memory"),
        "Bits of the minor counters of split, 64 to a line under one major; where one overflows its page is encrypted anew"
        in Between("4", "7", "a page is encrypted anew eight times as often, or as in the paper")
        under |by| if by.limits { Some(1) } else { by.stride.map(|_| 2) };
}

/// The minor counters of lines that were written before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastMinors {
    /// Those of a page are equal, and its number is anything from 1 on, so that pages overflow at different times.
    Spread,
    /// All are 1: each page has just been encrypted anew.
    Least,
}

words!(PastMinors { "spread" => Spread, "least" => Least });

keys! {
    PAST_MINORS: PastMinors = word("encryption.past_minors", "spread"),
        Assumed("a page may be anywhere between two encryptions, and nothing says how evenly its lines were written"),
        "Minor counters of split before the run: spread over all numbers page by page, or least, as after an overflow"
        needs WRITTEN;
}

figures! { "Encryption";
    PAGE_ENCRYPTIONS: Count Less "page_encryptions", "`split`: pages encrypted anew because a minor counter overflowed";
}

const LIMITS: &[Limit] = &[
    Limit {
        name: "minor encryption counters",
        bits: 7,
        begins: None,
        pads: false,
        reached: Reached::Pressed,
    },
    Limit {
        name: "encryption counters",
        bits: 57,
        begins: Some(&FIRST_COUNTER),
        pads: true,
        reached: Reached::Never("it takes 2^57 overflows of a page"),
    },
    PLACES,
];

/// The layers and designs of this file.
pub static FILE: File<Policy> = File {
    layers: &[Policy {
        about: About {
            name: "split",
            keys: &[
                &ENABLED,
                &CHARGED,
                &MINOR_BITS,
                &PAST_MINORS,
                &FIRST_COUNTER,
                &COUNTER_CACHE,
                &COUNTER_CACHE_PER_CORE,
                &SETS,
            ],
            units: &[Unit::Aes],
            figures: &[
                &[&COUNTER_CACHE_HIT_RATE, &COUNTER_BYTES, &WASTED_ENCRYPTIONS],
                FIGURES,
            ],
            cut: "every counter is atomic with its line, and a page that overflows with all its lines",
            tries: &[&[&SHARED_COUNTER_LINE]],
            limits: LIMITS,
        },
        build: |settings, layout| build(settings, layout),
        guarantee: Guarantee::EveryLine,
        counters: Counters::PerLine,
        keeps: None,
    }],
    designs: &[],
};

const REGION: &str = "counters";

struct Split {
    pads: Pads,
    region: Region,
    /// A cache of lines of counters, which never differ from the medium's.
    cache: MetadataCache,
    bits: u64,
    first: u64,
    past: PastMinors,
    counted: Counted,
    wasted: u64,
    pages: u64,
}

fn build(settings: &Settings, layout: &mut Layout) -> Encryption {
    let lines = layout.data_lines().div_ceil(PER_LINE);
    let region = layout.reserve(REGION, lines);
    layout.keep_counters(CounterLines {
        region: region.clone(),
        per_line: PER_LINE,
        persist: true,
        groups_lines: true,
        words,
        bits: split_counters::bits_of,
        counter: split_counters::get,
    });
    Box::new(Split {
        pads: Pads::new(settings),
        region,
        cache: MetadataCache::new(&COUNTER_CACHE, Unit::Counters, Queue::Counter, settings),
        bits: settings.get(&MINOR_BITS),
        // The first counter is 1, which a major number of 0 has.
        first: settings.get(&FIRST_COUNTER) - 1,
        past: settings.get(&PAST_MINORS),
        counted: Counted::none(),
        wasted: 0,
        pages: 0,
    })
}

struct Sealed {
    stored: Stored,
    place: Place,
    counter: u64,
}

/// The words of a line that counter `slot` is made of: its minor number's, and the major number's.
fn words(slot: u64) -> u8 {
    let bits = split_counters::bits_of(slot);
    1 | 1 << (bits.start / 64) | 1 << ((bits.end - 1) / 64)
}

/// The newest line at `place`, from its write on the way if there is one.
fn newest(place: Place, after: Step, plan: &mut Plan) -> Fetched {
    match plan.under_way(place).accepted == Step::PAST {
        true => plan.read(place, after),
        // To read it would be to wait for it, and it may wait for this request.
        false => At::past(plan.peek(place)),
    }
}

impl Split {
    fn counter_line(&self, a: Place) -> Place {
        self.region.line(a.0 / PER_LINE)
    }

    /// The minor number of lines of a page that were written before this run and not in it. `line` has the page's
    /// counters.
    fn minor_before(&self, page: u64, line: &Line) -> u64 {
        let overflowed = split_counters::major(line) > self.first;
        match self.past {
            PastMinors::Spread if !overflowed => 1 + spread(page, (1 << self.bits) - 1),
            _ => 1,
        }
    }

    fn write_under(
        &self,
        a: Place,
        counter: At<u64>,
        data: At<&Line>,
        gate: Step,
        plan: &mut Plan,
    ) -> Stored {
        let pad = plan.because(Cause::Encryption).unit(Unit::Aes, counter.at);
        let at = plan.both(data.at, pad);
        let line = self.pads.crypt(a, counter.value, data.value);
        plan.write_words(a, At::new(&line, at), 0xff, None, gate, Queue::Data)
    }

    /// Encrypts all other lines of the page of `a` again: they have been under their counters in `before`, and are
    /// written under those in `now`. Returns their writes, and those of lines whose content is unknown.
    fn encrypt_page(
        &mut self,
        a: Place,
        before: &Line,
        now: At<&Line>,
        gate: Step,
        plan: &mut Plan,
    ) -> (Vec<Sealed>, Vec<Stored>) {
        self.pages += 1;
        let first = a.0 - a.0 % PER_LINE;
        let plan = &mut plan.because(Cause::Encryption);
        let (mut written, mut unknown) = (Vec::new(), Vec::new());
        for slot in (0..PER_LINE).filter(|slot| first + slot != a.0) {
            let (place, old) = (Place(first + slot), split_counters::get(before, slot));
            if old == 0 && !self.pads.covers_unknown() {
                continue;
            }
            let read = newest(place, now.at, plan);
            let read = self.pads.decrypt(place, read, At::new(old, now.at), plan);
            let Some(plain) = read.value else {
                if old == 0 {
                    let pad = plan.because(Cause::Encryption).unit(Unit::Aes, now.at);
                    let bytes =
                        self.pads
                            .crypt(place, split_counters::fresh(now.value), &ZERO_LINE);
                    let data = At::new(&bytes, plan.both(read.at, pad));
                    unknown.push(plan.write_unknown(place, data, gate));
                }
                continue; // otherwise it has been refused
            };
            let counter = At::new(split_counters::get(now.value, slot), now.at);
            let from = plan.upcoming();
            let data = At::new(&plain, read.at);
            let stored = self.write_under(place, counter, data, gate, plan);
            plan.logged(from, &plain);
            written.push(Sealed {
                stored,
                place,
                counter: counter.value,
            });
        }
        (written, unknown)
    }
}

impl Storey for Split {
    fn flush(&mut self, plan: &mut Plan) {
        self.cache.flush(&mut plan.because(Cause::Counter));
    }

    fn recover(&mut self, plan: &mut Plan) {
        if !plan.looks_through() {
            self.counted = Counted(None);
            return;
        }
        let mut lines = 0;
        for place in plan.written(&self.region) {
            let line = plan.scan(place).unwrap_or(ZERO_LINE);
            let minors = (0..PER_LINE).map(|slot| split_counters::minor(&line, slot));
            lines += minors.filter(|minor| *minor != 0).count() as u64;
        }
        self.counted = Counted(Some(lines));
    }

    fn forget_figures(&mut self) {
        self.cache.forget_figures();
        (self.wasted, self.pages) = (0, 0);
    }

    fn figures(&self, out: &mut Figures) {
        out.put(&COUNTER_CACHE_HIT_RATE, self.cache.hits());
        // A byte less a bit of its own, and its part of the major number.
        self.counted.put(1, out);
        out.put(&WASTED_ENCRYPTIONS, self.wasted as f64);
        out.put(&PAGE_ENCRYPTIONS, self.pages as f64);
    }
}

impl Layer for Split {
    type Addr = Place;

    fn read(&mut self, a: Place, _class: Class, after: Step, plan: &mut Plan) -> Fetched {
        let stored = plan.read(a, after);
        let place = self.counter_line(a);
        let cached = self
            .cache
            .get(place, after, &mut plan.because(Cause::Counter));
        let counter = split_counters::get(self.cache.line(cached), a.0 % PER_LINE);
        self.pads
            .decrypt(a, stored, At::new(counter, cached.at), plan)
    }

    fn write(&mut self, write: Write<Place>, plan: &mut Plan) -> Stored {
        let Write {
            at: a, data, gate, ..
        } = write;
        let (place, slot) = (self.counter_line(a), a.0 % PER_LINE);
        let cached = self
            .cache
            .get(place, data.at, &mut plan.because(Cause::Counter));
        let before = *self.cache.line(cached);
        let mut now = before;
        if self.pads.covers_unknown() && split_counters::minor(&now, slot) == 0 {
            split_counters::set_minor(&mut now, slot, self.minor_before(a.0 / PER_LINE, &before));
        }
        let bump = split_counters::bump(&mut now, slot, self.bits, self.first);
        self.counted.add(split_counters::get(&before, slot) == 0);
        let counter = At::new(split_counters::get(&now, slot), cached.at);
        let stored = self.write_under(a, counter, data, gate, plan);
        let (others, unknown) = match bump {
            Bump::Counted => (Vec::new(), Vec::new()),
            Bump::Overflowed => self.encrypt_page(a, &before, At::new(&now, cached.at), gate, plan),
        };
        let carried = match bump {
            Bump::Counted => words(slot),
            Bump::Overflowed => 0xff,
        };
        let accepted = stored.accepted;
        let counters = &mut plan.because(Cause::Counter);
        self.cache
            .set_bytes_drained(cached, 0, &now, accepted, accepted, counters);
        let line = At::new(&now, cached.at);
        let paired = counters.write_words(place, line, carried, None, gate, Queue::Counter);
        self.cache.clean(cached, 0xff);
        let mut group: Vec<Stored> = others.iter().map(|sealed| sealed.stored).collect();
        group.extend(unknown);
        group.extend([stored, paired]);
        counters.group(&group);
        counters.sealed(stored, a, counter.value, Some(paired));
        for other in others {
            counters.sealed(other.stored, other.place, other.counter, Some(paired));
        }
        let done = group
            .iter()
            .fold(Step::PAST, |done, one| counters.both(done, one.done));
        Stored { accepted, done }
    }

    fn discard_encryption(&mut self, a: Place, data: Step, plan: &mut Plan) {
        self.wasted += 1;
        let place = self.counter_line(a);
        let mut plan = plan.because(Cause::Encryption);
        let cached = self.cache.get(place, data, &mut plan);
        self.pads.unstored(cached.at, &mut plan);
    }

    fn persist_metadata(&mut self, a: Place, after: Step, plan: &mut Plan) -> Stored {
        let place = self.counter_line(a);
        self.cache
            .persist(place, after, &mut plan.because(Cause::Counter))
    }

    fn preload(&mut self, a: Place, data: &Line, plan: &mut Plan) -> bool {
        let (place, slot) = (self.counter_line(a), a.0 % PER_LINE);
        let counters = self.cache.newest(place, plan);
        let stored = split_counters::minor(&counters, slot) != 0;
        if plan.peek(a).is_some() || stored || !self.pads.covers_unknown() {
            return false;
        }
        self.counted.add(true);
        let minor = self.minor_before(a.0 / PER_LINE, &counters);
        let mut now = counters;
        split_counters::set(&mut now, slot, minor, self.first);
        let secret = self.pads.crypt(a, split_counters::get(&now, slot), data);
        plan.preload(a, None, |line| *line = secret);
        self.cache.preload(place, plan, |line| {
            split_counters::set(line, slot, minor, self.first);
        });
        true
    }

    fn peek(&self, a: Place, plan: &Plan) -> Option<Line> {
        let counters = self.cache.newest(self.counter_line(a), plan);
        let counter = split_counters::get(&counters, a.0 % PER_LINE);
        let line = plan.peek(a).filter(|_| counter != 0)?;
        Some(self.pads.crypt(a, counter, &line))
    }

    fn hint(&self, a: Place, plan: &Plan) {
        plan.touch_ahead(a);
        self.cache.touch_ahead(self.counter_line(a), plan);
    }
}
