//! What a plan writes: the bytes at once over what is in flight, and the steps in which hardware stores them.

use super::overlay::{Moved, Payload};
use super::schedule::Schedule;
use super::steps::Action;
use super::{At, Plan, Step, Stored, Written};
use crate::line::{Line, Place, ZERO_LINE};
use crate::stats::{Cause, Purpose};

/// The queue in which a write waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queue {
    /// The data write queue.
    #[default]
    Data,
    /// The counter write queue, if the medium has one.
    Counter,
}

impl Plan {
    /// Writes a line of the medium, not before the bytes exist and `gate` is finished.
    pub fn write(&mut self, place: Place, data: At<&Line>, gate: Step) -> Stored {
        self.write_words(place, data, 0xff, None, gate, Queue::Data)
    }

    /// Writes the 8-byte words of a line whose bit is set in `words`, together with the sideband if one is given,
    /// atomically.
    pub fn write_words(
        &mut self,
        place: Place,
        data: At<&Line>,
        words: u8,
        sideband: Option<[u8; 8]>,
        gate: Step,
        queue: Queue,
    ) -> Stored {
        let line = match words {
            0xff => *data.value,
            _ => {
                self.expect_held(place);
                self.over_newest(place, data.value, words)
            }
        };
        self.put(place, At::new(&line, data.at), words, sideband, gate, queue)
    }

    /// Writes a line whose content nobody knows, so that it stays unknown. `data` stands for its bytes, for the cells.
    pub fn write_unknown(&mut self, place: Place, data: At<&Line>, gate: Step) -> Stored {
        let (at, gate) = match self.levelling {
            None => (self.at(place), gate),
            Some(_) => (self.at(place), self.levelled(place, gate)),
        };
        let place = Place(place.0 | self.medium);
        let moved = Moved {
            unknown: true,
            ..Moved::default()
        };
        self.put_at(at, (place, data, None, moved), 0xff, gate, Queue::Data)
    }

    /// Adds a sideband to the write `stored` of `place`, which a promise holds back.
    pub fn put_beside(&mut self, place: Place, stored: Stored, beside: [u8; 8]) {
        let at = self.at(place);
        if !self.steps.at_once {
            let payload = self.steps.get(stored.accepted).link as u32;
            self.contents.overlay.payload_mut(payload).sideband = Some(beside);
            return;
        }
        let image = &mut self.contents.image;
        let content = image.content(at);
        let line = content.map_or(ZERO_LINE, |(line, _)| line);
        if let Some(undo) = &mut self.undo {
            undo.push((at, content));
        }
        image.write(at, &line, 0, Some(beside));
    }

    /// Puts eight bytes beside the newest write of `place`, which this plan has made, atomic with it.
    pub fn put_beside_newest(&mut self, place: Place, beside: [u8; 8]) {
        let newest = self.under_way(place);
        self.put_beside(place, newest, beside);
    }

    /// Refuses the line at `place`, some words of which stay, if the guard does not find it as it was last written.
    fn expect_held(&mut self, place: Place) {
        let Some(guard) = self.guard.take() else {
            return;
        };
        if !guard.holds(place, self) {
            self.refuse(place);
        }
        self.guard = Some(guard);
    }

    /// Writes words back from a cache's copy of a line, which differs from the newest line at `place` in those words at
    /// most. Where an attacker changed the line it differs in others, and the copy counts.
    pub fn write_back(
        &mut self,
        place: Place,
        data: At<&Line>,
        words: u8,
        gate: Step,
        queue: Queue,
    ) -> Stored {
        self.put(place, data, words, None, gate, queue)
    }

    /// The newest line at `place` with the given words of `line`.
    fn over_newest(&self, place: Place, line: &Line, words: u8) -> Line {
        let newest = self.contents.newest(self.at(place)).unwrap_or(ZERO_LINE);
        merged(newest, line, words)
    }

