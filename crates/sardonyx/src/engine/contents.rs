//! The bytes as the controller sees them: what is in flight over what is in the array.

use super::overlay::Overlay;
use super::steps::Step;
use crate::line::{Line, Place};
use crate::medium::image::Image;

/// The overlay over the image.
pub(crate) struct Contents {
    pub overlay: Overlay,
    pub image: Image,
    pub forwarding: bool,
}

impl Contents {
    /// The newest bytes of a line, `None` if it has never been written.
    #[inline]
    pub fn newest(&self, place: Place) -> Option<Line> {
        match self.overlay.get(place) {
            Some(flight) if flight.writer != Step::PAST => {
                Some(self.overlay.payload(flight.payload).line)
            }
            _ => self.image.read(place),
        }
    }

    pub fn newest_sideband(&self, place: Place) -> Option<[u8; 8]> {
        let in_flight = self.overlay.get(place).filter(|f| f.writer != Step::PAST);
        let in_flight = in_flight.and_then(|f| self.overlay.payload(f.payload).sideband);
        in_flight.or_else(|| self.image.sideband(place))
    }
}
