//! A machine whose cores are somebody else's program: another simulator that asks this memory for lines and
//! is told when they came. It has the clock; here is what `System` does for agents of our own, turned round.
//! Requests that come at the same times take the same time as in a run of our own, exactly.
//! Left out: cores and caches, which the host has; the border to C (`crates/c`).

mod asked;
mod contents;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

pub use asked::{
    Addresses, Asked, HostedError, Kind, MAX_SOURCES, Options, Posted, Told, Unwritten, What,
};
use contents::Contents;
use smallvec::SmallVec;

use super::outcome::{self, Finished, Outcome};
use super::port::Port;
use super::system::Before;
use super::{AddressSpace, Caches, Copies, CoreFigures, PAGE_LINES, PageTable, noise};
use crate::config::Machine;
use crate::controller::{Class, Persist, Write};
use crate::engine::Request;
use crate::exhausted::Exhausted;
use crate::latency::Latencies;
use crate::line::{LINE_BYTES, Line, Logical, Virtual, ZERO_LINE};
use crate::medium::image::Image;
use crate::medium::params::{COPIES_SKEW, CachesParams, FRAMES};
use crate::memory::Memory;
use crate::plan::At;
use crate::plan::journal::Journal;
use crate::stats::Direction;
use crate::units::Time;

/// The last time that a host may speak of: five hours.
const END: Time = Time::from_ps(18_000_000_000_000_000);

/// A request in flight.
#[derive(Clone)]
struct Flight {
    what: What,
    tag: u64,
    source: u32,
    line: Logical,
    presented: Time,
    admitted: Time,
    accepted: Option<Time>,
    /// The source's next fence waits for it.
    persist: bool,
    tell_array: bool,
    /// Free for another request.
    free: bool,
    read: Line,
    part: (u8, u8),
    written: bool,
    /// Flushes and fences that wait for its acceptance.
    waiters: SmallVec<[u32; 2]>,
}

/// A flush or a fence that waits for acceptances.
#[derive(Clone, Copy)]
struct Waiter {
    what: What,
    tag: u64,
    source: u32,
    presented: Time,
    left: usize,
}

/// What was held against what the host wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Reads of lines that the host had written.
    pub reads: u64,
    /// Of them, those that brought other bytes.
    pub differ: u64,
}

/// A machine under a host.
pub struct Hosted {
    machine: Machine,
    design: String,
    options: Options,
    port: Port,
    capacity: u64,
    contents: Contents,
    flights: Vec<Flight>,
    free: Vec<u32>,
    in_flight: usize,
    waiters: Vec<Waiter>,
    free_waiters: Vec<u32>,
    told: VecDeque<Told>,
    /// How far the host's clock has come, as far as it has said.
    clock: Time,
    /// What the host says of its cores.
    cores: Vec<CoreFigures>,
    before: Option<Before>,
    checked: Checked,
    /// Where the journal began; once the first request has come.
    began_with: Option<Image>,
    off: bool,
    /// A loader has written, and no request has come.
    loaded: bool,
    started: Instant,
}

/// Before a run.
impl Hosted {
    /// A memory of `design`, at rest and never written.
    ///
    /// # Errors
    /// There is no such design; no sources.
    pub fn new(machine: &Machine, design: &str, options: Options) -> Result<Hosted, HostedError> {
        if !(1..=MAX_SOURCES).contains(&options.sources) {
            return Err(HostedError::Sources(options.sources));
        }
        let machine = machine.with_cores(options.sources);
        let memory = Memory::new(&machine, design)?;
        let capacity = machine.capacity_bytes();
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
            machine,
            design: design.to_owned(),
            options,
            port,
            capacity,
            contents: Contents::new(),
            flights: Vec::new(),
            free: Vec::new(),
            in_flight: 0,
            waiters: Vec::new(),
            free_waiters: Vec::new(),
            told: VecDeque::new(),
            clock: Time::ZERO,
            cores,
            checked: Checked::default(),
            began_with: None,
            off: false,
            loaded: false,
            started: Instant::now(),
        })
    }

    /// The machine, as many sources as were asked for.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The design's name.
    pub fn design(&self) -> &str {
        &self.design
    }

    /// How it is.
    pub fn options(&self) -> &Options {
        &self.options
    }
}

