//! A private L1 and L2 for each core and a shared last-level cache: write-back, write-allocate, LRU.
//!
//! L2 neither includes nor excludes L1. The last level includes both or, if asked, neither. Copies are kept coherent as
//! in MSI: a line that is dirty in one core's caches is in no other core's. Only line numbers and dirty bits are here;
//! [`MemoryTraffic`] is told when a line reaches memory, and its owner keeps the bytes.
//!
//! Lines are physical. The program names its lines by virtual addresses, and each L1 has a table of its lines by these
//! names; when pages are mapped otherwise, the names are forgotten and the lines stay.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    pub bytes: u64,
    pub ways: u32,
}

pub const LINE_BYTES: u64 = 64;

impl Geometry {
    /// The number of sets.
    ///
    /// # Errors
    /// It is not a power of two, or there are no ways.
    pub fn sets(self) -> Result<u64, String> {
        let set = u64::from(self.ways) * LINE_BYTES;
        if set == 0 || self.bytes == 0 || !self.bytes.is_multiple_of(set) {
            return Err(format!(
                "{} bytes are not whole sets of {} ways of 64 bytes",
                self.bytes, self.ways
            ));
        }
        let sets = self.bytes / set;
        if !sets.is_power_of_two() {
            return Err(format!(
                "{} bytes in {} ways are {sets} sets, which is not a power of two",
                self.bytes, self.ways
            ));
        }
        Ok(sets)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hierarchy {
    pub l1: Geometry,
    pub l2: Geometry,
    /// The last level, shared by all cores; without it memory lies below the second levels.
    pub llc: Option<Geometry>,
    pub inclusive: bool,
    pub cores: usize,
}

pub trait MemoryTraffic {
    /// A line that no cache has is fetched.
    fn read(&mut self, line: u64);
    /// A dirty line leaves the caches for want of room.
    fn evict(&mut self, line: u64);
}

/// A tag is the line's number, shifted by one, and the dirty bit.
const EMPTY: u64 = u64::MAX;
const DIRTY: u64 = 1;

/// An L2 or last level. A set's tags are in the order of their last use, the latest first and empty ways last, so that
/// no further data have to be kept in the host's own caches.
struct Outer {
    tags: Box<[u64]>,
    mask: u64,
    ways: usize,
}

impl Outer {
    fn new(geometry: Geometry) -> Result<Outer, String> {
        let (sets, ways) = shape(geometry, 1 << 32)?;
        Ok(Outer {
            tags: vec![EMPTY; sets * ways].into(),
            mask: sets as u64 - 1,
            ways,
        })
    }

    #[inline(always)]
    fn set(&mut self, line: u64) -> &mut [u64] {
        let at = (line & self.mask) as usize * self.ways;
        &mut self.tags[at..at + self.ways]
    }

    /// Makes the line the latest of its set, and dirty if `store`. Returns whether it was there.
    #[inline(always)]
    fn touch(&mut self, line: u64, store: bool) -> bool {
        let set = self.set(line);
        let Some(at) = set.iter().position(|tag| tag >> 1 == line) else {
            return false;
        };
        let tag = set[at];
        put_first(&mut set[..=at], tag | u64::from(store));
        true
    }

    /// Inserts a line that is not there. Returns the tag that had to go.
    #[inline(always)]
    fn insert(&mut self, tag: u64) -> Option<u64> {
        let victim = put_first(self.set(tag >> 1), tag);
        (victim != EMPTY).then_some(victim)
    }

    /// Makes the line clean, and with `invalidate` removes it. Returns whether it was dirty.
    fn flush(&mut self, line: u64, invalidate: bool) -> bool {
        let set = self.set(line);
        let Some(at) = set.iter().position(|tag| tag >> 1 == line) else {
            return false;
        };
        let dirty = set[at] & DIRTY != 0;
        set[at] = line << 1;
        if invalidate {
            set[at] = EMPTY;
            set[at..].rotate_left(1);
        }
        dirty
    }

    fn dirty(&self, line: u64) -> bool {
        let at = (line & self.mask) as usize * self.ways;
        self.tags[at..at + self.ways].contains(&(line << 1 | DIRTY))
    }

    /// Cleans all lines that `which` wants, and with `invalidate` removes them; the dirty ones go to `dirty`.
    fn flush_all(&mut self, which: impl Fn(u64) -> bool, invalidate: bool, dirty: &mut Vec<u64>) {
        for set in self.tags.chunks_mut(self.ways) {
            let mut kept = 0;
            for way in 0..set.len() {
                let mut tag = std::mem::replace(&mut set[way], EMPTY);
                if tag != EMPTY && which(tag >> 1) {
                    if tag & DIRTY != 0 {
                        dirty.push(tag >> 1);
                    }
                    tag = if invalidate { EMPTY } else { tag & !DIRTY };
                }
                if tag != EMPTY {
                    set[kept] = tag;
                    kept += 1;
                }
            }
        }
    }
}

fn shape(geometry: Geometry, most: u64) -> Result<(usize, usize), String> {
    let sets = geometry.sets()?;
    if sets * u64::from(geometry.ways) > most {
        let bytes = most * LINE_BYTES;
        return Err(format!("{} bytes are more than {bytes}", geometry.bytes));
    }
    Ok((sets as usize, geometry.ways as usize))
}

/// Moves all tags one place down and puts `tag` first. Returns the last one.
#[inline(always)]
fn put_first(ways: &mut [u64], tag: u64) -> u64 {
    let mut above = tag;
    for way in ways {
        above = std::mem::replace(way, above);
    }
    above
}

/// The memory below, for a line that is overwritten whole and therefore not fetched: only evicted lines reach it.
#[derive(Debug)]
pub struct Unfetched<'a, M>(pub &'a mut M);

impl<M: MemoryTraffic> MemoryTraffic for Unfetched<'_, M> {
    fn read(&mut self, _: u64) {}

