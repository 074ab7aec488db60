//! An undo log written by software, in three stages (SCA, HPCA 2018, Table 1 and Fig. 9): prepare the
//! log, mutate in place, commit by invalidating the log; and recovery from it.
//!
//! A header line, which alone decides what recovery sees and alone is written counter-atomically; then
//! blocks of a line of addresses and the seven old lines that they are for (ATOM's record). Where nothing is
//! shared, header and blocks each begin a line of counters, so one write-back serves seven entries. Stores are
//! kept until commit, which then knows all lines to log. Fresh lines are logged like any other.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::{Durability, LoggedItems, Mutant, Recovered, Transaction};
use crate::{Bytes, COUNTER_SPAN, Fault, Mark, Numbers, PersistentMemory, Phase, Sharing};
use sardonyx::line::{LINE_BYTES, Line, ZERO_LINE};
use sardonyx::machine::pieces;

const LINE: u64 = LINE_BYTES as u64;
const PER_BLOCK: u64 = 7;

const VALID: u64 = 0;
const TRANSACTION: u64 = 8;
const ENTRIES: u64 = 16;

/// The log's position, and the mistake in its transactions if there is one.
#[derive(Clone, Copy)]
pub struct SoftwareUndo {
    /// The header's first byte.
    pub start: u64,
    /// How lines share a line of counters.
    pub sharing: Sharing,
    /// The number of lines that the log has room for.
    pub capacity: u64,
    /// The mistake in its transactions, or the work that they do beyond need.
    pub mutant: Option<Mutant>,
}

/// The header's three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whether the entries are to be put back.
    pub valid: bool,
    /// The transaction that the entries belong to; if they are not valid, the last visible one.
    pub transaction: u64,
    /// The number of entries.
    pub entries: u64,
}

impl Header {
    /// The bytes that the header line begins with.
    pub fn bytes(self) -> [u8; 24] {
        let words = [u64::from(self.valid), self.transaction, self.entries];
        let bytes = words.map(u64::to_le_bytes);
        bytes.as_flattened().try_into().expect("3 words")
    }
}

impl SoftwareUndo {
    fn header_bytes(&self) -> u64 {
        match self.sharing.is_apart() {
            true => COUNTER_SPAN,
            false => LINE,
        }
    }

    fn block(&self, index: u64) -> u64 {
        self.start + self.header_bytes() + index / PER_BLOCK * COUNTER_SPAN
    }

    fn address(&self, index: u64) -> u64 {
        self.block(index) + index % PER_BLOCK * 8
    }

    fn old_line(&self, index: u64) -> u64 {
        self.block(index) + (1 + index % PER_BLOCK) * LINE
    }

    fn lines(&self, entries: u64) -> Vec<u64> {
        let firsts = (0..entries.div_ceil(PER_BLOCK)).map(|block| self.block(block * PER_BLOCK));
        let mut lines: Vec<u64> = firsts.collect();
        lines.extend((0..entries).map(|index| self.old_line(index)));
        lines
    }

    fn read_header(&self, memory: &mut dyn PersistentMemory) -> Result<Header, Fault> {
        let fault = |offset, what: String| {
            let at = self.start + offset;
            Err(Fault { at, what })
        };
        let valid = match memory.load_u64(self.start + VALID) {
            0 => false,
            1 => true,
            other => return fault(VALID, format!("the log's valid flag is {other:#x}")),
        };
        let header = Header {
            valid,
            transaction: memory.load_u64(self.start + TRANSACTION),
            entries: memory.load_u64(self.start + ENTRIES),
        };
        if header.entries > self.capacity {
            return fault(ENTRIES, format!("the log has {} entries", header.entries));
        }
        if header.valid && header.transaction == 0 {
            return fault(TRANSACTION, "the log is of transaction 0".into());
        }
        Ok(header)
    }
}

