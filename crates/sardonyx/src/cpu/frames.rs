//! Pages to frames: a recorded address space on a machine's memory, in order of first touch.
//!
//! Where a page goes depends on the trace alone, never on the time at which a design lets it be touched.

use rustc_hash::FxHashMap;

use crate::line::{LINE_BYTES, Logical, Virtual};

/// Lines in a page of 4 KiB.
pub const PAGE_LINES: u64 = 4096 / LINE_BYTES as u64;

/// Frames by which a copy's first page lies further into its share than the copy before's: odd, so that
/// copies running in step do not all meet in one bank.
const SKEW: u64 = 37;

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

/// The frames of a machine, or of one copy's equal share of it.
pub struct Frames {
    base: u64,
    frames: u64,
    skew: u64,
    shares: u32,
    table: FxHashMap<u64, u64>,
    last: Option<(u32, u64, u64)>,
}

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
            skew: u64::from(index) * SKEW,
            shares,
            table: FxHashMap::default(),
            last: None,
        }
    }

    /// Where `line` of address space `space` lies; a page's first touch takes the next frame.
    ///
    /// # Errors
    /// When there is no next frame.
    #[inline]
    pub fn map(&mut self, space: u32, line: Virtual) -> Result<Logical, OutOfMemory> {
        let (page, offset) = (line.0 / PAGE_LINES, line.0 % PAGE_LINES);
        let frame = match self.last {
            Some((s, p, frame)) if (s, p) == (space, page) => frame,
            _ => self.find(space, page)?,
        };
        Ok(Logical(frame * PAGE_LINES + offset))
    }

    /// Pages touched so far.
    pub fn used(&self) -> u64 {
        self.table.len() as u64
    }

    fn find(&mut self, space: u32, page: u64) -> Result<u64, OutOfMemory> {
        let used = self.used();
        let frame = match self.table.get(&key(space, page)) {
            Some(&frame) => frame,
            None if used >= self.frames => {
                return Err(OutOfMemory {
                    frames: self.frames,
                    shares: self.shares,
                });
            }
            None => {
                let frame = self.base + (used + self.skew) % self.frames;
                self.table.insert(key(space, page), frame);
                frame
            }
        };
        self.last = Some((space, page, frame));
        Ok(frame)
    }
}

/// One number for both, one to one as long as page numbers are below 2^52 (a trace's lines are below
/// 2^58) and address spaces below 2^12; the multiplier is odd, so nothing is lost by it.
fn key(space: u32, page: u64) -> u64 {
    assert!(space < 1 << 12 && page < 1 << 52, "no such address space");
    (u64::from(space) << 52 | page).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
