//! What a host sends (reads, writes, flushes, fences), and what waits for what.

use smallvec::SmallVec;

use super::{
    AnswerKind, END, Flight, HostRequest, HostRequestKind, Hosted, HostedError, PersistWaiter, Told,
};
use crate::controller::{Class, Persist, Write};
use crate::engine::Request;
use crate::exhausted::Exhausted;
use crate::line::{LINE_BYTES, Logical, Virtual, ZERO_LINE};
use crate::machine::page_table::PAGE_LINES;
use crate::medium::params::Addresses;
use crate::plan::At;
use crate::stats::Direction;
use crate::units::Time;

impl Hosted {
    /// Whether memory takes a request now.
    ///
    /// # Errors
    /// The run cannot go on.
    pub fn accepts(&mut self) -> Result<bool, HostedError> {
        self.powered()?;
        self.settle(self.clock)?;
        Ok(self.port.memory.accepts())
    }

    /// Sends a request and returns whether memory has taken it. If it has not, only the time has changed: send the
    /// request again later.
    ///
    /// # Errors
    /// The request is impossible, or the run cannot continue.
    pub fn send(&mut self, asked: &HostRequest) -> Result<bool, HostedError> {
        self.powered()?;
        let presented = asked.presented.unwrap_or(self.clock);
        if presented > END {
            return Err(Exhausted::FIVE_HOURS.into());
        }
        let (size, is_line) = match asked.kind {
            HostRequestKind::Read(size) => (size, false),
            HostRequestKind::Write { bytes, .. } => (bytes.len(), false),
            HostRequestKind::WriteCounters => (1, true),
        };
        let from = (asked.address % LINE_BYTES as u64) as usize;
        if size == 0 || size > LINE_BYTES - from {
            let address = asked.address;
            return Err(HostedError::Size { address, size });
        }
        if !self.options.keep
            && matches!(asked.kind, HostRequestKind::Write { .. })
            && size < LINE_BYTES
        {
            return Err(HostedError::NotKept("a write of a part of a line"));
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
        self.verified(asked.address)?;
        Ok(true)
    }

    fn admit(&mut self, asked: &HostRequest, line: Logical, presented: Time, part: (u8, u8)) {
        let mut flight = Flight {
            what: AnswerKind::Read,
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
            HostRequestKind::Read(_) => {
                let got = self.port.memory.read(request, now, line, Class::Data).value;
                flight.written = got.is_some();
                let ahead = self.options.keep && self.contents().is_ahead(line);
                let newest = match ahead {
                    true => self.contents().get(line).copied(),
                    false => got,
                };
                flight.read = newest.unwrap_or_else(|| self.options.unwritten.line(line));
            }
            HostRequestKind::Write {
                bytes,
                persist,
                counter_atomic,
                tell_array,
            } => {
                flight.what = AnswerKind::Written;
                (flight.persist, flight.tell_array) = (persist || counter_atomic, tell_array);
                let unwritten = self.options.unwritten;
                let before = || unwritten.line(line);
                let from = part.0.into();
                let data = match (self.options.keep, bytes.try_into()) {
                    (false, Ok(whole)) => {
                        self.pages.insert(line.0 / PAGE_LINES);
                        whole
                    }
                    _ => self.contents().with(line, from, bytes, before),
                };
                request.kind = Direction::Write;
                let write = Write {
                    order: match counter_atomic {
                        true => Persist::CounterAtomic,
                        false => Persist::Relaxed,
                    },
                    core: asked.source,
                    flushed: true, // a host's flush is only waited for, so that nothing may stay in a near cache
                    ..Write::new(line, At::past(&data))
                };
                self.port.memory.write_announced(request, now, write);
            }
            HostRequestKind::WriteCounters => {
                (flight.what, flight.persist) = (AnswerKind::Counters, true);
                (request.kind, request.counted) = (Direction::Write, false);
                self.port.memory.persist_metadata(request, now, line);
            }
        }
        self.in_flight += 1;
        self.flights[index as usize] = flight;
        self.take();
    }

    fn verified(&self, address: u64) -> Result<(), HostedError> {
        match self.port.memory.wrong() {
            None => Ok(()),
            Some(wrong) => Err(HostedError::Wrong {
                design: self.design.clone(),
                request: self.port.admitted,
                address,
                why: Box::new(*wrong),
            }),
        }
    }

    /// Announces a request for `address`, so that this computer prefetches what it needs. No effect on results, and
    /// none at all for an impossible address.
    pub fn hint(&mut self, source: u32, address: u64) {
        let line = Virtual(self.wrapped(address) / LINE_BYTES as u64);
        let is_one = line.0 < self.capacity / LINE_BYTES as u64 || self.port.pages.takes_frames();
        if (source as usize) < self.options.sources
            && is_one
            && let Some(line) = self.port.pages.peek(source as usize, line)
        {
            self.port.memory.hint(line);
        }
    }

    /// Answers when all writes of the line sent before are in the persistence domain. The next fence of the source
    /// waits for it.
    ///
    /// # Errors
    /// There is no such line or source.
    pub fn flush(&mut self, address: u64, source: u32, tag: u64) -> Result<(), HostedError> {
        self.powered()?;
        self.check_source(source)?;
        self.check_address(address)?;
        self.settle(self.clock)?;
        let line = self.translate(source, address)?;
        self.wait(AnswerKind::Flushed, source, tag, |flight, _| {
            flight.line == line
        });
        Ok(())
    }

    /// Answers when all writes that the source has sent to persist, and all flushed ones, are in the persistence
    /// domain.
    ///
    /// # Errors
    /// There is no such source.
    pub fn fence(&mut self, source: u32, tag: u64) -> Result<(), HostedError> {
        self.powered()?;
        self.check_source(source)?;
        self.settle(self.clock)?;
        self.wait(AnswerKind::Fenced, source, tag, |flight, waiters| {
            let flushed = |waiter: &u32| {
                let waiter = &waiters[*waiter as usize];
                waiter.what == AnswerKind::Flushed && waiter.source == source
            };
            flight.persist && flight.source == source || flight.waiters.iter().any(flushed)
        });
        Ok(())
    }

    fn wait(
        &mut self,
        what: AnswerKind,
        source: u32,
        tag: u64,
        for_it: impl Fn(&Flight, &[PersistWaiter]) -> bool,
    ) {
        let waiter = PersistWaiter {
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
            let waits =
                !flight.free && flight.what != AnswerKind::Read && flight.accepted.is_none();
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

    pub(super) fn waited(&mut self, index: u32, at: Time) {
        let waiter = self.waiters[index as usize];
        self.free_waiters.push(index);
        if waiter.what == AnswerKind::Fenced {
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
        match self.addresses {
            Addresses::Wrapped => address % self.capacity,
            _ => address,
        }
    }

    pub(super) fn translate(&mut self, source: u32, address: u64) -> Result<Logical, HostedError> {
        let line = Virtual(self.wrapped(address) / LINE_BYTES as u64);
        Ok(self.port.translate(source as usize, line)?)
    }

    pub(super) fn check_source(&self, source: u32) -> Result<(), HostedError> {
        match (source as usize) < self.options.sources {
            true => Ok(()),
            false => Err(HostedError::Source {
                source_number: source,
                sources: self.options.sources,
            }),
        }
    }

    pub(super) fn check_address(&self, address: u64) -> Result<(), HostedError> {
        match self.addresses == Addresses::AsTraced && address >= self.capacity {
            false => Ok(()),
            true => Err(HostedError::Beyond {
                address,
                capacity: self.capacity,
            }),
        }
    }

    pub(super) fn powered(&self) -> Result<(), HostedError> {
        match self.off {
            false => Ok(()),
            true => Err(HostedError::NotNow("the power is off; recover first")),
        }
    }
}
