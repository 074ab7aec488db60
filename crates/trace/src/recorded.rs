//! What the requests of the recordings in `traces/` are like, whatever they carry, and requests that are like them:
//! reads and writes, gaps, and how far back the line was asked for. The tables are written by
//! `research/locality.py`. Left out: any order beyond which kind of request follows which.

use std::collections::VecDeque;

use rand::{Rng, RngExt};
use rustc_hash::{FxHashMap, FxHasher};
use serde::{Deserialize, Serialize};
use std::hash::Hasher;

use super::{Op, Source, TraceError};
use crate::line::ZERO_LINE;

/// A recording in `traces/`, or what it is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SampleRecording {
    /// GCC's compiler proper.
    Cc1,
    /// libpmemobj transactions.
    PmdkTx,
    /// redis-server under its benchmark.
    Redis,
    /// Tables in memory.
    Sqlite3,
    /// Chess, mostly clearing its hash table.
    Stockfish,
    /// Encoding frames.
    X264,
}

/// Bits of a gap, or of the distance to the last request of the same line.
const GAPS: usize = 18;
const DISTANCES: usize = 20;
const NEAR: usize = 16;
/// Codes of lines that were not asked for before: the line after a near one, another line of its page, a line of
/// another page.
const NEXT: usize = DISTANCES;
const PAGE: usize = DISTANCES + 1;
const PLACES: usize = DISTANCES + 3;
const PAGE_LINES: u64 = 64;
const HISTORY: usize = 1 << DISTANCES;

/// Statistics of a recording's requests. Shares are thousandths; those of reads come before those of writes.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    name: &'static str,
    /// The share of requests that are reads, and the share of those that are of the other kind than the request before.
    pub read_share: f64,
    switches: f64,
    pub mean_gap: u32,
    pub lines: u64,
    gaps: [[u16; GAPS]; 2],
    places: [[u16; PLACES]; 2],
}

/// Statistics of the contents that a trace writes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WrittenContents {
    pub requests: u64,
    /// The shares of writes with a content written before, with zeros, and with a hot content; and the number of hot
    /// contents.
    pub duplicate_rate: f64,
    pub zero_share: f64,
    pub hot_share: f64,
    pub hot_contents: u32,
    pub threads: u16,
}

/// A content of more writes than this is hot (ESD Sec. II-A).
const HOT: u64 = 1000;

impl Recorded {
    /// Measures the requests of a trace and the contents of its writes. Contents are told apart by a hash of 64 bits.
    pub fn measure(source: &mut Source) -> Result<(Recorded, WrittenContents), TraceError> {
        let (mut gaps, mut places) = ([[0_u64; GAPS]; 2], [[0_u64; PLACES]; 2]);
        let mut near: [VecDeque<u64>; 2] = Default::default();
        let (mut last, mut contents) = (FxHashMap::default(), FxHashMap::default());
        let (mut count, mut waited, mut total, mut switches) = (0_u64, 0_u64, 0_u64, 0_u64);
        let (mut before, mut threads, mut zeros) = (None, 1, 0_u64);
        source.each(&mut |_, _| (), |record| {
            waited += u64::from(record.gap);
            let reads = record.op == Op::ReadMiss;
            if !reads && !record.op.is_write() {
                return Ok(());
            }
            let (kind, line) = (usize::from(!reads), record.line.0);
            count += 1;
            total += waited;
            switches += u64::from(before.is_some_and(|other| other != reads));
            before = Some(reads);
            threads = threads.max(record.thread.saturating_add(1));
            let bits = 64 - waited.leading_zeros() as usize;
            gaps[kind][bits.min(GAPS - 1)] += 1;
            waited = 0;
            let near = &mut near[kind];
            let place = match last.insert(line, count) {
                Some(then) => ((count - then).ilog2() as usize).min(DISTANCES - 1),
                None if near.iter().any(|other| other + 1 == line) => NEXT,
                None if near
                    .iter()
                    .any(|other| other / PAGE_LINES == line / PAGE_LINES) =>
                {
                    PAGE
                }
                None => PLACES - 1,
            };
            places[kind][place] += 1;
            if near.len() == NEAR {
                near.pop_front();
            }
            near.push_back(line);
            if let Some(data) = record.data.filter(|_| !reads) {
                let mut hasher = FxHasher::default();
                hasher.write(&data);
                *contents.entry(hasher.finish()).or_insert(0_u64) += 1;
                zeros += u64::from(data == ZERO_LINE);
            }
            Ok(())
        })?;
        let writes: u64 = contents.values().sum();
        let hot: Vec<u64> = contents.values().copied().filter(|n| *n > HOT).collect();
        let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
        let written = WrittenContents {
            requests: count,
            duplicate_rate: 1.0 - share(contents.len() as u64, writes),
            zero_share: share(zeros, writes),
            hot_share: share(hot.iter().sum(), writes),
            hot_contents: hot.len() as u32,
            threads,
        };
        let reads: u64 = gaps[0].iter().sum();
        let recorded = Recorded {
            name: "",
            read_share: share(reads, count),
            switches: share(switches, count),
            mean_gap: (total / count.max(1)) as u32,
            lines: last.len() as u64,
            gaps: gaps.map(|row| thousandths(&row)),
            places: places.map(|row| thousandths(&row)),
        };
        Ok((recorded, written))
    }

