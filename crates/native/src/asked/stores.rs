//! What the commands of this door are asked.
use sardonyx_question::{Bytes, Names, Place, Question, question};

question! {
    /// Compare deduplicating stores: the resistive CAM simulated, the conventional one executed.
    ///
    /// Example: sardonyx store compare --block 8K --bytes 50G
    ///
    /// Example: sardonyx store compare --designs recam --bytes 50G --single --json -
    ///
    /// Example: sardonyx store compare --tree docs --designs recam,conventional
    pub struct StoreCompare {
        /// Designs, separated by commas.
        #[schemars(extend("short" = "d"))]
        designs: Names = Names::of("recam,conventional"),
        /// Size of a block: the paper's are 1K to 8K.
        #[schemars(extend("value" = "BYTES"))]
        block: String = "4K".into(),
        /// Share of writes whose content was written before; default: 0.3, and of --trace what its digests say.
        #[schemars(range(min = 0, max = 1))]
        duplicates: Option<f64>,
        /// What the stream writes, as in 50G.
        #[schemars(extend("value" = "BYTES"))]
        bytes: Bytes = Bytes(2147483648),
        /// The most that an executed store really writes of it.
        #[schemars(extend("value" = "BYTES"))]
        written: Bytes = Bytes(2147483648),
        /// Share of operations that are reads, as in 0.7.
        #[schemars(range(min = 0, max = 1))]
        reads: f64 = 0.0,
        /// Encrypt each write before the store gets it.
        encrypted: bool,
        /// Seed of the stream.
        seed: u64,
        /// Write the files below this directory instead.
        tree: Option<String>,
        /// Replay a block trace instead: FIU's with digests; MSR's or fio's, with --duplicates.
        #[schemars(extend("value" = "FILE"))]
        trace: Option<String>,
        /// recam: bytes of data in the array.
        #[schemars(extend("value" = "BYTES"))]
        capacity: Bytes = Bytes(274877906944),
        /// recam: data bits of a row.
        width: u64 = 256,
        /// recam: modules that work in parallel.
        modules: u64 = 1,
        /// recam: no compare deactivates a row.
        single: bool,
        /// recam: the first compare activates block starts alone.
        #[schemars(extend("rare" = true))]
        starts: bool,
        /// recam: a write compares for an empty row first.
        free_row: bool,
        /// recam: an overwrite searches before it deletes.
        #[schemars(extend("rare" = true))]
        search_first: bool,
        /// recam: a row with so many bits of a hash first.
        #[schemars(extend("value" = "BITS"))]
        fingerprint: u64,
        /// recam: femtojoules of a bit compared, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        compared_bit: String = "0.1-17".into(),
        /// recam: femtojoules of a match line, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        match_line: String = "0".into(),
        /// recam: femtojoules of a bit written, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        written_bit: String = "1000-10000".into(),
        /// recam: writes that a row survives, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        endurance: String = "1e6-1e12".into(),
        /// conventional: find duplicates; without, store all.
        deduplicate: bool = true,
        /// conventional: compare bytes before believing a hash.
        verify: bool = true,
        /// conventional: cut the tree's files by content.
        by_content: bool,
        /// conventional: chunks whose places are kept in memory.
        #[schemars(extend("rare" = true))]
        cache_entries: u64 = 262144,
        /// conventional: the processors' clock.
        clock_mhz: u64 = 2700,
        /// conventional: cores that share the work.
        #[schemars(extend("rare" = true))]
        rival_cores: u64 = 1,
        /// conventional: cycles of a request's file system, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        request_cycles: String = "5000-50000".into(),
        /// conventional: cycles of SHA-1 a byte, or A-B.
        #[schemars(extend("value" = "A-B"))]
        hash_cycles: String = "4.99-7.7".into(),
        /// conventional: cycles of a compare a byte, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        compare_cycles: String = "0.1-1".into(),
        /// conventional: cycles of a look-up in memory, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        lookup_cycles: String = "300-3000".into(),
        /// conventional: microseconds of a look-up on the drive, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        fetch_us: String = "20-100".into(),
        /// conventional: the drive works while the processors do.
        #[schemars(extend("rare" = true))]
        overlap: bool,
        /// conventional: watts of its processors, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        processor_watts: String = "16.25-520".into(),
        /// conventional: watts of its memory, or A-B.
        #[schemars(extend("value" = "A-B", "rare" = true))]
        memory_watts: String = "3-24".into(),
        /// Folder for the temporary files of an executed store.
        dir: Option<String>,
        /// Runs at once; default: one a core.
        #[schemars(range(min = 1, max = 1024), extend("short" = "j"))]
        jobs: Option<u64>,
    }
}

question! {
    /// Serve a deduplicating store as a block device (NBD) until Ctrl-C, and count what it takes.
    ///
    /// What a client has flushed survives the end of the server, however it comes. Needs nbdkit.
    ///
    /// Example: sardonyx store serve --size 1G --socket disk.sock --dir disk
    pub struct StoreServe {
        /// The Unix socket to make, where clients connect.
        #[schemars(extend("needed" = true))]
        socket: Place,
        /// The folder that holds the store; made if new.
        #[schemars(extend("needed" = true))]
        dir: Place,
        /// What counts the cost: recam or conventional; by default the first.
        design: Option<String>,
        /// Size of a new device, as 1G.
        size: Option<Bytes>,
        /// Block of a new device. Default: 4K.
        block: Option<String>,
        /// A new file for the requests, with digests and without contents, which `store compare --trace` runs.
        trace: Option<Place>,
    }
}

question! {
    /// Read every block and compare it with its checksum, and count its references.
    ///
    /// Changes nothing, so it works on a copy and on a folder that cannot be written. One line a fault; the exit status is
    /// 1 if there is any. Nobody may serve the folder meanwhile.
    ///
    /// Example: sardonyx store check disk
    pub struct StoreCheck {
        /// The folder of `store serve`.
        #[schemars(extend("argument" = "DIR", "needed" = true))]
        folder: Place,
    }
}

question! {
    /// Tell what deduplication would save: distinct chunks, how often each comes, and the ratio.
    ///
    /// Example: sardonyx store estimate /usr/share --block 4K
    pub struct StoreEstimate {
        /// A directory, a file, a device, or - for standard input.
        #[schemars(extend("argument" = "PATH", "needed" = true))]
        path: String,
        /// Size of fixed blocks; repeatable. Default: 1K, 2K, 4K and 8K.
        block: Vec<String>,
        /// Average size of chunks whose ends the content decides; none: no such chunks.
        content_defined: Bytes = Bytes(8192),
        /// PATH is a trace with digests for contents: fiu or destor.
        trace: Option<String>,
        /// The most memory; beyond it counts are sampled.
        memory: Bytes = Bytes(1073741824),
        /// Save the state here each minute and at Ctrl-C, and go on from it.
        state: Option<Place>,
        /// Draw ratios, references and costs as HTML.
        plot: Option<Place>,
    }
}

impl Question for StoreCompare {}
impl Question for StoreServe {}
impl Question for StoreCheck {}
impl Question for StoreEstimate {}
