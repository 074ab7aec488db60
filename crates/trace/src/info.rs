//! What a trace holds, in one pass: how much, how often the same content (ESD Fig. 1 and 3), and how
//! often two contents share a fingerprint (ESD Fig. 8).
//!
//! Contents are told apart by 128 bits of XXH3, so memory grows with the distinct
//! contents (about 100 bytes each) and lines (about 30), never with the records.

use std::collections::hash_map::Entry;
use std::num::NonZeroU32;
use std::{iter, mem};

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use twox_hash::XxHash3_128;

use super::bursts::{BURST, BURSTS_MOST, Bursts, WRITES_LEAST};
use super::{Checksums, GapUnit, Level, Op, Provenance, Record, Source, TraceError};
use crate::line::{LINE_BYTES, Line, ZERO_LINE};

/// Statistics of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceInfo {
    /// Records of every kind: the sum of the six counts that follow.
    pub records: u64,
    /// Reads; at level `cpu` loads.
    pub reads: u64,
    /// Line writes: evictions, non-temporal writes and forced write-backs; at level `cpu` stores too, each with its line's
    /// bytes after it.
    pub writes: u64,
    /// sfence and mfence.
    pub fences: u64,
    /// clwb, clflushopt and clflush instructions.
    pub flushes: u64,
    /// Lines that were still dirty in a cache when the recording ended; no traffic.
    pub dirty_at_end: u64,
    /// Records of lines that changed without a write, or went; no traffic.
    pub changes_without_write: u64,
    /// Sum of the gaps, if they count instructions.
    pub instructions: Option<u64>,
    /// Sum of the gaps, if they count cycles.
    pub cycles: Option<u64>,
    /// Distinct threads.
    pub threads: u64,
    /// Distinct lines read or written.
    pub footprint_lines: u64,
    /// The footprint in bytes.
    pub footprint_bytes: u64,
    /// Distinct lines written.
    pub written_lines: u64,
    /// Distinct lines whose first access is a read: their content is unknown.
    pub lines_read_before_written: u64,
    /// Distinct contents among the writes.
    pub distinct_contents: u64,
    /// Share of writes whose content an earlier write of the trace had (ESD Fig. 1).
    pub duplicate_rate: f64,
    /// Share of writes of 64 zero bytes.
    pub zero_rate: f64,
    /// Share of writes that leave the line as it was.
    pub silent_write_rate: f64,
    /// Contents by how often each is written (ESD Fig. 3).
    pub locality: Vec<Bucket>,
    /// Contents that share a fingerprint (ESD Fig. 8).
    pub collisions: Vec<Collisions>,
    /// Writes in bursts: runs of 64 and more with no instruction or cycle between them. At level `cpu` stores are not writes to
    /// memory, and there are none.
    pub burst_writes: Option<u64>,
    /// The share of all writes that are in bursts.
    pub burst_write_share: Option<f64>,
    /// Writes of the longest burst.
    pub longest_burst: Option<u64>,
    /// Bytes of the last cache above which the trace was taken, if its provenance says so.
    pub recorded_cache_bytes: Option<u64>,
    /// The part of the file under checksums, all of which hold; a generated trace has no file.
    pub checksums: Option<Checksums>,
    /// Warnings that a reader should know before trusting a mean, in sentences.
    pub warnings: Vec<String>,
}

/// The contents written a certain number of times.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Bucket {
    /// Writes of each content: `1`, `2-10`, `11-100`, `101-1000`, `>1000`.
    pub times: &'static str,
    /// Distinct contents.
    pub contents: u64,
    /// The share of all distinct contents.
    pub contents_share: f64,
    /// Writes of these contents.
    pub writes: u64,
    /// The share of all writes.
    pub writes_share: f64,
}

/// A fingerprint whose collisions are counted beside those of CRC-32.
#[derive(Clone, Copy, Debug)]
pub struct Fingerprint {
    /// The name in the statistics.
    pub name: &'static str,
    /// The fingerprint of a content.
    pub of: fn(&Line) -> u64,
}

/// The collisions of a fingerprint.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Collisions {
    /// `crc-32`, or the name that the caller gave it.
    pub fingerprint: &'static str,
    /// Distinct contents whose fingerprint an earlier distinct content had.
    pub contents: u64,
    /// Writes that meet a stored fingerprint of another content, if the first content with a
    /// fingerprint is the one stored.
    pub writes: u64,
    /// The share of all writes.
    pub writes_share: f64,
    /// `contents` relative to that of CRC-32; absent if CRC-32 has no collisions.
    pub contents_to_crc32: Option<f64>,
    /// `writes` relative to that of CRC-32; absent if CRC-32 has no collisions.
    pub writes_to_crc32: Option<f64>,
}

/// Lower ends of the buckets of ESD Fig. 3, and their names.
const BUCKETS: [(u64, &str); 5] = [
    (1, "1"),
    (2, "2-10"),
    (11, "11-100"),
    (101, "101-1000"),
    (1001, ">1000"),
];