    fn evict(&mut self, line: u64) {
        self.0.evict(line);
    }
}

/// A core's L1. A table by the low bits of the name ([`Front`]) tells for most lines in which way they are and whether
/// they are dirty, so that nearly every hit costs a load, a comparison that a processor foresees, and two stores
/// ([`FirstLevel`]). That look takes no lock, so the words are atomic; everything else has one owner, and `Relaxed` is
/// enough.
struct L1 {
    tags: Box<[AtomicU64]>,
    /// The last name of each way's line: the table has the line by that name or not at all.
    names: Box<[AtomicU64]>,
    used: Box<[AtomicU64]>,
    front: Box<[AtomicU64]>,
    mask: u64,
    associativity: usize,
}

/// The table has this many words for each line of L1. More words have fewer misses, and displace more from the host's
/// own L1.
const GUESSES: usize = 8;

/// The name of a line that is in no table of names.
pub const NAMELESS: u64 = u64::MAX;

struct Front;

impl Front {
    /// Bits below the name: 16 for the way, one for the dirty bit.
    const SHIFT: u32 = 17;
    /// Names from here on are not in the table.
    const END: u64 = 1 << (64 - Front::SHIFT);

    fn word(name: u64, tag: u64, at: usize) -> u64 {
        name << Front::SHIFT | (at as u64) << 1 | tag & DIRTY
    }
}

impl L1 {
    fn new(geometry: Geometry) -> Result<L1, String> {
        let (sets, associativity) = shape(geometry, 1 << 16)?;
        let lines = sets * associativity;
        let words = |count, word| (0..count).map(|_| AtomicU64::new(word)).collect();
        Ok(L1 {
            tags: words(lines, EMPTY),
            names: words(lines, NAMELESS),
            used: words(lines + 1, 0),
            front: words((lines * GUESSES).next_power_of_two(), EMPTY),
            mask: sets as u64 - 1,
            associativity,
        })
    }

    /// The word of the table that may be of this name.
    #[inline(always)]
    fn front(&self, name: u64) -> &AtomicU64 {
        &self.front[name as usize & (self.front.len() - 1)]
    }

