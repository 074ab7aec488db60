//! DEUCE, dual counter encryption: of a line's words those are encrypted anew that have changed since its epoch began.
//! Source: Young, Nair and Qureshi, "DEUCE: Write-Efficient Encryption for Non-Volatile Memories" (ASPLOS 2015), from
//! memory. The reading taken: a line counts its own writes. That counter is the leading one; the trailing one is the
//! same with the low bits of the epoch taken off, which is the leading one as the epoch began. A bit for each word says
//! whether the word has changed since: then it lies under the leading counter's pad, and is encrypted anew at each
//! write, else under the trailing one's and as it lay. A write that begins an epoch encrypts all words and clears the
//! bits; so does a line's first. Counter and bits lie in the eight bytes beside the line and persist with it. A write
//! reads the line, its counter and bits first, and decrypts it to find the words that change (`reads_first`).
//!
//! A policy of its own, not an option of the others: the trailing counter must follow from the leading one, so a
//! counter that all lines draw from (`sca`, `fca`, `ideal`, `co-located`) has none; and counters in lines of their own
//! (`per-line`) may be older after a power cut than the bits beside the line, which then say what they never said.
//! Left out: a cache of counters, the time that comparing takes, the paper's variants (INVMM, dynamic DEUCE) and its
//! wear levelling.

use super::global_counter::{FIRST_COUNTER, PLACES};
use super::pad::{CHARGED, Pads};
use super::{COUNTER_BYTES, Counted, ENABLED, WASTED_ENCRYPTIONS};
use crate::controller::layers::{About, Counters, Design, File, Guarantee, Limit, Policy, Reached};
use crate::controller::metadata_cache::spread;
use crate::controller::{Class, Encryption, Figures, Layer, Storey, Write};
use crate::exhausted::Exhausted;
use crate::figures::{Amount, figures};
use crate::line::{LINE_BYTES, Line, Place};
use crate::mechanisms::mechanisms;
use crate::medium::params::Unit;
use crate::plan::{At, Fetched, Plan, Queue, Step, Stored};
use crate::settings::{Needs, Settings, keys};
use crate::stats::Cause;

const KEEPS: Needs = Needs {
    met: |settings| settings.get(&EPOCH) > 1,
    switches: &["encryption.deuce.epoch"],
    what: "encryption.deuce.epoch is more than 1",
};

keys! {
    EPOCH: u64 = power_of_two("encryption.deuce.epoch", (1, 1024), 32),
        Source("ASPLOS 2015, from memory"),
        "Writes of a line from one encryption of all its words to the next; 1: all words at each write"
        under |by| by.stride.map(|stride| stride.next_power_of_two().max(4));
    WORD_BYTES: u64 = power_of_two("encryption.deuce.word_bytes", (2, 8), 2),
        Source("ASPLOS 2015, from memory: 32 bits a line"),
        "Bytes of a word that keeps its ciphertext unless it has changed; a bit for each lies beside the line" needs KEEPS;
    READS_FIRST: bool = flag("encryption.deuce.reads_first", true),
        Assumed("the paper reads the old line for a data-comparison write anyway; here that is in the write's time"),
        "A write reads the line and its bits from the medium and decrypts it first; false: both are known at no cost";
}

figures! { "Encryption";
    KEPT_WORDS_SHARE: Ratio More "kept_words_share", "`deuce`: share of the words written that kept their ciphertext";
}

mechanisms! {
    EPOCH_BEGUN = "epochs begun", least 30;
    WORDS_KEPT = "writes that keep words", least 30;
}

const LIMITS: &[Limit] = &[
    Limit {
        name: "encryption counters",
        bits: u32::BITS,
        begins: Some(&FIRST_COUNTER),
        pads: true,
        reached: Reached::Near {
            bits: &[16, 24],
            below: 8,
        },
    },
    Limit::unreached(
        "the last encryption counter",
        u32::BITS,
        "a line's cells wear out long before 2^32 writes; the write is then refused",
    ),
    PLACES,
];