    fn put(
        &mut self,
        place: Place,
        data: At<&Line>,
        words: u8,
        sideband: Option<[u8; 8]>,
        gate: Step,
        queue: Queue,
    ) -> Stored {
        let gate = self.past_guard(gate, |guard, gate, plan| {
            let held = guard.before_write(place, plan);
            plan.both(gate, held)
        });
        let (at, gate) = match self.levelling {
            None => (self.at(place), gate),
            Some(_) => (self.at(place), self.levelled(place, gate)),
        };
        let written = (
            Place(place.0 | self.medium),
            data,
            sideband,
            Moved::default(),
        );
        // At once too, what is read next is the whole line that was written.
        let words = if self.steps.at_once { 0xff } else { words };
        let stored = self.put_at(at, written, words, gate, queue);
        self.past_guard(stored, |guard, stored, plan| {
            let written = Written {
                line: data,
                sideband,
                stored,
            };
            let done = guard.write(place, written, plan);
            Stored { done, ..stored }
        })
    }

    /// Writes `data` to the array's line at `place`, which the layers know under another name.
    pub(super) fn put_at(
        &mut self,
        place: Place,
        (of, data, sideband, moved): (Place, At<&Line>, Option<[u8; 8]>, Moved),
        words: u8,
        gate: Step,
        queue: Queue,
    ) -> Stored {
        if self.steps.at_once {
            let image = &mut self.contents.image;
            if let Some(undo) = &mut self.undo {
                undo.push((place, image.content(place)));
            }
            image.write(place, data.value, words, sideband);
            moved.settle(place, sideband, image);
            if let Some(worn) = &mut self.worn
                && !moved.only
            {
                *worn.entry(of.0).or_default() += 1;
            }
            return Stored::at(Step::PAST);
        }
        let (own, held) = (gate, self.hold_back(place));
        let gate = held.map_or(gate, |promise| self.both(gate, promise.step()));
        // Prefetches for the host; no effect on results.
        self.contents.image.touch_page_ahead(place);
        let index = self.contents.overlay.enter(place);
        let flight = self.contents.overlay.flight(index);
        let (before, readers, older) = (flight.writer, flight.readers, flight.payload);
        // The newest write in flight holds the newest sideband, be it an older write's.
        let older = (before != Step::PAST && !moved.whole)
            .then(|| self.contents.overlay.payload(older))
            .map(|older| (older.sideband, older.moved.whole));
        let (beside, whole) = older.unwrap_or((None, moved.whole));
        let payload = self.contents.overlay.keep(Payload {
            line: *data.value,
            words,
            sideband: sideband.or(beside),
            of,
            moved: Moved { whole, ..moved },
        });
        // Accepted in the order of handling, after the reads handled before: a write that holds a
        // slot waits for nothing that might need one.
        let order = if self.steps.is_finished(readers) {
            before
        } else if self.steps.is_finished(before) {
            readers
        } else {
            let (hazard, after) = (Purpose::new(Cause::Hazard), [before, readers, Step::PAST]);
            self.steps.create(Action::Join, hazard, after, false)
        };
        let flight = self.contents.overlay.flight(index);
        (flight.writer, flight.payload) = (self.steps.upcoming(), payload);
        let after = [data.at, gate, order];
        let accepted = self
            .steps
            .create(Action::Accept, self.purpose, after, false);
        let record = self.steps.get_mut(accepted);
        (record.place, record.link, record.flight) = (place.0, u64::from(payload), index);
        record.counter = queue == Queue::Counter;
        record.sequence = before.0;
        // The array takes the writes of a line in their order, or an older one would be left there.
        let before_done = match before {
            Step::PAST => Step::PAST,
            writer => Step(writer.0 + 1),
        };
        let after = [Step::PAST, Step::PAST, before_done];
        let done = self.steps.create(Action::Store, self.purpose, after, true);
        let record = self.steps.get_mut(done);
        (record.place, record.link, record.flight) = (place.0, u64::from(payload), index);
        debug_assert_eq!(done.0, accepted.0 + 1);
        if let (Schedule::Chosen(orders), Some(promise)) = (&mut self.schedule, held) {
            let after = [data.at, own, order];
            orders.hold(promise, accepted, after, (place, data.value, words));
        }
        Stored { accepted, done }
    }
}

/// Takes `words` of `new` over `old`.
pub fn merged(old: Line, new: &Line, words: u8) -> Line {
    let mut line = old;
    for word in (0..8).filter(|word| words >> word & 1 == 1) {
        line[word * 8..word * 8 + 8].copy_from_slice(&new[word * 8..word * 8 + 8]);
    }
    line
}
