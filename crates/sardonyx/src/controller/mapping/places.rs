//! Which places are free, and which free place a line gets. No paper says, so keys decide (*assumed*); the allocator's
//! knowledge is on chip. Left out: why a place is free, which the mapping's counts say.

use std::collections::{BTreeSet, VecDeque};

use rustc_hash::FxHashMap;
use sardonyx_base::random::splitmix64;

use crate::line::Place;
use crate::mechanisms::{Value, mechanisms};
use crate::plan::{Plan, Step};
use crate::settings::{Settings, keys, words};

/// The freed place that a line gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// The place that was freed first.
    Fifo,
    /// The place that was freed last.
    Lifo,
    /// The place nearest to the line's own.
    Nearest,
}

words!(Reuse { "fifo" => Fifo, "lifo" => Lifo, "nearest" => Nearest });

/// The destination of a unique line while unused places are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// Its own place if that is free, else a freed one, else one from the top of the data region.
    Home,
    /// A freed place, else the lowest one that has not been used, as in a log.
    Log,
}

words!(Fresh { "home" => Home, "log" => Log });

keys! {
    REUSE: Reuse = word("places.reuse", "fifo"),
        Assumed("no paper says which freed place is used again first"),
        "Which freed place a line gets: freed first, freed last, or nearest its own";
    RETIRED: u64 = int("places.retired", (0, 1 << 40), 0),
        Source("lines that are worn out; the crash explorer retires so many that a medium is full"),
        "Places at the top of the data region that no line gets";
    PAST: u64 = int("places.past", (0, 95), 0),
        Assumed("no paper says how full the medium is when the run begins"),
        "Percent of the places that hold contents of lines that the run does not touch"
        in Between("0", "90", "an empty medium to one that is nearly full");
    FRESH: Fresh = word("places.fresh", "home"),
        Assumed("no paper says where a line that is not shared lies"),
        "Where a unique line goes: its own place if free, or one after the other as in a log";
}

mechanisms! {
    FREED = "freed places", least 30;
    REUSED = "reused places", least 30;
    AWAY = "lines away from their own places", least 30;
    LEFT = "shared places that a line leaves", least 30;
}

const PAGE: usize = 4096;
/// Pages from this one on are kept in a hash map, because an array up to a high place would be large.
const FAR: usize = 1 << 15;

/// An array of default values that takes memory only where it has been touched.
#[derive(Default)]
pub struct Paged<T> {
    pages: Vec<Option<Box<[T]>>>,
    far: FxHashMap<usize, Box<[T]>>,
}

impl<T: Copy + Default> Paged<T> {
    /// The value at `index`.
    #[inline]
    pub fn get(&self, index: u64) -> T {
        let number = index as usize / PAGE;
        let page = match number < FAR {
            true => self.pages.get(number).and_then(Option::as_ref),
            false => self.far.get(&number),
        };
        page.map_or(T::default(), |page| page[index as usize % PAGE])
    }

    /// The value at `index`, mutable.
    #[inline]
    pub fn at(&mut self, index: u64) -> &mut T {
        let page = index as usize / PAGE;
        let blank = || vec![T::default(); PAGE].into_boxed_slice();
        if page >= FAR {
            return &mut self.far.entry(page).or_insert_with(blank)[index as usize % PAGE];
        }
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        &mut self.pages[page].get_or_insert_with(blank)[index as usize % PAGE]
    }
}

#[derive(Default)]
struct PlacePool {
    words: Paged<u64>,
}

impl PlacePool {
    fn has(&self, place: Place) -> bool {
        self.words.get(place.0 / 64) >> (place.0 % 64) & 1 == 1
    }

    fn put(&mut self, place: Place, member: bool) {
        let bit = 1 << (place.0 % 64);
        let word = self.words.at(place.0 / 64);
        *word = if member { *word | bit } else { *word & !bit };
    }
}

/// Freed places, of which some may have been taken again since.
enum Freed {
    InOrder(VecDeque<Place>, Reuse),
    ByPlace(BTreeSet<Place>),
}

impl Freed {
    fn new(reuse: Reuse) -> Freed {
        match reuse {
            Reuse::Fifo | Reuse::Lifo => Freed::InOrder(VecDeque::new(), reuse),
            Reuse::Nearest => Freed::ByPlace(BTreeSet::new()),
        }
    }

    fn put(&mut self, place: Place) {
        match self {
            Freed::InOrder(places, _) => places.push_back(place),
            Freed::ByPlace(places) => {
                places.insert(place);
            }
        }
    }

    fn take(&mut self, home: Place) -> Option<Place> {
        match self {
            Freed::InOrder(places, Reuse::Lifo) => places.pop_back(),
            Freed::InOrder(places, _) => places.pop_front(),
            Freed::ByPlace(places) => {
                let below = places.range(..home).next_back();
                let above = places.range(home..).next();
                let nearest = below.into_iter().chain(above);
                let place = *nearest.min_by_key(|place| place.0.abs_diff(home.0))?;
                places.take(&place)
            }
        }
    }
}

