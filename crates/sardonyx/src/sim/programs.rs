//! Persistent programs on the cores of a machine: each core runs one of its own, in a region of its
//! own, over a medium that setup has filled.

use super::port::Watch;
use super::system::{Ground, System, Warmup};
use super::{Outcome, SimError};
use crate::config::Machine;
use crate::cpu::{OpSource, PAGE_LINES};
use crate::line::Logical;
use crate::workload::{ProgramRun, ProgramSpec};

/// Pages by which a core's region lies further into its share than the core's before, and by which the
/// first lies off the start of memory. Found by search: on `sca` with 1, 2, 4 or 8 cores no two of the
/// rows that cores write in every transaction, their logs' and their logs' counters', share a bank.
/// Assumed; such a clash would hide everything else.
const SKEW: u64 = 110;
const FIRST: u64 = 126;

/// Whether `spec` is right and fits on `cores` cores of `machine`.
///
/// # Errors
/// What is wrong, and the remedy.
pub fn check(machine: &Machine, spec: &ProgramSpec, cores: usize) -> Result<(), SimError> {
    if !(1..=crate::cpu::MAX_CORES).contains(&cores) {
        return Err(SimError::Cores { cores });
    }
    let lines = machine.engine.medium.geometry.lines();
    let region = spec.build()?.region_bytes() / crate::line::LINE_BYTES as u64;
    if region + (cores as u64 * SKEW + FIRST) * PAGE_LINES <= lines / cores as u64 {
        return Ok(());
    }
    Err(SimError::Region {
        program: spec.name.clone(),
        cores,
        region,
        machine: lines,
    })
}

/// The programs of `cores` cores, set up. Core `c` draws from the seed `spec.seed + c`.
///
/// # Errors
/// What is wrong with `spec`, or that it does not fit in `machine`.
pub fn set_up(
    machine: &Machine,
    spec: &ProgramSpec,
    cores: usize,
) -> Result<Vec<ProgramRun>, SimError> {
    check(machine, spec, cores)?;
    let share = machine.engine.medium.geometry.lines() / cores as u64;
    let program = |core: u64| {
        let pages = core * (share / PAGE_LINES + SKEW) + FIRST;
        let base = Logical(pages * PAGE_LINES);
        let spec = ProgramSpec {
            seed: spec.seed.wrapping_add(core),
            ..spec.clone()
        };
        Ok(ProgramRun::new(&spec, base)?)
    };
    (0..cores as u64).map(program).collect()
}

/// The medium under `design` with what `programs` have set up in it.
///
/// # Errors
/// There is no such design.
pub fn ground(
    machine: &Machine,
    design: &str,
    programs: &[ProgramRun],
) -> Result<Ground, SimError> {
    let mut ground = Ground::new(machine, design)?;
    for program in programs {
        for line in 0..program.set_up_lines() {
            let place = Logical(program.base().0 + line);
            ground.write(place, program.memory().line(line));
        }
    }
    ground.settle();
    Ok(ground)
}

/// Runs `spec` on each of `cores` cores of `machine` under `design`; the first `warmup` transactions
/// of each core count nowhere.
///
/// # Errors
/// What is wrong with `spec` or `design`; or `progress` ended the run.
pub fn run(
    machine: &Machine,
    design: &str,
    spec: &ProgramSpec,
    cores: usize,
    warmup: u64,
    watch: &mut dyn Watch,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Outcome, SimError> {
    if warmup >= spec.transactions {
        return Err(SimError::OnlyWarmup {
            trace: spec.name.clone(),
            warmup,
            unit: "transactions",
            all: spec.transactions,
        });
    }
    let machine = machine.with_cores(cores);
    let programs = set_up(&machine, spec, cores)?;
    let ground = ground(&machine, design, &programs)?;
    let boxed = |program| Box::new(program) as Box<dyn OpSource>;
    let sources = programs.into_iter().map(boxed).collect();
    let warmup = Warmup {
        requests: 0,
        transactions: warmup,
    };
    let mut system = System::new(&machine, ground, sources, warmup, watch)?;
    system.run(progress)
}
