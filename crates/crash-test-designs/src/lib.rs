//! The recording below a design: how much of the pool could be read after a cut if the program knows nothing of
//! counters, and if its commit stores were marked.
//!
//! A *commit store* is assumed to be one that has a fence to itself: the only line of its fence, with at most eight
//! bytes changed. A marked one is written with its counter, and every other flush is followed by a write-back of its
//! line of counters (SCA, HPCA 2018, Sec. IV).

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustc_hash::FxHashSet;
use sardonyx::config::Machine;
use sardonyx::line::{LINE_BYTES, Line, Virtual};
use sardonyx::machine::{Batch, OpKind, OpSource, RunError};
use sardonyx::units::Time;
use sardonyx_crash::{Platform, Readable, readable};

use tempfile::TempDir;

use sardonyx_crash_test::CrashTestError;
use sardonyx_crash_test::images::copy::fill;
use sardonyx_crash_test::images::{copy, grounds};
use sardonyx_crash_test::recording::persistence::Course;
use sardonyx_crash_test::recording::platform::Platform as Saved;
use sardonyx_crash_test::recording::{Act, LINE, Recording};
use sardonyx_crash_test::recovery::{Recovery, RecoveryFiles};

const CHUNK: usize = 256;
const PAGE_LINES: u64 = 4096 / LINE as u64;

/// The pool's part of a recording, as a core's operations.
struct PoolCore<'a> {
    recording: &'a Recording,
    /// The first page of each file, with the files one after the other.
    pages: &'a [u64],
    next: usize,
    row: u64,
    /// The marked stores; `None` without marks.
    marked: Option<&'a FxHashSet<u32>>,
}

impl OpSource for PoolCore<'_> {
    fn name(&self) -> &str {
        &self.recording.program
    }

    fn pages(&self) -> u64 {
        self.pages[self.recording.pools.len()]
    }

    fn refill(&mut self, _: Time, batch: &mut Batch) -> Result<bool, RunError> {
        let all = self.recording.events.len();
        let end = all.min(self.next + CHUNK);
        for number in self.next as u32..end as u32 {
            let event = self.recording.event(number);
            let line_of = |slot: u32| {
                let slot = &self.recording.lines[slot as usize];
                Virtual(self.recording.line_of_all(slot, self.pages))
            };
            // Any other record stands for at least one instruction.
            batch.compute((event.row - self.row).min(1 << 20) as u32);
            self.row = event.row;
            match event.act {
                Act::Store {
                    slot,
                    version,
                    past,
                } => {
                    let data = self.recording.lines[slot as usize].versions.data(version);
                    let bytes = batch.keep(&data);
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
        Ok(self.next < all)
    }
}

fn commits(recording: &Recording, course: &Course) -> FxHashSet<u32> {
    let mut marked = FxHashSet::default();
    for pair in course.cuts.windows(2) {
        let rises = &course.rises[pair[0].rises as usize..pair[1].rises as usize];
        if let [rise] = rises {
            let versions = &recording.lines[rise.slot as usize].versions;
            let (old, new) = (versions.data(rise.from), versions.data(rise.to));
            let differ = |i: &usize| old[*i] != new[*i];
            let first = (0..LINE_BYTES).find(differ).unwrap_or(0);
            let last = (0..LINE_BYTES).rev().find(differ).unwrap_or(0);
            if last - first < 8 {
                marked.insert(versions.event(rise.to));
            }
        }
    }
    marked
}

/// Lines that a design's memory leaves readable after the cuts of a run, and the number of marked stores.
pub struct Shown {
    pub plain: Readable,
    pub marked: Readable,
    pub marks: u64,
    /// Without marks and with them: the cuts after which the recovery was run, and those at which it coped.
    pub recovered: Option<[(u64, u64); 2]>,
}

/// Runs the program's recovery on the pool as its lines read after a cut; an unreadable line holds the noise that it
/// decrypts to.
///
/// It is unknown which moment of the recording a cut of the machine is, so nothing counts as acknowledged.
pub struct OnReads<'a> {
    recovery: &'a Recovery,
    recording: &'a Recording,
    folder: TempDir,
    grounds: Vec<File>,
    every: u64,
}

impl<'a> OnReads<'a> {
    pub fn new(
        recovery: &'a Recovery,
        recording: &'a Recording,
        every: u64,
    ) -> Result<OnReads<'a>, CrashTestError> {
        let folder = grounds::scratch()?;
        let grounds = grounds::grounds(recording, folder.path())?;
        let acks = folder.path().join("acks");
        File::create(&acks).map_err(CrashTestError::io(acks.display()))?;
        Ok(OnReads {
            recovery,
            recording,
            grounds,
            folder,
            every,
        })
    }

    fn copes(&self, lines: &[(u64, Line)]) -> Result<bool, CrashTestError> {
        let place = self.folder.path().join("pool");
        if place.exists() {
            std::fs::remove_dir_all(&place).map_err(CrashTestError::io(place.display()))?;
        }
        let paths = copy::paths(self.recording, &place)?;
        let pages = self.recording.pages();
        for (number, (path, ground)) in paths.iter().zip(&self.grounds).enumerate() {
            let own = (lines.iter()).filter(|(line, _)| {
                pages.partition_point(|&page| page * PAGE_LINES <= *line) == number + 1
            });
            let make = || -> std::io::Result<()> {
                let file = File::create(path)?;
                fill(ground, &file)?;
                for (line, data) in own {
                    file.write_all_at(data, (line - pages[number] * PAGE_LINES) * LINE as u64)?;
                }
                file.set_len(self.recording.pools[number].bytes)
            };
            make().map_err(CrashTestError::io(path.display()))?;
        }
        let (acks, output) = (
            self.folder.path().join("acks"),
            self.folder.path().join("output"),
        );
        let given = RecoveryFiles {
            pools: &paths,
            folder: &place,
            acks: &acks,
        };
        let ended = (self.recovery).run(given, &output, self.recovery.time)?;
        Ok(!self.recovery.fails(ended))
    }
}

