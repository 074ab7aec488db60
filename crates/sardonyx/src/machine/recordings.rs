//! Recorded traces as runs, by the level at which they were taken.

use super::{
    Agent, Copies, Outcome, Player, RunError, Stream, System, TraceCore, TraceOps, Warmup,
};
use crate::config::Machine;
use crate::medium::params::{COPIES_SKEW, FRAMES};
use crate::memory::Memory;
use crate::trace::{Level, Source};

/// Options of a run beside the machine, the design and the traces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Requests that warm the machine up and are left out of the statistics.
    pub warmup: u64,
    /// The share of contents that each copy of the trace has for itself.
    pub distinct: f64,
}

/// A machine of `design` that plays each of `sources` on a core of its own: those taken below caches as
/// they are, those taken at the core through the machine's caches. Reads are held to what was written.
///
/// # Errors
/// The design is unknown, a trace is broken or cannot be played so.
pub fn system(
    machine: &Machine,
    design: &str,
    sources: Vec<Source>,
    options: Options,
) -> Result<System<'static>, RunError> {
    let at_the_core = sources.iter().any(|s| s.provenance().level == Level::Cpu);
    let machine = &machine.with_cores(sources.len());
    let lines = machine.engine.medium.geometry.lines();
    let order = machine.settings.get(&FRAMES);
    let skew = machine.settings.get(&COPIES_SKEW);
    let (of, distinct) = (sources.len() as u32, options.distinct);
    let mut agents: Vec<Box<dyn Agent>> = Vec::new();
    let mut spaces = Vec::new();
    for (core, source) in sources.into_iter().enumerate() {
        let copy = core as u32;
        let copies = Copies { copy, of, distinct };
        spaces.push(copies.space(lines, order, skew));
        agents.push(match at_the_core {
            true => {
                let ops = Box::new(TraceOps::new(source, copies)?);
                Box::new(Player::new(core, machine, ops)?)
            }
            false => Box::new(TraceCore::new(
                core,
                &machine.core,
                Stream::new(source, copies)?,
            )),
        });
    }
    let warmup = Warmup::Requests(options.warmup);
    let mut memory = Memory::new(machine, design)?;
    memory.check(Some(Box::default()));
    System::new(machine, memory, agents, spaces, warmup)
}

/// Runs the same; `progress` is told how far it is and may end the run by answering false.
///
/// # Errors
/// As [`system`] and [`System::run`].
pub fn run(
    machine: &Machine,
    design: &str,
    sources: Vec<Source>,
    options: Options,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Outcome, RunError> {
    system(machine, design, sources, options)?.run(progress)
}
