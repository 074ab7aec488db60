//! The overlay of lines in flight: for each its newest bytes, its newest writer and its unfinished
//! readers. It is the scoreboard's index by line and the forwarding index; over the image it gives the
//! newest bytes.

use rustc_hash::FxHashMap;

use super::merged;
use super::steps::Step;
use crate::line::{Line, Place};
use crate::medium::image::Image;

/// The bytes of a write on its way to the array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload {
    /// The whole line as it looks after this write.
    pub line: Line,
    /// Which of its 8-byte words this write carries.
    pub words: u8,
    /// Eight bytes beside the line, atomic with it.
    pub sideband: Option<[u8; 8]>,
    /// The line's place, as the layers know it.
    pub of: Place,
    /// What it is where wear is levelled.
    pub moved: Moved,
}

/// What a write is to a line that may have moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// No layer asks for it: a line moves, or a register says how lines lie.
    pub only: bool,
    /// Nothing lies beside the line but what the write brings.
    pub whole: bool,
    /// The line that has moved was never written.
    pub unknown: bool,
}

impl Payload {
    /// Puts it into the array at `at`.
    pub fn store(&self, at: Place, image: &mut Image) {
        image.write(at, &self.line, self.words, self.sideband);
        self.moved.settle(at, self.sideband, image);
    }

    /// What `new` makes of it in a queue.
    pub fn merge(&mut self, new: &Payload) {
        self.line = merged(self.line, &new.line, new.words);
        self.words |= new.words;
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
    /// After the line itself has been written to `at`.
    pub fn settle(self, at: Place, sideband: Option<[u8; 8]>, image: &mut Image) {
        if self.whole && sideband.is_none() {
            image.clear_sideband(at);
        }
        if self.unknown {
            image.unwrite(at);
        }
    }
}

/// What is in flight for one line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// The accept step of the newest write, `Step::PAST` if none is in flight.
    pub writer: Step,
    /// Index of the bytes of the line's newest write.
    pub payload: u32,
    /// Finished when every read handled so far is.
    pub readers: Step,
    /// Reads and writes of the line that are not finished.
    users: u32,
}

#[derive(Default)]
pub(crate) struct Overlay {
    flights: FxHashMap<u64, Flight>,
    payloads: Vec<Payload>,
    free: Vec<u32>,
}

impl Overlay {
    #[inline]
    pub fn get(&self, place: Place) -> Option<&Flight> {
        self.flights.get(&place.0)
    }

    /// The flight of `place`, with one more user.
    #[inline]
    pub fn enter(&mut self, place: Place) -> &mut Flight {
        let flight = self.flights.entry(place.0).or_insert(Flight {
            writer: Step::PAST,
            payload: 0,
            readers: Step::PAST,
            users: 0,
        });
        flight.users += 1;
        flight
    }

    /// One user of `place` is finished; `writer` is its accept step if it was a write.
    #[inline]
    pub fn leave(&mut self, place: Place, writer: Option<Step>) {
        let flight = self
            .flights
            .get_mut(&place.0)
            .expect("a user was in flight");
        flight.users -= 1;
        if flight.users == 0 {
            self.flights.remove(&place.0);
        } else if writer == Some(flight.writer) {
            flight.writer = Step::PAST;
        }
    }

    pub fn get_mut(&mut self, place: Place) -> Option<&mut Flight> {
        self.flights.get_mut(&place.0)
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

    pub fn drop_payload(&mut self, index: u32) {
        self.free.push(index);
    }

    /// Nothing is in flight any more.
    pub fn forget(&mut self) {
        self.flights.clear();
        self.payloads.clear();
        self.free.clear();
    }

    /// Lines with a write in flight, in no order.
    pub fn written(&self) -> impl Iterator<Item = Place> + '_ {
        let writes = self.flights.iter().filter(|(_, f)| f.writer != Step::PAST);
        writes.map(|(place, _)| Place(*place))
    }

    pub fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }
}
