//! The overlay of lines in flight: for each its newest bytes, its newest writer and its unfinished
//! readers. It is the scoreboard's index by line and the forwarding index; over the image it gives the
//! newest bytes.

use super::merged;
use super::steps::Step;
use crate::line::{Line, Place, ZERO_LINE};
use crate::medium::image::Image;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload {
    /// The whole line as it looks after this write.
    pub line: Line,
    pub words: u8,
    /// Eight bytes beside the line, atomic with it.
    pub sideband: Option<[u8; 8]>,
    /// The line's place, as the layers know it.
    pub of: Place,
    /// The write's relation to moves of lines, where wear is levelled.
    pub moved: Moved,
}

/// The relation of a write to a line that may have moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Whether no layer asks for the write: a line moves, or a register records where lines lie.
    pub only: bool,
    /// Whether the write replaces the sideband, even by none.
    pub whole: bool,
    /// Whether the line that has moved was never written.
    pub unknown: bool,
}

impl Payload {
    pub fn store(&self, at: Place, image: &mut Image) {
        image.write(at, &self.line, self.words, self.sideband);
        self.moved.settle(at, self.sideband, image);
    }

    pub fn merge(&mut self, new: &Payload) {
        self.line = merged(self.line, &new.line, new.words);
        self.words |= new.words;
        // A line that has moved brings what lay beside it, be it nothing; other writes leave it as it is.
        self.sideband = match new.moved.whole {
            true => new.sideband,
            false => new.sideband.or(self.sideband),
        };
        self.of = new.of;
        self.moved = Moved {
            whole: self.moved.whole || new.moved.whole,
            ..new.moved
        };
    }
}

impl Moved {
    /// Completes the write of the line to `at`.
    pub fn settle(self, at: Place, sideband: Option<[u8; 8]>, image: &mut Image) {
        if self.whole && sideband.is_none() {
            image.clear_sideband(at);
        }
        if self.unknown {
            image.unwrite(at);
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    place: Place,
    /// The accept step of the newest write, `Step::PAST` if none is in flight.
    pub writer: Step,
    /// This step finishes when every read handled so far has.
    pub readers: Step,
    pub payload: u32,
    users: u32,
    /// The next flight of the same bucket, plus one; 0 for none.
    next: u32,
}

/// A hash table with chains. A flight stays where it is, so that a step finds its line's flight by number.
#[derive(Default)]
pub(crate) struct Overlay {
    flights: Vec<Flight>,
    unused: Vec<u32>,
    /// The first flight of each bucket, plus one. The number of buckets is a power of two, and at least that of
    /// flights.
    buckets: Vec<u32>,
    payloads: Vec<Payload>,
    free: Vec<u32>,
}

const LEAST_BUCKETS: usize = 64;

impl Overlay {
    #[inline]
    fn bucket(&self, place: Place) -> usize {
        let mixed = place.0.wrapping_mul(0x9E37_79B9_7F4A_7C15); // Fibonacci hashing
        (mixed >> 32) as usize & self.buckets.len().wrapping_sub(1)
    }

    #[inline]
    fn find(&self, place: Place) -> Option<u32> {
        let mut link = *self.buckets.get(self.bucket(place))?;
        while link != 0 && self.flights[link as usize - 1].place != place {
            link = self.flights[link as usize - 1].next;
        }
        link.checked_sub(1)
    }

    #[inline]
    pub fn get(&self, place: Place) -> Option<&Flight> {
        Some(&self.flights[self.find(place)? as usize])
    }

    #[inline]
    pub fn flight(&mut self, index: u32) -> &mut Flight {
        &mut self.flights[index as usize]
    }

    /// Adds a user to the flight of `place`, and returns its number.
    #[inline]
    pub fn enter(&mut self, place: Place) -> u32 {
        if let Some(index) = self.find(place) {
            self.flights[index as usize].users += 1;
            return index;
        }
        if self.unused.is_empty() && self.flights.len() == self.buckets.len() {
            self.grow();
        }
        let bucket = self.bucket(place);
        let flight = Flight {
            place,
            writer: Step::PAST,
            readers: Step::PAST,
            payload: 0,
            users: 1,
            next: self.buckets[bucket],
        };
        let index = match self.unused.pop() {
            Some(index) => {
                self.flights[index as usize] = flight;
                index
            }
            None => {
                self.flights.push(flight);
                self.flights.len() as u32 - 1
            }
        };
        self.buckets[bucket] = index + 1;
        index
    }

    #[cold]
    fn grow(&mut self) {
        self.buckets = vec![0; (self.buckets.len() * 2).max(LEAST_BUCKETS)];
        for index in 0..self.flights.len() {
            let bucket = self.bucket(self.flights[index].place);
            let first = std::mem::replace(&mut self.buckets[bucket], index as u32 + 1);
            self.flights[index].next = first;
        }
    }

    #[inline]
    pub fn leave(&mut self, index: u32, writer: Option<Step>) {
        let flight = &mut self.flights[index as usize];
        flight.users -= 1;
        // A newer write may be on its way by now, which reads have to be given instead.
        if writer == Some(flight.writer) {
            flight.writer = Step::PAST;
        }
        if flight.users > 0 {
            return;
        }
        let (place, next) = (flight.place, flight.next);
        let bucket = self.bucket(place);
        let mut before = self.buckets[bucket];
        if before == index + 1 {
            self.buckets[bucket] = next;
        } else {
            while self.flights[before as usize - 1].next != index + 1 {
                before = self.flights[before as usize - 1].next;
            }
            self.flights[before as usize - 1].next = next;
        }
        self.unused.push(index);
    }

    pub fn payload(&self, index: u32) -> &Payload {
        &self.payloads[index as usize]
    }

    pub fn payload_mut(&mut self, index: u32) -> &mut Payload {
        &mut self.payloads[index as usize]
    }

    pub fn keep(&mut self, payload: Payload) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.payloads[index as usize] = payload;
                index
            }
            None => {
                self.payloads.push(payload);
                self.payloads.len() as u32 - 1
            }
        }
    }

    /// Changes the line that the layers call `of` in all writes of it that are in flight, and the sideband if one is
    /// given.
    pub fn amend(&mut self, of: Place, sideband: Option<[u8; 8]>, change: impl Fn(&mut Line)) {
        // Those that are free do no harm.
        for payload in self.payloads.iter_mut().filter(|payload| payload.of == of) {
            if std::mem::take(&mut payload.moved.unknown) {
                payload.line = ZERO_LINE;
            }
            change(&mut payload.line);
            payload.sideband = sideband.or(payload.sideband);
        }
    }

    pub fn drop_payload(&mut self, index: u32) {
        self.free.push(index);
    }

    pub fn forget(&mut self) {
        for index in 0..self.flights.len() {
            let bucket = self.bucket(self.flights[index].place);
            self.buckets[bucket] = 0;
        }
        self.flights.clear();
        self.unused.clear();
        self.payloads.clear();
        self.free.clear();
    }

    pub fn written(&self) -> impl Iterator<Item = Place> + '_ {
        let writes = self.flights.iter().filter(|f| f.writer != Step::PAST);
        writes.map(|flight| flight.place)
    }

    pub fn is_empty(&self) -> bool {
        self.flights.len() == self.unused.len()
    }
}
