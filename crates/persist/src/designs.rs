//! The recording below a design: what of the pool could be read after a cut, if the program knows nothing of counters; and if its commit
//! stores were marked.
//!
//! A *commit store* is taken to be one that a fence waits for alone: the only line of its fence, with at most eight bytes changed. Marked, it is
//! written with its counter, and every other flush is followed by a write-back of its line of counters (SCA, HPCA 2018, Sec. IV).

use rustc_hash::FxHashSet;
use sardonyx::config::Machine;
use sardonyx::crash::{Platform, Readable, readable};
use sardonyx::line::{LINE_BYTES, Line, Virtual};
use sardonyx::machine::{Batch, OpKind, OpSource, RunError};
use sardonyx::units::Time;

use crate::PersistError;
use crate::recording::{Act, Recording};
use crate::state::{Course, Platform as Saved};

/// Operations handed over at a time.
const CHUNK: usize = 256;

/// The pool's part of a recording, as a core's operations.
struct Pool<'a> {
    recording: &'a Recording,
    next: usize,
    /// The row of the last operation.
    row: u64,
    /// Stores that are marked; none without marks.
    marked: Option<&'a FxHashSet<u32>>,
}

impl OpSource for Pool<'_> {
    fn name(&self) -> &str {
        &self.recording.program
    }

    fn pages(&self) -> u64 {
        self.recording.bytes.div_ceil(4096)
    }

    fn refill(&mut self, _: Time, batch: &mut Batch) -> Result<bool, RunError> {
        let events = &self.recording.events;
        let end = events.len().min(self.next + CHUNK);
        for (number, event) in events[self.next..end].iter().enumerate() {
            let number = (number + self.next) as u32;
            let line_of = |slot: u32| Virtual(u64::from(self.recording.lines[slot as usize].line));
            // A record of anything else is an instruction, at least.
            batch.compute((event.row - self.row).min(1 << 20) as u32);
            self.row = event.row;
            match event.act {
                Act::Store {
                    slot,
                    version,
                    past,
                } => {
                    let data = &self.recording.lines[slot as usize].versions[version as usize].data;
                    let bytes = batch.keep(data);
                    let atomic = self.marked.is_some_and(|marked| marked.contains(&number));
                    let kind = match (past, atomic) {
                        (true, _) => OpKind::NonTemporal { bytes },
                        (_, false) => OpKind::StoreLine { bytes },
                        (_, true) => OpKind::Store {
                            from: 0,
                            len: LINE_BYTES as u8,
                            atomic,
                            bytes,
                        },
                    };
                    batch.push(kind, line_of(slot));
                    if past && self.marked.is_some() {
                        batch.push(OpKind::CounterWriteBack, line_of(slot));
                    }
                }
                Act::Flush { slot, ordered } => {
                    let kind = if ordered {
                        OpKind::Flush
                    } else {
                        OpKind::WriteBack
                    };
                    batch.push(kind, line_of(slot));
                    if self.marked.is_some() {
                        batch.push(OpKind::CounterWriteBack, line_of(slot));
                    }
                    if ordered {
                        batch.push(OpKind::Fence, Virtual(0));
                    }
                }
                Act::Fence => batch.push(OpKind::Fence, Virtual(0)),
                Act::FlushClean | Act::Foreign => {}
            }
        }
        self.next = end;
        Ok(self.next < events.len())
    }
}

/// The events of commit stores.
fn commits(recording: &Recording, course: &Course) -> FxHashSet<u32> {
    let mut marked = FxHashSet::default();
    for pair in course.cuts.windows(2) {
        let rises = &course.rises[pair[0].rises as usize..pair[1].rises as usize];
        if let [rise] = rises {
            let versions = &recording.lines[rise.slot as usize].versions;
            let (old, new) = (
                &versions[rise.from as usize].data,
                &versions[rise.to as usize],
            );
            let differ = |i: &usize| old[*i] != new.data[*i];
            let first = (0..LINE_BYTES).find(differ).unwrap_or(0);
            let last = (0..LINE_BYTES).rev().find(differ).unwrap_or(0);
            if last - first < 8 {
                marked.insert(new.event);
            }
        }
    }
    marked
}

/// What a design shows, without marks and with them, and how many stores the marks are.
pub struct Shown {
    /// As the program is.
    pub plain: Readable,
    /// With its commit stores marked.
    pub marked: Readable,
    /// Stores that were marked.
    pub marks: u64,
}

/// Runs the pool's part of a recording on a design, from event `start` on, and cuts it `cuts` times.
///
/// # Errors
/// There is no such design, or it has no room.
pub fn below(
    recording: &Recording,
    machine: &Machine,
    design: &str,
    start: usize,
    cuts: u64,
) -> Result<Shown, PersistError> {
    let course = Course::of(recording, Saved::Adr);
    let commits = commits(recording, &course);
    let mut first = vec![0; recording.lines.len()];
    for event in &recording.events[..start] {
        if let Act::Store { slot, version, .. } = event.act {
            first[slot as usize] = version;
        }
    }
    let mut initial: Vec<(u64, Line)> = (recording.lines.iter().zip(&first))
        .map(|(slot, &version)| (u64::from(slot.line), slot.versions[version as usize].data))
        .collect();
    initial.sort_unstable_by_key(|(line, _)| *line);
    let slots: rustc_hash::FxHashMap<u64, u32> = (recording.lines.iter().enumerate())
        .map(|(slot, line)| (u64::from(line.line), slot as u32))
        .collect();
    let known = |line: u64, data: &Line| {
        let versions = &recording.lines[slots[&line] as usize].versions;
        versions.iter().any(|version| version.data == *data)
    };
    let run = |marked: Option<&FxHashSet<u32>>| {
        let source = Pool {
            recording,
            next: start,
            row: recording.events.get(start).map_or(0, |event| event.row),
            marked,
        };
        readable(
            (machine, design),
            &initial,
            Box::new(source),
            &known,
            (Platform::Adr, cuts, 1),
        )
        .map_err(|e| PersistError::new(format!("--designs {design}: {e}")))
    };
    Ok(Shown {
        plain: run(None)?,
        marked: run(Some(&commits))?,
        marks: commits
            .iter()
            .filter(|&&event| event as usize >= start)
            .count() as u64,
    })
}
