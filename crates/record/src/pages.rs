//! The places of a program's pages in memory if it is recorded at the core: at their addresses, or in frames. Below the
//! caches the plugin gives the frames (`crates/recorder/src/frames.rs`).

use rustc_hash::{FxHashMap, FxHashSet};
use sardonyx_base::random::splitmix64;
use sardonyx_recorder::maps::FILES;

pub const PAGE_LINES: u64 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFrames {
    /// Lines have the program's addresses.
    Virtual,
    /// Each page gets the next free frame at its first touch.
    Sequential,
    Random {
        seed: u64,
        frames: u64,
    },
    /// Each page has the kernel's own frame, from `/proc/PID/pagemap`.
    PageMap,
}

pub struct Mapper {
    pages: PageFrames,
    table: FxHashMap<u64, u64>,
    /// Frames to be used again, the last freed first.
    free: Vec<u64>,
    used: FxHashSet<u64>,
    next: u64,
    draws: u64,
}

impl Mapper {
    pub fn new(pages: PageFrames) -> Mapper {
        Mapper {
            pages,
            table: FxHashMap::default(),
            free: Vec::new(),
            used: FxHashSet::default(),
            next: 0,
            draws: 0,
        }
    }

    pub fn maps(&self) -> bool {
        self.pages != PageFrames::Virtual
    }

    /// The line in memory of a line of the program; the first touch of a page gives it a frame.
    pub fn map(&mut self, line: u64) -> Result<u64, String> {
        if !self.maps() {
            return Ok(line);
        }
        let (page, offset) = (line / PAGE_LINES, line % PAGE_LINES);
        if let Some(frame) = self.table.get(&page) {
            return Ok(frame * PAGE_LINES + offset);
        }
        let frame = self.frame(page)?;
        self.table.insert(page, frame);
        Ok(frame * PAGE_LINES + offset)
    }

    fn frame(&mut self, page: u64) -> Result<u64, String> {
        match self.pages {
            PageFrames::Virtual => Ok(page),
            PageFrames::Sequential => Ok(self.free.pop().unwrap_or_else(|| {
                self.next += 1;
                self.next - 1
            })),
            PageFrames::Random { seed, frames } => {
                if self.used.len() as u64 >= frames {
                    return Err(full(frames));
                }
                loop {
                    self.draws += 1;
                    let frame = splitmix64(seed ^ splitmix64(self.draws)) % frames;
                    if self.used.insert(frame) {
                        return Ok(frame);
                    }
                }
            }
            // Pages of shared files, and pages gone before the kernel was asked, get frames above all real ones.
            PageFrames::PageMap => {
                self.next += 1;
                Ok((FILES / PAGE_LINES) + self.next)
            }
        }
    }

    /// Notes the frame that the kernel gave a page.
    ///
    /// # Errors
    /// The kernel does not tell: it answers 0 to users without the right.
    pub fn told(&mut self, page: u64, frame: u64) -> Result<(), String> {
        if frame == 0 {
            return Err("the kernel tells page frames only to root (CAP_SYS_ADMIN); use --pages random or sequential".to_owned());
        }
        self.table.insert(page, frame);
        Ok(())
    }

    /// Frees the frames of pages that went. Returns the first lines of these frames, in order.
    pub fn gone(&mut self, line: u64, lines: u64) -> Vec<u64> {
        let (first, end) = (line / PAGE_LINES, (line + lines) / PAGE_LINES);
        let mut pages: Vec<u64> = if end.saturating_sub(first) < self.table.len() as u64 {
            (first..end).collect()
        } else {
            let pages = self.table.keys().copied();
            pages.filter(|page| (first..end).contains(page)).collect()
        };
        pages.sort_unstable();
        let mut frames = Vec::new();
        for frame in pages.iter().filter_map(|page| self.table.remove(page)) {
            self.used.remove(&frame);
            if self.pages == PageFrames::Sequential {
                self.free.push(frame);
            }
            frames.push(frame * PAGE_LINES);
        }
        frames
    }

    /// Notes that pages moved and kept their frames.
    pub fn moved(&mut self, line: u64, lines: u64, from: u64) {
        for page in 0..lines / PAGE_LINES {
            if let Some(frame) = self.table.remove(&(from / PAGE_LINES + page)) {
                self.table.insert(line / PAGE_LINES + page, frame);
            }
        }
    }
}

pub fn full(frames: u64) -> String {
    let room = frames / 256;
    format!("the program's pages do not fit in {room} MiB of frames; give more with --memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_follow_first_touch_and_are_used_again() {
        let mut mapper = Mapper::new(PageFrames::Sequential);
        assert_eq!(mapper.map(1000 * 64 + 3), Ok(3));
        assert_eq!(mapper.map(7 * 64), Ok(64));
        assert_eq!(mapper.map(1000 * 64), Ok(0));
        mapper.moved(2000 * 64, 64, 1000 * 64);
        assert_eq!(mapper.map(2000 * 64 + 5), Ok(5));
        assert_eq!(mapper.map(1000 * 64), Ok(128));
        assert_eq!(mapper.gone(0, 100 * 64), [64]);
        assert_eq!(mapper.map(9 * 64), Ok(64));
    }

    #[test]
    fn random_frames_are_distinct_and_repeat_with_the_seed() {
        let draw = |seed| {
            let mut mapper = Mapper::new(PageFrames::Random { seed, frames: 64 });
            (0..64)
                .map(|page| mapper.map(page * 64).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let distinct: FxHashSet<_> = draw(3).into_iter().collect();
        assert_eq!(distinct.len(), 64);
        let mut full = Mapper::new(PageFrames::Random { seed: 0, frames: 1 });
        full.map(0).unwrap();
        assert!(full.map(64).unwrap_err().contains("--memory"));
    }

    #[test]
    fn a_kernel_that_keeps_its_frames_to_itself_is_an_error() {
        assert!(Mapper::new(PageFrames::PageMap).told(5, 0).is_err());
        let mut mapper = Mapper::new(PageFrames::PageMap);
        mapper.told(5, 77).unwrap();
        assert_eq!(mapper.map(5 * 64 + 1), Ok(77 * 64 + 1));
    }
}
