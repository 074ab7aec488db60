//! A full fingerprint index in the medium: buckets of one line, each with entries of digest, place
//! and reference count, probed one after the other. Source: the layouts are ours (*assumed*); that
//! the index is whole, and cached, is ESD's account of its rivals. Left out: what equality means.

use sardonyx_base::random::{SplitMix64, mix};

use super::amt::{When, number, number_bytes};
use super::places::PAST;
use super::references::{Left, References};
use crate::controller::metadata_cache::{Lookup, MetadataCache, spread};
use crate::exhausted::Exhausted;
use crate::line::{Line, Place, ZERO_LINE};
use crate::mechanisms::mechanisms;
use crate::medium::layout::{Layout, Region};
use crate::medium::params::Unit;
use crate::plan::{Plan, Queue, Step};
use crate::settings::{CacheKey, Settings};
use crate::stats::Cause;

mechanisms! {
    FULL_COUNT = "duplicates beyond a full count", least 1;
    BEYOND_BUCKET = "entries beyond a full bucket", least 0; // few programs have so many
    BEYOND_GONE = "entries gone from beyond a full bucket", least 0;
}

/// The last byte of a bucket counts the entries that lie beyond the bucket because it was full.
const OVERFLOW: usize = 63;

/// The name of the index's region.
pub const INDEX: &str = "fingerprints";

/// Bytes of the longest fingerprint.
pub const DIGEST_BYTES: usize = 20;

/// A fingerprint. Bytes that it does not have are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    bytes: [u8; DIGEST_BYTES],
}

impl Digest {
    /// Makes a digest of at most [`DIGEST_BYTES`] bytes; further ones are left out.
    pub fn new(digest: &[u8]) -> Digest {
        let len = digest.len().min(DIGEST_BYTES);
        let mut bytes = [0; DIGEST_BYTES];
        bytes[..len].copy_from_slice(&digest[..len]);
        Digest { bytes }
    }

    /// The first `len` bytes of it.
    pub fn first(mut self, len: usize) -> Digest {
        self.bytes[len..].fill(0);
        self
    }
}

/// An entry with the wanted digest, and the state of the search.
#[derive(Clone, Copy, Debug)]
pub struct Match {
    /// The bucket with the entry, as the cache has it.
    pub cached: Lookup,
    slot: usize,
    /// The place of the content.
    pub place: Place,
    /// The number of lines that refer to it.
    pub count: References,
    /// The step after which all of this is known.
    pub at: Step,
}

/// An entry of the index.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    bucket: u64,
    slot: usize,
    /// The number of lines that refer to it.
    pub count: References,
}

/// A search through the buckets of one digest.
pub struct BucketSearch {
    digest: Digest,
    bucket: u64,
    walked: u64,
    current: Option<(Lookup, Line, usize)>,
    /// The step after which the findings so far are known.
    pub at: Step,
}

/// The index from fingerprints to places.
pub struct Index {
    region: Region,
    /// Bytes of a digest in an entry, bytes of an entry, and entries in a bucket.
    digest: usize,
    entry: usize,
    per_bucket: usize,
    /// Whether a new entry takes the slot of one with the same digest whose count is full. Nobody will share that one
    /// any more, and thousands of them would slow searches down (*assumed*, as for ESD).
    moves: bool,
    /// Whether a power cut may have taken entries that other tables refer to.
    recovered: bool,
    /// The cache of the index on chip.
    pub cache: MetadataCache,
    entries: u64,
    /// Entries of contents from before the run.
    past: PastEntries,
}

/// The entries of contents that the medium has held since before the run, which no line of the run has. A bucket gets
/// them before it is first looked at. Their number is drawn from the bucket's, as if each content had chosen its bucket.
/// *Assumed*; entries beyond a full bucket are counted there, and do not lie in the next one.
#[derive(Clone, Copy)]
struct PastEntries {
    /// One of [`DRAWS`] draws less than this is an entry.
    below: u64,
}

/// Draws for the entries of a bucket.
const DRAWS: u64 = 16;
/// The place in their entries, which no line of the run has: whoever finds their fingerprint goes on.
const NOBODYS: u64 = (1 << 40) - 2;

impl PastEntries {
    fn new(data_lines: u64, buckets: u64, settings: &Settings) -> PastEntries {
        let share = u128::from(u64::MAX / 100 * settings.get(&PAST));
        let mean = share * u128::from(data_lines) / u128::from(buckets * DRAWS);
        PastEntries {
            below: mean.min(u128::from(u64::MAX)) as u64,
        }
    }

