//! The sources of a run's operations, as Python names them in JSON. Left out: any logic; `sardonyx::trace` and
//! `sardonyx_workload` open and check.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use pyo3::PyResult;
use sardonyx::controller::designs::Stack;
use sardonyx::ecc::FINGERPRINTS;
use sardonyx::trace::{self, Spec, Synth};
use sardonyx_workload::{self as workload, DurabilityKind, ProgramSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::bad;

/// Where the operations of a run come from.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Source {
    /// A trace file; `limit` ends it after so many records, those of a `window` that begins where this share of the
    /// others has gone by: 0.5 is its middle.
    #[schemars(title = "TraceSource")]
    Trace(TraceSource),
    /// A rung of the locality ladder, of its own number of records or of `records`. They are alike anywhere, so
    /// that every window is its beginning.
    #[schemars(title = "SynthSource")]
    Synth(SynthSource),
    /// A persistent program; sizes are bytes. Without a name: the sizes of programs to be named.
    #[schemars(title = "ProgramSource")]
    Program(Program),
    /// Traces, each on a core of its own.
    #[schemars(title = "MixSource")]
    Mix(MixSource),
}

/// See [`Source::Mix`].
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MixSource {
    pub sources: Vec<Source>,
}

/// See [`Source::Trace`].
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceSource {
    pub path: String,
    pub limit: Option<u64>,
    pub window: Option<f64>,
}

/// See [`Source::Synth`].
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SynthSource {
    pub name: String,
    pub records: Option<u64>,
    #[serde(default)]
    pub seed: u64,
    pub limit: Option<u64>,
    pub window: Option<f64>,
    /// A trace that the generated one is like, in place of a rung.
    pub like: Option<PathBuf>,
    /// Over so many times the lines of that trace, each of which comes back so many times as late.
    #[serde(default = "one")]
    pub times: u64,
}

impl SynthSource {
    /// A rung of its own number of records.
    pub fn named(name: String) -> SynthSource {
        SynthSource {
            name,
            records: None,
            seed: 0,
            limit: None,
            window: None,
            like: None,
            times: 1,
        }
    }
}

/// Generators that have been measured, by their trace and its last change, times, records and seed.
type Measured = BTreeMap<(PathBuf, Option<SystemTime>, u64, Option<u64>, u64), Synth>;

static MEASURED: Mutex<Measured> = Mutex::new(BTreeMap::new());

impl SynthSource {
    fn synth(&self) -> PyResult<Synth> {
        let (records, seed) = (self.records, self.seed);
        let Some(like) = &self.like else {
            let mut ladder = trace::locality_ladder().into_iter();
            let spec = ladder.find(|spec| spec.name == self.name);
            let spec = spec.ok_or_else(|| bad(format!("there is no generator `{}`", self.name)))?;
            let records = records.unwrap_or(spec.records);
            return Synth::new(Spec { records, ..spec }, seed).map_err(bad);
        };
        let written = like.metadata().and_then(|known| known.modified()).ok();
        let key = (like.clone(), written, self.times, records, seed);
        let mut measured = MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = measured.get(&key) {
            return Ok(known.clone());
        }
        let trace = trace::Source::open(like).map_err(bad)?;
        let synth = Synth::like(trace, self.times, records, seed).map_err(bad)?;
        measured.insert(key, synth.clone());
        Ok(synth)
    }
}

/// The default of numbers that JSON leaves out.
pub fn one() -> u64 {
    1
}

/// See [`Source::Program`].
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "ProgramSource")]
#[serde(default, deny_unknown_fields)]
pub struct Program {
    pub name: String,
    pub item_bytes: u64,
    pub footprint: u64,
    pub transactions: u64,
    pub seed: u64,
    /// Whether the program keeps an undo log where the hardware keeps none.
    pub software_log: bool,
}

impl Default for Program {
    fn default() -> Program {
        Program {
            name: String::new(),
            item_bytes: 64,
            footprint: 16 << 20,
            transactions: 10_000,
            seed: 0,
            software_log: true,
        }
    }
}

/// The durability of a program's transactions on `design`: by its hardware, or else by the program's own log; none if
/// it keeps neither.
pub fn durability(design: &str, software_log: bool) -> PyResult<DurabilityKind> {
    let stack = Stack::named(design).map_err(bad)?;
    Ok(match software_log {
        true => DurabilityKind::on(&stack),
        false => DurabilityKind::Hardware,
    })
}

/// The default of flags that JSON leaves out.
pub fn yes() -> bool {
    true
}