fn space(machine: &Machine, options: &Options, source: usize) -> AddressSpace {
    match options.addresses {
        Addresses::Identity | Addresses::Wrap => AddressSpace::Identity { pages: 0 },
        Addresses::FirstTouch => {
            let copies = Copies {
                copy: source as u32,
                of: options.sources as u32,
                distinct: false,
            };
            let order = machine.settings.get(&FRAMES);
            let skew = machine.settings.get(&COPIES_SKEW);
            let lines = machine.engine.medium.geometry.lines();
            copies.space(lines, order, skew)
        }
    }
}

/// Requests.
impl Hosted {
    /// Whether a request is taken now.
    ///
    /// # Errors
    /// The run cannot go on.
    pub fn accepts(&mut self) -> Result<bool, HostedError> {
        self.powered()?;
        self.settle(self.clock)?;
        Ok(self.port.memory.accepts())
    }

    /// Whether memory has taken the request; if not, nothing has changed but the time: ask again later.
    ///
    /// # Errors
    /// The request is none that can be, or the run cannot go on.
    pub fn send(&mut self, asked: &Asked) -> Result<bool, HostedError> {
        self.powered()?;
        let presented = asked.presented.unwrap_or(self.clock);
        if presented > END {
            return Err(Exhausted::FIVE_HOURS.into());
        }
        let (size, is_line) = match asked.kind {
            Kind::Read(size) => (size, false),
            Kind::Write { bytes, .. } => (bytes.len(), false),
            Kind::WriteCounters => (1, true),
        };
        let from = (asked.address % LINE_BYTES as u64) as usize;
        if size == 0 || size > LINE_BYTES - from {
            let address = asked.address;
            return Err(HostedError::Size { address, size });
        }
        self.check_source(asked.source)?;
        self.check_address(asked.address)?;
        let now = presented.max(self.clock);
        self.settle(now)?;
        if !self.port.memory.accepts() {
            return Ok(false);
        }
        let line = self.translate(asked.source, asked.address)?;
        if self.before.is_none() && self.port.admitted >= self.options.warmup {
            self.begin_counting(now.max(self.port.memory.now()));
        }
        if std::mem::take(&mut self.loaded) {
            self.port.memory.settle(); // a loader's bytes are all in the medium
        }
        if self.options.journal && self.began_with.is_none() {
            self.began_with = Some(self.port.memory.image().copy());
        }
        self.clock = now;
        let part = if is_line {
            (0, 0)
        } else {
            (from as u8, size as u8)
        };
        self.admit(asked, line, presented, part);
        Ok(true)
    }

