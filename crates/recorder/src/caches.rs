//! A private L1 and L2 for each core and a shared last-level cache: write-back, write-allocate, LRU.
//!
//! L2 neither includes nor excludes L1. The last level includes both or, on demand, neither. Copies are kept
//! coherent as in MSI: a line that is dirty in one core's caches is in no other core's. Only line numbers and
//! dirty bits are here; who keeps the bytes is told by [`Memory`] when a line reaches it.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Size and ways of one cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of data.
    pub bytes: u64,
    /// Ways of a set.
    pub ways: u32,
}

/// Bytes in a line.
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

/// All the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Each core's first level.
    pub l1: Geometry,
    /// Each core's second level.
    pub l2: Geometry,
    /// The last level, shared by all cores; without it memory lies below the second levels.
    pub llc: Option<Geometry>,
    /// What the last level evicts leaves the private caches too.
    pub inclusive: bool,
    /// Cores.
    pub cores: usize,
}

/// What lies below the caches.
pub trait Memory {
    /// A line that no cache has is fetched.
    fn read(&mut self, line: u64);
    /// A dirty line leaves the caches for want of room.
    fn evict(&mut self, line: u64);
}

/// A tag is the line's number, shifted by one, and the dirty bit.
const EMPTY: u64 = u64::MAX;
const DIRTY: u64 = 1;

/// One cache. A set's tags stand in the order of their last use, the latest first and empty ways last: what goes is
/// the last, and whether a line is its set's latest is one look at one word, which is all that most accesses need
/// ([`First`]). The words are atomic because that look takes no lock; all else is the one owner's, so `Relaxed` does.
struct Level {
    tags: Box<[AtomicU64]>,
    mask: u64,
    ways: usize,
}

/// The most lines of a level.
const MOST: usize = 1 << 32;

impl Level {
    fn new(geometry: Geometry) -> Result<Level, String> {
        let sets = geometry.sets()?;
        let ways = geometry.ways as usize;
        let lines = sets as usize * ways;
        if lines > MOST {
            let bytes = MOST as u64 * LINE_BYTES;
            return Err(format!("{} bytes are more than {bytes}", geometry.bytes));
        }
        Ok(Level {
            tags: (0..lines).map(|_| AtomicU64::new(EMPTY)).collect(),
            mask: sets - 1,
            ways,
        })
    }

    #[inline(always)]
    fn set(&self, line: u64) -> &[AtomicU64] {
        let at = (line & self.mask) as usize * self.ways;
        &self.tags[at..at + self.ways]
    }

    /// The line's set, and where it is in it.
    #[inline(always)]
    fn find(&self, line: u64) -> Option<(&[AtomicU64], usize)> {
        let set = self.set(line);
        let at = set.iter().position(|tag| tag.load(Relaxed) >> 1 == line)?;
        Some((set, at))
    }

    /// Makes the line the latest of its set, and dirty if `store`; whether it was dirty, if it is there.
    #[inline(always)]
    fn touch(&mut self, line: u64, store: bool) -> Option<bool> {
        let (set, at) = self.find(line)?;
        let tag = set[at].load(Relaxed);
        put_first(&set[..=at], tag | u64::from(store));
        Some(tag & DIRTY != 0)
    }

    /// Puts in a line that is not there; gives what had to go.
    #[inline(always)]
    fn insert(&mut self, tag: u64) -> Option<u64> {
        let set = self.set(tag >> 1);
        let victim = set[set.len() - 1].load(Relaxed);
        put_first(set, tag);
        (victim != EMPTY).then_some(victim)
    }

    /// Takes the line out; whether it was dirty, if it was there.
    fn remove(&mut self, line: u64) -> Option<bool> {
        let (set, at) = self.find(line)?;
        let dirty = set[at].load(Relaxed) & DIRTY != 0;
        for way in at..set.len() - 1 {
            set[way].store(set[way + 1].load(Relaxed), Relaxed);
        }
        set[set.len() - 1].store(EMPTY, Relaxed);
        Some(dirty)
    }

    /// Makes the line clean where it is; whether it was dirty.
    fn clean(&mut self, line: u64) -> bool {
        self.find(line).is_some_and(|(set, at)| {
            let tag = set[at].load(Relaxed);
            set[at].store(tag & !DIRTY, Relaxed);
            tag & DIRTY != 0
        })
    }

    /// Takes out the lines that `which` wants; `each` is told the dirty ones.
    fn remove_all(&mut self, which: impl Fn(u64) -> bool, mut each: impl FnMut(u64)) {
        for set in self.tags.chunks_mut(self.ways) {
            let mut kept = 0;
            for way in 0..set.len() {
                let tag = *set[way].get_mut();
                if tag != EMPTY && which(tag >> 1) {
                    if tag & DIRTY != 0 {
                        each(tag >> 1);
                    }
                } else {
                    *set[kept].get_mut() = tag;
                    kept += 1;
                }
            }
            for way in &mut set[kept..] {
                *way.get_mut() = EMPTY;
            }
        }
    }
}

