//! An undo-log transaction in three stages (SCA, HPCA 2018, Table 1 and Fig. 9): prepare the log,
//! mutate in place, commit by invalidating the log. Only the log's header needs counter-atomicity.
//!
//! A structure's code loads and stores as if there were no transaction; stores are kept until
//! [`Transaction::commit`], which then knows all lines to log. Fresh lines are logged like any other.

use rustc_hash::FxHashMap;

use super::undo_log::{Header, UndoLog, write_back_counters};
use super::{Mark, Memory, MemoryExt, Mutant, Phase};
use crate::line::{LINE_BYTES, Line, ZERO_LINE};

const LINE: u64 = LINE_BYTES as u64;

/// One line to be changed.
struct Change {
    /// Its address.
    home: u64,
    old: Line,
    new: Line,
    /// The bytes that were stored.
    from: usize,
    to: usize,
}

/// A transaction under way.
pub struct Transaction<'m> {
    memory: &'m mut dyn Memory,
    log: UndoLog,
    number: u64,
    mutant: Option<Mutant>,
    changes: Vec<Change>,
    by_home: FxHashMap<u64, usize>,
}

impl<'m> Transaction<'m> {
    /// Begins transaction `number` with the undo log `log`.
    pub fn begin(
        memory: &'m mut dyn Memory,
        log: UndoLog,
        number: u64,
        mutant: Option<Mutant>,
    ) -> Transaction<'m> {
        memory.mark(Mark {
            transaction: number,
            phase: Phase::Begin,
        });
        // The log must be free; a program that did not look would overwrite what it may need.
        let valid = memory.load_u64(log.header());
        assert_eq!(valid, 0, "a transaction begins while the log is valid");
        Transaction {
            memory,
            log,
            number,
            mutant,
            changes: Vec::new(),
            by_home: FxHashMap::default(),
        }
    }

    /// Makes all of it persistent, or after a power cut nothing.
    ///
    /// # Panics
    /// If more lines were changed than the log has room for.
    pub fn commit(mut self) {
        let fits = self.changes.len() as u64 <= self.log.capacity();
        assert!(fits, "a transaction of {} lines", self.changes.len());
        let valid_first = self.is(Mutant::ValidBeforeLog);
        let data_first = self.is(Mutant::DataBeforeLog);
        // Prepare.
        if data_first {
            self.mutate();
            self.write_back_data();
            self.memory.fence();
        }
        if valid_first {
            self.set_valid();
            self.memory.fence();
        }
        self.write_log();
        self.fence_unless(Mutant::NoFenceAfterLog);
        if !valid_first {
            self.set_valid();
            self.fence_unless(Mutant::NoFenceAfterValid);
        }
        // Mutate.
        if !data_first {
            self.mutate();
            if !self.is(Mutant::CommitBeforeData) {
                self.write_back_data();
                self.fence_unless(Mutant::NoFenceAfterData);
            }
        }
        // Commit.
        self.mark(Phase::Committing);
        self.invalidate_log();
        if self.is(Mutant::CommitBeforeData) {
            self.memory.fence();
            self.write_back_data();
        }
        self.fence_unless(Mutant::NoFenceAfterCommit);
        self.mark(Phase::Committed);
    }

    fn write_log(&mut self) {
        self.memory.depend(); // on the old lines, which are still being loaded
        for (index, change) in self.changes.iter().enumerate() {
            let index = index as u64;
            let old = match self.mutant {
                Some(Mutant::LogsNewValues) => &change.new,
                _ => &change.old,
            };
            let (address, line) = (self.log.address(index), self.log.old_line(index));
            let home = change.home.to_le_bytes();
            if self.mutant == Some(Mutant::PrepareCounterAtomic) {
                self.memory.store_counter_atomic(address, &home);
                self.memory.store_counter_atomic(line, old);
            } else {
                self.memory.store(address, &home);
                self.memory.store(line, old);
            }
        }
        let lines = self.log.lines(self.changes.len() as u64);
        let flushed = match self.mutant {
            Some(Mutant::LogNotFlushed) => 0,
            Some(Mutant::LastLogLineNotFlushed) => lines.len().saturating_sub(1),
            _ => lines.len(),
        };
        for line in &lines[..flushed] {
            self.memory.flush(*line);
        }
        if !self.is(Mutant::NoCountersAfterLog) {
            write_back_counters(self.memory, lines.into_iter());
        }
    }

    fn set_valid(&mut self) {
        let entries = match self.mutant {
            Some(Mutant::LogsOneLineLess) => self.changes.len().saturating_sub(1),
            _ => self.changes.len(),
        };
        let bytes = UndoLog::header_bytes(Header {
            valid: true,
            transaction: self.number,
            entries: entries as u64,
        });
        let at = self.log.header();
        match self.mutant {
            Some(Mutant::ValidNotCounterAtomic) => self.memory.store(at, &bytes),
            _ => self.memory.store_counter_atomic(at, &bytes),
        }
        if !self.is(Mutant::ValidNotFlushed) {
            self.memory.flush(at);
        }
    }

    fn mutate(&mut self) {
        for change in &self.changes {
            let (from, to) = (change.from, change.to);
            let (at, bytes) = (change.home + from as u64, &change.new[from..to]);
            match self.mutant {
                Some(Mutant::MutateCounterAtomic) => self.memory.store_counter_atomic(at, bytes),
                _ => self.memory.store(at, bytes),
            }
        }
    }

    fn write_back_data(&mut self) {
        let flushed = match self.mutant {
            Some(Mutant::DataNotFlushed) => 0,
            Some(Mutant::LastDataLineNotFlushed) => self.changes.len().saturating_sub(1),
            _ => self.changes.len(),
        };
        for change in &self.changes[..flushed] {
            self.memory.flush(change.home);
        }
        if !self.is(Mutant::NoCountersAfterData) {
            write_back_counters(self.memory, self.changes.iter().map(|change| change.home));
        }
    }

    fn invalidate_log(&mut self) {
        let (at, invalid) = (self.log.header(), 0u64.to_le_bytes());
        match self.mutant {
            Some(Mutant::CommitNotCounterAtomic) => self.memory.store(at, &invalid),
            _ => self.memory.store_counter_atomic(at, &invalid),
        }
        self.memory.flush(at);
    }

    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    fn fence_unless(&mut self, mutant: Mutant) {
        if !self.is(mutant) {
            self.memory.fence();
        }
    }

    fn mark(&mut self, phase: Phase) {
        let transaction = self.number;
        self.memory.mark(Mark { transaction, phase });
    }

    /// The change of the line at `home`, which begins with its old bytes.
    fn change(&mut self, home: u64) -> &mut Change {
        let next = self.changes.len();
        let index = *self.by_home.entry(home).or_insert(next);
        if index == next {
            let mut old = ZERO_LINE;
            self.memory.load(home, &mut old);
            self.changes.push(Change {
                home,
                old,
                new: old,
                from: LINE_BYTES,
                to: 0,
            });
        }
        &mut self.changes[index]
    }
}