    fn admit(&mut self, asked: &Asked, line: Logical, presented: Time, part: (u8, u8)) {
        let mut flight = Flight {
            what: What::Read,
            tag: asked.tag,
            source: asked.source,
            line,
            presented,
            admitted: presented.max(self.port.memory.now()),
            accepted: None,
            persist: false,
            tell_array: false,
            free: false,
            read: ZERO_LINE,
            part,
            written: false,
            waiters: SmallVec::new(),
        };
        let index = self.free.pop().unwrap_or_else(|| {
            self.flights.push(Flight {
                free: true,
                ..flight.clone()
            });
            self.flights.len() as u32 - 1
        });
        let now = flight.admitted;
        self.port.admitted += 1;
        let mut request = Request {
            arrival: presented,
            core: asked.source,
            tag: u64::from(index),
            kind: Direction::Read,
            counted: self.port.counted,
        };
        match asked.kind {
            Kind::Read(_) => {
                let got = self.port.memory.read(request, now, line, Class::Data).value;
                flight.written = got.is_some();
                flight.read = self.check_read(line, got);
            }
            Kind::Write {
                bytes,
                persist,
                counter_atomic,
                tell_array,
            } => {
                flight.what = What::Written;
                (flight.persist, flight.tell_array) = (persist || counter_atomic, tell_array);
                let unwritten = self.options.unwritten;
                let before = || unwritten.line(line);
                let from = part.0.into();
                let data = self.contents.put(line, from, bytes, before, false);
                request.kind = Direction::Write;
                let write = Write {
                    order: match counter_atomic {
                        true => Persist::CounterAtomic,
                        false => Persist::Relaxed,
                    },
                    core: asked.source,
                    ..Write::new(line, At::past(&data))
                };
                self.port.memory.write_announced(request, now, write);
            }
            Kind::WriteCounters => {
                (flight.what, flight.persist) = (What::Counters, true);
                (request.kind, request.counted) = (Direction::Write, false);
                self.port.memory.persist_metadata(request, now, line);
            }
        }
        self.in_flight += 1;
        self.flights[index as usize] = flight;
        self.take();
    }

    /// What the host gets for what memory has read, held against what the host wrote last.
    fn check_read(&mut self, line: Logical, got: Option<Line>) -> Line {
        let ahead = self.contents.is_ahead(line);
        match self.contents.get(line) {
            Some(known) if ahead => *known,
            Some(known) => {
                self.checked.reads += 1;
                self.checked.differ += u64::from(got.as_ref() != Some(known));
                got.unwrap_or_else(|| self.options.unwritten.line(line))
            }
            None => got.unwrap_or_else(|| self.options.unwritten.line(line)),
        }
    }

    /// A request for `address` will come: what this computer needs for it is fetched ahead. No effect on
    /// results; an address that is none has no effect at all.
    pub fn hint(&mut self, source: u32, address: u64) {
        if (source as usize) < self.options.sources {
            let line = Virtual(self.wrapped(address) / LINE_BYTES as u64);
            if line.0 < self.capacity / LINE_BYTES as u64
                || self.options.addresses == Addresses::FirstTouch
            {
                self.port.touch_memory_ahead(source as usize, line);
            }
        }
    }

    /// Answers when all writes of the line sent before are in the persistence domain; the next fence of the
    /// source waits for it.
    ///
    /// # Errors
    /// There is no such line or source.
    pub fn flush(&mut self, address: u64, source: u32, tag: u64) -> Result<(), HostedError> {
        self.powered()?;
        self.check_source(source)?;
        self.check_address(address)?;
        self.settle(self.clock)?;
        let line = self.translate(source, address)?;
        self.wait(What::Flushed, source, tag, |flight, _| flight.line == line);
        Ok(())
    }

    /// Answers when all that the source has sent to persist, and flushed, is in the persistence domain.
    ///
    /// # Errors
    /// There is no such source.
    pub fn fence(&mut self, source: u32, tag: u64) -> Result<(), HostedError> {
        self.powered()?;
        self.check_source(source)?;
        self.settle(self.clock)?;
        self.wait(What::Fenced, source, tag, |flight, waiters| {
            let flushed = |waiter: &u32| {
                let waiter = &waiters[*waiter as usize];
                waiter.what == What::Flushed && waiter.source == source
            };
            flight.persist && flight.source == source || flight.waiters.iter().any(flushed)
        });
        Ok(())
    }