/// Moves all but the last one place down, and `tag` to the front.
#[inline(always)]
fn put_first(ways: &[AtomicU64], tag: u64) {
    let mut above = tag;
    for way in ways {
        let old = way.load(Relaxed);
        way.store(above, Relaxed);
        above = old;
    }
}

/// A core's L1 for a look without the model: see [`Caches::first`].
#[derive(Clone, Copy, Debug)]
pub struct First {
    tags: *const AtomicU64,
    mask: u64,
    ways: u64,
}

/// What [`First::NOTHING`] looks at.
static NO_TAG: AtomicU64 = AtomicU64::new(EMPTY);

// SAFETY: the words that it points to are atomic.
unsafe impl Send for First {}

impl First {
    /// Has no line.
    pub const NOTHING: First = First {
        tags: &raw const NO_TAG,
        mask: 0,
        ways: 1,
    };

    /// Whether the access to `address` changes nothing: its line is the latest of its set already, and dirty if it is
    /// a store.
    ///
    /// # Safety
    /// The [`Caches`] that it is of are where they were. Other threads may use them at the same time.
    #[inline(always)]
    pub unsafe fn hit(self, address: u64, store: bool) -> bool {
        // SAFETY: each set has a first way, and the caches live by the caller's promise.
        let tag = unsafe { (*self.set(address)).load(Relaxed) };
        tag | u64::from(!store) == address >> 5 | DIRTY
    }

    /// The same as [`Caches::access`] of the only core in use, if its L1 has the line; else false, and nothing changes.
    ///
    /// # Safety
    /// As for [`First::hit`], and no other thread uses the caches.
    #[inline(always)]
    pub unsafe fn touch(self, address: u64, store: bool) -> bool {
        // SAFETY: each set has so many ways, and the caches live by the caller's promise.
        let set = unsafe { std::slice::from_raw_parts(self.set(address), self.ways as usize) };
        let line = address / LINE_BYTES;
        let Some(at) = set.iter().position(|tag| tag.load(Relaxed) >> 1 == line) else {
            return false;
        };
        let tag = set[at].load(Relaxed);
        put_first(&set[..=at], tag | u64::from(store));
        true
    }

    #[inline(always)]
    fn set(self, address: u64) -> *const AtomicU64 {
        let set = address / LINE_BYTES & self.mask;
        self.tags.wrapping_add((set * self.ways) as usize)
    }
}

struct Core {
    l1: Level,
    l2: Level,
}

impl Core {
    fn remove(&mut self, line: u64) -> bool {
        self.l1.remove(line).unwrap_or(false) | self.l2.remove(line).unwrap_or(false)
    }

    fn clean(&mut self, line: u64) -> bool {
        self.l1.clean(line) | self.l2.clean(line)
    }
}

/// The caches of all cores.
pub struct Caches {
    cores: Vec<Core>,
    llc: Option<Level>,
    inclusive: bool,
    /// Cores in use: snooping looks at these only.
    in_use: usize,
}

/// What an access wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// The line as it is.
    Load,
    /// The line to change.
    Store,
}

impl Caches {
    /// Empty caches.
    ///
    /// # Errors
    /// A geometry without whole sets, or no core.
    pub fn new(hierarchy: &Hierarchy) -> Result<Caches, String> {
        if hierarchy.cores == 0 {
            return Err("there must be a core".to_owned());
        }
        let core = || {
            Ok::<_, String>(Core {
                l1: Level::new(hierarchy.l1).map_err(|e| format!("L1: {e}"))?,
                l2: Level::new(hierarchy.l2).map_err(|e| format!("L2: {e}"))?,
            })
        };
        let llc = hierarchy.llc.map(Level::new).transpose();
        Ok(Caches {
            cores: (0..hierarchy.cores)
                .map(|_| core())
                .collect::<Result<_, _>>()?,
            llc: llc.map_err(|e| format!("last level: {e}"))?,
            inclusive: hierarchy.inclusive,
            in_use: 1,
        })
    }

    /// Cores in all.
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// From now on the first `cores` may have lines.
    pub fn use_cores(&mut self, cores: usize) {
        self.in_use = self.in_use.max(cores.min(self.cores.len()));
    }