    /// Stretches the statistics over that many times the lines: each line comes back as many times later.
    #[must_use]
    pub fn scaled(mut self, times: u64) -> Recorded {
        let farther = times.max(1).ilog2() as usize;
        for row in &mut self.places {
            let near = *row;
            row[..DISTANCES].fill(0);
            for (bits, share) in near[..DISTANCES].iter().enumerate() {
                row[(bits + farther).min(DISTANCES - 1)] += share;
            }
        }
        self.lines *= times.max(1);
        self
    }
}

/// Turns counts into shares that add up to 1000. The largest share takes what rounding leaves.
fn thousandths<const N: usize>(counts: &[u64; N]) -> [u16; N] {
    let total: u64 = counts.iter().sum::<u64>().max(1);
    let mut shares = counts.map(|n| (n as f64 * 1000.0 / total as f64).round() as u16);
    let largest = (0..N).max_by_key(|at| counts[*at]).unwrap_or_default();
    let sum: u16 = shares.iter().sum();
    shares[largest] = (shares[largest] + 1000).saturating_sub(sum);
    shares
}

impl SampleRecording {
    pub(super) fn statistics(self) -> &'static Recorded {
        &RECORDED[self as usize]
    }

    /// The name of its file, without the suffix.
    pub fn name(self) -> &'static str {
        self.statistics().name
    }
}

