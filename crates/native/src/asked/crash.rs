//! What the commands of this door are asked.
use sardonyx_crash::{Platform, Tear};
use sardonyx_question::{Bytes, Given, Names, Pairs, Place, Question, Seconds, looks, question};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::check_known;

question! {
    /// Try each design by a plan of runs, all cut at every position.
    ///
    /// Runs with several seeds, tiny caches and queues, one core and two, and who shares lines of counters. The second
    /// table says what the verdict rests on.
    ///
    /// Example: sardonyx crash run btree --designs sca,fca,no-atomicity
    ///
    /// Example: sardonyx crash run all --designs esd+sca --platform eadr --thorough 5m
    ///
    /// Example: sardonyx crash run queue --designs sca --cores 4 --mutant no-fence-after-log
    ///
    /// Example: sardonyx crash run btree --designs sca --set encryption.global_counter=paper --json crash.json
    ///
    /// Example: sardonyx crash run btree --designs sca,sca@mac,sca@merkle --attack
    pub struct CrashRun {
        /// Programs (see sardonyx programs), or all of them: all.
        #[schemars(extend("argument" = "PROGRAM.."))]
        programs: Vec<String>,
        /// Designs, or MAPPING+POLICY, separated by commas.
        #[schemars(extend("short" = "d"))]
        designs: Names = Names::of("sca,fca,co-located,co-located-cc,no-encryption,no-atomicity"),
        /// What reserve power drains at a cut: adr, eadr or none; or a CXL global persistent flush: gpf, gpf-failed,
        /// gpf-device or gpf-part.
        platform: String = "adr".into(),
        /// Cores, each with a structure of its own.
        #[schemars(range(min = 1, max = 64))]
        cores: Option<u64>,
        /// Plant this mistake in the program's transactions.
        mutant: Option<String>,
        /// A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's .config, Ramulator's .yaml.
        #[schemars(extend("short" = "m"))]
        machine: String = "sca".into(),
        /// Set a key of the machine; repeatable.
        #[schemars(extend("short" = "s", "value" = "KEY=VALUE"))]
        set: Pairs,
        /// Have an attacker change the medium, after cuts and in runs; default: for designs with integrity.
        attack: Option<bool>,
        /// Go on with further seeds for this time per design: 90s, 10m or 2h.
        thorough: Option<Seconds>,
        /// The file of the document, beside which replay files lie.
        beside: Option<Place>,
    } rare {
        /// Transactions of each core.
        #[schemars(range(min = 1, max = 1000000))]
        transactions: Option<u64>,
        /// Size of a transaction's item: 64 to 4K.
        #[schemars(extend("value" = "BYTES"))]
        transaction_size: Option<Bytes>,
        /// Size of each structure after setup: 4K to 1G.
        #[schemars(extend("value" = "BYTES"))]
        footprint: Option<Bytes>,
        /// Seed of keys, evictions, delays and samples.
        #[schemars(range(max = 1u64 << 50))]
        seed: u64 = 1,
        /// The program keeps no undo log; the design's own stays.
        no_log: bool,
        /// What a cut leaves whole while a line is being accepted: the line (lines) or each 8 bytes (words).
        tear: String = "lines".into(),
        /// After every Nth cut, go on and cut again; 0: never.
        recovery_cuts: u64 = 64,
        /// Check every Nth cut in full, the others by what it changed; 1: every cut.
        #[schemars(range(min = 1))]
        full: u64 = 509,
        /// Directory of replay files; default: that of --json, else results/crash.
        #[schemars(extend("short" = "o", "value" = "DIR"))]
        out: Option<Place>,
        /// Threads; 0 for one a processor.
        #[schemars(range(max = 1024), extend("short" = "j"))]
        jobs: u64,
        /// How many cuts of a run: all, or a number of positions drawn from the seed.
        cuts: Cuts,
    }
}

