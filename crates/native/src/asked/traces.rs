//! What the commands of this door are asked.
use sardonyx_question::{Bytes, Given, Place, Question, question};

question! {
    /// Run a program and write down what it asks of memory, with the bytes.
    ///
    /// Any x86-64 Linux program, unmodified. A program that it becomes by exec is recorded too, its children only with
    /// --follow-fork or --pc. The exit status is the program's; if a signal ends it, 128 and the signal's number, and the
    /// trace is kept. io_uring, AIO, userfaultfd, ptrace and process_vm_readv answer ENOSYS.
    ///
    /// Example: sardonyx trace record -o t.parquet -- sqlite3 my.db .dump
    pub struct TraceRecord {
        /// What to run, after --.
        #[schemars(extend("argument" = "-- PROGRAM ARGS..."))]
        program: Vec<String>,
        /// The trace; by default PROGRAM.parquet, here.
        #[schemars(extend("short" = "o"))]
        output: Option<Place>,
        /// memory: below the last-level cache. cpu: every load and store. By default memory, and cpu with --pc or
        /// --acks.
        level: Option<String>,
        /// Each core's first level, SIZE:WAYS.
        #[schemars(extend("rare" = true))]
        l1: String = "32K:8".into(),
        /// Each core's second level, SIZE:WAYS.
        #[schemars(extend("rare" = true))]
        l2: String = "256K:8".into(),
        /// The shared last level, SIZE:WAYS, or none.
        llc: String = "16M:16".into(),
        /// The last level does not include the others.
        #[schemars(extend("rare" = true))]
        non_inclusive: bool,
        /// Cores; threads take turns on them.
        #[schemars(range(max = 1024), extend("rare" = true))]
        cores: u64 = 4,
        /// Where pages lie: sequential (frames in order of first touch), random[:SEED], pagemap (the kernel's; needs
        /// root), or, at level cpu only, virtual (the program's addresses). By default sequential, and virtual at level
        /// cpu.
        pages: Option<String>,
        /// Which free frame a page gets: last-freed, first-freed, or never one that another page had (with --pages
        /// sequential).
        #[schemars(extend("rare" = true))]
        reuse: String = "last-freed".into(),
        /// How the kernel clears a new page: whole-lines (overwritten, not fetched, as processors with fast strings
        /// do), fetched (each line is read first), or none (left out).
        #[schemars(extend("rare" = true))]
        clearing: String = "whole-lines".into(),
        /// Instructions of the kernel for each page that it clears, and for each of its 64 lines; twice as many for a
        /// copied line.
        #[schemars(extend("value" = "FAULT:LINE", "rare" = true))]
        kernel_instructions: String = "1000:8".into(),
        /// Size of physical memory for random page placement.
        #[schemars(extend("rare" = true))]
        memory: Bytes = Bytes(17179869184),
        /// Records left out first.
        skip: u64,
        /// Records kept; then the program is ended.
        #[schemars(range(min = 1))]
        limit: Option<u64>,
        /// Instructions before the first record.
        #[schemars(extend("rare" = true))]
        skip_instructions: u64,
        /// Instructions kept; then the program is ended.
        #[schemars(range(min = 1), extend("rare" = true))]
        limit_instructions: Option<u64>,
        /// Record forked children too, in NAME.1.parquet and so on. With --pc (where it is the default) their stores to
        /// mapped files go into the program's trace, in one order.
        follow_fork: Option<bool>,
        /// The first read of a line has its contents, which are what memory held.
        #[schemars(extend("rare" = true))]
        read_data: bool = true,
        /// Record the place in the program of each store, flush and fence; for crash-test.
        pc: bool,
        /// With --pc: a thread rests so long after each of its first 16 stores to files at a place, so that threads
        /// overlap; 0: never.
        #[schemars(range(max = 1000000), extend("value" = "MICROSECONDS", "rare" = true))]
        rest: u64 = 100,
        /// Record what the program had printed at each moment; for crash-test.
        acks: bool,
        /// The same for this descriptor instead of 1.
        #[schemars(range(max = 1048576), extend("rare" = true))]
        acks_fd: Option<u64>,
        /// At the end, hold the trace against the program's memory, page by page.
        verify: bool,
        /// QEMU's qemu-x86_64, 10.0 or newer, if not the one that comes with Sardonyx.
        #[schemars(extend("rare" = true))]
        qemu: Option<Place>,
    }
}

question! {
    /// Count what is in a trace: records, duplicates, contents, collisions, locality.
    ///
    /// Example: sardonyx trace info redis --plot redis.html
    pub struct TraceInfo {
        /// A trace file, a recording, or synth:NAME.
        #[schemars(extend("argument" = "TRACE", "needed" = true))]
        trace: String,
        /// Use only the first N records.
        #[schemars(range(min = 1))]
        limit: Option<u64>,
        /// Draw duplicates, locality and collisions as HTML.
        plot: Option<Place>,
    }
}

