//! Runs for Python: one design over one source, and which designs there are. Answers in JSON.
//! The interpreter's lock is released while a run goes on; a cancelled one ends with an error.
use std::collections::HashSet;
use std::ops::Range;

use pyo3::prelude::*;
use sardonyx::config::Machine;
use sardonyx::controller::designs as registry;
use sardonyx::figures::Figure;
use sardonyx::machine::recordings::{self, Options};
use sardonyx::machine::{self, LEAST_WINDOWS, Outcome, Sampling, System, Threads, outcome};
use sardonyx::medium::params::EngineParams;
use sardonyx::stats::Cause;
use sardonyx::trace::{self, Level};
use sardonyx_merge::timed::figures as timed_merging;
use sardonyx_workload::timed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::layers::settled;
use crate::listeners::{CommandsFile, RequestsFile, TimelineFile};
use crate::progress::Progress;
use crate::sources::{Program, Source, durability, yes};
use crate::{bad, ended, read};

/// A design over a source, on `copies` cores of a machine with some of its keys set; `warmup` requests, or
/// transactions of each core, warm the machine up and are left out of the statistics.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    pub source: Source,
    pub design: String,
    pub machine: String,
    #[serde(default)]
    pub overrides: Vec<(String, String)>,
    #[serde(default)]
    pub warmup: u64,
    /// The warm-up is this share of the run, beside `warmup` requests or transactions.
    #[serde(default)]
    pub warmup_share: f64,
    #[serde(default = "one")]
    pub copies: u32,
    /// The share of contents that each copy has for itself; at 1 a generated trace has a seed of its own in each.
    #[serde(default)]
    pub distinct: f64,
    /// Each thread of a recording has a core of its own in each copy, in one address space.
    #[serde(default)]
    pub threads: bool,
    /// Each read is held to what was written last to its line.
    #[serde(default = "yes")]
    pub verify: bool,
    /// Windows of the run are timed, and the rest changes state without a clock.
    pub sample: Option<SampleQuestion>,
    /// A timeline of the run is written.
    pub timeline: Option<TimelineFile>,
    /// A row for each request is written.
    pub requests: Option<RequestsFile>,
    /// A line for each command of the memory is written.
    pub commands: Option<CommandsFile>,
}

/// Which part of a run of recordings is timed: so many `windows`, of so many `requests` that count and as many as
/// `ramp` before them, each somewhere in its part of the run as drawn from `seed`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SampleQuestion {
    windows: u64,
    requests: u64,
    ramp: u64,
    #[serde(default)]
    seed: u64,
}

fn one() -> u32 {
    1
}

impl SampleQuestion {
    /// Windows of a trace: `50x10000` are 50 of 10,000 requests each, `50x10000+2000` has 2,000 more before each that
    /// are timed and do not count (else a tenth, and 1,000 at least).
    pub fn parse(text: &str, seed: u64) -> PyResult<SampleQuestion> {
        let number = |part: &str| {
            let digits = (1..=12).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| part.parse::<u64>().ok()).flatten()
        };
        let read = || {
            let (windows, rest) = text.trim().split_once('x')?;
            let (requests, ramp) = match rest.split_once('+') {
                Some((requests, ramp)) => (number(requests)?, Some(number(ramp)?)),
                None => (number(rest)?, None),
            };
            Some(SampleQuestion {
                windows: number(windows)?,
                requests,
                ramp: ramp.unwrap_or((requests / 10).max(1000)),
                seed,
            })
        };
        read().ok_or_else(|| {
            bad(format!(
                "--sample {text}: is not WINDOWSxREQUESTS or WINDOWSxREQUESTS+RAMP; for example --sample 50x10000"
            ))
        })
    }
}

impl Job {
    /// A plain run of a design over a source.
    pub fn of(source: Source, design: &str, machine: &str, overrides: &[(String, String)]) -> Job {
        Job {
            source,
            design: design.to_owned(),
            machine: machine.to_owned(),
            overrides: overrides.to_vec(),
            warmup: 0,
            warmup_share: 0.0,
            copies: 1,
            distinct: 0.0,
            threads: false,
            verify: true,
            sample: None,
            timeline: None,
            requests: None,
            commands: None,
        }
    }

    /// Jobs for each trace of a mix by itself; none for other jobs.
    pub fn alone(&self) -> Vec<Job> {
        let Source::Mix(mix) = &self.source else {
            return Vec::new();
        };
        let one = |source: &Source| Job {
            source: source.clone(),
            ..self.clone()
        };
        mix.sources.iter().map(one).collect()
    }

