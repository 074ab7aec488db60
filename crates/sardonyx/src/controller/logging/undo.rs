//! A hardware undo log over a mapping, ATOM's: old lines that the processor's caches hand over before a
//! store, in records of seven lines and a header, in buckets that belong to one transaction.
//! Sources: EASY-PM (Sec. II-A, III-B), ATOM (HPCA 2017). Left out: where lines of the log lie and how they
//! are encrypted ([`Sealing`]); when a line has been logged, which is the L1 caches' log bit.
//!
//! What a power cut finds: a line of registers for each transaction, dumped on reserve power. It names the
//! transaction's buckets and counts the headers that are accepted, with all before them (unless the log's
//! own lines do). A line of data waits until the header that names its old content counts (it is *locked*). So recovery puts back what
//! the registers lead to, newest first, and clears them when all that is accepted.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::buckets::{self, Buckets, FoundRegisters, NO_REGISTERS, RegisterLines};
use crate::controller::layers::{Limit, Reached};
use crate::controller::{
    Class, Figures, Layer, Persist, Storey, Top, Unfinished, Write, knows_what_is_below,
    stands_on_below,
};
use crate::figures::figures;
use crate::line::{LINE_BYTES, Line, Logical, ZERO_LINE};
use crate::mechanisms::{ENDED_FULL, Mechanism, mechanisms};
use crate::medium::layout::Layout;
use crate::medium::mapping;
use crate::plan::{At, Fetched, Plan, Step, Stored, Timer};
use crate::settings::{AnyKey, Settings, keys, words};
use crate::stats::Cause;
use crate::units::Time;

/// Old lines in a record, without its header.
pub const PER_RECORD: usize = 7;
/// Buckets that a line of registers can name.
pub const MOST_BUCKETS: u64 = 16;

/// The order in which buckets are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketReuse {
    /// The bucket that was given up first is taken.
    Fifo,
    /// The bucket that was given up last is taken.
    Lifo,
}

words!(BucketReuse { "fifo" => Fifo, "lifo" => Lifo });

/// The position of buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketPlacement {
    /// Each bucket begins where the one before it ends.
    Packed,
    /// Each bucket begins in another bank than the one before it.
    Staggered,
}

words!(BucketPlacement { "packed" => Packed, "staggered" => Staggered });

keys! {
    TRANSACTIONS: u64 = int("log.transactions", (1, 1024), 32),
        Source("EASY-PM III-D, after ATOM"),
        "Transactions that the log manager has registers for at one time";
    RECORDS: u64 = int("log.records", (1, 1024), 64),
        Assumed("no source; a bucket of 32 KiB"),
        "Records of a bucket, each of seven old lines and a header"
        in Between("16", "256", "a quarter of the default and four times: buckets of 8 to 128 KiB")
        under |by| by.short.then_some(if by.long_transactions { 8 } else if by.limits { 2 } else { 1 });
    BUCKETS: u64 = int("log.buckets", (1, 32_768), 128),
        Assumed("no source; four for each of 32 transactions"),
        "Buckets of the log"
        in Between("64", "32768", "two for each of 32 transactions, to a log of 1 GiB")
        under |by| Some(if by.limits { 320 } else { 64 });
    FIRST_BUCKET: u64 = int("log.first_bucket", (0, 32_767), 0),
        Source("for the crash explorer: a machine that has run for long"),
        "The bucket that is taken first; those before it come last";
    REUSE: BucketReuse = word("log.reuse", "fifo"),
        Assumed("no source; a log is appended to (EASY-PM III-C) and wears all of its lines alike"),
        "Which bucket a transaction takes of those given up: the first or the last";
    PLACEMENT: BucketPlacement = word("log.placement", "staggered"),
        Assumed("no source; who lays out a log knows the banks, as SCA's programs are laid out here"),
        "Whether a bucket begins in another bank than the one before, or where that ends";
    TIMEOUT: u64 = int("log.timeout_ns", (1, 1 << 30), 2048),
        Assumed("no source; 4096 cycles at 2 GHz"),
        "Nanoseconds after which a record that is not full gets its header"
        in Between("512", "8192", "a quarter of the default and four times")
        under |by| (by.short && !by.limits).then_some(if by.stride > Some(2) { 60 } else { 200 });
}

