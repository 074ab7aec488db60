//! The one counter that all writes draw from (SCA, HPCA 2018, Sec. 5.2.1), and how it survives a
//! power cut, which the paper does not say: from what the image shows, or by a persisted mark that
//! is always ahead of every counter in use.
//! Left out: where each line's counter is kept.

use crate::controller::layers::{HIGH, Limit, Reached};
use crate::exhausted::Exhausted;
use crate::line::ZERO_LINE;
use crate::mechanisms::mechanisms;
use crate::medium::layout::{Layout, Region};
use crate::medium::params::{PAST, Past};
use crate::plan::{At, Plan, Queue, Step};
use crate::settings::{Needs, Settings, keys, words};

/// How the global counter survives a power cut. SCA does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// A mark in the medium bounds the counters in use. It is written before any counter beyond it is used.
    HighWater,
    /// The counter continues from the greatest one that the image shows.
    Paper,
}

words!(Survival { "high-water" => HighWater, "paper" => Paper });

const MARKED: Needs = Needs {
    met: |settings| settings.get(&SURVIVAL) == Survival::HighWater,
    switches: &["encryption.global_counter"],
    what: "encryption.global_counter is high-water",
};

mechanisms! {
    COUNTER_MARK = "counter marks", least 30;
}

keys! {
    SURVIVAL: Survival = word("encryption.global_counter", "high-water"),
        Source("SCA does not say; see [power cuts](../crash/power-cuts.md)"),
        "How the global counter survives a power cut: by a persisted mark, or from what is shown";
    MARK_STRIDE: u64 = int("encryption.mark_stride", (2, 1 << 40), 4096),
        Assumed("no source; its cost is too small to measure"),
        "How far ahead of the global counter its mark is written, in writes; half of it lies between two marks"
        in Between("64", "65536", "from a mark every 32 writes to one every 32,768") needs MARKED
        under |by| by.stride;
    FIRST_COUNTER: u64 = int("encryption.first_counter", (1, 1 << 62), 1),
        Source("for the crash explorer: a machine that has run for long"),
        "The first encryption counter that is drawn where the medium shows no greater; of a memory with a past, that of its lines";
}

/// The encryption counter of lines that were written before the run; 0 if there are none. Numbers do not matter as long
/// as none is used again.
pub(super) fn before(settings: &Settings) -> u64 {
    match settings.get(&PAST) {
        Past::Empty => 0,
        Past::Written => settings.get(&FIRST_COUNTER),
    }
}

/// The first encryption counter that a run draws.
pub(super) fn first(settings: &Settings) -> u64 {
    settings.get(&FIRST_COUNTER).max(before(settings) + 1)
}

/// Limits of a counter that all lines draw from.
pub const LIMITS: &[Limit] = &[
    Limit {
        name: "encryption counters",
        bits: 64,
        begins: Some(&FIRST_COUNTER),
        pads: true,
        reached: Reached::Near {
            bits: WIDTHS,
            below: 100,
        },
    },
    LAST,
    PLACES,
];
/// Limits of counters that each line keeps for itself.
pub const LIMITS_PER_LINE: &[Limit] = &[
    Limit {
        name: "encryption counters",
        bits: 64,
        begins: Some(&FIRST_COUNTER),
        pads: true,
        reached: Reached::Near {
            bits: WIDTHS,
            below: 3,
        },
    },
    LAST,
    PLACES,
];
/// Powers of two that a run's counters reach. A carry into the last byte passes through all bytes before it.
const WIDTHS: &[u32] = &[16, 32, 56];
const LAST: Limit = Limit::unreached(
    "the last encryption counter",
    64,
    "it takes 2^64 writes; a global counter then refuses to go on",
);
/// The limit of places, of which pads are made.
pub const PLACES: Limit = Limit {
    name: "places in pads",
    bits: 56,
    begins: None,
    pads: false,
    reached: Reached::High { bits: HIGH },
};

/// The region of the mark, which no counter that a cut leaves is above.
pub const MARK: &str = "counter-mark";

/// Counters up to `limit` may be used after `written`.
#[derive(Clone, Copy)]
struct CounterMark {
    limit: u64,
    written: Step,
}

impl CounterMark {
    fn past(limit: u64) -> CounterMark {
        let written = Step::PAST;
        CounterMark { limit, written }
    }
}