    fn checked<'s>(&self, system: System<'s>) -> System<'s> {
        match self.verify {
            true => system,
            false => system.unverified(),
        }
    }

    /// Plays the whole of a run, and writes the files that the job asks for.
    fn play(
        &self,
        mut system: System<'_>,
        tell: &mut dyn FnMut(u64) -> bool,
        engine: &EngineParams,
    ) -> PyResult<Outcome> {
        system = self.checked(system);
        if let Some(file) = &self.timeline {
            system.memory().observe(file.listener(engine));
        }
        if let Some(file) = &self.requests {
            system.memory().observe(file.listener(&self.design)?);
        }
        if let Some(file) = &self.commands {
            system.memory().observe(file.listener(engine)?);
        }
        let outcome = system.run(tell).map_err(ended)?;
        if let Some(file) = &self.timeline {
            file.write(*system.memory().take().expect("it listens"))?;
        }
        if let Some(file) = &self.requests {
            file.write(*system.memory().take().expect("it listens"))?;
        }
        if let Some(file) = &self.commands {
            file.write(*system.memory().take().expect("it listens"))?;
        }
        Ok(outcome)
    }

    fn run_program(
        &self,
        machine: &Machine,
        program: &Program,
        tell: Tell<'_>,
    ) -> PyResult<Outcome> {
        let total = program.transactions * u64::from(self.copies);
        let durability = durability(&self.design, program.software_log)?;
        let (spec, cores) = (program.spec(durability), self.copies as usize);
        let warmup = self.warmup + self.share_of(program.transactions);
        let system = timed::system(machine, &self.design, &spec, cores, warmup);
        let mut tell = |done| tell(done, total);
        self.play(system.map_err(bad)?, &mut tell, &machine.engine)
    }

    fn run_recorded(
        &self,
        machine: &Machine,
        threads: Option<&Threads>,
        tell: Tell<'_>,
    ) -> PyResult<Outcome> {
        let (copies, total) = self.opened()?;
        let options = Options {
            warmup: self.warmup + self.share_of_requests()?,
            distinct: self.distinct,
        };
        let (design, count) = (&self.design, copies.len());
        let (cores, system) = match threads {
            None => {
                let system = recordings::system(machine, design, copies, options);
                (count, system)
            }
            Some(threads) => {
                let system = recordings::by_thread(machine, design, copies, threads, options);
                (count * threads.number(), system)
            }
        };
        let of = machine.with_cores(cores);
        self.play(
            system.map_err(bad)?,
            &mut |done| tell(done, total),
            &of.engine,
        )
    }

    fn run_sampled(
        &self,
        machine: &Machine,
        sampling: &Sampling,
        counted: Range<u64>,
        tell: Tell<'_>,
    ) -> PyResult<(Outcome, Value)> {
        let (copies, total) = self.opened()?;
        let options = Options {
            warmup: counted.start,
            distinct: self.distinct,
        };
        let system = recordings::system(machine, &self.design, copies, options);
        let system = self.checked(system.map_err(bad)?);
        let sample = system.sample(sampling, counted, &mut |done| tell(done, total));
        let sample = sample.map_err(ended)?;
        let sampled = told_sample(sampling, &sample);
        Ok((sample.outcome, sampled))
    }

    /// The copies of the job's recordings, and their accesses in all.
    fn opened(&self) -> PyResult<(Vec<trace::Source>, u64)> {
        let own = |copy| if self.distinct == 1.0 { copy } else { 0 };
        let copies = self
            .source
            .members()
            .iter()
            .flat_map(|member| (0..self.copies).map(move |copy| member.open_copy(own(copy))));
        let copies = copies.collect::<PyResult<Vec<_>>>()?;
        let total = copies.iter().map(|copy| copy.total()).sum();
        Ok((copies, total))
    }

    /// The sample that the job asks for, with the requests that count: those of all copies, after the warm-up.
    fn sampling(&self) -> PyResult<Option<(Sampling, Range<u64>)>> {
        let Some(asked) = self.sample else {
            return Ok(None);
        };
        if self.timeline.is_some() || self.requests.is_some() || self.commands.is_some() {
            let whole = "--timeline, --requests and --commands are of whole runs, and --sample times windows";
            return Err(bad(format!("{whole}; leave one of them out")));
        }
        let refused = |what: &str, remedy: &str| Err(bad(format!("--sample: {what}; {remedy}")));
        if asked.windows < LEAST_WINDOWS || asked.requests == 0 {
            let least = format!("takes {LEAST_WINDOWS} windows or more, of a request or more");
            return refused(&least, "for example --sample 50x10000");
        }
        let recorded = "leave it out, or record below the caches (--level memory)";
        if let Source::Program(program) = &self.source {
            let what = format!(
                "{} is a program, and cores and caches need a clock",
                program.name
            );
            return refused(&what, recorded);
        }
        if let Source::Mix(_) = &self.source {
            return refused("a mix runs as a whole", "leave it out, or name one trace");
        }
        let source = self.source.open()?;
        if source.provenance().level == Level::Cpu {
            let what = format!(
                "{} was taken at the core, and cores and caches need a clock",
                source.name()
            );
            return refused(&what, recorded);
        }
        let name = source.name().to_owned();
        let requests = source.requests().map_err(bad)? * u64::from(self.copies);
        let counted = self.warmup + self.share_of(requests)..requests;
        let sampling = Sampling {
            windows: asked.windows,
            requests: asked.requests,
            ramp: asked.ramp,
            seed: asked.seed,
        };
        match sampling.starts(&counted) {
            Ok(_) => Ok(Some((sampling, counted))),
            Err(what) => refused(
                &format!("{name}: {what}"),
                "fewer or smaller windows, or the whole trace",
            ),
        }
    }

    /// The threads of the job's recording, if each is to have a core of its own.
    fn thread_cores(&self) -> PyResult<Option<Threads>> {
        if !self.threads {
            return Ok(None);
        }
        let refused = |what: String| {
            let remedy = "leave --threads out";
            Err(bad(format!("--threads: {what}; {remedy}")))
        };
        match &self.source {
            Source::Trace(_) if self.sample.is_some() => {
                return refused("plays whole runs, and --sample times windows".to_owned());
            }
            Source::Trace(_) => {}
            Source::Synth(synth) => {
                return refused(format!("{} is generated, and has no threads", synth.name));
            }
            Source::Program(program) => {
                return refused(format!("{} is no recording", program.name));
            }
            Source::Mix(_) => return refused("a mix plays each trace on one core".to_owned()),
        }
        let source = self.source.open()?;
        let name = source.name().to_owned();
        let threads = Threads::of(source).map_err(bad)?;
        threads.check_copies(&name, self.copies).map_err(bad)?;
        if threads.number() == 1 {
            return refused(format!("{name} has one thread"));
        }
        Ok(Some(threads))
    }

    fn share_of(&self, all: u64) -> u64 {
        (all as f64 * self.warmup_share) as u64
    }

    /// The warm-up's share of the requests of all copies.
    fn share_of_requests(&self) -> PyResult<u64> {
        if self.warmup_share == 0.0 {
            return Ok(0);
        }
        let mut requests = 0;
        for member in self.source.members() {
            let source = member.open()?;
            if source.provenance().level == Level::Cpu {
                return Err(bad(format!(
                    "{}: was taken at the core, and how many requests reach memory is not known \
                     before the run; give --warmup as a number of requests",
                    source.name()
                )));
            }
            requests += source.requests().map_err(bad)?;
        }
        Ok(self.share_of(requests * u64::from(self.copies)))
    }
}

