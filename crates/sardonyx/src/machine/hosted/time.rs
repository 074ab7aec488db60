//! Moves the host's clock, and lets memory answer.

use smallvec::SmallVec;

use super::{AnswerKind, END, Flight, Hosted, HostedError, Posted, Told};
use crate::exhausted::Exhausted;
use crate::stats::Direction;
use crate::units::Time;

impl Hosted {
    /// The present time.
    pub fn now(&self) -> Time {
        self.clock.max(self.port.memory.now())
    }

    /// The time of memory's next event; [`Time::NEVER`] if nothing happens until memory is asked.
    pub fn next_event(&self) -> Time {
        self.port.memory.next_event()
    }

    /// The length of a cycle of the medium's clock.
    pub fn cycle(&self) -> Time {
        self.machine.engine.medium.timing.clock
    }

    /// Advances time to `limit`, with all events up to and at it.
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

    /// Advances time up to `limit`, but stops at the first event that the host must know of: an answer, or that memory
    /// takes requests again.
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

    /// Tells memory that the host asks for nothing before something happens, and that nothing happens on its own:
    /// queued writes go. With `last` the host never asks again. Returns whether anything is left to happen.
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

    /// Ends the input, and advances until nothing is left to happen.
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

    /// Takes the next answer.
    pub fn answer(&mut self) -> Option<Told> {
        self.told.pop_front()
    }

    /// The number of answers that wait.
    pub fn answers(&self) -> usize {
        self.told.len()
    }

    /// Requests that have no answer yet.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub(super) fn settle(&mut self, time: Time) -> Result<(), HostedError> {
        while self.next_event() <= time {
            self.port.memory.advance_until(time);
            self.take();
        }
        self.goes_on()
    }

    pub(super) fn goes_on(&self) -> Result<(), HostedError> {
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

    pub(super) fn take(&mut self) {
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
            let is_write = flight.what == AnswerKind::Written;
            if flight.what == AnswerKind::Counters || is_write && posted && !flight.tell_array {
                continue; // told when it was accepted
            }
            let read = flight.what == AnswerKind::Read;
            let mut told = told(flight, answer.at);
            if is_write && posted {
                told.what = AnswerKind::InArray;
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
        if posted || flight.what == AnswerKind::Counters {
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
