//! Page tables: where the lines of an agent's address space lie in memory. A line is translated when the
//! operation on it executes, so that whoever merges or copies pages can redirect them.
//!
//! A recorded address space takes frames in order of first touch. Within one copy of a trace that order
//! depends on the trace alone, never on the time at which a design lets a page be touched.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;

use crate::config::Machine;
use crate::line::{LINE_BYTES, Logical, Virtual};
use crate::medium::near::{FAR_WEIGHT, NEAR_WEIGHT, PAGES, Pages};
use crate::medium::params::Addresses;
use crate::trace::FILES;

/// Lines in a page of 4 KiB.
pub const PAGE_LINES: u64 = 4096 / LINE_BYTES as u64;

/// An address that has no place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutOfMemory {
    /// More pages were touched than there are frames.
    #[error(
        "the pages touched do not fit in the {} KiB of memory that one of {shares} copies has; give the \
         machine more rows, run fewer copies, or limit the trace", .frames * 4
    )]
    Frames {
        /// The number of existing frames of 4 KiB.
        frames: u64,
        /// Copies among which the memory is shared out.
        shares: u32,
    },
    /// An address that keeps its number is beyond the memory.
    #[error(
        "address {address:#x} is beyond the {capacity} bytes of memory that one of {shares} copies has; give the \
         machine more rows, or --addresses wrapped"
    )]
    Beyond {
        /// The address.
        address: u64,
        /// Bytes of the memory.
        capacity: u64,
        /// Copies among which the memory is shared out.
        shares: u32,
    },
}

/// The addresses of one agent.
pub enum AddressSpace {
    /// Each line lies at its own number, and so many pages are used.
    Identity {
        /// The number of 4 KiB pages.
        pages: u64,
    },
    /// Pages take frames when they are first touched, or have their own.
    Framed(PageFrames),
    /// A kernel decides where pages lie.
    Mapped(Arc<Mapped>),
    /// The space of this other agent.
    Of(usize),
}

/// Lines from here on are memory's own, as a kernel addresses them, whatever the page table contains.
pub const DIRECT: u64 = 1 << 62;

/// A page table that its kernel changes while agents run: the frame of each page, and whether a store to it is a fault.
#[derive(Debug)]
pub struct Mapped {
    /// For each page twice its frame, plus one if it is write-protected.
    entries: Vec<AtomicU64>,
}

impl Mapped {
    /// Places the pages in these frames, each in one of its own and writable.
    pub fn new(frames: impl Iterator<Item = u64>) -> Mapped {
        Mapped {
            entries: frames.map(|frame| AtomicU64::new(frame << 1)).collect(),
        }
    }

    /// Moves `page` to `frame`.
    pub fn redirect(&self, page: u64, frame: u64, protected: bool) {
        let entry = frame << 1 | u64::from(protected);
        self.entries[page as usize].store(entry, Ordering::Relaxed);
    }

    /// The frame of `page`, and whether the page is write-protected.
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
    /// A page table with one space for each agent.
    pub fn new(spaces: Vec<AddressSpace>) -> PageTable {
        PageTable { spaces }
    }

    /// Whether pages of any space take frames when they are first touched.
    pub fn takes_frames(&self) -> bool {
        let mut spaces = self.spaces.iter();
        spaces.any(|space| matches!(space, AddressSpace::Framed(frames) if frames.are_taken()))
    }

    /// Translates `line` of agent `core`.
    ///
    /// # Errors
    /// Its page is new, and there is no frame for it.
    #[inline]
    pub fn translate(&mut self, core: usize, line: Virtual) -> Result<Logical, OutOfMemory> {
        match &mut self.spaces[core] {
            AddressSpace::Identity { .. } => Ok(Logical(line.0)),
            AddressSpace::Framed(frames) => frames.map(line),
            AddressSpace::Mapped(mapped) => Ok(mapped.translate(line)),
            &mut AddressSpace::Of(other) => self.translate(other, line),
        }
    }

    /// Whether a store of agent `core` to `line` is a fault.
    #[inline]
    pub fn is_protected(&self, core: usize, line: Virtual) -> bool {
        match &self.spaces[core] {
            AddressSpace::Mapped(mapped) => mapped.is_protected(line),
            AddressSpace::Identity { .. } | AddressSpace::Framed(_) => false,
            &AddressSpace::Of(other) => self.is_protected(other, line),
        }
    }

    /// Translates `line` of agent `core`, if its page has been touched.
    #[inline]
    pub fn peek(&mut self, core: usize, line: Virtual) -> Option<Logical> {
        match &mut self.spaces[core] {
            AddressSpace::Identity { .. } => Some(Logical(line.0)),
            AddressSpace::Framed(frames) => frames.peek(line),
            AddressSpace::Mapped(mapped) => Some(mapped.translate(line)),
            &mut AddressSpace::Of(other) => self.peek(other, line),
        }
    }

    /// Pages in use.
    pub fn pages(&self) -> u64 {
        let pages = self.spaces.iter().map(|space| match space {
            AddressSpace::Identity { pages } => *pages,
            AddressSpace::Framed(frames) => frames.used(),
            AddressSpace::Mapped(mapped) => mapped.entries.len() as u64,
            AddressSpace::Of(_) => 0,
        });
        pages.sum()
    }
}

/// The frames of a machine, or of one copy's equal share of it.
pub struct PageFrames {
    share: Share,
    used: u64,
    /// Frames of runs of pages, plus one, and 0 where there is none. Neighbours share a cache line of the host.
    table: FxHashMap<u64, Box<[u64]>>,
    /// Recently translated pages, each at its number modulo the length, and their frames; [`NO_PAGE`] for none.
    recent: Vec<(u64, u64)>,
}