const CRC_32: Fingerprint = Fingerprint {
    name: "crc-32",
    of: |data| u64::from(crc32fast::hash(data)),
};

/// Reads `source` to its end and counts the collisions of CRC-32 and of `fingerprints`. `progress` is told the records
/// done and in all.
///
/// # Errors
/// As [`Source::next_batch`].
pub fn info(
    mut source: Source,
    fingerprints: &[Fingerprint],
    progress: &mut dyn FnMut(u64, u64),
) -> Result<TraceInfo, TraceError> {
    let mut survey = Survey::new(fingerprints);
    source.batches(progress, |batch| {
        survey.add(batch);
        Ok(())
    })?;
    let provenance = source.provenance();
    let mut info = survey.finish(&provenance);
    info.checksums = source.checksums();
    Ok(info)
}

fn last_cache(provenance: &Provenance) -> Option<u64> {
    let caches = provenance.more.get("caches")?;
    ["llc", "l2", "l1"]
        .iter()
        .find_map(|level| caches.get(level)?.get("bytes")?.as_u64())
}

fn warnings(writes: u64, in_bursts: u64, longest: u64, cache: Option<u64>) -> Vec<String> {
    let mut found = Vec::new();
    if writes < WRITES_LEAST {
        let number = if writes == 1 {
            "1 write is"
        } else {
            &format!("{writes} writes are")
        };
        let remedy = cache.map_or(String::new(), |bytes| {
            format!(
                "; caches of {} KiB kept the rest: record a longer run, or below a smaller last level, as in \
                 --llc 1M:16",
                bytes >> 10
            )
        });
        found.push(format!(
            "{number} too few for a mean: with fewer than {WRITES_LEAST} it says little of the program{remedy}"
        ));
    }
    let bursts = share(in_bursts, writes);
    if bursts > BURSTS_MOST {
        found.push(format!(
            "{:.1} % of the writes come in bursts, {BURST} accesses and more with no instruction between them (the longest \
             has {longest}): their latencies are those of a full write queue, and means show it",
            100.0 * bursts
        ));
    }
    found
}

/// A content's number, counted from 1 in order of first appearance.
type ContentNumber = NonZeroU32;

/// 128 bits of a content's XXH3, which two contents of a trace share by chance only.
type ContentDigest = [u64; 2];

fn digest(data: &Line) -> ContentDigest {
    let hash = XxHash3_128::oneshot(data);
    [hash as u64, (hash >> 64) as u64]
}

#[derive(Default)]
struct Survey {
    records: u64,
    of: [u64; Op::ALL.len()],
    gaps: u64,
    bursts: Bursts,
    zeros: u64,
    silent: u64,
    written: u64,
    read_first: u64,
    threads: FxHashSet<u16>,
    /// Lines met so far, each with the content last written.
    lines: FxHashMap<u64, Option<ContentNumber>>,
    numbers: FxHashMap<ContentDigest, ContentNumber>,
    writes: Vec<u64>,
    /// CRC-32 and the fingerprints asked for, each with its value of every content.
    prints: Vec<(Fingerprint, Vec<u64>)>,
    /// Digests of a batch's writes. All are computed before any table is asked, so that the host waits for several
    /// answers at once.
    digests: Vec<ContentDigest>,
}

impl Survey {
    fn new(fingerprints: &[Fingerprint]) -> Survey {
        let all = iter::once(&CRC_32).chain(fingerprints);
        Survey {
            prints: all.map(|print| (*print, Vec::new())).collect(),
            ..Survey::default()
        }
    }

    fn add(&mut self, batch: &[Record]) {
        let mut digests = mem::take(&mut self.digests);
        digests.extend(batch.iter().filter_map(written).map(digest));
        let mut next = digests.drain(..);
        for record in batch {
            self.records += 1;
            self.of[usize::from(record.op.code())] += 1;
            self.gaps = self.gaps.saturating_add(u64::from(record.gap));
            self.threads.insert(record.thread);
            self.bursts.add(record);
            if let Some(data) = written(record) {
                let digest = next.next().expect("a digest for each write");
                self.write(record.line.0, data, digest);
            } else if matches!(record.op, Op::ReadMiss | Op::Load)
                && let Entry::Vacant(line) = self.lines.entry(record.line.0)
            {
                line.insert(None);
                self.read_first += 1;
            }
        }
        drop(next);
        self.digests = digests;
    }

    fn write(&mut self, line: u64, data: &Line, digest: ContentDigest) {
        let number = self.number(data, digest);
        self.writes[number.get() as usize - 1] += 1;
        self.zeros += u64::from(*data == ZERO_LINE);
        let before = self.lines.entry(line).or_default().replace(number);
        self.silent += u64::from(before == Some(number));
        self.written += u64::from(before.is_none());
    }

    fn number(&mut self, data: &Line, digest: ContentDigest) -> ContentNumber {
        let count = u32::try_from(self.writes.len() + 1).expect("fewer than 2^32 contents");
        let next = ContentNumber::new(count).expect("one more than there are");
        let number = *self.numbers.entry(digest).or_insert(next);
        if number == next {
            self.writes.push(0);
            for (print, values) in &mut self.prints {
                values.push((print.of)(data));
            }
        }
        number
    }

