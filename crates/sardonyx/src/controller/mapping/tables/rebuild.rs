//! What a sound full deduplication does after a power cut: it believes the mapping table, whose
//! entries persisted with their lines, and nothing else. Index, inverse table and free map may have
//! lost any of their changes, so they are emptied and made anew from the mappings and the contents.
//! Source: none, the papers are silent (*assumed*). Left out: doing so in less than a pass over memory.

use std::collections::BTreeMap;

use super::{Digest, ENTRY, Tables};
use crate::controller::mapping::amt::{When, number_bytes};
use crate::controller::mapping::references::References;
use crate::controller::{Class, Encryption};
use crate::line::{Line, Place, ZERO_LINE};
use crate::plan::{Plan, Step};

impl Tables {
    /// Rebuilds all tables except the mapping, reading every mapped place through `below`.
    pub fn rebuild(
        &mut self,
        below: &mut Encryption,
        digest: impl Fn(&Line) -> Digest,
        plan: &mut Plan,
    ) {
        let mut lines_at: BTreeMap<u64, u32> = BTreeMap::new();
        self.amt
            .scan(plan, |_, place| *lines_at.entry(place.0).or_default() += 1);
        self.index.clear(plan);
        for region in [Some(&self.inverse), self.free_map.as_ref()] {
            for place in region.map_or(Vec::new(), |region| plan.written(region)) {
                let cached = self.amt.cache.get(place, Step::PAST, plan);
                if *self.amt.cache.line(cached) != ZERO_LINE {
                    self.amt
                        .cache
                        .set_bytes(cached, 0, &ZERO_LINE, Step::PAST, plan);
                }
            }
        }
        // Those that are shared first: a copy that is not is only worth an entry if it is the only one.
        let (shared, alone): (Vec<_>, Vec<_>) = lines_at.into_iter().partition(|(_, n)| *n > 1);
        for (place, lines) in shared.into_iter().chain(alone) {
            let place = Place(place);
            self.places.take(place);
            self.mark(place, true, When::at(Step::PAST), plan);
            let stored = below.read(place, Class::Data, Step::PAST, plan);
            let Some(content) = stored.value else {
                continue; // nothing to share
            };
            let digest = digest(&content);
            let mut search = self.index.search(digest, stored.at);
            if lines == 1 && self.index.next(&mut search, plan).is_some() {
                continue; // nor has a log line an entry: nobody shares it
            }
            let count = References::up_to(lines);
            self.leaked += u64::from(count.is_full());
            let when = When::at(stored.at);
            let bucket = self.index.insert(digest, place, when, plan);
            self.index.set_count(bucket, place, count, when, plan);
            let (at, from) = self.inverse_spot(place);
            let cached = self.amt.cache.get(at, Step::PAST, plan);
            let entry: [u8; ENTRY] = number_bytes(bucket);
            self.amt
                .cache
                .set_bytes(cached, from, &entry, Step::PAST, plan);
        }
    }
}