/// Is told the records or transactions done and in all; false ends the run.
type Tell<'t> = &'t (dyn Fn(u64, u64) -> bool + Sync);

/// Run a job.
#[pyfunction]
pub fn simulate(py: Python<'_>, job_json: &str, progress: Option<&Progress>) -> PyResult<String> {
    let job: Job = read(job_json)?;
    let tell = Progress::listener(progress);
    let ran = py.detach(|| {
        let machine = Machine::load(&job.machine, &job.overrides).map_err(bad)?;
        let design = &job.design;
        let threads = job.thread_cores()?;
        let sampling = job.sampling()?;
        let (outcome, sampled) = match (&job.source, sampling) {
            (Source::Program(program), _) => (job.run_program(&machine, program, &tell)?, None),
            (_, None) => (job.run_recorded(&machine, threads.as_ref(), &tell)?, None),
            (_, Some((sampling, counted))) => {
                let (outcome, sampled) = job.run_sampled(&machine, &sampling, counted, &tell)?;
                (outcome, Some(sampled))
            }
        };
        let mut told = json!({
            "design": design,
            "machine": machine.name,
            "copies": job.copies,
            "metrics": outcome.metrics(),
            "causes": outcome.costs(),
            "write_latency_cdf": outcome.write_latency_cdf,
            "read_latency_cdf": outcome.read_latency_cdf,
            "epochs": outcome.epochs(),
            "usage": outcome.usage(),
            "assumed": outcome::assumed(&machine, design, &outcome),
        });
        if let Source::Mix(_) = &job.source {
            told["core_ipc"] = json!(outcome.core_ipc);
        }
        if let Some(threads) = threads {
            told["threads"] = json!(threads.number());
        }
        if let Some(sampled) = sampled {
            told["sample"] = sampled;
        }
        Ok(told.to_string())
    });
    settled(&job.design, ran)
}

