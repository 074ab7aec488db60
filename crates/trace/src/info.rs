//! What a trace holds, in one pass: how much, how often the same content (ESD Fig. 1 and 3), and how
//! often two contents share a fingerprint (ESD Fig. 8).
//!
//! Contents are told apart by the first 128 bits of their SHA-1, so memory grows with the distinct
//! contents and lines (about 100 bytes each), never with the records.

use std::iter;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use sha1::{Digest, Sha1};

use super::bursts::{BURST, BURSTS_MOST, Bursts, WRITES_LEAST};
use super::{Checksums, GapUnit, Level, Op, Provenance, Record, Source, TraceError};
use crate::line::{LINE_BYTES, Line, ZERO_LINE};

/// Statistics of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceInfo {
    /// Records of every kind.
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
    /// Sum of the gaps, if they count instructions.
    pub instructions: Option<u64>,
    /// Sum of the gaps, if they count cycles.
    pub cycles: Option<u64>,
    /// Distinct threads.
    pub threads: u64,
    /// Distinct lines read or written.
    pub footprint_lines: u64,
    /// The same in bytes.
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
    /// How often contents share a fingerprint (ESD Fig. 8).
    pub collisions: Vec<Collisions>,
    /// Writes in bursts: runs of 64 and more with no instruction or cycle between them. At level `cpu` stores are not writes to
    /// memory, and there are none.
    pub burst_writes: Option<u64>,
    /// Their share of all writes.
    pub burst_write_share: Option<f64>,
    /// Writes of the longest burst.
    pub longest_burst: Option<u64>,
    /// Bytes of the last cache above which the trace was taken, if its provenance says so.
    pub recorded_cache_bytes: Option<u64>,
    /// What of the file is under checksums, all of which hold; a generated trace has no file.
    pub checksums: Option<Checksums>,
    /// What a reader should know before trusting a mean, in sentences.
    pub warnings: Vec<String>,
}

/// The contents written a certain number of times.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Bucket {
    /// How often each of them is written: `1`, `2-10`, `11-100`, `101-1000`, `>1000`.
    pub times: &'static str,
    /// Distinct contents.
    pub contents: u64,
    /// Their share of all distinct contents.
    pub contents_share: f64,
    /// Writes of these contents.
    pub writes: u64,
    /// Their share of all writes.
    pub writes_share: f64,
}

/// A fingerprint whose collisions are counted beside those of CRC-32.
#[derive(Clone, Copy, Debug)]
pub struct Fingerprint {
    /// Its name in the statistics.
    pub name: &'static str,
    /// The fingerprint of a content.
    pub of: fn(&Line) -> u64,
}

/// How well a fingerprint tells contents apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Collisions {
    /// `crc-32`, or the name that the caller gave it.
    pub fingerprint: &'static str,
    /// Distinct contents whose fingerprint an earlier distinct content had.
    pub contents: u64,
    /// Writes that meet a stored fingerprint of another content, if the first content with a
    /// fingerprint is the one stored.
    pub writes: u64,
    /// Their share of all writes.
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

/// Reads `source` to its end and counts the collisions of CRC-32 and of `fingerprints`, at most seven. `progress` is
/// told the records done and in all.
///
/// # Errors
/// As [`Source::next_batch`].
///
/// # Panics
/// If there are more than seven fingerprints.
pub fn info(
    mut source: Source,
    fingerprints: &[Fingerprint],
    progress: &mut dyn FnMut(u64, u64),
) -> Result<TraceInfo, TraceError> {
    let mut survey = Survey::new(fingerprints);
    source.each(progress, |record| {
        survey.add(record);
        Ok(())
    })?;
    let provenance = source.provenance();
    let mut info = survey.finish(&provenance);
    info.checksums = source.checksums();
    Ok(info)
}

/// Bytes of the last cache that a recording names.
fn last_cache(provenance: &Provenance) -> Option<u64> {
    let caches = provenance.more.get("caches")?;
    ["llc", "l2", "l1"]
        .iter()
        .find_map(|level| caches.get(level)?.get("bytes")?.as_u64())
}

/// What makes means of so many `writes` doubtful.
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

/// What is known of one distinct content.
struct Content {
    writes: u64,
    /// Bit f: an earlier content has the same fingerprint f.
    collides: u8,
}

/// What is known of one line.
#[derive(Clone, Copy, Default)]
struct Touched {
    first_read: bool,
    /// Number of the content last written.
    content: Option<u32>,
}

/// The statistics while the records pass by.
#[derive(Default)]
struct Survey {
    records: u64,
    of: [u64; Op::ALL.len()],
    gaps: u64,
    bursts: Bursts,
    zeros: u64,
    silent: u64,
    threads: FxHashSet<u16>,
    lines: FxHashMap<u64, Touched>,
    numbers: FxHashMap<u128, u32>,
    contents: Vec<Content>,
    /// CRC-32 and those asked for, each with the values met.
    seen: Vec<(Fingerprint, FxHashSet<u64>)>,
}

