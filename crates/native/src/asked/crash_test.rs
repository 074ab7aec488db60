//! What the commands of this door are asked.
use sardonyx_crash_files::file_system::ALL;
use sardonyx_question::{Bytes, Given, Names, Place, Question, Seconds, looks, question};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::check_known;

question! {
    /// Cut a recorded program at every fence, and run its own recovery on what could be left.
    ///
    /// What fails is brought down to the stores that matter, and those to lines of code.
    ///
    /// Example: sardonyx crash-test search app.parquet --pool data.pool --recover 'app-check {pool}'
    ///
    /// Example: sardonyx crash-test search app.parquet --pool data.pool --recover 'app {pool} print' --operations ops --apply 'app {pool} run {operations}'
    ///
    /// Example: sardonyx crash-test search app.parquet --pool data.pool --pool log.pool --recover 'app-check {pool} {pool2}'
    ///
    /// Example: sardonyx crash-test search app.parquet --pool data.pool --recover 'app-check {pool}' --threads
    pub struct CrashTestSearch {
        /// A recording of sardonyx trace record --pc.
        #[schemars(extend("argument" = "RECORDING", "needed" = true))]
        recording: Place,
        /// The mapped file to cut, or a folder of such files; repeatable.
        #[schemars(extend("needed" = true))]
        pool: Vec<Place>,
        /// The program's recovery and check, with {pool} for the file ({pool2} for the second, {pools} for the folder of
        /// all) and {acks} for what had been printed.
        #[schemars(extend("value" = "CMD", "needed" = true))]
        recover: String,
        /// What survives a cut: persistent memory (adr; eadr with the caches), or a file on a disk, by pages or by sectors;
        /// auto: pages if it only syncs (msync, fsync), else adr. With --designs: adr or eadr.
        platform: String = "auto".into(),
        /// Total time, from the first recovery on.
        budget: Seconds = Seconds(50.0),
        /// Write a page with a timeline of each cause.
        html: Option<Place>,
        /// The operations of the recorded run, one a line: what --recover prints must be what the program leaves of a
        /// beginning of them.
        operations: Option<Place>,
        /// Makes a pool, {pool}, of the operations in a file, {operations}.
        #[schemars(extend("value" = "CMD"))]
        apply: Option<String>,
        /// Then cut other orders of the threads too, which the program could have taken; they have the same budget again.
        threads: bool,
        /// Then cut the recovery too, at its own fences; each depth has the budget again.
        recovery: bool,
        /// Say too what a cut leaves of the pool below each of these designs, separated by commas.
        #[schemars(extend("short" = "d"))]
        designs: Option<Names>,
    } rare {
        /// How operations were promised: by a printed line each (lines), or not (none).
        acknowledged: String = "lines".into(),
        /// Cut up to N other orders.
        #[schemars(range(min = 1, max = 1000), extend("requires" = "threads"))]
        orders: usize = 8,
        /// Cut the recovery's own recovery too, N deep.
        #[schemars(range(min = 1, max = 100), extend("requires" = "recovery"))]
        depth: usize = 1,
        /// The designs' machine: its name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's .config, Ramulator's
        /// .yaml.
        #[schemars(extend("short" = "m", "requires" = "designs"))]
        machine: String = "sca".into(),
        /// What a cut leaves whole while a line is being accepted: the line (lines) or each 8 bytes (words).
        tear: String = "lines".into(),
        /// First cut; by default where the recovery first copes with what was fenced.
        #[schemars(extend("value" = "MARK|ROW"))]
        start: Option<String>,
        /// While the pool is made the recovery may refuse it: by the exit status that the untouched pool gets (status), by
        /// any (orderly); or such cuts are not tried (skip).
        creation: String = "status".into(),
        /// Count the stores of this line as persistent at once; repeatable.
        #[schemars(extend("value" = "FILE:LINE"))]
        assume_persisted: Vec<String>,
        /// Report without lines of code.
        no_source: bool,
        /// Cut only this order of the threads, as a report names it.
        #[schemars(extend("value" = "THREAD@ROW"))]
        thread_order: Option<String>,
        /// Exit statuses that are no violation.
        ok: Statuses,
        /// Time limit of one recovery; default: 50 times as long as it takes without a cut, and at least 2 s.
        time_limit: Option<Seconds>,
        /// Memory limit of one recovery.
        #[schemars(extend("value" = "BYTES"))]
        memory_limit: Bytes = Bytes(4 << 30),
        /// Leave here what each cause's recovery was given, as it fails and as it passes.
        keep: Option<Place>,
        /// Causes that are accepted, from --write-baseline.
        baseline: Option<Place>,
        /// Write the causes found here, as accepted from now on.
        write_baseline: Option<Place>,
        /// Write the causes for code scanning, as SARIF 2.1.0.
        sarif: Option<Place>,
        /// Write the causes as failed tests, as JUnit's XML.
        junit: Option<Place>,
        /// The recorded program may have failed, or been ended early.
        allow_failure: bool,
        /// Seed of the images that are drawn.
        #[schemars(range(max = 1u64 << 50))]
        seed: u64 = 1,
        /// Threads; 0 for one a processor.
        #[schemars(range(max = 1024), extend("short" = "j"))]
        jobs: usize,
    }
}

