//! The processor's caches, with the bytes in them: private levels over a shared, inclusive last one;
//! write-back, write-allocate, LRU (or, for the crash explorer, evicting lines that a seed draws).
//! Lines are 64 bytes.
//!
//! There is one copy of a line's bytes, in the last level, and one mark that it is dirty. Hence any
//! core sees any other's stores at once, and what has to be right is who is charged for what: a
//! store takes the line out of the other cores' private levels. A level's LRU sees the accesses that
//! reach the level. Left out: instructions, prefetching, the time of coherence messages.

mod private;
mod shared;

use private::Private;
use shared::Shared;

use crate::line::{Line, Logical};
use crate::medium::params::CachesParams;
use crate::plan::Step;

/// The largest number of cores: the last level has a bit for each.
pub const MAX_CORES: usize = 64;

/// The cache that answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HitLevel {
    /// The core's first level.
    L1 = 0,
    /// The core's second level.
    L2 = 1,
    /// The shared last level.
    Llc = 2,
}

/// A line that was found. It is valid until the next call that changes the caches.
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    slot: u32,
    /// The level that had the line.
    pub level: HitLevel,
    /// The read that still brings the line, as named at [`Caches::fill`]; 0 if the line is there.
    pub filling: u32,
}

/// A dirty line on its way to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBack {
    /// The line.
    pub line: Logical,
    /// The line's bytes, as memory is to have them.
    pub data: Line,
    /// The step after which the bytes exist.
    pub at: Step,
    /// Whether a counter-atomic variable in it has been stored since its last write-back.
    pub atomic: bool,
}

/// The caches of all cores.
pub struct Caches {
    l1: Vec<Private>,
    l2: Vec<Private>,
    llc: Shared,
    /// Accesses that the last level has answered, and those that went to memory.
    llc_accesses: [u64; 2],
}

impl Caches {
    /// Empty caches of `cores` cores.
    ///
    /// # Panics
    /// If `cores` are more than [`MAX_CORES`].
    pub fn new(params: &CachesParams, cores: usize) -> Caches {
        assert!(cores <= MAX_CORES, "at most {MAX_CORES} cores");
        let levels = |level| (0..cores).map(|_| Private::new(level)).collect();
        Caches {
            l1: levels(params.l1),
            l2: match params.l2.bytes {
                0 => Vec::new(),
                _ => levels(params.l2),
            },
            llc: Shared::new(params.llc),
            llc_accesses: [0; 2],
        }
    }

    /// Looks `line` up for `core`. A lower level that has it passes it up.
    #[inline]
    pub fn find(&mut self, core: usize, line: Logical) -> Option<Hit> {
        match self.l1[core].find(line.0) {
            Some(slot) => Some(self.hit(slot, HitLevel::L1)),
            None => self.find_below(core, line.0),
        }
    }

    /// Looks `line` up in any cache, which the inclusive last level knows. No cache takes it, and its recency stays.
    pub fn probe(&self, line: Logical) -> Option<Hit> {
        let slot = self.llc.peek(line.0)?;
        Some(self.hit(slot, HitLevel::Llc))
    }

    /// Accesses of all cores that the last level has answered, and those that went to memory.
    pub fn llc_accesses(&self) -> [u64; 2] {
        self.llc_accesses
    }

    /// Fetches the last level's set of `line` into the host's caches; no effect on results.
    #[inline]
    pub fn touch_ahead(&self, line: Logical) {
        self.llc.touch_ahead(line.0);
    }

    /// Whether `line` is in the last level. If it is, its bytes are prefetched too.
    #[inline]
    pub fn touch_hit_ahead(&self, line: Logical) -> bool {
        self.llc.touch_hit_ahead(line.0)
    }