    #[inline(always)]
    fn forget(&self, name: u64) {
        let front = self.front(name);
        if front.load(Relaxed) >> Front::SHIFT == name {
            front.store(EMPTY, Relaxed);
        }
    }

    fn forget_all(&self, names: std::ops::Range<u64>) {
        if names.end - names.start < self.names.len() as u64 {
            return names.for_each(|name| self.forget(name));
        }
        for name in &self.names {
            let name = name.load(Relaxed);
            if names.contains(&name) {
                self.forget(name);
            }
        }
    }

    #[inline(always)]
    fn set(&self, line: u64) -> std::ops::Range<usize> {
        let at = (line & self.mask) as usize * self.associativity;
        at..at + self.associativity
    }

    #[inline(always)]
    fn tag(&self, at: usize) -> u64 {
        self.tags[at].load(Relaxed)
    }

    #[inline(always)]
    fn find(&self, line: u64) -> Option<usize> {
        self.set(line).find(|&at| self.tag(at) >> 1 == line)
    }

    /// Puts the tag there under this name, as the latest of its set.
    #[inline(always)]
    fn put(&self, at: usize, tag: u64, name: u64) {
        let now = self.used[0].load(Relaxed) + 1;
        self.used[0].store(now, Relaxed);
        self.used[1 + at].store(now, Relaxed);
        self.tags[at].store(tag, Relaxed);
        let before = self.names[at].load(Relaxed);
        if before != name {
            self.forget(before);
            self.names[at].store(name, Relaxed);
        }
        if name < Front::END {
            self.front(name).store(Front::word(name, tag, at), Relaxed);
        }
    }

    /// Makes the line the latest of its set, and dirty if `store`. Returns whether it was dirty, if it is there.
    #[inline(always)]
    fn touch(&self, line: u64, name: u64, store: bool) -> Option<bool> {
        let at = self.find(line)?;
        let tag = self.tag(at);
        self.put(at, tag | u64::from(store), name);
        Some(tag & DIRTY != 0)
    }

    /// Inserts a line that is not there. Returns the tag that had to go.
    #[inline(always)]
    fn insert(&self, tag: u64, name: u64) -> Option<u64> {
        let age = |&at: &usize| match self.tag(at) {
            EMPTY => 0, // no use has this time
            _ => self.used[1 + at].load(Relaxed),
        };
        let at = self.set(tag >> 1).min_by_key(age)?;
        let victim = self.tag(at);
        self.put(at, tag, name);
        (victim != EMPTY).then_some(victim)
    }

    fn dirty(&self, line: u64) -> bool {
        self.find(line).is_some_and(|at| self.tag(at) & DIRTY != 0)
    }

    /// Makes the line clean, and with `invalidate` removes it. Returns whether it was dirty.
    fn flush(&self, line: u64, invalidate: bool) -> bool {
        self.find(line)
            .is_some_and(|at| self.flush_at(at, invalidate))
    }

    fn flush_at(&self, at: usize, invalidate: bool) -> bool {
        let tag = self.tag(at);
        self.forget(self.names[at].load(Relaxed));
        let left = if invalidate { EMPTY } else { tag & !DIRTY };
        self.tags[at].store(left, Relaxed);
        tag & DIRTY != 0
    }

    fn flush_all(&self, which: impl Fn(u64) -> bool, invalidate: bool, dirty: &mut Vec<u64>) {
        for at in 0..self.tags.len() {
            let tag = self.tag(at);
            if tag != EMPTY && which(tag >> 1) && self.flush_at(at, invalidate) {
                dirty.push(tag >> 1);
            }
        }
    }
}

/// A core's L1 for quick hits, which need nothing else of the model: see [`Caches::first`].
#[derive(Clone, Copy, Debug)]
pub struct FirstLevel {
    front: *const AtomicU64,
    used: *const AtomicU64,
    mask: u64,
}

// SAFETY: all words that it points to are atomic.
unsafe impl Send for FirstLevel {}

