//! What a run of the crash explorer has tried: mechanisms that a power cut could find a fault in, and how
//! often each was used; and the values that the run has reached. A verdict rests on these amounts. A layer
//! says which mechanisms it has.

use serde::{Serialize, Serializer};

/// Names of what is counted, each with the least amount of it that a verdict rests on (argued in
/// `docs/crash/explorer.md`); 0 where the amount is said and no verdict hangs on it.
macro_rules! amounts {
    ($(#[$about:meta])* $Type:ident {
        $($(#[doc = $doc:literal])+ $variant:ident = $name:literal, least $least:literal;)+
    }) => {
        crate::names::named! {
            $(#[$about])*
            $Type { $($(#[doc = $doc])+ $variant = $name,)+ }
        }

        impl $Type {
            /// The least amount that a verdict rests on.
            pub const fn least(self) -> u64 {
                match self {
                    $($Type::$variant => $least,)+
                }
            }
        }
    };
}

amounts! {
    /// A mechanism, by what is counted of it.
    Mechanism {
        /// A dirty line left the processor's caches by itself.
        DirtyEviction = "dirty evictions", least 30;
        /// One of them held a counter-atomic variable.
        MarkedEviction = "marked evictions", least 30;
        /// A dirty line left them because another needed its place.
        CapacityEviction = "evictions by capacity", least 30;
        /// One of those held a counter-atomic variable.
        MarkedCapacityEviction = "marked evictions by capacity", least 0;
        /// A `clwb` met an eviction of its line that was still in flight.
        JoinedEviction = "joined evictions", least 30;
        /// A write was merged with a queued one.
        Merge = "merges in queues", least 30;
        /// A read was answered from a queued write.
        Forward = "forwarded reads", least 30;
        /// A line that was read was verified against what is kept of it.
        Verified = "verified lines", least 30;
        /// A line of MACs or of nodes came into its cache, and was verified against the one above it.
        VerifiedNode = "verified nodes", least 30;
        /// A dirty line left a metadata cache by itself.
        MetadataEviction = "metadata evictions", least 30;
        /// A line of a metadata cache was written back because the program asked for it.
        MetadataWriteBack = "metadata write-backs", least 30;
        /// A mark of the global counter was written.
        CounterMark = "counter marks", least 30;
        /// All words of a line that had been written before were encrypted anew, as an epoch of it began.
        EpochBegun = "epochs begun", least 30;
        /// Words of a line kept their ciphertext in a write of it.
        WordsKept = "writes that keep words", least 30;
        /// A line of counters served a marked write after a relaxed one, or the other way round.
        MixedCounterLine = "mixed counter lines", least 30;
        /// A line of counters served another core than the last time.
        SharedCounterLine = "shared counter lines", least 30;
        /// A core changed a line that another core had changed last.
        HandedLine = "lines handed between cores", least 30;
        /// A transaction on lines that cores share began while another core was in one.
        Beside = "transactions beside another core's", least 30;
        /// A write was found to be a duplicate.
        Duplicate = "duplicates", least 30;
        /// Two contents had the same fingerprint.
        Collision = "collisions", least 30;
        /// A place became free.
        Freed = "freed places", least 30;
        /// A place that had become free was written again.
        Reused = "reused places", least 30;
        /// No place was free for a line, which gave its own up first.
        FullMedium = "writes to a full medium", least 30;
        /// A run ended because a medium or a log was full.
        EndedFull = "runs ended by what is full", least 1;
        /// A recovery found no place for a line that it puts back, and says so.
        NoRoom = "recoveries without a place", least 0;
        /// A record of the hardware log was filled.
        FullRecord = "full log records", least 30;
        /// A record got its header because a line whose entry it held was written.
        ForcedRecord = "forced log records", least 30;
        /// A record got its header because time had run out.
        TimedOutRecord = "timed-out log records", least 30;
        /// An array write paused or was cancelled for a read.
        WriteInterrupted = "interrupted array writes", least 30;
        /// A line was moved so that all wear alike.
        LineMoved = "moved lines", least 30;
        /// A transaction took a further bucket of the hardware log.
        NextBucket = "further log buckets", least 30;
        /// A recovery put a transaction back from the hardware log.
        Undone = "transactions undone by hardware", least 300;
        /// A run's requests were handled with other contents, and written to the same places: what else differs is a
        /// digest.
        OtherContents = "runs with other contents", least 10;
        /// A line of zeros was written. So of each class of contents, which a mapping may treat apart.
        ZerosWritten = "lines of zeros", least 10;
        /// A line of ones was.
        OnesWritten = "lines of ones", least 10;
        /// A line of one byte was.
        OneByteWritten = "lines of one byte", least 10;
        /// A line of one byte but for one place was.
        OneOtherWritten = "lines of one byte but for one", least 10;
        /// A line of numbers was that are close to each other.
        BasesWritten = "lines of a base and differences", least 10;
        /// A line of addresses was.
        PointersWritten = "lines of pointers", least 10;
        /// A line of letters was.
        TextWritten = "lines of text", least 10;
        /// A line of a few different bytes was.
        LowWritten = "lines of low entropy", least 10;
        /// A line was that differs from another in one bit.
        NearWritten = "lines a bit from another", least 10;
        /// A line of many different bytes was.
        HighWritten = "lines of high entropy", least 10;
        /// A line was written as it was.
        SilentStore = "silent stores", least 10;
        /// A line was written as it had been before the last time.
        WrittenAgain = "contents that come back", least 10;
        /// A power cut came after a recovery from another.
        NextLife = "cuts of a second life", least 300;
    }
}

amounts! {
    /// How far runs have come in what a fault could hang on.
    Value {
        /// Runs: one draw each of the caches' size, of delays, pauses and evictions.
        Runs = "runs", least 5;
        /// States: cuts that leave bytes that no earlier cut of their run left.
        States = "states", least 1_000;
        /// Transactions committed before a first cut.
        Transactions = "transactions", least 100;
        /// Transactions that one core has committed in one run, at most.
        LongestRun = "transactions of a core", least 20;
        /// Lives of the programs, at most: one more for each cut in the one before.
        Lives = "lives", least 2;
        /// Cores, at most.
        Cores = "cores", least 2;
        /// Different sizes of each metadata cache.
        CacheSizes = "sizes of metadata caches", least 2;
        /// Writes accepted and not in the array yet, at most.
        Queued = "writes queued", least 4;
        /// Write requests handled and not accepted yet, at most.
        Waiting = "write requests waiting", least 2;
        /// Buckets of the hardware log in use at one time, at most.
        LogBuckets = "log buckets in use", least 2;
        /// Places of a mapping in use at one time, at most.
        PlacesInUse = "places in use", least 0;
        /// The greatest encryption counter.
        Counter = "greatest counter", least 0;
        /// Attacks of each kind, with the power off and in a run: of the one that was tried least.
        Attacks = "attacks of each kind", least 20;
        /// Per cent of the medium's places that were ever written, in the fullest run.
        Places = "per cent of places", least 0;
    }
}

impl Value {
    /// Whether runs add to it; if not, the greatest counts.
    const fn adds_up(self) -> bool {
        matches!(
            self,
            Value::Runs | Value::States | Value::Transactions | Value::Attacks
        )
    }
}

/// How far the runs have come in each [`Value`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached([u64; Value::ALL.len()]);

impl Reached {
    /// Notes that `value` has been `amount`.
    pub fn reach(&mut self, value: Value, amount: u64) {
        let most = &mut self.0[value as usize];
        *most = amount.max(*most);
    }

    /// How far `value` has come.
    pub fn append(&mut self, other: &Reached) {
        for value in Value::ALL {
            match value.adds_up() {
                true => self.0[value as usize] += other.of(value),
                false => self.reach(value, other.of(value)),
            }
        }
    }

    /// How far `value` has come.
    pub fn of(&self, value: Value) -> u64 {
        self.0[value as usize]
    }
}

/// How often each mechanism was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exercised([u64; Mechanism::ALL.len()]);

impl Default for Exercised {
    fn default() -> Exercised {
        Exercised([0; Mechanism::ALL.len()])
    }
}

impl Exercised {
    /// Counts one use of `mechanism`.
    pub fn count(&mut self, mechanism: Mechanism) {
        self.add(mechanism, 1);
    }

    /// Counts `times` uses of `mechanism`.
    pub fn add(&mut self, mechanism: Mechanism, times: u64) {
        self.0[mechanism as usize] += times;
    }

    /// Adds all uses of `other`.
    pub fn append(&mut self, other: &Exercised) {
        for (mine, others) in self.0.iter_mut().zip(other.0) {
            *mine += others;
        }
    }

    /// How often `mechanism` was used.
    pub fn of(&self, mechanism: Mechanism) -> u64 {
        self.0[mechanism as usize]
    }
}

impl Mechanism {
    /// What is written, by class.
    pub const CONTENTS: [Mechanism; 12] = [
        Mechanism::ZerosWritten,
        Mechanism::OnesWritten,
        Mechanism::OneByteWritten,
        Mechanism::OneOtherWritten,
        Mechanism::BasesWritten,
        Mechanism::PointersWritten,
        Mechanism::TextWritten,
        Mechanism::LowWritten,
        Mechanism::NearWritten,
        Mechanism::HighWritten,
        Mechanism::SilentStore,
        Mechanism::WrittenAgain,
    ];
}

impl Serialize for Exercised {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Mechanism::ALL.map(|m| (m.name(), self.of(m))))
    }
}

impl Serialize for Reached {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Value::ALL.map(|v| (v.name(), self.of(v))))
    }
}
