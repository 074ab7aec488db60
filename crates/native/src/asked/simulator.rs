//! What the commands of this door are asked.
use std::path::Path;

use sardonyx_question::{Bytes, Document, Given, Names, Pairs, Place, Question, question};
use sardonyx_workload as workload;

question! {
    /// Run designs on traces: a table, results.json, results.parquet and report.html.
    ///
    /// Example: sardonyx compare redis
    ///
    /// Example: sardonyx compare redis --designs baseline,esd --set esd.efit_bytes=65536
    ///
    /// Example: sardonyx compare synth:rung-60 --limit 100000 --json -
    ///
    /// Example: sardonyx compare redis --cores 8 --distinct --warmup 50%
    ///
    /// Example: sardonyx compare x264-threads --threads
    ///
    /// Example: sardonyx compare btree queue --machine sca --near ddr4-2400
    ///
    /// Example: sardonyx compare traces/*.parquet --sensitivity --out results/all
    ///
    /// Example: sardonyx compare long.parquet --sample 50x10000
    ///
    /// Example: sardonyx compare btree --machine sca --designs fca,sca --seeds 5
    ///
    /// Example: sardonyx compare redis --designs esd --timeline redis.json.gz
    pub struct Compare {
        /// Trace files, recordings (`sardonyx recordings`), programs (`sardonyx programs`), or
        /// synth:NAME[:RECORDS[:SEED]].
        #[schemars(extend("argument" = "TRACES", "needed" = true))]
        traces: Vec<String>,
        /// Designs, separated by commas.
        #[schemars(extend("short" = "d"))]
        designs: Names = Names::of("baseline,dedup-sha1,dewrite,esd"),
        /// A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's .config, Ramulator's .yaml.
        #[schemars(extend("short" = "m", "format" = "machine"))]
        machine: String = "esd".into(),
        /// Set a key of the machine; repeatable.
        #[schemars(extend("short" = "s", "value" = "KEY=VALUE"))]
        set: Pairs,
        /// A second medium: a cache before it, as ddr4-2400.
        #[schemars(extend("value" = "MACHINE", "sets" = "near.extends"))]
        near: Option<String>,
        /// The design of the second medium; default: no-encryption.
        #[schemars(extend("value" = "DESIGN", "sets" = "near.design", "rare" = true))]
        near_design: Option<String>,
        /// Use only the first N records of each trace.
        #[schemars(range(min = 1))]
        limit: Option<u64>,
        /// Where a trace's addresses lie: as-traced, first-touch, scattered or wrapped; default: as-traced if they are
        /// physical, else first-touch. In sweeps: the key addresses.
        #[schemars(extend("value" = "WHERE", "rare" = true))]
        addresses: Option<String>,
        /// Whether a trace's cycles are stamps at which requests arrive (open), or gaps of a core that waits (closed);
        /// default: as the trace says. In sweeps: the key arrivals.
        #[schemars(extend("value" = "KIND", "rare" = true))]
        arrivals: Option<String>,
        /// Warm up with N requests (programs: transactions) or N % of the run, excluded from the statistics.
        #[schemars(extend("value" = "N|N%"))]
        warmup: Option<String>,
        /// Simulate only some windows of each trace in time, as in 50x10000, and give figures with their 95 %
        /// intervals.
        #[schemars(extend("value" = "WINDOWSxREQUESTS", "rare" = true))]
        sample: Option<String>,
        /// Cores that run the trace or program, each in its own address space.
        #[schemars(range(min = 1, max = 1024), extend("also" = "cores"))]
        copies: u64 = 1,
        /// Give each copy contents of its own.
        #[schemars(extend("rare" = true))]
        distinct: bool,
        /// Play each thread of a recording on a core of its own, in one address space.
        #[schemars(extend("rare" = true))]
        threads: bool,
        /// Hold reads to what was written.
        #[schemars(extend("rare" = true))]
        verify: bool = true,
        /// Transactions of each core's program.
        #[schemars(range(min = 1), extend("rare" = true))]
        transactions: u64 = 10000,
        /// Size of a program's items: 64 to 4K.
        #[schemars(extend("value" = "BYTES", "rare" = true))]
        transaction_size: Bytes = Bytes(64),
        /// Size of each program's structure, as in 100M.
        #[schemars(extend("value" = "BYTES", "rare" = true))]
        footprint: Bytes = Bytes(16777216),
        /// Seed of programs' keys and choices, and of where windows lie.
        #[schemars(extend("rare" = true))]
        seed: u64,
        /// Run programs and synth: traces with N seeds; figures are means with their 95 % intervals.
        #[schemars(range(min = 2, max = 1000), extend("rare" = true))]
        seeds: Option<u64>,
        /// Also run cells, each with another value of every assumed key, and say which conclusions turn, which key
        /// decides, and at which value; these runs are kept in DIR/sensitivity, without --out in results/sensitivity.
        sensitivity: bool,
        /// With --sensitivity: cells; default: 60. Of fewer than 20 it cannot be told what decides.
        #[schemars(range(min = 20, max = 10000), extend("requires" = "sensitivity", "rare" = true))]
        draws: Option<u64>,
        /// Draw requests over banks and units, for Perfetto.
        timeline: Option<Place>,
        /// The requests that are drawn, as in 1000..2000; default: the first 2,000 that count.
        #[schemars(extend("value" = "FIRST..END", "requires" = "timeline", "rare" = true))]
        timeline_window: Option<String>,
        /// Write each request's times and causes, as Parquet.
        requests: Option<Place>,
        /// Write one run's commands, a file a channel, as DRAMPower reads them.
        #[schemars(extend("rare" = true))]
        commands: Option<Place>,
        /// Runs at once; default: one a core.
        #[schemars(range(min = 1, max = 1024), extend("short" = "j", "rare" = true))]
        jobs: Option<u64>,
        /// Directory of the results; default: a new one in results, to which results/latest leads.
        #[schemars(extend("short" = "o"))]
        out: Option<Place>,
    }
}

