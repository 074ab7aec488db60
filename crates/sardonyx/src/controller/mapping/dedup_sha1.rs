//! Dedup-SHA1: full deduplication by SHA-1, which is on the way of every write; `verify` compares what
//! has the same digest. Source: ESD (HPCA 2023) Sec. II-B and III-E, its first rival.
//! Left out: any prediction.

use sha1::{Digest as _, Sha1};

use super::full_dedup::{Fingerprint, layers};
use super::index::{Digest, Index};
use super::tables::Tables;
use crate::controller::layers::{Design, File, Mapping};
use crate::line::{LINE_BYTES, Line};
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::settings::{AnyKey, Settings, keys};

keys! {
    VERIFY: bool = flag("dedup_sha1.verify", true),
        Assumed("ESD Sec. III-E has it drop on a collision, Sec. IV-F has it read similar lines"),
        "Compare the bytes before dropping a duplicate; without it a collision loses data";
}

keys! {
    FINGERPRINT_CACHE = cache("dedup_sha1.fingerprint_cache.", LINE_BYTES, 524_288),
        Assumed("ESD does not state the rivals' caches: as ESD's own"),
        "Cache of the fingerprint index", "Its ways"
        in Between("262144", "1048576", "half and twice ESD's own; the rivals' entries are larger than ESD's");
    MAPPING_CACHE = cache("dedup_sha1.mapping_cache.", LINE_BYTES, 524_288),
        Assumed("ESD does not state the rivals' caches: as ESD's own"),
        "Cache of mapping, inverse and counts", "Its ways"
        in Between("262144", "1048576", "half and twice ESD's own; the rivals' entries are larger than ESD's");
}

/// The layers and designs of this file.
pub static FILE: File<Mapping> = File {
    layers: &layers::<BySha1>("dedup-sha1", "dedup-sha1-sound"),
    designs: &[
        Design {
            name: "dedup-sha1",
            source: "ESD (HPCA 2023), Dedup_SHA1",
            line: "full deduplication by SHA-1 over an index in the medium",
            stack: "dedup-sha1+per-line",
        },
        Design {
            name: "dedup-sha1-sound",
            source: "ESD (HPCA 2023), Dedup_SHA1, made to survive a power cut",
            line: "dedup-sha1 that compares, persists mappings with their lines and makes its index anew",
            stack: "dedup-sha1-sound+fca",
        },
    ],
};

const SHA1_BYTES: usize = 20;

struct BySha1 {
    verify: bool,
}

impl Fingerprint for BySha1 {
    const KEYS: &'static [&'static dyn AnyKey] = &[&VERIFY, &FINGERPRINT_CACHE, &MAPPING_CACHE];
    const UNIT: Unit = Unit::Sha1;
    const GUESSES: bool = false;

    /// Builds the fingerprint and its tables. The sound variant always compares, so that no mapping is accepted before
    /// the content that it shares.
    fn build(settings: &Settings, sound: bool, layout: &mut Layout) -> (BySha1, Tables) {
        let buckets = layout.data_lines().div_ceil(2);
        let cache = &FINGERPRINT_CACHE;
        let index = Index::new(SHA1_BYTES, buckets, false, cache, settings, layout);
        let tables = Tables::new(index, &MAPPING_CACHE, false, sound, settings, layout);
        let fingerprint = BySha1 {
            verify: settings.get(&VERIFY) || sound,
        };
        (fingerprint, tables)
    }

    fn digest(&self, data: &Line) -> Digest {
        Digest::new(&Sha1::digest(data))
    }

    fn compares(&self) -> bool {
        self.verify
    }

    fn bytes_per_line(&self, tables: &Tables) -> f64 {
        tables.bytes_per_line() as f64
    }
}
