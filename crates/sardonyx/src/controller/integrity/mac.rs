//! A MAC of each line of the medium: of data, counters, tables and logs. In one group with its line, so that no cut
//! comes between the two. Source: none in particular, it is what every scheme begins with (SipHash-2-4 of 64 bits
//! here, where papers truncate to as much). No freshness: what was true once is believed for ever.
//! Left out: counters in MACs; a tree; MACs beside lines, as nothing would say any more that a line was written which is
//! taken away with its MAC.

use super::macs::{
    CACHE, MAC_PLACE, MacPlace, PER_LINE, VERIFIED, VERIFY, Verify, Where, verified, word,
};
use crate::controller::layers::{About, File, Integrity, PowerFail, Refuses};
use crate::controller::metadata_cache::{Lookup, MetadataCache, SETS};
use crate::figures::{Figures, figures};
use crate::line::{Line, Place, ZERO_LINE};
use crate::medium::layout::Region;
use crate::medium::params::Unit;
use crate::plan::guard::Guard;
use crate::plan::start_gap::Places;
use crate::plan::storey::Storey;
use crate::plan::{At, Fetched, Plan, Queue, Step, Written};
use crate::settings::{AnyKey, Settings};
use crate::stats::Cause;

figures! { "Integrity";
    INTEGRITY_CACHE_HIT_RATE: Ratio More "integrity_cache_hit_rate", "share of look-ups in the cache of MACs and nodes that hit";
}

/// Keys of the schemes with MACs.
pub const KEYS: &[&dyn AnyKey] = &[&VERIFY, &CACHE, &SETS];
/// Keys of the schemes whose MACs may lie beside their lines.
pub const PLACED_KEYS: &[&dyn AnyKey] = &[&VERIFY, &CACHE, &SETS, &MAC_PLACE];
/// Units of the schemes with MACs.
pub const UNITS: &[Unit] = &[Unit::Mac, Unit::Metadata];

/// The layers and designs of this file.
pub static FILE: File<Integrity> = File {
    layers: &[Integrity {
        about: About {
            name: "mac",
            keys: KEYS,
            units: UNITS,
            figures: &[FIGURES],
            cut: "each MAC is atomic with its line; what was once true is believed",
            tries: &[&[&VERIFIED]],
            limits: &[],
        },
        build: |settings, layout| {
            let macs = Mac::new(
                Where::reserve((PER_LINE, MacPlace::Region), None, settings, layout),
                settings,
            );
            let cache = MetadataCache::new(&CACHE, Unit::Metadata, Queue::Data, settings);
            Some(Box::new(Cached { macs, cache }))
        },
        settles_groups: false,
        promises: Refuses {
            tamper: true,
            splice: true,
            ..Refuses::NOTHING
        },
        registers: |_| 0,
        power_fail: Some(|settings, layout| {
            let by = (PER_LINE, MacPlace::Region);
            Box::new(Where::from_layout(by, None, settings, layout))
        }),
    }],
    designs: &[],
};

/// MACs without freshness. Their lines never differ from the medium's.
pub struct Mac {
    /// Where they lie.
    pub at: Where,
    verify: Verify,
}

impl Mac {
    /// Builds MACs that lie as `at` says.
    pub fn new(at: Where, settings: &Settings) -> Mac {
        Mac {
            at,
            verify: settings.get(&VERIFY),
        }
    }

    fn is_right(&self, place: Place, line: Option<&Line>, kept: u64, plan: &Plan) -> bool {
        let mac = |line| self.at.mac(place, line, plan.peek_sideband(place));
        line.map_or(0, mac) == kept
    }

    /// Whether the MAC on chip, or else in memory, is that of the line at `place`.
    pub fn is_held(&self, place: Place, cache: &MetadataCache, plan: &Plan) -> bool {
        let Some((at, number)) = self.at.of_line(place) else {
            return true;
        };
        let cached = cache.peek(at).copied();
        let macs = cached.or_else(|| plan.peek(at)).unwrap_or(ZERO_LINE);
        let line = plan.peek(place);
        self.is_right(place, line.as_ref(), word(&macs, number), plan)
    }

    /// The line read from `place`, verified against its MAC `kept`.
    pub fn verified(&self, place: Place, got: Fetched, kept: At<u64>, plan: &mut Plan) -> Fetched {
        let is_right = self.is_right(place, got.value.as_ref(), kept.value, plan);
        verified(place, got, (is_right, kept.at), self.verify, plan)
    }

    /// Puts the MAC of a written line into its line of MACs, which `cached` names, and writes that in one group with
    /// the line. Returns the step after which both are in the array.
    pub fn put(
        &self,
        (cached, cache): (Lookup, &mut MetadataCache),
        place: Place,
        written: Written,
        plan: &mut Plan,
    ) -> Step {
        let (at, number) = self.at.of_line(place).expect("it is protected");
        let sideband = written.beside(place, plan);
        let computed = plan.unit(Unit::Mac, written.line.at);
        let right = self
            .at
            .mac(place, written.line.value, sideband)
            .to_le_bytes();
        cache.set_bytes(cached, number * 8, &right, written.stored.accepted, plan);
        let lines = At::new(cache.line(cached), plan.both(computed, cached.at));
        let kept = plan.write_words(at, lines, 1 << number, None, Step::PAST, Queue::Data);
        cache.clean(cached, 1 << number);
        plan.group(&[written.stored, kept]);
        plan.both(written.stored.done, kept.done)
    }
}

struct Cached {
    macs: Mac,
    cache: MetadataCache,
}

impl Storey for Cached {
    fn forget_figures(&mut self) {
        self.cache.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        out.put(&INTEGRITY_CACHE_HIT_RATE, self.cache.hits());
    }
}

impl Guard for Cached {
    fn read(&mut self, place: Place, got: Fetched, after: Step, plan: &mut Plan) -> Fetched {
        let plan = &mut plan.because(Cause::Integrity);
        let Some((at, number)) = self.macs.at.of_line(place) else {
            return got;
        };
        let cached = self.cache.get(at, after, plan);
        let kept = At::new(word(self.cache.line(cached), number), cached.at);
        self.macs.verified(place, got, kept, plan)
    }

    fn write(&mut self, place: Place, written: Written, plan: &mut Plan) -> Step {
        let plan = &mut plan.because(Cause::Integrity);
        let Some((at, _)) = self.macs.at.of_line(place) else {
            return written.stored.done;
        };
        let cached = self.cache.get(at, Step::PAST, plan);
        let cached = (cached, &mut self.cache);
        self.macs.put(cached, place, written, plan)
    }

    fn holds(&self, place: Place, plan: &Plan) -> bool {
        self.macs.is_held(place, &self.cache, plan)
    }
}

impl PowerFail for Where {
    fn begin(&mut self, _image: &mut Places) {}

    fn accepted(&mut self, _place: Place, _image: &mut Places) {}

    fn dumped(&mut self, place: Place, image: &mut Places) {
        let (Some((at, number)), Some(line)) = (self.of_line(place), image.read(place)) else {
            return;
        };
        let mut kept = ZERO_LINE;
        let right = self.mac(place, &line, image.sideband(place));
        kept[number * 8..][..8].copy_from_slice(&right.to_le_bytes());
        image.write(at, &kept, 1 << number, None);
    }

    fn on_chip(&self) -> Option<&Region> {
        None
    }

    fn kept_of(&self, place: Place) -> Option<(Place, usize)> {
        self.of_line(place)
    }
}
