//! Writes that come in bursts: in runs of many reads and writes without an instruction between them.
//!
//! A cache replaces a line now and then; thousands of accesses at one instant are a flush of a whole cache, by the
//! program or by the recorder, or the work of a kernel whose instructions are not counted. A mean write latency is then
//! that of a full queue.

use super::{Op, Record};

/// Reads and writes in a row, each but the first without an instruction or cycle since the record before, that make a burst (assumed:
/// twice the 32 places of the write queue of ESD's machine, so that half of them at least wait for the medium).
pub const BURST: u64 = 64;
/// The share of writes in bursts above which a mean needs a warning (assumed: one write in twenty moves a mean).
pub const BURSTS_MOST: f64 = 0.05;
/// The number of writes below which a mean needs a warning (assumed: the 99th percentile of a thousand rests on ten).
pub const WRITES_LEAST: u64 = 1000;

#[derive(Default)]
pub(super) struct Bursts {
    run: u64,
    run_writes: u64,
    carried: u64,
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
        let (read, write) = (record.op == Op::ReadMiss, record.op.is_write());
        if gap > 0 || !(read || write) {
            self.end();
        }
        self.run += u64::from(read || write);
        self.run_writes += u64::from(write);
    }

    fn end(&mut self) {
        if self.run >= BURST {
            self.writes += self.run_writes;
            self.longest = self.longest.max(self.run_writes);
        }
        (self.run, self.run_writes) = (0, 0);
    }

    pub(super) fn finish(mut self) -> (u64, u64) {
        self.end();
        (self.writes, self.longest)
    }
}