    fn number(self, stream: &mut SplitMix64) -> usize {
        (0..DRAWS).filter(|_| stream.draw() < self.below).count()
    }
}

impl Index {
    /// An index of `buckets` buckets whose entries hold `digest` bytes of fingerprint.
    pub fn new(
        digest: usize,
        buckets: u64,
        moves: bool,
        cache: &CacheKey,
        settings: &Settings,
        layout: &mut Layout,
    ) -> Index {
        let entry = digest + 6;
        Index {
            region: layout.reserve_sparse(INDEX, buckets.max(1)),
            digest,
            entry,
            per_bucket: OVERFLOW / entry,
            moves,
            recovered: false,
            cache: MetadataCache::new(cache, Unit::Fingerprints, Queue::Data, settings),
            entries: 0,
            past: PastEntries::new(layout.data_lines(), buckets.max(1), settings),
        }
    }

    /// Puts the entries from before the run into a bucket that nobody has looked at.
    fn furnish(&mut self, bucket: u64, plan: &mut Plan) {
        let at = self.region.line(bucket);
        if self.past.below == 0 || plan.peek(at).is_some() {
            return;
        }
        let mut stream = SplitMix64(mix(bucket + 1));
        let number = self.past.number(&mut stream);
        let room = self.per_bucket.min(number);
        let mut bytes = ZERO_LINE;
        for entry in bytes.chunks_exact_mut(self.entry).take(room) {
            entry[..self.digest].fill_with(|| stream.draw() as u8);
            entry[self.digest..][..5].copy_from_slice(&number_bytes(NOBODYS));
            entry[self.digest + 5] = References::ONE.byte();
        }
        bytes[OVERFLOW] = (number - room).min(255) as u8;
        self.cache.preload(at, plan, |line| *line = bytes);
    }

    /// The place of an entry of the run.
    fn held(&self, bucket: &Line, slot: usize) -> Option<Place> {
        let held = number(bucket, self.place(slot)).filter(|place| *place != NOBODYS);
        held.map(Place)
    }

    /// Bytes of an entry.
    pub fn entry_bytes(&self) -> usize {
        self.entry
    }

    /// Entries in the index.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Begins a search.
    pub fn search(&self, digest: Digest, after: Step) -> BucketSearch {
        BucketSearch {
            digest,
            bucket: self.home(&digest),
            walked: 0,
            current: None,
            at: after,
        }
    }

    /// The next entry with the digest; `None` after the last one.
    pub fn next(&mut self, search: &mut BucketSearch, plan: &mut Plan) -> Option<Match> {
        loop {
            let (cached, line, from) = match search.current.take() {
                Some(current) => current,
                None => {
                    self.furnish(search.bucket, plan);
                    let place = self.region.line(search.bucket);
                    let mut plan = plan.because(Cause::Lookup);
                    let cached = self.cache.get(place, search.at, &mut plan);
                    search.at = cached.at;
                    (cached, *self.cache.line(cached), 0)
                }
            };
            let wanted = &search.digest.bytes[..self.digest];
            let slot = (from..self.per_bucket).find(|slot| {
                let entry = &line[slot * self.entry..][..self.entry];
                entry[..self.digest] == *wanted && self.held(&line, *slot).is_some()
            });
            if let Some(slot) = slot {
                search.current = Some((cached, line, slot + 1));
                return Some(Match {
                    cached,
                    slot,
                    place: self.held(&line, slot).expect("just seen"),
                    count: self.references(&line, slot),
                    at: search.at,
                });
            }
            search.walked += 1;
            // Nothing overflowed from this bucket, or every bucket has been visited.
            if line[OVERFLOW] == 0 || search.walked == self.region.lines {
                return None;
            }
            search.bucket = self.after(search.bucket);
        }
    }

    /// The entries with the digest, without any hardware: where each lies, and the place of its content.
    pub fn peek(&self, digest: Digest, plan: &Plan) -> Vec<(Entry, Place)> {
        let (wanted, mut bucket) = (&digest.bytes[..self.digest], self.home(&digest));
        let mut found = Vec::new();
        for _ in 0..self.region.lines {
            let line = self.cache.newest(self.region.line(bucket), plan);
            let slots = (0..self.per_bucket)
                .filter(|slot| line[slot * self.entry..][..self.digest] == *wanted);
            found.extend(slots.filter_map(|slot| {
                let place = self.held(&line, slot)?;
                let count = self.references(&line, slot);
                let entry = Entry {
                    bucket,
                    slot,
                    count,
                };
                Some((entry, place))
            }));
            if line[OVERFLOW] == 0 {
                break;
            }
            bucket = self.after(bucket);
        }
        found
    }

