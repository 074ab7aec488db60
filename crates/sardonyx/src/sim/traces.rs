//! Recorded traces as runs, by the level at which they were taken.

use super::{Ground, Options, Outcome, SimError, Simulation, System, Warmup};
use crate::config::Machine;
use crate::cpu::{Copies, OpSource, TraceOps};
use crate::trace::{Level, Source};

/// Plays each of `sources` on a core of its own: those taken below caches as they are, those taken at
/// the core through the machine's caches.
///
/// # Errors
/// As [`Simulation::new`] and [`Simulation::run`].
pub fn run(
    machine: &Machine,
    design: &str,
    sources: Vec<Source>,
    options: Options,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Outcome, SimError> {
    let at_the_core = sources.iter().any(|s| s.provenance().level == Level::Cpu);
    if !at_the_core {
        return Simulation::new(machine, design, sources, options)?.run(progress);
    }
    let machine = machine.with_cores(sources.len());
    let lines = machine.engine.medium.geometry.lines();
    let of = sources.len() as u32;
    let copies = (0..of).map(|copy| Copies {
        copy,
        of,
        distinct: options.distinct,
    });
    let ops = sources.into_iter().zip(copies).map(|(source, copies)| {
        let ops = TraceOps::new(source, copies, lines)?;
        Ok(Box::new(ops) as Box<dyn OpSource>)
    });
    let ops = ops.collect::<Result<Vec<_>, SimError>>()?;
    let warmup = Warmup {
        requests: options.warmup,
        transactions: 0,
    };
    let ground = Ground::new(&machine, design)?;
    System::new(&machine, ground, ops, warmup, &mut ())?.run(progress)
}