    /// A core's L1 for the quickest hits, without going through `self`.
    pub fn first(&self, core: usize) -> First {
        let l1 = &self.cores[core].l1;
        First {
            tags: l1.tags.as_ptr(),
            mask: l1.mask,
            ways: l1.ways as u64,
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        for level in self.levels() {
            level.remove_all(|_| true, |_| {});
        }
    }

    /// An access of `core` to `line`.
    #[inline]
    pub fn access(&mut self, core: usize, line: u64, want: Want, memory: &mut impl Memory) {
        let store = want == Want::Store;
        if let Some(dirty) = self.cores[core].l1.touch(line, store) {
            if store && !dirty && self.in_use > 1 {
                self.take_from_others(core, line);
            }
            return;
        }
        if self.in_use > 1 {
            if store {
                self.take_from_others(core, line);
            } else {
                self.share(core, line, memory);
            }
        }
        if self.cores[core].l2.touch(line, false).is_none() {
            self.fetch(line, memory);
            if let Some(victim) = self.cores[core].l2.insert(line << 1)
                && victim & DIRTY != 0
            {
                self.down_from_l2(victim >> 1, memory);
            }
        }
        let tag = line << 1 | u64::from(store);
        if let Some(victim) = self.cores[core].l1.insert(tag)
            && victim & DIRTY != 0
        {
            self.down_from_l1(core, victim >> 1, memory);
        }
    }

    /// The last level has the line after this, if there is one.
    fn fetch(&mut self, line: u64, memory: &mut impl Memory) {
        let Some(llc) = &mut self.llc else {
            return memory.read(line);
        };
        if llc.touch(line, false).is_some() {
            return;
        }
        memory.read(line);
        if let Some(victim) = llc.insert(line << 1) {
            self.leave_llc(victim, memory);
        }
    }

    fn leave_llc(&mut self, victim: u64, memory: &mut impl Memory) {
        let mut dirty = victim & DIRTY != 0;
        if self.inclusive {
            for core in &mut self.cores[..self.in_use] {
                dirty |= core.remove(victim >> 1);
            }
        }
        if dirty {
            memory.evict(victim >> 1);
        }
    }

    fn down_from_l1(&mut self, core: usize, line: u64, memory: &mut impl Memory) {
        let l2 = &mut self.cores[core].l2;
        if l2.touch(line, true).is_none()
            && let Some(victim) = l2.insert(line << 1 | DIRTY)
            && victim & DIRTY != 0
        {
            self.down_from_l2(victim >> 1, memory);
        }
    }

    fn down_from_l2(&mut self, line: u64, memory: &mut impl Memory) {
        let Some(llc) = &mut self.llc else {
            return memory.evict(line);
        };
        if llc.touch(line, true).is_none()
            && let Some(victim) = llc.insert(line << 1 | DIRTY) {
            self.leave_llc(victim, memory);
        }
    }

    /// No core but `core` has the line after this; what was dirty there becomes dirty here by the store to come.
    fn take_from_others(&mut self, core: usize, line: u64) {
        for (other, caches) in self.cores[..self.in_use].iter_mut().enumerate() {
            if other != core {
                caches.remove(line);
            }
        }
    }

    /// No core but `core` has the line dirty after this.
    fn share(&mut self, core: usize, line: u64, memory: &mut impl Memory) {
        for other in 0..self.in_use {
            if other != core && self.cores[other].clean(line) {
                self.down_from_l2(line, memory);
            }
        }
    }

    /// Takes the dirty bit of the line from all caches, and with `invalidate` the line; whether it was dirty.
    pub fn flush(&mut self, line: u64, invalidate: bool) -> bool {
        let mut dirty = false;
        for core in &mut self.cores[..self.in_use] {
            dirty |= if invalidate {
                core.remove(line)
            } else {
                core.clean(line)
            };
        }
        if let Some(llc) = &mut self.llc {
            dirty |= if invalidate {
                llc.remove(line).unwrap_or(false)
            } else {
                llc.clean(line)
            };
        }
        dirty
    }

    /// Takes all lines of `first..end` out; the dirty ones, in order.
    pub fn flush_range(&mut self, first: u64, end: u64) -> Vec<u64> {
        let mut dirty = Vec::new();
        let lines: usize = self.levels().map(|level| level.tags.len()).sum();
        if end.saturating_sub(first) < lines as u64 / 8 {
            for line in first..end {
                if self.flush(line, true) {
                    dirty.push(line);
                }
            }
            return dirty;
        }
        for level in self.levels() {
            level.remove_all(
                |line| (first..end).contains(&line),
                |line| dirty.push(line),
            );
        }
        dirty.sort_unstable();
        dirty.dedup();
        dirty
    }

    /// Makes everything clean; the lines that were dirty, in order.
    pub fn drain(&mut self) -> Vec<u64> {
        let mut dirty = Vec::new();
        for level in self.levels() {
            for tag in level.tags.iter_mut().map(AtomicU64::get_mut) {
                if *tag != EMPTY && *tag & DIRTY != 0 {
                    dirty.push(*tag >> 1);
                    *tag &= !DIRTY;
                }
            }
        }
        dirty.sort_unstable();
        dirty.dedup();
        dirty
    }

    fn levels(&mut self) -> impl Iterator<Item = &mut Level> {
        self.cores
            .iter_mut()
            .flat_map(|core| [&mut core.l1, &mut core.l2])
            .chain(self.llc.as_mut())
    }
}
