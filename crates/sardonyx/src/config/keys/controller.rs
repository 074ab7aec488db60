//! The controller's keys: encryption, ESD, and the designs that it is compared with.
//! What each means in full stands in `controller::params`.
//! Left out: the on-chip units, whose timing belongs to the engine.

use crate::config::kinds::{Key, Kind, Value};
use crate::controller::params::{Collision, Reclaim, Replacement, Siblings, Survival};
use crate::ecc::Matrix;

const fn cache_bytes() -> Kind {
    Kind::Int {
        min: 64,
        max: 1 << 28, // an on-chip cache; larger ones would only fill the host's memory
    }
}

const fn ways() -> Kind {
    Kind::Int { min: 1, max: 1024 }
}

pub(super) static ENCRYPTION: [Key; 7] = [
    flag!(
        "encryption.enabled",
        controller.encrypted,
        "Lines are encrypted in the medium"
    ),
    word!("encryption.siblings", controller.counter_mode.siblings, {
        "accepted" => Siblings::Accepted, "ride-along" => Siblings::RideAlong
    }, "Which other counters a line of counters carries with the one it is written for"),
    word!("encryption.global_counter", controller.counter_mode.global.survival, {
        "high-water" => Survival::HighWater, "paper" => Survival::Paper
    }, "How the global counter survives a power cut: by a persisted mark, or from what is shown"),
    int!(
        "encryption.mark_stride",
        Kind::Int {
            min: 2,
            max: 1 << 40
        },
        controller.counter_mode.global.stride as u64,
        "How far ahead of the global counter its mark is written, in writes; half of it lies between two marks"
    ),
    int!(
        "encryption.counter_cache.bytes",
        cache_bytes(),
        controller.counter_mode.cache.bytes as u64,
        "Counter cache"
    ),
    int!(
        "encryption.counter_cache.ways",
        ways(),
        controller.counter_mode.cache.ways as usize,
        "Ways of the counter cache"
    ),
    flag!(
        "encryption.counter_cache.per_core",
        controller.counter_mode.cache_per_core,
        "Its bytes are for each core: N cores share N times as much"
    ),
];

pub(super) static ESD: [Key; 12] = [
    int!(
        "esd.efit_bytes",
        Kind::Int {
            min: 14,
            max: 1 << 28
        },
        controller.esd.efit_bytes as u64,
        "EFIT, at 14 bytes an entry"
    ),
    int!(
        "esd.efit_ways",
        ways(),
        controller.esd.efit_ways as usize,
        "Ways of an EFIT set"
    ),
    word!("esd.matrix", controller.esd.matrix, {
        "truncated-hamming" => Matrix::TruncatedHamming,
        "hsiao-opentitan" => Matrix::HsiaoOpenTitan,
        "hsiao-1970" => Matrix::Hsiao1970
    }, "The code whose check bits are the fingerprint"),
    word!("esd.policy", controller.esd.policy,
        { "lrcu" => Replacement::Lrcu, "lru" => Replacement::Lru },
        "Which entry a full EFIT set gives up"),
    word!("esd.collision", controller.esd.collision, {
        "keep" => Collision::Keep, "replace" => Collision::Replace, "multi" => Collision::Multi
    }, "What becomes of an entry whose check bits match and whose content does not"),
    word!("esd.reclaim", controller.esd.reclaim,
        { "counted" => Reclaim::Counted, "paper" => Reclaim::Paper },
        "What becomes of the old place of an overwritten line"),
    int!(
        "esd.refer_max",
        Kind::Int { min: 1, max: 255 },
        controller.esd.refer_max as u8,
        "Largest referH; a duplicate beyond it is written again"
    ),
    int!(
        "esd.refresh_every",
        Kind::Int {
            min: 0,
            max: 1 << 60
        },
        controller.esd.refresh_every as u64,
        "EFIT look-ups between two refreshes; 0 for none"
    ),
    int!(
        "esd.refresh_by",
        Kind::Int { min: 0, max: 255 },
        controller.esd.refresh_by as u8,
        "What a refresh subtracts from every referH"
    ),
    int!(
        "esd.amt_bytes",
        cache_bytes(),
        controller.esd.amt_cache.bytes as u64,
        "AMT cache"
    ),
    int!(
        "esd.amt_ways",
        ways(),
        controller.esd.amt_cache.ways as usize,
        "Ways of the AMT cache"
    ),
    word!("esd.amt_policy", controller.esd.amt_policy,
        { "lru" => Replacement::Lru, "lrcu" => Replacement::Lrcu },
        "Which line a full set of the AMT cache gives up"),
];

pub(super) static RIVALS: [Key; 11] = [
    flag!(
        "dedup_sha1.verify",
        controller.dedup_sha1.verify,
        "Compare the bytes before dropping a duplicate; without it a collision loses data"
    ),
    int!(
        "dedup_sha1.digest_bytes",
        Kind::Int { min: 1, max: 20 },
        controller.dedup_sha1.digest_bytes as usize,
        "Bytes of the digest that are kept"
    ),
    int!(
        "dedup_sha1.fingerprint_cache.bytes",
        cache_bytes(),
        controller.dedup_sha1.fingerprint_cache.bytes as u64,
        "Cache of the fingerprint index"
    ),
    int!(
        "dedup_sha1.fingerprint_cache.ways",
        ways(),
        controller.dedup_sha1.fingerprint_cache.ways as usize,
        "Its ways"
    ),
    int!(
        "dedup_sha1.mapping_cache.bytes",
        cache_bytes(),
        controller.dedup_sha1.mapping_cache.bytes as u64,
        "Cache of mapping, inverse and counts"
    ),
    int!(
        "dedup_sha1.mapping_cache.ways",
        ways(),
        controller.dedup_sha1.mapping_cache.ways as usize,
        "Its ways"
    ),
    int!(
        "dewrite.history",
        Kind::Int { min: 1, max: 64 },
        controller.dewrite.history as u32,
        "Writes whose outcomes the predictor remembers"
    ),
    int!(
        "dewrite.fingerprint_cache.bytes",
        cache_bytes(),
        controller.dewrite.fingerprint_cache.bytes as u64,
        "Cache of the hash table"
    ),
    int!(
        "dewrite.fingerprint_cache.ways",
        ways(),
        controller.dewrite.fingerprint_cache.ways as usize,
        "Its ways"
    ),
    int!(
        "dewrite.mapping_cache.bytes",
        cache_bytes(),
        controller.dewrite.mapping_cache.bytes as u64,
        "Cache of mapping, inverse and free map"
    ),
    int!(
        "dewrite.mapping_cache.ways",
        ways(),
        controller.dewrite.mapping_cache.ways as usize,
        "Its ways"
    ),
];
