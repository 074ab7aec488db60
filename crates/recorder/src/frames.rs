//! The physical frame of each page of a process, as a kernel would give it: at the first touch, and freed when the page
//! goes. Caches hold lines of frames, so a line outlives the address through which it was stored.
//!
//! Pages of shared file mappings keep the names of [`crate::maps`], which are the page cache's and physical already.
//! Left out: huge pages, swapping, migration, and frames that processes outside of the recording free or take.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};
use sardonyx_base::random::splitmix64;
use serde::{Deserialize, Serialize};

use crate::maps::FILES;

pub const PAGE_BYTES: u64 = 4096;
pub const PAGE_LINES: u64 = 64;
/// The kernel's page of zeros, which backs private anonymous pages until they are stored to.
pub const ZERO: u64 = 0;
/// Frames without a number of the kernel's begin here, above all frames of a machine.
const NAMELESS: u64 = 1 << 35;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reuse {
    /// The one freed last, like Linux' lists of each processor (`mm/page_alloc.c`, `rmqueue_pcplist`).
    #[default]
    LastFreed,
    FirstFreed,
    /// No freed frame: every page gets a new one.
    Never,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FrameNumbers {
    #[default]
    InOrder,
    Random {
        seed: u64,
        frames: u64,
    },
    Kernel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramePlace {
    pub line: u64,
    /// Set if stores may go there; if not, the first store gives the page a frame of its own.
    pub own: bool,
}

impl FramePlace {
    /// The frame, if it is one that the process frees.
    pub fn frame(self) -> Option<u64> {
        (self.own && self.line < FILES).then_some(self.line / PAGE_LINES)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstContents {
    /// Zeros; a page that is only read is the kernel's page of zeros.
    Zeros,
    /// Zeros, of memory shared between processes: the kernel clears a frame even for a read.
    SharedZeros,
    /// The bytes of a file, or of the process that forked: a frame that exists already and is copied at the first
    /// store.
    Copied,
    /// Shared bytes, which are not copied.
    Shared,
}

impl FirstContents {
    pub fn is_shared(self) -> bool {
        matches!(self, FirstContents::SharedZeros | FirstContents::Shared)
    }
}

/// A frame for a page, and whether a page had it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    pub frame: u64,
    pub again: bool,
}

const LATEST: usize = 4096;
const NOWHERE: (u64, u64) = (u64::MAX, 0);

pub struct Frames {
    numbers: FrameNumbers,
    reuse: Reuse,
    table: FxHashMap<u64, FramePlace>,
    /// The page and whether it may be stored to, in one word; and its first line.
    latest: Box<[(u64, u64)]>,
    /// The page of each frame that is its own, whose bytes can be read there.
    owner: FxHashMap<u64, u64>,
    /// The page of each frame that is not its own: a file's or a parent's, which the page shows until it is stored to.
    shown: FxHashMap<u64, u64>,
    /// Free frames, the one freed last at the end.
    free: VecDeque<u64>,
    /// The free frames as a set, for an order in which the last freed is not the next used.
    freed: FxHashSet<u64>,
    used: FxHashSet<u64>,
    next: u64,
    nameless: u64,
    draws: u64,
    inherited: FxHashSet<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Stock {
    free: Vec<u64>,
    freed: Vec<u64>,
    used: Vec<u64>,
    counts: [u64; 3],
}

impl Frames {
    pub fn new(numbers: FrameNumbers, reuse: Reuse) -> Frames {
        Frames {
            numbers,
            reuse,
            table: FxHashMap::default(),
            latest: vec![NOWHERE; LATEST].into(),
            owner: FxHashMap::default(),
            shown: FxHashMap::default(),
            free: VecDeque::new(),
            freed: FxHashSet::default(),
            used: FxHashSet::default(),
            next: ZERO + 1,
            nameless: NAMELESS,
            draws: 0,
            inherited: FxHashSet::default(),
        }
    }

    /// Turns a copy of the parent's frames into the child's: the parent's pages are shared until the child stores.
    pub fn fork(&mut self) {
        let mut inherited = std::mem::take(&mut self.inherited);
        let own = self
            .table
            .iter()
            .filter(|(_, place)| place.frame().is_some());
        inherited.extend(own.map(|(page, _)| *page));
        *self = Frames::new(self.numbers, self.reuse);
        self.inherited = inherited;
    }

    pub fn is_inherited(&self, page: u64) -> bool {
        !self.inherited.is_empty() && self.inherited.contains(&page)
    }

    /// The number of frames that pages have had so far, if frames are counted.
    pub fn counted(&self) -> u64 {
        match self.numbers {
            FrameNumbers::InOrder => self.next - 1,
            _ => (self.used.len() + self.freed.len()) as u64,
        }
    }

    /// The page's first line, if it was looked up recently and needs no frame for this access.
    #[inline(always)]
    pub fn quick(&self, page: u64, store: bool) -> Option<u64> {
        let (word, line) = self.latest[page as usize % LATEST];
        // The lowest bit says that the page may not be stored to.
        (word ^ page << 1 <= u64::from(!store)).then_some(line)
    }

    /// Looks a page up, like the kernel's walk through its tables.
    pub fn place(&mut self, page: u64) -> Option<FramePlace> {
        let place = *self.table.get(&page)?;
        self.remember(page, place);
        Some(place)
    }

    fn remember(&mut self, page: u64, place: FramePlace) {
        self.latest[page as usize % LATEST] = (page << 1 | u64::from(!place.own), place.line);
    }

    pub fn look(&self, page: u64) -> Option<FramePlace> {
        self.table.get(&page).copied()
    }

    /// Puts the page there; if the frame is the page's own, its bytes can be read at the page.
    pub fn put(&mut self, page: u64, place: FramePlace) {
        if let Some(before) = self.table.insert(page, place) {
            self.hide(before);
        }
        self.remember(page, place);
        match place.frame() {
            Some(frame) => drop(self.owner.insert(frame, page)),
            None if place.line < FILES && place.line / PAGE_LINES != ZERO => {
                self.shown.insert(place.line / PAGE_LINES, page);
            }
            None => {}
        }
    }

    fn hide(&mut self, place: FramePlace) {
        if !place.own {
            self.shown.remove(&(place.line / PAGE_LINES));
        }
    }

    /// Removes the pages `first..end`, in order, and returns their frames, which belong to no page until they are freed
    /// or put elsewhere.
    pub fn take(&mut self, first: u64, end: u64) -> Vec<(u64, FramePlace)> {
        let pages = self.within(first, end);
        let mut taken = Vec::with_capacity(pages.len());
        for page in pages {
            let Some(place) = self.table.remove(&page) else {
                continue;
            };
            self.latest[page as usize % LATEST] = NOWHERE;
            if let Some(frame) = place.frame() {
                self.owner.remove(&frame);
            }
            self.hide(place);
            taken.push((page, place));
        }
        taken
    }

    pub fn disinherit(&mut self, first: u64, end: u64) {
        if !self.inherited.is_empty() {
            self.inherited.retain(|page| !(first..end).contains(page));
        }
    }

    pub fn pages(&self, first: u64, end: u64) -> Vec<(u64, FramePlace)> {
        let pages = self.within(first, end).into_iter();
        pages.map(|page| (page, self.table[&page])).collect()
    }

    fn within(&self, first: u64, end: u64) -> Vec<u64> {
        if end.saturating_sub(first) < self.table.len() as u64 {
            return (first..end)
                .filter(|page| self.table.contains_key(page))
                .collect();
        }
        let pages = self.table.keys().copied();
        let mut pages: Vec<u64> = pages.filter(|page| (first..end).contains(page)).collect();
        pages.sort_unstable();
        pages
    }

    /// Moves the marks of the parent's bytes in `first..end` to `to`, for at most `kept` pages.
    pub fn move_inherited(&mut self, first: u64, end: u64, to: u64, kept: u64) {
        if self.inherited.is_empty() {
            return;
        }
        let all = self.inherited.iter().copied();
        let moved: Vec<u64> = all.filter(|page| (first..end).contains(page)).collect();
        self.disinherit(first, end);
        let stay = moved.into_iter().filter(|page| page - first < kept);
        self.inherited.extend(stay.map(|page| page - first + to));
    }

    pub fn free(&mut self, frame: u64) {
        self.used.remove(&frame);
        match (self.numbers, self.reuse) {
            (FrameNumbers::InOrder, Reuse::Never) => {}
            (FrameNumbers::InOrder, _) => self.free.push_back(frame),
            _ => {
                self.freed.insert(frame);
            }
        }
    }

    /// Gives a page a frame; `kernel` is the frame in the kernel's page map.
    pub fn give(&mut self, kernel: Option<u64>) -> Given {
        match self.numbers {
            FrameNumbers::InOrder => {
                let free = match self.reuse {
                    Reuse::FirstFreed => self.free.pop_front(),
                    _ => self.free.pop_back(),
                };
                if let Some(frame) = free {
                    return Given { frame, again: true };
                }
                self.next += 1;
                let frame = self.next - 1;
                Given {
                    frame,
                    again: false,
                }
            }
            // The recorder refuses a number that is too large.
            FrameNumbers::Random { frames, .. } if self.used.len() as u64 + 1 >= frames => {
                self.taken(frames)
            }
            FrameNumbers::Random { seed, frames } => loop {
                self.draws += 1;
                let frame = splitmix64(seed ^ splitmix64(self.draws)) % frames;
                if frame != ZERO && !self.used.contains(&frame) {
                    return self.taken(frame);
                }
            },
            // One page of the kernel's can be two of ours, if a process forked, or if the page moved since it was
            // looked up.
            FrameNumbers::Kernel => match kernel.filter(|frame| !self.used.contains(frame)) {
                Some(frame) => self.taken(frame),
                None => {
                    self.nameless += 1;
                    self.taken(self.nameless)
                }
            },
        }
    }

    fn taken(&mut self, frame: u64) -> Given {
        self.used.insert(frame);
        let again = self.freed.remove(&frame);
        Given { frame, again }
    }

    #[inline]
    pub fn address(&self, line: u64) -> Option<u64> {
        let page = self.owner.get(&(line / PAGE_LINES))?;
        Some(page * PAGE_BYTES + line % PAGE_LINES * 64)
    }

    /// The address at which a page shows a line that is not its own.
    pub fn shown_at(&self, line: u64) -> Option<u64> {
        let page = self.shown.get(&(line / PAGE_LINES))?;
        Some(page * PAGE_BYTES + line % PAGE_LINES * 64)
    }

    /// The frames with all pages freed, in order, for the next program of this process.
    pub fn stock(&self) -> Stock {
        let own: Vec<u64> = (self.pages(0, u64::MAX).iter())
            .filter_map(|(_, place)| place.frame())
            .collect();
        let mut left = Frames::new(self.numbers, self.reuse);
        left.free.clone_from(&self.free);
        left.freed.clone_from(&self.freed);
        left.used.clone_from(&self.used);
        for frame in own {
            left.free(frame);
        }
        let sorted = |set: &FxHashSet<u64>| {
            let mut all: Vec<u64> = set.iter().copied().collect();
            all.sort_unstable();
            all
        };
        Stock {
            free: left.free.iter().copied().collect(),
            freed: sorted(&left.freed),
            used: sorted(&left.used),
            counts: [self.next, self.nameless, self.draws],
        }
    }

    pub fn resume(&mut self, stock: Stock) {
        self.free = stock.free.into();
        self.freed = stock.freed.into_iter().collect();
        self.used = stock.used.into_iter().collect();
        [self.next, self.nameless, self.draws] = stock.counts;
    }
}

/// Ranges of the address space by their contents before the first touch.
#[derive(Clone, Debug, Default)]
pub struct Regions {
    /// The start, the end and the contents of each range, in order of address, without overlaps.
    regions: Vec<(u64, u64, FirstContents)>,
}

impl Regions {
    pub fn find(&self, address: u64) -> Option<FirstContents> {
        let at = self.regions.partition_point(|r| r.1 <= address);
        let region = self.regions.get(at)?;
        (region.0 <= address).then_some(region.2)
    }

    pub fn remove(&mut self, start: u64, end: u64) {
        let first = self.regions.partition_point(|r| r.1 <= start);
        let last = self.regions.partition_point(|r| r.0 < end);
        if first >= last {
            return;
        }
        let (begun, ended) = (self.regions[first], self.regions[last - 1]);
        let left = (begun.0 < start).then_some((begun.0, start, begun.2));
        let right = (ended.1 > end).then_some((end, ended.1, ended.2));
        self.regions
            .splice(first..last, left.into_iter().chain(right));
    }

    pub fn set(&mut self, start: u64, end: u64, contents: FirstContents) {
        if start < end {
            self.remove(start, end);
            let at = self.regions.partition_point(|r| r.1 <= start);
            self.regions.insert(at, (start, end, contents));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(frames: &mut Frames, page: u64) -> u64 {
        let frame = frames.give(None).frame;
        let line = frame * PAGE_LINES;
        frames.put(page, FramePlace { line, own: true });
        frame
    }

    fn free_all(frames: &mut Frames) {
        for (_, place) in frames.take(0, u64::MAX) {
            frames.free(place.frame().unwrap());
        }
    }

    #[test]
    fn frames_come_back_in_the_order_that_was_asked_for() {
        for (reuse, again) in [
            (Reuse::LastFreed, [3, 2, 1, 4]),
            (Reuse::FirstFreed, [1, 2, 3, 4]),
            (Reuse::Never, [4, 5, 6, 7]),
        ] {
            let mut frames = Frames::new(FrameNumbers::InOrder, reuse);
            let first = [90, 70, 80].map(|at| page(&mut frames, at));
            assert_eq!(first, [1, 2, 3]);
            for at in [90, 70, 80] {
                let taken = frames.take(at, at + 1);
                frames.free(taken[0].1.frame().unwrap());
            }
            assert_eq!([5, 6, 7, 8].map(|at| page(&mut frames, at)), again);
        }
    }

    #[test]
    fn a_frame_that_moves_is_read_at_its_new_page() {
        let mut frames = Frames::new(FrameNumbers::InOrder, Reuse::LastFreed);
        let frame = page(&mut frames, 10);
        let line = frame * PAGE_LINES + 5;
        assert_eq!(frames.place(10).unwrap().line, line - 5);
        assert_eq!(frames.quick(10, true), Some(line - 5));
        assert_eq!(frames.address(line), Some(10 * 4096 + 5 * 64));
        let taken = frames.take(0, 20);
        assert_eq!(
            (frames.quick(10, false), frames.address(line)),
            (None, None)
        );
        frames.put(33, taken[0].1);
        assert_eq!(frames.address(line), Some(33 * 4096 + 5 * 64));
        assert_eq!(frames.place(10), None);
    }

    #[test]
    fn a_page_that_is_not_its_own_is_found_for_loads_alone() {
        let mut frames = Frames::new(FrameNumbers::InOrder, Reuse::LastFreed);
        frames.put(
            7,
            FramePlace {
                line: ZERO,
                own: false,
            },
        );
        frames.place(7);
        assert_eq!(
            (frames.quick(7, false), frames.quick(7, true)),
            (Some(ZERO), None)
        );
        assert_eq!(frames.address(ZERO), None);
    }

    #[test]
    fn random_frames_are_distinct_and_repeat_with_the_seed() {
        let draw = |seed| {
            let numbers = FrameNumbers::Random { seed, frames: 65 };
            let mut frames = Frames::new(numbers, Reuse::LastFreed);
            (0..64).map(|at| page(&mut frames, at)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let distinct: FxHashSet<_> = draw(3).into_iter().collect();
        assert!(distinct.len() == 64 && !distinct.contains(&ZERO));
        let numbers = FrameNumbers::Random { seed: 0, frames: 3 };
        let mut full = Frames::new(numbers, Reuse::LastFreed);
        let given = [0, 1, 2].map(|at| page(&mut full, at));
        assert_eq!(given[2], 3, "a number that is none of memory's");
        free_all(&mut full);
        assert!(full.give(None).again);
    }

    #[test]
    fn the_kernels_frames_are_taken_once() {
        let mut frames = Frames::new(FrameNumbers::Kernel, Reuse::LastFreed);
        let given = |frame, again| Given { frame, again };
        assert_eq!(frames.give(Some(77)), given(77, false));
        assert!(frames.give(Some(77)).frame > NAMELESS);
        frames.free(77);
        assert_eq!(frames.give(Some(77)), given(77, true));
    }

    #[test]
    fn what_a_process_leaves_goes_on_where_it_was() {
        let mut frames = Frames::new(FrameNumbers::InOrder, Reuse::LastFreed);
        let _ = [4, 5, 6].map(|at| page(&mut frames, at));
        let stock = serde_json::to_string(&frames.stock()).unwrap();
        let mut next = Frames::new(FrameNumbers::InOrder, Reuse::LastFreed);
        next.resume(serde_json::from_str(&stock).unwrap());
        assert_eq!([0, 1, 2, 3].map(|at| page(&mut next, at)), [3, 2, 1, 4]);
    }

    #[test]
    fn a_child_inherits_what_was_stored_to() {
        let mut frames = Frames::new(FrameNumbers::InOrder, Reuse::LastFreed);
        page(&mut frames, 4);
        frames.put(
            5,
            FramePlace {
                line: ZERO,
                own: false,
            },
        );
        frames.fork();
        assert!(frames.is_inherited(4) && !frames.is_inherited(5));
        assert_eq!((frames.place(4), page(&mut frames, 9)), (None, 1));
        frames.move_inherited(3, 5, 13, 2);
        assert!(frames.is_inherited(14) && !frames.is_inherited(4));
        frames.disinherit(0, 15);
        assert!(!frames.is_inherited(14));
    }

    #[test]
    fn regions_are_cut_by_what_is_mapped_over_them() {
        let mut regions = Regions::default();
        regions.set(100, 200, FirstContents::Copied);
        regions.set(200, 300, FirstContents::Zeros);
        regions.set(150, 250, FirstContents::Shared);
        let at = [99, 100, 149, 150, 249, 250, 299, 300].map(|at| regions.find(at));
        let (copied, shared, zeros) = (
            FirstContents::Copied,
            FirstContents::Shared,
            FirstContents::Zeros,
        );
        let known = [copied, copied, shared, shared, zeros, zeros].map(Some);
        assert_eq!((at[0], &at[1..7], at[7]), (None, &known[..], None));
        regions.remove(120, 130);
        assert_eq!(
            [119, 120, 129, 130].map(|at| regions.find(at).is_some()),
            [true, false, false, true]
        );
        regions.remove(0, 1000);
        assert_eq!(regions.find(149), None);
    }
}
