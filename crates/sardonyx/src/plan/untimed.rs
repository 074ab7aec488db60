//! Plans without a clock: a controller over an image, with all values at once and nothing timed. Recoveries after a
//! power cut are tried on it, and it fills a medium before a run.
//!
//! Nothing ever finishes here, so what is written lies over the image until it is settled into it or forgotten.

use std::cell::RefCell;

use super::Plan;
use super::journal::{Journal, MediumWrite};
use super::steps::Action;
use crate::exhausted::Exhausted;
use crate::line::{LINE_BYTES, Line, Place, ZERO_LINE};
use crate::medium::image::Image;
use crate::medium::params::Unit;
use crate::stats::Cause;

/// The work done for integrity.
#[derive(Debug, Default)]
pub struct Counted {
    /// Lines of the medium that were looked at, possibly several times: by a recovery outright, then by reads.
    pub looked: Vec<Place>,
    /// The number of lines looked at outright.
    pub outright: usize,
    /// The number of keyed hashes for which the unit was used.
    pub hashes: u64,
    /// Lines that were written.
    pub written: Vec<(Place, Line)>,
}

/// An image, and writes over it that have no time.
pub struct Untimed {
    plan: Plan,
}

impl Untimed {
    /// Plans over `image`.
    pub fn new(image: Image) -> Untimed {
        let mut plan = Plan::new(image, true);
        plan.observers.add(Box::<Journal>::default());
        plan.steps.timed = false;
        Untimed { plan }
    }

    /// Plans over `image`, for trying things out. Writes take effect at once, requests are not recorded, and
    /// [`Untimed::forget`] restores the image.
    pub fn tried_out(image: Image) -> Untimed {
        let mut plan = Plan::new(image, true);
        plan.steps.timed = false;
        plan.steps.at_once = true;
        plan.undo = Some(Vec::new());
        Untimed { plan }
    }

    /// Runs `handle` over a plan.
    pub fn plan<T>(&mut self, handle: impl FnOnce(&mut Plan) -> T) -> T {
        handle(&mut self.plan)
    }

    fn journal(&mut self) -> Option<&mut Journal> {
        self.plan.observers.find_mut()
    }

    /// The reason why a plan could not be carried out; `None` if all could.
    pub fn failure(&self) -> Option<Exhausted> {
        self.plan.failure
    }

    /// Lines that were refused as not authentic since the last `forget`.
    pub fn refused(&self) -> &[Place] {
        &self.plan.refused
    }

    /// The image below what has been written.
    pub fn image(&self) -> &Image {
        &self.plan.contents.image
    }

    /// The image, mutable. Nothing may lie over it.
    pub fn image_mut(&mut self) -> &mut Image {
        debug_assert!(self.plan.contents.overlay.is_empty());
        &mut self.plan.contents.image
    }

    /// The image, without what lies over it.
    pub fn into_image(self) -> Image {
        self.plan.contents.image
    }

    /// The newest bytes at `place`.
    pub fn newest(&self, place: Place) -> Option<Line> {
        self.plan.contents.newest(place)
    }

    /// The lines over the image, by place in order: their newest bytes and sidebands.
    pub fn overlaid(&self) -> impl Iterator<Item = (Place, Line, Option<[u8; 8]>)> {
        let contents = &self.plan.contents;
        let mut places: Vec<Place> = contents.overlay.written().collect();
        let undo = self.plan.undo.iter().flatten();
        places.extend(undo.map(|(place, _)| *place));
        places.sort_unstable();
        places.dedup();
        let newest = move |place| Some((place, contents.newest(place)?));
        let lines = places.into_iter().filter_map(newest);
        lines.map(move |(place, line)| (place, line, contents.newest_sideband(place)))
    }

    /// The requests and encryptions since the last `forget` or `settle`.
    pub fn asked(&self) -> &Journal {
        self.plan.observers.find().expect("it is always kept")
    }

    /// The image that a power cut would leave: with all that lies over it, and with registers as reserve power dumps
    /// them.
    pub fn left(&self) -> Image {
        let mut image = self.image().copy();
        image.lose_near();
        for (place, line, beside) in self.overlaid().filter(|(place, ..)| !place.is_lost()) {
            image.write(place, &line, 0xff, beside);
        }
        for write in self.asked().registers() {
            image.write(write.place, &write.line, 0xff, None);
        }
        image
    }

