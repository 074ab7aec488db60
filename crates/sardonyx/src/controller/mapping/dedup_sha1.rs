//! Dedup-SHA1: full deduplication by SHA-1, which is on the way of every write; `verify` compares what
//! has the same digest. Source: ESD (HPCA 2023) Sec. II-B and III-E, its first rival.
//! Left out: any prediction.

use sha1::{Digest as _, Sha1};

use super::amt::placement;
use super::full_dedup::{Fingerprint, FullDedup};
use super::index::{Digest, Index};
use super::tables::Tables;
use crate::controller::designs::{About, Design, File, Guarantee, Mapping};
use crate::controller::{Encryption, Top};
use crate::line::Line;
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::settings::{AnyKey, CacheKey, Key, Origin, Settings};

/// Compare the bytes before dropping a duplicate.
pub static VERIFY: Key<bool> = Key::flag(
    "dedup_sha1.verify",
    true,
    Origin::Assumed(
        "ESD Sec. III-E has it drop on a collision, Sec. IV-F has it read similar lines",
    ),
    "Compare the bytes before dropping a duplicate; without it a collision loses data",
);

/// Fewer than 20 force collisions, for tests.
pub static DIGEST_BYTES: Key<usize> = Key::int(
    "dedup_sha1.digest_bytes",
    (1, SHA1_BYTES as u64),
    SHA1_BYTES as u64,
    Origin::Source("SHA-1"),
    "Bytes of the digest that are kept",
);

/// Cache of fingerprint-index lines.
pub static FINGERPRINT_CACHE: CacheKey = CacheKey::lines(
    (
        "dedup_sha1.fingerprint_cache.bytes",
        524_288,
        Origin::Assumed("ESD does not state the rivals' caches: as ESD's own"),
        "Cache of the fingerprint index",
    ),
    (
        "dedup_sha1.fingerprint_cache.ways",
        8,
        Origin::Assumed("no source"),
        "Its ways",
    ),
);

/// Cache of mapping, inverse and count lines.
pub static MAPPING_CACHE: CacheKey = CacheKey::lines(
    (
        "dedup_sha1.mapping_cache.bytes",
        524_288,
        Origin::Assumed("ESD does not state the rivals' caches: as ESD's own"),
        "Cache of mapping, inverse and counts",
    ),
    (
        "dedup_sha1.mapping_cache.ways",
        8,
        Origin::Assumed("no source"),
        "Its ways",
    ),
);

const KEYS: &[&dyn AnyKey] = &[&VERIFY, &DIGEST_BYTES, &FINGERPRINT_CACHE, &MAPPING_CACHE];
const UNITS: &[Unit] = &[
    Unit::Sha1,
    Unit::Compare,
    Unit::Fingerprints,
    Unit::Metadata,
];

/// What this file has.
pub static FILE: File<Mapping> = File {
    layers: &[
        Mapping {
            about: About {
                name: "dedup-sha1",
                keys: KEYS,
                units: UNITS,
                cut: "mappings not written back on demand are lost; counts are trusted and may be wrong",
            },
            build: |settings, below, layout| build(settings, false, below, layout),
            guarantee: Guarantee::on_demand,
            placement: |_, layout| placement(false, layout),
        },
        Mapping {
            about: About {
                name: "dedup-sha1-sound",
                keys: KEYS,
                units: UNITS,
                cut: "every mapping persists with its line; the other tables are made anew from the contents",
            },
            build: |settings, below, layout| build(settings, true, below, layout),
            guarantee: |below| below,
            placement: |_, layout| placement(false, layout),
        },
    ],
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

/// Bytes of a whole SHA-1.
const SHA1_BYTES: usize = 20;

/// SHA-1, or the first bytes of it.
struct BySha1 {
    digest_bytes: usize,
    verify: bool,
}

impl Fingerprint for BySha1 {
    const UNIT: Unit = Unit::Sha1;
    const GUESSES: bool = false;

    fn of(&self, data: &Line) -> Digest {
        Digest::new(&Sha1::digest(data), self.digest_bytes)
    }

    fn compares(&self) -> bool {
        self.verify
    }

    fn bytes_per_line(&self, tables: &Tables) -> f64 {
        tables.bytes_per_line() as f64
    }
}

/// As published; or `sound`, made to survive a power cut: it always compares, so that no mapping is
/// accepted before the content that it shares.
fn build(settings: &Settings, sound: bool, below: Encryption, layout: &mut Layout) -> Top {
    let buckets = layout.data_lines().div_ceil(2);
    let index = Index::new(
        SHA1_BYTES,
        buckets,
        settings.cache(&FINGERPRINT_CACHE),
        layout,
    );
    let tables = Tables::new(index, settings.cache(&MAPPING_CACHE), false, sound, layout);
    let fingerprint = BySha1 {
        digest_bytes: settings.get(&DIGEST_BYTES),
        verify: settings.get(&VERIFY) || sound,
    };
    Box::new(FullDedup::new(fingerprint, tables, below))
}