question! {
    /// Print the table of saved results again and rewrite their report.html.
    ///
    /// For a sweep, from whatever shards are there: the best points, and a report of small multiples, parallel coordinates
    /// and the Pareto front of its figures.
    pub struct Report {
        /// A directory that compare, reproduce or sweep wrote.
        #[schemars(extend("argument" = "PATH", "needed" = true))]
        directory: Place,
        /// For a sweep: a figure, as in "max ipc"; two draw a front; repeatable.
        goal: Vec<String>,
    }
}

question! {
    /// Compare two results: settings that differ, then figures, the largest change first.
    ///
    /// The ratio is AFTER over BEFORE. Runs that only one of them has are named and not compared.
    ///
    /// Example: sardonyx diff results/before results/after
    ///
    /// Example: sardonyx diff results/mine results/latest --exit-code --json -
    pub struct Diff {
        /// A directory that compare, reproduce or sweep wrote, or a results.json.
        #[schemars(extend("argument" = "BEFORE", "needed" = true))]
        before: Place,
        /// A directory that compare, reproduce or sweep wrote, or a results.json.
        #[schemars(extend("argument" = "AFTER", "needed" = true))]
        after: Place,
        /// Figures shown; all are in --json.
        #[schemars(range(min = 1, max = 1000000))]
        most: u64 = 20,
        /// Status 1 if any figure differs, for scripts.
        exit_code: bool,
    }
}

question! {
    /// Run every point of a sweep; DIR/results.parquet has a row a point, in the file's order.
    ///
    /// The same command goes on where a sweep was interrupted. A folder has one sweep; several nodes divide it by --shard.
    ///
    /// Example: sardonyx sweep efit.toml --out efit
    ///
    /// Example: sardonyx sweep efit.toml --plan
    ///
    /// Example: sardonyx sweep efit.toml --out efit --hq ~/.hq-server
    ///
    /// Example: sardonyx sweep efit.toml --out efit --shard 3/64
    pub struct Sweep {
        /// The sweep's TOML file.
        #[schemars(extend("argument" = "PATH", "needed" = true))]
        file: Document,
        /// Directory of the results; default: results/FILE's name.
        #[schemars(extend("short" = "o"))]
        out: Option<Place>,
        /// Runs at once; default: one a core.
        #[schemars(range(min = 1, max = 1024), extend("short" = "j"))]
        jobs: Option<u64>,
        /// Only the i-th of N shares of the points, for job arrays.
        #[schemars(extend("value" = "i/N"))]
        shard: Option<String>,
        /// Say how many points, how many are done, and what the rest would take.
        plan: bool,
        /// Run on the workers of this HyperQueue server.
        #[schemars(extend("value" = "SERVER_DIR"))]
        hq: Option<Place>,
    }
}