figures! { "Hardware log";
    ENTRIES: Count Neither "log_entries", "old lines that went to the log";
    FILLED: Count Less "log_records", "records that got their header";
    FORCED: Count Less "log_records_forced", "of them, because a line whose old content they held was written";
    TIMED_OUT: Count Less "log_records_timed_out", "of them, because time had run out";
    BUCKETS_MOST: Count Less "log_buckets_most", "buckets that transactions held at one time, at most";
    TRANSACTIONS_MOST: Count Neither "log_transactions_most", "transactions under way at one time, at most";
    REGISTER_BYTES: Bytes Less "log_register_bytes", "on chip: registers that are dumped at a power cut";
    OPEN_HEADER_BYTES: Bytes Less "log_open_header_bytes", "on chip: headers of the records that are being filled";
    TIMER_BYTES: Bytes Less "log_timer_bytes", "on chip: when these records are out of time";
    RC_BYTES: Bytes Less "log_rc_bytes", "on chip: the most recent ciphertext of each chain (`easy-pm`)";
}

/// The log manager's keys.
pub static KEYS: [&dyn AnyKey; 7] = [
    &TRANSACTIONS,
    &RECORDS,
    &BUCKETS,
    &FIRST_BUCKET,
    &REUSE,
    &PLACEMENT,
    &TIMEOUT,
];

/// The distance between the beginnings of two buckets of `lines` lines. If they are staggered, it is an odd number of
/// runs of lines in one bank: because the number of banks is a power of two, buckets then begin in all banks in turn.
pub fn pitch(settings: &Settings, lines: u64) -> u64 {
    let run = mapping::run(settings);
    match settings.get(&PLACEMENT) {
        BucketPlacement::Packed => lines,
        BucketPlacement::Staggered => (lines.div_ceil(run) | 1) * run,
    }
}

/// The effect of a power cut on a log.
pub const CUT: &str =
    "registers are dumped on reserve power; old lines of transactions under way are put back";
/// Limits of the log manager's numbers and tables.
pub const LIMITS: &[Limit] = &[BUCKETS_NAMED, BUCKET_NUMBERS];
/// The limit of the buckets that registers name.
pub const BUCKETS_NAMED: Limit = Limit {
    name: "buckets of a transaction",
    bits: MOST_BUCKETS.ilog2(),
    begins: None,
    pads: false,
    reached: Reached::Pressed,
};
/// The limit of bucket numbers.
pub const BUCKET_NUMBERS: Limit = Limit {
    name: "numbers of buckets",
    bits: 16,
    begins: Some(&FIRST_BUCKET),
    pads: false,
    reached: Reached::Near {
        bits: &[8],
        below: 8,
    },
};

mechanisms! {
    FULL_RECORD = "full log records", least 30;
    FORCED_RECORD = "forced log records", least 30;
    TIMED_OUT_RECORD = "timed-out log records", least 30;
    NEXT_BUCKET = "further log buckets", least 30;
    BUCKET_AGAIN = "log buckets taken again", least 30;
    LOGGED_AGAIN = "lines logged again", least 0;
    HELD_BACK = "writes behind a log header", least 30;
    UNDONE = "transactions undone by hardware", least 300;
}

/// The mechanisms that a verdict on a hardware log rests on.
pub const TRIES: &[&[&Mechanism]] = &[MECHANISMS, &[&ENDED_FULL]];

/// A line of the log that a transaction is about to write into its last bucket.
#[derive(Clone, Copy)]
pub struct Spot {
    /// The index of the transaction's registers.
    pub slot: usize,
    /// The bucket.
    pub bucket: u16,
    /// The number of the record in its bucket.
    pub record: u64,
    /// Number of the core that writes.
    pub core: u32,
    /// Number of the core's transaction that writes.
    pub transaction: u64,
    /// Nothing of the line is sent to memory before this step is finished.
    pub gate: Step,
}