#[rustfmt::skip]
const RECORDED: [Recorded; 6] = [
    Recorded {
        name: "cc1",
        read_share: 0.083,
        switches: 0.160,
        mean_gap: 1942,
        lines: 147764,
        gaps: [[114, 0, 27, 25, 288, 101, 36, 2, 1, 38, 43, 7, 43, 53, 65, 35, 41, 81], [87, 0, 0, 0, 881, 17, 2, 0, 0, 0, 0, 1, 0, 1, 1, 3, 3, 4]],
        places: [[0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 6, 7, 14, 23, 39, 47, 34, 2, 0, 0, 503, 120, 199], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 490, 367, 143]],
    },
    Recorded {
        name: "pmdk-tx",
        read_share: 0.534,
        switches: 0.114,
        mean_gap: 467,
        lines: 40285,
        gaps: [[101, 0, 0, 79, 29, 275, 190, 90, 24, 121, 40, 38, 13, 0, 0, 0, 0, 0], [109, 0, 0, 259, 30, 1, 31, 27, 298, 63, 2, 174, 6, 0, 0, 0, 0, 0]],
        places: [[102, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 660, 109, 129], [4, 0, 283, 90, 324, 0, 4, 0, 0, 0, 1, 1, 176, 4, 1, 0, 0, 0, 0, 0, 97, 4, 11]],
    },
    Recorded {
        name: "redis",
        read_share: 0.293,
        switches: 0.584,
        mean_gap: 435,
        lines: 251166,
        gaps: [[332, 0, 0, 0, 1, 43, 21, 46, 76, 47, 83, 174, 86, 64, 23, 4, 0, 0], [413, 0, 0, 0, 577, 1, 0, 0, 0, 0, 0, 1, 4, 3, 1, 0, 0, 0]],
        places: [[0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 31, 56, 98, 138, 112, 5, 0, 344, 2, 183], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 30, 4, 0, 130, 265, 571]],
    },
    Recorded {
        name: "sqlite3",
        read_share: 0.502,
        switches: 0.995,
        mean_gap: 1263,
        lines: 93444,
        gaps: [[18, 0, 4, 41, 0, 4, 9, 10, 6, 0, 231, 670, 7, 0, 0, 0, 0, 0], [1000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
        places: [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 501, 198, 7, 0, 0, 0, 12, 268, 13], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 48, 892, 60]],
    },
    Recorded {
        name: "stockfish",
        read_share: 0.167,
        switches: 0.312,
        mean_gap: 406,
        lines: 628153,
        gaps: [[497, 1, 1, 1, 415, 45, 11, 4, 8, 8, 8, 1, 0, 0, 0, 0, 0, 0], [187, 0, 0, 0, 799, 1, 0, 0, 0, 0, 11, 2, 0, 0, 0, 0, 0, 0]],
        places: [[0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 47, 1, 0, 1, 0, 0, 1, 754, 127, 1, 36, 8, 17], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 3, 168, 0, 809, 12, 5]],
    },
    Recorded {
        name: "x264",
        read_share: 0.539,
        switches: 0.415,
        mean_gap: 1561,
        lines: 117012,
        gaps: [[512, 0, 0, 2, 218, 41, 11, 15, 6, 6, 23, 50, 12, 19, 54, 19, 9, 3], [658, 0, 0, 14, 261, 19, 8, 31, 1, 0, 2, 5, 1, 0, 0, 0, 0, 0]],
        places: [[0, 0, 0, 0, 0, 0, 1, 2, 2, 3, 6, 3, 48, 59, 78, 58, 121, 0, 0, 0, 138, 408, 73], [104, 53, 13, 0, 0, 0, 0, 2, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 352, 370, 97]],
    },
];

#[derive(Clone, Debug)]
pub(super) struct Pattern {
    lines: u64,
    /// Ends of the ranges of a 63-bit draw in which the kind changes: to a write after a read, to a read after a write.
    turns: [u64; 2],
    gaps: [[u16; GAPS]; 2],
    places: [[u16; PLACES]; 2],
    /// The factor by which gaps of the table are scaled: numerator and denominator.
    scale: (u64, u64),
    reads: bool,
    /// The most recent lines, a ring.
    history: Vec<u64>,
    asked: usize,
    near: [[u64; NEAR]; 2],
    nearest: [usize; 2],
    page: [u64; 2],
}

impl Pattern {
    pub fn new(like: &Recorded, lines: u64, mean_gap: u32, read_share: f64) -> Pattern {
        let switches = like.switches.min(2.0 * read_share.min(1.0 - read_share));
        let turn = |share: f64| match share > 0.0 {
            true => threshold(switches / 2.0 / share),
            false => threshold(1.0),
        };
        let kinds = [read_share, 1.0 - read_share];
        let means = like.gaps.iter().zip(kinds).map(|(table, share)| {
            let gaps = table.iter().enumerate();
            let sum: f64 = gaps.map(|(bits, n)| f64::from(*n) * mean_of(bits)).sum();
            sum * share
        });
        let mean = (means.sum::<f64>() as u64).max(1); // of a thousand
        let lines = lines.next_multiple_of(PAGE_LINES);
        let half = lines / PAGE_LINES / 2;
        Pattern {
            lines,
            turns: kinds.map(turn),
            gaps: like.gaps,
            places: like.places,
            scale: (u64::from(mean_gap) * 1000, mean),
            reads: false,
            history: Vec::new(),
            asked: 0,
            near: [[0; NEAR], [half * PAGE_LINES; NEAR]],
            nearest: [0; 2],
            page: [0, half],
        }
    }

