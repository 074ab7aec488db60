//! Faults that a test plants in the simulator, one at a time, to see whether the crash explorer
//! catches it. The simulator has none of them: `faults.patch` puts them into a copy of its sources, whose
//! module `planted` this file is (`tools/planted.py`). `docs/tables/crash-mutants.tsv` has what caught each.
//! Left out: mistakes in programs, which are [`crate::workload::Mutant`]s.

use std::sync::Mutex;
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
    /// DEUCE: a write that begins an epoch leaves the words that do not change as they lie.
    DeuceEpochKeeps = "deuce-epoch-keeps",
    /// DEUCE: a word's bit is never set, and it lies under the trailing counter's pad.
    DeuceBitNotSet = "deuce-bit-not-set",
    /// DEUCE: of eight bytes of which all four words have changed, one has the trailing counter's pad.
    DeucePartReused = "deuce-part-reused",
    /// DEUCE: a word's bit is never stored, though it lies under the leading counter's pad.
    DeuceBitNotStored = "deuce-bit-not-stored",
    /// DEUCE: each write clears the bits of the words that it does not change.
    DeuceBitsCleared = "deuce-bits-cleared",
    /// DEUCE: a write goes on from the bits in the array, though newer ones are on their way.
    DeuceBitsStale = "deuce-bits-stale",
    /// DEUCE: a word whose bytes change in their lowest bit alone counts as one that does not change.
    DeuceLowBitUnseen = "deuce-low-bit-unseen",
    /// DEUCE: a write does not count while the one before is on its way.
    DeuceCounterInFlight = "deuce-counter-in-flight",
    /// DEUCE: 16 bits of the counter are kept.
    DeuceCounter16 = "deuce-counter-16",
    // One thing wrong of another kind each.
    /// The first counter beyond a mark may be used under it.
    MarkLimitOneMore = "mark-limit-one-more",
    /// Recovery goes on at the mark, not behind it.
    MarkRecoveredOneLow = "mark-recovered-one-low",
    /// The global counter does not carry beyond its low 32 bits.
    CounterCarryLost = "counter-carry-lost",
    /// A counter is left out if the first byte of the content is odd.
    CounterSkipsByContent = "counter-skips-by-content",
    /// A marked write drops the dirty bit of the counter behind its own.
    PairCleansNext = "pair-cleans-next",
    /// After a marked write its siblings' counters no longer wait for their lines.
    PairResetsRipe = "pair-resets-ripe",
    /// A counter write-back writes the counter of the line that was named, and no sibling's.
    WriteBackOneCounter = "write-back-one-counter",
    /// Of a place, 32 bits say which line of counters is its own.
    CounterLine32 = "counter-line-32",
    /// Seven bytes of a counter are kept.
    CounterStored56 = "counter-stored-56",
    /// A line is decrypted with the counter that lies beside it in the array.
    StaleSidebandRead = "stale-sideband-read",
    /// A look-up in a cache of metadata leaves the last way of a set out.
    LastWayUnseen = "last-way-unseen",
    /// A cache of metadata keeps 16 bits of a line's place.
    TagShort16 = "tag-16",
    /// A cache of metadata keeps 32 bits of a line's place.
    TagShort32 = "tag-32",
    /// A line of a metadata cache waits for what its last change waits for, and not for the earlier ones'.
    RipeOfLast = "ripe-of-last",
    /// A line of a metadata cache is written back without the upper four of its words.
    WriteBackHalf = "write-back-half",
    /// A miss in a metadata cache has the array's bytes, though the line is on its way.
    RefetchStale = "refetch-stale",
    /// The blocks of a pad count on from its counter, where the next counter's blocks are.
    PadBlocksOverlap = "pad-blocks-overlap",
    /// The pad is made of the exclusive or of counter and place.
    PadOfSum = "pad-of-sum",
    /// Eight places in a row have one pad.
    PadPlaceOfEight = "pad-place-of-eight",
    /// Eight bytes of the key are used.
    KeyHalf = "key-half",
    /// A vector is made of what the pads of the first place are made of.
    VectorIsAPad = "vector-is-a-pad",
    /// A chain of the log goes on from the last plaintext, not from the last ciphertext.
    ChainOfPlaintext = "chain-of-plaintext",
    /// Recovery does not believe registers that count as many headers as a bucket has.
    LogFullBucketUnbelieved = "log-full-bucket-unbelieved",
    /// Recovery does not believe registers that name as many buckets as they can.
    LogSixteenUnbelieved = "log-sixteen-unbelieved",
    /// Recovery reads of each bucket as many headers as the last one has.
    LogEarlierBucketsShort = "log-earlier-buckets-short",
    /// Registers count a header once it is accepted, though an earlier one is not.
    LogHeaderOvertakes = "log-header-overtakes",
    /// The last line of a full record does not wait for its header.
    LogLastUnlocked = "log-last-unlocked",
    /// Recovery undoes one transaction, and no other that was under way.
    LogUndoesFirstOnly = "log-undoes-first-only",
    /// A life's first records do not wait for the registers to be cleared.
    LogReadyIgnored = "log-ready-ignored",
    /// Old lines are put back newest first in each bucket, but from the first bucket on.
    LogBucketsOldestFirst = "log-buckets-oldest-first",
    /// What is dumped has eight bytes of the last old line.
    LogRegistersShow = "log-registers-show",
    /// Registers keep one byte of a transaction's number.
    LogTransactionByte = "log-transaction-byte",
    /// Old lines of a bucket are numbered by one byte.
    LogLinesByte = "log-lines-byte",
    /// Recovery does not look into the last bucket for the number that vectors go on from.
    NonceLastBucket = "nonce-last-bucket",
    /// Recovery goes on with the last number that vectors were made of.
    NonceOneLow = "nonce-one-low",
    /// When a core's transaction ends, no other core's stores are logged any more.
    TxEndClearsAll = "tx-end-clears-all",
    /// A counter write-back does not wait for evicted lines that memory has not taken yet.
    CounterWriteBackOvertakes = "counter-write-back-overtakes",
    /// A line that misses is read though evicted lines wait that memory has not taken yet.
    VictimsOvertaken = "victims-overtaken",
    /// A line that comes into L1 has the log bit of the line that was there.
    LogBitInherited = "log-bit-inherited",
    /// A line that leaves a private level moves the tags behind it, and not what they are for.
    RemoveTagsOnly = "remove-tags-only",
    /// That a second core has a line is not noted.
    SharerNotNoted = "sharer-not-noted",
    /// A line that leaves the last level for want of room stays in the private ones.
    VictimStaysPrivate = "victim-stays-private",
    /// The first place handed out at the edge lies behind the last one.
    EdgeOneBeyond = "edge-one-beyond",
    /// A line that gets its own place does not wait until it is let go.
    OwnPlaceUngated = "own-place-ungated",
    /// In a full medium the mapping goes where its line of the table was in the cache.
    FullStaleLookup = "full-stale-lookup",
    /// The unused bytes of a line of mappings have the CRC-32 of a content.
    MappingShowsCheck = "mapping-shows-check",
    /// A place that has taken another's entry in the fingerprint table is not known by it.
    EfitReplacedUnknown = "efit-replaced-unknown",
    /// A write-back of mappings leaves out the last line of its eight.
    SpanOneShort = "span-one-short",
    /// Recovery puts right the counts that are too high, and leaves those that are too low.
    RecountLowersOnly = "recount-lowers-only",
    /// Recovery does not count anew what the last line of mappings counts.
    RecountSkipsLast = "recount-skips-last",
    /// Recovery reads a line of mappings up to the first that is none.
    ScanStopsAtGap = "scan-stops-at-gap",
    /// Of a line's number, 32 bits say where its mapping stands.
    MappingLine32 = "mapping-line-32",
    /// A write that must persist with its mapping does not wait for that.
    MappingNotAwaited = "mapping-not-awaited",
    /// A log line leaves in the inverse table what was there of its place.
    InverseKeptForLog = "inverse-kept-for-log",
    /// A count of references that is full falls like any other.
    FullCountFalls = "full-count-falls",
    /// Recovery leaves what is in the inverse table there.
    RebuildKeepsInverse = "rebuild-keeps-inverse",
    /// A write-back of bits writes no counters back.
    ZeroBelowForgotten = "zero-below-forgotten",
    /// A read of a line in flight does not wait until that is accepted.
    ForwardBeforeAccepted = "forward-before-accepted",
    /// A write may be accepted before an older one of its line.
    AcceptedOutOfOrder = "accepted-out-of-order",
    /// When a write is in the array, a newer one of its line that is in flight is forgotten.
    FlightForgotten = "flight-forgotten",
    /// A write is merged with one whose bytes are being programmed.
    MergeIntoBegun = "merge-into-begun",
    /// A write that is merged leaves its line's newest bytes where they were.
    MergeLeavesIndex = "merge-leaves-index",
    /// Members of a group that can be merged are, before the others have slots.
    GroupMergedInPart = "group-merged-in-part",
    /// A write that joins a second group leaves the others of its first behind.
    GroupDropsEarlier = "group-drops-earlier",
    /// Recovery puts back the first block of the log alone.
    UndoFirstBlock = "undo-first-block",
    /// No fence behind the log's header when it is cleared by recovery.
    UndoLastFence = "undo-last-fence",

    // Only a rare schedule shows them.
    /// A write-back of a clean line does not wait where several writes of it are in flight.
    CrowdNotAwaited = "crowd-not-awaited",
    /// A line that leaves the caches while several wait to be taken is dropped.
    CrowdDropped = "crowd-dropped",
    /// A marked line that leaves the caches while several wait to be taken forgets that.
    CrowdMarkLost = "crowd-mark-lost",
    /// A write-back of a clean line waits for the first write of it in flight, and for no other.
    JoinFirstOnly = "join-first-only",
    /// A life's first records wait for one transaction's registers to be cleared, and not for another's.
    LogReadyOfLast = "log-ready-of-last",
    /// Only a bucket's first record waits until the bucket is free.
    LogSecondRecordUngated = "log-second-record-ungated",
    /// A dirty line of counters that is evicted while it is on its way already is dropped.
    CounterOnItsWayDropped = "counter-on-its-way-dropped",
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

    /// A node of versions is in the table as it was when it became dirty.
    AsitEntryOnce = "asit-entry-once",
    /// Two nodes of a group share a line of the table, and both stay in the cache.
    AsitTwoOfLine = "asit-two-of-line",
    /// Nodes above versions are not named in the table.
    AsitNodesUnnamed = "asit-nodes-unnamed",
    /// A line of the table does not wait for the write-back of the node that it named.
    AsitNotGated = "asit-not-gated",
    /// A line of the table is not in one group with what has changed its node.
    AsitEntryNotGrouped = "asit-entry-not-grouped",
    /// A recovery takes a line of the table whose node is older than memory's.
    AsitOlderWins = "asit-older-wins",
    /// A node is made anew without its last child.
    AsitRemakeSkipsLast = "asit-remake-skips-last",
    /// A recovery does not compare the sums with the register.
    AsitSumsUnchecked = "asit-sums-unchecked",
    /// Nodes are not verified when they come into the cache.
    AsitNodesUnverified = "asit-nodes-unverified",
    /// The register does not follow what the table has.
    AsitRegisterSkipsTable = "asit-register-skips-table",
    /// Reserve power does not count the versions of what it dumps.
    AsitDumpForgotten = "asit-dump-forgotten",
    /// A node of versions is not written where one of them comes to the end of a stride.
    PhoenixNeverDue = "phoenix-never-due",
    /// The last version of a node does not count for that.
    PhoenixDueOfSeven = "phoenix-due-of-seven",
    /// A node that is written there is not in one group with the line that it counts.
    PhoenixDueNotGrouped = "phoenix-due-not-grouped",
    /// A recovery tries one version fewer.
    PhoenixTriesOneFewer = "phoenix-tries-one-fewer",
    /// Nodes of versions are not named in the table.
    PhoenixLeavesUnnamed = "phoenix-leaves-unnamed",
    /// The register follows the nodes that are written, and not the MACs.
    PhoenixRegisterSkipsMacs = "phoenix-register-skips-macs",

    /// A MAC under a version does not depend on the place.
    BmtMacWithoutPlace = "bmt-mac-without-place",
    /// It does not depend on the version.
    BmtMacWithoutVersion = "bmt-mac-without-version",
    /// It depends on the minor number alone of the version.
    BmtMacWithoutMajor = "bmt-mac-without-major",
    /// It is not of the last word of the line.
    BmtMacWithoutLastWord = "bmt-mac-without-last-word",
    /// It is not of what lies beside the line.
    BmtMacWithoutBeside = "bmt-mac-without-beside",
    /// The hash of a line of versions is not of its first word.
    HashSkipsMajor = "hash-skips-major",
    /// The hash of a node is not of its last slot.
    HashSkipsLastSlot = "hash-skips-last-slot",
    /// Of the last of eight lines below a node the hash says only that something is there.
    HashOfLastConstant = "hash-of-last-constant",
    /// A hash has one byte.
    HashOneByte = "hash-one-byte",
    /// A version stays what it was when its line is written again.
    VersionStays = "version-stays",
    /// The version of the line before is counted.
    VersionOfNeighbour = "version-of-neighbour",
    /// Where a minor number overflows the major one stays.
    OverflowKeepsMajor = "overflow-keeps-major",
    /// Nodes above the versions are not verified when they come into the cache.
    NodesUnverified = "nodes-unverified",
    /// Lines of versions are not.
    VersionsUnverified = "versions-unverified",
    /// Lines of the highest level are not held against the register.
    TopUnverified = "top-unverified",
    /// Every other node is not.
    OddNodesUnverified = "odd-nodes-unverified",
    /// A line is not verified where the one above it is cached.
    VerifiedIfCold = "verified-if-cold",
    /// A line whose MAC is zero is believed.
    ZeroMacBelieved = "zero-mac-believed",
    /// A line that nobody has written is believed, whatever its MAC says.
    GoneLineBelieved = "gone-line-believed",
    /// The last line of those that share a major number gets no new MAC at an overflow.
    OverflowForgetsLast = "overflow-forgets-last",
    /// Lines that get new MACs at an overflow are not verified.
    OverflowUnverified = "overflow-unverified",
    /// A line of versions that has overflowed stays in the cache.
    OverflowNotThrough = "overflow-not-through",
    /// The register does not follow where the highest node was cached.
    PathStopsBelowTop = "path-stops-below-top",
    /// A path leaves out the second level.
    PathForgetsLevel = "path-forgets-level",
    /// Of paths that are merged only the first goes on above the lowest level.
    CoalescedFirstOnly = "coalesced-first-only",
    /// Lines of MACs are not in the group of the lines that they are about.
    BmtMacNotGrouped = "bmt-mac-not-grouped",
    /// Lines of versions are not.
    BmtVersionNotGrouped = "bmt-version-not-grouped",
    /// Nodes that are written through are not.
    NodeNotGrouped = "node-not-grouped",
    /// The cache keeps the line of MACs as it was before.
    CachedMacStale = "cached-mac-stale",
    /// It keeps what is written through as it was before.
    CachedNodeStale = "cached-node-stale",
    /// A node that stays in the cache is not written back when it leaves.
    LazyNodeClean = "lazy-node-clean",
    /// Of a changed line that stays in the cache the first changed word alone is written back.
    DirtyNodeFirstWord = "dirty-node-first-word",
    /// What a request has written is not verified any more.
    UnderWayForEver = "under-way-for-ever",
    /// A recovery that makes nodes anew does not compare with the register.
    BmtRebuildUnchecked = "bmt-rebuild-unchecked",
    /// It leaves the nodes in the medium as they are.
    BmtNodesNotRewritten = "bmt-nodes-not-rewritten",
    /// It leaves the last node of each level as it is.
    RewriteSkipsLast = "rewrite-skips-last",
    /// A recovery tries one version fewer than may be ahead.
    TriesOneFew = "tries-one-few",
    /// It takes the first version that is not older, whatever the MAC says.
    TriedUnchecked = "tried-unchecked",
    /// A strict tree makes its register what memory has after a cut.
    StrictBelievesMemory = "strict-believes-memory",
    /// A line of versions is written one count too late.
    StopLossOneLate = "stop-loss-one-late",
    /// A recovery that tries versions does not compare with the register.
    OsirisUnchecked = "osiris-unchecked",
    /// It does not write the versions that it has found.
    RestoreNotWritten = "restore-not-written",
    /// It does not try the last line under each line of versions.
    RestoreSkipsLast = "restore-skips-last",
    /// A recovery takes one level more than is persisted for what memory has.
    TriadTrustsOneMore = "triad-trusts-one-more",
    /// One level fewer is written than a recovery takes for persisted.
    TriadWritesOneLess = "triad-writes-one-less",
    /// A recovery by the table does not compare with the register.
    AnubisUnchecked = "anubis-unchecked",
    /// An entry of the table is not in the group that makes its line dirty.
    ShadowNotGrouped = "shadow-not-grouped",
    /// The table does not name lines of versions.
    ShadowForgetsVersions = "shadow-forgets-versions",
    /// It does not name nodes.
    ShadowForgetsNodes = "shadow-forgets-nodes",
    /// An entry is that of the slot after.
    ShadowWrongSlot = "shadow-wrong-slot",
    /// An entry that names another line does not wait for that line.
    ShadowNotGated = "shadow-not-gated",
    /// A recovery does not read the last entry of each line of the table.
    ShadowReadsSeven = "shadow-reads-seven",
    /// It makes the named nodes anew from the highest down.
    ShadowTopFirst = "shadow-top-first",
    /// An entry that is on its way already is not waited for.
    ShadowNamedUnwaited = "shadow-named-unwaited",
    /// Two lines of a group that have one slot both stay.
    ShadowTwoOfSlot = "shadow-two-of-slot",
    /// A node is made anew without the last line below it.
    RemakeSkipsLast = "remake-skips-last",
    /// The register of a Bonsai tree follows one acceptance late.
    RegisterOneBehind = "register-one-behind",
    /// It follows the first of the MACs alone that a line of them brings.
    RegisterLooksAtFirst = "register-looks-at-first",
    /// Reserve power does not count the versions of what it dumps.
    DumpNotCounted = "dump-not-counted",
    /// It makes no MACs of the other lines where a version overflows.
    DumpWithoutOverflow = "dump-without-overflow",
    /// MACs that the run writes over those that reserve power has made stay.
    DumpMacsStay = "dump-macs-stay",

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

    // Once more, by a reader of the code: boundaries, gates, rare paths.
    /// The region of counters lacks its last line.
    CounterRegionShort = "counter-region-short",
    /// Seven bytes of the mark are written.
    MarkStored56 = "mark-stored-56",
    /// The global counter does not carry beyond its low 56 bits.
    CounterCarry56 = "counter-carry-56",
    /// Of the place, 36 bits go into the pad.
    PadPlace36 = "pad-place-36",
    /// The sixth byte of the counter does not go into the pad.
    PadCounterHole = "pad-counter-hole",
    /// The last blocks of a place have the pads of the first ones of the next.
    PadPlacesOverlap = "pad-places-overlap",
    /// A chain of the log goes on from the first block of the last ciphertext.
    ChainOfFirstBlock = "chain-of-first-block",
    /// The last word of a line of a metadata cache never counts as changed.
    DirtyLastWord = "dirty-last-word",
    /// An orderly shutdown leaves the last line of each metadata cache.
    FlushSkipsLast = "flush-skips-last",
    /// When the list of places that wait for their unmapping is full all of it is forgotten.
    UnmappedCleared = "unmapped-cleared",
    /// A place that has been freed and used again is never free again.
    FreedOnce = "freed-once",
    /// The inverse table lacks its last line.
    InverseRegionShort = "inverse-region-short",
    /// The unused bytes of a line of the inverse table have a digest.
    InverseShowsDigest = "inverse-shows-digest",
    /// What has no room in the last bucket of the index does not go to the first.
    IndexWrapLost = "index-wrap-lost",
    /// The mapping table lacks its last line.
    AmtRegionShort = "amt-region-short",
    /// A write-back of mappings writes the counters around the first place back, and no other.
    SpanFirstPlace = "span-first-place",
    /// The mapping of a duplicate does not wait for the log of its line.
    DuplicateUngated = "duplicate-ungated",
    /// Two lines 256 apart have one bit.
    ZeroBitShared = "zero-bit-shared",
    /// A line of zeros does not wait for the log of its line.
    ZeroUngated = "zero-ungated",
    /// A bucket that is taken again keeps its number of valid headers.
    LogValidKept = "log-valid-kept",
    /// Recovery looks for the number that vectors go on from in buckets with headers alone.
    NonceOfValidOnly = "nonce-of-valid-only",
    /// Recovery clears the registers when the old line put back last is accepted, whatever of the others.
    LogClearedAfterOne = "log-cleared-after-one",
    /// A transaction may take one bucket more than registers name.
    LogSeventeenBuckets = "log-seventeen-buckets",
    /// Recovery looks at the first eight registers.
    LogSlotsFew = "log-slots-few",
    /// Two bits say whose a transaction is.
    LogCoreTwoBits = "log-core-two-bits",
    /// Recovery does not believe an entry of the last line of memory.
    LogLastLineUnlogged = "log-last-line-unlogged",
    /// Recovery does not believe registers that name the last bucket.
    LogLastBucketUnbelieved = "log-last-bucket-unbelieved",
    /// What recovery puts back is not marked.
    LogUndoRelaxed = "log-undo-relaxed",
    /// What is dumped has four bytes of a digest of the last old line.
    LogRegistersDigest = "log-registers-digest",
    /// One bit says which core has a line.
    SharerOfTwo = "sharer-of-two",
    /// A line that is flushed stays in the private levels.
    FlushStaysPrivate = "flush-stays-private",
    /// At an overflow lines that nobody has written get a version.
    OverflowWakesUnwritten = "overflow-wakes-unwritten",
    /// A line whose first half is zeros has the hash of one that nobody has written.
    HashOfHalfZero = "hash-of-half-zero",
    /// The hash of a line of versions is not of its last byte.
    HashSkipsLastByte = "hash-skips-last-byte",
    /// Of eight lines in a row none is verified while one is written.
    UnderWayOfEight = "under-way-of-eight",
    /// At an overflow MACs are of nothing beside the lines.
    OverflowBesideForgotten = "overflow-beside-forgotten",
    /// A recovery compares the first word of the register.
    RegisterComparesFirst = "register-compares-first",
    /// A recovery does not try the version that memory has.
    TriesFromNext = "tries-from-next",
    /// The MAC depends on 16 bits of the version.
    BmtMacVersion16 = "bmt-mac-version-16",
    /// The MAC is not of the last byte of the line.
    MacSkipsLastByte = "mac-skips-last-byte",
    /// Reserve power writes one MAC over all of its line.
    MacDumpWholeLine = "mac-dump-whole-line",
    /// Of a node of counters the sum alone is compared.
    SgxNodeMacUnchecked = "sgx-node-mac-unchecked",
    /// Reserve power does not dump the register behind what it counts.
    SgxDumpRegisterStays = "sgx-dump-register-stays",
    /// A recovery does not verify what the table has of a node.
    AsitEntryUnchecked = "asit-entry-unchecked",
    /// The register does not follow the last MAC of a line of them.
    RegisterLooksAtSeven = "register-looks-at-seven",
    /// One bit says which core waits for a write that is on its way.
    JoinOfTwo = "join-of-two",
    /// One bit says which core is in a transaction of the hardware log.
    LoggingOfTwo = "logging-of-two",
    /// A new entry of the index takes the slot of one with the same digest, full or not.
    IndexMovesAny = "index-moves-any",
    /// Eight transactions have chains of their own.
    LogChainOfEight = "log-chain-of-eight",
    /// One byte of a number says where a bucket lies.
    LogBucketPlaceByte = "log-bucket-place-byte",
    /// A recovery of merkle compares the first word of the register.
    MerkleComparesFirst = "merkle-compares-first",
    /// Six bytes of a counter are kept.
    SgxCounter48 = "sgx-counter-48",
    /// Four bytes of a major number are kept.
    BmtMajor32 = "bmt-major-32",

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

/// The kinds of violations that were found since a fault was last planted.
static NOTED: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// A violation of this kind was found.
pub fn note(kind: &'static str) {
    NOTED.lock().expect("no thread panics").push(kind);
}

/// Whether a violation of one of these kinds was.
pub fn has_noted(kinds: &[&str]) -> bool {
    let noted = NOTED.lock().expect("no thread panics");
    noted.iter().any(|kind| kinds.contains(kind))
}

/// Plants `fault` in the whole process in the place of the one before, or none.
pub fn plant(fault: Option<Fault>) {
    NOTED.lock().expect("no thread panics").clear();
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
