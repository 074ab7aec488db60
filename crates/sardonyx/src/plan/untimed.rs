//! Plans without a clock: a controller over an image, its values at once and nothing timed. What a
//! recovery is tried on after a power cut, and what fills a medium before a run.
//!
//! Nothing ever finishes here, so whatever is written lies over the image until it is settled into
//! it or forgotten.

use super::Plan;
use super::journal::{Journal, Sealed};
use crate::exhausted::Exhausted;
use crate::line::{Line, Place};
use crate::medium::image::Image;

/// An image and what has been written over it.
pub struct Untimed {
    plan: Plan,
}

impl Untimed {
    /// Over `image`.
    pub fn new(image: Image) -> Untimed {
        let mut plan = Plan::new(image, true);
        plan.journal = Some(Box::default());
        Untimed { plan }
    }

    /// Runs `handle` over a plan.
    pub fn plan<T>(&mut self, handle: impl FnOnce(&mut Plan) -> T) -> T {
        handle(&mut self.plan)
    }

    fn journal(&mut self) -> &mut Journal {
        self.plan.journal.as_mut().expect("it is always kept")
    }

    /// Why a plan could not be carried out, if one could not.
    pub fn failure(&self) -> Option<Exhausted> {
        self.plan.failure
    }

    /// The image below what has been written.
    pub fn image(&self) -> &Image {
        &self.plan.contents.image
    }

    /// The same, to be changed; only while nothing lies over it.
    pub fn image_mut(&mut self) -> &mut Image {
        debug_assert!(self.plan.contents.overlay.is_empty());
        &mut self.plan.contents.image
    }

    /// Gives the image up, without what lies over it.
    pub fn into_image(self) -> Image {
        self.plan.contents.image
    }

    /// The newest bytes at `place`.
    pub fn newest(&self, place: Place) -> Option<Line> {
        self.plan.contents.newest(place)
    }

    /// Lines encrypted since they were last forgotten or settled.
    pub fn sealed(&self) -> &[Sealed] {
        self.plan
            .journal
            .as_ref()
            .map_or(&[], |journal| &journal.sealed)
    }

    /// Forgets what lies over the image, as a power cut would that nothing survives.
    pub fn forget(&mut self) {
        self.plan.steps.forget();
        self.plan.contents.overlay.forget();
        self.plan.groups.clear();
        self.plan.timers.clear();
        self.journal().sealed.clear();
        self.journal().pending.clear();
    }

    /// Writes what lies over the image into it, and gives what was encrypted.
    pub fn settle(&mut self) -> Vec<Sealed> {
        let mut places: Vec<Place> = self.plan.contents.overlay.written().collect();
        places.sort_unstable();
        for place in places {
            let line = self.plan.contents.newest(place).expect("it is written");
            let beside = self.plan.contents.newest_sideband(place);
            self.plan.contents.image.write(place, &line, 0xff, beside);
        }
        let sealed = std::mem::take(&mut self.journal().sealed);
        self.forget();
        sealed
    }
}