question! {
    /// Say what to build: the best designs and sizes of their tables under a budget of memory.
    ///
    /// Every way to share out the memory, and a half and a quarter of it, is tried on a short part of each workload, the
    /// best quarter on four times as much, and so on. The same command goes on where it was interrupted.
    ///
    /// Example: sardonyx explore redis cc1 --sram 1M
    ///
    /// Example: sardonyx explore btree --sram 256K --designs sca,esd --goal "min medium_writes" --goal "max ipc"
    ///
    /// Example: sardonyx explore queue --sram 64K --transactions 2000 --footprint 1M
    pub struct Explore {
        /// Trace files, recordings, synth:NAME or programs, as compare takes them.
        #[schemars(extend("argument" = "TRACE|PROGRAM..", "needed" = true))]
        traces: Vec<String>,
        /// Memory on chip for caches and tables: 512K, 1M.
        #[schemars(extend("value" = "SIZE"))]
        sram: Bytes = Bytes(1048576),
        /// Designs, separated by commas.
        #[schemars(extend("short" = "d"))]
        designs: Names = Names::of("sca,baseline,dedup-sha1,dewrite,esd"),
        /// What to look for, as in "max ipc"; one or more. Default: ipc, energy.
        goal: Vec<String>,
        /// Leave out what has more than so much of a figure; repeatable.
        #[schemars(extend("value" = "FIGURE=N"))]
        at_most: Vec<String>,
        /// Only designs that promise at least this after a power cut: 'every line' or 'after program recovery'.
        #[schemars(extend("value" = "PROMISE"))]
        survives: Option<String>,
        /// A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's .config, Ramulator's .yaml.
        #[schemars(extend("short" = "m", "format" = "machine"))]
        machine: String = "esd".into(),
        /// Set a key of the machine; repeatable.
        #[schemars(extend("short" = "s", "value" = "KEY=VALUE"))]
        set: Pairs,
        /// A second medium: a cache before it, as ddr4-2400.
        #[schemars(extend("value" = "MACHINE", "sets" = "near.extends"))]
        near: Option<String>,
        /// The design of the second medium; default: no-encryption.
        #[schemars(extend("value" = "DESIGN", "sets" = "near.design", "rare" = true))]
        near_design: Option<String>,
        /// Use only the first N records of each trace.
        #[schemars(range(min = 1))]
        limit: Option<u64>,
        /// Transactions of each core's program.
        #[schemars(range(min = 1))]
        transactions: u64 = 10000,
        /// Size of a program's items: 64 to 4K.
        #[schemars(extend("value" = "BYTES"))]
        transaction_size: Bytes = Bytes(64),
        /// Size of each program's structure, as in 100M.
        #[schemars(extend("value" = "BYTES"))]
        footprint: Bytes = Bytes(16777216),
        /// Runs at once; default: one a core.
        #[schemars(range(min = 1, max = 1024), extend("short" = "j"))]
        jobs: Option<u64>,
        /// Directory of runs and report.
        #[schemars(extend("short" = "o"))]
        out: Place = Place("results/explore".into()),
    }
}

question! {
    /// Draw a memory's latency against its bandwidth, beside published measurements.
    ///
    /// Example: sardonyx curve --machine cxl --plot cxl.html
    ///
    /// The machine optane was measured with threads, so its curves are drawn over threads.
    pub struct Curve {
        /// A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's .config, Ramulator's .yaml.
        #[schemars(extend("short" = "m", "format" = "machine"))]
        machine: String = "cxl".into(),
        /// Designs, separated by commas.
        #[schemars(extend("short" = "d"))]
        designs: Names = Names::of("no-encryption"),
        /// Shares of reads, a curve each. Default: those measured, or 100,67,50.
        #[schemars(extend("value" = "PERCENT,.."))]
        reads: Option<String>,
        /// The most requests in flight.
        #[schemars(range(min = 1, max = 65536))]
        outstanding: u64 = 256,
        /// Streams of lines that follow one another, half of reads and half of writes; 0 draws any line.
        #[schemars(range(max = 65536))]
        streams: u64 = 16,
        /// The most bytes that are touched.
        bytes: Bytes = Bytes(1073741824),
        /// Requests a point, after half as many uncounted.
        #[schemars(range(min = 1000))]
        requests: u64 = 60000,
        /// Seed of addresses and contents.
        seed: u64 = 1,
        /// Measured points as CSV: reads_percent,gb_per_s,read_ns, with the end of each curve last; or loads of threads
        /// (docs/simulator/medium.md). Default: the package's points for the machine of that name.
        #[schemars(extend("value" = "FILE|none"))]
        measured: Option<String>,
        /// Loads of threads: lines reach the memory in the order in which a thread asks for them, threads in turn.
        /// Default: in any order.
        in_order: bool,
        /// Set a key of the machine; repeatable.
        #[schemars(extend("short" = "s", "value" = "KEY=VALUE"))]
        set: Pairs,
        /// A second medium: a cache before it, as ddr4-2400.
        #[schemars(extend("value" = "MACHINE", "sets" = "near.extends"))]
        near: Option<String>,
        /// The design of the second medium; default: no-encryption.
        #[schemars(extend("value" = "DESIGN", "sets" = "near.design", "rare" = true))]
        near_design: Option<String>,
        /// Write the curves as an HTML page to this file.
        plot: Option<Place>,
        /// Runs at once; default: one a core.
        #[schemars(range(min = 1, max = 1024), extend("short" = "j"))]
        jobs: Option<u64>,
    }
}

