//! Dedup-SHA1: every line is hashed, the hash looked up in a full index, the line written if it is
//! new. Source: ESD (HPCA 2023) Sec. II-B and III-E, its first rival.
//! Left out: any prediction; hashing is on the way of every write.

use sha1::{Digest as _, Sha1};

use super::index::{Digest, Index, Match};
use super::tables::Tables;
use crate::controller::params::DedupSha1Params;
use crate::controller::{Class, Encryption, Figures, Layer, Persist};
use crate::line::{Line, Logical, Place};
use crate::medium::layout::Layout;
use crate::medium::params::Unit;
use crate::plan::{At, Plan, Step, Stored};
use crate::stats::Cause;

/// Bytes of a whole SHA-1.
const SHA1_BYTES: usize = 20;

#[derive(Default)]
pub(super) struct Counts {
    pub in_cache: u64,
    pub in_medium: u64,
    pub collisions: u64,
}

/// The mapping over an encryption.
pub struct DedupSha1 {
    params: DedupSha1Params,
    tables: Tables,
    counts: Counts,
    below: Encryption,
}

impl DedupSha1 {
    /// Over `below`; the tables get regions of their own.
    pub fn new(params: &DedupSha1Params, below: Encryption, layout: &mut Layout) -> DedupSha1 {
        let buckets = layout.data_lines().div_ceil(2);
        let index = Index::new(SHA1_BYTES, buckets, params.fingerprint_cache, layout);
        DedupSha1 {
            params: params.clone(),
            tables: Tables::new(index, params.mapping_cache, false, layout),
            counts: Counts::default(),
            below,
        }
    }

    /// The same, made to survive a power cut, as [`super::dewrite::Dewrite::sound`]; it always
    /// compares, so that no mapping is accepted before the content that it shares.
    pub fn sound(params: &DedupSha1Params, below: Encryption, layout: &mut Layout) -> DedupSha1 {
        let mut sound = DedupSha1::new(params, below, layout);
        (sound.params.verify, sound.tables.sound) = (true, true);
        sound
    }
}

/// Looks for the content of `data` among the entries of `digest`: the entry, if `accept` takes it
/// and the bytes are the same (or nobody looks), and the step after which all is known.
pub(super) fn find(
    (tables, below, counts): (&mut Tables, &mut Encryption, &mut Counts),
    (digest, hashed): (Digest, Step),
    data: &Line,
    verify: bool,
    accept: fn(&Match) -> bool,
    plan: &mut Plan,
) -> At<Option<Match>> {
    let mut search = tables.index.search(digest, hashed);
    while let Some(found) = tables.index.next(&mut search, plan) {
        if !accept(&found) {
            continue;
        }
        if verify {
            let mut plan = plan.because(Cause::Compare);
            let stored = below.read(found.place, Class::Data, found.at, &mut plan);
            search.at = plan.unit(Unit::Compare, stored.at);
            if stored.value.as_ref() != Some(data) {
                counts.collisions += 1;
                continue;
            }
        }
        match found.hit {
            true => counts.in_cache += 1,
            false => counts.in_medium += 1,
        }
        return At::new(Some(found), search.at);
    }
    At::new(None, search.at)
}

/// Reads through the mapping; an unmapped line takes as long as a read of its own place.
pub(super) fn read(
    (tables, below): (&mut Tables, &mut Encryption),
    a: Logical,
    class: Class,
    after: Step,
    plan: &mut Plan,
) -> At<Option<Line>> {
    let place = tables.amt.translate(&mut tables.cache, a, after, plan);
    match place.value {
        Some(mapped) => below.read(mapped, class, place.at, plan),
        None => {
            let read = below.read(Place(a.0), class, place.at, plan);
            At::new(None, read.at)
        }
    }
}

/// The figures that every full deduplication has.
pub(super) fn figures(tables: &Tables, counts: &Counts, out: &mut Figures) {
    out.extend([
        (
            "duplicate_writes",
            (counts.in_cache + counts.in_medium) as f64,
        ),
        ("duplicates_found_in_cache", counts.in_cache as f64),
        ("duplicates_found_in_medium", counts.in_medium as f64),
        ("collisions", counts.collisions as f64),
        ("fingerprint_cache_hit_rate", tables.index.cache.hit_rate()),
        ("amt_hit_rate", tables.cache.hit_rate()),
        ("leaked_lines", tables.leaked as f64),
    ]);
}

impl Layer for DedupSha1 {
    type Addr = Logical;

    fn read(&mut self, a: Logical, class: Class, after: Step, plan: &mut Plan) -> At<Option<Line>> {
        read((&mut self.tables, &mut self.below), a, class, after, plan)
    }

    fn write(
        &mut self,
        a: Logical,
        data: At<&Line>,
        gate: Step,
        class: Class,
        order: Persist,
        plan: &mut Plan,
    ) -> Stored {
        let order = self.tables.demand(order);
        let tables = &mut self.tables;
        let (old, got) = tables.amt.find(&mut tables.cache, a, data.at, plan);
        let (mut digest, mut known) = (None, data.at);
        if class == Class::Data {
            let hash = Digest::new(&Sha1::digest(data.value), self.params.digest_bytes);
            let hashed = plan.because(Cause::Fingerprint).unit(Unit::Sha1, data.at);
            let parts = (tables, &mut self.below, &mut self.counts);
            let verify = self.params.verify;
            let found = find(parts, (hash, hashed), data.value, verify, |_| true, plan);
            (digest, known) = (Some(hash), found.at);
            if let Some(found) = found.value {
                let steps = (known, plan.both(known, gate));
                let shared = self.tables.share((a, got), old, &found, steps, plan);
                return self.tables.demanded(a, shared, order, plan);
            }
        }
        let (place, unmapped, old, got) = self.tables.allocate(a, (old, got), known, plan);
        let gate = plan.both(gate, unmapped);
        let data = At::new(data.value, known);
        let kept = self.below.write(place, data, gate, class, order, plan);
        let spots = (old, place);
        let steps = (known, kept);
        let stored = self.tables.keep((a, got), spots, digest, steps, plan);
        self.tables.demanded(a, stored, order, plan)
    }

    fn persist_metadata(&mut self, a: Logical, after: Step, plan: &mut Plan) -> Stored {
        self.tables.persist(a, after, &mut self.below, plan)
    }

    fn flush(&mut self, plan: &mut Plan) {
        self.tables.flush(plan);
        self.below.flush(plan);
    }

    fn recover(&mut self, plan: &mut Plan) {
        if self.tables.sound {
            self.below.recover(plan);
            let bytes = self.params.digest_bytes;
            let digest = |data: &Line| Digest::new(&Sha1::digest(data), bytes);
            return self.tables.rebuild(&mut self.below, digest, plan);
        }
        self.tables.recover(plan);
        self.below.recover(plan);
    }

    fn hint(&self, a: Logical, plan: &Plan) {
        let place = self.tables.amt.touch_ahead(&self.tables.cache, a, plan);
        self.below.hint(place, plan);
    }

    fn forget_figures(&mut self) {
        self.counts = Counts::default();
        self.tables.forget_figures();
        self.below.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        let tables = &self.tables;
        figures(tables, &self.counts, out);
        let per_line = tables.bytes_per_line() as f64;
        let mapped = tables.amt.mapped() as f64;
        out.push(("metadata_bytes", per_line * mapped));
        out.push(("metadata_bytes_per_line", per_line));
        out.push(("metadata_bytes_in_use", tables.bytes_in_use() as f64));
        self.below.figures(out);
    }
}