    /// Waits for the acceptance of writes in flight that are not accepted.
    fn wait(
        &mut self,
        what: What,
        source: u32,
        tag: u64,
        for_it: impl Fn(&Flight, &[Waiter]) -> bool,
    ) {
        let waiter = Waiter {
            what,
            tag,
            source,
            presented: self.clock,
            left: 0,
        };
        let index = self.free_waiters.pop().unwrap_or_else(|| {
            self.waiters.push(waiter);
            self.waiters.len() as u32 - 1
        });
        self.waiters[index as usize] = waiter;
        let waiters = &self.waiters;
        let mut left = 0;
        for flight in &mut self.flights {
            let waits = !flight.free && flight.what != What::Read && flight.accepted.is_none();
            if waits && for_it(flight, waiters) {
                flight.waiters.push(index);
                left += 1;
            }
        }
        self.waiters[index as usize].left = left;
        if left == 0 {
            self.waited(index, self.clock);
        }
    }

    fn waited(&mut self, index: u32, at: Time) {
        let waiter = self.waiters[index as usize];
        self.free_waiters.push(index);
        if waiter.what == What::Fenced {
            self.port.fenced(waiter.source as usize, at);
        }
        self.told.push_back(Told {
            what: waiter.what,
            tag: waiter.tag,
            source: waiter.source,
            presented: waiter.presented,
            admitted: waiter.presented,
            accepted: Some(at),
            array: None,
            answered: at,
            line: ZERO_LINE,
            part: (0, 0),
            written: false,
        });
    }

    fn wrapped(&self, address: u64) -> u64 {
        match self.options.addresses {
            Addresses::Wrap => address % self.capacity,
            Addresses::Identity | Addresses::FirstTouch => address,
        }
    }

    fn translate(&mut self, source: u32, address: u64) -> Result<Logical, HostedError> {
        let line = Virtual(self.wrapped(address) / LINE_BYTES as u64);
        Ok(self.port.translate(source as usize, line)?)
    }

    fn check_source(&self, source: u32) -> Result<(), HostedError> {
        match (source as usize) < self.options.sources {
            true => Ok(()),
            false => Err(HostedError::Source {
                source_number: source,
                sources: self.options.sources,
            }),
        }
    }

    fn check_address(&self, address: u64) -> Result<(), HostedError> {
        match self.options.addresses == Addresses::Identity && address >= self.capacity {
            false => Ok(()),
            true => Err(HostedError::Beyond {
                address,
                capacity: self.capacity,
            }),
        }
    }

    fn powered(&self) -> Result<(), HostedError> {
        match self.off {
            false => Ok(()),
            true => Err(HostedError::NotNow("the power is off; recover first")),
        }
    }
}

impl Unwritten {
    fn line(self, line: Logical) -> Line {
        match self {
            Unwritten::Zeros => ZERO_LINE,
            Unwritten::Noise => noise(line.0),
        }
    }
}

/// Time and answers.
impl Hosted {
    /// The present.
    pub fn now(&self) -> Time {
        self.clock.max(self.port.memory.now())
    }

    /// When memory next does something by itself; [`Time::NEVER`] if it does nothing until it is asked.
    pub fn next_event(&self) -> Time {
        self.port.memory.next_event()
    }

    /// A cycle of the medium's clock.
    pub fn cycle(&self) -> Time {
        self.machine.engine.medium.timing.clock
    }

    /// Moves time on to `limit`: all that happens until then, and at it, happens.
    ///
    /// # Errors
    /// The run cannot go on.
    pub fn advance_to(&mut self, limit: Time) -> Result<(), HostedError> {
        self.powered()?;
        if limit > END {
            return Err(Exhausted::FIVE_HOURS.into());
        }
        self.settle(limit)?;
        self.clock = self.clock.max(limit);
        if self.next_event() == Time::NEVER && !self.port.memory.accepts() {
            self.port.memory.empty_queues(false);
        }
        Ok(())
    }

    /// Moves time on up to `limit`, and no further than the first event that the host must know of: an answer,
    /// or that memory takes requests again.
    ///
    /// # Errors
    /// The run cannot go on.
    pub fn advance_until(&mut self, limit: Time) -> Result<(), HostedError> {
        self.powered()?;
        if self.next_event() <= limit {
            self.port.memory.advance_until(limit);
            self.take();
        }
        self.goes_on()?;
        self.clock = self.clock.max(self.port.memory.now());
        Ok(())
    }