/// Finished unmappings are forgotten when there are more than this many; the number is small so that short runs reach
/// it.
const UNMAPPED: usize = 4;

/// Places that hold contents of lines that the run does not touch. They are drawn by their number, so that a controller
/// after a power cut knows the same ones. A line's own place is never one of them.
#[derive(Clone, Copy)]
struct Others {
    /// A place whose number draws less than this is one.
    below: u64,
}

impl Others {
    fn new(settings: &Settings) -> Others {
        Others {
            below: u64::MAX / 100 * settings.get(&PAST),
        }
    }

    fn has(self, place: Place) -> bool {
        self.below > 0 && splitmix64(place.0) < self.below
    }
}

/// The fewest places of a data region among which so many are of nobody else. A line's own place is its own all the same, so
/// a run has more than these.
pub fn least_lines(places: u64, settings: &Settings) -> u64 {
    let others = Others::new(settings);
    if others.below == 0 || places == 0 {
        return places;
    }
    let mut free = (0..).filter(|&at| !others.has(Place(at)));
    free.nth(places as usize - 1).map_or(u64::MAX, |at| at + 1)
}

/// Hands out places and takes them back.
pub struct Allocator {
    fresh: Fresh,
    others: Others,
    used: PlacePool,
    /// Places in `freed`, which must not be put there twice.
    queued: PlacePool,
    freed: Freed,
    unmapped: FxHashMap<u64, Step>,
    unmapped_limit: usize,
    /// All places at and above it have been handed out once; in a log, all below it.
    edge: u64,
    lines: u64,
    in_use: u64,
}

impl Allocator {
    /// An allocator of `lines` places, all free.
    pub fn new(lines: u64, settings: &Settings) -> Allocator {
        let fresh = settings.get(&FRESH);
        let lines = lines.saturating_sub(settings.get(&RETIRED));
        Allocator {
            edge: match fresh {
                Fresh::Home => lines,
                Fresh::Log => 0,
            },
            lines,
            fresh,
            others: Others::new(settings),
            used: PlacePool::default(),
            queued: PlacePool::default(),
            freed: Freed::new(settings.get(&REUSE)),
            unmapped: FxHashMap::default(),
            unmapped_limit: UNMAPPED,
            in_use: 0,
        }
    }

    /// A free place for a line whose own is `home`, and the step before which it must not be written.
    pub fn allocate(&mut self, home: Place, plan: &mut Plan) -> Option<(Place, Step)> {
        let place = match self.fresh == Fresh::Home && home.0 < self.lines && !self.used.has(home) {
            true => home,
            false => self.another(home)?,
        };
        self.take(place);
        if place != home {
            plan.exercise(&AWAY);
        }
        plan.reach(Value::PlacesInUse, self.in_use);
        if plan.is_observed() && plan.peek(place).is_some() {
            plan.exercise(&REUSED);
        }
        let unmapped = self.unmapped.remove(&place.0);
        Some((place, unmapped.unwrap_or(Step::PAST)))
    }

    fn another(&mut self, home: Place) -> Option<Place> {
        while let Some(place) = self.freed.take(home) {
            self.queued.put(place, false);
            // The place may have been taken as some line's own since it was freed.
            if !self.used.has(place) {
                return Some(place);
            }
        }
        while let Some(place) = self.next() {
            if !self.used.has(place) {
                return Some(place);
            }
        }
        None
    }

    fn next(&mut self) -> Option<Place> {
        loop {
            let place = match self.fresh {
                Fresh::Home => {
                    self.edge = self.edge.checked_sub(1)?;
                    Place(self.edge)
                }
                Fresh::Log if self.edge == self.lines => return None,
                Fresh::Log => {
                    self.edge += 1;
                    Place(self.edge - 1)
                }
            };
            if !self.others.has(place) {
                return Some(place);
            }
        }
    }

    /// Finds a place that has not been written, for a line whose own is `home` and that has been in memory since before
    /// the run.
    pub fn preload(&mut self, home: Place, plan: &Plan) -> Option<Place> {
        let untouched = |used: &PlacePool, place| !used.has(place) && plan.peek(place).is_none();
        let is_home = home.0 < self.lines && untouched(&self.used, home);
        let mut place = is_home.then_some(home).or_else(|| self.next())?;
        while !untouched(&self.used, place) {
            place = self.next()?;
        }
        Some(place)
    }

    /// Marks `place` as used, whether it was or not.
    pub fn take(&mut self, place: Place) {
        self.in_use += u64::from(!self.used.has(place));
        self.used.put(place, true);
    }

    /// Notes that one line less, not the last, refers to `place` once `unmapped` is finished.
    pub fn let_go(&mut self, place: Place, unmapped: Step, plan: &mut Plan) {
        plan.exercise(&LEFT);
        self.gate(place, unmapped, plan);
    }

