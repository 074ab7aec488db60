//! Runs for Python: one design over one source, and which designs there are. Answers in JSON.
//! The interpreter's lock is released while a run goes on; a cancelled one ends with an error.
use std::collections::HashSet;

use pyo3::prelude::*;
use sardonyx::config::Machine;
use sardonyx::controller::designs as registry;
use sardonyx::figures::Figure;
use sardonyx::machine::outcome;
use sardonyx::machine::recordings::{self, Options};
use sardonyx::merge::timed::figures as timed_merging;
use sardonyx::stats::Cause;
use sardonyx::trace::Level;
use sardonyx::workload::timed;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::progress::Progress;
use crate::sources::{Source, durability};
use crate::{bad, read};

/// A design over a source, on `copies` cores of a machine with some of its keys set; `warmup` requests, or
/// transactions of each core, warm the machine up and are left out of the statistics.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    source: Source,
    design: String,
    machine: String,
    #[serde(default)]
    overrides: Vec<(String, String)>,
    #[serde(default)]
    warmup: u64,
    /// The warm-up is this share of the run, beside `warmup` requests or transactions.
    #[serde(default)]
    warmup_share: f64,
    #[serde(default = "one")]
    copies: u32,
    #[serde(default)]
    distinct: bool,
}

fn one() -> u32 {
    1
}

impl Job {
    fn share_of(&self, all: u64) -> u64 {
        (all as f64 * self.warmup_share) as u64
    }

    /// The share of the requests of all copies.
    fn share_of_requests(&self) -> PyResult<u64> {
        if self.warmup_share == 0.0 {
            return Ok(0);
        }
        let source = self.source.open()?;
        if source.provenance().level == Level::Cpu {
            return Err(bad(format!(
                "{}: was taken at the core, and how many requests reach memory is not known before \
                 the run; give --warmup as a number of requests",
                source.name()
            )));
        }
        let requests = source.requests().map_err(bad)?;
        Ok(self.share_of(requests * u64::from(self.copies)))
    }
}

/// Run a job.
#[pyfunction]
pub fn simulate(py: Python<'_>, job_json: &str, progress: Option<&Progress>) -> PyResult<String> {
    let job: Job = read(job_json)?;
    let tell = Progress::listener(progress);
    py.detach(|| {
        let machine = Machine::load(&job.machine, &job.overrides).map_err(bad)?;
        let Job { design, warmup, .. } = &job;
        let outcome = match &job.source {
            Source::Program(program) => {
                let total = program.transactions * u64::from(job.copies);
                let mut tell = |done| tell(done, total);
                let durability = durability(design, program.software_log)?;
                let (spec, cores) = (program.spec(durability), job.copies as usize);
                let warmup = warmup + job.share_of(program.transactions);
                let system = timed::system(&machine, design, &spec, cores, warmup);
                system.map_err(bad)?.run(&mut tell).map_err(bad)?
            }
            source => {
                let own = |copy| if job.distinct { copy } else { 0 };
                let copies = (0..job.copies).map(|copy| source.open_copy(own(copy)));
                let copies = copies.collect::<PyResult<Vec<_>>>()?;
                let total = copies.iter().map(|copy| copy.total()).sum();
                let mut tell = |done| tell(done, total);
                let warmup = warmup + job.share_of_requests()?;
                let distinct = job.distinct;
                let options = Options { warmup, distinct };
                recordings::run(&machine, design, copies, options, &mut tell).map_err(bad)?
            }
        };
        Ok(json!({
            "design": design,
            "machine": machine.name,
            "copies": job.copies,
            "metrics": outcome.metrics(),
            "causes": outcome.costs(),
            "write_latency_cdf": outcome.write_latency_cdf,
            "read_latency_cdf": outcome.read_latency_cdf,
            "assumed": outcome::assumed(&machine, design, &outcome),
        })
        .to_string())
    })
}

/// Every figure that a run can have, in the order of the page of metrics: `name`, `about`, `unit`, `better`
/// (`less`, `more` or neither) and `meaning`.
#[pyfunction]
pub fn figures() -> String {
    let layers = registry::built_in().flat_map(|layer| layer.about().figures);
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

/// An error unless the job's machine can be had and its program fits.
#[pyfunction]
pub fn check_job(job_json: &str) -> PyResult<()> {
    let job: Job = read(job_json)?;
    let machine = Machine::load(&job.machine, &job.overrides).map_err(bad)?;
    if let Source::Program(program) = &job.source {
        let spec = program.spec(durability(&job.design, program.software_log)?);
        timed::check(&machine, &spec, job.copies as usize).map_err(bad)?;
    }
    Ok(())
}

/// Every design: `name`, `source` and `line`.
#[pyfunction]
pub fn designs() -> String {
    let designs = registry::all()
        .map(|design| json!({"name": design.name, "source": design.source, "line": design.line}));
    Value::from_iter(designs).to_string()
}
