//! Writes that came in bursts: runs of many writes with no instruction between them.
//!
//! A cache replaces a line now and then; thousands of writes at one instant are a flush of a whole cache, by the program or
//! by the recorder. A mean write latency is then that of a full queue.

use super::{Op, Record};

/// Writes in a row, each but the first without an instruction or cycle since the record before, that make a burst (assumed:
/// twice the 32 places of the write queue of ESD's machine, so that half of them at least wait for the medium).
pub const BURST: u64 = 64;
/// Share of writes in bursts above which a mean needs a word (assumed: one write in twenty moves a mean that others share).
pub const BURSTS_MOST: f64 = 0.05;
/// Writes below which a mean needs a word (assumed: a percentile of 99 rests on ten of a thousand).
pub const WRITES_LEAST: u64 = 1000;

/// The bursts while the records pass by.
#[derive(Default)]
pub(super) struct Bursts {
    /// Writes of the run that goes on.
    run: u64,
    /// Gaps of records without traffic since.
    carried: u64,
    /// Writes in bursts that have ended.
    writes: u64,
    longest: u64,
}

impl Bursts {
    pub(super) fn add(&mut self, record: &Record) {
        let gap = self.carried.saturating_add(u64::from(record.gap));
        if matches!(record.op, Op::FinalDirty | Op::Changed) {
            self.carried = gap;
            return;
        }
        self.carried = 0;
        if !record.op.is_write() {
            self.end();
        } else {
            if gap > 0 {
                self.end();
            }
            self.run += 1;
        }
    }

    fn end(&mut self) {
        if self.run >= BURST {
            self.writes += self.run;
            self.longest = self.longest.max(self.run);
        }
        self.run = 0;
    }

    /// Writes in bursts, and those of the longest.
    pub(super) fn finish(mut self) -> (u64, u64) {
        self.end();
        (self.writes, self.longest)
    }
}