    /// Makes the next writer of `place` wait for `unmapped`, whether the last line left it or another one.
    fn gate(&mut self, place: Place, unmapped: Step, plan: &mut Plan) {
        if plan.is_past(unmapped) {
            return;
        }
        let all = match self.unmapped.get(&place.0) {
            Some(earlier) => plan.both(*earlier, unmapped),
            None => unmapped,
        };
        self.unmapped.insert(place.0, all);
        if self.unmapped.len() > self.unmapped_limit {
            self.unmapped.retain(|_, step| !plan.is_past(*step));
            self.unmapped_limit = (self.unmapped.len() * 2).max(UNMAPPED);
        }
    }

    /// Frees `place`, to which nobody refers once `unmapped` is finished. A design whose tables do not survive a power
    /// cut may free a place twice afterwards.
    pub fn free(&mut self, place: Place, unmapped: Step, plan: &mut Plan) {
        self.in_use -= u64::from(self.used.has(place));
        self.used.put(place, false);
        plan.exercise(&FREED);
        if !self.queued.has(place) {
            self.queued.put(place, true);
            self.freed.put(place);
        }
        self.gate(place, unmapped, plan);
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

    fn four(reuse: Reuse, fresh: Fresh) -> Allocator {
        let mut settings = Settings::default();
        settings.set(&REUSE, reuse);
        settings.set(&FRESH, fresh);
        Allocator::new(4, &settings)
    }

    fn places() -> Allocator {
        Allocator::new(4, &Settings::default())
    }

    #[test]
    fn places_of_others_are_not_handed_out() {
        for fresh in [Fresh::Home, Fresh::Log] {
            let mut settings = Settings::default();
            settings.set(&FRESH, fresh);
            settings.set(&PAST, 90);
            let mut plan = Plan::new(Image::new(), true);
            let mut places = Allocator::new(1000, &settings);
            let others = Others::new(&settings);
            let given: Vec<Place> = (0..)
                .map_while(|_| places.allocate(Place(1 << 40), &mut plan))
                .map(|(place, _)| place)
                .collect();
            let free: Vec<Place> = (0..1000).map(Place).filter(|at| !others.has(*at)).collect();
            let mut sorted = given.clone();
            sorted.sort_unstable_by_key(|place| place.0);
            assert_eq!(sorted, free);
            assert_eq!(
                least_lines(free.len() as u64, &settings),
                free[free.len() - 1].0 + 1
            );
            assert!((60..140).contains(&free.len()), "{}", free.len());
        }
    }

    /// The places that lines with these own places get, after 2, 0 and 3 have been freed in this order.
    fn reused(reuse: Reuse, fresh: Fresh, homes: [u64; 3]) -> [u64; 3] {
        let mut plan = Plan::new(Image::new(), true);
        let mut places = four(reuse, fresh);
        for home in 0..4 {
            places.allocate(Place(home), &mut plan);
        }
        for freed in [2, 0, 3] {
            places.free(Place(freed), Step::PAST, &mut plan);
        }
        homes.map(|home| places.allocate(Place(home), &mut plan).unwrap().0.0)
    }

    #[test]
    fn freed_places_come_in_the_order_of_the_key() {
        assert_eq!(reused(Reuse::Fifo, Fresh::Home, [1, 1, 1]), [2, 0, 3]);
        assert_eq!(reused(Reuse::Lifo, Fresh::Home, [1, 1, 1]), [3, 0, 2]);
        assert_eq!(reused(Reuse::Nearest, Fresh::Home, [1, 1, 1]), [0, 2, 3]);
        assert_eq!(reused(Reuse::Fifo, Fresh::Home, [3, 3, 3]), [3, 2, 0]);
        assert_eq!(reused(Reuse::Fifo, Fresh::Log, [3, 3, 3]), [2, 0, 3]);
    }

    #[test]
    fn a_log_fills_from_the_bottom() {
        let mut plan = Plan::new(Image::new(), true);
        let mut places = four(Reuse::Fifo, Fresh::Log);
        let mut at = || {
            places
                .allocate(Place(3), &mut plan)
                .map(|(place, _)| place.0)
        };
        assert_eq!(
            [at(), at(), at(), at(), at()],
            [Some(0), Some(1), Some(2), Some(3), None]
        );
    }

    #[test]
    fn home_then_freed_then_the_top() {
        let mut plan = Plan::new(Image::new(), true);
        let mut places = places();
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
        let mut places = places();
        places.allocate(Place(0), &mut plan);
        let step = plan.unit(crate::medium::params::Unit::Metadata, Step::PAST);
        places.free(Place(0), step, &mut plan);
        assert_eq!(places.allocate(Place(0), &mut plan), Some((Place(0), step)));
    }

    #[test]
    fn a_place_that_was_shared_waits_for_all_who_let_it_go() {
        let mut plan = Plan::new(Image::new(), true);
        let mut places = places();
        places.allocate(Place(0), &mut plan);
        let unit = crate::medium::params::Unit::Metadata;
        let (first, last) = (plan.unit(unit, Step::PAST), plan.unit(unit, Step::PAST));
        places.let_go(Place(0), first, &mut plan);
        places.free(Place(0), last, &mut plan);
        let (_, gate) = places.allocate(Place(0), &mut plan).unwrap();
        assert!(gate != first && gate != last && gate != Step::PAST, "both");
    }
}
