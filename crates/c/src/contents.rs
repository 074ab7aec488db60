//! The contents of writes if a host gives no bytes: the line's last content, a random one, or the contents of a trace's
//! writes, so that deduplication still means something.

use std::collections::HashMap;

use sardonyx_base::random::{SplitMix64, mix};
use sardonyx_trace::Source;
use sardonyx_trace::line::Line;

use crate::problem::{Problem, problem};

/// At most this many lines are taken from a trace; then they come round again.
const MOST: usize = 1 << 22;

#[derive(Default)]
pub enum Drawn {
    /// The bytes that the host wrote there last, so the write changes nothing.
    #[default]
    Last,
    /// One of this many contents, drawn for each write.
    Pool {
        /// The number of contents; content 0 is zeros.
        size: u64,
        seed: u64,
        writes: HashMap<u64, u64>,
    },
    /// The contents of a trace's writes, one after the other.
    Trace { lines: Vec<Line>, next: usize },
}

impl Drawn {
    /// The contents that `last`, `drawn:NUMBER` or `trace:FILE` names.
    pub fn named(word: &str, seed: Option<u64>) -> Result<Drawn, Problem> {
        let (kind, of) = word.split_once(':').unwrap_or((word, ""));
        if kind != "drawn" && seed.is_some() {
            return problem("host.seed: nothing is drawn; give host.contents=drawn:NUMBER too");
        }
        match (kind, of.parse()) {
            ("last", _) if of.is_empty() => Ok(Drawn::Last),
            ("drawn", Ok(size @ 1..)) => Ok(Drawn::Pool {
                size,
                seed: seed.unwrap_or_default(),
                writes: HashMap::new(),
            }),
            ("trace", _) if !of.is_empty() => trace(of),
            _ => problem(format!(
                "host.contents={word}: give last, drawn:NUMBER (of contents, from 1 on) or trace:FILE"
            )),
        }
    }

    /// Whether each line is drawn as a whole, so that its last content does not matter.
    pub fn is_drawn(&self) -> bool {
        !matches!(self, Drawn::Last)
    }

    /// The content to write at line number `line`, whose last content was `last`.
    pub fn line(&mut self, line: u64, last: &Line) -> Line {
        match self {
            Drawn::Last => *last,
            Drawn::Pool { size, seed, writes } => {
                let count = writes.entry(line).or_default();
                *count += 1;
                content(mix(*seed ^ mix(line) ^ mix(!*count)) % *size)
            }
            Drawn::Trace { lines, next } => {
                let line = lines[*next];
                *next = (*next + 1) % lines.len();
                line
            }
        }
    }
}

fn content(number: u64) -> Line {
    let mut words = SplitMix64(mix(number));
    let mut line = [0; 64];
    if number > 0 {
        for word in line.as_chunks_mut::<8>().0 {
            *word = words.draw().to_le_bytes();
        }
    }
    line
}

fn trace(path: &str) -> Result<Drawn, Problem> {
    let mut source = Source::open(path)?;
    let (mut lines, mut batch) = (Vec::new(), Vec::new());
    while lines.len() < MOST && source.next_batch(&mut batch)? {
        let writes = batch.iter().filter(|record| record.op.is_write());
        lines.extend(writes.filter_map(|record| record.data));
    }
    lines.truncate(MOST);
    match lines.is_empty() {
        true => problem(format!("{path}: no writes in it; give another trace")),
        false => Ok(Drawn::Trace { lines, next: 0 }),
    }
}