    fn find_below(&mut self, core: usize, line: u64) -> Option<Hit> {
        let (slot, level) = match self.l2.get_mut(core).and_then(|l2| l2.find(line)) {
            Some(slot) => (slot, HitLevel::L2),
            None => {
                let slot = self.llc.find(line)?;
                self.llc_accesses[0] += 1;
                self.llc.state_mut(slot).sharers |= 1 << core;
                if let Some(l2) = self.l2.get_mut(core) {
                    l2.insert(line, slot);
                }
                (slot, HitLevel::Llc)
            }
        };
        self.l1[core].insert(line, slot);
        Some(self.hit(slot, level))
    }

    #[inline]
    fn hit(&self, slot: u32, level: HitLevel) -> Hit {
        let filling = self.llc.state(slot).filling;
        Hit {
            slot,
            level,
            filling,
        }
    }

    /// Takes `line`, which no cache has, for `core`. Its bytes, brought by the read `filling`, are there after `at`.
    /// Returns the hit, and the evicted line if it was dirty.
    pub fn fill(
        &mut self,
        core: usize,
        line: Logical,
        data: &Line,
        at: Step,
        filling: u32,
    ) -> (Hit, Option<WriteBack>) {
        debug_assert!(self.llc.peek(line.0).is_none());
        self.llc_accesses[1] += 1;
        let slot = self.llc.victim(line.0);
        let gone = self.llc.tag(slot).and_then(|old| {
            let written = self.take_dirt(slot, old);
            self.leave_private(slot, old, 0);
            written
        });
        self.llc.put(slot, line.0, data, at, filling);
        self.llc.state_mut(slot).sharers = 1 << core;
        self.l1[core].insert(line.0, slot);
        if let Some(l2) = self.l2.get_mut(core) {
            l2.insert(line.0, slot);
        }
        (self.hit(slot, HitLevel::Llc), gone)
    }

    /// Notes that the read `filling` has brought `line`.
    pub fn filled(&mut self, line: Logical, filling: u32) {
        if let Some(slot) = self.llc.peek(line.0) {
            let state = self.llc.state_mut(slot);
            if state.filling == filling {
                state.filling = 0;
            }
        }
    }

    /// The bytes of a line that was found.
    pub fn line(&self, hit: Hit) -> &Line {
        self.llc.bytes(hit.slot)
    }

    /// Stores `bytes` from byte `from` of a line that `core` has found.
    #[inline]
    pub fn store(&mut self, core: usize, hit: Hit, from: u8, bytes: &[u8], atomic: bool) {
        let from = usize::from(from);
        self.llc.bytes_mut(hit.slot)[from..from + bytes.len()].copy_from_slice(bytes);
        let state = self.llc.state_mut(hit.slot);
        state.dirty = true;
        state.atomic |= atomic;
        if state.sharers != 1 << core {
            let line = self.llc.tag(hit.slot).expect("a hit is a line");
            self.leave_private(hit.slot, line, 1 << core);
        }
    }

    /// Whether `core` has logged `line`, just found, in its transaction: the log bit of L1.
    pub fn is_logged(&self, core: usize, line: Logical) -> bool {
        self.l1[core].is_logged(line.0)
    }

    /// Sets the log bit of `line` for `core`.
    pub fn set_logged(&mut self, core: usize, line: Logical) {
        self.l1[core].set_logged(line.0);
    }

    /// Clears all log bits of `core`, because a transaction begins or ends.
    pub fn clear_logged(&mut self, core: usize) {
        self.l1[core].clear_logged();
    }

    /// The step after which the bytes of a line found are there.
    pub fn ready(&self, hit: Hit) -> Step {
        self.llc.state(hit.slot).at
    }

    /// Whether `line` has been stored to since it came or was last written back.
    pub fn is_dirty(&self, line: Logical) -> bool {
        let slot = self.llc.peek(line.0);
        slot.is_some_and(|slot| self.llc.state(slot).dirty)
    }

    /// The line's bytes for memory if it is dirty; it stays, clean (`clwb`).
    pub fn write_back(&mut self, line: Logical) -> Option<WriteBack> {
        let slot = self.llc.peek(line.0)?;
        self.take_dirt(slot, line.0)
    }