    pub fn next(&mut self, dice: &mut impl Rng) -> (bool, u32, u64) {
        let turned = dice.next_u64() >> 1 < self.turns[usize::from(!self.reads)];
        self.reads ^= turned;
        let kind = usize::from(!self.reads);
        let gap = gap(drawn(&self.gaps[kind], dice), dice) * self.scale.0 / self.scale.1;
        let near = self.near[kind][dice.random_range(0..NEAR)];
        let line = match drawn(&self.places[kind], dice) {
            NEXT => (near + 1) % self.lines,
            PAGE => near / PAGE_LINES * PAGE_LINES + dice.random_range(0..PAGE_LINES),
            bits => {
                let back = (bits < DISTANCES).then(|| dice.random_range(1 << bits..2usize << bits));
                match back.filter(|back| *back <= self.history.len()) {
                    Some(back) => self.history[(self.asked + HISTORY - back) % HISTORY],
                    None => {
                        self.page[kind] = (self.page[kind] + 1) % (self.lines / PAGE_LINES);
                        self.page[kind] * PAGE_LINES + dice.random_range(0..PAGE_LINES)
                    }
                }
            }
        };
        match self.history.len() {
            HISTORY => self.history[self.asked % HISTORY] = line,
            _ => self.history.push(line),
        }
        self.near[kind][self.nearest[kind]] = line;
        self.nearest[kind] = (self.nearest[kind] + 1) % NEAR;
        self.asked += 1;
        (self.reads, gap.min(u64::from(u32::MAX)) as u32, line)
    }
}

fn drawn(table: &[u16], dice: &mut impl Rng) -> usize {
    let mut draw = dice.random_range(0..1000u16);
    for (row, share) in table.iter().enumerate() {
        match draw.checked_sub(*share) {
            Some(rest) => draw = rest,
            None => return row,
        }
    }
    table.len() - 1
}

fn gap(bits: usize, dice: &mut impl Rng) -> u64 {
    match bits {
        0 => 0,
        _ => dice.random_range(1u64 << (bits - 1)..1 << bits),
    }
}

fn mean_of(bits: usize) -> f64 {
    match bits {
        0 => 0.0,
        _ => 1.5 * (1u64 << (bits - 1)) as f64 - 0.5,
    }
}

pub(super) fn threshold(p: f64) -> u64 {
    (p.clamp(0.0, 1.0) * (1u64 << 63) as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use std::collections::HashMap;

    /// Compares the shares of reads and of turns, the gaps, and the distances at which lines come back.
    #[test]
    fn requests_are_like_the_recording_s() {
        for recording in [
            SampleRecording::Cc1,
            SampleRecording::PmdkTx,
            SampleRecording::Sqlite3,
        ] {
            let like = recording.statistics();
            let (mean, read) = (like.mean_gap, like.read_share);
            let mut pattern = Pattern::new(like, 1 << 22, mean, read);
            let mut dice = ChaCha8Rng::seed_from_u64(1);
            let (mut reads, mut turns, mut gaps, mut before) = (0, 0, 0, false);
            let (mut last, mut back) = (HashMap::new(), 0);
            const ALL: u64 = 300_000;
            for at in 0..2 * ALL {
                let (is_read, gap, line) = pattern.next(&mut dice);
                assert!(line < 1 << 22);
                if at < ALL {
                    last.insert(line, at); // there must be requests to come back to
                    before = is_read;
                    continue;
                }
                reads += u64::from(is_read);
                turns += u64::from(is_read != before);
                before = is_read;
                gaps += u64::from(gap);
                let since = last.insert(line, at).map(|then| at - then);
                back +=
                    u64::from(!is_read && since.is_some_and(|n| (1 << 14..1 << 17).contains(&n)));
            }
            let near = |what: u64, stated: f64, within: f64| {
                let share = what as f64 / ALL as f64;
                assert!(
                    (share - stated).abs() < within,
                    "{recording:?}: {share} is not {stated}"
                );
            };
            near(reads, read, 0.01);
            near(turns, like.switches, 0.01);
            near(gaps, f64::from(mean), f64::from(mean) * 0.02);
            let far: u16 = like.places[1][14..17].iter().sum();
            near(back, f64::from(far) / 1000.0 * (1.0 - read), 0.06);
        }
    }
}
