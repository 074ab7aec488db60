//! Plans without a clock: a controller over an image, its values at once and nothing timed. What a
//! recovery is tried on after a power cut, and what fills a medium before a run.
//!
//! Nothing ever finishes here, so whatever is written lies over the image until it is settled into
//! it or forgotten.

use super::contents::Contents;
use super::journal::{Journal, Sealed};
use super::steps::Steps;
use super::{Group, Plan, Timers};
use crate::exhausted::Exhausted;
use crate::line::{Line, Place};
use crate::medium::image::Image;
use crate::stats::{Cause, Purpose};
use crate::units::Time;

/// An image and what has been written over it.
pub struct Untimed {
    steps: Steps,
    contents: Contents,
    groups: Vec<Group>,
    timers: Timers,
    failure: Option<Exhausted>,
    journal: Journal,
}

impl Untimed {
    /// Over `image`.
    pub fn new(image: Image) -> Untimed {
        Untimed {
            steps: Steps::new(),
            contents: Contents::new(image, true),
            groups: Vec::new(),
            timers: Timers::default(),
            failure: None,
            journal: Journal::default(),
        }
    }

    /// Runs `handle` over a plan.
    pub fn plan<T>(&mut self, handle: impl FnOnce(&mut Plan) -> T) -> T {
        handle(&mut Plan {
            steps: &mut self.steps,
            contents: &mut self.contents,
            groups: &mut self.groups,
            timers: &mut self.timers,
            failure: &mut self.failure,
            journal: Some(&mut self.journal),
            now: Time::ZERO,
            purpose: Purpose::of(Cause::Data),
        })
    }

    /// Why a plan could not be carried out, if one could not.
    pub fn failure(&self) -> Option<Exhausted> {
        self.failure
    }

    /// The image below what has been written.
    pub fn image(&self) -> &Image {
        &self.contents.image
    }

    /// The same, to be changed; only while nothing lies over it.
    pub fn image_mut(&mut self) -> &mut Image {
        debug_assert!(self.contents.overlay.is_empty());
        &mut self.contents.image
    }

    /// Gives the image up, without what lies over it.
    pub fn into_image(self) -> Image {
        self.contents.image
    }

    /// The newest bytes at `place`.
    pub fn newest(&self, place: Place) -> Option<Line> {
        self.contents.newest(place)
    }

    /// Lines encrypted since they were last forgotten or settled.
    pub fn sealed(&self) -> &[Sealed] {
        &self.journal.sealed
    }

    /// Forgets what lies over the image, as a power cut would that nothing survives.
    pub fn forget(&mut self) {
        self.steps.forget();
        self.contents.overlay.forget();
        self.groups.clear();
        self.timers.asked.clear();
        self.journal.sealed.clear();
        self.journal.pending.clear();
    }

    /// Writes what lies over the image into it, and gives what was encrypted.
    pub fn settle(&mut self) -> Vec<Sealed> {
        let mut places: Vec<Place> = self.contents.overlay.written().collect();
        places.sort_unstable();
        for place in places {
            let line = self.contents.newest(place).expect("it is written");
            let beside = self.contents.newest_sideband(place);
            self.contents.image.write(place, &line, 0xff, beside);
        }
        let sealed = std::mem::take(&mut self.journal.sealed);
        self.forget();
        sealed
    }
}