question! {
    /// Run the recovery on one image only.
    ///
    /// Example: sardonyx crash-test replay app.parquet 2+1v1 --pool data.pool --recover 'app-check {pool}'
    pub struct CrashTestReplay {
        /// A recording of sardonyx trace record --pc.
        #[schemars(extend("argument" = "RECORDING", "needed" = true))]
        recording: Place,
        /// The image, as a report names it: 2+1v1.
        #[schemars(extend("argument" = "IMAGE", "needed" = true))]
        image: String,
        /// The mapped file to cut, or a folder of such files; repeatable.
        #[schemars(extend("needed" = true))]
        pool: Vec<Place>,
        /// The program's recovery and check, with {pool} for the file ({pool2} for the second, {pools} for the folder of
        /// all) and {acks} for what had been printed.
        #[schemars(extend("value" = "CMD", "needed" = true))]
        recover: String,
        /// What survives a cut: persistent memory (adr; eadr with the caches), or a file on a disk, by pages or by sectors;
        /// auto: pages if it only syncs (msync, fsync), else adr.
        platform: String = "auto".into(),
        /// The operations of the recorded run, one a line: what --recover prints must be what the program leaves of a
        /// beginning of them.
        operations: Option<Place>,
        /// Makes a pool, {pool}, of the operations in a file, {operations}.
        #[schemars(extend("value" = "CMD"))]
        apply: Option<String>,
        /// How operations were promised: by a printed line each (lines), or not (none).
        acknowledged: String = "lines".into(),
        /// Count the stores of this line as persistent at once; repeatable.
        #[schemars(extend("value" = "FILE:LINE"))]
        assume_persisted: Vec<String>,
        /// Cut only this order of the threads, as a report names it.
        #[schemars(extend("value" = "THREAD@ROW"))]
        thread_order: Option<String>,
        /// Exit statuses that are no violation.
        ok: Statuses,
        /// Leave here what each cause's recovery was given, as it fails and as it passes.
        keep: Option<Place>,
    } rare {
        /// Report without lines of code.
        no_source: bool,
        /// Time limit of one recovery; default: 50 times as long as it takes without a cut, and at least 2 s.
        time_limit: Option<Seconds>,
        /// Memory limit of one recovery.
        #[schemars(extend("value" = "BYTES"))]
        memory_limit: Bytes = Bytes(4 << 30),
    }
}

question! {
    /// Without any run, list what is never flushed or flushed for nothing.
    ///
    /// Example: sardonyx crash-test lint app.parquet --pool data.pool
    pub struct CrashTestLint {
        /// A recording of sardonyx trace record --pc.
        #[schemars(extend("argument" = "RECORDING", "needed" = true))]
        recording: Place,
        /// The mapped file to cut, or a folder of such files; repeatable.
        #[schemars(extend("needed" = true))]
        pool: Vec<Place>,
        /// Also what a library did to set the pool up.
        all: bool,
        /// A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's .config, Ramulator's .yaml.
        #[schemars(extend("short" = "m"))]
        machine: String = "sca".into(),
        /// Report without lines of code.
        no_source: bool,
    }
}