question! {
    /// Make one run of each design, with the settings given, and cut it.
    ///
    /// Example: sardonyx crash once queue --designs sca,no-atomicity
    ///
    /// Example: sardonyx crash once btree --designs sca --transactions 8 --cuts at:40
    pub struct CrashOnce {
        /// Programs (see sardonyx programs), or all of them: all.
        #[schemars(extend("argument" = "PROGRAM.."))]
        programs: Vec<String>,
        /// Designs, or MAPPING+POLICY, separated by commas.
        #[schemars(extend("short" = "d"))]
        designs: Names = Names::of("sca,fca,co-located,co-located-cc,no-encryption,no-atomicity"),
        /// What reserve power drains at a cut: adr, eadr or none; or a CXL global persistent flush: gpf, gpf-failed,
        /// gpf-device or gpf-part.
        platform: String = "adr".into(),
        /// Cores, each with a structure of its own.
        #[schemars(range(min = 1, max = 64))]
        cores: Option<u64>,
        /// Transactions of each core.
        #[schemars(range(min = 1, max = 1000000))]
        transactions: Option<u64>,
        /// Size of a transaction's item: 64 to 4K.
        #[schemars(extend("value" = "BYTES"))]
        transaction_size: Option<Bytes>,
        /// Size of each structure after setup: 4K to 1G.
        #[schemars(extend("value" = "BYTES"))]
        footprint: Option<Bytes>,
        /// Plant this mistake in the program's transactions.
        mutant: Option<String>,
        /// A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's .config, Ramulator's .yaml.
        #[schemars(extend("short" = "m"))]
        machine: String = "sca".into(),
        /// Set a key of the machine; repeatable.
        #[schemars(extend("short" = "s", "value" = "KEY=VALUE"))]
        set: Pairs,
        /// Have an attacker change the medium, after cuts and in runs; default: for designs with integrity.
        attack: Option<bool>,
        /// Which cuts: all, a number of positions drawn from the seed, or at:N for one.
        cuts: Cuts,
        /// Lines of counters: apart, packed (log and data share), interleaved (cores too).
        sharing: String = "apart".into(),
        /// The file of the document, beside which replay files lie.
        beside: Option<Place>,
    } rare {
        /// Seed of keys, evictions, delays and samples.
        #[schemars(range(max = 1u64 << 50))]
        seed: u64 = 1,
        /// The program keeps no undo log; the design's own stays.
        no_log: bool,
        /// What a cut leaves whole while a line is being accepted: the line (lines) or each 8 bytes (words).
        tear: String = "lines".into(),
        /// After every Nth cut, go on and cut again; 0: never.
        recovery_cuts: u64 = 64,
        /// Check every Nth cut in full, the others by what it changed; 1: every cut.
        #[schemars(range(min = 1))]
        full: u64 = 509,
        /// Directory of replay files; default: that of --json, else results/crash.
        #[schemars(extend("short" = "o", "value" = "DIR"))]
        out: Option<Place>,
        /// Threads; 0 for one a processor.
        #[schemars(range(max = 1024), extend("short" = "j"))]
        jobs: u64,
    }
}

question! {
    /// Count one run's cuts by the stage of the transaction (SCA, Table 1).
    ///
    /// Example: sardonyx crash stages array-swap --designs sca --transactions 20
    pub struct CrashStages {
        /// Programs (see sardonyx programs), or all of them: all.
        #[schemars(extend("argument" = "PROGRAM.."))]
        programs: Vec<String>,
        /// Designs, or MAPPING+POLICY, separated by commas.
        #[schemars(extend("short" = "d"))]
        designs: Names = Names::of("sca,fca,co-located,co-located-cc,no-encryption,no-atomicity"),
        /// What reserve power drains at a cut: adr, eadr or none; or a CXL global persistent flush: gpf, gpf-failed,
        /// gpf-device or gpf-part.
        platform: String = "adr".into(),
        /// Cores, each with a structure of its own.
        #[schemars(range(min = 1, max = 64))]
        cores: Option<u64>,
        /// Transactions of each core.
        #[schemars(range(min = 1, max = 1000000))]
        transactions: Option<u64>,
        /// Size of a transaction's item: 64 to 4K.
        #[schemars(extend("value" = "BYTES"))]
        transaction_size: Option<Bytes>,
        /// Size of each structure after setup: 4K to 1G.
        #[schemars(extend("value" = "BYTES"))]
        footprint: Option<Bytes>,
        /// Plant this mistake in the program's transactions.
        mutant: Option<String>,
        /// Seed of keys, evictions, delays and samples.
        #[schemars(range(max = 1u64 << 50))]
        seed: u64 = 1,
        /// A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's .config, Ramulator's .yaml.
        #[schemars(extend("short" = "m"))]
        machine: String = "sca".into(),
        /// Set a key of the machine; repeatable.
        #[schemars(extend("short" = "s", "value" = "KEY=VALUE"))]
        set: Pairs,
        /// Lines of counters: apart, packed (log and data share), interleaved (cores too).
        sharing: String = "apart".into(),
    }
}

