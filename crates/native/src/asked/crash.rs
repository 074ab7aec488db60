//! What the commands of this door are asked.
use sardonyx_question::{Bytes, Given, Names, Pairs, Place, Question, Seconds, question};

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
        /// What reserve power drains at a cut: adr, eadr, bbb or none; or a CXL global persistent flush: gpf, gpf-failed,
        /// gpf-device or gpf-part.
        #[schemars(extend("enum" = ["adr", "eadr", "bbb", "none", "gpf", "gpf-failed", "gpf-device", "gpf-part"]))]
        platform: String = "adr".into(),
        /// Cores, each with a structure of its own.
        #[schemars(range(min = 1, max = 64))]
        cores: Option<u64>,
        /// Transactions of each core.
        #[schemars(range(min = 1, max = 1000000), extend("rare" = true))]
        transactions: Option<u64>,
        /// Size of a transaction's item: 64 to 4K.
        #[schemars(range(min = 64, max = 4096), extend("value" = "BYTES", "rare" = true))]
        transaction_size: Option<Bytes>,
        /// Size of each structure after setup: 4K to 1G.
        #[schemars(range(min = 4096, max = 1_073_741_824), extend("value" = "BYTES", "rare" = true))]
        footprint: Option<Bytes>,
        /// Plant this mistake in the program's transactions.
        mutant: Option<String>,
        /// Seed of keys, evictions, delays and samples.
        #[schemars(range(max = 1u64 << 50), extend("rare" = true))]
        seed: u64 = 1,
        /// A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's .config, Ramulator's .yaml.
        #[schemars(extend("short" = "m", "format" = "machine"))]
        machine: String = "sca".into(),
        /// Set a key of the machine; repeatable.
        #[schemars(extend("short" = "s", "value" = "KEY=VALUE"))]
        set: Pairs,
        /// A second medium: a cache before it, as ddr4-2400.
        #[schemars(extend("value" = "MACHINE", "sets" = "near.extends"))]
        near: Option<String>,
        /// The design of the second medium; default: no-encryption.
        #[schemars(extend("value" = "DESIGN", "sets" = "near.design", "rare" = true))]
        near_design: Option<String>,
        /// The program keeps no undo log; the design's own stays.
        #[schemars(extend("rare" = true))]
        no_log: bool,
        /// What a cut leaves whole while a line is being accepted: the line (lines) or each 8 bytes (words).
        #[schemars(extend("enum" = ["lines", "words"], "rare" = true))]
        tear: String = "lines".into(),
        /// Have an attacker change the medium, after cuts and in runs; default: for designs with integrity.
        attack: Option<bool>,
        /// After every Nth cut, go on and cut again; 0: never.
        #[schemars(extend("rare" = true))]
        recovery_cuts: u64 = 64,
        /// Check every Nth cut in full, the others by what it changed; 1: every cut.
        #[schemars(range(min = 1), extend("rare" = true))]
        full: u64 = 509,
        /// Directory of replay files.
        #[schemars(extend("short" = "o", "rare" = true))]
        out: Place = Place("results/crash".into()),
        /// Threads; 0 for one a processor.
        #[schemars(range(max = 1024), extend("short" = "j", "rare" = true))]
        jobs: u64,
        /// How many cuts of a run: all, or a number of positions drawn from the seed.
        #[schemars(extend("rare" = true))]
        cuts: String = "all".into(),
        /// Go on with further seeds for this time per design: 90s, 10m or 2h.
        #[schemars(extend("value" = "TIME"))]
        thorough: Option<Seconds>,
        /// If too little was tried, go on: without the options that keep runs from it, and with others and other programs.
        until_exercised: bool,
        /// Plant faults into each design as well, and say which of them its plan finds.
        self_test: bool,
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
        /// What reserve power drains at a cut: adr, eadr, bbb or none; or a CXL global persistent flush: gpf, gpf-failed,
        /// gpf-device or gpf-part.
        #[schemars(extend("enum" = ["adr", "eadr", "bbb", "none", "gpf", "gpf-failed", "gpf-device", "gpf-part"]))]
        platform: String = "adr".into(),
        /// Cores, each with a structure of its own.
        #[schemars(range(min = 1, max = 64))]
        cores: Option<u64>,
        /// Transactions of each core.
        #[schemars(range(min = 1, max = 1000000))]
        transactions: Option<u64>,
        /// Size of a transaction's item: 64 to 4K.
        #[schemars(range(min = 64, max = 4096), extend("value" = "BYTES"))]
        transaction_size: Option<Bytes>,
        /// Size of each structure after setup: 4K to 1G.
        #[schemars(range(min = 4096, max = 1_073_741_824), extend("value" = "BYTES"))]
        footprint: Option<Bytes>,
        /// Plant this mistake in the program's transactions.
        mutant: Option<String>,
        /// Seed of keys, evictions, delays and samples.
        #[schemars(range(max = 1u64 << 50), extend("rare" = true))]
        seed: u64 = 1,
        /// A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's .config, Ramulator's .yaml.
        #[schemars(extend("short" = "m", "format" = "machine"))]
        machine: String = "sca".into(),
        /// Set a key of the machine; repeatable.
        #[schemars(extend("short" = "s", "value" = "KEY=VALUE"))]
        set: Pairs,
        /// A second medium: a cache before it, as ddr4-2400.
        #[schemars(extend("value" = "MACHINE", "sets" = "near.extends", "rare" = true))]
        near: Option<String>,
        /// The design of the second medium; default: no-encryption.
        #[schemars(extend("value" = "DESIGN", "sets" = "near.design", "rare" = true))]
        near_design: Option<String>,
        /// The program keeps no undo log; the design's own stays.
        #[schemars(extend("rare" = true))]
        no_log: bool,
        /// What a cut leaves whole while a line is being accepted: the line (lines) or each 8 bytes (words).
        #[schemars(extend("enum" = ["lines", "words"], "rare" = true))]
        tear: String = "lines".into(),
        /// Have an attacker change the medium, after cuts and in runs; default: for designs with integrity.
        attack: Option<bool>,
        /// After every Nth cut, go on and cut again; 0: never.
        #[schemars(extend("rare" = true))]
        recovery_cuts: u64 = 64,
        /// Check every Nth cut in full, the others by what it changed; 1: every cut.
        #[schemars(range(min = 1), extend("rare" = true))]
        full: u64 = 509,
        /// Directory of replay files.
        #[schemars(extend("short" = "o", "rare" = true))]
        out: Place = Place("results/crash".into()),
        /// Threads; 0 for one a processor.
        #[schemars(range(max = 1024), extend("short" = "j", "rare" = true))]
        jobs: u64,
        /// Which cuts: all, a number of positions drawn from the seed, or at:N for one.
        cuts: String = "all".into(),
        /// Lines of counters: apart, packed (log and data share), interleaved (cores too).
        #[schemars(extend("enum" = ["apart", "packed", "interleaved"]))]
        sharing: String = "apart".into(),
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
        /// What reserve power drains at a cut: adr, eadr, bbb or none; or a CXL global persistent flush: gpf, gpf-failed,
        /// gpf-device or gpf-part.
        #[schemars(extend("enum" = ["adr", "eadr", "bbb", "none", "gpf", "gpf-failed", "gpf-device", "gpf-part"]))]
        platform: String = "adr".into(),
        /// Cores, each with a structure of its own.
        #[schemars(range(min = 1, max = 64))]
        cores: Option<u64>,
        /// Transactions of each core.
        #[schemars(range(min = 1, max = 1000000))]
        transactions: Option<u64>,
        /// Size of a transaction's item: 64 to 4K.
        #[schemars(range(min = 64, max = 4096), extend("value" = "BYTES"))]
        transaction_size: Option<Bytes>,
        /// Size of each structure after setup: 4K to 1G.
        #[schemars(range(min = 4096, max = 1_073_741_824), extend("value" = "BYTES"))]
        footprint: Option<Bytes>,
        /// Plant this mistake in the program's transactions.
        mutant: Option<String>,
        /// Seed of keys, evictions, delays and samples.
        #[schemars(range(max = 1u64 << 50))]
        seed: u64 = 1,
        /// A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's .config, Ramulator's .yaml.
        #[schemars(extend("short" = "m", "format" = "machine"))]
        machine: String = "sca".into(),
        /// Set a key of the machine; repeatable.
        #[schemars(extend("short" = "s", "value" = "KEY=VALUE"))]
        set: Pairs,
        /// Lines of counters: apart, packed (log and data share), interleaved (cores too).
        #[schemars(extend("enum" = ["apart", "packed", "interleaved"]))]
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
        /// What reserve power drains at a cut: adr, eadr, bbb or none; or a CXL global persistent flush: gpf, gpf-failed,
        /// gpf-device or gpf-part.
        #[schemars(extend("enum" = ["adr", "eadr", "bbb", "none", "gpf", "gpf-failed", "gpf-device", "gpf-part"]))]
        platform: String = "adr".into(),
        /// Cores, each with a structure of its own.
        #[schemars(range(min = 1, max = 64))]
        cores: Option<u64>,
        /// Transactions of each core.
        #[schemars(range(min = 1, max = 1000000))]
        transactions: Option<u64>,
        /// Size of a transaction's item: 64 to 4K.
        #[schemars(range(min = 64, max = 4096), extend("value" = "BYTES", "rare" = true))]
        transaction_size: Option<Bytes>,
        /// Size of each structure after setup: 4K to 1G.
        #[schemars(range(min = 4096, max = 1_073_741_824), extend("value" = "BYTES", "rare" = true))]
        footprint: Option<Bytes>,
        /// Plant this mistake in the program's transactions.
        mutant: Option<String>,
        /// Seed of keys, evictions, delays and samples.
        #[schemars(range(max = 1u64 << 50), extend("rare" = true))]
        seed: u64 = 1,
        /// A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's .config, Ramulator's .yaml.
        #[schemars(extend("short" = "m", "format" = "machine"))]
        machine: String = "sca".into(),
        /// Set a key of the machine; repeatable.
        #[schemars(extend("short" = "s", "value" = "KEY=VALUE"))]
        set: Pairs,
        /// The program keeps no undo log; the design's own stays.
        #[schemars(extend("rare" = true))]
        no_log: bool,
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