    /// The image that a power cut would leave if reserve power drained all that is on chip and that `drains` says of its
    /// place: of each byte the newest.
    pub fn drained(&self, drains: impl Fn(Place) -> bool) -> Image {
        let accepted = self.writes(0).filter(|write| !write.is_move());
        let mut writes: Vec<(MediumWrite, u64)> = accepted
            .map(|write| {
                let bytes = (0..8).filter(|word| write.words >> word & 1 == 1);
                let bytes = bytes.fold(0, |all, word| all | 0xff << (word * 8));
                (write, bytes)
            })
            .collect();
        let changes = self.asked().changes().into_iter();
        let changes = changes.filter(|change| drains(change.write.place));
        writes.extend(changes.map(|change| (change.write.clone(), change.bytes)));
        writes.sort_by_key(|(write, _)| write.order);
        let mut image = self.image().copy();
        image.lose_near();
        for (write, bytes) in writes {
            let mut line = image.read(write.place).unwrap_or(ZERO_LINE);
            for byte in (0..LINE_BYTES).filter(|byte| bytes >> byte & 1 == 1) {
                line[byte] = write.line[byte];
            }
            image.write(write.place, &line, 0xff, write.sideband);
        }
        image
    }

    /// The number of the next write.
    pub fn next_order(&self) -> u64 {
        self.plan.steps.upcoming().0
    }

    /// The writes over the image that a power cut leaves, from the one numbered `from` on.
    pub fn writes(&self, from: u64) -> impl Iterator<Item = MediumWrite> {
        let writes = self.plan.steps.since(from);
        let writes =
            writes.filter(|(_, one)| one.action == Action::Accept && !Place(one.place).is_lost());
        writes.map(|(step, record)| {
            let payload = self.plan.contents.overlay.payload(record.link as u32);
            MediumWrite::new(step.0, Place(record.place), payload)
        })
    }

    /// Counts the work done for integrity from now on.
    pub fn count(&mut self) {
        self.plan.looked = Some(RefCell::default());
    }

    /// The work done for integrity since counting began, from the write numbered `from` on.
    pub fn counted(&self, from: u64) -> Counted {
        let looked = self.plan.looked.as_ref();
        let looked = looked.map_or(Vec::new(), |looked| looked.borrow().clone());
        let mut counted = Counted {
            outright: looked.len(),
            looked,
            ..Counted::default()
        };
        let steps = self.plan.steps.since(from);
        for (_, record) in steps.filter(|(_, one)| one.purpose.what == Cause::Integrity) {
            match record.action {
                Action::Read => counted.looked.push(Place(record.place)),
                Action::Accept => {
                    let payload = self.plan.contents.overlay.payload(record.link as u32);
                    counted.written.push((Place(record.place), payload.line));
                }
                Action::Unit(unit) if unit == Unit::Mac as u8 => counted.hashes += 1,
                _ => {}
            }
        }
        counted
    }

    /// Forgets what lies over the image, as a power cut does that nothing survives.
    pub fn forget(&mut self) {
        self.plan.steps.forget();
        self.plan.contents.overlay.forget();
        self.plan.groups.clear();
        self.plan.timers.clear();
        self.plan.failure = None;
        self.plan.refused.clear();
        for (place, content) in self
            .plan
            .undo
            .iter_mut()
            .flat_map(|undo| undo.drain(..).rev())
        {
            self.plan.contents.image.put(place, content.as_ref());
        }
        if let Some(journal) = self.journal() {
            journal.forget();
        }
    }

    /// Writes what lies over the image into it.
    pub fn settle(&mut self) {
        let mut places: Vec<Place> = self.plan.contents.overlay.written().collect();
        places.sort_unstable();
        for place in places {
            let contents = &mut self.plan.contents;
            let beside = contents.newest_sideband(place);
            match contents.newest(place) {
                Some(line) => contents.image.write(place, &line, 0xff, beside),
                None => contents.image.unwrite(place),
            }
            if beside.is_none() {
                contents.image.clear_sideband(place);
            }
        }
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{At, Queue, Step};

    /// A cache's copy counts, though somebody has changed other words of the line in memory.
    #[test]
    fn what_is_written_back_is_read_whole_with_and_without_steps() {
        let (place, copy) = (Place(3), [7; LINE_BYTES]);
        for of in [Untimed::new, Untimed::tried_out] {
            let mut image = Image::new();
            image.put(place, Some(&([9; LINE_BYTES], None)));
            let mut untimed = of(image);
            untimed
                .plan(|plan| plan.write_back(place, At::past(&copy), 1, Step::PAST, Queue::Data));
            assert_eq!(untimed.newest(place), Some(copy));
        }
    }
}
