//! Seeded generators of traces with stated statistics, for what no recording here can show.
//!
//! Contents written more than once are drawn as in ESD Fig. 3: a few *hot* contents all along, and
//! working sets of contents that retire after 2-1000 writes. Contents are random bytes, so fingerprints
//! collide only by chance. Only integer and basic IEEE arithmetic: same seed, same bytes, any machine.

use std::collections::VecDeque;
use std::path::Path;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sardonyx_base::random::splitmix64;
use serde::{Deserialize, Serialize};

use super::recorded::{Pattern, Recorded, SampleRecording, threshold};
use super::{Op, Provenance, Record, Source, TraceError, TraceWriter};
use crate::line::{Line, Virtual, ZERO_LINE};

/// The choice of lines from the footprint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Addresses {
    /// One after the other, again and again.
    Sequential,
    /// Uniformly.
    Random,
    /// Nine in ten from the first tenth of the footprint.
    #[default]
    HotCold,
    /// The requests of a recording: addresses, reads and writes, and gaps.
    Like(SampleRecording),
}

/// A synthetic trace, stated by its statistics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Spec {
    /// The name in reports.
    pub name: String,
    /// Records; shares hold for the whole.
    pub records: u64,
    /// Share of writes whose content was written before.
    pub duplicate_rate: f64,
    /// Share of writes of 64 zero bytes; they are one of the hot contents.
    pub zero_share: f64,
    /// Share of writes of hot contents.
    pub hot_share: f64,
    /// Number of hot contents. Each is written more than 1000 times if there are records enough.
    pub hot_contents: u32,
    /// Lines in the address space, numbered from 2^30.
    pub footprint_lines: u64,
    /// Share of records that are reads; unless they are like a recording's, nineteen in twenty of them ask
    /// for one of the last 65,536 lines written, the others for any line.
    pub read_share: f64,
    /// Mean instructions between records; unless they are like a recording's, each gap is uniform from 0
    /// to twice as much.
    pub mean_gap: u32,
    /// Threads, each as likely as the next.
    pub threads: u16,
    /// The choice of lines to write.
    pub addresses: Addresses,
}

impl Default for Spec {
    /// ESD's mean application (Sec. II-A), half a million records of it.
    fn default() -> Spec {
        Spec {
            name: "synthetic".to_owned(),
            records: 500_000,
            duplicate_rate: 0.629,
            zero_share: 0.1,
            hot_share: 0.427,
            hot_contents: 80,
            footprint_lines: 1 << 17,
            read_share: 0.4,
            mean_gap: 300,
            threads: 4,
            addresses: Addresses::HotCold,
        }
    }
}

/// The working sets: the fewest and the most writes of a content, the number of contents alive at once, and each set's
/// share of the writes that are neither hot nor of a content written once (all *assumed*).
const SETS: [(u32, u32, usize, f64); 3] =
    [(2, 10, 64, 0.60), (11, 100, 16, 0.25), (101, 1000, 4, 0.15)];

/// The mean number of distinct contents that a write of a working set adds.
fn fresh_of_sets() -> f64 {
    let of =
        |(least, most, _, weight): &(u32, u32, usize, f64)| weight * 2.0 / f64::from(least + most);
    SETS.iter().map(of).sum()
}

const RECENT: usize = 65_536;
const FIRST_LINE: u64 = 1 << 30;

impl Spec {
    /// The share of writes whose content appears once, computed so that the duplicate rate comes out.
    fn once_share(&self) -> Result<f64, TraceError> {
        let fail = |problem: String| {
            Err(TraceError::Spec {
                name: self.name.clone(),
                problem,
            })
        };
        let shares = [
            ("duplicate_rate", self.duplicate_rate),
            ("zero_share", self.zero_share),
            ("hot_share", self.hot_share),
            ("read_share", self.read_share),
        ];
        if let Some((key, value)) = shares.into_iter().find(|(_, v)| !(0.0..=1.0).contains(v)) {
            return fail(format!("{key} = {value} is not in 0-1"));
        }
        if self.records == 0 || self.footprint_lines == 0 || self.threads == 0 {
            return fail("records, footprint_lines and threads must be at least 1".to_owned());
        }
        if self.footprint_lines > 1 << 40 || self.mean_gap > u32::MAX / 2 {
            return fail("at most 2^40 footprint_lines and a mean_gap below 2^31".to_owned());
        }
        if self.hot_share > 0.0 && self.hot_contents == 0 {
            return fail("hot_share needs at least one of hot_contents".to_owned());
        }
        if self.zero_share > self.hot_share
            || (self.hot_contents == 1 && ![0.0, self.hot_share].contains(&self.zero_share))
        {
            return fail(format!(
                "zeros are a hot content: zero_share may be 0 to hot_share = {}, and with a single \
                 hot content one of the two",
                self.hot_share
            ));
        }
        // Of the writes that are not hot, `sets` repeat and the rest appear once. A repeating set
        // yields `fresh` distinct contents per write: once + fresh * sets = distinct.
        let rest = 1.0 - self.hot_share;
        let fresh = fresh_of_sets();
        let distinct = 1.0 - self.duplicate_rate;
        let sets = (rest - distinct) / (1.0 - fresh);
        if sets < -1e-9 || sets > rest + 1e-9 {
            return fail(format!(
                "with hot_share = {} the duplicate_rate can be {:.4} to {:.4}, not {}",
                self.hot_share,
                self.hot_share,
                1.0 - fresh * rest,
                self.duplicate_rate
            ));
        }
        Ok((rest - sets).clamp(0.0, 1.0))
    }
}

