//! A private L1 and L2 for each core and a shared last-level cache: write-back, write-allocate, LRU.
//!
//! L2 neither includes nor excludes L1. The last level includes both or, on demand, neither. Copies are kept
//! coherent as in MSI: a line that is dirty in one core's caches is in no other core's. Only line numbers and
//! dirty bits are here; who keeps the bytes is told by [`Memory`] when a line reaches it.

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

/// One cache. Each way has the time of its last use; the oldest goes first.
///
/// L1 has a table of guesses, by the low bits of the line, of the way to look at first, so that most hits cost two
/// loads, a comparison and a store, whatever the number of ways. Larger levels are looked at too rarely to keep such a
/// table in the host's own caches.
struct Level {
    tags: Vec<u64>,
    used: Vec<u32>,
    guess: Vec<u16>,
    now: u32,
    mask: u64,
    ways: usize,
}

/// Guesses for each line that L1 holds.
const GUESSES: usize = 4;

impl Level {
    fn new(geometry: Geometry, guesses: usize) -> Result<Level, String> {
        let sets = geometry.sets()?;
        let ways = geometry.ways as usize;
        let lines = sets as usize * ways;
        let guesses = (lines * guesses).next_power_of_two();
        let most = if guesses > 1 { 1 << 16 } else { 1 << 32 };
        if lines > most {
            let bytes = most as u64 * LINE_BYTES;
            return Err(format!("{} bytes are more than {bytes}", geometry.bytes));
        }
        Ok(Level {
            tags: vec![EMPTY; lines],
            used: vec![0; lines],
            guess: vec![0; guesses],
            now: 0,
            mask: sets - 1,
            ways,
        })
    }

    #[inline(always)]
    fn set(&self, line: u64) -> std::ops::Range<usize> {
        let at = (line & self.mask) as usize * self.ways;
        at..at + self.ways
    }

    /// Where the line is.
    #[inline(always)]
    fn find(&self, line: u64) -> Option<usize> {
        let set = self.set(line);
        let way = self.tags[set.clone()]
            .iter()
            .position(|tag| tag >> 1 == line)?;
        Some(set.start + way)
    }

    /// Makes the way the latest of its set.
    #[inline(always)]
    fn use_at(&mut self, at: usize, line: u64) {
        if self.guess.len() > 1 {
            let guess = line as usize & (self.guess.len() - 1);
            self.guess[guess] = at as u16;
        }
        if self.now == u32::MAX {
            self.forget_time();
        }
        self.now += 1;
        self.used[at] = self.now;
    }

    /// Keeps the order and begins to count anew.
    #[cold]
    fn forget_time(&mut self) {
        for set in self.used.chunks_mut(self.ways) {
            let mut order: Vec<usize> = (0..set.len()).collect();
            order.sort_by_key(|&way| set[way]);
            for (rank, way) in order.into_iter().enumerate() {
                set[way] = rank as u32;
            }
        }
        self.now = self.ways as u32;
    }

    /// Makes the line the latest of its set and gives its tag, if it is there.
    #[inline(always)]
    fn touch(&mut self, line: u64) -> Option<&mut u64> {
        let at = self.find(line)?;
        self.use_at(at, line);
        Some(&mut self.tags[at])
    }

    /// Puts in a line that is not there; gives what had to go.
    #[inline(always)]
    fn insert(&mut self, tag: u64) -> Option<u64> {
        let set = self.set(tag >> 1);
        let (mut at, mut age) = (set.start, u32::MAX);
        for way in set {
            if self.tags[way] == EMPTY {
                at = way;
                break;
            }
            if self.used[way] < age {
                (at, age) = (way, self.used[way]);
            }
        }
        let victim = std::mem::replace(&mut self.tags[at], tag);
        self.use_at(at, tag >> 1);
        (victim != EMPTY).then_some(victim)
    }

    /// Takes the line out; whether it was dirty, if it was there.
    fn remove(&mut self, line: u64) -> Option<bool> {
        let at = self.find(line)?;
        Some(std::mem::replace(&mut self.tags[at], EMPTY) & DIRTY != 0)
    }

