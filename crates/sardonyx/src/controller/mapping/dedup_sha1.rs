//! Dedup-SHA1: full deduplication by SHA-1, which is on the way of every write; `verify` compares what
//! has the same digest. Source: ESD (HPCA 2023) Sec. II-B and III-E, its first rival.
//! Left out: any prediction.

use sha1::{Digest as _, Sha1};

use super::full_dedup::{Fingerprint, FullDedup};
use super::index::{Digest, Index};
use super::tables::Tables;
use crate::controller::Encryption;
use crate::controller::params::DedupSha1Params;
use crate::line::Line;
use crate::medium::layout::Layout;
use crate::medium::params::Unit;

/// Bytes of a whole SHA-1.
const SHA1_BYTES: usize = 20;

/// SHA-1, or the first bytes of it.
pub struct BySha1 {
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
pub fn new(
    params: &DedupSha1Params,
    sound: bool,
    below: Encryption,
    layout: &mut Layout,
) -> FullDedup<BySha1> {
    let buckets = layout.data_lines().div_ceil(2);
    let index = Index::new(SHA1_BYTES, buckets, params.fingerprint_cache, layout);
    let tables = Tables::new(index, params.mapping_cache, false, sound, layout);
    let fingerprint = BySha1 {
        digest_bytes: params.digest_bytes,
        verify: params.verify || sound,
    };
    FullDedup::new(fingerprint, tables, below)
}
