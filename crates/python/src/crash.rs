//! The crash explorer for Python: one design, one program, all its cuts. Answers in JSON.
use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use sardonyx::config::Machine;
use sardonyx::controller::designs;
use sardonyx::crash::{Cuts, Options, Platform, Question};
use sardonyx::workload::{self, DurabilityKind, Mutant, ProgramSpec};
use serde_json::{Value, json};

use crate::SardonyxError;
use crate::progress::Progress;

fn bad(error: impl std::fmt::Display) -> PyErr {
    SardonyxError::new_err(error.to_string())
}

/// Cuts the power of one run of a program on a design; `cut` is one position instead of `cuts`.
#[pyfunction]
#[pyo3(signature = (
    program, design, machine, overrides, cores, transactions, item_bytes, footprint, mutant, seed,
    platform, cuts, cut, recovery_cuts, full_one_in, threads, progress
))]
#[allow(clippy::too_many_arguments)] // the stub names them; Python passes them by keyword
pub fn crash(
    py: Python<'_>,
    program: &str,
    design: &str,
    machine: &str,
    overrides: Vec<(String, String)>,
    cores: u64,
    transactions: u64,
    item_bytes: u64,
    footprint: u64,
    mutant: Option<&str>,
    seed: u64,
    platform: &str,
    cuts: Option<u64>,
    cut: Option<u64>,
    recovery_cuts: u64,
    full_one_in: u64,
    threads: usize,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let specs = Specs {
        program,
        cores,
        transactions,
        item_bytes,
        footprint,
        mutant,
        seed,
    };
    let options = Options {
        platform: platform_named(platform)?,
        cuts: match (cut, cuts) {
            (Some(position), _) => Cuts::One(position),
            (None, Some(count)) => Cuts::Sample(count),
            (None, None) => Cuts::All,
        },
        recovery_cuts,
        full_one_in,
        threads,
    };
    let question = specs.question(design, machine, &overrides, options)?;
    let tell = told_to(progress);
    let answer = py.detach(|| question.answer(&tell)).map_err(bad)?;
    let answer = answer.ok_or_else(|| bad("cancelled"))?;
    Ok(answer.to_string())
}

/// The same run and cuts, by the stages of a transaction: what each has shown of the two copies of
/// the data (SCA, HPCA 2018, Table 1).
#[pyfunction]
#[pyo3(signature = (
    program, design, machine, overrides, cores, transactions, item_bytes, footprint, mutant, seed,
    platform, progress
))]
#[allow(clippy::too_many_arguments)] // the stub names them; Python passes them by keyword
pub fn crash_stages(
    py: Python<'_>,
    program: &str,
    design: &str,
    machine: &str,
    overrides: Vec<(String, String)>,
    cores: u64,
    transactions: u64,
    item_bytes: u64,
    footprint: u64,
    mutant: Option<&str>,
    seed: u64,
    platform: &str,
    progress: Option<&Progress>,
) -> PyResult<String> {
    let specs = Specs {
        program,
        cores,
        transactions,
        item_bytes,
        footprint,
        mutant,
        seed,
    };
    let options = Options {
        platform: platform_named(platform)?,
        ..Options::default()
    };
    let question = specs.question(design, machine, &overrides, options)?;
    let tell = told_to(progress);
    let answer = py.detach(|| question.stages(&tell)).map_err(bad)?;
    let answer = answer.ok_or_else(|| bad("cancelled"))?;
    Ok(answer.to_string())
}

/// The programs of a run as they are asked for.
struct Specs<'a> {
    program: &'a str,
    cores: u64,
    transactions: u64,
    item_bytes: u64,
    footprint: u64,
    mutant: Option<&'a str>,
    seed: u64,
}

impl Specs<'_> {
    fn question(
        &self,
        design: &str,
        machine: &str,
        overrides: &[(String, String)],
        options: Options,
    ) -> PyResult<Question> {
        let mutant = self.mutant.map(|name| {
            Mutant::named(name).ok_or_else(|| {
                let all = Mutant::ALL.iter().chain(Mutant::EQUIVALENT);
                let names: Vec<&str> = all.map(|mutant| mutant.name()).collect();
                bad(format!(
                    "--mutant {name}: there is none; they are {}",
                    names.join(", ")
                ))
            })
        });
        let mutant = mutant.transpose()?;
        let spec = |core| ProgramSpec {
            name: self.program.to_owned(),
            item_bytes: self.item_bytes,
            footprint: self.footprint,
            transactions: self.transactions,
            seed: self.seed.wrapping_mul(1024).wrapping_add(core),
            durability: DurabilityKind::SoftwareUndo { mutant },
        };
        Ok(Question {
            machine: Machine::load(machine, overrides).map_err(bad)?,
            design: design.to_owned(),
            specs: (0..self.cores.max(1)).map(spec).collect(),
            seed: self.seed,
            options,
        })
    }
}

fn platform_named(name: &str) -> PyResult<Platform> {
    let known = Platform::ALL.iter().find(|(known, _)| *known == name);
    let platform = known.map(|(_, platform)| *platform);
    platform.ok_or_else(|| bad("--platform: give adr, eadr or none"))
}

/// Tells `progress` the cuts done and in all; false once it has been cancelled.
fn told_to(progress: Option<&Progress>) -> impl Fn(u64, u64) -> bool + Sync + use<> {
    let counts = progress.map(|progress| progress.counts.clone());
    move |done, total| {
        let Some(counts) = &counts else { return true };
        counts.total.store(total, Ordering::Relaxed);
        counts.done.store(done, Ordering::Relaxed);
        !counts.cancelled.load(Ordering::Relaxed)
    }
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