/// An entry of the log: what a line held.
pub struct LogEntry {
    /// The line.
    pub line: Logical,
    /// What the line held before the transaction.
    pub old: At<Line>,
}

/// The format of log lines in memory, and their encryption.
pub trait Sealing: Send {
    /// Whether the registers count a bucket's headers. If not, [`Sealing::read`] finds them.
    fn counts_in_registers(&self) -> bool {
        true
    }

    /// Hears that a transaction takes the bucket of `spot`.
    fn open(&mut self, _spot: Spot, _plan: &mut Plan) {}

    /// Writes old line number `entry` of a record.
    fn old(
        &mut self,
        spot: Spot,
        entry: usize,
        data: At<&Line>,
        below: &mut Top,
        plan: &mut Plan,
    ) -> Stored;

    /// Writes the header of a record. The header may count after `valid` at the earliest, and does once the returned
    /// write is accepted.
    fn header(
        &mut self,
        spot: Spot,
        data: At<&Line>,
        valid: Step,
        below: &mut Top,
        plan: &mut Plan,
    ) -> Stored;

    /// Reads the entries that a power cut has left in `bucket`, oldest first. By the registers the bucket has `headers`
    /// headers.
    fn read(
        &mut self,
        bucket: u16,
        headers: u64,
        below: &mut Top,
        plan: &mut Plan,
    ) -> Vec<LogEntry>;

    /// Learns from the medium's bytes after a power cut.
    fn recover(&mut self, _plan: &mut Plan) {}

    /// Bytes of registers that it needs on chip.
    fn register_bytes(&self) -> u64 {
        0
    }
}

/// The lines that a header names.
pub fn addresses(header: &Line) -> impl Iterator<Item = Logical> {
    let (words, _) = header.as_chunks::<8>();
    let number = |word: &[u8; 8]| u64::from_le_bytes(*word);
    let count = number(&words[PER_RECORD]).min(PER_RECORD as u64);
    (0..count as usize).map(move |entry| Logical(number(&words[entry])))
}

/// The reason why a line may not be written yet.
#[derive(Clone, Copy)]
enum WriteLock {
    /// The line's entry is in the open record of this slot.
    Open(usize),
    /// A recovery finds the line's entry only from this step on.
    Closed(Step),
}

#[derive(Default)]
struct OpenRecord {
    lines: SmallVec<[Logical; PER_RECORD]>,
    /// The step after which the record's old lines are accepted.
    accepted: Step,
    number: u64,
}

#[derive(Default)]
struct TransactionSlot {
    /// The core and the number of its transaction; number 0 for none.
    core: u32,
    transaction: u64,
    buckets: Vec<u16>,
    headers: u64,
    /// The step before which the last bucket may not be written.
    bucket_free: Step,
    open: OpenRecord,
    /// The step after which all headers so far are accepted.
    durable: Step,
    logged: Vec<Logical>,
}

impl TransactionSlot {
    /// The line that reserve power dumps, with the number of headers or without.
    fn dumped(&self, counts: bool) -> Line {
        let headers = if counts { self.headers } else { 0 };
        buckets::dumped(self.transaction, headers, &self.buckets, 0)
    }
}

#[derive(Default)]
struct LogCounts {
    entries: u64,
    records: u64,
    forced: u64,
    timed_out: u64,
    undone: u64,
    most_transactions: u64,
}

/// The log manager.
pub struct UndoLog<S> {
    below: Top,
    sealing: S,
    lines: u64,
    registers: RegisterLines,
    records: u64,
    timeout: Time,
    slots: Vec<TransactionSlot>,
    buckets: Buckets,
    locks: FxHashMap<Logical, WriteLock>,
    timers: FxHashMap<Timer, (usize, u64)>,
    begun: u64,
    counts: LogCounts,
}