impl Durability for SoftwareUndo {
    fn log(&self, memory: &mut dyn PersistentMemory) -> LoggedItems {
        let entries = memory.load_u64(self.start + ENTRIES);
        let lines = (0..entries.min(self.capacity)).map(|index| {
            let mut old = ZERO_LINE;
            memory.load(self.old_line(index), &mut old);
            (memory.load_u64(self.address(index)), old)
        });
        let lines = lines.collect();
        LoggedItems {
            valid: memory.load_u64(self.start + VALID),
            transaction: memory.load_u64(self.start + TRANSACTION),
            entries,
            lines,
        }
    }

    fn log_bytes(&self) -> Range<u64> {
        let blocks = self.capacity.div_ceil(PER_BLOCK);
        self.start..self.start + self.header_bytes() + blocks * COUNTER_SPAN
    }

    fn begin<'m>(
        &self,
        number: u64,
        memory: &'m mut dyn PersistentMemory,
    ) -> Box<dyn Transaction + 'm> {
        memory.mark(Mark {
            transaction: number,
            phase: Phase::Begin,
        });
        // The log must be free; a program that did not look would overwrite what it may need.
        let valid = memory.load_u64(self.start);
        assert_eq!(valid, 0, "a transaction begins while the log is valid");
        Box::new(UndoTransaction {
            memory,
            log: *self,
            number,
            changes: Vec::new(),
            by_home: FxHashMap::default(),
        })
    }

    fn recover(
        &self,
        memory: &mut dyn PersistentMemory,
        region: Range<u64>,
    ) -> Result<Recovered, Fault> {
        let header = self.read_header(memory)?;
        if !header.valid {
            return Ok(Recovered {
                visible: header.transaction,
                restored: 0,
            });
        }
        let mut homes = Vec::new();
        for index in 0..header.entries {
            let at = self.address(index);
            let home = memory.load_u64(at);
            let data = region.contains(&home) && !self.log_bytes().contains(&home);
            if !data || !home.is_multiple_of(LINE) {
                let what =
                    format!("log entry {index} is for {home:#x}, which is not a line of data");
                return Err(Fault { at, what });
            }
            homes.push(home);
        }
        for (index, home) in homes.iter().enumerate() {
            let mut line = ZERO_LINE;
            memory.load(self.old_line(index as u64), &mut line);
            memory.store(*home, &line);
            memory.flush(*home);
        }
        write_back_counters(memory, &homes, self.sharing.span());
        memory.fence();
        let visible = header.transaction - 1;
        let done = Header {
            valid: false,
            transaction: visible,
            entries: 0,
        };
        memory.store_counter_atomic(self.start, &done.bytes());
        memory.flush(self.start);
        memory.fence();
        Ok(Recovered {
            visible,
            restored: header.entries,
        })
    }
}

fn store(memory: &mut dyn PersistentMemory, at: u64, bytes: &[u8], atomic: bool) {
    match atomic {
        true => memory.store_counter_atomic(at, bytes),
        false => memory.store(at, bytes),
    }
}

/// Writes counters back: `counter_cache_writeback()` once for each counter line that covers one of `lines`. A counter
/// line covers `span` bytes.
pub(super) fn write_back_counters(memory: &mut dyn PersistentMemory, lines: &[u64], span: u64) {
    let mut spans: Vec<u64> = lines.iter().map(|line| line / span).collect();
    spans.sort_unstable();
    spans.dedup();
    for index in spans {
        memory.counter_cache_writeback(index * span);
    }
}

struct Change {
    home: u64,
    old: Line,
    new: Line,
    /// Bytes from here up to `to` were stored.
    from: usize,
    to: usize,
}

struct UndoTransaction<'m> {
    memory: &'m mut dyn PersistentMemory,
    log: SoftwareUndo,
    number: u64,
    changes: Vec<Change>,
    by_home: FxHashMap<u64, usize>,
}

impl Transaction for UndoTransaction<'_> {
    /// # Panics
    /// If more lines were changed than the log has room for.
    fn commit(mut self: Box<Self>) {
        let fits = self.changes.len() as u64 <= self.log.capacity;
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
            self.unlock_if(Mutant::UnlockBeforeData);
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
        self.unlock_if(Mutant::UnlockBeforeCommit);
        self.fence_unless(Mutant::NoFenceAfterCommit);
        self.mark(Phase::Committed);
        self.memory.unlock();
    }
}