    /// Nothing happens by itself, and the host asks for nothing before something does: queued writes go. With
    /// `last` it never asks again. Whether anything is left to happen.
    ///
    /// # Errors
    /// The run cannot go on.
    pub fn idle(&mut self, last: bool) -> Result<bool, HostedError> {
        self.powered()?;
        if self.next_event() != Time::NEVER {
            return Ok(true);
        }
        let more = self.port.memory.empty_queues(last);
        self.goes_on()?;
        Ok(more)
    }

    /// The end of the input: everything happens until nothing is left to happen.
    ///
    /// # Errors
    /// The run cannot go on, or a request was lost.
    pub fn finish(&mut self) -> Result<(), HostedError> {
        loop {
            while self.next_event() != Time::NEVER {
                self.advance_until(Time::NEVER)?;
            }
            if !self.idle(true)? {
                break;
            }
        }
        self.take();
        if self.in_flight > 0 {
            return Err(HostedError::Lost(self.in_flight));
        }
        self.port.memory.assert_at_rest();
        self.write_ahead();
        Ok(())
    }

    /// The next answer.
    pub fn answer(&mut self) -> Option<Told> {
        self.told.pop_front()
    }

    /// How many answers wait.
    pub fn answers(&self) -> usize {
        self.told.len()
    }

    /// Requests that have no answer yet.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// All that happens until `time`, and at it.
    fn settle(&mut self, time: Time) -> Result<(), HostedError> {
        while self.next_event() <= time {
            self.port.memory.advance_until(time);
            self.take();
        }
        self.goes_on()
    }

    fn goes_on(&self) -> Result<(), HostedError> {
        if let Some(why) = self.port.memory.failure() {
            return Err(why.into());
        }
        match self.port.memory.refused() {
            None => Ok(()),
            Some((region, line)) => Err(HostedError::NotAuthentic {
                region: region.to_owned(),
                line,
            }),
        }
    }

    /// Takes acceptances and answers from memory.
    fn take(&mut self) {
        while self.port.memory.has_acceptances() {
            let accepted: SmallVec<[_; 4]> = self.port.memory.acceptances().collect();
            for acceptance in accepted {
                self.accepted(acceptance.tag as usize, acceptance.at);
            }
        }
        if !self.port.memory.has_answers() {
            return;
        }
        let posted = self.options.posted == Posted::Accepted;
        for answer in self.port.memory.answers() {
            let request = answer.request;
            self.port.last_answer = answer.at;
            if request.counted {
                let latencies = match request.kind {
                    Direction::Read => &mut self.port.reads,
                    Direction::Write => &mut self.port.writes,
                };
                latencies.record(answer.at - request.arrival);
            }
            let flight = &mut self.flights[request.tag as usize];
            flight.free = true;
            self.free.push(request.tag as u32);
            self.in_flight -= 1;
            let is_write = flight.what == What::Written;
            if flight.what == What::Counters || is_write && posted && !flight.tell_array {
                continue; // told when it was accepted
            }
            let read = flight.what == What::Read;
            let mut told = told(flight, answer.at);
            if is_write && posted {
                told.what = What::InArray;
                told.answered = flight.accepted.unwrap_or(answer.at);
            }
            told.array = (!read).then_some(answer.at);
            self.told.push_back(told);
        }
    }

    fn accepted(&mut self, index: usize, at: Time) {
        let posted = self.options.posted == Posted::Accepted;
        let flight = &mut self.flights[index];
        flight.accepted = Some(at);
        if posted || flight.what == What::Counters {
            let told = told(flight, at);
            self.told.push_back(told);
        }
        for waiter in std::mem::take(&mut flight.waiters) {
            let left = &mut self.waiters[waiter as usize].left;
            *left -= 1;
            if *left == 0 {
                self.waited(waiter, at);
            }
        }
    }
}