impl Source {
    /// The traces of a mix, or else the source itself.
    pub fn members(&self) -> &[Source] {
        match self {
            Source::Mix(mix) => &mix.sources,
            alone => std::slice::from_ref(alone),
        }
    }

    /// In a few words.
    pub fn name(&self) -> String {
        match self {
            Source::Trace(file) => {
                let stem = Path::new(&file.path).file_stem().unwrap_or_default();
                stem.to_string_lossy().into_owned()
            }
            Source::Synth(synth) => synth.name.clone(),
            Source::Program(_) | Source::Mix(_) => String::new(),
        }
    }

    /// All of a source of which a window runs: what is said of the trace.
    pub fn whole(&self) -> Source {
        let mut whole = self.clone();
        match &mut whole {
            Source::Trace(TraceSource { limit, window, .. })
            | Source::Synth(SynthSource { limit, window, .. })
                if window.is_some() =>
            {
                (*limit, *window) = (None, None);
            }
            _ => {}
        }
        whole
    }

    /// The source with so many seeds from its own one on, each with its seed.
    pub fn seeded(&self, trace: &str, number: u64) -> PyResult<Vec<(u64, Source)>> {
        let first = match self {
            Source::Synth(SynthSource { seed, .. }) | Source::Program(Program { seed, .. }) => {
                *seed
            }
            Source::Trace(_) | Source::Mix(_) => {
                let what = match self {
                    Source::Mix(_) => "mix",
                    _ => "recorded trace",
                };
                return Err(bad(format!(
                    "--seeds: {trace} is a {what}, which no seed changes; leave --seeds out, or name programs and \
                     synth: traces alone"
                )));
            }
        };
        let with = |own: u64| {
            let mut source = self.clone();
            if let Source::Synth(SynthSource { seed, .. }) | Source::Program(Program { seed, .. }) =
                &mut source
            {
                *seed = own;
            }
            (own, source)
        };
        Ok((first..first.saturating_add(number)).map(with).collect())
    }

    /// An error unless the first record can be read.
    pub fn first(&self) -> PyResult<()> {
        let first = self.open()?.limit(1);
        let read = trace::info(first, &FINGERPRINTS, &mut |_, _| {});
        read.map(|_| ()).map_err(bad)
    }

    /// The trace for the core `copy` of several that have contents of their own: a generated trace has a seed of its
    /// own there.
    pub fn open_copy(&self, copy: u32) -> PyResult<trace::Source> {
        match self {
            Source::Synth(synth) => Source::Synth(SynthSource {
                seed: synth.seed.wrapping_add(u64::from(copy)),
                ..synth.clone()
            })
            .open(),
            _ => self.open(),
        }
    }

    /// Opens the trace at its beginning; a program has none.
    pub fn open(&self) -> PyResult<trace::Source> {
        let (source, limit, window) = match self {
            Source::Trace(TraceSource {
                path,
                limit,
                window,
            }) => (trace::Source::open(path).map_err(bad)?, limit, window),
            Source::Synth(synth) => {
                let made = trace::Source::from(synth.synth()?);
                (made, &synth.limit, &synth.window)
            }
            Source::Program(program) => {
                return Err(bad(format!("{}: is not a trace", program.name)));
            }
            Source::Mix(_) => return Err(bad("a mix of traces is none: name one of them")),
        };
        Ok(match (limit, window) {
            (None, _) => source,
            (Some(limit), None) => source.limit(*limit),
            (Some(limit), Some(at)) if (0.0..=1.0).contains(at) => {
                source.window(*limit, *at).map_err(bad)?
            }
            (_, Some(at)) => return Err(bad(format!("window {at}: is a share of 1; give 0 to 1"))),
        })
    }
}

impl Program {
    pub fn spec(&self, durability: DurabilityKind) -> ProgramSpec {
        ProgramSpec {
            name: self.name.clone(),
            item_bytes: self.item_bytes,
            footprint: self.footprint,
            transactions: self.transactions,
            seed: self.seed,
            durability,
            ..ProgramSpec::default()
        }
    }

    /// The description that stands in place of a trace's facts; an error if the source cannot be built.
    pub fn info(&self) -> PyResult<Value> {
        self.spec(DurabilityKind::default()).build().map_err(bad)?;
        let known = workload::all().iter().find(|known| known.name == self.name);
        Ok(json!({
            "program": self.name,
            "description": known.map(|known| known.line),
            "transaction_bytes": self.item_bytes,
            "footprint_bytes": self.footprint,
            "transactions": self.transactions,
            "seed": self.seed,
        }))
    }
}
