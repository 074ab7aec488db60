//! What a program is: setup, transactions, recovery, and a check of what recovery leaves.
//! Left out: the structures themselves, each in a file of its own.

use std::fmt;

use super::Memory;

/// A program to run on one core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSpec {
    /// Its name: `array-swap`, `queue`, `hash`, `btree` or `rbtree`.
    pub name: String,
    /// Bytes of an item, the payload of one transaction; a multiple of 64 up to 4096.
    pub item_bytes: u64,
    /// Bytes of the structure after setup.
    pub footprint: u64,
    /// Transactions that will be run; room for what they insert is set aside.
    pub transactions: u64,
    /// Of keys, contents and choices.
    pub seed: u64,
    /// What is wrong with its transactions, or done beyond need.
    pub mutant: Option<Mutant>,
}

/// A persistent program: one structure in a region of its own.
pub trait Program: Send {
    /// Bytes of the region that it uses, its log included; addresses are below.
    fn region_bytes(&self) -> u64;

    /// Bytes of the region that hold the undo log.
    fn log_bytes(&self) -> std::ops::Range<u64>;

    /// Makes the structure, filled to the footprint, in a region of zeros.
    fn setup(&mut self, memory: &mut dyn Memory);

    /// Runs transaction `number`, the first being 1.
    fn transaction(&mut self, number: u64, memory: &mut dyn Memory);

    /// What the program does first after a power cut: rolls back what was under way. Knows
    /// nothing but the bytes.
    ///
    /// # Errors
    /// The log's bytes make no sense.
    fn recover(&self, memory: &mut dyn Memory) -> Result<Recovered, Fault>;

    /// Whether the structure's invariants hold, from the bytes alone; reads all of it.
    ///
    /// # Errors
    /// The first that does not.
    fn check(&self, memory: &mut dyn Memory) -> Result<(), Fault>;
}

/// What recovery found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The last transaction that is visible, 0 for none.
    pub visible: u64,
    /// Lines put back from the undo log.
    pub restored: u64,
}

/// Something that may not be: what, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Byte address in the region.
    pub at: u64,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "at byte {:#x} (line {}): {}",
            self.at,
            self.at / 64,
            self.what
        )
    }
}

macro_rules! mutants {
    (
        mistakes { $($(#[doc = $meaning:literal])+ $variant:ident = $name:literal,)+ }
        equivalent { $($(#[doc = $same:literal])+ $alike:ident = $called:literal,)+ }
    ) => {
        /// One change of the transaction layer: a mistake for the crash explorer to catch, or an
        /// equivalent mutant, which it must not take for one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Mutant {
            $($(#[doc = $meaning])+ $variant,)+
            $($(#[doc = $same])+ $alike,)+
        }

        impl Mutant {
            /// Every mistake.
            pub const ALL: &'static [Mutant] = &[$(Mutant::$variant),+];

            /// Every equivalent mutant: costs more, and recovers from all that the program does.
            pub const EQUIVALENT: &'static [Mutant] = &[$(Mutant::$alike),+];

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Mutant::$variant => $name,)+
                    $(Mutant::$alike => $called,)+
                }
            }

            /// What it does otherwise than it should, or more than it need.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Mutant::$variant => concat!($($meaning),+).trim_ascii(),)+
                    $(Mutant::$alike => concat!($($same),+).trim_ascii(),)+
                }
            }
        }
    };
}

mutants! {
    mistakes {
        /// The log's entries are not flushed.
        LogNotFlushed = "log-not-flushed",
        /// The last line of the log's entries is not flushed.
        LastLogLineNotFlushed = "last-log-line-not-flushed",
        /// The valid flag is not flushed.
        ValidNotFlushed = "valid-not-flushed",
        /// The changed data are not flushed.
        DataNotFlushed = "data-not-flushed",
        /// The last changed line is not flushed.
        LastDataLineNotFlushed = "last-data-line-not-flushed",
        /// No fence between the log's entries and the valid flag.
        NoFenceAfterLog = "no-fence-after-log",
        /// No fence between the valid flag and the changes.
        NoFenceAfterValid = "no-fence-after-valid",
        /// No fence between the changes and the log's invalidation.
        NoFenceAfterData = "no-fence-after-data",
        /// No fence at the end.
        NoFenceAfterCommit = "no-fence-after-commit",
        /// The log's counters are not written back.
        NoCountersAfterLog = "no-counters-after-log",
        /// The data's counters are not written back.
        NoCountersAfterData = "no-counters-after-data",
        /// The valid flag is set by a plain store.
        ValidNotCounterAtomic = "valid-not-counter-atomic",
        /// The log is invalidated by a plain store.
        CommitNotCounterAtomic = "commit-not-counter-atomic",
        /// The valid flag is set before the entries are written.
        ValidBeforeLog = "valid-before-log",
        /// The data are changed before the log is written.
        DataBeforeLog = "data-before-log",
        /// The log is invalidated before the data are flushed.
        CommitBeforeData = "commit-before-data",
        /// The log holds the new values.
        LogsNewValues = "logs-new-values",
        /// The log lacks the last changed line.
        LogsOneLineLess = "logs-one-line-less",
    }
    equivalent {
        /// The log's entries are stored counter-atomically.
        PrepareCounterAtomic = "prepare-counter-atomic",
        /// The data are changed by counter-atomic stores.
        MutateCounterAtomic = "mutate-counter-atomic",
    }
}

impl Mutant {
    /// The mistake, or the equivalent mutant, of that name.
    pub fn named(name: &str) -> Option<Mutant> {
        let mut all = Mutant::ALL.iter().chain(Mutant::EQUIVALENT);
        all.find(|mutant| mutant.name() == name).copied()
    }
}