/// The number of pages whose frames are found without the table, for the host's sake.
const RECENT: usize = 256;
const NO_PAGE: u64 = u64::MAX;
/// Pages whose frames are kept together: 128 MiB. The system gives memory only for those that are touched.
const RUN: usize = 1 << 15;

impl PageFrames {
    /// All the frames of a memory of `capacity_lines` lines.
    pub fn new(capacity_lines: u64) -> PageFrames {
        PageFrames::share(capacity_lines, 0, 1)
    }

    /// Share `index` of `shares` equal ones of a memory of `capacity_lines` lines.
    ///
    /// # Panics
    /// Unless `index < shares`.
    pub fn share(capacity_lines: u64, index: u32, shares: u32) -> PageFrames {
        assert!(index < shares, "share {index} of {shares}");
        let frames = capacity_lines / PAGE_LINES / u64::from(shares);
        PageFrames {
            share: Share {
                base: u64::from(index) * frames,
                frames,
                skew: 0,
                addresses: Addresses::FirstTouch,
                shares,
                near: None,
            },
            used: 0,
            table: FxHashMap::default(),
            recent: vec![(NO_PAGE, 0); RECENT],
        }
    }

    /// Skips so many frames of the share before the first page.
    #[must_use]
    pub fn skewed(mut self, skew: u64) -> PageFrames {
        self.share.skew = skew;
        self
    }

    /// Places the pages as `addresses` says.
    #[must_use]
    pub fn placed(mut self, addresses: Addresses) -> PageFrames {
        self.share.addresses = addresses;
        self
    }

    /// Adds the share's part of a near medium that lies beside the memory, if there is one.
    #[must_use]
    pub fn beside(mut self, machine: &Machine) -> PageFrames {
        let (far, lines) = (machine.engine.medium.geometry.lines(), machine.near_lines());
        let (frames, share) = (
            lines / PAGE_LINES / u64::from(self.share.shares),
            &mut self.share,
        );
        share.near = (lines > 0).then(|| NearFrames {
            first: far / PAGE_LINES + share.index() * frames,
            frames,
            used: 0,
            pages: machine.settings.get(&PAGES),
            weights: [&NEAR_WEIGHT, &FAR_WEIGHT].map(|weight| machine.settings.get(weight)),
        });
        self
    }

    /// Translates `line`. A page's first touch takes the next frame.
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

    /// Translates `line`, if its page has been touched.
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

    fn are_taken(&self) -> bool {
        !matches!(
            self.share.addresses,
            Addresses::AsTraced | Addresses::Wrapped
        )
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
            *frame = 1 + self.share.frame(page, self.used)?;
            self.used += 1;
        }
        self.recent[page as usize % RECENT] = (page, *frame - 1);
        Ok(*frame - 1)
    }
}

/// One of several equal parts of the memory, and the order in which pages take its frames.
struct Share {
    base: u64,
    frames: u64,
    skew: u64,
    addresses: Addresses,
    shares: u32,
    near: Option<NearFrames>,
}

/// A share's frames of a near medium beside the memory.
struct NearFrames {
    first: u64,
    frames: u64,
    used: u64,
    pages: Pages,
    /// The turns of the near medium, and of the other.
    weights: [u64; 2],
}

impl NearFrames {
    /// The near frame of a page that is touched first when `used` pages have one; `None` if it lies in the other medium.
    fn frame(&mut self, page: u64, used: u64) -> Option<u64> {
        let [near, far] = self.weights;
        let wanted = match self.pages {
            Pages::First => true,
            Pages::Weighted => used % (near + far).max(1) < near,
            Pages::Files => page < FILES / PAGE_LINES,
        };
        (wanted && self.used < self.frames).then(|| {
            self.used += 1;
            self.first + self.used - 1
        })
    }
}

impl Share {
    fn near_frames(&self) -> u64 {
        self.near.as_ref().map_or(0, |near| near.frames)
    }

    /// The number of this share.
    fn index(&self) -> u64 {
        self.base.checked_div(self.frames).unwrap_or(0)
    }

    fn frame(&mut self, page: u64, used: u64) -> Result<u64, OutOfMemory> {
        let (frames, shares) = (self.frames, self.shares);
        let mut used = used;
        if let Some(near) = &mut self.near {
            let taken = match self.addresses {
                Addresses::AsTraced | Addresses::Wrapped => {
                    let page = match self.addresses {
                        Addresses::Wrapped => page % (frames + near.frames).max(1),
                        _ => page,
                    };
                    let beyond = page.checked_sub(frames);
                    beyond
                        .filter(|beyond| *beyond < near.frames)
                        .map(|beyond| near.first + beyond)
                }
                _ => near.frame(page, used),
            };
            if let Some(frame) = taken {
                return Ok(frame);
            }
            used -= near.used;
        }
        let next = || (used + self.skew) % frames;
        let frame = match self.addresses {
            Addresses::AsTraced if page < frames => page,
            Addresses::AsTraced => {
                return Err(OutOfMemory::Beyond {
                    address: page.saturating_mul(4096),
                    capacity: (frames + self.near_frames()) * 4096,
                    shares,
                });
            }
            Addresses::Wrapped if self.near.is_some() => page % (frames + self.near_frames()),
            Addresses::Wrapped if frames > 0 => page % frames,
            _ if used >= frames => return Err(OutOfMemory::Frames { frames, shares }),
            Addresses::Scattered => scattered(next(), frames),
            _ => next(),
        };
        Ok(self.base + frame)
    }
}

/// Permutes the numbers below `frames`: a few rounds of mixing in the next power of two, until the result is in range.
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