impl<S: Sealing> UndoLog<S> {
    /// A log over `below`, which has `lines` lines of programs.
    pub fn new(
        sealing: S,
        settings: &Settings,
        below: Top,
        lines: u64,
        layout: &mut Layout,
    ) -> UndoLog<S> {
        let (transactions, records) = (settings.get(&TRANSACTIONS), settings.get(&RECORDS));
        let buckets = Buckets::new(settings);
        UndoLog {
            below,
            sealing,
            lines,
            registers: RegisterLines::new(layout, transactions, buckets.all, records),
            records,
            timeout: Time::from_ps(settings.get(&TIMEOUT) * 1000),
            slots: (0..transactions)
                .map(|_| TransactionSlot::default())
                .collect(),
            buckets,
            locks: FxHashMap::default(),
            timers: FxHashMap::default(),
            begun: 0,
            counts: LogCounts::default(),
        }
    }

    fn slot_of(&self, core: u32) -> Option<usize> {
        let of_core = |slot: &TransactionSlot| slot.transaction != 0 && slot.core == core;
        self.slots.iter().position(of_core)
    }

    /// The position of the open record of `slot`, in a new bucket if the last one is full; `None` if no bucket is left
    /// for it.
    fn record(&mut self, slot: usize, plan: &mut Plan) -> Option<Spot> {
        let this = &mut self.slots[slot];
        let mut spot = Spot {
            slot,
            bucket: 0,
            record: this.headers,
            core: this.core,
            transaction: this.transaction,
            gate: this.bucket_free,
        };
        if let Some(last) = this.buckets.last().filter(|_| this.headers < self.records) {
            spot.bucket = *last;
            return Some(spot);
        }
        let (bucket, gate) = self.buckets.take(&mut this.buckets, plan)?;
        (this.headers, this.bucket_free) = (0, gate);
        (spot.bucket, spot.record, spot.gate) = (bucket, 0, gate);
        self.sealing.open(spot, &mut plan.because(Cause::Log));
        Some(spot)
    }

    /// Writes the header of the open record of `slot`, which makes its entries count from some step on.
    fn close(&mut self, slot: usize, plan: &mut Plan) {
        let open = std::mem::take(&mut self.slots[slot].open);
        if open.lines.is_empty() {
            return;
        }
        let Some(mut spot) = self.record(slot, plan) else {
            return;
        };
        let mut header = ZERO_LINE;
        for (bytes, line) in header.as_chunks_mut::<8>().0.iter_mut().zip(&open.lines) {
            *bytes = line.0.to_le_bytes();
        }
        header[PER_RECORD * 8..].copy_from_slice(&(open.lines.len() as u64).to_le_bytes());
        spot.gate = plan.both(spot.gate, open.accepted);
        let valid = self.slots[slot].durable;
        let (data, from) = (At::past(&header), plan.upcoming());
        let mut log = plan.because(Cause::Log);
        let stored = (self.sealing).header(spot, data, valid, &mut self.below, &mut log);
        log.logged(from, &header);
        drop(log);
        let counts = self.sealing.counts_in_registers();
        let this = &mut self.slots[slot];
        this.headers += 1;
        let accepted = plan.both(this.durable, stored.accepted);
        let place = self.registers.place(slot);
        let dumped = this.dumped(counts);
        let durable = plan.registers(place, &dumped, accepted, &open.lines);
        this.durable = durable;
        for line in &open.lines {
            self.locks.insert(*line, WriteLock::Closed(durable));
        }
        self.counts.records += 1;
        if open.lines.len() == PER_RECORD {
            plan.exercise(&FULL_RECORD);
        }
    }

    fn entries(&mut self, found: &FoundRegisters, index: usize, plan: &mut Plan) -> Vec<LogEntry> {
        let is_last = index + 1 == found.buckets.len();
        let headers = if is_last { found.headers } else { self.records };
        let bucket = found.buckets[index];
        let mut read = (self.sealing).read(bucket, headers, &mut self.below, plan);
        read.retain(|entry| entry.line.0 < self.lines);
        read
    }
}