fn told_sample(sampling: &Sampling, sample: &machine::Sample) -> Value {
    let half_widths = sample.half_widths.iter();
    let half_widths = half_widths.map(|(figure, half)| (figure.name.to_owned(), json!(half)));
    json!({
        "windows": sampling.windows,
        "requests": sampling.requests,
        "ramp": sampling.ramp,
        "seed": sampling.seed,
        "timed": sample.timed,
        "of": sample.requests,
        "half_widths": Value::Object(half_widths.collect()),
    })
}

/// Every figure that a run can have, in the order of the page of metrics: `name`, `about`, `unit`, `better`
/// (`less`, `more` or neither) and `meaning`.
#[pyfunction]
pub fn figures() -> String {
    let layers = registry::layers().flat_map(|layer| layer.about().figures);
    told(outcome::FIGURES.iter().chain(layers).copied().flatten())
}

/// The same of a window of merging in time.
#[pyfunction]
pub fn merge_figures() -> String {
    told(timed_merging::FIGURES.into_iter().flatten())
}

fn told<'f>(figures: impl Iterator<Item = &'f &'static Figure>) -> String {
    let mut seen = HashSet::new();
    let told = figures.filter(|figure| seen.insert(figure.name));
    let told = told.map(|figure| {
        json!({
            "name": figure.name,
            "about": figure.about,
            "unit": figure.unit.name(),
            "better": figure.better.name(),
            "meaning": figure.meaning,
        })
    });
    Value::from_iter(told).to_string()
}

/// What is booked under each cause.
#[pyfunction]
pub fn causes() -> String {
    let causes = Cause::ALL.map(|cause| (cause.name().to_owned(), json!(cause.meaning())));
    Value::Object(causes.into_iter().collect()).to_string()
}

/// An error unless the job's machine can be had, its program or addresses fit and its sample can be taken.
#[pyfunction]
pub fn check_job(job_json: &str) -> PyResult<()> {
    check(&read(job_json)?)
}

/// The same of a job.
pub fn check(job: &Job) -> PyResult<()> {
    let machine = Machine::load(&job.machine, &job.overrides).map_err(bad)?;
    job.thread_cores()?;
    if let Source::Program(program) = &job.source {
        let spec = program.spec(durability(&job.design, program.software_log)?);
        timed::check(&machine, &spec, job.copies as usize).map_err(bad)?;
    }
    if !matches!(job.source, Source::Program(_)) {
        let members = job.source.members();
        let cores = members.len() as u32 * job.copies;
        for member in members {
            recordings::check(&machine, member.open()?, cores).map_err(bad)?;
        }
    }
    job.sampling().map(|_| ())
}

/// The keys of layers that a design does not have: they do nothing for it.
#[pyfunction]
pub fn idle_keys(design: &str) -> PyResult<HashSet<&'static str>> {
    let stack = registry::Stack::named(design).map_err(bad)?;
    let rows = registry::keys().flat_map(|key| key.rows());
    let names = rows.map(|row| row.name);
    Ok(names.filter(|name| !stack.uses(name)).collect())
}

/// The assumed keys on which runs of a design on a machine depend: of programs, or of traces.
#[pyfunction]
pub fn assumed_keys(
    machine: &str,
    overrides: Vec<(String, String)>,
    design: &str,
    programs: bool,
) -> PyResult<HashSet<String>> {
    let machine = Machine::load(machine, &overrides).map_err(bad)?;
    let keys = outcome::assumed_of(&machine, design, programs, !programs);
    Ok(keys.into_iter().map(str::to_owned).collect())
}

/// The keys with the bytes of the caches and tables on chip of a design.
#[pyfunction]
pub fn caches(design: &str) -> PyResult<Vec<&'static str>> {
    let stack = registry::Stack::named(design).map_err(bad)?;
    let keys = registry::caches().map(|key| key.bytes.name());
    let mut found: Vec<&str> = keys.filter(|name| stack.uses(name)).collect();
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Every design: `name`, `source` and `line`.
#[pyfunction]
pub fn designs() -> String {
    let designs = registry::all()
        .map(|design| json!({"name": design.name, "source": design.source, "line": design.line}));
    Value::from_iter(designs).to_string()
}
