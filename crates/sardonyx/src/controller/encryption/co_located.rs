//! Counter mode with the counter beside its line: 72 bytes in one access of a 72-bit bus, so that
//! the two persist together by themselves. Source: SCA (HPCA 2018) Sec. 3.2.1, Fig. 5(a) and (b).
//! Left out: what eight more pins cost.

use super::counter_mode::{COUNTER_CACHE, global};
use super::counter_tags::CounterTags;
use super::global_counter::{self, GlobalCounter};
use super::pad::Pads;
use super::{COUNTER_CACHE_HIT_RATE, Counted, WASTED_ENCRYPTIONS};
use crate::controller::layers::{Design, File, Guarantee, Policy};
use crate::controller::{Class, Encryption, Figures, Layer, Storey, Write};
use crate::line::{Line, Place};
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::plan::{At, Fetched, Plan, Queue, Step, Stored};
use crate::settings::Settings;
use crate::stats::Cause;

const CUT: &str =
    "each counter is atomic with its line; the global counter's mark is in the medium";

/// The layers and designs of this file.
pub static FILE: File<Policy> = File {
    layers: &[
        global(
            "co-located",
            |settings, layout| CoLocated::build(settings, None, layout),
            Guarantee::EveryLine,
            CUT,
            &[global_counter::MECHANISMS],
        ),
        global(
            "co-located-cc",
            |settings, layout| {
                let cache = CounterTags::new(settings.cache(&COUNTER_CACHE), settings);
                CoLocated::build(settings, Some(cache), layout)
            },
            Guarantee::EveryLine,
            CUT,
            &[global_counter::MECHANISMS],
        ),
    ],
    designs: &[
        Design {
            name: "co-located",
            source: "SCA (HPCA 2018), Co-located",
            line: "each counter beside its line on a 72-bit bus, decrypted after the read",
            stack: "identity+co-located",
        },
        Design {
            name: "co-located-cc",
            source: "SCA (HPCA 2018), Co-located w/ C-Cache",
            line: "the same with a counter cache, whose miss fetches the line again",
            stack: "identity+co-located-cc",
        },
    ],
};

/// Counter mode over a medium of 72-byte lines.
struct CoLocated {
    pads: Pads,
    global: GlobalCounter,
    /// Counters on chip. Without them decryption begins only when the line is there.
    cache: Option<CounterTags>,
    counted: Counted,
    wasted: u64,
}

impl CoLocated {
    /// Builds the policy without a counter cache (Fig. 5(a)) or with one (Fig. 5(b)).
    fn build(settings: &Settings, cache: Option<CounterTags>, layout: &mut Layout) -> Encryption {
        layout.keep_beside("its encryption counter");
        Box::new(CoLocated {
            pads: Pads::new(settings),
            global: GlobalCounter::new(settings, layout),
            cache,
            counted: Counted::none(),
            wasted: 0,
        })
    }
}

impl Storey for CoLocated {
    fn recover(&mut self, plan: &mut Plan) {
        let shown = plan.looks_through().then(|| plan.greatest_sideband());
        self.counted = Counted(shown.map(|(lines, _)| lines));
        let shown = |plan: &mut Plan| shown.unwrap_or_else(|| plan.greatest_sideband());
        self.global.recover(|plan| shown(plan).1, plan);
    }

    fn forget_figures(&mut self) {
        if let Some(cache) = &mut self.cache {
            cache.forget_figures();
        }
        self.wasted = 0;
    }

    fn figures(&self, out: &mut Figures) {
        if let Some(cache) = &self.cache {
            out.put(&COUNTER_CACHE_HIT_RATE, cache.hits());
        }
        self.counted.put(8, out);
        out.put(&WASTED_ENCRYPTIONS, self.wasted as f64);
    }
}

impl Layer for CoLocated {
    type Addr = Place;

    fn read(&mut self, a: Place, _class: Class, after: Step, plan: &mut Plan) -> Fetched {
        let stored = plan.read(a, after);
        let beside = plan.peek_sideband(a).map_or(0, u64::from_le_bytes);
        let known = match &mut self.cache {
            None => stored.at,
            Some(cache) => {
                let mut plan = plan.because(Cause::Counter);
                let look = plan.unit(Unit::Counters, after);
                match cache.find(a) {
                    Some(fetched) => plan.both(look, fetched),
                    None => {
                        // The counter comes with its line only, so the line is fetched again.
                        let again = plan.read(a, look).at;
                        cache.insert(a, again);
                        again
                    }
                }
            }
        };
        self.pads
            .decrypt_opened(a, stored, At::new(beside, known), plan)
    }

    fn write(&mut self, write: Write<Place>, plan: &mut Plan) -> Stored {
        let Write {
            at: a, data, gate, ..
        } = write;
        self.counted.add(plan.peek_sideband(a).is_none());
        let next = self.global.next(&mut plan.because(Cause::Counter));
        if let Some(cache) = &mut self.cache {
            let look = plan.because(Cause::Counter).unit(Unit::Counters, data.at);
            cache.insert(a, look);
        }
        let pad = plan.because(Cause::Encryption).unit(Unit::Aes, data.at);
        let at = plan.both(data.at, pad);
        let gate = plan.both(gate, next.at);
        let line = self.pads.crypt(a, next.value, data.value);
        let (line, beside) = (At::new(&line, at), Some(next.value.to_le_bytes()));
        let stored = plan.write_words(a, line, 0xff, beside, gate, Queue::Data);
        plan.sealed(stored, a, next.value, None);
        stored
    }

    fn discard_encryption(&mut self, _a: Place, data: Step, plan: &mut Plan) {
        self.wasted += 1;
        self.pads
            .unstored(data, &mut plan.because(Cause::Encryption));
    }

    fn preload(&mut self, a: Place, data: &Line, plan: &mut Plan) -> bool {
        let counter = self.pads.before();
        if plan.peek(a).is_some() || counter == 0 {
            return false;
        }
        self.counted.add(true);
        let secret = self.pads.crypt(a, counter, data);
        plan.preload(a, Some(counter.to_le_bytes()), |line| *line = secret);
        true
    }

    fn peek(&self, a: Place, plan: &Plan) -> Option<Line> {
        let counter = u64::from_le_bytes(plan.peek_sideband(a)?);
        Some(self.pads.crypt(a, counter, &plan.peek(a)?))
    }

    fn hint(&self, a: Place, plan: &Plan) {
        plan.touch_ahead(a);
    }
}