impl<S: Sealing> Storey for UndoLog<S> {
    stands_on_below!();

    fn recover(&mut self, plan: &mut Plan) {
        self.sealing.recover(plan);
    }

    fn undo(&mut self, plan: &mut Plan) -> Vec<Logical> {
        let mut plan = plan.because(Cause::Log);
        let (mut restored, mut cleared) = (Vec::new(), Step::PAST);
        for slot in 0..self.slots.len() {
            let Some(found) = self.registers.found(slot, &mut plan) else {
                continue;
            };
            let (place, mut accepted) = (self.registers.place(slot), Step::PAST);
            let mut entries = Vec::new();
            for index in 0..found.buckets.len() {
                entries.extend(self.entries(&found, index, &mut plan));
            }
            for LogEntry { line, old } in entries.into_iter().rev() {
                plan.handled(line, &old.value, Class::Data, Persist::CounterAtomic);
                let write = Write {
                    order: Persist::CounterAtomic,
                    ..Write::new(line, At::new(&old.value, old.at))
                };
                let stored = self.below.write(write, &mut plan);
                accepted = plan.both(accepted, stored.accepted);
                restored.push(line);
            }
            let stored = plan.write(place, At::past(&ZERO_LINE), accepted);
            cleared = plan.both(cleared, stored.accepted);
        }
        self.buckets.ready = cleared;
        self.counts.undone += restored.len() as u64;
        restored
    }

    fn unfinished(&mut self, plan: &mut Plan) -> Vec<Unfinished> {
        let mut unfinished = Vec::new();
        for slot in 0..self.slots.len() {
            let Some(found) = self.registers.found(slot, plan) else {
                continue;
            };
            let buckets = found.buckets.iter().enumerate().map(|(index, bucket)| {
                let entries = self.entries(&found, index, plan).into_iter();
                let entries = entries.map(|entry| (entry.line, entry.old.value));
                (*bucket, entries.collect())
            });
            unfinished.push(Unfinished {
                registers: slot as u64,
                transaction: found.transaction,
                headers: found.headers,
                buckets: buckets.collect(),
            });
        }
        unfinished
    }

    fn begin(&mut self, core: u32, transaction: u64, plan: &mut Plan) {
        let free = |slot: &TransactionSlot| slot.transaction == 0;
        let Some(slot) = self.slots.iter().position(free) else {
            return plan.fail(NO_REGISTERS);
        };
        self.slots[slot] = TransactionSlot {
            core,
            transaction,
            ..TransactionSlot::default()
        };
        let under_way = self.slots.iter().filter(|slot| slot.transaction != 0);
        let under_way = under_way.count() as u64;
        self.counts.most_transactions = self.counts.most_transactions.max(under_way);
    }

    fn log_old(&mut self, core: u32, line: Logical, old: At<&Line>, plan: &mut Plan) {
        let Some(slot) = self.slot_of(core) else {
            return;
        };
        let Some(spot) = self.record(slot, plan) else {
            return;
        };
        let entry = self.slots[slot].open.lines.len();
        if entry == 0 {
            self.begun += 1;
            self.slots[slot].open.number = self.begun;
            let timer = plan.wake_at(plan.now() + self.timeout);
            self.timers.insert(timer, (slot, self.begun));
        }
        let from = plan.upcoming();
        let mut log = plan.because(Cause::Log);
        let stored = (self.sealing).old(spot, entry, old, &mut self.below, &mut log);
        log.logged(from, old.value);
        drop(log);
        let this = &mut self.slots[slot];
        this.open.accepted = plan.both(this.open.accepted, stored.accepted);
        this.open.lines.push(line);
        this.logged.push(line);
        if self.locks.insert(line, WriteLock::Open(slot)).is_some() {
            plan.exercise(&LOGGED_AGAIN);
        }
        plan.lock(line);
        self.counts.entries += 1;
        if entry + 1 == PER_RECORD {
            self.close(slot, plan);
        }
    }

