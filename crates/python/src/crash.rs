//! The crash explorer for Python: one design, one program, all its cuts. Answers in JSON.
use pyo3::prelude::*;
use sardonyx::config::Machine;
use sardonyx::controller::designs;
use sardonyx::crash::{Cuts, Options, Platform, Question};
use sardonyx::workload::{self, Mutant, ProgramSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::progress::Progress;
use crate::sources::Source;
use crate::{bad, read};

/// A run of a program on each core and how its power is cut, as
/// `python/sardonyx/runs/crashes.py` states it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CrashQuestion {
    program: Source,
    design: String,
    machine: String,
    overrides: Vec<(String, String)>,
    cores: u64,
    mutant: Option<String>,
    platform: String,
    cuts: Option<u64>,
    cut: Option<u64>,
    recovery_cuts: u64,
    full_one_in: u64,
    threads: usize,
}

impl CrashQuestion {
    fn question(self) -> PyResult<Question> {
        let mutant = self.mutant.as_deref().map(mutant_named).transpose()?;
        let mut platforms = Platform::ALL.into_iter();
        let platform = platforms.find(|platform| platform.name() == self.platform);
        let platform = platform.ok_or_else(|| bad("--platform: give adr, eadr or none"))?;
        let Source::Program(program) = self.program else {
            return Err(bad("only a program's power can be cut"));
        };
        let seed = program.seed;
        let spec = |core| ProgramSpec {
            seed: seed.wrapping_mul(1024).wrapping_add(core),
            ..program.spec(mutant)
        };
        Ok(Question {
            machine: Machine::load(&self.machine, &self.overrides).map_err(bad)?,
            specs: (0..self.cores.max(1)).map(spec).collect(),
            design: self.design,
            seed,
            options: Options {
                platform,
                cuts: match (self.cut, self.cuts) {
                    (Some(position), _) => Cuts::One(position),
                    (None, Some(count)) => Cuts::Sample(count),
                    (None, None) => Cuts::All,
                },
                recovery_cuts: self.recovery_cuts,
                full_one_in: self.full_one_in,
                threads: self.threads,
            },
        })
    }
}

fn mutant_named(name: &str) -> PyResult<Mutant> {
    Mutant::named(name).ok_or_else(|| {
        let all = Mutant::ALL.iter().chain(Mutant::EQUIVALENT);
        let names: Vec<&str> = all.map(|mutant| mutant.name()).collect();
        let names = names.join(", ");
        bad(format!("--mutant {name}: there is none; they are {names}"))
    })
}

/// Cuts the power of one run of a program on a design.
#[pyfunction]
pub fn crash(py: Python<'_>, question_json: &str, progress: Option<&Progress>) -> PyResult<String> {
    let question = read::<CrashQuestion>(question_json)?.question()?;
    let tell = Progress::listener(progress);
    let answer = py.detach(|| question.answer(&tell)).map_err(bad)?;
    Ok(answer.ok_or_else(|| bad("cancelled"))?.to_string())
}

/// The same run and cuts, by the stages of a transaction: what each has shown of the two copies of
/// the data (SCA, HPCA 2018, Table 1).
#[pyfunction]
pub fn crash_stages(
    py: Python<'_>,
    question_json: &str,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let question = read::<CrashQuestion>(question_json)?.question()?;
    let tell = Progress::listener(progress);
    let answer = py.detach(|| question.stages(&tell)).map_err(bad)?;
    Ok(answer.ok_or_else(|| bad("cancelled"))?.to_string())
}

/// Every program: `name` and `line`; and every mutant, be it a mistake or an equivalent one:
/// `name` and `meaning`.
#[pyfunction]
pub fn programs() -> String {
    let programs = workload::all();
    let programs = programs
        .iter()
        .map(|p| json!({"name": p.name, "line": p.line}));
    let each = |all: &[Mutant]| {
        let of = |m: &Mutant| json!({"name": m.name(), "meaning": m.meaning()});
        all.iter().map(of).collect::<Vec<Value>>()
    };
    json!({
        "programs": programs.collect::<Vec<Value>>(),
        "mutants": each(Mutant::ALL),
        "equivalent_mutants": each(Mutant::EQUIVALENT),
    })
    .to_string()
}

/// What a design promises of a power cut; an error if there is none of that name.
#[pyfunction]
pub fn guarantee(design: &str) -> PyResult<&'static str> {
    Ok(designs::guarantee(design).map_err(bad)?.name())
}
