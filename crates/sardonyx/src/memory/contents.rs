//! What was written last to each line, kept apart from what any design stores: to hold reads to, and for a host that
//! writes parts of lines. Left out: what memory itself holds.

use rustc_hash::FxHashSet;
use sardonyx_base::prefetch;

use crate::line::{LINE_BYTES, Line, Logical, ZERO_LINE};
use crate::medium::segments::{SEGMENT_BYTES, Segments};

const PAGE_LINES: u64 = 64;
/// Lines of a segment, rounded down to a power of two.
const CHUNK: usize = 1 << (SEGMENT_BYTES / LINE_BYTES).ilog2();
/// Announcements between two steps of fetching a line into this computer's caches.
const STEP: usize = 4;

/// The index of each line of a page, from 1; 0 if it was never written.
type PageLines = [u32; PAGE_LINES as usize];

/// A page's number, and its index in `pages`, from 1; 0 if there is none.
type PageSlot = (u64, u32);

/// The newest content of every line.
pub struct Contents {
    /// A hash table whose slots can be prefetched. Their number is a power of two.
    slots: Vec<PageSlot>,
    pages: Vec<PageLines>,
    /// The lines in the order in which they were first written, so that a page of which little is written takes little
    /// memory.
    lines: Segments,
    used: usize,
    ahead: FxHashSet<Logical>,
    coming: [Logical; 2 * STEP],
    announced: usize,
}

impl Default for Contents {
    fn default() -> Contents {
        Contents {
            slots: vec![(0, 0); 64],
            pages: Vec::new(),
            lines: Segments::default(),
            used: 0,
            ahead: FxHashSet::default(),
            coming: [Logical(0); 2 * STEP],
            announced: 0,
        }
    }
}

