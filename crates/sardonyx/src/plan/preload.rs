//! What memory held before the run: bytes that come to be known while it goes on, and were there all the time.

use super::{Plan, Step};
use crate::line::{Line, Place};

impl Plan {
    /// Changes the line at `place`, zeros if it was never written, to what memory has held there all the time, and the
    /// sideband if one is given. No hardware does anything, and no cell wears.
    pub fn preload(&mut self, place: Place, sideband: Option<[u8; 8]>, change: impl Fn(&mut Line)) {
        let at = self.at(place);
        let contents = &mut self.contents;
        contents.image.amend(at, sideband, &change);
        let flight = contents.overlay.get(at);
        if flight.is_some_and(|flight| flight.writer != Step::PAST) {
            let of = Place(place.0 | self.medium);
            self.contents.overlay.amend(of, sideband, change);
        }
    }
}
