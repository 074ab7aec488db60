//! What a plan reads: from the medium in a step, or at once where no hardware does anything.

use super::guard::Guard;
use super::steps::Action;
use super::{At, Fetched, Plan, Step, Stored};
use crate::line::{Line, Place};
use crate::medium::layout::Region;
use crate::stats::Cause;

impl Plan {
    /// Reads a line of the medium after `after`; `None` if it has never been written. A read whose newest writer is not
    /// yet accepted waits for that, and is then forwarded.
    pub fn read(&mut self, place: Place, after: Step) -> Fetched {
        let got = self.read_bare(self.at(place), after);
        self.past_guard(got, |guard, got, plan| guard.read(place, got, after, plan))
    }

    /// Passes a line read at `place`, whose encryption counter is `counter`, through the guard.
    pub fn opened(&mut self, place: Place, got: Fetched, counter: At<u64>) -> Fetched {
        self.past_guard(got, |guard, got, plan| {
            guard.opened(place, got, counter, plan)
        })
    }

    /// Reads the line at `place` for a recovery of a medium at rest. It takes no time.
    #[inline]
    pub fn scan(&mut self, place: Place) -> Option<Line> {
        self.look(place);
        let line = self.contents.newest(self.at(place));
        if self.guard.is_none() {
            return line; // a recovery reads millions of lines
        }
        self.past_guard(At::past(line), |guard, got, plan| {
            guard.read(place, got, Step::PAST, plan)
        })
        .value
    }

    /// Refuses the line at `place`, which is not what was last written there. Whoever reads it gets a harmless value,
    /// and whoever runs the plan asks what was refused.
    #[cold]
    pub fn refuse(&mut self, place: Place) {
        self.refused.push(Place(place.0 | self.medium));
    }

    #[inline]
    pub(super) fn past_guard<T>(
        &mut self,
        done: T,
        ask: impl FnOnce(&mut dyn Guard, T, &mut Plan) -> T,
    ) -> T {
        let Some(mut guard) = self.guard.take() else {
            return done;
        };
        let done = ask(&mut *guard, done, self);
        self.guard = Some(guard);
        done
    }

    pub(super) fn read_bare(&mut self, place: Place, after: Step) -> Fetched {
        if self.takes_no_steps() {
            return At::past(self.contents.newest(place));
        }
        let index = self.contents.overlay.enter(place);
        let flight = self.contents.overlay.flight(index);
        let (writer, readers, newest) = (flight.writer, flight.readers, flight.payload);
        let value = match writer {
            Step::PAST => self.contents.image.read(place),
            _ => {
                let payload = self.contents.overlay.payload(newest);
                (!payload.moved.unknown).then_some(payload.line)
            }
        };
        let order = match self.contents.forwarding {
            true => writer,
            false if writer == Step::PAST => writer,
            false => Step(writer.0 + 1), // no forwarding: the array must have it
        };
        let after = [after, Step::PAST, order];
        let step = self.steps.create(Action::Read, self.purpose, after, false);
        let record = self.steps.get_mut(step);
        (record.place, record.link, record.flight) = (place.0, writer.0, index);
        // The next write of the line waits for one step, however many reads came before it.
        let readers = match self.steps.is_finished(readers) {
            true => step,
            false => self.both(readers, step),
        };
        self.contents.overlay.flight(index).readers = readers;
        At::new(value, step)
    }

    /// The newest bytes at `place`, without any hardware: for knowledge that is on chip.
    pub fn peek(&self, place: Place) -> Option<Line> {
        self.look(place);
        self.contents.newest(self.at(place))
    }

    #[inline]
    pub(super) fn look(&self, place: Place) {
        if let Some(looked) = &self.looked
            && self.purpose.what == Cause::Integrity
        {
            looked.borrow_mut().push(place);
        }
    }

    /// Fetches the line at `place` into the host's caches; no effect on results.
    #[inline]
    pub fn touch_ahead(&self, place: Place) {
        self.contents.touch_ahead(self.at(place));
    }

    /// The newest sideband at `place`, without any hardware.
    pub fn peek_sideband(&self, place: Place) -> Option<[u8; 8]> {
        self.contents.newest_sideband(self.at(place))
    }

    /// The newest write of `place` that is still on its way; the past if there is none.
    pub fn under_way(&self, place: Place) -> Stored {
        match (self.contents.overlay.get(self.at(place))).map(|flight| flight.writer) {
            None | Some(Step::PAST) => Stored::at(Step::PAST),
            Some(writer) => Stored {
                accepted: writer,
                done: Step(writer.0 + 1),
            },
        }
    }

    /// Whether a recovery looks through lines that it needs for figures alone. Where nothing is timed nobody reads
    /// figures, but a guard verifies each line, whoever reads it.
    pub fn looks_through(&self) -> bool {
        self.steps.timed || self.guard.is_some()
    }

    /// The written lines of `region` in order, for a recovery to look through.
    pub fn written(&self, region: &Region) -> Vec<Place> {
        match &self.levelling {
            None if self.medium != 0 => self.written_near(region),
            None => self.contents.written(region),
            Some(levelling) => self.written_anywhere(levelling, region),
        }
    }

    fn written_near(&self, region: &Region) -> Vec<Place> {
        let near = Region {
            first: Place(region.first.0 | self.medium),
            ..region.clone()
        };
        let places = self.contents.written(&near).into_iter();
        places.map(|place| Place(place.in_medium())).collect()
    }

    /// The near medium's lines with a sideband, in order: their numbers there.
    pub(crate) fn near_sidebands(&self) -> Vec<u64> {
        let written = self
            .contents
            .overlay
            .written()
            .filter(|place| place.is_near());
        let mut lines: Vec<u64> = written.map(Place::in_medium).collect();
        if let Some(image) = self.contents.image.near() {
            lines.extend(image.with_sideband().map(|place| place.0));
        }
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// The number of lines with a sideband, and the greatest sideband as a number.
    pub fn greatest_sideband(&self) -> (u64, u64) {
        self.contents.greatest_sideband()
    }
}