/// The layers and designs of this file.
pub static FILE: File<Policy> = File {
    layers: &[Policy {
        about: About {
            name: "deuce",
            keys: &[
                &ENABLED,
                &CHARGED,
                &EPOCH,
                &WORD_BYTES,
                &READS_FIRST,
                &FIRST_COUNTER,
            ],
            units: &[Unit::Aes],
            figures: &[&[&COUNTER_BYTES, &WASTED_ENCRYPTIONS], FIGURES],
            cut: "counter and bits are atomic with their line",
            tries: &[MECHANISMS],
            limits: LIMITS,
        },
        build: |settings, layout| {
            layout.keep_beside("its encryption counter and bits of its words");
            build(settings)
        },
        guarantee: Guarantee::EveryLine,
        counters: Counters::PerLine,
        keeps: Some(&WORD_BYTES),
    }],
    designs: &[Design {
        name: "deuce",
        source: "DEUCE (Young et al., ASPLOS 2015)",
        line: "words that do not change keep their ciphertext for an epoch of 32 writes",
        stack: "identity+deuce",
    }],
};

fn build(settings: &Settings) -> Encryption {
    Box::new(Deuce {
        pads: Pads::new(settings),
        epoch: settings.get(&EPOCH),
        word_bytes: settings.get(&WORD_BYTES) as usize,
        reads_first: settings.get(&READS_FIRST),
        first: settings.get(&FIRST_COUNTER),
        counted: Counted::none(),
        wasted: 0,
        words: 0,
        kept: 0,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Beside {
    counter: u32,
    /// Words that have changed since the epoch began, a bit for each.
    changed: u32,
}

impl Beside {
    fn from_bytes(bytes: [u8; 8]) -> Beside {
        let both = u64::from_le_bytes(bytes);
        Beside {
            counter: both as u32,
            changed: (both >> 32) as u32,
        }
    }

    fn bytes(self) -> [u8; 8] {
        (u64::from(self.counter) | u64::from(self.changed) << 32).to_le_bytes()
    }
}

/// Encryption with two virtual counters, over a medium with eight bytes beside each line.
struct Deuce {
    pads: Pads,
    epoch: u64,
    word_bytes: usize,
    reads_first: bool,
    first: u64,
    counted: Counted,
    wasted: u64,
    words: u64,
    kept: u64,
}

impl Deuce {
    fn all(&self) -> u32 {
        u32::MAX >> (32 - LINE_BYTES / self.word_bytes)
    }

    fn trailing(&self, counter: u64) -> u64 {
        counter & !(self.epoch - 1)
    }

    fn crypt(&self, a: Place, beside: Beside, line: &Line) -> Line {
        let leading = u64::from(beside.counter);
        let under = |counter| self.pads.crypt(a, counter, line);
        if beside.changed == self.all() {
            return under(leading);
        }
        let mut out = under(self.trailing(leading));
        if beside.changed != 0 {
            let newer = under(leading);
            for word in (0..LINE_BYTES / self.word_bytes).filter(|w| beside.changed >> w & 1 == 1) {
                let bytes = word * self.word_bytes..(word + 1) * self.word_bytes;
                out[bytes.clone()].copy_from_slice(&newer[bytes]);
            }
        }
        out
    }

    fn make_pads(&self, beside: Beside, known: Step, plan: &mut Plan) -> Step {
        let one = self.pads.unstored(known, plan);
        if beside.changed == 0 || beside.changed == self.all() {
            return one;
        }
        let other = self.pads.unstored(known, plan);
        plan.both(one, other)
    }

    fn differing(&self, old: &Line, new: &Line) -> u32 {
        let words = old.chunks(self.word_bytes).zip(new.chunks(self.word_bytes));
        let differ = words.enumerate().filter(|(_, (old, new))| old != new);
        differ.fold(0, |bits, (word, _)| bits | 1 << word)
    }

    /// What lies beside the line at `a` that was written before this run, if it was: its counter, at any point of an
    /// epoch (*assumed*), in which no word has changed so far (*assumed*: one pad opens it).
    fn before(&self, a: Place) -> Option<Beside> {
        self.pads.covers_unknown().then(|| Beside {
            counter: (self.first.next_multiple_of(self.epoch) + spread(a.0, self.epoch)) as u32,
            changed: 0,
        })
    }

    /// The counter of the write after the one with `old` beside it, and whether it begins an epoch. Any of a line's
    /// words may change if its content is not `known`.
    fn next(&self, old: Option<Beside>, known: bool, plan: &mut Plan) -> (u64, bool) {
        let old: u64 = old.map_or(0, |beside| beside.counter.into());
        let next = old.wrapping_add(1).max(self.first);
        let begins = !known || old == 0 || self.trailing(next) != self.trailing(old);
        let next = if begins {
            next.next_multiple_of(self.epoch)
        } else {
            next
        };
        if next > u64::from(u32::MAX) {
            plan.fail(Exhausted {
                problem: "the encryption counter of a line is used up",
                remedy: "give a smaller encryption.first_counter, or encrypt all of memory anew under another key",
                key: None,
            });
            return (old.max(1), begins);
        }
        (next, begins)
    }
}

impl Storey for Deuce {
    fn recover(&mut self, plan: &mut Plan) {
        let shown = plan.looks_through().then(|| plan.greatest_sideband().0);
        self.counted = Counted(shown);
    }

    fn forget_figures(&mut self) {
        (self.wasted, self.words, self.kept) = (0, 0, 0);
    }

    fn figures(&self, out: &mut Figures) {
        self.counted.put(8, out);
        out.put(&WASTED_ENCRYPTIONS, self.wasted as f64);
        out.put(
            &KEPT_WORDS_SHARE,
            Amount::Part {
                of: self.words,
                part: self.kept,
            },
        );
    }
}

impl Layer for Deuce {
    type Addr = Place;

    fn read(&mut self, a: Place, _class: Class, after: Step, plan: &mut Plan) -> Fetched {
        let stored = plan.read(a, after);
        let beside = plan.peek_sideband(a).map(Beside::from_bytes);
        let found = stored.value.zip(beside);
        let Some(under) = found.map(|(_, beside)| beside).or_else(|| self.before(a)) else {
            return At::new(None, stored.at);
        };
        let pads = self.make_pads(under, stored.at, &mut plan.because(Cause::Encryption));
        At::new(
            found.map(|(line, beside)| self.crypt(a, beside, &line)),
            pads,
        )
    }

    fn write(&mut self, write: Write<Place>, plan: &mut Plan) -> Stored {
        let Write {
            at: a, data, gate, ..
        } = write;
        let found = match self.reads_first {
            true => plan.because(Cause::Encryption).read(a, data.at),
            false => At::new(plan.peek(a), data.at),
        };
        let beside = plan.peek_sideband(a).map(Beside::from_bytes);
        let old = found.value.zip(beside);
        self.counted.add(old.is_none());
        let under = old.map(|(_, beside)| beside).or_else(|| self.before(a));
        let (counter, begins) = self.next(under, old.is_some(), plan);
        let mut at = plan.because(Cause::Encryption).unit(Unit::Aes, found.at);
        // The words that change are found in the old content, even where only hardware knows it.
        let is_compared = !begins || old.is_none();
        if let Some(beside) = under.filter(|_| is_compared && self.reads_first) {
            let mut plan = plan.because(Cause::Encryption);
            let decrypted = self.make_pads(beside, found.at, &mut plan);
            at = plan.both(at, decrypted);
        }
        let changed = match old {
            Some((line, beside)) if !begins => {
                beside.changed | self.differing(&self.crypt(a, beside, &line), data.value)
            }
            _ => 0,
        };
        let beside = Beside {
            counter: counter as u32,
            changed,
        };
        let words = (LINE_BYTES / self.word_bytes) as u64;
        self.words += words;
        if !begins {
            let kept = words - u64::from(changed.count_ones());
            self.kept += kept;
            if kept > 0 {
                plan.exercise(&WORDS_KEPT);
            }
        } else if old.is_some() {
            plan.exercise(&EPOCH_BEGUN);
        }
        let line = self.crypt(a, beside, data.value);
        let (line, spare) = (At::new(&line, plan.both(data.at, at)), Some(beside.bytes()));
        let stored = plan.write_words(a, line, 0xff, spare, gate, Queue::Data);
        plan.sealed(stored, a, counter, None);
        stored
    }

    fn discard_encryption(&mut self, _a: Place, data: Step, plan: &mut Plan) {
        self.wasted += 1;
        self.pads
            .unstored(data, &mut plan.because(Cause::Encryption));
    }

    fn preload(&mut self, a: Place, data: &Line, plan: &mut Plan) -> bool {
        let before = self.before(a).filter(|_| plan.peek(a).is_none());
        let Some(beside) = before else {
            return false;
        };
        self.counted.add(true);
        let secret = self.crypt(a, beside, data);
        plan.preload(a, Some(beside.bytes()), |line| *line = secret);
        true
    }

    fn peek(&self, a: Place, plan: &Plan) -> Option<Line> {
        let beside = Beside::from_bytes(plan.peek_sideband(a)?);
        Some(self.crypt(a, beside, &plan.peek(a)?))
    }

    fn hint(&self, a: Place, plan: &Plan) {
        plan.touch_ahead(a);
    }
}
