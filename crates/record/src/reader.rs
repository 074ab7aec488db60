//! The thread that follows one process: it reads the process's ring until the process ends or its trace is long enough.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use sardonyx_recorder::codec::CacheContents;
use sardonyx_recorder::ring::Ring;

use crate::error::{RecordError, Result};
use crate::stream::{RecordedTrace, TraceStream};

const CHUNK: usize = 1 << 20;
/// The pause if there is nothing to read; a ring takes far longer to fill.
pub const IDLE: Duration = Duration::from_millis(5);
/// The time a forked process has for its first record, once all others are gone.
const BIRTH: Duration = Duration::from_secs(1);
/// The time a program has to tell what its caches hold, once the trace is long enough.
const LAST_WORD: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub struct Live {
    pub instructions: AtomicU64,
    pub records: AtomicU64,
    pub bytes: AtomicU64,
    /// How often the user has asked to end the recording; what was recorded is kept. The second time ends the program
    /// at once.
    pub stops: AtomicU32,
}

impl Live {
    pub fn is_stopped(&self) -> bool {
        self.stops.load(Ordering::Relaxed) > 0
    }
}

pub struct Reader {
    pub ring: Ring,
    pub stream: TraceStream,
    pub live: Arc<Live>,
    /// How the first process ended, once it has.
    pub done: Arc<OnceLock<ExitStatus>>,
    pub process: u32,
    pub first: bool,
    pub emulator: Option<PathBuf>,
}

impl Reader {
    /// Reads until the process ends or its trace is full; `None` for a process that never began.
    ///
    /// # Errors
    /// The trace cannot be written, or there is none of the first process.
    pub fn run(mut self) -> Result<Option<RecordedTrace>> {
        let mut bytes = Vec::with_capacity(CHUNK);
        let mut alone = None;
        loop {
            // This is checked before the ring is read, so that nothing can come after the last read.
            let ended = self.ended() && self.family_ended(&mut alone);
            let read = self.ring.read(&mut bytes, CHUNK);
            let before = self.stream.records();
            if let Err(e) = self.stream.take(&mut bytes) {
                self.ring.header().stop.store(1, Ordering::Relaxed);
                return Err(e);
            }
            let new = self.stream.records() - before;
            self.live.records.fetch_add(new, Ordering::Relaxed);
            self.live.bytes.fetch_add(read as u64, Ordering::Relaxed);
            if self.first {
                let instructions = self.ring.header().instructions.load(Ordering::Relaxed);
                self.live
                    .instructions
                    .store(instructions, Ordering::Relaxed);
            }
            if self.stream.is_full() {
                self.ring.header().stop.store(1, Ordering::Relaxed);
                self.last_word();
                break;
            }
            let lost = self.first && self.stream.lost().is_some();
            if read == 0 && lost && (self.ended() || self.program() != self.emulator) {
                let lost = self.stream.lost().unwrap_or_default();
                return Err(RecordError::new(format!("the program became {lost}")));
            }
            match (read, ended) {
                (0, true) => break,
                (0, false) => std::thread::sleep(IDLE),
                _ => {}
            }
        }
        let nothing = self.first && self.stream.records() == 0;
        if nothing && self.stream.has_ended() {
            return Err(RecordError::new(
                "the program ended before the first record that was to be kept; skip less",
            ));
        }
        if nothing || self.ring.header().begun.load(Ordering::Acquire) == 0 {
            return Ok(None);
        }
        // An end that the recorder asked for says nothing about the program.
        let asked = self.stream.is_full() || self.live.is_stopped();
        if let Some(status) = self.done.get().filter(|_| !asked) {
            self.stream.exited(*status);
        }
        Ok(Some(self.stream.finish()?))
    }

    /// Waits until the program, whose trace is long enough, has told what its caches hold: it does so when it next has
    /// a record.
    fn last_word(&mut self) {
        let header = self.ring.header();
        let asked = Instant::now();
        while header.told.load(Ordering::Acquire) == 0 {
            if asked.elapsed() > LAST_WORD || self.ended() {
                return;
            }
            std::thread::sleep(IDLE);
        }
        let words = header.cached.each_ref().map(|w| w.load(Ordering::Relaxed));
        self.stream.cached(CacheContents::from_counts(words));
    }

    /// Whether all processes that share the ring are gone, not only the first.
    fn family_ended(&self, alone: &mut Option<Instant>) -> bool {
        let (header, family) = (self.ring.header(), self.stream.family());
        if !self.first || header.shared.load(Ordering::Acquire) == 0 {
            return true;
        }
        if self.live.is_stopped() {
            header.stop.store(1, Ordering::Relaxed);
            return true;
        }
        // A process that became another program no longer runs what the first did.
        let runs = |process| {
            let program = std::fs::read_link(format!("/proc/{process}/exe")).ok();
            program.is_some() && program == self.emulator
        };
        if family.children().any(runs) {
            *alone = None;
            return false;
        }
        // A child that was killed before it, or its parent, could tell of it is not waited for longer.
        header.forks.load(Ordering::Acquire) <= family.forks()
            || alone.get_or_insert_with(Instant::now).elapsed() > BIRTH
    }

    fn program(&self) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/exe", self.process)).ok()
    }

    /// Whether the process writes no more. A child that its parent has not waited for still exists, but does not run.
    fn ended(&self) -> bool {
        if self.first {
            return self.done.get().is_some();
        }
        match std::fs::read_to_string(format!("/proc/{}/stat", self.process)) {
            Ok(stat) => stat
                .rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.starts_with(['Z', 'X'])),
            Err(_) => true,
        }
    }
}