question! {
    /// Print every claim of a paper beside our figure, and draw its figures.
    ///
    /// The headline claims are judged over a sample too: in cells that differ in all that the paper leaves open, in how
    /// many has ours the paper's sign, and which choices decide it?
    ///
    /// Example: sardonyx reproduce esd --quick --out results/esd
    ///
    /// Example: sardonyx reproduce sca --quick
    ///
    /// Example: sardonyx reproduce recam --quick
    ///
    /// Example: sardonyx reproduce easy-pm --quick --sensitivity
    ///
    /// Example: sardonyx reproduce pageforge silo --quick --set window.phase=merging
    pub struct Reproduce {
        /// The paper: easy-pm or esd or pageforge or recam or sca or compositions or field or integrity, or all: a site of them.
        #[schemars(extend("argument" = "PAPER", "needed" = true))]
        paper: String,
        /// esd: recordings that stand in for its programs; default: the package's. pageforge: some of its applications,
        /// images of virtual machines.
        #[schemars(extend("argument" = "TRACES"))]
        traces: Vec<String>,
        /// Fewer points; shorter traces, smaller programs.
        quick: bool,
        /// Default: the machine of the paper's name.
        #[schemars(extend("short" = "m", "format" = "machine"))]
        machine: Option<String>,
        /// Set a key of the machine; repeatable.
        #[schemars(extend("short" = "s", "value" = "KEY=VALUE", "rare" = true))]
        set: Pairs,
        /// Use only the first N records of each trace.
        #[schemars(range(min = 1), extend("rare" = true))]
        limit: Option<u64>,
        /// Warm up with N requests (programs: transactions) or N % of the run, excluded from the statistics.
        #[schemars(extend("value" = "N|N%", "rare" = true))]
        warmup: Option<String>,
        /// esd: cores that each run a trace, with contents of their own; default: 8.
        #[schemars(range(min = 1, max = 1024), extend("rare" = true))]
        copies: Option<u64>,
        /// Seed of generated traces and of programs.
        #[schemars(extend("rare" = true))]
        seed: u64,
        /// Cells of the sample; default: 200, of --quick 40 (pageforge: 40 and 8); 0 leaves the sample out.
        #[schemars(range(max = 100000), extend("rare" = true))]
        cells: Option<u64>,
        /// Run nothing: list what the sample's cells differ in.
        #[schemars(extend("rare" = true))]
        population: bool,
        /// Also say at which values of the choices that decide a claim over the sample's cells it turns.
        sensitivity: bool,
        /// Runs at once; default: one a core.
        #[schemars(range(min = 1, max = 1024), extend("short" = "j", "rare" = true))]
        jobs: Option<u64>,
        /// Directory of the results; default: results/PAPER.
        #[schemars(extend("short" = "o"))]
        out: Option<Place>,
    }
}

