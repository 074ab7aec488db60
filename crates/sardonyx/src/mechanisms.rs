//! What a run of the crash explorer has tried: mechanisms that a power cut could find a fault in, and how
//! often each was used. A verdict rests on these counts. A layer says which mechanisms it has.

crate::names::named! {
    /// A mechanism, by what is counted of it.
    Mechanism {
        /// A dirty line left the processor's caches by itself.
        DirtyEviction = "dirty evictions",
        /// One of them held a counter-atomic variable.
        MarkedEviction = "marked evictions",
        /// A `clwb` met an eviction of its line that was still in flight.
        JoinedEviction = "joined evictions",
        /// A write was merged with a queued one.
        Merge = "merges in queues",
        /// A read was answered from a queued write.
        Forward = "forwarded reads",
        /// A dirty line left a metadata cache by itself.
        MetadataEviction = "metadata evictions",
        /// A line of a metadata cache was written back because the program asked for it.
        MetadataWriteBack = "metadata write-backs",
        /// A mark of the global counter was written.
        CounterMark = "counter marks",
        /// A line of counters served marked and relaxed writes.
        MixedCounterLine = "mixed counter lines",
        /// A line of counters served two cores.
        SharedCounterLine = "shared counter lines",
        /// A write was found to be a duplicate.
        Duplicate = "duplicates",
        /// Two contents had the same fingerprint.
        Collision = "collisions",
        /// A place became free.
        Freed = "freed places",
        /// A place that had become free was written again.
        Reused = "reused places",
        /// A record of the hardware log was filled.
        FullRecord = "full log records",
        /// A record got its header because a line whose entry it held was written.
        ForcedRecord = "forced log records",
        /// A record got its header because time had run out.
        TimedOutRecord = "timed-out log records",
        /// A transaction took a further bucket of the hardware log.
        NextBucket = "further log buckets",
        /// A recovery put a transaction back from the hardware log.
        Undone = "transactions undone by hardware",
        /// A power cut came after a recovery from another.
        NextLife = "cuts of a second life",
    }
}

/// How often each mechanism was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exercised([u64; Mechanism::ALL.len()]);

impl Exercised {
    /// Once more.
    pub fn count(&mut self, mechanism: Mechanism) {
        self.add(mechanism, 1);
    }

    /// So many times more.
    pub fn add(&mut self, mechanism: Mechanism, times: u64) {
        self.0[mechanism as usize] += times;
    }

    /// All of `other` as well.
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