impl Contents {
    #[inline]
    fn home(&self, page: u64) -> usize {
        let bits = self.slots.len().trailing_zeros();
        (page.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - bits)) as usize
    }

    #[inline]
    fn slot(&self, page: u64) -> usize {
        let mut slot = self.home(page);
        while self.slots[slot].1 != 0 && self.slots[slot].0 != page {
            slot = (slot + 1) % self.slots.len();
        }
        slot
    }

    #[inline]
    fn find(&self, line: Logical) -> Option<&PageLines> {
        let (_, number) = self.slots[self.slot(line.0 / PAGE_LINES)];
        self.pages.get((number as usize).wrapping_sub(1))
    }

    #[inline]
    fn page(&mut self, line: Logical) -> &mut PageLines {
        let page = line.0 / PAGE_LINES;
        let mut slot = self.slot(page);
        if self.slots[slot].1 == 0 {
            if self.pages.len() >= self.slots.len() / 2 {
                let slots = vec![(0, 0); self.slots.len() * 2];
                for known in std::mem::replace(&mut self.slots, slots) {
                    if known.1 != 0 {
                        let slot = self.slot(known.0);
                        self.slots[slot] = known;
                    }
                }
                slot = self.slot(page);
            }
            self.pages.push([0; PAGE_LINES as usize]);
            self.slots[slot] = (page, self.pages.len() as u32);
        }
        &mut self.pages[self.slots[slot].1 as usize - 1]
    }

    fn at(&self, place: u32) -> Option<&Line> {
        let place = (place as usize).checked_sub(1)?;
        Some(&self.lines[place / CHUNK].as_chunks().0[place % CHUNK])
    }

    /// Prefetches what a coming request for the line needs into this computer's caches: first its page's slot, then the
    /// line's index, then the line, a step each.
    pub fn touch(&mut self, line: Logical) {
        prefetch(&self.slots[self.home(line.0 / PAGE_LINES)]);
        let [now, step] = [0, STEP].map(|later| (self.announced + later) % (2 * STEP));
        self.announced += 1;
        let next = self.coming[step];
        if let Some(page) = self.find(next) {
            prefetch(&page[(next.0 % PAGE_LINES) as usize]);
        }
        if let Some(known) = self.get(self.coming[now]) {
            prefetch(known);
        }
        self.coming[now] = line;
    }

    /// The line, if it was ever written.
    #[inline]
    pub fn get(&self, line: Logical) -> Option<&Line> {
        self.at(self.find(line)?[(line.0 % PAGE_LINES) as usize])
    }

    /// Whether memory does not have the line's newest content, not even in flight.
    pub fn is_ahead(&self, line: Logical) -> bool {
        !self.ahead.is_empty() && self.ahead.contains(&line)
    }

    /// Sets the line to `data`. If `ahead`, memory does not have it yet.
    #[inline]
    pub fn put(&mut self, line: Logical, data: &Line, ahead: bool) {
        let at = (line.0 % PAGE_LINES) as usize;
        let free = u32::try_from(self.used + 1).expect("fewer lines than 256 GiB have");
        let page = self.page(line);
        let is_new = page[at] == 0;
        if is_new {
            page[at] = free;
        }
        let place = page[at] as usize - 1;
        if ahead {
            self.ahead.insert(line);
        } else if !self.ahead.is_empty() {
            self.ahead.remove(&line);
        }
        if is_new {
            self.used += 1;
            if place == self.lines.len() * CHUNK {
                self.lines.add();
            }
        }
        self.lines[place / CHUNK].as_chunks_mut().0[place % CHUNK] = *data;
    }

    /// The line with `bytes` at byte `from`, over `before` if it was never written.
    pub fn with(
        &self,
        line: Logical,
        from: usize,
        bytes: &[u8],
        before: impl FnOnce() -> Line,
    ) -> Line {
        let mut whole = match bytes.len() {
            LINE_BYTES => ZERO_LINE,
            _ => self.get(line).copied().unwrap_or_else(before),
        };
        whole[from..from + bytes.len()].copy_from_slice(bytes);
        whole
    }

    /// The lines that were written, in order.
    pub fn written(&self) -> Vec<Logical> {
        let mut lines = Vec::new();
        for &(page, number) in self.slots.iter().filter(|slot| slot.1 != 0) {
            let places = &self.pages[number as usize - 1];
            let set = (0..PAGE_LINES).filter(|at| places[*at as usize] != 0);
            lines.extend(set.map(|at| Logical(page * PAGE_LINES + at)));
        }
        lines.sort_unstable();
        lines
    }

    /// Takes the lines whose newest content memory does not have. From now on memory counts as having it.
    pub fn take_ahead(&mut self) -> Vec<Logical> {
        let mut lines: Vec<Logical> = self.ahead.drain().collect();
        lines.sort_unstable();
        lines
    }

    /// Forgets that the line was written.
    pub fn remove(&mut self, line: Logical) {
        if self.get(line).is_some() {
            self.page(line)[(line.0 % PAGE_LINES) as usize] = 0;
        }
    }

    /// The number of pages with a written line.
    pub fn pages(&self) -> u64 {
        self.pages.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_lines_go_over_what_was_there() {
        let mut contents = Contents::default();
        let line = Logical(70);
        assert_eq!(contents.get(line), None);
        let whole = contents.with(line, 60, &[1, 2], || [9; 64]);
        assert_eq!((whole[59], whole[60], whole[61], whole[62]), (9, 1, 2, 9));
        contents.put(line, &whole, false);
        let whole = contents.with(line, 0, &[7], || [8; 64]);
        assert_eq!((whole[0], whole[1], whole[60]), (7, 9, 1));
        contents.put(line, &whole, true);
        assert_eq!(contents.get(line), Some(&whole));
        assert!(contents.is_ahead(line) && !contents.is_ahead(Logical(71)));
        assert_eq!(contents.take_ahead(), [line]);
        assert!(!contents.is_ahead(line) && contents.take_ahead().is_empty());
        assert_eq!(contents.written(), [line]);
        contents.put(line, &[3; 64], true);
        contents.put(line, &[4; 64], false);
        assert!(!contents.is_ahead(line));
        contents.remove(line);
        assert_eq!(contents.get(line), None);
        assert_eq!(contents.pages(), 1);
    }

    #[test]
    fn lines_of_many_pages_are_kept_apart() {
        let mut contents = Contents::default();
        let lines = (0..20_000u64).map(|k| Logical(k * 977 % (1 << 24)));
        for line in lines.clone() {
            let bytes = std::array::from_fn(|at| (line.0 >> (8 * (at % 3))) as u8);
            contents.put(line, &bytes, false);
        }
        for line in lines.clone() {
            let known = contents.get(line).expect("it was written");
            assert_eq!(
                u64::from(known[0]) | u64::from(known[1]) << 8,
                line.0 & 0xffff
            );
        }
        let mut sorted: Vec<Logical> = lines.collect();
        sorted.sort_unstable();
        assert_eq!(contents.written(), sorted);
        assert_eq!(contents.get(Logical(1)), None);
    }
}
