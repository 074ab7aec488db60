//! An encryption policy of the tests' own, small and right: counter mode with counters in lines of their own, as SCA has
//! it. A fault is one [`Slip`]: the one line in which it does something else. It is independent of the library's
//! policies, so an edit there cannot hide a fault here.

use sardonyx::controller::designs::{self, AnyLayer};
use sardonyx::controller::encryption::counter_mode::COUNTER_CACHE;
use sardonyx::controller::encryption::global_counter::GlobalCounter;
use sardonyx::controller::encryption::pad::Pads;
use sardonyx::controller::layers::{About, Counters, Guarantee, Policy};
use sardonyx::controller::metadata_cache::MetadataCache;
use sardonyx::controller::{Class, Layer, Persist, Storey, Write};
use sardonyx::line::{LINE_BYTES, Line, Place, ZERO_LINE};
use sardonyx::medium::layout::{CounterLines, Layout, Region};
use sardonyx::medium::params::Unit;
use sardonyx::plan::{At, Fetched, Plan, Queue, Step, Stored};
use sardonyx::settings::Settings;

use crate::fault::{Layers, slips};

slips! {
    /// What the policy does wrong.
    Slip {
        Nothing, PadConstant, PadWithoutPlace, PadWithoutCounter, PadWithoutKey, PadCounterByte,
        PadCounter48, PadCounterHole, PadPlace16, PadPlace36, PadOfSum, PadPlaceOfEight,
        PadLowWithoutCounter, PadTailClear, PadRepeats, CounterCarryLost, CounterCarry56,
        CounterOfContent, MarkNotAwaited, MarkForgotten, SiblingsForgotten,
        SiblingsForgottenInFlight, CounterBeforeData, PairNotGrouped, PairNotGroupedOnMiss,
        PairSkippedInFlight, PairCleansNext, WriteBackNotAwaited, WriteBackForgotten,
        FlushForgotten, StaleCounterRead, CounterStored16, CounterStored56, CounterLine32, CounterAgainLate,
    }
}

const PER_LINE: u64 = 8;
const REGION: &str = "own-counters";

struct Own {
    slip: Slip,
    pads: Pads,
    region: Region,
    cache: MetadataCache,
    global: GlobalCounter,
}

fn counter_of(line: &Line, number: u64) -> u64 {
    u64::from_le_bytes(line.as_chunks().0[number as usize])
}

impl Own {
    fn new(slip: Slip, settings: &Settings, layout: &mut Layout) -> Own {
        let keyless = Settings::default();
        let of_key = if slip == Slip::PadWithoutKey {
            &keyless
        } else {
            settings
        };
        let region = layout.reserve(REGION, layout.data_lines().div_ceil(PER_LINE));
        layout.keep_counters(counter_lines(&region));
        Own {
            slip,
            pads: Pads::new(of_key),
            region,
            cache: MetadataCache::new(&COUNTER_CACHE, Unit::Counters, Queue::Counter, settings),
            global: GlobalCounter::new(settings, layout),
        }
    }

    fn counter_line(&self, at: Place) -> Place {
        match self.slip {
            Slip::CounterLine32 => self.region.line((at.0 & 0xffff_ffff) / PER_LINE),
            _ => self.region.line(at.0 / PER_LINE),
        }
    }

    /// `line` under its pad, or from under it.
    fn crypt(&self, at: Place, counter: u64, line: &Line) -> Line {
        let right = self.pads.crypt(at, counter, line);
        let (at, counter) = match self.slip {
            Slip::PadConstant => (Place(0), 1),
            Slip::PadWithoutPlace => (Place(0), counter),
            Slip::PadWithoutCounter => (at, 1),
            Slip::PadCounterByte => (at, counter & 0xff),
            Slip::PadCounter48 => (at, counter & 0xffff_ffff_ffff),
            Slip::PadCounterHole => (at, counter & !(0xff << 40)),
            Slip::PadPlace16 => (Place(at.0 & 0xffff), counter),
            Slip::PadPlace36 => (Place(at.0 & ((1 << 36) - 1)), counter),
            Slip::PadOfSum => (Place(0), at.0 ^ counter),
            Slip::PadPlaceOfEight => (Place(at.0 & !7), counter),
            Slip::PadLowWithoutCounter => {
                let mut mixed = right;
                let other = self.pads.crypt(at, 1, line);
                for (word, other) in mixed.chunks_mut(8).zip(other.chunks(8)) {
                    word[..4].copy_from_slice(&other[..4]);
                }
                return mixed;
            }
            Slip::PadTailClear => {
                let mut mixed = right;
                mixed[LINE_BYTES - 4..].copy_from_slice(&line[LINE_BYTES - 4..]);
                return mixed;
            }
            Slip::PadRepeats => {
                let mut mixed = right;
                for from in (0..LINE_BYTES).step_by(8) {
                    for byte in from..from + 4 {
                        mixed[byte + 4] = right[byte] ^ line[byte] ^ line[byte + 4];
                    }
                }
                return mixed;
            }
            _ => return right,
        };
        self.pads.crypt(at, counter, line)
    }

