//! Persistent programs on the cores of a machine: each core runs one of its own, in a region of its
//! own, over a medium that setup has filled.

use super::{ProgramRun, ProgramSpec, SpecError};
use sardonyx::config::Machine;
use sardonyx::line::{LINE_BYTES, Logical};
use sardonyx::machine::{MAX_CORES, OpSource, PAGE_LINES, RunError, System, Warmup, noise};
use sardonyx::medium::params::{PROGRAMS_FIRST, PROGRAMS_SKEW, Think};
use sardonyx::memory::Memory;

/// The reason why programs cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The specification is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The run cannot be made or cannot go on.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The programs' regions do not fit.
    #[error(
        "{program}: {cores} regions of {} MiB do not fit in the machine's {} MiB; \
         give a smaller footprint, fewer transactions or cores, or a larger machine",
        .region >> 14, .machine >> 14
    )]
    Region {
        /// The program.
        program: String,
        /// Regions wanted.
        cores: usize,
        /// Lines of one.
        region: u64,
        /// Lines that there are.
        machine: u64,
    },
}

/// Checks that `spec` is right and fits on `cores` cores of `machine`.
///
/// # Errors
/// What is wrong, and the remedy.
pub fn check(machine: &Machine, spec: &ProgramSpec, cores: usize) -> Result<(), ProgramError> {
    if !(1..=MAX_CORES).contains(&cores) {
        return Err(RunError::Cores { cores }.into());
    }
    let lines = machine.engine.medium.geometry.lines();
    let private = Think::from_settings(&machine.settings).lines;
    let region = spec.build()?.region_bytes() / LINE_BYTES as u64 + private;
    let first = machine.settings.get(&PROGRAMS_FIRST);
    let skews = cores as u64 * machine.settings.get(&PROGRAMS_SKEW);
    if region + (skews + first) * PAGE_LINES <= lines / cores as u64 {
        return Ok(());
    }
    Err(ProgramError::Region {
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
) -> Result<Vec<ProgramRun>, ProgramError> {
    check(machine, spec, cores)?;
    let share = machine.engine.medium.geometry.lines() / cores as u64;
    let think = Think::from_settings(&machine.settings);
    let first = machine.settings.get(&PROGRAMS_FIRST);
    let skew = machine.settings.get(&PROGRAMS_SKEW);
    let program = |core: u64| {
        let pages = core * (share / PAGE_LINES + skew) + first;
        let base = Logical(pages * PAGE_LINES);
        let spec = ProgramSpec {
            seed: spec.seed.wrapping_add(core),
            ..spec.clone()
        };
        Ok(ProgramRun::new(&spec, base)?.thinking(think))
    };
    (0..cores as u64).map(program).collect()
}

/// The medium under `design` with what `programs` have set up in it, to which reads are held.
///
/// # Errors
/// There is no such design.
pub fn prefilled(
    machine: &Machine,
    design: &str,
    programs: &[ProgramRun],
) -> Result<Memory, RunError> {
    let mut memory = Memory::new(machine, design)?;
    memory.check(Some(Box::default()));
    for program in programs {
        for line in 0..program.set_up_lines() {
            let place = Logical(program.region().at(line));
            memory.write_at_once(place, program.memory().line(line));
        }
        for line in program.private().iter() {
            memory.write_at_once(Logical(line), &noise(line));
        }
    }
    memory.settle();
    Ok(memory)
}

/// A machine of `design` with `spec` on each of `cores` cores; the first `warmup` transactions of each
/// core are left out of the statistics.
///
/// # Errors
/// What is wrong with `spec` or `design`.
pub fn system(
    machine: &Machine,
    design: &str,
    spec: &ProgramSpec,
    cores: usize,
    warmup: u64,
) -> Result<System<'static>, ProgramError> {
    if warmup >= spec.transactions {
        return Err(ProgramError::Run(RunError::OnlyWarmup {
            trace: spec.name.clone(),
            warmup,
            unit: "transactions",
            all: spec.transactions,
        }));
    }
    let machine = machine.with_cores(cores);
    let programs = set_up(&machine, spec, cores)?;
    let memory = prefilled(&machine, design, &programs)?;
    let boxed = |program| Box::new(program) as Box<dyn OpSource>;
    let sources = programs.into_iter().map(boxed).collect();
    let warmup = Warmup::Transactions(warmup);
    Ok(System::of_programs(&machine, memory, sources, warmup)?)
}
