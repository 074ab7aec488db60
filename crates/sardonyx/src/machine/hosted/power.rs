//! Power cuts and recoveries.

use super::{Hosted, HostedError};
use crate::medium::image::Image;
use crate::memory::Memory;
use crate::plan::journal::Journal;
use crate::units::Time;

impl Hosted {
    /// Cuts the power: returns the journal and the image that it began with. Only recovery is possible afterwards.
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

    /// Restores the power with `image` as the bytes that survived: a fresh controller recovers from it, in time.
    /// Requests in flight are lost without an answer. Returns how many of the lines that the host had written hold its
    /// last write, and how many do not.
    ///
    /// # Errors
    /// The power is not off; the run cannot go on.
    pub fn recover(&mut self, image: Image) -> Result<(u64, u64), HostedError> {
        if !self.off {
            return Err(HostedError::NotNow("the power is not off; cut it first"));
        }
        let memory = Memory::over(&self.machine, &self.design, image)?;
        // What the host wrote is looked at below, when recovery is over.
        let kept = self.port.memory.check(None);
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
        self.port.memory.check(kept);
        let poked = self.contents().take_ahead();
        let (mut kept, mut lost) = (0, 0);
        for line in self.contents().written() {
            let known = *self.contents().get(line).expect("it was written");
            if poked.binary_search(&line).is_ok() {
                self.port.memory.write_at_once(line, &known);
            }
            let got = self.port.memory.read_at_once(line);
            match got == Some(known) {
                true => kept += 1,
                false => lost += 1,
            }
            match got {
                None => self.contents().remove(line),
                Some(got) => self.contents().put(line, &got, false),
            }
        }
        if self.options.journal {
            self.port.memory.observe(Journal::default());
        }
        self.goes_on()?;
        Ok((kept, lost))
    }
}
