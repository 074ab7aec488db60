//! The bytes as the controller sees them: writes in flight over the array's bytes.

use std::cell::Cell;

use super::overlay::Overlay;
use super::steps::Step;
use crate::line::{Line, Place};
use crate::medium::image::Image;
use crate::medium::layout::Region;

const HINT_BATCH: usize = 4;
/// The number of hints that are kept. A line is prefetched one batch after its page, whose entry has arrived by then.
const HINTS: usize = 2 * HINT_BATCH;

pub(crate) struct PlanContents {
    pub overlay: Overlay,
    pub image: Image,
    pub forwarding: bool,
    hints: [Cell<u64>; HINTS],
    turn: Cell<usize>,
}

impl PlanContents {
    pub fn new(image: Image, forwarding: bool) -> PlanContents {
        PlanContents {
            overlay: Overlay::default(),
            image,
            forwarding,
            hints: Default::default(),
            turn: Cell::new(0),
        }
    }

    #[inline]
    pub fn touch_ahead(&self, place: Place) {
        let turn = self.turn.get();
        self.hints[turn].set(place.0);
        self.turn.set((turn + 1) % HINTS);
        if (turn + 1).is_multiple_of(HINT_BATCH) {
            self.touch_batch(turn + 1 - HINT_BATCH);
        }
    }

    /// Prefetches the page entries of the latest hints, and the lines of the batch before. Each waits for the
    /// translation of its address, and in a batch they wait together.
    fn touch_batch(&self, first: usize) {
        for hint in &self.hints[first..first + HINT_BATCH] {
            self.image.touch_page_ahead(Place(hint.get()));
        }
        let before = (first + HINTS - HINT_BATCH) % HINTS;
        for hint in &self.hints[before..before + HINT_BATCH] {
            self.image.touch_ahead(Place(hint.get()), false);
        }
    }

    #[inline]
    pub fn newest(&self, place: Place) -> Option<Line> {
        match self.overlay.get(place) {
            Some(flight) if flight.writer != Step::PAST => {
                let payload = self.overlay.payload(flight.payload);
                (!payload.moved.unknown).then_some(payload.line)
            }
            _ => self.image.read(place),
        }
    }

    pub fn newest_sideband(&self, place: Place) -> Option<[u8; 8]> {
        let in_flight = self.overlay.get(place).filter(|f| f.writer != Step::PAST);
        match in_flight.map(|flight| self.overlay.payload(flight.payload)) {
            Some(payload) if payload.moved.whole => payload.sideband,
            Some(payload) => payload.sideband.or_else(|| self.image.sideband(place)),
            None => self.image.sideband(place),
        }
    }

    pub fn written(&self, region: &Region) -> Vec<Place> {
        let mut places = self.image.written_in(region);
        let end = region.first.0 + region.lines;
        let here = |place: &Place| (region.first.0..end).contains(&place.0);
        places.extend(self.overlay.written().filter(here));
        places.sort_unstable();
        places.dedup();
        places
    }

    /// The number of lines with a sideband, and the greatest sideband as a number.
    pub fn greatest_sideband(&self) -> (u64, u64) {
        let mut places: Vec<Place> = self.image.with_sideband().collect();
        places.extend(self.overlay.written().filter(|place| !place.is_near()));
        places.sort_unstable();
        places.dedup();
        let beside = places.into_iter().filter_map(|p| self.newest_sideband(p));
        beside.fold((0, 0), |(count, greatest), bytes| {
            (count + 1, greatest.max(u64::from_le_bytes(bytes)))
        })
    }
}
