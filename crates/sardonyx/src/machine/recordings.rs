//! Recorded traces as runs, by the level at which they were taken.

use super::{
    AddressSpace, Agent, Copies, Outcome, PAGE_LINES, Player, RunError, Stream, System, Threads,
    TraceBus, TraceCore, TraceOps, TraceUse, Warmup, drain,
};
use crate::config::Machine;
use crate::line::LINE_BYTES;
use crate::medium::params::{ADDRESSES, ARRIVALS, Addresses, Moments};
use crate::memory::Memory;
use crate::trace::{Arrivals, GapUnit, Level, Source};

/// Options of a run beside the machine, the design and the traces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Requests that warm the machine up and are left out of the statistics.
    pub warmup: u64,
    /// The share of contents that each copy of the trace has to itself.
    pub distinct: f64,
}

fn addresses(machine: &Machine, source: &Source) -> Addresses {
    let physical = source.provenance().is_physical();
    machine.settings.get(&ADDRESSES).of(physical)
}

fn is_open(machine: &Machine, source: &Source) -> Result<bool, TraceUse> {
    let provenance = source.provenance();
    let open = match machine.settings.get(&ARRIVALS) {
        Moments::ByTrace => provenance.arrivals == Arrivals::Open,
        Moments::Open => true,
        Moments::Closed => false,
    };
    let problem = match (open, provenance.level, provenance.gap_unit) {
        (true, Level::Cpu, _) => "was taken at the core, and has no arrivals at memory",
        (true, _, GapUnit::Instructions) => "counts instructions, and has no arrivals at memory",
        _ => return Ok(open),
    };
    Err(TraceUse {
        trace: source.name().to_owned(),
        problem: problem.to_owned(),
        remedy: "give --arrivals closed",
    })
}

/// Checks that `source` can be played as asked, with caches if those are to be drained, and that each of its addresses has a place where one of `copies` of it
/// plays.
///
/// # Errors
/// The first record that lies beyond the machine; the trace is broken.
pub fn check(machine: &Machine, source: Source, copies: u32) -> Result<(), RunError> {
    is_open(machine, &source)?;
    drain::check(&machine.settings, &source)?;
    if addresses(machine, &source) != Addresses::AsTraced {
        return Ok(());
    }
    let all = [machine.engine.medium.geometry.lines(), machine.near_lines()];
    let shares = u64::from(copies.max(1));
    let frames: u64 = all.map(|lines| lines / PAGE_LINES / shares).iter().sum();
    let lines = frames * PAGE_LINES;
    let trace = source.name().to_owned();
    match source.first_beyond(lines)? {
        None => Ok(()),
        Some((record, line)) => Err(RunError::Beyond {
            trace,
            record,
            address: line.byte().0,
            machine: machine.name.clone(),
            capacity: lines * LINE_BYTES as u64,
            copies,
        }),
    }
}

/// Makes a machine of `design` that plays each of `sources` on a core of its own. Traces taken below caches are played
/// as they are, traces taken at the core through the machine's caches. Reads are compared with earlier writes.
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
    let (of, distinct) = (sources.len() as u32, options.distinct);
    let mut agents: Vec<Box<dyn Agent>> = Vec::new();
    let mut spaces = Vec::new();
    for (core, source) in sources.into_iter().enumerate() {
        let copy = core as u32;
        let copies = Copies { copy, of, distinct };
        let addresses = addresses(machine, &source);
        spaces.push(copies.space(machine, addresses));
        agents.push(match at_the_core {
            true => {
                let ops = Box::new(TraceOps::new(source, copies)?);
                Box::new(Player::new(core, machine, ops)?)
            }
            false => match is_open(machine, &source)? {
                true => {
                    let stream = Stream::new(source, copies)?;
                    Box::new(TraceBus::new(core, machine.core.clock, stream))
                }
                false => Box::new(TraceCore::new(
                    core,
                    &machine.core,
                    Stream::new(source, copies)?,
                )),
            },
        });
    }
    of_agents(machine, design, agents, spaces, options)
}

/// Makes a machine of `design` that plays each thread of each of `sources` on a core of its own. The sources are copies
/// of one recording, taken below caches, which has `threads`. Those of a copy share its address space, where pages take
/// frames in the recorded order, and access each line in the recorded order.
///
/// # Errors
/// As [`system`].
pub fn by_thread(
    machine: &Machine,
    design: &str,
    sources: Vec<Source>,
    threads: &Threads,
    options: Options,
) -> Result<System<'static>, RunError> {
    let (of, distinct) = (sources.len() as u32, options.distinct);
    let machine = &machine.with_cores(sources.len() * threads.number());
    let mut agents: Vec<Box<dyn Agent>> = Vec::new();
    let mut spaces = Vec::new();
    for (copy, source) in sources.into_iter().enumerate() {
        let copy = copy as u32;
        let copies = Copies { copy, of, distinct };
        let (first, trace) = (agents.len(), source.name().to_owned());
        let mut frames = copies.frames(machine, addresses(machine, &source));
        let taken = threads.touch(&mut frames);
        taken.map_err(|why| RunError::Memory { trace, why })?;
        spaces.push(AddressSpace::Framed(frames));
        for (thread, stream) in threads
            .streams(source, copies, first)?
            .into_iter()
            .enumerate()
        {
            if thread > 0 {
                spaces.push(AddressSpace::Of(first));
            }
            let core = TraceCore::new(first + thread, &machine.core, stream);
            agents.push(Box::new(core));
        }
    }
    of_agents(machine, design, agents, spaces, options)
}

fn of_agents(
    machine: &Machine,
    design: &str,
    agents: Vec<Box<dyn Agent>>,
    spaces: Vec<AddressSpace>,
    options: Options,
) -> Result<System<'static>, RunError> {
    let warmup = Warmup::Requests(options.warmup);
    let mut memory = Memory::new(machine, design)?;
    memory.check(Some(Box::default()));
    System::new(machine, memory, agents, spaces, warmup)
}

/// Runs the machine of [`system`]. `progress` hears how far the run is, and may end it by answering false.
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