    /// The next counter, and the step before which nothing under it may leave the chip.
    fn next(&mut self, data: &Line, plan: &mut Plan) -> At<u64> {
        let mut next = self.global.next(plan);
        match self.slip {
            Slip::MarkNotAwaited => next.at = Step::PAST,
            Slip::CounterCarryLost => next.value &= 0xffff_ffff,
            Slip::CounterAgainLate if next.value.is_multiple_of(30_000) => next.value -= 1,
            Slip::CounterCarry56 => next.value &= (1 << 56) - 1,
            Slip::CounterOfContent if data[0] & 1 == 1 => next = self.global.next(plan),
            _ => {}
        }
        next.value = next.value.max(1); // 0 says that nothing was written
        next
    }
}

impl Storey for Own {
    fn flush(&mut self, plan: &mut Plan) {
        if self.slip != Slip::FlushForgotten {
            self.cache.flush(plan);
        }
    }

    fn recover(&mut self, plan: &mut Plan) {
        if self.slip != Slip::MarkForgotten {
            self.global.recover(|_| 0, plan);
        }
    }
}

impl Layer for Own {
    type Addr = Place;

    fn read(&mut self, a: Place, _class: Class, after: Step, plan: &mut Plan) -> Fetched {
        let stored = plan.read(a, after);
        let place = self.counter_line(a);
        let cached = self.cache.get(place, after, plan);
        let counters = match self.slip {
            Slip::StaleCounterRead => plan.peek(place).unwrap_or(ZERO_LINE),
            _ => *self.cache.line(cached),
        };
        let counter = counter_of(&counters, a.0 % PER_LINE);
        let at = plan.both(stored.at, cached.at);
        let line = stored.value.filter(|_| counter != 0);
        At::new(line.map(|line| self.crypt(a, counter, &line)), at)
    }

    fn write(&mut self, write: Write<Place>, plan: &mut Plan) -> Stored {
        let (a, word) = (write.at, (write.at.0 % PER_LINE) as usize);
        let place = self.counter_line(a);
        let in_flight = plan.under_way(place) != Stored::at(Step::PAST);
        let cached = self.cache.get(place, write.data.at, plan);
        let next = self.next(write.data.value, plan);
        let gate = plan.both(write.gate, next.at);
        let line = self.crypt(a, next.value, write.data.value);
        let stored = plan.write(a, At::new(&line, write.data.at), gate);

        let mut bytes = next.value.to_le_bytes();
        match self.slip {
            Slip::CounterStored16 => bytes[2..].fill(0),
            Slip::CounterStored56 => bytes[7] = 0,
            _ => {}
        }
        let ripe = match self.slip {
            Slip::CounterBeforeData => cached.at,
            _ => stored.accepted,
        };
        self.cache
            .set_bytes_drained(cached, word * 8, &bytes, ripe, stored.accepted, plan);
        let skipped = self.slip == Slip::PairSkippedInFlight && in_flight;
        if write.order != Persist::CounterAtomic || skipped {
            plan.sealed(stored, a, next.value, None);
            return stored;
        }
        let own = 1 << word;
        let line = At::new(self.cache.line(cached), cached.at);
        let paired = plan.write_words(place, line, own, None, gate, Queue::Counter);
        self.cache.clean(
            cached,
            match self.slip {
                Slip::SiblingsForgotten => 0xff,
                Slip::SiblingsForgottenInFlight if in_flight => 0xff,
                Slip::PairCleansNext => own | own.rotate_left(1),
                _ => own,
            },
        );
        let apart = self.slip == Slip::PairNotGrouped
            || self.slip == Slip::PairNotGroupedOnMiss && !cached.hit;
        if !apart {
            plan.group(&[stored, paired]);
        }
        plan.sealed(stored, a, next.value, Some(paired));
        Stored {
            accepted: stored.accepted,
            done: plan.both(stored.done, paired.done),
        }
    }

    fn persist_metadata(&mut self, a: Place, after: Step, plan: &mut Plan) -> Stored {
        if self.slip == Slip::WriteBackForgotten {
            return Stored::at(after);
        }
        let place = self.counter_line(a);
        let stored = self.cache.persist(place, after, plan);
        match self.slip {
            Slip::WriteBackNotAwaited => Stored::at(after),
            _ => stored,
        }
    }
}

fn counter_lines(region: &Region) -> CounterLines {
    CounterLines {
        region: region.clone(),
        per_line: PER_LINE,
        persist: false,
        groups_lines: false,
        words: |number| 1 << number,
        bits: |number| 64 * number as usize..64 * number as usize + 64,
        counter: counter_of,
    }
}

fn layer<const SLIP: usize>(name: &'static str) -> AnyLayer {
    let like = designs::policies().find(|known| known.about.name == "sca");
    let like = like.expect("the policy that it is like");
    AnyLayer::Policy(Box::leak(Box::new(Policy {
        about: About { name, ..like.about },
        build: |settings, layout| Box::new(Own::new(Slip::ALL[SLIP], settings, layout)),
        guarantee: Guarantee::AfterProgramRecovery,
        counters: Counters::Global,
        keeps: None,
    })))
}

/// The policy with the slip of that number.
pub fn own<const SLIP: usize>(name: &'static str) -> Layers {
    Layers {
        wrong: layer::<SLIP>(name),
        right: layer::<{ Slip::Nothing as usize }>("own-counters"),
    }
}