/// The pieces of `len` bytes at `at`, line by line: the line's address, where in it, and which
/// of the bytes.
pub(super) fn pieces(
    at: u64,
    len: usize,
) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let here = at + done as u64;
        let within = (here % LINE) as usize;
        let size = (LINE_BYTES - within).min(len - done);
        let piece = (here - within as u64, within, done..done + size);
        done += size;
        Some(piece)
    })
}

/// Loads see the transaction's own stores.
impl Memory for Transaction<'_> {
    fn load(&mut self, at: u64, bytes: &mut [u8]) {
        for (home, within, part) in pieces(at, bytes.len()) {
            let bytes = &mut bytes[part];
            match self.by_home.get(&home) {
                Some(index) => {
                    let new = &self.changes[*index].new;
                    bytes.copy_from_slice(&new[within..within + bytes.len()]);
                }
                None => self.memory.load(home + within as u64, bytes),
            }
        }
    }

    fn store(&mut self, at: u64, bytes: &[u8]) {
        for (home, within, part) in pieces(at, bytes.len()) {
            let bytes = &bytes[part];
            let change = self.change(home);
            change.new[within..within + bytes.len()].copy_from_slice(bytes);
            change.from = change.from.min(within);
            change.to = change.to.max(within + bytes.len());
        }
    }

    fn store_counter_atomic(&mut self, _: u64, _: &[u8]) {
        unreachable!("inside a transaction stores are plain: the log makes them atomic")
    }

    fn flush(&mut self, _: u64) {
        unreachable!("a transaction flushes by itself")
    }

    fn fence(&mut self) {
        unreachable!("a transaction fences by itself")
    }

    fn counter_cache_writeback(&mut self, _: u64) {
        unreachable!("a transaction writes counters back by itself")
    }

    fn compute(&mut self, instructions: u32) {
        self.memory.compute(instructions);
    }

    fn depend(&mut self) {
        self.memory.depend();
    }
}
