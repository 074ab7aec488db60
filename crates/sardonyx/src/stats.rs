//! Causes, and the ledger in which every latency, joule and access is booked under one.
//!
//! A purpose says what for and for whom: a compare's counter fetch is `Counter` for `Compare`.

use crate::units::{Energy, Time};

/// Why the hardware does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Cause {
    /// The program's own lines.
    Data,
    /// Computing a fingerprint.
    Fingerprint,
    /// Looking a fingerprint up, on chip or in the medium.
    Lookup,
    /// Reading a similar line and comparing it.
    Compare,
    /// Encryption counters.
    Counter,
    /// The mapping table.
    Mapping,
    /// Reference counts, inverse table and free map: what reclaiming a place needs.
    Reclaim,
    /// Computing one-time pads.
    Encryption,
    /// Log records.
    Log,
    /// Waiting for an earlier request's use of the same line.
    Hazard,
    /// Waiting to be admitted.
    Ingress,
}

impl Cause {
    /// How many causes there are.
    pub const COUNT: usize = 11;

    /// All causes, in the order of their discriminants.
    pub const ALL: [Cause; Cause::COUNT] = [
        Cause::Data,
        Cause::Fingerprint,
        Cause::Lookup,
        Cause::Compare,
        Cause::Counter,
        Cause::Mapping,
        Cause::Reclaim,
        Cause::Encryption,
        Cause::Log,
        Cause::Hazard,
        Cause::Ingress,
    ];

    /// The name used in results.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Data => "data",
            Cause::Fingerprint => "fingerprint",
            Cause::Lookup => "lookup",
            Cause::Compare => "compare",
            Cause::Counter => "counter",
            Cause::Mapping => "mapping",
            Cause::Reclaim => "reclaim",
            Cause::Encryption => "encryption",
            Cause::Log => "log",
            Cause::Hazard => "hazard",
            Cause::Ingress => "ingress",
        }
    }
}

/// What for and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purpose {
    /// What the step is.
    pub what: Cause,
    /// Whose cause it serves; the same as `what` when it serves itself.
    pub whom: Cause,
}

impl Purpose {
    /// A step that serves itself.
    pub const fn of(cause: Cause) -> Purpose {
        Purpose {
            what: cause,
            whom: cause,
        }
    }
}

/// Reads and writes, where both are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A read.
    Read,
    /// A write.
    Write,
}

/// What one purpose has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// On the critical path of reads.
    pub read_latency: Time,
    /// On the critical path of writes.
    pub write_latency: Time,
    /// Of both, the part spent waiting for a queue, a bank, the bus or a unit.
    pub wait: Time,
    /// Energy, on the critical path or not.
    pub energy: Energy,
    /// Lines read from the medium.
    pub medium_reads: u64,
    /// Lines written to the medium.
    pub medium_writes: u64,
    /// Uses of on-chip units.
    pub unit_uses: u64,
}

/// Accounts by what for and for whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    accounts: [[Account; Cause::COUNT]; Cause::COUNT],
}

impl Ledger {
    /// The account of one purpose, to be booked on.
    pub fn of(&mut self, purpose: Purpose) -> &mut Account {
        &mut self.accounts[purpose.what as usize][purpose.whom as usize]
    }

    /// The account of one purpose.
    pub fn get(&self, purpose: Purpose) -> &Account {
        &self.accounts[purpose.what as usize][purpose.whom as usize]
    }

    /// Everything done as `what`, for whomever.
    pub fn total(&self, what: Cause) -> Account {
        sum(self.accounts[what as usize].iter())
    }

    /// Everything.
    pub fn grand_total(&self) -> Account {
        sum(self.accounts.iter().flatten())
    }
}

fn sum<'a>(accounts: impl Iterator<Item = &'a Account>) -> Account {
    accounts.fold(Account::default(), |a, b| Account {
        read_latency: a.read_latency + b.read_latency,
        write_latency: a.write_latency + b.write_latency,
        wait: a.wait + b.wait,
        energy: a.energy + b.energy,
        medium_reads: a.medium_reads + b.medium_reads,
        medium_writes: a.medium_writes + b.medium_writes,
        unit_uses: a.unit_uses + b.unit_uses,
    })
}
