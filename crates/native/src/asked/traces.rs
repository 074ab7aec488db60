//! What the commands of this door are asked.
use std::path::Path;

use sardonyx::names::did_you_mean;
use sardonyx::trace::{Fill, Format};
use sardonyx_question::{Given, Place, Question, question};

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
        /// dynamorio, usimm.
        #[schemars(extend("called" = "from"))]
        from_format: Option<String>,
        /// Format of TARGET: sardonyx, nvmain, ramulator-load-store, dramsim3, champsim.
        #[schemars(extend("called" = "to"))]
        to_format: Option<String>,
        /// What writes without bytes write: zero, random, unique.
        #[schemars(extend("enum" = ["zero", "random", "unique"]))]
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

/// Our own format, beside those of other simulators.
const OWN_FORMAT: &str = "sardonyx";
/// The one format whose addresses are positions in a device.
const LEVELLED: Format = Format::RamulatorReadWrite;
const CLOCKED: [Format; 6] = [
    Format::NvMain,
    Format::DramSim2,
    Format::DramSim3,
    Format::DramSys,
    Format::DramSysRelative,
    Format::Gem5Packets,
];

/// A format that was given, or that a file's name tells; none is our own.
fn format(option: &str, given: Option<&str>, path: &str) -> Result<Option<Format>, String> {
    let names: Vec<&str> = [OWN_FORMAT]
        .into_iter()
        .chain(Format::ALL.map(Format::name))
        .collect();
    let known = names.join(", ");
    match given {
        Some(OWN_FORMAT) => Ok(None),
        Some(name) => name.parse().map(Some).map_err(|_| {
            let near = did_you_mean(name, &names);
            format!("{option}: there is no trace format \"{name}\"; {near}known: {known}")
        }),
        None if path.ends_with(".parquet") => Ok(None),
        // A word that is no file names a recording, and those are ours.
        None if option == "--from" && !Path::new(path).exists() => Ok(None),
        None => Err(format!(
            "{path}: of which format? give {option}, one of {known}"
        )),
    }
}

impl TraceConvert {
    /// The formats that are read and written; none is our own.
    pub fn formats(&self) -> Result<(Option<Format>, Option<Format>), String> {
        let from = format("--from", self.from_format.as_deref(), &self.source)?;
        let target = self.target.to_string_lossy();
        let to = format("--to", self.to_format.as_deref(), &target)?;
        if let (Some(from), Some(to)) = (from, to) {
            return Err(format!(
                "{}: {from} cannot become {to}; one of the two must be {OWN_FORMAT}",
                self.source
            ));
        }
        Ok((from, to))
    }

    /// The contents of writes that have none.
    pub fn fill(&self) -> Result<Fill, String> {
        self.data.parse()
    }

    /// The sizes of the levels of a device, if they are given.
    pub fn levels(&self) -> Result<Option<Vec<u64>>, String> {
        let Some(text) = &self.levels else {
            return Ok(None);
        };
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let digits =
            |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if parts.len() != 6 || !parts.iter().all(digits) {
            return Err(format!(
                "--levels {text}: give six whole numbers, as in 1,2,4,4,65536,128"
            ));
        }
        let levels: Result<Vec<u64>, _> = parts.iter().map(|part| part.parse()).collect();
        let far = |_| format!("--levels {text}: together at most 2^58 lines");
        levels.map(Some).map_err(far)
    }
}

impl Question for TraceConvert {
    fn check(&self, given: &Given) -> Result<(), String> {
        let (from, _) = self.formats()?;
        let said = from.map_or(OWN_FORMAT, Format::name);
        if from.is_none() {
            let form = format!("from {said}: contents are made for traces of other simulators");
            given.idle(&["data", "seed"], &form)?;
        }
        if self.fill()? == Fill::Zero {
            given.idle(&["seed"], "with --data zero")?;
        }
        if !from.is_some_and(|from| CLOCKED.contains(&from)) {
            let clocked = CLOCKED.map(Format::name).join(" and ");
            let form = format!("from {said}, which counts no cycles; {clocked} do");
            given.idle(&["clock_mhz"], &form)?;
        }
        if from != Some(LEVELLED) {
            let levelled = LEVELLED.name();
            let form = format!("from {said}: only {levelled} has levels");
            given.idle(&["levels"], &form)?;
        }
        self.levels().map(|_| ())
    }
}

impl Question for TraceInfo {}
impl Question for TraceCheck {}
impl Question for TraceSynth {}
impl Question for TraceCut {}
impl Question for TraceMix {}
