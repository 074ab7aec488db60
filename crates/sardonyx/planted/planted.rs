//! Faults that a test plants in the simulator, one at a time, to see whether the crash explorer
//! catches it. The simulator has none of them: `faults.patch` puts them into a copy of its sources, whose
//! module `planted` this file is (`tools/planted.py`). `docs/crash-mutants.md` has what caught each.
//! Left out: mistakes in programs, which are [`crate::workload::Mutant`]s.

use std::sync::atomic::{AtomicUsize, Ordering};

macro_rules! faults {
    ($($(#[doc = $wrong:literal])+ $variant:ident = $name:literal,)+) => {
        /// One thing that is wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Fault {
            $($(#[doc = $wrong])+ $variant,)+
        }

        impl Fault {
            /// All, in order.
            pub const ALL: &'static [Fault] = &[$(Fault::$variant),+];

            /// Its name in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Fault::$variant => $name,)+
                }
            }

            /// What is wrong.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Fault::$variant => concat!($($wrong),+).trim_ascii(),)+
                }
            }
        }
    };
}

faults! {
    // Only a rare schedule shows them.
    /// A write-back of a clean line does not wait where several writes of it are in flight.
    CrowdNotAwaited = "crowd-not-awaited",
    /// A line that leaves the caches while several wait to be taken is dropped.
    CrowdDropped = "crowd-dropped",
    /// A marked line that leaves the caches while several wait to be taken forgets that.
    CrowdMarkLost = "crowd-mark-lost",
    /// A dirty line of counters that is evicted while it is on its way already is dropped.
    CounterOnItsWayDropped = "counter-on-its-way-dropped",
    /// A counter waits for the mark before its own while both are on their way.
    TwoMarksUnderWay = "two-marks-under-way",
    /// A read of a line in flight has the array's bytes, if another read of it is on its way.
    ForwardBesideRead = "forward-beside-read",
    /// A write may reach the array before an older one of its line, if a read of it is on its way.
    ArrayBesideRead = "array-beside-read",

    // What is full.
    /// In a full medium a line's place is free although others share it.
    FullGivesShared = "full-gives-shared",
    /// If no place is free a line goes to its own, whoever is there.
    FullWritesOver = "full-writes-over",
    /// A transaction that finds the log full takes its first bucket again.
    LogFullBegunAgain = "log-full-begun-again",
    /// A line that leaves the caches for want of room forgets that it was stored to by a marked store.
    CapacityMarkLost = "capacity-mark-lost",
    /// A line that leaves the caches for want of room loses its last word.
    CapacityLastWord = "capacity-last-word",
    /// Recovery fills the free map with digests of contents.
    RebuildShowsDigest = "rebuild-shows-digest",

    // Cores that share lines.
    /// A store to a line that another core has too does not make it dirty.
    SharedStoreClean = "shared-store-clean",
    /// A store leaves the line in the private levels of other cores, which find it where it was.
    SharedStoreStays = "shared-store-stays",
    /// Old lines go to the record of whichever core is in a transaction.
    LogSlotOfAnyCore = "log-slot-of-any-core",
    /// All transactions have one line of registers.
    LogOneSlot = "log-one-slot",
    /// A commit lets the lines go that other cores have logged.
    LogLocksAllCleared = "log-locks-all-cleared",
    /// A line counts as logged if another core has logged it in its last transaction.
    LogBitOfLine = "log-bit-of-line",
    /// Recovery rolls back the first core's log alone.
    RecoverFirstLogOnly = "recover-first-log-only",
    /// Cores go on while another recovers.
    RecoveryNotAwaited = "recovery-not-awaited",
    /// Locks are given up when the commit begins.
    LockGivenUpAtCommit = "lock-given-up-at-commit",
    /// The numbers of all cores' last transactions stand in one word.
    NumberShared = "number-shared",

    // Integrity.
    /// The MAC does not depend on the place.
    MacWithoutPlace = "mac-without-place",
    /// The MAC is of the first half of the line.
    MacHalfLine = "mac-half-line",
    /// The MAC is not of what lies beside the line.
    MacWithoutBeside = "mac-without-beside",
    /// The MAC has one byte.
    MacOneByte = "mac-one-byte",
    /// The MAC is of the exclusive or of the line's words.
    MacXorWords = "mac-xor-words",
    /// Lines of tables, counters and logs are not verified.
    MacTablesUnverified = "mac-tables-unverified",
    /// Lines of data are not verified, others are.
    MacDataUnverified = "mac-data-unverified",
    /// The MAC is not in one group with its line.
    MacNotGrouped = "mac-not-grouped",
    /// The MAC is of zeros beside the line, whatever is written there.
    MacOldBeside = "mac-old-beside",
    /// Reserve power makes no MAC of what it dumps.
    MacDumpForgotten = "mac-dump-forgotten",
    /// The register does not follow what reserve power dumps.
    RootIgnoresDumps = "root-ignores-dumps",
    /// The register follows one acceptance late.
    RootOneBehind = "root-one-behind",
    /// Lines of MACs are not verified when they come into the cache.
    LeafUnverified = "leaf-unverified",
    /// A node's hash is of the first half of the line below.
    HashHalfLine = "hash-half-line",
    /// A node's hash is of the number alone of every other line of MACs.
    OddLeavesUnhashed = "odd-leaves-unhashed",
    /// A recovery does not compare with the register.
    RebuildUnchecked = "rebuild-unchecked",
    /// A recovery leaves the nodes in the medium as they are.
    RebuildKeepsNodes = "rebuild-keeps-nodes",

    // Bonsai trees.
    /// The MAC under a version does not depend on the place.
    VersionedWithoutPlace = "versioned-without-place",
    /// The MAC does not depend on the version.
    VersionNotInMac = "version-not-in-mac",
    /// Of the version, one bit goes into the MAC.
    VersionParityInMac = "version-parity-in-mac",
    /// The MAC under a version is of the first half of the line.
    VersionedHalfLine = "versioned-half-line",
    /// The MAC under a version is not of what lies beside the line.
    VersionedWithoutBeside = "versioned-without-beside",
    /// The MAC under a version has one byte.
    VersionedOneByte = "versioned-one-byte",
    /// A version is not counted on after its first write.
    VersionCountedOnce = "version-counted-once",
    /// Lines of versions are not verified when they come into the cache.
    VersionsUnverified = "versions-unverified",
    /// Over a Bonsai tree, lines of tables, counters and logs are not verified.
    VersionedTablesUnverified = "versioned-tables-unverified",
    /// Over a Bonsai tree, lines of data are not verified, others are.
    VersionedDataUnverified = "versioned-data-unverified",
    /// Of lines that are written as one, the first one's path alone is computed.
    PathOfFirstAlone = "path-of-first-alone",
    /// Where paths are merged, all but one are dropped above the lowest level.
    CoalescedDropsPath = "coalesced-drops-path",
    /// Over a Bonsai tree, the MAC is not in one group with its line.
    VersionedMacNotGrouped = "versioned-mac-not-grouped",
    /// The version is not in one group with its line.
    VersionNotGrouped = "version-not-grouped",
    /// The nodes of a strict tree are not in one group with the line.
    NodesNotGrouped = "nodes-not-grouped",
    /// A line of versions carries some whose lines are not accepted.
    SiblingsRideAlong = "siblings-ride-along",
    /// Versions and nodes that leave the cache do not wait for the lines that they are about.
    EvictedEarly = "evicted-early",
    /// A recovery of versions does not compare with the register.
    VersionsUncompared = "versions-uncompared",
    /// A recovery leaves the nodes above versions as they are.
    RewriteForgotten = "rewrite-forgotten",
    /// A recovery writes the lowest of the levels that it makes anew alone.
    RewriteLowestAlone = "rewrite-lowest-alone",
    /// A recovery tries one version too few.
    TrialOneShort = "trial-one-short",
    /// Where a minor number overflows, the other lines keep their MACs.
    OverflowForgetsOthers = "overflow-forgets-others",
    /// Versions that a recovery has found are not written.
    FoundNotWritten = "found-not-written",
    /// The stop-loss looks at the first version of a line alone.
    StopLossOfFirst = "stop-loss-of-first",
    /// A recovery finds versions of lines alone whose versions memory has some of.
    RestoresKnownAlone = "restores-known-alone",
    /// One level fewer persists than a recovery begins at.
    LevelTooFew = "level-too-few",
    /// The table of what the cache has alone names no nodes.
    NodesNotNamed = "nodes-not-named",
    /// An entry is written over before what it names is written back.
    NamedOverEarly = "named-over-early",
    /// The table of what the cache has alone is not written.
    NamesForgotten = "names-forgotten",
    /// An entry of that table is not in one group with the line.
    NamesNotGrouped = "names-not-grouped",
    /// Nodes that the table names are left as they are.
    NamedNotRemade = "named-not-remade",
    /// Nodes that the table names are made anew from the top down.
    RemadeFromTop = "remade-from-top",
    /// The register follows versions when their lines are accepted, not when the MACs are.
    RootWaitsForVersions = "root-waits-for-versions",
    /// The register of a Bonsai tree is one acceptance behind.
    RootKeepsLast = "root-keeps-last",
    /// Reserve power writes no nodes of what it dumps.
    DumpForgetsNodes = "dump-forgets-nodes",
    /// What a run has written of versions and nodes goes over what reserve power has made.
    DumpNotPutBack = "dump-not-put-back",
    /// Over a Bonsai tree, reserve power makes no MAC of what it dumps.
    DumpForgetsMac = "dump-forgets-mac",

    /// A line's MAC in a counter tree does not depend on its place.
    SgxMacWithoutPlace = "sgx-mac-without-place",
    /// A line's MAC in a counter tree does not depend on its version.
    SgxMacWithoutVersion = "sgx-mac-without-version",
    /// A version stays what it was when its line is written again.
    SgxVersionStays = "sgx-version-stays",
    /// Nodes of versions are not verified when they come into the cache.
    SgxVersionsUnverified = "sgx-versions-unverified",
    /// Nodes of counters above them are not.
    SgxCountersUnverified = "sgx-counters-unverified",
    /// The last counter of each node is not in the sum above.
    SgxSumSkipsLast = "sgx-sum-skips-last",
    /// A recovery does not compare the sums with the register.
    SgxSumsUnchecked = "sgx-sums-unchecked",
    /// The version is not in one group with its line.
    SgxVersionNotGrouped = "sgx-version-not-grouped",
    /// The register follows one version late.
    SgxRegisterOneBehind = "sgx-register-one-behind",
    /// A recovery leaves the counters in the medium as they are.
    SgxNodesKept = "sgx-nodes-kept",
    /// Reserve power does not count the versions of what it dumps.
    SgxDumpForgotten = "sgx-dump-forgotten",

    // Pads.
    /// One pad for all.
    PadConstant = "pad-constant",
    /// The pad does not depend on the place.
    PadWithoutPlace = "pad-without-place",
    /// The pad does not depend on the counter.
    PadWithoutCounter = "pad-without-counter",
    /// The pad does not depend on the key: what would be encrypted is the pad.
    PadWithoutKey = "pad-without-key",
    /// The four blocks of a pad are the same.
    PadBlocksAlike = "pad-blocks-alike",
    /// Of the counter, the low byte goes into the pad.
    PadCounterTruncated = "pad-counter-truncated",
    /// Of the counter, 16 bits go into the pad.
    PadCounter16 = "pad-counter-16",
    /// Of the counter, 32 bits go into the pad.
    PadCounter32 = "pad-counter-32",
    /// Of the counter, 48 bits go into the pad.
    PadCounter48 = "pad-counter-48",
    /// Of the place, 16 bits go into the pad.
    PadPlace16 = "pad-place-16",
    /// Of the place, 32 bits go into the pad.
    PadPlace32 = "pad-place-32",
    /// The low four bytes of each word of the pad do not depend on the counter.
    PadLowWithoutCounter = "pad-low-without-counter",
    /// The low four bytes of each word of the pad do not depend on the place.
    PadLowWithoutPlace = "pad-low-without-place",
    /// The low four bytes of each word of the pad do not depend on the key.
    PadLowWithoutKey = "pad-low-without-key",
    /// The last four bytes of a line are not covered.
    PadFourBytesClear = "pad-four-bytes-clear",
    /// The upper four bytes of each word of the pad are the lower four.
    PadRepeatsInWord = "pad-repeats-in-word",

    // Counters in lines of their own.
    /// A marked write drops its siblings' dirty bits.
    SiblingsForgotten = "siblings-forgotten",
    /// The same, but only while the line of counters is on its way to memory.
    SiblingsForgottenInFlight = "siblings-forgotten-in-flight",
    /// A counter write-back is not awaited.
    CounterWriteBackNotAwaited = "counter-write-back-not-awaited",
    /// A counter may leave the chip before its line is accepted.
    CounterBeforeData = "counter-before-data",
    /// A marked write and its counter are no group.
    PairNotGrouped = "pair-not-grouped",
    /// The same, but only if the counter has missed the cache.
    PairNotGroupedOnMiss = "pair-not-grouped-on-miss",
    /// Log lines are not counter-atomic.
    LogsNotPaired = "logs-not-paired",
    /// A marked write does not write its counter if the line of counters is on its way already.
    PairSkippedInFlight = "pair-skipped-in-flight",
    /// A read decrypts with the counter that the medium has, not with the cache's.
    StaleCounterRead = "stale-counter-read",

    /// Two bytes of a counter are kept.
    CounterStored16 = "counter-stored-16",
    /// Four bytes of a counter are kept.
    CounterStored32 = "counter-stored-32",

    // The global counter and its mark.
    /// Four bytes of the mark are written.
    MarkStoredShort = "mark-stored-short",
    /// Recovery reads four bytes of the mark.
    CounterRecoveredShort = "counter-recovered-short",
    /// A counter is used before its mark is written.
    MarkNotAwaited = "mark-not-awaited",
    /// A counter beyond a mark waits for the mark before that.
    MarkBeforeAwaited = "mark-before-awaited",
    /// The mark is half a stride lower than the counters that are used under it.
    MarkTooLow = "mark-too-low",
    /// Recovery goes on a stride below the mark.
    MarkRecoveredLow = "mark-recovered-low",
    /// Recovery takes a new mark for written.
    MarkNotRenewed = "mark-not-renewed",

    // Counters beside their lines.
    /// Four bytes of a counter are kept beside its line.
    SidebandShort = "sideband-short",
    /// The CRC-32 of the content lies beside a line, with four bytes of its counter.
    SidebandShowsDigest = "sideband-shows-digest",
    /// A line that is written again while it is in flight keeps the counter beside it.
    SidebandOfOlder = "sideband-of-older",
    /// A write that is merged in its queue leaves the older counter beside the line.
    SidebandLostOnMerge = "sideband-lost-on-merge",
    /// A line that is written again while it is in flight is encrypted under the counter that it has.
    CounterKeptInFlight = "counter-kept-in-flight",

    // Caches of metadata.
    /// A dirty line of counters that is evicted is dropped.
    EvictedCounterDropped = "evicted-counter-dropped",
    /// A dirty line of mappings that is evicted is dropped.
    EvictedMappingDropped = "evicted-mapping-dropped",
    /// An eviction writes the first dirty word and forgets the others.
    EvictionOneWord = "eviction-one-word",
    /// An eviction does not wait for what its line points at.
    EvictionUnripe = "eviction-unripe",
    /// A write-back of a clean line does not wait for the eviction in flight.
    PersistIgnoresFlight = "persist-ignores-flight",
    /// Of a change that spans two words only the first is dirty.
    SecondWordForgotten = "second-word-forgotten",

    // The engine.
    /// A read of a line in flight has the array's bytes.
    StaleForward = "stale-forward",
    /// A read of a line in flight has the newest write's words over the array's, and no other write's.
    ForwardOwnWordsOnly = "forward-own-words-only",
    /// A write may reach the array before an older one of its line.
    ArrayOutOfOrder = "array-out-of-order",
    /// A write that is merged in its queue does not bring its words to the array.
    MergeLosesWords = "merge-loses-words",
    /// The members of a group are accepted one after the other.
    GroupTakenApart = "group-taken-apart",

    // ESD, and what the mapping designs share.
    /// A similar line is taken for the same.
    EsdComparisonSkipped = "esd-comparison-skipped",
    /// Of a similar line the first half is compared.
    EsdComparesHalf = "esd-compares-half",
    /// A place is freed while one line still refers to it.
    SharedFreedEarly = "shared-freed-early",
    /// The fingerprint table still names a place that has been freed.
    EfitKeepsFreed = "efit-keeps-freed",
    /// Recovery trusts the reference counts.
    CountsTrusted = "counts-trusted",
    /// Recovery overlooks the last entry of each line of the mapping table.
    RecoveryForgetsEntry = "recovery-forgets-entry",
    /// A mapping may leave the chip before its line is accepted.
    MappingBeforeLine = "mapping-before-line",
    /// The mapping of a duplicate does not persist with it.
    DuplicateNotPersisted = "duplicate-not-persisted",
    /// A place is written again before its old line's mapping has persisted.
    PlaceNotAwaited = "place-not-awaited",
    /// A place that was shared waits for the last unmapping and not for those before.
    LetGoForgotten = "let-go-forgotten",
    /// A freed place that its own line has taken is given to another as well.
    FreedGivenTwice = "freed-given-twice",
    /// A write-back of mappings stops at the end of a line of the table.
    SpanOneTable = "span-one-table",
    /// An entry of the mapping table is read as three bytes.
    MappingShort = "mapping-short",
    /// An entry of the mapping table is read as four bytes.
    MappingFourBytes = "mapping-four-bytes",
    /// A write-back of counters takes the lines' own places for those where they lie.
    SpanCountersOfHome = "span-counters-of-home",

    // Full deduplication.
    /// Equal fingerprints are taken for equal contents.
    FullComparisonSkipped = "full-comparison-skipped",
    /// A line encrypted ahead that turns out to be a duplicate is written to its own place.
    WastedEncryptionWritten = "wasted-encryption-written",
    /// A count of the index that would be full begins anew at one.
    IndexCountWraps = "index-count-wraps",
    /// The first entry of a bucket loses the reference, whosever it is.
    UnreferFirstSlot = "unrefer-first-slot",
    /// A place is free once its line is mapped elsewhere, be it persistent or not.
    FreedBeforeMapped = "freed-before-mapped",
    /// Recovery counts one line at every place.
    RebuildCountsOne = "rebuild-counts-one",
    /// Recovery leaves what is in the index there.
    RebuildKeepsIndex = "rebuild-keeps-index",
    /// Recovery takes the places of lines that share with nobody for free.
    RebuildForgetsUnshared = "rebuild-forgets-unshared",

    // Zero lines.
    /// A bit is cleared before its line is accepted.
    ZeroBitBeforeLine = "zero-bit-before-line",
    /// Bits are not written back on demand.
    ZeroBitsNotWrittenBack = "zero-bits-not-written-back",

    // The processor's caches, and what stands between them and memory.
    /// An evicted line forgets that it was stored to by a marked store.
    EvictedMarkLost = "evicted-mark-lost",
    /// A line that was stored to by a marked store is not written when it is evicted.
    EvictedMarkedDropped = "evicted-marked-dropped",
    /// A write-back of a clean line does not wait for the write of it in flight.
    WriteBackIgnoresFlight = "write-back-ignores-flight",
    /// The same, but only for evictions that memory has not taken yet.
    WriteBackIgnoresVictims = "write-back-ignores-victims",
    /// A fence passes while one write is not accepted.
    FenceOneShort = "fence-one-short",
    /// A fence counts the writes that it waits for in six bits.
    FenceCountWraps = "fence-count-wraps",

    // The programs' recovery.
    /// The last entry of the log is not put back.
    UndoForgetsEntry = "undo-forgets-entry",
    /// Lines that are put back are not flushed.
    UndoNotFlushed = "undo-not-flushed",
    /// The counters of lines that are put back are not written back.
    UndoWithoutCounters = "undo-without-counters",
    /// No fence between the lines that are put back and the log's header.
    UndoWithoutFence = "undo-without-fence",
    /// The log's header is cleared by a plain store.
    UndoHeaderPlain = "undo-header-plain",

    // The hardware log.
    /// A header is sent before the old lines that it names are accepted.
    LogHeaderEarly = "log-header-early",
    /// A line is not locked while its log entry is on its way.
    LogLockEarly = "log-lock-early",
    /// A line of data does not force the record that holds its entry out.
    LogNotForced = "log-not-forced",
    /// The registers count one header fewer than there are.
    LogHeadersStale = "log-headers-stale",
    /// The registers are not dumped when a header is accepted.
    LogRegistersNotDumped = "log-registers-not-dumped",
    /// The log is truncated before the data are flushed.
    LogTruncatedEarly = "log-truncated-early",
    /// The log is not truncated.
    LogNotTruncated = "log-not-truncated",
    /// A record that is out of time is dropped.
    LogTimeoutLost = "log-timeout-lost",
    /// A transaction begins with the log bits of the one before.
    LogBitsKept = "log-bits-kept",
    /// The log has what a store has left, not what it found.
    LogAfterStore = "log-after-store",
    /// Old lines are put back oldest first.
    LogOldestFirst = "log-oldest-first",
    /// Recovery clears the registers before the old lines are accepted.
    LogClearedEarly = "log-cleared-early",
    /// Recovery leaves the first bucket out.
    LogBucketForgotten = "log-bucket-forgotten",
    /// A bucket's vectors are those of the bucket before.
    LogVectorReused = "log-vector-reused",
    /// A bucket has one vector for both of its chains.
    LogOneVector = "log-one-vector",
    /// Vectors begin anew after a power cut.
    LogVectorsOfLifeReused = "log-vectors-of-life-reused",
    /// The number of valid headers is written before the header.
    LogValidEarly = "log-valid-early",
    /// Lines of the log are not encrypted.
    LogPlain = "log-plain",
    /// A line of the log does not wait for the vectors that it hangs on.
    LogVectorsNotAwaited = "log-vectors-not-awaited",
    /// The log has a key of its own, of zeros.
    LogKeyZero = "log-key-zero",
    /// A vector is the number that it should be made of.
    LogVectorIsNonce = "log-vector-is-nonce",
    /// A vector is one more than the vector before.
    LogVectorStepsOn = "log-vector-steps-on",
    /// Of the number that a vector is made of, 16 bits go into it.
    LogNonce16 = "log-nonce-16",
    /// Of the number that a vector is made of, 32 bits go into it.
    LogNonce32 = "log-nonce-32",
    /// Recovery reads four bytes of the numbers that vectors are made of.
    LogNonceRecoveredShort = "log-nonce-recovered-short",
    /// Registers name a bucket by one byte.
    LogBucketByte = "log-bucket-byte",
    /// Registers name four buckets of a transaction.
    LogNamesFew = "log-names-few",
    /// A header names a line by four bytes.
    LogAddressShort = "log-address-short",
    /// The counters of old lines are not written with them.
    LogCountersLeft = "log-counters-left",

    // The explorer, obliging: what it finds then shows what it needs its evictions and delays for.
    /// No line is evicted but for want of room.
    NoEvictions = "no-evictions",
    /// No write is held back, and instructions take the times that they take.
    NoDelays = "no-delays",
    /// Neither evictions nor delays.
    Obliging = "obliging",
}

/// The fault that the process has, plus one; 0 for none.
static FAULT: AtomicUsize = AtomicUsize::new(0);

/// Plants `fault` in the whole process in the place of the one before, or none.
pub fn plant(fault: Option<Fault>) {
    FAULT.store(
        fault.map_or(0, |fault| fault as usize + 1),
        Ordering::Relaxed,
    );
}

/// Whether `fault` is planted.
#[inline]
pub fn is_planted(fault: Fault) -> bool {
    FAULT.load(Ordering::Relaxed) == fault as usize + 1
}

/// Whether a fault is planted, by its variant's name alone: a file needs no `use` for it.
macro_rules! planted {
    ($fault:ident) => {
        $crate::planted::is_planted($crate::planted::Fault::$fault)
    };
}

/// So many at least, where a fault shows with a crowd: what the environment says, for trying out.
pub fn crowd(usual: usize) -> usize {
    static SAID: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    let said = SAID.get_or_init(|| std::env::var("CROWD").ok()?.parse().ok());
    said.unwrap_or(usual)
}
