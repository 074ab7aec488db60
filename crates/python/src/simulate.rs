//! Runs for Python: one design over one source, and which designs there are. Answers in JSON.
//! The interpreter's lock is released while a run goes on; a cancelled one ends with an error.
use pyo3::prelude::*;
use sardonyx::config::Machine;
use sardonyx::controller::designs::{self as registry, Stack};
use sardonyx::machine::outcome;
use sardonyx::machine::recordings::{self, Options};
use sardonyx::workload::{DurabilityKind, timed};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::progress::Progress;
use crate::sources::Source;
use crate::{bad, read};

/// One run, as `python/sardonyx/runs/jobs.py` states it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    source: Source,
    design: String,
    machine: String,
    overrides: Vec<(String, String)>,
    warmup: u64,
    copies: u32,
    distinct: bool,
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
                let (spec, cores) = (program.spec(durability(design)?), job.copies as usize);
                let system = timed::system(&machine, design, &spec, cores, *warmup);
                system.map_err(bad)?.run(&mut tell).map_err(bad)?
            }
            source => {
                let copies = (0..job.copies).map(|_| source.open());
                let copies = copies.collect::<PyResult<Vec<_>>>()?;
                let total = copies.iter().map(|copy| copy.total()).sum();
                let mut tell = |done| tell(done, total);
                let (warmup, distinct) = (*warmup, job.distinct);
                let options = Options { warmup, distinct };
                recordings::run(&machine, design, copies, options, &mut tell).map_err(bad)?
            }
        };
        Ok(json!({
            "design": design,
            "machine": machine.name,
            "copies": job.copies,
            "metrics": outcome.metrics,
            "causes": outcome.causes,
            "write_latency_cdf": outcome.write_latency_cdf,
            "read_latency_cdf": outcome.read_latency_cdf,
            "assumed": outcome::assumed(&machine, design, outcome.from_the_core),
        })
        .to_string())
    })
}

/// What makes a program's transactions durable on `design`.
fn durability(design: &str) -> PyResult<DurabilityKind> {
    Ok(DurabilityKind::on(&Stack::named(design).map_err(bad)?))
}

/// An error unless the job's machine can be had and its program fits.
#[pyfunction]
pub fn check_job(job_json: &str) -> PyResult<()> {
    let job: Job = read(job_json)?;
    let machine = Machine::load(&job.machine, &job.overrides).map_err(bad)?;
    if let Source::Program(program) = &job.source {
        let spec = program.spec(durability(&job.design)?);
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