question! {
    /// Try all orders in which the writes of one small run can be accepted, and all their cuts.
    ///
    /// All cuts of the life after each cut are tried too.
    ///
    /// Example: sardonyx crash exhaustive array-swap --designs sca,fca,esd+sca
    pub struct CrashExhaustive {
        /// Programs (see sardonyx programs), or all of them: all.
        #[schemars(extend("argument" = "PROGRAM.."))]
        programs: Vec<String>,
        /// Designs, or MAPPING+POLICY, separated by commas.
        #[schemars(extend("short" = "d"))]
        designs: Names = Names::of("sca,fca,co-located,co-located-cc,no-encryption,no-atomicity"),
        /// What reserve power drains at a cut: adr, eadr or none; or a CXL global persistent flush: gpf, gpf-failed,
        /// gpf-device or gpf-part.
        platform: String = "adr".into(),
        /// Cores, each with a structure of its own.
        #[schemars(range(min = 1, max = 64))]
        cores: Option<u64>,
        /// Transactions of each core.
        #[schemars(range(min = 1, max = 1000000))]
        transactions: Option<u64>,
        /// Plant this mistake in the program's transactions.
        mutant: Option<String>,
        /// A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's .config, Ramulator's .yaml.
        #[schemars(extend("short" = "m"))]
        machine: String = "sca".into(),
        /// Set a key of the machine; repeatable.
        #[schemars(extend("short" = "s", "value" = "KEY=VALUE"))]
        set: Pairs,
        /// Lines of counters: apart, packed (log and data share), interleaved (cores too). Default: both ends.
        sharing: Option<String>,
        /// Give up beyond N states.
        #[schemars(range(min = 1))]
        most_states: u64 = 1000000,
        /// Only the order in which these writes go first, one number for each choice; after them always the first
        /// write. start: no numbers.
        #[schemars(extend("value" = "N,N.."))]
        order: Option<String>,
        /// Leave out the life after each cut.
        one_life: bool,
    } rare {
        /// Size of a transaction's item: 64 to 4K.
        #[schemars(extend("value" = "BYTES"))]
        transaction_size: Option<Bytes>,
        /// Size of each structure after setup: 4K to 1G.
        #[schemars(extend("value" = "BYTES"))]
        footprint: Option<Bytes>,
        /// Seed of keys, evictions, delays and samples.
        #[schemars(range(max = 1u64 << 50))]
        seed: u64 = 1,
        /// The program keeps no undo log; the design's own stays.
        no_log: bool,
    }
}

question! {
    /// Make the cut of a replay file again.
    ///
    /// Example: sardonyx crash replay results/crash/btree-no-atomicity-lost.json
    pub struct CrashReplay {
        /// A replay file that a violation printed.
        #[schemars(extend("argument" = "PATH", "needed" = true))]
        file: Place,
        /// Threads; 0 for one a processor.
        #[schemars(range(max = 1024), extend("short" = "j"))]
        jobs: u64,
    }
}

/// Which cuts of a run are made: "all", a number of positions drawn from the seed, or the one of "at:N".
#[derive(Clone, Debug, Default)]
pub enum Cuts {
    #[default]
    All,
    Drawn(u64),
    At(u64),
}

looks!(Cuts: {"type": ["integer", "string"]});

impl Serialize for Cuts {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Cuts::All => to.serialize_str("all"),
            Cuts::Drawn(count) => to.serialize_u64(*count),
            Cuts::At(position) => to.collect_str(&format_args!("at:{position}")),
        }
    }
}

