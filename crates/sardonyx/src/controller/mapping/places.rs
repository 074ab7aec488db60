//! Which places are free: a line's own place first, then places that were freed, the oldest first,
//! then the data region from its top down. Source: none of the papers says (*assumed*, on chip).
//! Left out: why a place is free; the mapping's counts say.

use crate::planted::{Fault, planted};
use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::line::Place;
use crate::mechanisms::Mechanism;
use crate::plan::{Plan, Step};

const PAGE: usize = 4096;

/// An array that takes memory only where it has been touched; all defaults at first.
#[derive(Default)]
pub struct Paged<T> {
    pages: Vec<Option<Box<[T]>>>,
}

impl<T: Copy + Default> Paged<T> {
    /// The value at `index`.
    #[inline]
    pub fn get(&self, index: u64) -> T {
        let page = self.pages.get(index as usize / PAGE);
        page.and_then(Option::as_ref)
            .map_or(T::default(), |page| page[index as usize % PAGE])
    }

    /// The value at `index`, to be changed.
    #[inline]
    pub fn at(&mut self, index: u64) -> &mut T {
        let page = index as usize / PAGE;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let blank = || vec![T::default(); PAGE].into_boxed_slice();
        &mut self.pages[page].get_or_insert_with(blank)[index as usize % PAGE]
    }
}

/// A set of places.
#[derive(Default)]
struct Places {
    words: Paged<u64>,
}

impl Places {
    fn has(&self, place: Place) -> bool {
        self.words.get(place.0 / 64) >> (place.0 % 64) & 1 == 1
    }

    fn put(&mut self, place: Place, member: bool) {
        let bit = 1 << (place.0 % 64);
        let word = self.words.at(place.0 / 64);
        *word = if member { *word | bit } else { *word & !bit };
    }
}

/// Hands out places and takes them back.
pub struct Allocator {
    used: Places,
    /// In `freed`, and so not to be put there again.
    queued: Places,
    freed: VecDeque<Place>,
    /// When the old owners of places freed of late were unmapped.
    unmapped: FxHashMap<u64, Step>,
    unmapped_limit: usize,
    /// Everything at and above it has been handed out once.
    top: u64,
    in_use: u64,
}

impl Allocator {
    /// All of `lines` places are free.
    pub fn new(lines: u64) -> Allocator {
        Allocator {
            used: Places::default(),
            queued: Places::default(),
            freed: VecDeque::new(),
            unmapped: FxHashMap::default(),
            unmapped_limit: 1024,
            top: lines,
            in_use: 0,
        }
    }

    /// A free place, `home` if it is one, and the step before which it must not be written.
    pub fn allocate(&mut self, home: Place, plan: &mut Plan) -> Option<(Place, Step)> {
        let place = match self.used.has(home) {
            false => home,
            true => self.another()?,
        };
        self.take(place);
        if plan.keeps_journal() && plan.peek(place).is_some() {
            plan.exercise(Mechanism::Reused);
        }
        let unmapped = self.unmapped.remove(&place.0);
        Some((place, unmapped.unwrap_or(Step::PAST)))
    }

    fn another(&mut self) -> Option<Place> {
        while let Some(place) = self.freed.pop_front() {
            self.queued.put(place, false);
            if !self.used.has(place) || planted(Fault::FreedGivenTwice) {
                return Some(place);
            }
        }
        while self.top > 0 {
            self.top -= 1;
            if !self.used.has(Place(self.top)) {
                return Some(Place(self.top));
            }
        }
        None
    }

    /// `place` is in use, whether it was or not.
    pub fn take(&mut self, place: Place) {
        self.in_use += u64::from(!self.used.has(place));
        self.used.put(place, true);
    }

    /// One line less refers to `place`, once `unmapped` is finished: whoever writes the place next
    /// waits for it, whether this was the last line or not.
    pub fn let_go(&mut self, place: Place, unmapped: Step, plan: &mut Plan) {
        if plan.is_past(unmapped) {
            return;
        }
        let all = match self.unmapped.get(&place.0) {
            Some(_) if planted(Fault::LetGoForgotten) => unmapped,
            Some(earlier) => plan.both(*earlier, unmapped),
            None => unmapped,
        };
        self.unmapped.insert(place.0, all);
        if self.unmapped.len() > self.unmapped_limit {
            self.unmapped.retain(|_, step| !plan.is_past(*step));
            self.unmapped_limit = (self.unmapped.len() * 2).max(1024);
        }
    }

    /// Nobody refers to `place` any more, once `unmapped` is finished. A design whose tables do not
    /// survive a power cut may say so twice afterwards.
    pub fn free(&mut self, place: Place, unmapped: Step, plan: &mut Plan) {
        self.in_use -= u64::from(self.used.has(place));
        self.used.put(place, false);
        plan.exercise(Mechanism::Freed);
        if !self.queued.has(place) {
            self.queued.put(place, true);
            self.freed.push_back(place);
        }
        self.let_go(place, unmapped, plan);
    }

    /// Whether `place` is in use.
    pub fn is_used(&self, place: Place) -> bool {
        self.used.has(place)
    }

    /// Places in use.
    pub fn in_use(&self) -> u64 {
        self.in_use
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::image::Image;

    #[test]
    fn home_then_freed_then_the_top() {
        let mut plan = Plan::new(Image::new(), true);
        let mut places = Allocator::new(4);
        let at = |p: &mut Allocator, home, plan: &mut Plan| {
            p.allocate(Place(home), plan).map(|(place, _)| place.0)
        };
        assert_eq!(at(&mut places, 1, &mut plan), Some(1));
        assert_eq!(at(&mut places, 1, &mut plan), Some(3));
        places.free(Place(1), Step::PAST, &mut plan);
        assert_eq!(at(&mut places, 3, &mut plan), Some(1));
        assert_eq!(at(&mut places, 3, &mut plan), Some(2));
        assert_eq!(at(&mut places, 3, &mut plan), Some(0));
        assert_eq!(at(&mut places, 3, &mut plan), None);
        assert_eq!(places.in_use(), 4);
    }

    #[test]
    fn a_freed_place_is_gated_by_its_unmapping() {
        let mut plan = Plan::new(Image::new(), true);
        let mut places = Allocator::new(4);
        places.allocate(Place(0), &mut plan);
        let step = plan.unit(crate::medium::params::Unit::Metadata, Step::PAST);
        places.free(Place(0), step, &mut plan);
        assert_eq!(places.allocate(Place(0), &mut plan), Some((Place(0), step)));
    }

    #[test]
    fn a_place_that_was_shared_waits_for_all_who_let_it_go() {
        let mut plan = Plan::new(Image::new(), true);
        let mut places = Allocator::new(4);
        places.allocate(Place(0), &mut plan);
        let unit = crate::medium::params::Unit::Metadata;
        let (first, last) = (plan.unit(unit, Step::PAST), plan.unit(unit, Step::PAST));
        places.let_go(Place(0), first, &mut plan);
        places.free(Place(0), last, &mut plan);
        let (_, gate) = places.allocate(Place(0), &mut plan).unwrap();
        assert!(gate != first && gate != last && gate != Step::PAST, "both");
    }
}