impl Question for CrashRun {
    fn check(&self, _: &Given) -> Result<(), String> {
        named(&self.programs)?;
        logged(self.no_log, self.mutant.as_deref())?;
        torn(&self.tear, &self.platform)?;
        count(&self.cuts)
    }
}

impl Question for CrashOnce {
    fn check(&self, _: &Given) -> Result<(), String> {
        named(&self.programs)?;
        logged(self.no_log, self.mutant.as_deref())?;
        torn(&self.tear, &self.platform)?;
        let Some(at) = self.cuts.strip_prefix("at:") else {
            return count(&self.cuts);
        };
        match at.parse::<u64>() {
            Ok(at) if i64::try_from(at).is_ok() => Ok(()),
            _ => Err(format!(
                "--cuts {}: give a position, as in at:812",
                self.cuts
            )),
        }
    }
}

impl Question for CrashStages {
    fn check(&self, _: &Given) -> Result<(), String> {
        named(&self.programs)
    }
}

impl Question for CrashExhaustive {
    fn check(&self, _: &Given) -> Result<(), String> {
        named(&self.programs)?;
        logged(self.no_log, self.mutant.as_deref())?;
        let Some(order) = self.order.as_deref().filter(|order| *order != "start") else {
            return Ok(());
        };
        if order.split(',').all(|number| number.parse::<u16>().is_ok()) {
            return Ok(());
        }
        Err(format!(
            "--order {order}: give numbers with commas between, as a violation prints them"
        ))
    }
}

impl Question for CrashReplay {}

fn named(programs: &[String]) -> Result<(), String> {
    if programs.is_empty() {
        return Err("no program is named; sardonyx programs lists them, all is all".into());
    }
    Ok(())
}

/// Refuses a mistake in a log that is not there.
fn logged(no_log: bool, mutant: Option<&str>) -> Result<(), String> {
    match mutant.filter(|_| no_log) {
        Some(mutant) => Err(format!(
            "--no-log: there is no log to plant {mutant} in; leave one out"
        )),
        None => Ok(()),
    }
}

/// Refuses torn lines where the platform says what a cut leaves.
fn torn(tear: &str, platform: &str) -> Result<(), String> {
    if tear != "lines" && platform != "adr" {
        return Err(format!(
            "--tear {tear}: is for --platform adr; {platform} says its own"
        ));
    }
    Ok(())
}

fn count(cuts: &str) -> Result<(), String> {
    let number = cuts.parse::<i64>();
    if cuts == "all" || number.is_ok_and(|number| number > 0) {
        return Ok(());
    }
    Err(format!("--cuts {cuts}: give \"all\" or a number of cuts"))
}
