//! The controller's parameters: what each layer may be told. Defaults live in the presets of
//! `config`, which also says of each whether a source gives it or it is *assumed*.

use crate::ecc::Matrix;

/// A set-associative on-chip cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheParams {
    /// Capacity in bytes.
    pub bytes: u64,
    /// Ways of a set.
    pub ways: usize,
}

/// Counter-mode encryption.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterModeParams {
    /// The counter cache: lines of eight 8-byte counters, write-back.
    pub cache: CacheParams,
    /// Its bytes are for each core; all cores share it.
    pub cache_per_core: bool,
    /// See [`Siblings`].
    pub siblings: Siblings,
    /// The global counter of SCA's designs.
    pub global: GlobalCounterParams,
}

/// What a counter line that is written for one counter does with the seven others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Siblings {
    /// It carries only counters whose data are accepted.
    Accepted,
    /// They ride along, accepted or not: the naive way, for the crash explorer to catch.
    RideAlong,
}

/// How the global counter survives a power cut, which SCA does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// It goes on from the greatest counter that the image shows.
    Paper,
    /// From a mark in the medium that is written before any counter beyond it is used.
    HighWater,
}

/// The counter from which all lines draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalCounterParams {
    /// See [`Survival`].
    pub survival: Survival,
    /// How far ahead of the counter the mark is written, in writes.
    pub stride: u64,
}

/// What a full set gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// Least reference count used: the lowest count, the least recent of those (ESD III-D).
    Lrcu,
    /// Least recently used.
    Lru,
}

/// What becomes of an EFIT entry whose check bits match but whose content does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collision {
    /// The old entry stays, the new line is not entered.
    Keep,
    /// The new line takes the entry.
    Replace,
    /// Both stay, as two entries with the same check bits.
    Multi,
}

/// What becomes of the old place of an overwritten line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaim {
    /// It is never used again; the leak is counted (the paper is silent).
    Paper,
    /// A persistent count beside the AMT says when nobody refers to it any more.
    Counted,
}

/// ESD's own parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct EsdParams {
    /// Bytes of EFIT, at 14 bytes an entry.
    pub efit_bytes: u64,
    /// Ways of an EFIT set.
    pub efit_ways: usize,
    /// The code whose check bits are the fingerprint.
    pub matrix: Matrix,
    /// Replacement in EFIT.
    pub policy: Replacement,
    /// See [`Collision`].
    pub collision: Collision,
    /// See [`Reclaim`].
    pub reclaim: Reclaim,
    /// The largest `referH`; a duplicate beyond it is written again.
    pub refer_max: u8,
    /// EFIT look-ups between two refreshes; 0 for none.
    pub refresh_every: u64,
    /// What a refresh subtracts from every `referH`.
    pub refresh_by: u8,
    /// The AMT cache: lines of the mapping table, write-back.
    pub amt_cache: CacheParams,
    /// Replacement in it.
    pub amt_policy: Replacement,
}

/// Dedup-SHA1's own parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct DedupSha1Params {
    /// Compare the bytes before dropping a duplicate; without it a collision loses data.
    pub verify: bool,
    /// Bytes of digest kept, 1 to 20: fewer than 20 forces collisions, for tests.
    pub digest_bytes: usize,
    /// Cache of fingerprint-index lines.
    pub fingerprint_cache: CacheParams,
    /// Cache of mapping, inverse and count lines.
    pub mapping_cache: CacheParams,
}

/// DeWrite's own parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct DewriteParams {
    /// Writes whose outcomes the predictor remembers, for a majority vote.
    pub history: u32,
    /// Cache of hash-table lines.
    pub fingerprint_cache: CacheParams,
    /// Cache of mapping, inverse and free-map lines.
    pub mapping_cache: CacheParams,
}

/// What the whole controller may be told.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerParams {
    /// Encrypt lines in the medium (all designs do but `no-encryption`).
    pub encrypted: bool,
    /// Counter-mode encryption.
    pub counter_mode: CounterModeParams,
    /// `esd`.
    pub esd: EsdParams,
    /// `dedup-sha1`.
    pub dedup_sha1: DedupSha1Params,
    /// `dewrite`.
    pub dewrite: DewriteParams,
}