question! {
    /// Run a program that writes files, and its own recovery on what each cut could leave.
    ///
    /// The program is followed with all that it starts, and each operation on the folder is recorded.
    ///
    /// Example: sardonyx crash-test files --files data --recover './app check {dir} {acks}' -- ./app run data
    ///
    /// Example: sardonyx crash-test files --files data --list -- ./app run data
    pub struct CrashTestFiles {
        /// What to run, after --.
        #[schemars(extend("argument" = "-- PROGRAM ARGS...", "needed" = true))]
        program: Vec<String>,
        /// The folder that the program works in; it is changed.
        #[schemars(extend("needed" = true))]
        files: Place,
        /// The program's recovery and check, with {dir} for the folder and {acks} for what had been printed.
        #[schemars(extend("value" = "CMD"))]
        recover: Option<String>,
        /// A ready-made check of all that is in the folder instead: git, leveldb, lmdb, postgres, redis, rocksdb, sqlite;
        /// 'redis {acks}' (and those with keys) holds it to lines KEY VALUE that had been printed.
        check: Option<String>,
        /// Only list the operations, with their places.
        list: bool,
        /// The file system: ext4-ordered, ext4-writeback, xfs, btrfs, or strict (what POSIX promises, and no more).
        platform: String = "ext4-ordered".into(),
        /// Total time, from the first recovery on.
        budget: Seconds = Seconds(50.0),
        /// Run the program again with a sync (EIO) or a write (ENOSPC) failing, one a run.
        errors: bool,
    } rare {
        /// The program's descriptor whose text is in {acks}.
        #[schemars(range(max = 1u64 << 20))]
        acks_fd: u64 = 1,
        /// What it sends to any socket is in {acks} instead.
        acks_socket: bool,
        /// The program is a server: what runs next to it, and is told what is promised. What it prints is in {acks}.
        #[schemars(extend("value" = "CMD"))]
        client: Option<String>,
        /// Run again until it succeeds, before --client runs.
        #[schemars(extend("value" = "CMD", "requires" = "client"))]
        ready: Option<String>,
        /// Stops the server when --client has ended; default: a signal, SIGTERM.
        #[schemars(extend("value" = "CMD", "requires" = "client"))]
        stop: Option<String>,
        /// A disk's sector, which is not torn; 0: 512 bytes.
        sector: Bytes = Bytes(0),
        /// A page that file system and disk write whole or not at all; 0: none, on btrfs 4K.
        atomic_page: Bytes = Bytes(0),
        /// Time after which the program is ended.
        record_limit: Seconds = Seconds(50.0),
        /// Exit statuses that are no violation.
        ok: Statuses,
        /// Time limit of one recovery; default: 50 times as long as it takes without a cut, and at least 2 s.
        time_limit: Option<Seconds>,
        /// Memory limit of one recovery.
        #[schemars(extend("value" = "BYTES"))]
        memory_limit: Bytes = Bytes(4 << 30),
        /// Leave here what each cause's recovery was given, as it fails and as it passes.
        keep: Option<Place>,
        /// Causes that are accepted, from --write-baseline.
        baseline: Option<Place>,
        /// Write the causes found here, as accepted from now on.
        write_baseline: Option<Place>,
        /// Write the causes for code scanning, as SARIF 2.1.0.
        sarif: Option<Place>,
        /// Write the causes as failed tests, as JUnit's XML.
        junit: Option<Place>,
        /// The recorded program may have failed, or been ended early.
        allow_failure: bool,
        /// Show all causes, and all calls that led to each operation.
        verbose: bool,
        /// Seed of the images that are drawn.
        #[schemars(range(max = 1u64 << 50))]
        seed: u64 = 1,
        /// Threads; 0 for one a processor.
        #[schemars(range(max = 1024), extend("short" = "j"))]
        jobs: usize,
    }
}

/// Exit statuses: numbers, or one text with commas between them.
#[derive(Clone, Debug, Serialize)]
pub struct Statuses(Vec<u8>);

impl Default for Statuses {
    fn default() -> Statuses {
        Statuses(vec![0])
    }
}

looks!(Statuses: {"type": ["array", "string"], "items": {"type": "integer"}, "format": "statuses"});

impl<'de> Deserialize<'de> for Statuses {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let given = serde_json::Value::deserialize(from)?;
        let shown = given
            .as_str()
            .map_or_else(|| given.to_string(), str::to_owned);
        let words = shown.trim_matches(['[', ']']).split(',').map(str::trim);
        let status = |word: &str| {
            let digits = word.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| word.parse().ok())?
        };
        let statuses: Option<Vec<u8>> = words.filter(|word| !word.is_empty()).map(status).collect();
        let problem = || de::Error::custom(format!("{shown}: give exit statuses, as in 0,3"));
        statuses.map(Statuses).ok_or_else(problem)
    }
}

/// The least memory of a recovery.
const LEAST: u64 = 1 << 20;