question! {
    /// Compare what controller, port and application measured; fail where they disagree.
    ///
    /// Example: sardonyx check-host coupling.csv
    pub struct CheckHost {
        /// The log that the library wrote for the key host.log.
        #[schemars(extend("argument" = "LOG", "needed" = true))]
        log: String,
        /// Largest difference of bandwidth and latency at a load, percent.
        #[schemars(range(min = 0, max = 100))]
        bound: f64 = 5.0,
        /// Largest difference of the clocks, percent.
        #[schemars(range(min = 0, max = 100))]
        clocks: f64 = 0.1,
        /// The host's own path to the controller and back, in ns; subtracted from its latencies.
        #[schemars(range(min = 0, max = 1000000000.0))]
        path_ns: f64 = 0.0,
    }
}

question! {
    /// Try what needs more than Sardonyx itself, and say what is missing and for what.
    ///
    /// The simulator, `crash`, `merge` of images and `store compare` need nothing else.
    pub struct Doctor {
    }
}

question! {
    /// List the designs, each with a line and its source, and what may stand behind each.
    pub struct Designs {
    }
}

question! {
    /// List the persistent programs that compare takes, each with a line.
    pub struct Programs {
    }
}

question! {
    /// List the recordings that come with the program.
    pub struct Recordings {
    }
}

question! {
    /// List the machines that come with the program, each with its source.
    pub struct Machines {
    }
}

question! {
    /// Print a machine's effective configuration as TOML: every key, with what is assumed.
    ///
    /// Example: sardonyx show esd --set medium.timing.tRCD_ns=60 > mine.toml
    pub struct Show {
        /// A machine's name, or the path of its file.
        #[schemars(extend("argument" = "NAME", "needed" = true))]
        name: String,
        /// Set a key of the machine; repeatable.
        #[schemars(extend("short" = "s", "value" = "KEY=VALUE"))]
        set: Pairs,
    }
}

impl Question for Compare {
    fn check(&self, given: &Given) -> Result<(), String> {
        let programs = programs_among(&self.traces, given)?;
        if self.traces.len() == programs || self.copies == 1 {
            given.idle(&["distinct"], "without a trace in several --copies")?;
        }
        if programs == 0 && self.sample.is_none() && !self.sensitivity {
            given.idle(&["seed"], "without a program")?;
        }
        let whole = [
            ("--sensitivity", self.sensitivity),
            ("--timeline", self.timeline.is_some()),
            ("--requests", self.requests.is_some()),
            ("--commands", self.commands.is_some()),
        ];
        let first = whole.iter().find(|(_, given)| *given);
        if let (Some((option, _)), true) = (first, self.sample.is_some()) {
            return Err(format!(
                "{option}: is of whole runs, and --sample times windows; leave one of them out"
            ));
        }
        let single = first.map(|(option, _)| *option);
        match single.or(self.sample.is_some().then_some("--sample")) {
            Some(option) if self.seeds.is_some() => Err(format!(
                "{option}: is of single runs, and --seeds gives means over several; leave one of them out"
            )),
            _ => Ok(()),
        }
    }
}

/// How many of the workloads are programs, as no file is called; an error if an option has nothing that it could be of.
fn programs_among(workloads: &[String], given: &Given) -> Result<usize, String> {
    let known = workload::all();
    let is_program =
        |name: &&String| known.iter().any(|p| p.name == **name) && !Path::new(name).exists();
    let programs = workloads.iter().filter(is_program).count();
    if programs == 0 {
        given.idle(
            &["transactions", "transaction_size", "footprint"],
            "without a program",
        )?;
    }
    if programs == workloads.len() {
        given.idle(
            &["limit", "addresses", "arrivals", "sample"],
            "without a trace",
        )?;
    }
    Ok(programs)
}
impl Question for Report {}
impl Question for Diff {}
impl Question for Sweep {
    fn check(&self, given: &Given) -> Result<(), String> {
        if matches!(self.file, Document::Held(_)) && self.out.is_none() {
            return Err("--out: is missing, and a sweep that is in no file has no name".into());
        }
        if self.plan {
            given.idle(&["shard", "hq"], "with --plan")
        } else if self.hq.is_some() {
            given.idle(&["shard", "jobs"], "with --hq")
        } else {
            Ok(())
        }
    }
}
impl Question for Explore {
    fn check(&self, given: &Given) -> Result<(), String> {
        programs_among(&self.traces, given).map(drop)
    }
}
impl Question for Curve {}
impl Question for Reproduce {}
impl Question for CheckHost {}
impl Question for Doctor {}
impl Question for Designs {}
impl Question for Programs {}
impl Question for Recordings {}
impl Question for Machines {}
impl Question for Show {}