question! {
    /// Check every row of traces; the exit status is 1 if any is broken, 2 if any is unreadable.
    pub struct TraceCheck {
        /// Trace files or recordings.
        #[schemars(extend("argument" = "TRACES", "needed" = true))]
        traces: Vec<String>,
        /// Problems shown of each trace.
        #[schemars(range(min = 1))]
        max_problems: u64 = 20,
    }
}

question! {
    /// Convert another simulator's trace to ours, or ours to another's.
    ///
    /// Files that end in .parquet are taken to be ours. Ours to ours writes the same records again, with checksums.
    ///
    /// Example: sardonyx trace convert app.nvt app.parquet --from nvmain
    pub struct TraceConvert {
        /// A trace file or a recording.
        #[schemars(extend("argument" = "SOURCE", "needed" = true))]
        source: String,
        /// The file to write.
        #[schemars(extend("argument" = "TARGET", "needed" = true))]
        target: Place,
        /// Format of SOURCE: sardonyx, nvmain, ramulator-load-store, ramulator-read-write, ramulator-instructions,
        /// ramulator-memory, dramsim2, dramsim3, dramsys, dramsys-relative, champsim, gem5-packets, pinatrace, lackey,
        /// dynamorio.
        #[schemars(extend("called" = "from"))]
        from_format: Option<String>,
        /// Format of TARGET: sardonyx, nvmain, ramulator-load-store, dramsim3, champsim.
        #[schemars(extend("called" = "to"))]
        to_format: Option<String>,
        /// What writes without bytes write: zero, random, unique.
        data: String = "unique".into(),
        /// Seed of the contents that --data makes.
        seed: u64,
        /// Clock that SOURCE's cycles count; default: nvmain 2000, dramsim3 1200; gem5-packets 1000, into which ticks
        /// are turned.
        #[schemars(range(min = 0.001, max = 1000000.0))]
        clock_mhz: Option<f64>,
        /// ramulator-read-write: sizes of channel, rank, bank group, bank, row and column in lines; default:
        /// 1,2,4,4,65536,128.
        levels: Option<String>,
    }
}

question! {
    /// Generate a trace with stated statistics.
    ///
    /// Example: sardonyx trace synth rung-60 rung-60.parquet --seed 7
    pub struct TraceSynth {
        /// A rung of the locality ladder, or a JSON file of a specification.
        #[schemars(extend("argument" = "SPEC", "needed" = true))]
        spec: String,
        /// The file to write.
        #[schemars(extend("argument" = "TARGET", "needed" = true))]
        target: Place,
        /// Records to generate.
        #[schemars(range(min = 1))]
        records: Option<u64>,
        /// The same seed gives the same trace.
        seed: u64,
    }
}

question! {
    /// Copy a stretch of a trace.
    ///
    /// Example: sardonyx trace cut redis.parquet part.parquet --skip 1000 --limit 50000
    pub struct TraceCut {
        /// A trace file or a recording.
        #[schemars(extend("argument" = "SOURCE", "needed" = true))]
        source: String,
        /// The file to write.
        #[schemars(extend("argument" = "TARGET", "needed" = true))]
        target: Place,
        /// Records left out at the beginning.
        skip: u64,
        /// Records kept.
        #[schemars(range(min = 1))]
        limit: Option<u64>,
    }
}

question! {
    /// Mix traces into one, as if each program had run on a core of its own at the same pace.
    ///
    /// Example: sardonyx trace mix redis.parquet cc1.parquet -o both.parquet
    pub struct TraceMix {
        /// Trace files or recordings, two or more.
        #[schemars(extend("argument" = "TRACES", "needed" = true))]
        traces: Vec<String>,
        /// The file to write.
        #[schemars(extend("short" = "o", "needed" = true))]
        output: Place,
    }
}

impl Question for TraceRecord {
    fn check(&self, given: &Given) -> Result<(), String> {
        let acks = self.acks || self.acks_fd.is_some();
        let usual = if self.pc || acks { "cpu" } else { "memory" };
        let level = self.level.as_deref().unwrap_or(usual);
        let below = level == "memory";
        let first = if below { "sequential" } else { "virtual" };
        let pages = self.pages.as_deref().unwrap_or(first);
        let chosen = format!("with --level {level} --pages {pages}");
        if !below {
            let of_caches = [
                "l1",
                "l2",
                "llc",
                "non_inclusive",
                "clearing",
                "kernel_instructions",
            ];
            given.idle(&of_caches, &chosen)?;
        }
        if !below || pages != "sequential" {
            given.idle(&["reuse"], &chosen)?;
        }
        if !pages.starts_with("random") {
            given.idle(&["memory"], &chosen)?;
        }
        if self.clearing == "none" {
            given.idle(
                &["kernel_instructions"],
                &format!("{chosen} --clearing none"),
            )?;
        }
        if !self.pc {
            given.idle(&["rest"], "without --pc")?;
        }
        if self.acks_fd.is_some() {
            given.idle(&["acks"], "with --acks-fd")?;
        }
        Ok(())
    }
}
impl Question for TraceInfo {}
impl Question for TraceCheck {}
impl Question for TraceConvert {}
impl Question for TraceSynth {}
impl Question for TraceCut {}
impl Question for TraceMix {}