fn check_memory(limit: Bytes) -> Result<(), String> {
    limit.within("--memory-limit", LEAST, 1 << 62)
}

/// What a recovery's output is held to, and how.
struct Oracle<'a> {
    recover: &'a str,
    operations: bool,
    apply: bool,
    acknowledged: &'a str,
}

impl Oracle<'_> {
    fn check(&self) -> Result<(), String> {
        let alone = !self.operations && self.acknowledged != "lines";
        if self.operations != self.apply || alone {
            return Err(
                "--operations FILE and --apply 'CMD {pool} {operations}': give both, to hold the recovery to the \
                 operations of the run, or neither, and no --acknowledged"
                    .into(),
            );
        }
        check_known(
            "way",
            "--acknowledged",
            self.acknowledged,
            &["lines", "none"],
        )?;
        if self.operations && self.recover.contains("{acks}") {
            return Err(
                "--operations: what had been printed is looked at without the recovery; leave {acks} out of --recover"
                    .into(),
            );
        }
        Ok(())
    }
}

/// What may survive a cut of a recording.
const PLATFORMS: [&str; 5] = ["auto", "adr", "eadr", "pages", "sectors"];

impl Question for CrashTestSearch {
    fn check(&self, given: &Given) -> Result<(), String> {
        check_memory(self.memory_limit)?;
        check_known("tear", "--tear", &self.tear, &["lines", "words"])?;
        check_known(
            "creation",
            "--creation",
            &self.creation,
            &["orderly", "status", "skip"],
        )?;
        let platforms = &PLATFORMS[..if self.designs.is_some() { 3 } else { 5 }];
        check_known("platform", "--platform", &self.platform, platforms)?;
        for (more, option) in [
            (self.threads, "--threads"),
            (self.recovery, "--recovery"),
            (self.designs.is_some(), "--designs"),
        ] {
            if more {
                let oracle = ["operations", "apply", "acknowledged", "thread_order"];
                given.idle(&oracle, &format!("with {option}"))?;
            }
        }
        Oracle {
            recover: &self.recover,
            operations: self.operations.is_some(),
            apply: self.apply.is_some(),
            acknowledged: &self.acknowledged,
        }
        .check()
    }
}

impl Question for CrashTestReplay {
    fn check(&self, _: &Given) -> Result<(), String> {
        check_memory(self.memory_limit)?;
        check_known("platform", "--platform", &self.platform, &PLATFORMS)?;
        Oracle {
            recover: &self.recover,
            operations: self.operations.is_some(),
            apply: self.apply.is_some(),
            acknowledged: &self.acknowledged,
        }
        .check()
    }
}

impl Question for CrashTestLint {}

/// Ready-made checks.
const CHECKS: [&str; 7] = [
    "git", "leveldb", "lmdb", "postgres", "redis", "rocksdb", "sqlite",
];

/// What a list of operations has no use for.
const OF_A_SEARCH: [&str; 16] = [
    "recover",
    "check",
    "budget",
    "errors",
    "ok",
    "time_limit",
    "memory_limit",
    "keep",
    "baseline",
    "write_baseline",
    "sarif",
    "junit",
    "allow_failure",
    "verbose",
    "seed",
    "jobs",
];

impl Question for CrashTestFiles {
    fn check(&self, given: &Given) -> Result<(), String> {
        check_known(
            "platform",
            "--platform",
            &self.platform,
            &ALL.map(|known| known.name),
        )?;
        ALL[0].with(self.sector.0, self.atomic_page.0)?;
        if self.acks_socket && self.acks_fd != 1 {
            return Err(format!(
                "--acks-fd {}, --acks-socket: both say what is in {{acks}}; give one",
                self.acks_fd
            ));
        }
        if self.list {
            return given.idle(&OF_A_SEARCH, "with --list");
        }
        check_memory(self.memory_limit)?;
        if let Some(check) = &self.check {
            let name = check.strip_suffix(" {acks}").unwrap_or(check);
            check_known("check", "--check", name, &CHECKS)?;
        }
        match (&self.recover, &self.check) {
            (Some(_), Some(_)) => {
                Err("--recover, --check: both check a folder; give one".into())
            }
            (Some(_), None) | (None, Some(_)) => Ok(()),
            (None, None) => Err(
                "--recover 'CMD {dir}': give the command that checks a folder, or --check with a ready-made one, or --list to \
                 see what the program does"
                    .into(),
            ),
        }
    }
}
