//! The threads of a recording, each with a core of its own in one address space. One reader takes the records in their
//! order and hands each thread its accesses, as far as they must be known.
//!
//! Accesses to a line are issued in the recorded order; accesses to different lines are not ordered between threads. A
//! record's gap counts instructions of all threads, and is given to the thread of the record.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};

use super::accesses::{OwnContents, direction};
use super::{Access, Copies, Stream};
use crate::line::Virtual;
use crate::machine::error::{RunError, TraceUse};
use crate::machine::page_table::{OutOfMemory, PAGE_LINES, PageFrames};
use crate::trace::{GapUnit, Level, Record, Source, TraceError};

/// The most accesses that have been read and not issued. A thread whose next access is further on waits.
pub const HELD: usize = 1 << 16;
/// The most cores that play threads.
const MOST_CORES: usize = 1024;

/// The threads of a recording that ask memory for something.
#[derive(Default)]
pub struct Threads {
    /// The place in `works` of each thread of the recording.
    places: FxHashMap<u16, usize>,
    works: Vec<Work>,
    /// Pages in the order in which the recording touches them.
    pages: Vec<u64>,
}

/// Totals of a thread.
#[derive(Clone, Copy, Default)]
struct Work {
    thread: u16,
    accesses: u64,
    gap: u64,
    skipped: u64,
}

impl Threads {
    /// Reads `source` to its end and notes its threads. Instructions of threads without an access are given to the first
    /// one that has some.
    ///
    /// # Errors
    /// The trace is broken, was taken at the core, or counts cycles.
    pub fn of(mut source: Source) -> Result<Threads, RunError> {
        let provenance = source.provenance();
        let problem = match (provenance.level, provenance.gap_unit) {
            (Level::Cpu, _) => "was taken at the core, where one core plays all threads",
            (_, GapUnit::Cycles) => "counts cycles, which its threads spend together",
            _ => "",
        };
        if !problem.is_empty() {
            let (trace, problem) = (source.name().to_owned(), problem.to_owned());
            let remedy = "leave --threads out";
            return Err(TraceUse {
                trace,
                problem,
                remedy,
            }
            .into());
        }
        let (mut works, mut batch) = (BTreeMap::<u16, Work>::new(), Vec::new());
        let (mut threads, mut touched) = (Threads::default(), FxHashSet::default());
        while source.next_batch(&mut batch)? {
            for record in &batch {
                let work = works.entry(record.thread).or_default();
                work.gap += u64::from(record.gap);
                if direction(record.op).is_none() {
                    work.skipped += 1;
                    continue;
                }
                work.accesses += 1;
                let page = record.line.0 / PAGE_LINES;
                if touched.insert(page) {
                    threads.pages.push(page);
                }
            }
        }
        threads.place(works);
        Ok(threads)
    }

    fn place(&mut self, works: BTreeMap<u16, Work>) {
        for (&thread, work) in works.iter().filter(|(_, work)| work.accesses > 0) {
            self.places.insert(thread, self.works.len());
            self.works.push(Work { thread, ..*work });
        }
        if self.works.is_empty() {
            self.works.push(Work::default());
        }
        for (&thread, work) in works.iter().filter(|(_, work)| work.accesses == 0) {
            self.places.insert(thread, 0);
            self.works[0].gap += work.gap;
            self.works[0].skipped += work.skipped;
        }
    }

    /// The number of threads, at least 1.
    pub fn number(&self) -> usize {
        self.works.len()
    }

    /// Checks that there are cores for so many `copies` of the recording called `trace`.
    ///
    /// # Errors
    /// There are not.
    pub fn check_copies(&self, trace: &str, copies: u32) -> Result<(), TraceUse> {
        let number = self.number();
        if number * copies as usize <= MOST_CORES {
            return Ok(());
        }
        Err(TraceUse {
            trace: trace.to_owned(),
            problem: format!("{copies} x {number} threads are more than {MOST_CORES} cores"),
            remedy: "give fewer --copies, or leave --threads out",
        })
    }

    /// Lets the pages take their frames in the recorded order, which no design's timing changes.
    pub(in crate::machine) fn touch(&self, frames: &mut PageFrames) -> Result<(), OutOfMemory> {
        let mut pages = self.pages.iter();
        pages.try_for_each(|page| frames.map(Virtual(page * PAGE_LINES)).map(|_| ()))
    }

    /// The accesses of each thread of `source`, the recording that these are of, for cores from number `first` on.
    pub(in crate::machine) fn streams(
        &self,
        source: Source,
        copies: Copies,
        first: usize,
    ) -> Result<Vec<Stream>, TraceError> {
        let name = source.name().to_owned();
        let mut splitter = Splitter {
            source,
            own: copies.own(),
            batch: Vec::new(),
            at: 0,
            ended: false,
            places: self.places.clone(),
            threads: self.works.iter().map(|_| Thread::default()).collect(),
            last: FxHashMap::default(),
            held: 0,
            freed: Vec::new(),
        };
        splitter.read()?;
        let splitter = Arc::new(Mutex::new(splitter));
        let streams = self.works.iter().enumerate().map(|(place, work)| {
            let share = ThreadShare {
                splitter: Arc::clone(&splitter),
                place,
                first,
                left: *work,
                after: VecDeque::new(),
            };
            Stream::of_thread(name.clone(), share)
        });
        Ok(streams.collect())
    }
}