impl Survey {
    fn new(fingerprints: &[Fingerprint]) -> Survey {
        let most = u8::BITS as usize - 1;
        assert!(fingerprints.len() <= most, "a bit for each fingerprint");
        let all = iter::once(&CRC_32).chain(fingerprints);
        Survey {
            seen: all.map(|print| (*print, FxHashSet::default())).collect(),
            ..Survey::default()
        }
    }

    fn add(&mut self, record: &Record) {
        self.records += 1;
        self.of[usize::from(record.op.code())] += 1;
        self.gaps = self.gaps.saturating_add(u64::from(record.gap));
        self.threads.insert(record.thread);
        self.bursts.add(record);
        match (&record.data, record.op) {
            (Some(data), op) if op.is_write() || op == Op::Store => self.write(record.line.0, data),
            (_, Op::ReadMiss | Op::Load) => {
                let touched = self.lines.entry(record.line.0).or_default();
                touched.first_read |= touched.content.is_none();
            }
            _ => {}
        }
    }

    fn write(&mut self, line: u64, data: &Line) {
        let number = self.number(data);
        self.contents[number as usize].writes += 1;
        self.zeros += u64::from(*data == ZERO_LINE);
        let touched = self.lines.entry(line).or_default();
        self.silent += u64::from(touched.content == Some(number));
        touched.content = Some(number);
    }

    /// The number of a content, in order of first appearance.
    fn number(&mut self, data: &Line) -> u32 {
        let digest = Sha1::digest(data);
        let key = u128::from_le_bytes(digest[..16].try_into().expect("SHA-1 has 20 bytes"));
        let next = u32::try_from(self.contents.len()).expect("fewer than 2^32 distinct contents");
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            let mut collides = 0;
            for (f, (print, seen)) in self.seen.iter_mut().enumerate() {
                collides |= u8::from(!seen.insert((print.of)(data))) << f;
            }
            self.contents.push(Content {
                writes: 0,
                collides,
            });
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
        let distinct = self.contents.len() as u64;
        let cache = last_cache(provenance);
        let footprint = self.lines.len() as u64;
        let (in_bursts, longest) = self.bursts.finish();
        TraceInfo {
            records: self.records,
            reads: of(&[Op::ReadMiss, Op::Load]),
            writes,
            fences: of(&[Op::Fence]),
            flushes: of(&[Op::Clwb, Op::ClflushOpt, Op::Clflush]),
            instructions: (unit == GapUnit::Instructions).then_some(self.gaps),
            cycles: (unit == GapUnit::Cycles).then_some(self.gaps),
            threads: self.threads.len() as u64,
            footprint_lines: footprint,
            footprint_bytes: footprint * LINE_BYTES as u64,
            written_lines: self.lines.values().filter(|l| l.content.is_some()).count() as u64,
            lines_read_before_written: self.lines.values().filter(|l| l.first_read).count() as u64,
            distinct_contents: distinct,
            duplicate_rate: share(writes - distinct, writes),
            zero_rate: share(self.zeros, writes),
            silent_write_rate: share(self.silent, writes),
            locality: locality(&self.contents, writes),
            collisions: collisions(
                &self.contents,
                writes,
                self.seen.iter().map(|(print, _)| print.name),
            ),
            burst_writes: memory.then_some(in_bursts),
            burst_write_share: memory.then(|| share(in_bursts, writes)),
            longest_burst: memory.then_some(longest),
            recorded_cache_bytes: cache,
            checksums: None,
            warnings: warnings(writes, if memory { in_bursts } else { 0 }, longest, cache),
        }
    }
}

fn locality(contents: &[Content], writes: u64) -> Vec<Bucket> {
    let mut buckets: Vec<_> = BUCKETS
        .iter()
        .map(|&(_, times)| Bucket {
            times,
            ..Bucket::default()
        })
        .collect();
    for content in contents {
        let at = BUCKETS.partition_point(|&(least, _)| least <= content.writes) - 1;
        buckets[at].contents += 1;
        buckets[at].writes += content.writes;
    }
    for bucket in &mut buckets {
        bucket.contents_share = share(bucket.contents, contents.len() as u64);
        bucket.writes_share = share(bucket.writes, writes);
    }
    buckets
}

/// Those of the fingerprints of these names, CRC-32 first.
fn collisions(
    contents: &[Content],
    writes: u64,
    names: impl Iterator<Item = &'static str>,
) -> Vec<Collisions> {
    let count = |f: usize| {
        let colliding = contents.iter().filter(move |c| c.collides >> f & 1 == 1);
        colliding.fold((0, 0), |(n, writes), c| (n + 1, writes + c.writes))
    };
    let (crc_contents, crc_writes) = count(0);
    let ratio = |n: u64, of: u64| (of > 0).then(|| n as f64 / of as f64);
    names
        .enumerate()
        .map(|(f, fingerprint)| {
            let (n, colliding) = count(f);
            Collisions {
                fingerprint,
                contents: n,
                writes: colliding,
                writes_share: share(colliding, writes),
                contents_to_crc32: ratio(n, crc_contents),
                writes_to_crc32: ratio(colliding, crc_writes),
            }
        })
        .collect()
}

/// `part` of `whole`, and nothing of nothing.
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
