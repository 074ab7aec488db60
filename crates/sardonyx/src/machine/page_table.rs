//! Page tables: where the lines of an agent's address space lie in memory. A line is translated when the
//! operation on it executes, so that whoever merges or copies pages can redirect them.
//!
//! A recorded address space takes frames in order of first touch. Within one copy of a trace that order
//! depends on the trace alone, never on the time at which a design lets a page be touched.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;

use crate::line::{LINE_BYTES, Logical, Virtual};
use crate::medium::params::FrameOrder;

/// Lines in a page of 4 KiB.
pub const PAGE_LINES: u64 = 4096 / LINE_BYTES as u64;

/// More pages were touched than there are frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the pages touched do not fit in the {} KiB of memory that one of {shares} copies has; give the \
     machine more rows, run fewer copies, or limit the trace", .frames * 4
)]
pub struct OutOfMemory {
    /// Frames of 4 KiB that were there.
    pub frames: u64,
    /// Copies among which the memory is shared out.
    pub shares: u32,
}

/// One agent's addresses.
pub enum AddressSpace {
    /// Each line lies at its own number; so many pages are used.
    Identity {
        /// 4 KiB pages.
        pages: u64,
    },
    /// Pages take frames in order of first touch.
    FirstTouch(Frames),
    /// A kernel says where pages lie.
    Mapped(Arc<Mapped>),
}

/// Lines from here on are memory's own, as a kernel addresses them, whatever the page table says.
pub const DIRECT: u64 = 1 << 62;

/// A page table that its kernel changes while agents go on: which frame a page has, and whether a store
/// to it is a fault.
#[derive(Debug)]
pub struct Mapped {
    /// By page: twice the frame, and one if it is write-protected.
    entries: Vec<AtomicU64>,
}

impl Mapped {
    /// The pages lie in these frames, each its own and writable.
    pub fn new(frames: impl Iterator<Item = u64>) -> Mapped {
        Mapped {
            entries: frames.map(|frame| AtomicU64::new(frame << 1)).collect(),
        }
    }

    /// From now on `page` lies in `frame`.
    pub fn redirect(&self, page: u64, frame: u64, protected: bool) {
        let entry = frame << 1 | u64::from(protected);
        self.entries[page as usize].store(entry, Ordering::Relaxed);
    }

    /// Where `page` lies, and whether it is write-protected.
    #[inline]
    pub fn entry(&self, page: u64) -> (u64, bool) {
        let entry = self.entries[page as usize].load(Ordering::Relaxed);
        (entry >> 1, entry & 1 == 1)
    }

    #[inline]
    fn translate(&self, line: Virtual) -> Logical {
        if line.0 & DIRECT != 0 {
            return Logical(line.0 & !DIRECT);
        }
        let (frame, _) = self.entry(line.0 / PAGE_LINES);
        Logical(frame * PAGE_LINES + line.0 % PAGE_LINES)
    }

    #[inline]
    fn is_protected(&self, line: Virtual) -> bool {
        line.0 & DIRECT == 0 && self.entry(line.0 / PAGE_LINES).1
    }
}

/// The address spaces of all agents.
#[derive(Default)]
pub struct PageTable {
    spaces: Vec<AddressSpace>,
}

impl PageTable {
    /// One space an agent.
    pub fn new(spaces: Vec<AddressSpace>) -> PageTable {
        PageTable { spaces }
    }

    /// Whether pages of any space take frames when they are first touched.
    pub fn takes_frames(&self) -> bool {
        let mut spaces = self.spaces.iter();
        spaces.any(|space| matches!(space, AddressSpace::FirstTouch(_)))
    }

    /// Where `line` of agent `core` lies.
    ///
    /// # Errors
    /// Its page is new, and there is no frame for it.
    #[inline]
    pub fn translate(&mut self, core: usize, line: Virtual) -> Result<Logical, OutOfMemory> {
        match &mut self.spaces[core] {
            AddressSpace::Identity { .. } => Ok(Logical(line.0)),
            AddressSpace::FirstTouch(frames) => frames.map(line),
            AddressSpace::Mapped(mapped) => Ok(mapped.translate(line)),
        }
    }

    /// Whether a store of agent `core` to `line` is a fault.
    #[inline]
    pub fn is_protected(&self, core: usize, line: Virtual) -> bool {
        match &self.spaces[core] {
            AddressSpace::Mapped(mapped) => mapped.is_protected(line),
            AddressSpace::Identity { .. } | AddressSpace::FirstTouch(_) => false,
        }
    }

    /// Where `line` of agent `core` lies, if its page has been touched.
    #[inline]
    pub fn peek(&mut self, core: usize, line: Virtual) -> Option<Logical> {
        match &mut self.spaces[core] {
            AddressSpace::Identity { .. } => Some(Logical(line.0)),
            AddressSpace::FirstTouch(frames) => frames.peek(line),
            AddressSpace::Mapped(mapped) => Some(mapped.translate(line)),
        }
    }

    /// Pages in use.
    pub fn pages(&self) -> u64 {
        let pages = self.spaces.iter().map(|space| match space {
            AddressSpace::Identity { pages } => *pages,
            AddressSpace::FirstTouch(frames) => frames.used(),
            AddressSpace::Mapped(mapped) => mapped.entries.len() as u64,
        });
        pages.sum()
    }
}

