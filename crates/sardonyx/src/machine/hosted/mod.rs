//! A machine whose cores are another program's: a simulator that asks this memory for lines and is told when they come.
//! The host has the clock; this does for it what `System` does for agents of our own. Requests that come at the same
//! times take exactly the same time as in a run of our own. Left out: cores and caches, which the host has; the border
//! to C (`crates/c`).

mod figures;
mod functional;
mod messages;
mod power;
mod requests;
mod time;

use std::collections::VecDeque;
use std::time::Instant;

pub use messages::{
    AnswerKind, HostOptions, HostRequest, HostRequestKind, HostedError, MAX_SOURCES, Posted, Told,
    Unwritten,
};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::port::Port;
use super::system::Before;
use super::{AddressSpace, Caches, Copies, CoreFigures, PageTable, noise};
use crate::config::Machine;
use crate::line::{Line, Logical, ZERO_LINE};
use crate::medium::image::Image;
use crate::medium::params::drain::DRAINS;
use crate::medium::params::{ADDRESSES, Addresses, CachesParams};
use crate::memory::Memory;
use crate::plan::journal::Journal;
use crate::units::Time;

/// The last time that a host may name: five hours.
const END: Time = Time::from_ps(18_000_000_000_000_000);

#[derive(Clone)]
struct Flight {
    what: AnswerKind,
    tag: u64,
    source: u32,
    line: Logical,
    presented: Time,
    admitted: Time,
    accepted: Option<Time>,
    persist: bool,
    tell_array: bool,
    free: bool,
    read: Line,
    part: (u8, u8),
    written: bool,
    waiters: SmallVec<[u32; 2]>,
}

#[derive(Clone, Copy)]
struct PersistWaiter {
    what: AnswerKind,
    tag: u64,
    source: u32,
    presented: Time,
    left: usize,
}

/// A machine under a host.
pub struct Hosted {
    machine: Machine,
    design: String,
    options: HostOptions,
    port: Port,
    capacity: u64,
    addresses: Addresses,
    /// Pages in use, where nobody keeps the host's writes.
    pages: FxHashSet<u64>,
    flights: Vec<Flight>,
    free: Vec<u32>,
    in_flight: usize,
    waiters: Vec<PersistWaiter>,
    free_waiters: Vec<u32>,
    told: VecDeque<Told>,
    /// The host's clock, as far as the host has told.
    clock: Time,
    cores: Vec<CoreFigures>,
    before: Option<Before>,
    /// The image with which the journal began, once the first request has come.
    began_with: Option<Image>,
    off: bool,
    /// Whether a loader has written while no request had come.
    loaded: bool,
    started: Instant,
}
impl Hosted {
    /// A memory of `design`, at rest and never written.
    ///
    /// # Errors
    /// There is no such design; no sources.
    pub fn new(
        machine: &Machine,
        design: &str,
        options: HostOptions,
    ) -> Result<Hosted, HostedError> {
        if !(1..=MAX_SOURCES).contains(&options.sources) {
            return Err(HostedError::Sources(options.sources));
        }
        if options.journal && !options.keep {
            return Err(HostedError::NotKept("host.power_cut=yes"));
        }
        if (DRAINS.met)(&machine.settings) {
            return Err(HostedError::Drains);
        }
        let machine = machine.with_cores(options.sources);
        let mut memory = Memory::new(&machine, design)?;
        memory.check(options.keep.then(Box::default));
        let beside = machine.near_lines() * crate::line::LINE_BYTES as u64;
        let capacity = machine.capacity_bytes() + beside;
        let spaces = (0..options.sources).map(|source| space(&machine, &options, source));
        let caches = Caches::new(&CachesParams::default(), 1);
        let mut port = Port::new(
            memory,
            caches,
            PageTable::new(spaces.collect()),
            options.sources,
        );
        if options.journal {
            port.memory.observe(Journal::default());
        }
        port.counted = options.warmup == 0;
        let cores = vec![CoreFigures::default(); options.sources];
        Ok(Hosted {
            before: port.counted.then(|| Before {
                time: Time::ZERO,
                committed: 0,
                figures: cores.clone(),
            }),
            design: design.to_owned(),
            options,
            port,
            capacity,
            addresses: addresses(&machine),
            machine,
            pages: FxHashSet::default(),
            flights: Vec::new(),
            free: Vec::new(),
            in_flight: 0,
            waiters: Vec::new(),
            free_waiters: Vec::new(),
            told: VecDeque::new(),
            clock: Time::ZERO,
            cores,
            began_with: None,
            off: false,
            loaded: false,
            started: Instant::now(),
        })
    }

    /// The machine, with as many cores as sources were asked for.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The design's name.
    pub fn design(&self) -> &str {
        &self.design
    }

    /// The options that it was made with.
    pub fn options(&self) -> &HostOptions {
        &self.options
    }
}

fn addresses(machine: &Machine) -> Addresses {
    machine.settings.get(&ADDRESSES).of(true)
}

fn space(machine: &Machine, options: &HostOptions, source: usize) -> AddressSpace {
    let addresses = addresses(machine);
    if let Addresses::AsTraced | Addresses::Wrapped = addresses {
        return AddressSpace::Identity { pages: 0 };
    }
    let copies = Copies {
        copy: source as u32,
        of: options.sources as u32,
        distinct: 0.0,
    };
    copies.space(machine, addresses)
}

impl Unwritten {
    fn line(self, line: Logical) -> Line {
        match self {
            Unwritten::Zeros => ZERO_LINE,
            Unwritten::Noise => noise(line.0),
        }
    }
}

#[cfg(test)]
mod tests;