fn told(flight: &Flight, answered: Time) -> Told {
    Told {
        what: flight.what,
        tag: flight.tag,
        source: flight.source,
        presented: flight.presented,
        admitted: flight.admitted,
        accepted: flight.accepted,
        array: None,
        answered,
        line: flight.read,
        part: flight.part,
        written: flight.written,
    }
}

/// Looks and changes that take no time: a debugger's, a loader's.
impl Hosted {
    /// What the host has written last at `address`, across lines.
    ///
    /// # Errors
    /// The address lies nowhere.
    pub fn peek(&mut self, source: u32, address: u64, bytes: &mut [u8]) -> Result<(), HostedError> {
        self.powered()?;
        self.each_line(source, address, bytes.len(), |this, line, from, part| {
            let part = &mut bytes[part];
            let unwritten = this.options.unwritten;
            let known = this.contents.get(line).copied();
            let known = known.unwrap_or_else(|| unwritten.line(line));
            part.copy_from_slice(&known[from..from + part.len()]);
        })
    }

    /// Makes the bytes at `address` these, across lines. Memory gets them at once if it is at rest, else when
    /// it next is.
    ///
    /// # Errors
    /// The address lies nowhere.
    pub fn poke(&mut self, source: u32, address: u64, bytes: &[u8]) -> Result<(), HostedError> {
        self.powered()?;
        self.each_line(source, address, bytes.len(), |this, line, from, part| {
            let unwritten = this.options.unwritten;
            let (part, before) = (&bytes[part], || unwritten.line(line));
            this.contents.put(line, from, part, before, true);
        })?;
        // With a journal memory has to be what the journal says, from the first request on.
        if self.began_with.is_none() && self.in_flight == 0 {
            self.write_ahead();
        }
        self.goes_on()
    }

    fn each_line(
        &mut self,
        source: u32,
        address: u64,
        size: usize,
        mut act: impl FnMut(&mut Hosted, Logical, usize, std::ops::Range<usize>),
    ) -> Result<(), HostedError> {
        self.check_source(source)?;
        let end = address.checked_add(size as u64);
        let last = end.ok_or(HostedError::Size { address, size })?;
        if size > 0 {
            self.check_address(last - 1)?;
        }
        let mut done = 0;
        while done < size {
            let at = address + done as u64;
            let from = (at % LINE_BYTES as u64) as usize;
            let count = (LINE_BYTES - from).min(size - done);
            let line = self.translate(source, at)?;
            act(self, line, from, done..done + count);
            done += count;
        }
        Ok(())
    }

    /// Memory gets what was changed behind its back, if it is at rest.
    fn write_ahead(&mut self) {
        if !self.port.memory.is_at_rest() || self.began_with.is_some() {
            return;
        }
        for line in self.contents.take_ahead() {
            let data = *self.contents.get(line).expect("it was written");
            self.port.memory.write_at_once(line, &data);
            self.loaded |= self.port.admitted == 0;
        }
    }
}

/// Power cuts.
impl Hosted {
    /// The power goes: gives what the journal says, and the image that it began with. Only recovery is left.
    ///
    /// # Errors
    /// No journal is kept, or the power is off already.
    pub fn cut(&mut self) -> Result<(Image, Box<Journal>), HostedError> {
        self.powered()?;
        if !self.options.journal {
            let remedy = "no journal is kept; create the memory with host.power_cut=yes";
            return Err(HostedError::NotNow(remedy));
        }
        self.settle(self.clock)?;
        let began_with = self.began_with.take();
        let began_with = began_with.unwrap_or_else(|| self.port.memory.image().copy());
        self.off = true;
        let journal = self.port.memory.take::<Journal>();
        Ok((began_with, journal.expect("one is kept")))
    }

