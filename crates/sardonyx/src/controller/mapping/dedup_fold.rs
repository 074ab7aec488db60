//! Full deduplication by a fold of a line's words: eight bytes, cheap, and easily made to collide, so that every
//! match is compared. Source: none, it is the worked example of `docs/simulator/add-a-design.md`.
//! Left out: hiding contents from who makes collisions.

use super::full_dedup::{Fingerprint, layers};
use super::index::{Digest, Index};
use super::tables::Tables;
use crate::controller::layers::{Design, File, Mapping};
use crate::line::{LINE_BYTES, Line};
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::settings::{AnyKey, Settings, keys};

keys! {
    FINGERPRINT_CACHE = cache("dedup_fold.fingerprint_cache.", LINE_BYTES, 524_288),
        Assumed("no source; as the other deduplications"), "Cache of the index", "Its ways"
        in Between("262144", "1048576", "half and twice");
    MAPPING_CACHE = cache("dedup_fold.mapping_cache.", LINE_BYTES, 524_288),
        Assumed("no source; as the other deduplications"), "Cache of mapping and inverse", "Its ways"
        in Between("262144", "1048576", "half and twice");
}

/// What this file has.
pub static FILE: File<Mapping> = File {
    layers: &layers::<ByFold>("dedup-fold", "dedup-fold-sound"),
    designs: &[Design {
        name: "dedup-fold",
        source: "the worked example",
        line: "full deduplication by a fold of a line's words",
        stack: "dedup-fold+sca",
    }],
};

struct ByFold;

impl Fingerprint for ByFold {
    const KEYS: &'static [&'static dyn AnyKey] = &[&FINGERPRINT_CACHE, &MAPPING_CACHE];
    const UNIT: Unit = Unit::Crc32; // assumed: a fold takes as long
    const GUESSES: bool = false;

    fn build(settings: &Settings, sound: bool, layout: &mut Layout) -> (ByFold, Tables) {
        let buckets = layout.data_lines().div_ceil(4); // of four entries: 8 bytes, a place, a count
        let index = Index::new(8, buckets, false, &FINGERPRINT_CACHE, settings, layout);
        let tables = Tables::new(index, &MAPPING_CACHE, false, sound, settings, layout);
        (ByFold, tables)
    }

    fn digest(&self, data: &Line) -> Digest {
        let words = data.as_chunks::<8>().0.iter();
        let fold = words.fold(1u64, |fold, word| {
            (fold ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (fold >> 29)
        });
        Digest::new(&fold.to_le_bytes())
    }

    fn bytes_per_line(&self, tables: &Tables) -> f64 {
        tables.bytes_per_line() as f64
    }
}