/// A stream of records that follows a [`Spec`].
#[derive(Clone, Debug)]
pub struct Synth {
    spec: Spec,
    seed: u64,
    dice: ChaCha8Rng,
    /// The number of the next content that was never written before.
    fresh: u64,
    thresholds: Thresholds,
    sets: [Vec<(u64, u32)>; SETS.len()],
    recent: VecDeque<u64>,
    cursor: u64,
    pattern: Option<Pattern>,
    left: u64,
}

/// Ends of the ranges of the draw that decides what a write carries.
#[derive(Clone, Debug)]
struct Thresholds {
    zero: u64,
    hot: u64,
    once: u64,
    sets: [u64; SETS.len()],
    read: u64,
}

impl Synth {
    /// A generator; the same specification and seed give the same records.
    ///
    /// # Errors
    /// As [`Spec::validate`].
    pub fn new(spec: Spec, seed: u64) -> Result<Synth, TraceError> {
        let once = spec.once_share()?;
        let repeating = 1.0 - spec.hot_share - once;
        let mut end = spec.hot_share + once;
        let sets = SETS.map(|(_, _, _, weight)| {
            end += weight * repeating;
            threshold(end)
        });
        let thresholds = Thresholds {
            zero: threshold(spec.zero_share),
            hot: threshold(spec.hot_share),
            once: threshold(spec.hot_share + once),
            sets,
            read: threshold(spec.read_share),
        };
        Ok(Synth {
            seed,
            dice: ChaCha8Rng::seed_from_u64(seed),
            // Content 0 is all zeros, and the hot ones come next.
            fresh: u64::from(spec.hot_contents) + 1,
            thresholds,
            sets: Default::default(),
            recent: VecDeque::new(),
            cursor: 0,
            pattern: match spec.addresses {
                Addresses::Like(recording) => Some(Pattern::new(
                    recording.statistics(),
                    spec.footprint_lines,
                    spec.mean_gap,
                    spec.read_share,
                )),
                _ => None,
            },
            left: spec.records,
            spec,
        })
    }

    /// A generator of requests and contents that are like those of a trace, over `times` as many lines, each of which
    /// comes back so many times as late; as many records as the trace has requests, or `records`.
    ///
    /// # Errors
    /// As [`Source::next_batch`].
    pub fn like(
        mut trace: Source,
        times: u64,
        records: Option<u64>,
        seed: u64,
    ) -> Result<Synth, TraceError> {
        let name = format!("like-{}-x{times}", trace.name());
        let (recorded, written) = Recorded::measure(&mut trace)?;
        let recorded = recorded.scaled(times);
        // What of the duplicates the working sets cannot give is of hot contents.
        let most = 1.0 - fresh_of_sets();
        let hot = written.hot_share.max(written.zero_share);
        let hot = hot
            .max(1.0 - (1.0 - written.duplicate_rate) / (1.0 - most))
            .clamp(0.0, 1.0);
        let duplicate_rate = written
            .duplicate_rate
            .clamp(hot, 1.0 - (1.0 - most) * (1.0 - hot));
        let spec = Spec {
            name,
            records: records.unwrap_or(written.requests).max(1),
            duplicate_rate,
            zero_share: written.zero_share.min(hot),
            hot_share: hot,
            hot_contents: written.hot_contents.max(if hot > 0.0 { 2 } else { 0 }),
            footprint_lines: recorded.lines.max(1),
            read_share: recorded.read_share,
            mean_gap: recorded.mean_gap,
            threads: written.threads,
            addresses: Addresses::Random,
        };
        let pattern = Pattern::new(
            &recorded,
            spec.footprint_lines,
            spec.mean_gap,
            spec.read_share,
        );
        Ok(Synth {
            pattern: Some(pattern),
            ..Synth::new(spec, seed)?
        })
    }

