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

/// One cache. Within a set the tags are in order of use, the latest first, so way 0 needs no update when it hits.
pub struct Level {
    tags: Vec<u64>,
    mask: u64,
    ways: usize,
}

impl Level {
    fn new(geometry: Geometry) -> Result<Level, String> {
        let sets = geometry.sets()?;
        let ways = geometry.ways as usize;
        Ok(Level {
            tags: vec![EMPTY; sets as usize * ways],
            mask: sets - 1,
            ways,
        })
    }

    #[inline(always)]
    fn set(&mut self, line: u64) -> &mut [u64] {
        let at = (line & self.mask) as usize * self.ways;
        &mut self.tags[at..at + self.ways]
    }

    /// Makes the line the latest of its set and gives its tag, if it is there.
    #[inline(always)]
    fn touch(&mut self, line: u64) -> Option<&mut u64> {
        let set = self.set(line);
        let way = set.iter().position(|&tag| tag >> 1 == line)?;
        let tag = set[way];
        set.copy_within(..way, 1);
        set[0] = tag;
        Some(&mut set[0])
    }

    /// The line's tag, its place in the order unchanged.
    fn find(&mut self, line: u64) -> Option<&mut u64> {
        self.set(line).iter_mut().find(|tag| **tag >> 1 == line)
    }

    /// Puts a line that is not there first; gives what had to go.
    #[inline(always)]
    fn insert(&mut self, tag: u64) -> Option<u64> {
        let set = self.set(tag >> 1);
        // Empty ways are last only until a line is removed, so one may lie between.
        let way = set
            .iter()
            .position(|&tag| tag == EMPTY)
            .unwrap_or(set.len() - 1);
        let victim = set[way];
        set.copy_within(..way, 1);
        set[0] = tag;
        (victim != EMPTY).then_some(victim)
    }

    /// Takes the line out; whether it was dirty, if it was there.
    fn remove(&mut self, line: u64) -> Option<bool> {
        let tag = self.find(line)?;
        let dirty = *tag & DIRTY != 0;
        *tag = EMPTY;
        Some(dirty)
    }

    /// Makes the line clean where it is; whether it was dirty.
    fn clean(&mut self, line: u64) -> bool {
        match self.find(line) {
            Some(tag) => {
                let dirty = *tag & DIRTY != 0;
                *tag &= !DIRTY;
                dirty
            }
            None => false,
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

    /// The first level's tags of a core with the mask and the ways: for a look at way 0 without the model.
    ///
    /// A tag `line << 1 | 1` there means that a store changes nothing, and any tag of the line that a load does not.
    pub fn first_tags(&mut self, core: usize) -> (*mut u64, u64, usize) {
        let l1 = &mut self.cores[core].l1;
        (l1.tags.as_mut_ptr(), l1.mask, l1.ways)
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