    /// The power is back, and `image` is what survived: a fresh controller recovers from it, in time. Requests
    /// in flight are gone, without an answer. Gives how many of the lines that the host had written hold what
    /// it wrote last, and how many do not.
    ///
    /// # Errors
    /// The power is not off; the run cannot go on.
    pub fn recover(&mut self, image: Image) -> Result<(u64, u64), HostedError> {
        if !self.off {
            return Err(HostedError::NotNow("the power is not off; cut it first"));
        }
        let memory = Memory::over(&self.machine, &self.design, image)?;
        (self.off, self.port.memory) = (false, memory);
        self.flights.clear();
        self.free.clear();
        self.waiters.clear();
        self.free_waiters.clear();
        self.told.clear();
        self.in_flight = 0;
        self.clock = Time::ZERO;
        self.port.last_answer = Time::ZERO;
        self.forget_figures();
        while self.next_event() != Time::NEVER || self.port.memory.empty_queues(false) {
            self.port.memory.advance_until(Time::NEVER);
            self.take();
        }
        self.goes_on()?;
        self.clock = self.port.memory.now();
        let poked = self.contents.take_ahead();
        let (mut kept, mut lost) = (0, 0);
        for line in self.contents.written() {
            let known = *self.contents.get(line).expect("it was written");
            if poked.binary_search(&line).is_ok() {
                self.port.memory.write_at_once(line, &known);
            }
            let got = self.port.memory.read_at_once(line);
            match got == Some(known) {
                true => kept += 1,
                false => lost += 1,
            }
            match got {
                None => self.contents.remove(line),
                Some(got) => {
                    self.contents.put(line, 0, &got, || ZERO_LINE, false);
                }
            }
        }
        if self.options.journal {
            self.port.memory.observe(Journal::default());
        }
        self.goes_on()?;
        Ok((kept, lost))
    }
}

/// Figures.
impl Hosted {
    /// What the host's core `source` has done so far: for the figures about instructions.
    ///
    /// # Errors
    /// There is no such source.
    pub fn core_has(&mut self, source: u32, figures: CoreFigures) -> Result<(), HostedError> {
        self.check_source(source)?;
        self.cores[source as usize] = figures;
        Ok(())
    }

    /// Counts from zero again; state stays. Requests in flight are counted.
    pub fn forget_figures(&mut self) {
        (self.port.reads, self.port.writes) = (Latencies::new(), Latencies::new());
        self.checked = Checked::default();
        self.begin_counting(self.now());
    }

    fn begin_counting(&mut self, time: Time) {
        self.before = Some(Before {
            time,
            committed: 0,
            figures: self.cores.clone(),
        });
        self.port.counted = true;
        self.port.fences = 0;
        self.port.memory.forget_figures();
    }

    /// The figures so far.
    ///
    /// # Errors
    /// Nothing was counted yet.
    pub fn outcome(&mut self) -> Result<Outcome, HostedError> {
        let Some(before) = &self.before else {
            let remedy = "nothing was counted yet; host.warmup is longer than the run";
            return Err(HostedError::NotNow(remedy));
        };
        if self.options.addresses != Addresses::FirstTouch {
            let pages = |source| match source {
                0 => self.contents.pages(),
                _ => 0,
            };
            let spaces = (0..self.options.sources).map(pages);
            let spaces = spaces.map(|pages| AddressSpace::Identity { pages });
            self.port.pages = PageTable::new(spaces.collect());
        }
        let took: Duration = self.started.elapsed();
        let finished = Finished {
            machine: &self.machine,
            port: &self.port,
            figures: self.cores.clone(),
            before,
        };
        Ok(outcome::of(&finished, took))
    }

    /// Reads held against what the host wrote.
    pub fn checked(&self) -> Checked {
        self.checked
    }

    /// Bytes that addresses may be below.
    pub fn capacity(&self) -> u64 {
        self.capacity / (PAGE_LINES * LINE_BYTES as u64) * (PAGE_LINES * LINE_BYTES as u64)
    }
}

#[cfg(test)]
mod tests;
