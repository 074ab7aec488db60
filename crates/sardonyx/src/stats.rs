//! Causes, and the ledger in which every latency, joule and access is booked under one.
//!
//! A purpose says what for and for whom: a compare's counter fetch is `Counter` for `Compare`.

use crate::units::{Energy, Time};

crate::names::named! {
    /// Why the hardware does something.
    #[derive(Default)]
    Cause {
        /// The program's own lines.
        #[default]
        Data = "data",
        /// Computing a fingerprint.
        Fingerprint = "fingerprint",
        /// Looking a fingerprint up, on chip or in the medium.
        Lookup = "lookup",
        /// Reading a similar line and comparing it.
        Compare = "compare",
        /// Encryption counters.
        Counter = "counter",
        /// The mapping table.
        Mapping = "mapping",
        /// Reference counts, inverse table and free map: what reclaiming a place needs.
        Reclaim = "reclaim",
        /// Computing one-time pads.
        Encryption = "encryption",
        /// Records of a hardware log, and what a recovery puts back from it.
        Log = "log",
        /// Computing, reading and writing what shows that lines are what was last written.
        Integrity = "integrity",
        /// Crossing the link between the processor and the memory.
        Link = "link",
        /// Moving lines so that all wear alike.
        Levelling = "levelling",
        /// Bringing lines into the near medium and out of it.
        Near = "near",
        /// Waiting for an earlier request's use of the same line.
        Hazard = "hazard",
        /// Waiting to be admitted.
        Ingress = "ingress",
    }
}

/// The work of a step, and its purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purpose {
    /// The work itself: the fetch of a counter is `Counter`, whatever it serves.
    pub what: Cause,
    /// The cause that the work serves, which is `what` if it serves itself.
    pub whom: Cause,
}

impl Purpose {
    /// A step that serves itself.
    pub const fn new(cause: Cause) -> Purpose {
        Purpose {
            what: cause,
            whom: cause,
        }
    }
}

/// Reads or writes, in statistics that separate them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Direction {
    /// A read.
    Read,
    /// A write.
    Write,
}

/// The costs of one purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// On the critical path of reads.
    pub read_latency: Time,
    /// On the critical path of writes.
    pub write_latency: Time,
    /// The part of both latencies that was spent waiting for a queue, a bank, the bus or a unit.
    pub wait: Time,
    /// Energy, on the critical path or not.
    pub energy: Energy,
    /// Lines read from the medium.
    pub medium_reads: u64,
    /// Lines written to the medium.
    pub medium_writes: u64,
    /// Lines read from the near medium.
    pub near_reads: u64,
    /// Lines written to the near medium.
    pub near_writes: u64,
    /// Uses of on-chip units.
    pub unit_uses: u64,
}

/// Accounts by [`Purpose`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    accounts: [[Account; Cause::ALL.len()]; Cause::ALL.len()],
}

impl Ledger {
    /// The account of one purpose, mutable.
    pub fn of(&mut self, purpose: Purpose) -> &mut Account {
        &mut self.accounts[purpose.what as usize][purpose.whom as usize]
    }

    /// The account of one purpose.
    pub fn get(&self, purpose: Purpose) -> &Account {
        &self.accounts[purpose.what as usize][purpose.whom as usize]
    }

    /// The sum of all accounts of this work.
    pub fn total(&self, what: Cause) -> Account {
        sum(self.accounts[what as usize].iter())
    }

    /// The latency of this work, for each other cause that it served.
    pub fn served(&self, what: Cause) -> impl Iterator<Item = (Cause, Time)> {
        let others = Cause::ALL.into_iter().filter(move |whom| *whom != what);
        let latency = move |whom| {
            let part = self.get(Purpose { what, whom });
            (whom, part.read_latency + part.write_latency)
        };
        others
            .map(latency)
            .filter(|(_, latency)| *latency > Time::ZERO)
    }

    /// Adds all accounts of `other`.
    pub fn add(&mut self, other: &Ledger) {
        let own = self.accounts.iter_mut().flatten();
        for (own, other) in own.zip(other.accounts.iter().flatten()) {
            *own = sum([&*own, other].into_iter());
        }
    }

    /// Replaces the latencies by those of `later`, which include requests answered in the meantime.
    pub fn answered(&mut self, later: &Ledger) {
        let own = self.accounts.iter_mut().flatten();
        for (own, later) in own.zip(later.accounts.iter().flatten()) {
            own.read_latency = later.read_latency;
            own.write_latency = later.write_latency;
            own.wait = later.wait;
        }
    }

    /// Divides every amount by `by`, rounding down.
    pub fn divided(mut self, by: u64) -> Ledger {
        for own in self.accounts.iter_mut().flatten() {
            *own = Account {
                read_latency: Time::from_ps(own.read_latency.ps() / by),
                write_latency: Time::from_ps(own.write_latency.ps() / by),
                wait: Time::from_ps(own.wait.ps() / by),
                energy: Energy::from_fj(own.energy.fj() / by),
                medium_reads: own.medium_reads / by,
                medium_writes: own.medium_writes / by,
                near_reads: own.near_reads / by,
                near_writes: own.near_writes / by,
                unit_uses: own.unit_uses / by,
            };
        }
        self
    }

    /// The sum of all accounts.
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
        near_reads: a.near_reads + b.near_reads,
        near_writes: a.near_writes + b.near_writes,
        unit_uses: a.unit_uses + b.unit_uses,
    })
}
