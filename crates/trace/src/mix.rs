//! Several programs' traces as one, as if each had run on a core of its own at the same pace.
//!
//! Records come in the order of their programs' instruction counts; equal counts in the order in which the programs were
//! named. Each program keeps its own address space: program k's addresses go up by k times 2^50 lines. Files that
//! several programs mapped stay one file, since their lines are memory that the programs share.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::{GapUnit, Op, Provenance, Record, Source, TraceError, TraceWriter};
use crate::line::Virtual;

const SPACE_LOG2: u32 = 50;
const MOST: usize = 1 << (57 - SPACE_LOG2);
/// Lines of files begin here, as the recorder numbers them.
pub const FILES: u64 = 1 << 57;
const FILE_LOG2: u32 = 38;

const MOST_GAP: u64 = u32::MAX as u64;

struct MixedTrace {
    source: Source,
    batch: Vec<Record>,
    at: usize,
    due: u64,
    threads: BTreeMap<u16, u16>,
    files: BTreeMap<u64, u64>,
}

impl MixedTrace {
    fn next(&self) -> Option<&Record> {
        self.batch.get(self.at)
    }

    fn advance(&mut self) -> Result<bool, TraceError> {
        self.at += 1;
        if self.at >= self.batch.len() {
            self.at = 0;
            if !self.source.next_batch(&mut self.batch)? {
                self.batch.clear();
                return Ok(false);
            }
        }
        self.due += u64::from(self.batch[self.at].gap);
        Ok(true)
    }

    fn line(&self, which: usize, line: Virtual) -> Result<Virtual, TraceError> {
        let line = line.0;
        if line < 1 << SPACE_LOG2 {
            return Ok(Virtual(line | (which as u64) << SPACE_LOG2));
        }
        let first = line & !((1 << FILE_LOG2) - 1);
        match self.files.get(&first) {
            Some(mixed) => Ok(Virtual(mixed + (line - first))),
            None => Err(TraceError::file(
                Path::new(self.source.name()),
                format!(
                    "line {line} is neither below 2^{SPACE_LOG2} nor of a file that the trace names; it cannot be mixed"
                ),
            )),
        }
    }
}

/// Mixes the traces `from` into the trace `to`; returns the number of records. `progress` is told the records done and
/// in all.
///
/// # Errors
/// As reading and writing; traces of different levels, of cycles, too many of them, or with lines that leave no room.
pub fn mix(
    from: &[impl AsRef<Path>],
    to: impl AsRef<Path>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<u64, TraceError> {
    let to = to.as_ref();
    if !(2..=MOST).contains(&from.len()) {
        let problem = format!("{} traces cannot be mixed; name 2 to {MOST}", from.len());
        return Err(TraceError::file(to, problem));
    }
    let mut files = MixedFiles::default();
    let mut programs = Vec::new();
    let mut notes = Vec::new();
    for path in from {
        let path = path.as_ref();
        let source = Source::open(path)?;
        let provenance = source.provenance();
        if provenance.gap_unit != GapUnit::Instructions {
            let problem = "counts cycles, and only instructions can be mixed; leave it out";
            return Err(TraceError::file(path, problem));
        }
        notes.push((provenance.clone(), path.to_owned()));
        programs.push(MixedTrace {
            files: files.mixed_lines(programs.len(), &provenance),
            source,
            batch: Vec::new(),
            at: 0,
            due: 0,
            threads: BTreeMap::new(),
        });
    }
    let level = notes[0].0.level;
    if let Some((_, path)) = notes.iter().find(|(p, _)| p.level != level) {
        let problem = "is not of the level of the first; mix traces of one level";
        return Err(TraceError::file(path, problem));
    }
    let mut writer = TraceWriter::create(to, provenance(&notes, files.shown))?;
    let total = programs.iter().map(|p| p.source.total()).sum();
    let mut pour = Pour::default();
    for program in &mut programs {
        pour.running += u64::from(program.advance()?);
    }
    while let Some(which) = (0..programs.len())
        .filter(|&k| programs[k].next().is_some())
        .min_by_key(|&k| programs[k].due)
    {
        let record = pour.take(which, &mut programs[which])?;
        if pour.gap > MOST_GAP {
            for _ in 0..pour.gap / MOST_GAP {
                writer.push(&Record::carry(0))?;
            }
            pour.gap %= MOST_GAP;
        }
        writer.push(&Record {
            gap: pour.gap as u32,
            ..record
        })?;
        pour.gap = 0;
        pour.done += 1;
        if pour.done.is_multiple_of(super::BATCH as u64) {
            progress(pour.done, total);
        }
        if !programs[which].advance()? {
            pour.running -= 1;
        }
    }
    writer.finish()
}

fn provenance(notes: &[(Provenance, std::path::PathBuf)], files: Vec<Value>) -> Provenance {
    let names: Vec<_> = notes.iter().map(|(p, _)| p.program.as_str()).collect();
    let mut mixed = Provenance {
        program: names.join("+"),
        description: "several programs, each on a core of its own at the same pace".to_owned(),
        level: notes[0].0.level,
        ..Provenance::default()
    };
    let parts: Vec<Value> = notes.iter().map(|(p, _)| json!(p)).collect();
    mixed.more.insert("mixed".into(), parts.into());
    if !files.is_empty() {
        mixed.more.insert("files".into(), files.into());
    }
    mixed
}

#[derive(Default)]
struct Pour {
    threads: u16,
    now: u64,
    running: u64,
    gap: u64,
    done: u64,
}

impl Pour {
    /// Takes the next record of a program and translates it for the mixed trace, all but its gap.
    fn take(&mut self, which: usize, program: &mut MixedTrace) -> Result<Record, TraceError> {
        let mut record = *program.next().expect("it was chosen for its next record");
        self.gap += (program.due - self.now) * self.running;
        self.now = program.due;
        let next = self.threads;
        record.thread = *program.threads.entry(record.thread).or_insert_with(|| {
            self.threads = self.threads.saturating_add(1);
            next
        });
        if record.op == Op::Fence {
            return Ok(record);
        }
        record.line = program.line(which, record.line)?;
        if let (Op::Changed, Some(data)) = (record.op, &mut record.data) {
            let from = u64::from_le_bytes(data[8..16].try_into().expect("8 bytes"));
            if let Some(from) = from.checked_sub(1) {
                let from = program.line(which, Virtual(from))?.0 + 1;
                data[8..16].copy_from_slice(&from.to_le_bytes());
            }
        }
        Ok(record)
    }
}

/// Files of all programs. Equal paths are one file.
#[derive(Default)]
struct MixedFiles {
    by_path: BTreeMap<String, u64>,
    shown: Vec<Value>,
}

impl MixedFiles {
    fn mixed_lines(&mut self, which: usize, provenance: &Provenance) -> BTreeMap<u64, u64> {
        let listed = provenance.more.get("files").and_then(Value::as_array);
        let mut lines = BTreeMap::new();
        for file in listed.into_iter().flatten() {
            let Some(first) = file["first_line"].as_u64() else {
                continue;
            };
            let path = match file["path"].as_str() {
                Some(path) => path.to_owned(),
                None => format!("{which}:{first}"),
            };
            let next = FILES + ((self.by_path.len() as u64) << FILE_LOG2);
            let mixed = *self.by_path.entry(path).or_insert(next);
            if mixed == next {
                let mut shown = file.clone();
                shown["first_line"] = mixed.into();
                self.shown.push(shown);
            }
            lines.insert(first, mixed);
        }
        lines
    }
}