    /// The specification that it follows.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The provenance of these records: the generator, its specification and its seed.
    pub fn provenance(&self) -> Provenance {
        let mut provenance = Provenance {
            program: self.spec.name.clone(),
            description: "synthetic".to_owned(),
            ..Provenance::default()
        };
        let mut spec = serde_json::to_value(&self.spec).expect("a specification is plain data");
        if self.pattern.is_some() && self.spec.addresses == Addresses::Random {
            spec["addresses"] = "as measured".into();
        }
        provenance.more.insert("synthetic".to_owned(), spec);
        provenance.more.insert("seed".to_owned(), self.seed.into());
        provenance
    }

    fn pick_content(&mut self) -> u64 {
        let draw = self.dice.next_u64() >> 1;
        let t = &self.thresholds;
        if draw < t.zero {
            return 0;
        }
        if draw < t.hot {
            // With zeros among them there is one hot content fewer to choose.
            let others = u64::from(self.spec.hot_contents) - u64::from(t.zero > 0);
            return 1 + self.dice.random_range(0..others.max(1));
        }
        if draw < t.once {
            return self.new_content();
        }
        let set = t.sets.iter().position(|&end| draw < end);
        self.pick_from(set.unwrap_or(SETS.len() - 1))
    }

    fn new_content(&mut self) -> u64 {
        self.fresh += 1;
        self.fresh - 1
    }

    /// Writes a content alive in a working set once more; the content retires when it has had its number of writes.
    fn pick_from(&mut self, set: usize) -> u64 {
        let (least, most, alive, _) = SETS[set];
        if self.sets[set].len() < alive {
            let content = self.new_content();
            let writes = self.dice.random_range(least..=most);
            self.sets[set].push((content, writes - 1));
            return content;
        }
        let i = self.dice.random_range(0..alive);
        let (content, left) = &mut self.sets[set][i];
        let content = *content;
        *left -= 1;
        if *left == 0 {
            self.sets[set].swap_remove(i);
        }
        content
    }

    fn pick_line(&mut self) -> u64 {
        let lines = self.spec.footprint_lines;
        let line = match self.spec.addresses {
            Addresses::Sequential => {
                self.cursor += 1;
                (self.cursor - 1) % lines
            }
            Addresses::Random => self.dice.random_range(0..lines),
            Addresses::HotCold if self.dice.random_range(0..10) == 0 => {
                self.dice.random_range(0..lines)
            }
            Addresses::HotCold => self.dice.random_range(0..lines.div_ceil(10)),
            Addresses::Like(_) => unreachable!("the pattern chooses"),
        };
        FIRST_LINE + line
    }

    fn read_line(&mut self) -> u64 {
        if self.recent.is_empty() || self.dice.random_range(0..20) == 0 {
            return FIRST_LINE + self.dice.random_range(0..self.spec.footprint_lines);
        }
        self.recent[self.dice.random_range(0..self.recent.len())]
    }
}

impl Iterator for Synth {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        self.left = self.left.checked_sub(1)?;
        if let Some(pattern) = &mut self.pattern {
            let (read, gap, line) = pattern.next(&mut self.dice);
            let thread = self.dice.random_range(0..self.spec.threads);
            let (op, data) = match read {
                true => (Op::ReadMiss, None),
                false => {
                    let content = self.pick_content();
                    (Op::DirtyEviction, Some(content_bytes(self.seed, content)))
                }
            };
            return Some(Record {
                gap,
                thread,
                op,
                line: Virtual(FIRST_LINE + line),
                data,
            });
        }
        let gap = self.dice.random_range(0..=2 * self.spec.mean_gap);
        let thread = self.dice.random_range(0..self.spec.threads);
        let (op, line, data) = if self.dice.next_u64() >> 1 < self.thresholds.read {
            (Op::ReadMiss, self.read_line(), None)
        } else {
            let content = self.pick_content();
            let line = self.pick_line();
            if self.recent.len() == RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(line);
            let data = content_bytes(self.seed, content);
            (Op::DirtyEviction, line, Some(data))
        };
        Some(Record {
            gap,
            thread,
            op,
            line: Virtual(line),
            data,
        })
    }
}

/// Writes a synthetic trace to a file.
///
/// # Errors
/// As [`Synth::new`] and [`TraceWriter`].
pub fn synth_to_file(
    spec: Spec,
    seed: u64,
    path: impl AsRef<Path>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<u64, TraceError> {
    let mut source = Source::from(Synth::new(spec, seed)?);
    let mut writer = TraceWriter::create(path, source.provenance())?;
    source.each(progress, |record| writer.push(record))?;
    writer.finish()
}

/// The bytes of content number `content` under `seed`: zeros for 0, else 64 bytes that no other number has.
pub(super) fn content_bytes(seed: u64, content: u64) -> Line {
    let mut line = ZERO_LINE;
    if content > 0 {
        // The first word is a bijection of the number: two contents differ in it.
        let mut word = splitmix64(content ^ splitmix64(seed));
        for bytes in line.as_chunks_mut::<8>().0 {
            *bytes = word.to_le_bytes();
            word = splitmix64(word);
        }
    }
    line
}