static NO_WORD: AtomicU64 = AtomicU64::new(EMPTY);

impl FirstLevel {
    pub const NOTHING: FirstLevel = FirstLevel {
        front: &raw const NO_WORD,
        used: &raw const NO_WORD,
        mask: 0,
    };

    /// Whether the access is a hit that only makes its line the most recent of its set; if so, it does that. The
    /// address is below 2^53.
    ///
    /// # Safety
    /// The [`Caches`] that it belongs to have not moved. Other threads may use them at the same time: a word that has
    /// gone or a wrong order does no harm.
    #[inline(always)]
    pub unsafe fn hit(self, address: u64, store: bool) -> bool {
        let line = address / LINE_BYTES;
        // SAFETY: a word's way is below the number of ways, and the caches live by the caller's promise.
        unsafe {
            let word = (*self.front.add((line & self.mask) as usize)).load(Relaxed);
            // The rest is the way and, at the end, whether the line is clean, which a store must not find.
            let left = word ^ line << Front::SHIFT ^ DIRTY;
            let hit = left & (u64::MAX << Front::SHIFT | u64::from(store)) == 0;
            if hit {
                let now = (*self.used).load(Relaxed) + 1;
                (*self.used).store(now, Relaxed);
                (*self.used.add(1 + (left >> 1) as usize)).store(now, Relaxed);
            }
            hit
        }
    }
}

struct CoreCaches {
    l1: L1,
    l2: Outer,
}

impl CoreCaches {
    fn flush(&mut self, line: u64, invalidate: bool) -> bool {
        self.l1.flush(line, invalidate) | self.l2.flush(line, invalidate)
    }
}

pub struct Caches {
    cores: Vec<CoreCaches>,
    llc: Option<Outer>,
    inclusive: bool,
    /// The number of cores in use; snooping looks only at these.
    in_use: usize,
}

impl Caches {
    pub fn new(hierarchy: &Hierarchy) -> Result<Caches, String> {
        if hierarchy.cores == 0 {
            return Err("there must be a core".to_owned());
        }
        let core = |_| {
            Ok::<_, String>(CoreCaches {
                l1: L1::new(hierarchy.l1).map_err(|e| format!("L1: {e}"))?,
                l2: Outer::new(hierarchy.l2).map_err(|e| format!("L2: {e}"))?,
            })
        };
        let llc = hierarchy.llc.map(Outer::new).transpose();
        Ok(Caches {
            cores: (0..hierarchy.cores).map(core).collect::<Result<_, _>>()?,
            llc: llc.map_err(|e| format!("last level: {e}"))?,
            inclusive: hierarchy.inclusive,
            in_use: 1,
        })
    }

    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    pub fn use_cores(&mut self, cores: usize) {
        self.in_use = self.in_use.max(cores.min(self.cores.len()));
    }

    /// A core's L1 for the quickest hits, without going through `self`.
    pub fn first(&self, core: usize) -> FirstLevel {
        let l1 = &self.cores[core].l1;
        FirstLevel {
            front: l1.front.as_ptr(),
            used: l1.used.as_ptr(),
            mask: l1.front.len() as u64 - 1,
        }
    }

    pub fn clear(&mut self) {
        self.flush_all(|_| true, true);
    }

    /// Forgets these names of lines: other pages are mapped there now.
    pub fn forget(&mut self, names: std::ops::Range<u64>) {
        for core in &self.cores[..self.in_use] {
            core.l1.forget_all(names.clone());
        }
    }

    /// The number of cores that may have lines: it is larger than the number of threads if an earlier program of this
    /// process had more.
    #[inline(always)]
    pub fn cores_in_use(&self) -> usize {
        self.in_use
    }

    /// Makes an access of the only core in use if its L1 has the line; returns whether it had.
    #[inline(always)]
    pub fn again(&mut self, line: u64, name: u64, store: bool) -> bool {
        self.cores[0].l1.touch(line, name, store).is_some()
    }