    /// Makes the line clean where it is; whether it was dirty.
    fn clean(&mut self, line: u64) -> bool {
        self.find(line).is_some_and(|at| {
            let dirty = self.tags[at] & DIRTY != 0;
            self.tags[at] &= !DIRTY;
            dirty
        })
    }
}

/// A core's L1 for a look without the model: see [`Caches::first`].
#[derive(Clone, Copy, Debug)]
pub struct First {
    tags: *mut u64,
    used: *mut u32,
    guess: *mut u16,
    now: *mut u32,
    guesses: u64,
}

impl First {
    /// Whether the access only makes its line the latest of its set, and then does that.
    ///
    /// # Safety
    /// The [`Caches`] that it is of are where they were. Other threads may use them at the same time; each word is
    /// read and written in one piece, and a wrong guess or order does no harm.
    #[inline(always)]
    pub unsafe fn hit(self, line: u64, store: bool) -> bool {
        // SAFETY: a guess is below the number of tags, and the caches live by the caller's promise.
        unsafe {
            let at = self
                .guess
                .add((line & self.guesses) as usize)
                .read_volatile() as usize;
            let tag = self.tags.add(at).read_volatile();
            let now = self.now.read_volatile();
            // A store wants the line dirty; `u32::MAX` is when time begins anew.
            let hit = tag | u64::from(!store) == line << 1 | 1 && now != u32::MAX;
            if hit {
                self.now.write_volatile(now + 1);
                self.used.add(at).write_volatile(now + 1);
            }
            hit
        }
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
                l1: Level::new(hierarchy.l1, GUESSES).map_err(|e| format!("L1: {e}"))?,
                l2: Level::new(hierarchy.l2, 0).map_err(|e| format!("L2: {e}"))?,
            })
        };
        let llc = hierarchy.llc.map(|llc| Level::new(llc, 0)).transpose();
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
    pub fn first(&mut self, core: usize) -> First {
        let l1 = &mut self.cores[core].l1;
        First {
            tags: l1.tags.as_mut_ptr(),
            used: l1.used.as_mut_ptr(),
            guess: l1.guess.as_mut_ptr(),
            now: &raw mut l1.now,
            guesses: l1.guess.len() as u64 - 1,
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        for core in &mut self.cores {
            core.l1.tags.fill(EMPTY);
            core.l2.tags.fill(EMPTY);
        }
        if let Some(llc) = &mut self.llc {
            llc.tags.fill(EMPTY);
        }
    }

    /// An access of `core` to `line`.
    #[inline]
    pub fn access(&mut self, core: usize, line: u64, want: Want, memory: &mut impl Memory) {
        let store = want == Want::Store;
        if let Some(tag) = self.cores[core].l1.touch(line) {
            if store && *tag & DIRTY == 0 {
                *tag |= DIRTY;
                if self.in_use > 1 {
                    self.take_from_others(core, line);
                }
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
        if self.cores[core].l2.touch(line).is_none() {
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
        if llc.touch(line).is_some() {
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
        if let Some(tag) = l2.touch(line) {
            *tag |= DIRTY;
        } else if let Some(victim) = l2.insert(line << 1 | DIRTY)
            && victim & DIRTY != 0
        {
            self.down_from_l2(victim >> 1, memory);
        }
    }

    fn down_from_l2(&mut self, line: u64, memory: &mut impl Memory) {
        let Some(llc) = &mut self.llc else {
            return memory.evict(line);
        };
        if let Some(tag) = llc.touch(line) {
            *tag |= DIRTY;
        } else if let Some(victim) = llc.insert(line << 1 | DIRTY) {
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
            for tag in &mut level.tags {
                if *tag != EMPTY && (first..end).contains(&(*tag >> 1)) {
                    if *tag & DIRTY != 0 {
                        dirty.push(*tag >> 1);
                    }
                    *tag = EMPTY;
                }
            }
        }
        dirty.sort_unstable();
        dirty.dedup();
        dirty
    }

    /// Makes everything clean; the lines that were dirty, in order.
    pub fn drain(&mut self) -> Vec<u64> {
        let mut dirty = Vec::new();
        for level in self.levels() {
            for tag in &mut level.tags {
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
