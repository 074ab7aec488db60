//! What every hardware log has of its transactions: buckets of lines in memory, each of which belongs to one transaction,
//! and a line of registers for each transaction, which reserve power dumps and which names its buckets.
//! Source: ATOM (HPCA 2017), as EASY-PM uses it. Left out: what lies in a bucket.

use std::collections::VecDeque;

use super::undo::{
    BUCKET_AGAIN, BUCKETS, BucketReuse, FIRST_BUCKET, MOST_BUCKETS, NEXT_BUCKET, RECORDS, REUSE,
    TRANSACTIONS,
};
use crate::exhausted::Exhausted;
use crate::line::{Line, Place, ZERO_LINE};
use crate::mechanisms::Value;
use crate::medium::layout::{Layout, Region};
use crate::plan::{Plan, Step};
use crate::settings::Settings;

/// The answer to a transaction that is one more than there are registers for.
pub const NO_REGISTERS: Exhausted = Exhausted {
    problem: "more transactions are under way than the log manager has registers for",
    remedy: "set log.transactions higher, or use fewer cores",
    key: Some(TRANSACTIONS.name()),
};

/// The buckets of a log.
pub struct Buckets {
    /// All of them.
    pub all: u64,
    /// Buckets that belong to nobody, in the order in which they will be taken, each with the step before which it must
    /// not be written.
    free: VecDeque<(u16, Step)>,
    reuse: BucketReuse,
    /// The step after which a recovery has cleared the registers.
    pub ready: Step,
    /// Buckets that transactions held at one time, at most.
    pub most: u64,
}

impl Buckets {
    /// The buckets of the settings, all of them free.
    pub fn new(settings: &Settings) -> Buckets {
        let all = settings.get(&BUCKETS);
        Buckets {
            all,
            free: (0..all)
                .map(|index| (settings.get(&FIRST_BUCKET) + index) % all)
                .map(|bucket| (bucket as u16, Step::PAST))
                .collect(),
            reuse: settings.get(&REUSE),
            ready: Step::PAST,
            most: 0,
        }
    }

    /// Gives a transaction that has the buckets `held` one more. Returns it, and the step before which it must not be
    /// written; `None`, after failing the plan, if there is none or registers cannot name it.
    pub fn take(&mut self, held: &mut Vec<u16>, plan: &mut Plan) -> Option<(u16, Step)> {
        if held.len() as u64 == MOST_BUCKETS {
            plan.fail(Exhausted {
                problem: "a transaction changes more lines than its log registers can name",
                remedy: "set log.records higher, or make shorter transactions",
                key: Some(RECORDS.name()),
            });
            return None;
        }
        let Some((bucket, after)) = self.free.pop_front() else {
            plan.fail(Exhausted {
                problem: "the hardware log is full",
                remedy: "set log.buckets or log.records higher",
                key: None,
            });
            return None;
        };
        if !held.is_empty() {
            plan.exercise(&NEXT_BUCKET);
        }
        if after != Step::PAST {
            plan.exercise(&BUCKET_AGAIN);
        }
        let gate = plan.both(after, self.ready);
        held.push(bucket);
        let taken = self.all - self.free.len() as u64;
        self.most = self.most.max(taken);
        plan.reach(Value::LogBuckets, taken);
        Some((bucket, gate))
    }

    /// Takes buckets back, which may be written again after `done`.
    pub fn give(&mut self, held: Vec<u16>, done: Step) {
        let freed = held.into_iter().map(|bucket| (bucket, done));
        match self.reuse {
            BucketReuse::Fifo => self.free.extend(freed),
            BucketReuse::Lifo => freed.rev().for_each(|one| self.free.push_front(one)),
        }
    }
}

/// The line that reserve power dumps of the registers of the core's transaction numbered `transaction`, which has
/// `buckets`, the oldest first, with so many `headers` in the last; the log's lines may be known by `number`.
pub fn dumped(transaction: u64, headers: u64, buckets: &[u16], number: u64) -> Line {
    let mut line = ZERO_LINE;
    line[..8].copy_from_slice(&transaction.to_le_bytes());
    line[8..16].copy_from_slice(&headers.to_le_bytes());
    line[16..24].copy_from_slice(&(buckets.len() as u64).to_le_bytes());
    for (bytes, bucket) in line[24..].chunks_mut(2).zip(buckets) {
        bytes.copy_from_slice(&bucket.to_le_bytes());
    }
    line[56..].copy_from_slice(&number.to_le_bytes());
    line
}

/// A transaction's registers, as a cut has left them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundRegisters {
    /// The number of the core's transaction; 0 for none.
    pub transaction: u64,
    /// Headers of the last bucket, if the registers count them.
    pub headers: u64,
    /// The buckets, oldest first.
    pub buckets: Vec<u16>,
    /// The number of the transaction among all that these registers have had, if the log's lines are known by it.
    pub number: u64,
}

impl FoundRegisters {
    /// Parses a line; `None` if no transaction was under way, or none of its entries was in the log.
    fn parse(line: &Line, buckets: u64, records: u64) -> Option<FoundRegisters> {
        let word = |at: usize| u64::from_le_bytes(line[at..at + 8].try_into().expect("8 bytes"));
        let (transaction, headers, count) = (word(0), word(8), word(16));
        if transaction == 0 || headers > records || count > MOST_BUCKETS {
            return None;
        }
        let named = line[24..].as_chunks::<2>().0.iter().take(count as usize);
        let named: Vec<u16> = named.map(|bytes| u16::from_le_bytes(*bytes)).collect();
        let exist = named.iter().all(|bucket| u64::from(*bucket) < buckets);
        exist.then_some(FoundRegisters {
            transaction,
            headers,
            buckets: named,
            number: word(56),
        })
    }
}

/// The places of all registers.
pub struct RegisterLines {
    region: Region,
    buckets: u64,
    records: u64,
}

impl RegisterLines {
    /// Reserves a line for each of so many transactions, whose registers name so many buckets and count so many headers.
    pub fn new(layout: &mut Layout, transactions: u64, buckets: u64, records: u64) -> Self {
        RegisterLines {
            region: layout.reserve("log-registers", transactions),
            buckets,
            records,
        }
    }

    /// The place of the registers numbered `slot`.
    pub fn place(&self, slot: usize) -> Place {
        self.region.line(slot as u64)
    }

    /// The registers of `slot` as a cut has left them, if it found a transaction there.
    pub fn found(&self, slot: usize, plan: &mut Plan) -> Option<FoundRegisters> {
        let dumped = plan.scan(self.place(slot)).unwrap_or(ZERO_LINE);
        FoundRegisters::parse(&dumped, self.buckets, self.records)
    }

    /// The number of the last transaction that the registers of `slot` have had.
    pub fn number(&self, slot: usize, plan: &mut Plan) -> u64 {
        let dumped = plan.scan(self.place(slot)).unwrap_or(ZERO_LINE);
        u64::from_le_bytes(dumped[56..].try_into().expect("8 bytes"))
    }
}