    /// A load or store of `core` to `line`, which the program knows by this name.
    #[inline]
    pub fn access(
        &mut self,
        core: usize,
        line: u64,
        name: u64,
        store: bool,
        memory: &mut impl MemoryTraffic,
    ) {
        if let Some(dirty) = self.cores[core].l1.touch(line, name, store) {
            if store && !dirty && self.in_use > 1 {
                self.take_from_others(core, line);
            }
            return;
        }
        self.miss(core, line, name, store, memory);
    }

    /// Continues [`Caches::access`] where the core's L1 lacks the line.
    #[inline]
    pub fn miss(
        &mut self,
        core: usize,
        line: u64,
        name: u64,
        store: bool,
        memory: &mut impl MemoryTraffic,
    ) {
        if self.in_use > 1 {
            if store {
                self.take_from_others(core, line);
            } else {
                self.share(core, line, memory);
            }
        }
        if !self.cores[core].l2.touch(line, false) {
            self.fetch(line, memory);
            if let Some(victim) = self.cores[core].l2.insert(line << 1)
                && victim & DIRTY != 0
            {
                self.down_from_l2(victim >> 1, memory);
            }
        }
        let tag = line << 1 | u64::from(store);
        if let Some(victim) = self.cores[core].l1.insert(tag, name)
            && victim & DIRTY != 0
        {
            self.down_from_l1(core, victim >> 1, memory);
        }
    }

    /// Makes sure that the last level, if there is one, has the line.
    fn fetch(&mut self, line: u64, memory: &mut impl MemoryTraffic) {
        let Some(llc) = &mut self.llc else {
            return memory.read(line);
        };
        if llc.touch(line, false) {
            return;
        }
        memory.read(line);
        if let Some(victim) = llc.insert(line << 1) {
            self.leave_llc(victim, memory);
        }
    }

    fn leave_llc(&mut self, victim: u64, memory: &mut impl MemoryTraffic) {
        let mut dirty = victim & DIRTY != 0;
        if self.inclusive {
            for core in &mut self.cores[..self.in_use] {
                dirty |= core.flush(victim >> 1, true);
            }
        }
        if dirty {
            memory.evict(victim >> 1);
        }
    }

    fn down_from_l1(&mut self, core: usize, line: u64, memory: &mut impl MemoryTraffic) {
        let l2 = &mut self.cores[core].l2;
        if !l2.touch(line, true)
            && let Some(victim) = l2.insert(line << 1 | DIRTY)
            && victim & DIRTY != 0
        {
            self.down_from_l2(victim >> 1, memory);
        }
    }

    fn down_from_l2(&mut self, line: u64, memory: &mut impl MemoryTraffic) {
        let Some(llc) = &mut self.llc else {
            return memory.evict(line);
        };
        if !llc.touch(line, true)
            && let Some(victim) = llc.insert(line << 1 | DIRTY)
        {
            self.leave_llc(victim, memory);
        }
    }

    /// Takes the line from all cores but `core`; dirty bytes there become dirty here by the store to come.
    fn take_from_others(&mut self, core: usize, line: u64) {
        for (other, caches) in self.cores[..self.in_use].iter_mut().enumerate() {
            if other != core {
                caches.flush(line, true);
            }
        }
    }

    /// Makes the line clean in all cores but `core`.
    fn share(&mut self, core: usize, line: u64, memory: &mut impl MemoryTraffic) {
        for other in 0..self.in_use {
            if other != core && self.cores[other].flush(line, false) {
                self.down_from_l2(line, memory);
            }
        }
    }

    pub fn dirty(&self, line: u64) -> bool {
        let below = |level: &Outer| level.dirty(line);
        let core = |core: &CoreCaches| core.l1.dirty(line) || below(&core.l2);
        self.cores[..self.in_use].iter().any(core) || self.llc.as_ref().is_some_and(below)
    }