    fn commit(&mut self, core: u32, plan: &mut Plan) -> Stored {
        let Some(slot) = self.slot_of(core) else {
            return Stored::at(Step::PAST);
        };
        self.close(slot, plan);
        let this = std::mem::take(&mut self.slots[slot]);
        let mut done = this.durable;
        if !this.buckets.is_empty() {
            let place = self.registers.place(slot);
            done = plan.registers(place, &ZERO_LINE, done, &this.logged);
        }
        self.buckets.give(this.buckets, done);
        for line in this.logged {
            self.locks.remove(&line);
        }
        Stored::at(done)
    }

    fn wake(&mut self, timer: Timer, _now: Time, plan: &mut Plan) -> bool {
        let Some((slot, number)) = self.timers.remove(&timer) else {
            return false;
        };
        let open = &self.slots[slot].open;
        if open.number == number && !open.lines.is_empty() {
            self.counts.timed_out += 1;
            plan.exercise(&TIMED_OUT_RECORD);
            self.close(slot, plan);
        }
        true
    }

    fn forget_figures(&mut self) {
        self.counts = LogCounts::default();
        self.buckets.most = 0;
    }

    fn figures(&self, out: &mut Figures) {
        let counts = &self.counts;
        out.put(&ENTRIES, counts.entries as f64);
        out.put(&FILLED, counts.records as f64);
        out.put(&FORCED, counts.forced as f64);
        out.put(&TIMED_OUT, counts.timed_out as f64);
        out.put(&BUCKETS_MOST, self.buckets.most as f64);
        out.put(&TRANSACTIONS_MOST, counts.most_transactions as f64);
        let each = |bytes: usize| (self.slots.len() * bytes) as f64;
        out.put(&REGISTER_BYTES, each(LINE_BYTES));
        out.put(&OPEN_HEADER_BYTES, each(LINE_BYTES));
        out.put(&TIMER_BYTES, each(size_of::<u64>()));
        out.put(&RC_BYTES, self.sealing.register_bytes() as f64);
    }
}

impl<S: Sealing> Layer for UndoLog<S> {
    type Addr = Logical;

    knows_what_is_below!();

    fn read(&mut self, a: Logical, class: Class, after: Step, plan: &mut Plan) -> Fetched {
        self.below.read(a, class, after, plan)
    }

    fn write(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        if let Some(WriteLock::Open(slot)) = self.locks.get(&write.at).copied() {
            self.counts.forced += 1;
            plan.exercise(&FORCED_RECORD);
            self.close(slot, plan);
        }
        let gate = match self.locks.get(&write.at) {
            Some(WriteLock::Closed(durable)) => {
                if !plan.is_past(*durable) {
                    plan.exercise(&HELD_BACK);
                }
                plan.both(write.gate, *durable)
            }
            _ => write.gate,
        };
        self.below.write(Write { gate, ..write }, plan)
    }

    fn persist_metadata(&mut self, a: Logical, after: Step, plan: &mut Plan) -> Stored {
        self.below.persist_metadata(a, after, plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Value;

    #[test]
    fn staggered_buckets_begin_in_all_banks_and_packed_ones_where_the_last_ended() {
        let mut settings = Settings::default();
        settings.put("medium.geometry.columns", Value::Int(64));
        let pitches = |settings: &Settings| [512, 513].map(|lines| pitch(settings, lines));
        // 512 lines are eight rows of 64: with eight banks each bucket would begin in the same.
        assert_eq!(pitches(&settings), [9 * 64; 2]);
        settings.put("medium.mapping", Value::Word("dramsim2-2"));
        assert_eq!(pitches(&settings), [513; 2]);
        settings.set(&PLACEMENT, BucketPlacement::Packed);
        assert_eq!(pitches(&settings), [512, 513]);
    }
}