/// The frames of a machine, or of one copy's equal share of it.
pub struct Frames {
    base: u64,
    frames: u64,
    skew: u64,
    order: FrameOrder,
    shares: u32,
    used: u64,
    /// The frames of runs of pages, plus one, 0 where there is none: neighbours share a line of the host's caches.
    table: FxHashMap<u64, Box<[u64]>>,
    /// Pages translated of late, each at its number modulo the length, and their frames; [`NO_PAGE`] for none.
    recent: Vec<(u64, u64)>,
}

/// Pages whose frames are found without the table, for the host's sake.
const RECENT: usize = 256;
const NO_PAGE: u64 = u64::MAX;
/// Pages whose frames stand together: 128 MiB. The system gives memory for those that are touched only.
const RUN: usize = 1 << 15;

impl Frames {
    /// All the frames of a memory of `capacity_lines` lines.
    pub fn new(capacity_lines: u64) -> Frames {
        Frames::share(capacity_lines, 0, 1)
    }

    /// Share `index` of `shares` equal ones of a memory of `capacity_lines` lines.
    ///
    /// # Panics
    /// Unless `index < shares`.
    pub fn share(capacity_lines: u64, index: u32, shares: u32) -> Frames {
        assert!(index < shares, "share {index} of {shares}");
        let frames = capacity_lines / PAGE_LINES / u64::from(shares);
        Frames {
            base: u64::from(index) * frames,
            frames,
            skew: 0,
            order: FrameOrder::default(),
            shares,
            used: 0,
            table: FxHashMap::default(),
            recent: vec![(NO_PAGE, 0); RECENT],
        }
    }

    /// The same, whose first page lies so many frames into the share.
    #[must_use]
    pub fn skewed(self, skew: u64) -> Frames {
        Frames { skew, ..self }
    }

    /// The same, whose pages take frames in this order.
    #[must_use]
    pub fn ordered(self, order: FrameOrder) -> Frames {
        Frames { order, ..self }
    }

    /// Where `line` lies; a page's first touch takes the next frame.
    ///
    /// # Errors
    /// When there is no next frame.
    #[inline]
    pub fn map(&mut self, line: Virtual) -> Result<Logical, OutOfMemory> {
        let (page, offset) = (line.0 / PAGE_LINES, line.0 % PAGE_LINES);
        let frame = match self.recent[page as usize % RECENT] {
            (known, frame) if known == page => frame,
            _ => self.find(page)?,
        };
        Ok(Logical(frame * PAGE_LINES + offset))
    }

    /// Where `line` lies, if its page has been touched.
    #[inline]
    pub fn peek(&mut self, line: Virtual) -> Option<Logical> {
        let (page, offset) = (line.0 / PAGE_LINES, line.0 % PAGE_LINES);
        let recent = &mut self.recent[page as usize % RECENT];
        if recent.0 != page {
            let run = self.table.get(&(page / RUN as u64))?;
            *recent = (page, run[page as usize % RUN].checked_sub(1)?);
        }
        let frame = recent.1;
        Some(Logical(frame * PAGE_LINES + offset))
    }

    /// Pages touched so far.
    pub fn used(&self) -> u64 {
        self.used
    }

    fn find(&mut self, page: u64) -> Result<u64, OutOfMemory> {
        let run = self.table.entry(page / RUN as u64);
        let run = run.or_insert_with(|| vec![0; RUN].into_boxed_slice());
        let frame = &mut run[page as usize % RUN];
        if *frame == 0 {
            if self.used >= self.frames {
                return Err(OutOfMemory {
                    frames: self.frames,
                    shares: self.shares,
                });
            }
            let next = (self.used + self.skew) % self.frames;
            *frame = 1
                + self.base
                + match self.order {
                    FrameOrder::InOrder => next,
                    FrameOrder::Scattered => scattered(next, self.frames),
                };
            self.used += 1;
        }
        self.recent[page as usize % RECENT] = (page, *frame - 1);
        Ok(*frame - 1)
    }
}

/// A number below `frames` for each number below it, the same for no two: a few rounds of mixing in the
/// next power of two, until the result is in range.
fn scattered(frame: u64, frames: u64) -> u64 {
    let mask = frames.next_power_of_two() - 1;
    let half = mask.count_ones() / 2 + 1;
    let mut mixed = frame;
    loop {
        for _ in 0..3 {
            mixed = (mixed ^ mixed >> half).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            mixed = mixed.wrapping_add(0x632B_E59B_D9B4_E019) & mask;
        }
        if mixed < frames {
            return mixed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattered_frames_are_all_frames() {
        for frames in [1, 2, 3, 64, 1000] {
            let mut all: Vec<u64> = (0..frames).map(|i| scattered(i, frames)).collect();
            let neighbours = all.windows(2).filter(|w| w[1] == w[0] + 1).count();
            assert!(neighbours as u64 <= frames / 8 + 1);
            all.sort_unstable();
            assert_eq!(all, (0..frames).collect::<Vec<_>>());
        }
    }
}
