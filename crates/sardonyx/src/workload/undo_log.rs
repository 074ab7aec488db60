//! The undo log of a transaction (SCA, HPCA 2018, Fig. 9): where it lies, and recovery from it.
//! A header line, which alone decides what recovery sees and is only ever written counter-atomically;
//! then blocks of a line of addresses and the seven old lines that they are for (ATOM's record). Header
//! and blocks each begin a line of counters, so one write-back serves seven entries.

use std::ops::Range;

use super::{COUNTER_SPAN, Fault, Memory, MemoryExt, Recovered};
use crate::line::{LINE_BYTES, ZERO_LINE};

const LINE: u64 = LINE_BYTES as u64;
/// Old lines in a block.
const PER_BLOCK: u64 = 7;

/// Offsets in the header line.
const VALID: u64 = 0;
const TRANSACTION: u64 = 8;
const ENTRIES: u64 = 16;

/// Where a log lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndoLog {
    start: u64,
    capacity: u64,
}

/// The header's three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The entries are to be put back.
    pub valid: bool,
    /// Of this transaction; if not valid, the last one visible.
    pub transaction: u64,
    /// How many there are.
    pub entries: u64,
}

impl UndoLog {
    /// A log at byte `start`, which begins a line of counters, with room for `capacity` lines.
    pub fn new(start: u64, capacity: u64) -> UndoLog {
        debug_assert!(start.is_multiple_of(COUNTER_SPAN));
        UndoLog { start, capacity }
    }

    /// The bytes it takes.
    pub fn bytes(&self) -> Range<u64> {
        let blocks = self.capacity.div_ceil(PER_BLOCK);
        self.start..self.start + (1 + blocks) * COUNTER_SPAN
    }

    /// The byte after it.
    pub fn end(&self) -> u64 {
        self.bytes().end
    }

    /// Lines it has room for.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(super) fn header(&self) -> u64 {
        self.start
    }

    fn block(&self, index: u64) -> u64 {
        self.start + (1 + index / PER_BLOCK) * COUNTER_SPAN
    }

    /// Where the address of entry `index` stands.
    pub(super) fn address(&self, index: u64) -> u64 {
        self.block(index) + index % PER_BLOCK * 8
    }

    /// Where the old line of entry `index` stands.
    pub(super) fn old_line(&self, index: u64) -> u64 {
        self.block(index) + (1 + index % PER_BLOCK) * LINE
    }

    /// The lines that `entries` entries take, header left out.
    pub(super) fn lines(&self, entries: u64) -> Vec<u64> {
        let firsts = (0..entries.div_ceil(PER_BLOCK)).map(|block| self.block(block * PER_BLOCK));
        let mut lines: Vec<u64> = firsts.collect();
        lines.extend((0..entries).map(|index| self.old_line(index)));
        lines
    }

    /// The header's bytes.
    /// What the header line begins with.
    pub(crate) fn header_bytes(header: Header) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&u64::from(header.valid).to_le_bytes());
        bytes[8..16].copy_from_slice(&header.transaction.to_le_bytes());
        bytes[16..].copy_from_slice(&header.entries.to_le_bytes());
        bytes
    }

    pub(super) fn read_header(&self, memory: &mut dyn Memory) -> Result<Header, Fault> {
        let at = self.header();
        let fault = |offset, what: String| {
            let at = at + offset;
            Err(Fault { at, what })
        };
        let valid = match memory.load_u64(at + VALID) {
            0 => false,
            1 => true,
            other => return fault(VALID, format!("the log's valid flag is {other:#x}")),
        };
        let header = Header {
            valid,
            transaction: memory.load_u64(at + TRANSACTION),
            entries: memory.load_u64(at + ENTRIES),
        };
        if header.entries > self.capacity {
            return fault(ENTRIES, format!("the log has {} entries", header.entries));
        }
        if header.valid && header.transaction == 0 {
            return fault(TRANSACTION, "the log is of transaction 0".into());
        }
        Ok(header)
    }

    /// Puts the lines of a valid log back, all of `region` and none of the log, and invalidates it. It
    /// may be cut short and run again.
    ///
    /// # Errors
    /// The log's header or addresses make no sense; nothing has been changed then.
    pub fn recover(&self, memory: &mut dyn Memory, region: Range<u64>) -> Result<Recovered, Fault> {
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
            let data = region.contains(&home) && !self.bytes().contains(&home);
            if !data || !home.is_multiple_of(LINE) {
                let what = format!("log entry {index} is for {home:#x}, which is no line of data");
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
        write_back_counters(memory, homes.iter().copied());
        memory.fence();
        let visible = header.transaction - 1;
        let done = Header {
            valid: false,
            transaction: visible,
            entries: 0,
        };
        memory.store_counter_atomic(self.header(), &UndoLog::header_bytes(done));
        memory.flush(self.header());
        memory.fence();
        Ok(Recovered {
            visible,
            restored: header.entries,
        })
    }
}

/// `counter_cache_writeback()` once for each counter line that covers one of `lines`.
pub(super) fn write_back_counters(memory: &mut dyn Memory, lines: impl Iterator<Item = u64>) {
    let mut spans: Vec<u64> = lines.map(|line| line / COUNTER_SPAN).collect();
    spans.sort_unstable();
    spans.dedup();
    for span in spans {
        memory.counter_cache_writeback(span * COUNTER_SPAN);
    }
}