/// An access by its thread's place and its number among the thread's.
#[derive(Clone, Copy)]
struct Numbered {
    place: usize,
    number: u64,
}

enum Wait {
    /// For an access of another thread to be issued.
    Issue(Numbered),
    /// For its own next access to be read.
    Read,
}

#[derive(Default)]
struct Thread {
    /// Since its last access.
    gap: u64,
    skipped: u32,
    read: u64,
    issued: u64,
    queue: VecDeque<(Access, Option<Numbered>)>,
    wait: Option<Wait>,
}

/// The reader of a recording.
struct Splitter {
    source: Source,
    own: Option<OwnContents>,
    batch: Vec<Record>,
    at: usize,
    ended: bool,
    places: FxHashMap<u16, usize>,
    threads: Vec<Thread>,
    /// The last access read of each line, if it has not been issued, and of some others.
    last: FxHashMap<u64, Numbered>,
    held: usize,
    freed: Vec<usize>,
}

impl Splitter {
    fn read(&mut self) -> Result<(), TraceError> {
        while self.held < HELD && !self.ended {
            if self.at == self.batch.len() {
                self.at = 0;
                self.ended = !self.source.next_batch(&mut self.batch)?;
                continue;
            }
            let record = self.batch[self.at];
            self.at += 1;
            self.split(&record);
        }
        Ok(())
    }

    fn split(&mut self, record: &Record) {
        let place = self.places[&record.thread];
        let thread = &mut self.threads[place];
        thread.gap += u64::from(record.gap);
        let Some(kind) = direction(record.op) else {
            thread.skipped += 1;
            return;
        };
        let gap = std::mem::take(&mut thread.gap);
        let skipped = std::mem::take(&mut thread.skipped);
        let access = Access::of(record, kind, self.own, gap, skipped);
        let number = thread.read;
        thread.read += 1;
        self.held += 1;
        let last = self.last.insert(record.line.0, Numbered { place, number });
        // An earlier access of the same thread has waited for those before it.
        let after = last.filter(|last| last.place != place && !self.is_issued(*last));
        self.threads[place].queue.push_back((access, after));
        if self.last.len() > 2 * HELD {
            let threads = &self.threads;
            self.last
                .retain(|_, last| last.number >= threads[last.place].issued);
        }
    }

    fn is_issued(&self, access: Numbered) -> bool {
        access.number < self.threads[access.place].issued
    }

    /// Notes that the thread's next access is issued, and who need not wait from now on.
    fn issue(&mut self, place: usize) -> Result<(), TraceError> {
        self.threads[place].issued += 1;
        self.held -= 1;
        self.read()?;
        for other in 0..self.threads.len() {
            let free = match self.threads[other].wait {
                None => false,
                Some(Wait::Issue(access)) => self.is_issued(access),
                Some(Wait::Read) => !self.threads[other].queue.is_empty(),
            };
            if free {
                self.threads[other].wait = None;
                self.freed.push(other);
            }
        }
        Ok(())
    }
}

/// A thread's share of what is read of its recording.
pub(super) struct ThreadShare {
    splitter: Arc<Mutex<Splitter>>,
    place: usize,
    /// The core of the recording's first thread.
    first: usize,
    /// Of the thread's work, as much as has not been taken.
    left: Work,
    /// For each access that was taken and not issued, the access that must be issued before.
    after: VecDeque<Option<Numbered>>,
}

impl ThreadShare {
    pub(super) fn number(&self) -> u16 {
        self.left.thread
    }

    /// Takes the thread's next access, if it has been read.
    pub(super) fn next_access(&mut self) -> Option<Access> {
        let (access, after) = self.lock().threads[self.place].queue.pop_front()?;
        self.after.push_back(after);
        self.left.accesses -= 1;
        self.left.gap -= access.gap;
        self.left.skipped -= u64::from(access.skipped);
        Some(access)
    }

    /// The gap and the fences and flushes after the last access, if that has been taken.
    pub(super) fn end(&self) -> Option<(u64, u64)> {
        (self.left.accesses == 0).then_some((self.left.gap, self.left.skipped))
    }

    /// Notes that the first of the accesses taken is issued.
    pub(super) fn issued(&mut self) -> Result<(), TraceError> {
        match self.after.pop_front() {
            None => Ok(()),
            Some(_) => self.lock().issue(self.place),
        }
    }

    pub(super) fn must_wait(&mut self, ended: bool) -> bool {
        let mut splitter = self.lock();
        let wait = match self.after.front() {
            None => (!ended).then_some(Wait::Read),
            Some(after) => after
                .filter(|after| !splitter.is_issued(*after))
                .map(Wait::Issue),
        };
        let waits = wait.is_some();
        splitter.threads[self.place].wait = wait;
        waits
    }

    /// The cores that no longer need to wait.
    pub(super) fn freed(&mut self) -> Vec<usize> {
        let freed = std::mem::take(&mut self.lock().freed);
        freed.into_iter().map(|place| self.first + place).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Splitter> {
        self.splitter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