/// The counter's register, and its mark in the medium.
pub struct GlobalCounter {
    survival: Survival,
    stride: u64,
    region: Region,
    value: u64,
    /// The last two marks, the older one first.
    marks: [CounterMark; 2],
}

impl GlobalCounter {
    /// A counter that has never been drawn. Its mark gets a region of its own.
    pub fn new(settings: &Settings, layout: &mut Layout) -> GlobalCounter {
        GlobalCounter {
            survival: settings.get(&SURVIVAL),
            stride: settings.get(&MARK_STRIDE),
            region: layout.reserve(MARK, 1),
            value: first(settings) - 1,
            marks: [CounterMark::past(0); 2],
        }
    }

    /// The next counter, and the step before which nothing encrypted under it may leave the chip.
    pub fn next(&mut self, plan: &mut Plan) -> At<u64> {
        if self.value >= u64::MAX - self.stride {
            plan.fail(Exhausted {
                problem: "the encryption counters are used up",
                remedy: "encrypt all of memory anew under another key",
                key: None,
            });
            return At::past(self.value);
        }
        self.value += 1;
        if self.survival == Survival::Paper {
            return At::past(self.value);
        }
        // Half a stride ahead, so that the mark is there before anybody waits for it.
        if self.value + self.stride / 2 >= self.marks[1].limit {
            let limit = self.value + self.stride;
            let mut line = ZERO_LINE;
            line[..8].copy_from_slice(&limit.to_le_bytes());
            let (place, data) = (self.region.line(0), At::past(&line));
            plan.exercise(&COUNTER_MARK);
            let mark = plan.write_words(place, data, 1, None, Step::PAST, Queue::Counter);
            let written = mark.accepted;
            self.marks = [self.marks[1], CounterMark { limit, written }];
        }
        let older = self.value <= self.marks[0].limit;
        At::new(self.value, self.marks[usize::from(!older)].written)
    }

    /// Begins again after a power cut. `shown` finds the greatest counter that the image shows.
    pub fn recover(&mut self, shown: impl FnOnce(&mut Plan) -> u64, plan: &mut Plan) {
        let known = match self.survival {
            Survival::Paper => shown(plan),
            Survival::HighWater => {
                let mark = plan.scan(self.region.line(0)).unwrap_or(ZERO_LINE);
                u64::from_le_bytes(mark[..8].try_into().expect("8 bytes"))
            }
        };
        self.value = self.value.max(known);
        self.marks = [CounterMark::past(self.value); 2];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::image::Image;

    fn counter(survival: Survival) -> (GlobalCounter, Layout) {
        let mut layout = Layout::new(64);
        let mut settings = Settings::default();
        settings.set(&SURVIVAL, survival);
        settings.set(&MARK_STRIDE, 8);
        (GlobalCounter::new(&settings, &mut layout), layout)
    }

    #[test]
    fn no_counter_is_used_before_a_mark_at_least_as_great_is_written() {
        let (mut global, _) = counter(Survival::HighWater);
        let mut plan = Plan::new(Image::new(), true);
        // 1 is of before the run.
        for expected in 2..100 {
            let next = global.next(&mut plan);
            assert_eq!(next.value, expected);
            assert!(
                next.at != Step::PAST,
                "a plan without an engine finishes nothing"
            );
            let mark = plan.peek(global.region.line(0)).unwrap();
            assert!(u64::from_le_bytes(mark[..8].try_into().unwrap()) >= expected);
        }
    }

    #[test]
    fn after_a_cut_the_mark_is_passed_and_the_papers_reading_goes_on_from_what_is_shown() {
        let (mut global, _) = counter(Survival::HighWater);
        let mut plan = Plan::new(Image::new(), true);
        for _ in 0..20 {
            global.next(&mut plan);
        }
        let (mut fresh, _) = counter(Survival::HighWater);
        fresh.recover(|_| unreachable!("the mark is enough"), &mut plan);
        assert!(fresh.next(&mut plan).value > 20);
        let (mut naive, _) = counter(Survival::Paper);
        naive.recover(|_| 15, &mut plan);
        assert_eq!(naive.next(&mut plan).value, 16, "16 to 20 once more");
    }
}
