//! What can be wrong with the software undo log's transactions, or done beyond need: what the crash
//! explorer must catch, and what it must not take for a mistake.

macro_rules! mutants {
    (
        mistakes { $($(#[doc = $meaning:literal])+ $variant:ident = $name:literal,)+ }
        locking { $($(#[doc = $lacks:literal])+ $lock:ident = $locks:literal,)+ }
        equivalent { $($(#[doc = $same:literal])+ $alike:ident = $called:literal,)+ }
        drained { $($(#[doc = $less:literal])+ $drained:ident = $named:literal,)+ }
    ) => {
        /// One change of the transaction layer: a mistake for the crash explorer to catch, or an
        /// equivalent mutant, which it must not take for one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Mutant {
            $($(#[doc = $meaning])+ $variant,)+
            $($(#[doc = $lacks])+ $lock,)+
            $($(#[doc = $same])+ $alike,)+
            $($(#[doc = $less])+ $drained,)+
        }

        impl Mutant {
            /// Every mistake in making transactions durable.
            pub const ALL: &'static [Mutant] = &[$(Mutant::$variant),+];

            /// Every mistake in keeping cores apart that share lines; none where each core has its own.
            pub const LOCKING: &'static [Mutant] = &[$(Mutant::$lock),+];

            /// Every equivalent mutant: costs more, and recovers from all that the program does.
            pub const EQUIVALENT: &'static [Mutant] = &[$(Mutant::$alike),+];

            /// Every mutant that recovers from all that the program does where reserve power drains the processor's
            /// caches, and nowhere else.
            pub const DRAINED: &'static [Mutant] = &[$(Mutant::$drained),+];

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Mutant::$variant => $name,)+
                    $(Mutant::$lock => $locks,)+
                    $(Mutant::$alike => $called,)+
                    $(Mutant::$drained => $named,)+
                }
            }

            /// What it does otherwise than it should, or more than it need.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Mutant::$variant => concat!($($meaning),+).trim_ascii(),)+
                    $(Mutant::$lock => concat!($($lacks),+).trim_ascii(),)+
                    $(Mutant::$alike => concat!($($same),+).trim_ascii(),)+
                    $(Mutant::$drained => concat!($($less),+).trim_ascii(),)+
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
    locking {
        /// Locks are given up before the changed data are flushed.
        UnlockBeforeData = "unlock-before-data",
        /// Locks are given up when the log's invalidation is flushed, before the fence.
        UnlockBeforeCommit = "unlock-before-commit",
        /// Of the locks that a transaction needs the last is not taken.
        LastLockNotTaken = "last-lock-not-taken",
    }
    equivalent {
        /// The log's entries are stored counter-atomically.
        PrepareCounterAtomic = "prepare-counter-atomic",
        /// The data are changed by counter-atomic stores.
        MutateCounterAtomic = "mutate-counter-atomic",
    }
    drained {
        /// No line is flushed, which is enough where reserve power drains the processor's caches.
        NothingFlushed = "nothing-flushed",
    }
}

impl Mutant {
    /// The mistake, or the equivalent mutant, of that name.
    pub fn named(name: &str) -> Option<Mutant> {
        let known = [
            Mutant::ALL,
            Mutant::LOCKING,
            Mutant::EQUIVALENT,
            Mutant::DRAINED,
        ];
        let mut all = known.into_iter().flatten();
        all.find(|mutant| mutant.name() == name).copied()
    }
}