#[derive(Default)]
struct Recovered {
    cuts: u64,
    tried: u64,
    coped: u64,
    problem: Option<CrashTestError>,
}

impl Recovered {
    fn cut(&mut self, lines: &[(u64, Line)], runner: &OnReads<'_>) {
        self.cuts += 1;
        if self.cuts.is_multiple_of(runner.every) && self.problem.is_none() {
            self.tried += 1;
            match runner.copes(lines) {
                Ok(copes) => self.coped += u64::from(copes),
                Err(e) => self.problem = Some(e),
            }
        }
    }
}

/// The contents of all stored lines before event `start`, in order.
fn lines_before(recording: &Recording, start: usize, pages: &[u64]) -> Vec<(u64, Line)> {
    let mut first = vec![0; recording.lines.len()];
    for event in recording.walk().take(start) {
        if let Act::Store { slot, version, .. } = event.act {
            first[slot as usize] = version;
        }
    }
    let mut lines: Vec<(u64, Line)> = (recording.lines.iter().zip(&first))
        .map(|(slot, &version)| {
            let line = recording.line_of_all(slot, pages);
            (line, slot.versions.data(version))
        })
        .collect();
    lines.sort_unstable_by_key(|(line, _)| *line);
    lines
}

/// Runs the pool's part of a recording on a design, from event `start` on, and cuts it `cuts` times; `runner` runs
/// recoveries on what some of the cuts leave.
///
/// # Errors
/// There is no such design, or it has no room.
pub fn below(
    recording: &Recording,
    machine: &Machine,
    design: &str,
    start: usize,
    cuts: u64,
    runner: Option<&OnReads<'_>>,
) -> Result<Shown, CrashTestError> {
    let course = Course::from_recording(recording, Saved::Adr);
    let commits = commits(recording, &course);
    let pages = recording.pages();
    let initial = lines_before(recording, start, &pages);
    let slots: rustc_hash::FxHashMap<u64, u32> = (recording.lines.iter().enumerate())
        .map(|(slot, line)| (recording.line_of_all(line, &pages), slot as u32))
        .collect();
    let stored = |(line, data): &(u64, Line)| {
        let versions = &recording.lines[slots[line] as usize].versions;
        (0..versions.count()).any(|version| versions.data(version) == *data)
    };
    let run = |marked: Option<&FxHashSet<u32>>| {
        let source = PoolCore {
            recording,
            pages: &pages,
            next: start,
            row: recording.row(start as u32),
            marked,
        };
        let mut recovered = Recovered::default();
        let mut unreadable = |lines: &[(u64, Line)]| {
            if let Some(runner) = runner {
                recovered.cut(lines, runner);
            }
            lines.iter().filter(|line| !stored(line)).count() as u64
        };
        let shown = readable(
            (machine, design),
            &initial,
            Box::new(source),
            &mut unreadable,
            (Platform::Adr, cuts, 1),
        )
        .map_err(|e| CrashTestError::new(format!("--designs {design}: {e}")))?;
        match recovered.problem {
            Some(problem) => Err(problem),
            None => Ok((shown, (recovered.tried, recovered.coped))),
        }
    };
    let (plain, first) = run(None)?;
    let (marked, second) = run(Some(&commits))?;
    Ok(Shown {
        plain,
        marked,
        recovered: runner.is_some().then_some([first, second]),
        marks: commits
            .iter()
            .filter(|&&event| event as usize >= start)
            .count() as u64,
    })
}