    /// Counts one more line that has referred to an entry since before the run. A full count stays.
    pub fn preload_reference(&mut self, entry: Entry, plan: &mut Plan) -> References {
        let (at, count) = (self.count(entry.slot), entry.count.one_more());
        let bucket = self.region.line(entry.bucket);
        self.cache
            .preload(bucket, plan, |line| line[at] = count.byte());
        count
    }

    /// Enters content that has been at `place` since before the run, with one reference. Returns the bucket of the
    /// entry; `None` if there is no room.
    pub fn preload(&mut self, digest: Digest, place: Place, plan: &mut Plan) -> Option<u64> {
        let mut bucket = self.home(&digest);
        for _ in 0..self.region.lines {
            self.furnish(bucket, plan);
            let at = self.region.line(bucket);
            let line = self.cache.newest(at, plan);
            let mut slots = 0..self.per_bucket;
            let free = slots.find(|slot| number(&line, self.place(*slot)).is_none());
            if let Some(slot) = free {
                let (from, digest_bytes) = (slot * self.entry, self.digest);
                self.cache.preload(at, plan, |line| {
                    let entry = &mut line[from..];
                    entry[..digest_bytes].copy_from_slice(&digest.bytes[..digest_bytes]);
                    entry[digest_bytes..][..5].copy_from_slice(&number_bytes(place.0));
                    entry[digest_bytes + 5] = References::ONE.byte();
                });
                self.entries += 1;
                return Some(bucket);
            }
            self.cache.preload(at, plan, |line| {
                line[OVERFLOW] = line[OVERFLOW].saturating_add(1);
            });
            bucket = self.after(bucket);
        }
        None
    }

    /// Counts one more line that refers to the place of a match just found. A full count stays.
    pub fn refer(&mut self, found: &Match, ripe: Step, plan: &mut Plan) -> References {
        let count = found.count.one_more();
        if count != found.count {
            let mut plan = plan.because(Cause::Reclaim);
            let at = self.count(found.slot);
            self.cache
                .set_bytes(found.cached, at, &[count.byte()], ripe, &mut plan);
        }
        count
    }

    /// Enters content at `place`, with one reference, and returns the bucket of the entry.
    pub fn insert(&mut self, digest: Digest, place: Place, when: When, plan: &mut Plan) -> u64 {
        let mut plan = plan.because(Cause::Lookup);
        let (mut bucket, mut at, ripe) = (self.home(&digest), when.decided, when.ripe);
        for _ in 0..self.region.lines {
            self.furnish(bucket, &mut plan);
            let cached = self.cache.revisit(self.region.line(bucket), at, &mut plan);
            at = cached.at;
            let line = *self.cache.line(cached);
            let wanted = &digest.bytes[..self.digest];
            let full = |slot: &usize| {
                let of = &line[slot * self.entry..][..self.digest];
                self.moves && self.references(&line, *slot).is_full() && of == wanted
            };
            let full = (0..self.per_bucket).find(full);
            let free = (0..self.per_bucket).find(|s| number(&line, self.place(*s)).is_none());
            if let Some(slot) = full.or(free) {
                let mut entry = [0; 26];
                entry[..self.digest].copy_from_slice(&digest.bytes[..self.digest]);
                entry[self.digest..][..5].copy_from_slice(&number_bytes(place.0));
                entry[self.digest + 5] = References::ONE.byte();
                let bytes = &entry[..self.entry];
                self.cache
                    .set_bytes(cached, slot * self.entry, bytes, ripe, &mut plan);
                self.entries += u64::from(full.is_none());
                return bucket;
            }
            plan.exercise(&BEYOND_BUCKET);
            let more = [line[OVERFLOW].saturating_add(1)];
            self.cache
                .set_bytes(cached, OVERFLOW, &more, ripe, &mut plan);
            bucket = self.after(bucket);
        }
        // It has an entry for every place of the medium.
        plan.fail(Exhausted::medium_full("give the machine more rows"));
        bucket
    }