impl<'de> Deserialize<'de> for Cuts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let given = serde_json::Value::deserialize(from)?;
        let text = given
            .as_str()
            .map_or_else(|| given.to_string(), str::to_owned);
        let number = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let number = digits.then(|| text.parse::<u64>().ok())??;
            (number <= i64::MAX as u64).then_some(number)
        };
        if text == "all" {
            return Ok(Cuts::All);
        }
        if let Some(position) = text.strip_prefix("at:") {
            let problem = || de::Error::custom(format!("{text}: give a position, as in at:812"));
            return number(position).map(Cuts::At).ok_or_else(problem);
        }
        let problem = || de::Error::custom(format!("{text}: give \"all\" or a number of cuts"));
        let drawn = number(&text).filter(|count| *count > 0);
        drawn.map(Cuts::Drawn).ok_or_else(problem)
    }
}

/// Refuses what no run of a program under a design can be.
macro_rules! check_tried {
    ($asked:ident) => {{
        if $asked.programs.is_empty() {
            return Err("no program is named; sardonyx programs lists them, all is all".into());
        }
        let platforms = Platform::ALL.map(|platform| platform.name());
        check_known("platform", "--platform", &$asked.platform, &platforms)?;
        check_size("--transaction-size", $asked.transaction_size, 64, 4096)?;
        check_size("--footprint", $asked.footprint, 4096, 1 << 30)?;
    }};
}

/// The size of something of a program, if it is given.
fn check_size(option: &str, size: Option<Bytes>, least: u64, most: u64) -> Result<(), String> {
    size.map_or(Ok(()), |size| size.check(option, least, most))
}

fn check_sharing(name: &str) -> Result<(), String> {
    check_known(
        "sharing",
        "--sharing",
        name,
        &["apart", "packed", "interleaved"],
    )
}

/// Refuses a mistake in a log that is not kept.
fn check_log(no_log: bool, mutant: Option<&str>) -> Result<(), String> {
    match mutant {
        Some(mutant) if no_log => Err(format!(
            "--no-log: there is no log to plant {mutant} in; leave one out"
        )),
        _ => Ok(()),
    }
}

/// Refuses a tear that a platform has no say about.
fn check_tear(tear: &str, platform: &str) -> Result<(), String> {
    check_known("tear", "--tear", tear, &Tear::ALL.map(|tear| tear.name()))?;
    match tear {
        "words" if platform != "adr" => Err(format!(
            "--tear words: is for --platform adr; {platform} says its own"
        )),
        _ => Ok(()),
    }
}

impl Question for CrashRun {
    fn check(&self, _: &Given) -> Result<(), String> {
        check_tried!(self);
        check_log(self.no_log, self.mutant.as_deref())?;
        check_tear(&self.tear, &self.platform)?;
        match self.cuts {
            Cuts::At(position) => Err(format!(
                "--cuts at:{position}: give \"all\" or a number of cuts"
            )),
            _ => Ok(()),
        }
    }
}

impl Question for CrashOnce {
    fn check(&self, _: &Given) -> Result<(), String> {
        check_tried!(self);
        check_log(self.no_log, self.mutant.as_deref())?;
        check_tear(&self.tear, &self.platform)?;
        check_sharing(&self.sharing)
    }
}

impl Question for CrashStages {
    fn check(&self, _: &Given) -> Result<(), String> {
        check_tried!(self);
        check_sharing(&self.sharing)
    }
}

impl Question for CrashExhaustive {
    fn check(&self, _: &Given) -> Result<(), String> {
        check_tried!(self);
        check_log(self.no_log, self.mutant.as_deref())?;
        self.sharing.as_deref().map_or(Ok(()), check_sharing)?;
        let order = self.order.as_deref().unwrap_or("start");
        let is_number = |word: &str| {
            word.bytes().all(|byte| byte.is_ascii_digit()) && word.parse::<u16>().is_ok()
        };
        if order == "start" || order.split(',').all(is_number) {
            return Ok(());
        }
        Err(format!(
            "--order {order}: give numbers with commas between, as a violation prints them"
        ))
    }
}

impl Question for CrashReplay {}