    fn finish(self, provenance: &Provenance) -> TraceInfo {
        let unit = provenance.gap_unit;
        let memory = provenance.level == Level::Memory;
        let of = |ops: &[Op]| {
            ops.iter()
                .map(|op| self.of[usize::from(op.code())])
                .sum::<u64>()
        };
        let writes = of(&[
            Op::DirtyEviction,
            Op::NonTemporalWrite,
            Op::FlushWriteBack,
            Op::Store,
        ]);
        let distinct = self.writes.len() as u64;
        let cache = last_cache(provenance);
        let footprint = self.lines.len() as u64;
        let (in_bursts, longest) = self.bursts.finish();
        TraceInfo {
            records: self.records,
            reads: of(&[Op::ReadMiss, Op::Load]),
            writes,
            fences: of(&[Op::Fence]),
            flushes: of(&[Op::Clwb, Op::ClflushOpt, Op::Clflush]),
            dirty_at_end: of(&[Op::FinalDirty]),
            changes_without_write: of(&[Op::Changed]),
            instructions: (unit == GapUnit::Instructions).then_some(self.gaps),
            cycles: (unit == GapUnit::Cycles).then_some(self.gaps),
            threads: self.threads.len() as u64,
            footprint_lines: footprint,
            footprint_bytes: footprint * LINE_BYTES as u64,
            written_lines: self.written,
            lines_read_before_written: self.read_first,
            distinct_contents: distinct,
            duplicate_rate: share(writes - distinct, writes),
            zero_rate: share(self.zeros, writes),
            silent_write_rate: share(self.silent, writes),
            locality: locality(&self.writes, writes),
            collisions: collisions(&self.writes, writes, &self.prints),
            burst_writes: memory.then_some(in_bursts),
            burst_write_share: memory.then(|| share(in_bursts, writes)),
            longest_burst: memory.then_some(longest),
            recorded_cache_bytes: cache,
            checksums: None,
            warnings: warnings(writes, if memory { in_bursts } else { 0 }, longest, cache),
        }
    }
}

fn locality(contents: &[u64], writes: u64) -> Vec<Bucket> {
    let mut buckets: Vec<_> = BUCKETS
        .iter()
        .map(|&(_, times)| Bucket {
            times,
            ..Bucket::default()
        })
        .collect();
    for &times in contents {
        let at = BUCKETS.partition_point(|&(least, _)| least <= times) - 1;
        buckets[at].contents += 1;
        buckets[at].writes += times;
    }
    for bucket in &mut buckets {
        bucket.contents_share = share(bucket.contents, contents.len() as u64);
        bucket.writes_share = share(bucket.writes, writes);
    }
    buckets
}

fn collisions(
    contents: &[u64],
    writes: u64,
    prints: &[(Fingerprint, Vec<u64>)],
) -> Vec<Collisions> {
    let ratio = |n: u64, of: u64| (of > 0).then(|| n as f64 / of as f64);
    let counted: Vec<_> = prints
        .iter()
        .map(|(print, values)| {
            let colliding = colliding(values);
            let writes = colliding.iter().map(|&content| contents[content]).sum();
            (print.name, colliding.len() as u64, writes)
        })
        .collect();
    let (crc_contents, crc_writes) = counted
        .first()
        .map_or((0, 0), |&(_, n, writes)| (n, writes));
    counted
        .into_iter()
        .map(|(fingerprint, n, colliding)| Collisions {
            fingerprint,
            contents: n,
            writes: colliding,
            writes_share: share(colliding, writes),
            contents_to_crc32: ratio(n, crc_contents),
            writes_to_crc32: ratio(colliding, crc_writes),
        })
        .collect()
}

/// Indices of the values that occur at an earlier index too.
fn colliding(values: &[u64]) -> Vec<usize> {
    // Sorted by 32 bits of each value's hash: a word a place, and few values share these bits.
    let hashed = |&value: &u64| value.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let places = values.iter().zip(0..);
    let mut order: Vec<u64> = places.map(|(v, place)| hashed(v) << 32 | place).collect();
    order.sort_unstable();
    let mut found = Vec::new();
    for alike in order.chunk_by(|a, b| a >> 32 == b >> 32) {
        if alike.len() == 1 {
            continue;
        }
        let places = alike.iter().map(|both| (both & 0xffff_ffff) as usize);
        let mut group: Vec<_> = places.map(|place| (values[place], place)).collect();
        group.sort_unstable();
        let pairs = group.windows(2);
        found.extend(
            pairs
                .filter(|pair| pair[0].0 == pair[1].0)
                .map(|pair| pair[1].1),
        );
    }
    found
}

fn written(record: &Record) -> Option<&Line> {
    let writes = record.op.is_write() || record.op == Op::Store;
    record.data.as_ref().filter(|_| writes)
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