    /// Counts one line less that refers to `place`, whose entry lies in `bucket`. Returns true if it was the last one,
    /// and the entry is removed.
    pub fn unrefer(&mut self, bucket: u64, place: Place, when: When, plan: &mut Plan) -> bool {
        if self.recovered && bucket >= self.region.lines {
            return false;
        }
        let mut plan = plan.because(Cause::Reclaim);
        let cached = self
            .cache
            .revisit(self.region.line(bucket), when.decided, &mut plan);
        let (line, ripe) = (*self.cache.line(cached), when.ripe);
        let Some(slot) = self.slot_of(&line, place) else {
            // Its count was full, and its entry has moved to a fresh copy; or a power cut took it.
            let may_be = self.moves || self.recovered;
            assert!(may_be, "the inverse table knows where the entry lies");
            return false;
        };
        match self.references(&line, slot).one_less() {
            Left::Unknown => return false,
            Left::Some(References::NONE) | Left::Nobody => {}
            Left::Some(less) => {
                let at = self.count(slot);
                self.cache
                    .set_bytes(cached, at, &[less.byte()], ripe, &mut plan);
                return false;
            }
        }
        let from = slot * self.entry;
        let digest = Digest::new(&line[from..from + self.digest]);
        let blank = &[0; 26][..self.entry];
        self.cache.set_bytes(cached, from, blank, ripe, &mut plan);
        self.entries -= 1;
        // The buckets that the entry was pushed beyond count one such entry less.
        let (mut passed, mut at) = (self.home(&digest), cached.at);
        if passed != bucket {
            plan.exercise(&BEYOND_GONE);
        }
        while passed != bucket {
            let cached = self.cache.revisit(self.region.line(passed), at, &mut plan);
            at = cached.at;
            let beyond = self.cache.line(cached)[OVERFLOW];
            // A full counter of such entries no longer knows their number, so it stays.
            if beyond != u8::MAX {
                let less = [beyond.saturating_sub(1)]; // 0 only after a power cut
                self.cache
                    .set_bytes(cached, OVERFLOW, &less, ripe, &mut plan);
            }
            passed = self.after(passed);
        }
        true
    }

    /// Takes all entries out.
    pub fn clear(&mut self, plan: &mut Plan) {
        let mut plan = plan.because(Cause::Lookup);
        for place in plan.written(&self.region) {
            let cached = self.cache.get(place, Step::PAST, &mut plan);
            if *self.cache.line(cached) != ZERO_LINE {
                let ripe = Step::PAST;
                self.cache.set_bytes(cached, 0, &ZERO_LINE, ripe, &mut plan);
            }
        }
        self.entries = 0;
    }

    /// Sets the count of `place`, just entered into `bucket`.
    pub fn set_count(
        &mut self,
        bucket: u64,
        place: Place,
        count: References,
        when: When,
        plan: &mut Plan,
    ) {
        let at = self.region.line(bucket);
        let cached = self.cache.revisit(at, when.decided, plan);
        let slot = self.slot_of(self.cache.line(cached), place);
        let at = self.count(slot.expect("it has just been entered"));
        let byte = [count.byte()];
        self.cache.set_bytes(cached, at, &byte, when.ripe, plan);
    }

    /// The places in a bucket according to the medium's bytes, with their counts.
    pub fn scan(&self, bucket: u64, plan: &mut Plan) -> Vec<(Place, References)> {
        if bucket >= self.region.lines {
            return Vec::new(); // torn by a power cut
        }
        let line = plan.scan(self.region.line(bucket)).unwrap_or(ZERO_LINE);
        let entry = |slot| {
            let place = number(&line, self.place(slot))?;
            Some((Place(place), self.references(&line, slot)))
        };
        (0..self.per_bucket).filter_map(entry).collect()
    }

    /// Sets the number of entries, learnt elsewhere (from the inverse table).
    pub fn set_entries(&mut self, entries: u64) {
        self.entries = entries;
        self.recovered = true;
    }

    fn home(&self, digest: &Digest) -> u64 {
        let mut key = [0; 8];
        key.copy_from_slice(&digest.bytes[..8]);
        spread(u64::from_le_bytes(key), self.region.lines)
    }

    fn after(&self, bucket: u64) -> u64 {
        (bucket + 1) % self.region.lines
    }

    fn slot_of(&self, bucket: &Line, place: Place) -> Option<usize> {
        let mut slots = 0..self.per_bucket;
        slots.find(|slot| number(bucket, self.place(*slot)) == Some(place.0))
    }

    fn place(&self, slot: usize) -> usize {
        slot * self.entry + self.digest
    }

    fn count(&self, slot: usize) -> usize {
        slot * self.entry + self.digest + 5
    }

    fn references(&self, bucket: &Line, slot: usize) -> References {
        References::of_byte(bucket[self.count(slot)])
    }
}