impl UndoTransaction<'_> {
    fn write_log(&mut self) {
        self.memory.depend(); // on the old lines, which are still being loaded
        let atomic = self.is(Mutant::PrepareCounterAtomic);
        for (index, change) in self.changes.iter().enumerate() {
            let index = index as u64;
            let logged = match self.log.mutant {
                Some(Mutant::LogsNewValues) => &change.new,
                _ => &change.old,
            };
            let home = change.home.to_le_bytes();
            store(self.memory, self.log.address(index), &home, atomic);
            store(self.memory, self.log.old_line(index), logged, atomic);
        }
        let lines = self.log.lines(self.changes.len() as u64);
        let (none, last) = (Mutant::LogNotFlushed, Mutant::LastLogLineNotFlushed);
        self.write_back(&lines, none, last, Mutant::NoCountersAfterLog);
    }

    fn set_valid(&mut self) {
        let entries = match self.log.mutant {
            Some(Mutant::LogsOneLineLess) => self.changes.len().saturating_sub(1),
            _ => self.changes.len(),
        };
        let header = Header {
            valid: true,
            transaction: self.number,
            entries: entries as u64,
        };
        let atomic = !self.is(Mutant::ValidNotCounterAtomic);
        store(self.memory, self.log.start, &header.bytes(), atomic);
        if !self.is(Mutant::ValidNotFlushed) && !self.is(Mutant::NothingFlushed) {
            self.memory.flush(self.log.start);
        }
    }

    fn mutate(&mut self) {
        let atomic = self.is(Mutant::MutateCounterAtomic);
        for change in &self.changes {
            let (from, to) = (change.from, change.to);
            let at = change.home + from as u64;
            store(self.memory, at, &change.new[from..to], atomic);
        }
    }

    fn write_back_data(&mut self) {
        let homes: Vec<u64> = self.changes.iter().map(|change| change.home).collect();
        let (none, last) = (Mutant::DataNotFlushed, Mutant::LastDataLineNotFlushed);
        self.write_back(&homes, none, last, Mutant::NoCountersAfterData);
    }

    /// Flushes `lines` and writes their counters back. Three mistakes leave something out: no line is flushed, the last
    /// one is not, or the counters are not written back.
    fn write_back(&mut self, lines: &[u64], none: Mutant, last: Mutant, counters: Mutant) {
        if self.is(Mutant::NothingFlushed) {
            return;
        }
        let flushed = match self.log.mutant {
            Some(mutant) if mutant == none => 0,
            Some(mutant) if mutant == last => lines.len().saturating_sub(1),
            _ => lines.len(),
        };
        for line in &lines[..flushed] {
            self.memory.flush(*line);
        }
        if !self.is(counters) {
            write_back_counters(self.memory, lines, self.log.sharing.span());
        }
    }

    fn invalidate_log(&mut self) {
        let atomic = !self.is(Mutant::CommitNotCounterAtomic);
        store(self.memory, self.log.start, &0u64.to_le_bytes(), atomic);
        if !self.is(Mutant::NothingFlushed) {
            self.memory.flush(self.log.start);
        }
    }

    fn is(&self, mutant: Mutant) -> bool {
        self.log.mutant == Some(mutant)
    }

    fn fence_unless(&mut self, mutant: Mutant) {
        if !self.is(mutant) {
            self.memory.fence();
        }
    }

    fn unlock_if(&mut self, mutant: Mutant) {
        if self.is(mutant) {
            self.memory.unlock();
        }
    }

    fn mark(&mut self, phase: Phase) {
        let transaction = self.number;
        self.memory.mark(Mark { transaction, phase });
    }

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

impl Bytes for UndoTransaction<'_> {
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

    fn compute(&mut self, instructions: u32) {
        self.memory.compute(instructions);
    }

    fn depend(&mut self) {
        self.memory.depend();
    }
}