    /// Clears the dirty bit of the line in all caches, and with `invalidate` removes the line. Returns whether it was
    /// dirty.
    pub fn flush(&mut self, line: u64, invalidate: bool) -> bool {
        let mut dirty = false;
        for core in &mut self.cores[..self.in_use] {
            dirty |= core.flush(line, invalidate);
        }
        if let Some(llc) = &mut self.llc {
            dirty |= llc.flush(line, invalidate);
        }
        dirty
    }

    /// The dirty lines of these pages, in order; a page is given by its first line and has 64.
    pub fn dirty_of(&self, pages: &[u64]) -> Vec<u64> {
        if pages.len() < self.lines() / 64 / 8 {
            let lines = pages.iter().flat_map(|&first| first..first + 64);
            let mut dirty: Vec<u64> = lines.filter(|&line| self.dirty(line)).collect();
            dirty.sort_unstable();
            return dirty;
        }
        let pages: FxHashSet<u64> = pages.iter().map(|first| first / 64).collect();
        self.all_dirty(|line| pages.contains(&(line / 64)))
    }

    pub fn all_dirty(&self, which: impl Fn(u64) -> bool) -> Vec<u64> {
        let l1 = |core: &'_ CoreCaches| -> Vec<u64> {
            let tags = core.l1.tags.iter().map(|tag| tag.load(Relaxed));
            tags.collect()
        };
        let mut dirty = Vec::new();
        let mut look = |tag: u64| {
            if tag != EMPTY && tag & DIRTY != 0 && which(tag >> 1) {
                dirty.push(tag >> 1);
            }
        };
        for core in &self.cores {
            l1(core).into_iter().for_each(&mut look);
            core.l2.tags.iter().copied().for_each(&mut look);
        }
        if let Some(llc) = &self.llc {
            llc.tags.iter().copied().for_each(&mut look);
        }
        dirty.sort_unstable();
        dirty.dedup();
        dirty
    }

    fn lines(&self) -> usize {
        let private = |core: &CoreCaches| core.l1.tags.len() + core.l2.tags.len();
        let llc = self.llc.as_ref().map_or(0, |llc| llc.tags.len());
        self.cores.iter().map(private).sum::<usize>() + llc
    }

    /// The whole state except the names, for [`Caches::restore`].
    pub fn save(&self) -> Vec<u64> {
        let mut words = vec![self.in_use as u64];
        for core in &self.cores {
            for l1 in [&core.l1.tags, &core.l1.used] {
                words.extend(l1.iter().map(|word| word.load(Relaxed)));
            }
            words.extend(&*core.l2.tags);
        }
        words.extend(self.llc.iter().flat_map(|llc| &*llc.tags));
        words
    }

    /// Restores the state of caches of the same hierarchy; returns false, and changes nothing, if the words are of
    /// another one.
    pub fn restore(&mut self, words: &[u64]) -> bool {
        let used: usize = self.cores.iter().map(|core| core.l1.used.len()).sum();
        if words.len() != 1 + used + self.lines() {
            return false;
        }
        let mut words = words.iter().copied();
        let mut next = || words.next().unwrap_or_default();
        self.in_use = next() as usize;
        for core in &mut self.cores {
            for l1 in [&core.l1.tags, &core.l1.used] {
                l1.iter().for_each(|word| word.store(next(), Relaxed));
            }
            core.l2.tags.iter_mut().for_each(|tag| *tag = next());
        }
        if let Some(llc) = &mut self.llc {
            llc.tags.iter_mut().for_each(|tag| *tag = next());
        }
        true
    }

    pub fn drain(&mut self) -> Vec<u64> {
        self.flush_all(|_| true, false)
    }

    fn flush_all(&mut self, which: impl Fn(u64) -> bool, invalidate: bool) -> Vec<u64> {
        let mut dirty = Vec::new();
        for core in &mut self.cores {
            core.l1.flush_all(&which, invalidate, &mut dirty);
            core.l2.flush_all(&which, invalidate, &mut dirty);
        }
        if let Some(llc) = &mut self.llc {
            llc.flush_all(&which, invalidate, &mut dirty);
        }
        dirty.sort_unstable();
        dirty.dedup();
        dirty
    }
}