    /// The line's bytes for memory if it is dirty; the line is dropped (`clflush`, non-temporal stores).
    pub fn flush(&mut self, line: Logical) -> Option<WriteBack> {
        let slot = self.llc.peek(line.0)?;
        let written = self.take_dirt(slot, line.0);
        self.leave_private(slot, line.0, 0);
        self.llc.clear(slot);
        written
    }

    /// All dirty lines, by number, as reserve power would drain them (`eadr`).
    pub fn dirty_lines(&self) -> Vec<WriteBack> {
        self.lines(|slot| self.llc.state(slot).dirty)
    }

    /// All lines that are there, dirty or not, by number.
    pub fn all_lines(&self) -> Vec<WriteBack> {
        self.lines(|_| true)
    }

    fn lines(&self, is_meant: impl Fn(u32) -> bool) -> Vec<WriteBack> {
        let meant = self.llc.occupied().filter(|(slot, _)| is_meant(*slot));
        let mut lines: Vec<WriteBack> = meant.map(|(slot, line)| self.copy(slot, line)).collect();
        lines.sort_unstable_by_key(|written| written.line);
        lines
    }

    fn copy(&self, slot: u32, line: u64) -> WriteBack {
        let state = self.llc.state(slot);
        WriteBack {
            line: Logical(line),
            data: *self.llc.bytes(slot),
            at: state.at,
            atomic: state.atomic,
        }
    }

    fn take_dirt(&mut self, slot: u32, line: u64) -> Option<WriteBack> {
        if !self.llc.state(slot).dirty {
            return None;
        }
        let written = self.copy(slot, line);
        let state = self.llc.state_mut(slot);
        (state.dirty, state.atomic) = (false, false);
        Some(written)
    }

    /// Evicts a line that `draw` chooses: three times in four one of the most urgent lines, which are counter-atomic
    /// ones if there are any, else dirty ones. Returns its bytes if it was dirty. A line that is still on its way
    /// stays.
    pub fn evict_drawn(
        &mut self,
        mut draw: impl FnMut(usize) -> usize,
    ) -> Option<(Logical, Option<WriteBack>)> {
        let here = self.llc.occupied();
        let mut lines: Vec<(u32, u64)> = here
            .filter(|(slot, _)| self.llc.state(*slot).filling == 0)
            .collect();
        let urgency = |slot: u32| {
            let state = self.llc.state(slot);
            (state.atomic, state.dirty)
        };
        if draw(4) > 0 {
            let most = lines.iter().map(|(slot, _)| urgency(*slot)).max()?;
            lines.retain(|(slot, _)| urgency(*slot) == most);
        }
        if lines.is_empty() {
            return None;
        }
        let (_, line) = lines[draw(lines.len())];
        Some((Logical(line), self.flush(Logical(line))))
    }

    /// Evicts `line`, if the caches have it. Returns it if it was dirty.
    pub fn evict(&mut self, line: Logical) -> Option<WriteBack> {
        let slot = self.llc.peek(line.0)?;
        match self.llc.state(slot).filling {
            0 => self.flush(line),
            _ => None,
        }
    }

    /// Whether `line` holds a counter-atomic variable stored since its last write-back.
    pub fn is_atomic(&self, hit: Hit) -> bool {
        self.llc.state(hit.slot).atomic
    }

    /// Drops `line` from the private levels of all cores except those in `keep`.
    fn leave_private(&mut self, slot: u32, line: u64, keep: u64) {
        let state = self.llc.state_mut(slot);
        let mut leaving = state.sharers & !keep;
        state.sharers &= keep;
        while leaving != 0 {
            let core = leaving.trailing_zeros() as usize;
            leaving &= leaving - 1;
            self.l1[core].remove(line);
            if let Some(l2) = self.l2.get_mut(core) {
                l2.remove(line);
            }
        }
    }
}
