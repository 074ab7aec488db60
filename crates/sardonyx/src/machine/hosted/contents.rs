//! What the host has written last, line by line: for parts of lines, for functional reads, and to compare with what
//! memory reads. Left out: what memory itself holds.

use rustc_hash::FxHashMap;
use sardonyx_base::prefetch;

use super::super::PAGE_LINES;
use crate::line::{LINE_BYTES, Line, Logical, ZERO_LINE};

/// Pages that are found without the table: a power of two.
const RECENT: usize = 64;
const NO_PAGE: u64 = u64::MAX;

const CHUNK: usize = 4096;

struct Page {
    /// Where each line is, if it was written.
    places: [u32; PAGE_LINES as usize],
    /// The lines that were written, a bit each, and those that memory does not have yet.
    written: u64,
    ahead: u64,
}

/// The newest content of every line.
pub struct Contents {
    pages: Vec<Page>,
    /// The lines, in the order in which they were first written: a page of which little is written takes little.
    lines: Vec<Box<[Line]>>,
    used: usize,
    table: FxHashMap<u64, u32>,
    recent: [(u64, u32); RECENT],
    ahead: usize,
}

impl Contents {
    /// Nothing written.
    pub fn new() -> Contents {
        Contents {
            pages: Vec::new(),
            lines: Vec::new(),
            used: 0,
            table: FxHashMap::default(),
            recent: [(NO_PAGE, 0); RECENT],
            ahead: 0,
        }
    }

    fn find(&mut self, line: Logical) -> Option<(usize, usize)> {
        let (page, at) = (line.0 / PAGE_LINES, (line.0 % PAGE_LINES) as usize);
        let recent = &mut self.recent[page as usize % RECENT];
        if recent.0 != page {
            *recent = (page, *self.table.get(&page)?);
        }
        Some((recent.1 as usize, at))
    }

    /// Fetches what a coming request for the line needs into this computer's caches.
    pub fn touch(&mut self, line: Logical) {
        if let Some((page, at)) = self.find(line)
            && self.pages[page].written >> at & 1 == 1
        {
            prefetch(self.at(self.pages[page].places[at]));
        }
    }

    /// Notes that the page of `line` is in use, and keeps nothing of it.
    pub fn note(&mut self, line: Logical) {
        let page = line.0 / PAGE_LINES;
        let recent = &mut self.recent[page as usize % RECENT];
        if recent.0 != page {
            self.table.insert(page, 0);
            *recent = (page, 0);
        }
    }

    /// The line, if it was ever written.
    pub fn get(&mut self, line: Logical) -> Option<&Line> {
        let (page, at) = self.find(line)?;
        let page = &self.pages[page];
        (page.written >> at & 1 == 1).then(|| self.at(page.places[at]))
    }

    fn at(&self, place: u32) -> &Line {
        &self.lines[place as usize / CHUNK][place as usize % CHUNK]
    }

    fn place(&mut self) -> u32 {
        if self.used == self.lines.len() * CHUNK {
            self.lines.push(vec![ZERO_LINE; CHUNK].into());
        }
        self.used += 1;
        u32::try_from(self.used - 1).expect("fewer lines than 256 GiB have")
    }

    /// Whether memory does not have the line's newest content yet, not even in flight.
    pub fn is_ahead(&mut self, line: Logical) -> bool {
        if self.ahead == 0 {
            return false;
        }
        let found = self.find(line);
        found.is_some_and(|(page, at)| self.pages[page].ahead >> at & 1 == 1)
    }

    /// Puts `bytes` at byte `from` of the line, over `before` if it was never written, and returns the whole line.
    /// `ahead`: memory does not have it yet.
    pub fn put(
        &mut self,
        line: Logical,
        from: usize,
        bytes: &[u8],
        before: impl FnOnce() -> Line,
        ahead: bool,
    ) -> Line {
        let (page, at) = match self.find(line) {
            Some(found) => found,
            None => self.add(line),
        };
        let is_new = self.pages[page].written >> at & 1 == 0;
        if is_new {
            self.pages[page].places[at] = self.place();
        }
        let page = &mut self.pages[page];
        let place = page.places[at] as usize;
        let slot = &mut self.lines[place / CHUNK][place % CHUNK];
        if is_new && bytes.len() < LINE_BYTES {
            *slot = before();
        }
        slot[from..from + bytes.len()].copy_from_slice(bytes);
        page.written |= 1 << at;
        let was = page.ahead >> at & 1;
        page.ahead = page.ahead & !(1 << at) | u64::from(ahead) << at;
        self.ahead = self.ahead + usize::from(ahead) - was as usize;
        *slot
    }

    fn add(&mut self, line: Logical) -> (usize, usize) {
        let (number, at) = (line.0 / PAGE_LINES, (line.0 % PAGE_LINES) as usize);
        let index = self.pages.len() as u32;
        self.pages.push(Page {
            places: [0; PAGE_LINES as usize],
            written: 0,
            ahead: 0,
        });
        self.table.insert(number, index);
        self.recent[number as usize % RECENT] = (number, index);
        (index as usize, at)
    }

    /// The lines that were written, in order.
    pub fn written(&self) -> Vec<Logical> {
        self.lines(|page| page.written)
    }

    /// The lines whose newest content memory does not have yet; from now on it counts as having it.
    pub fn take_ahead(&mut self) -> Vec<Logical> {
        if self.ahead == 0 {
            return Vec::new();
        }
        let lines = self.lines(|page| page.ahead);
        self.pages.iter_mut().for_each(|page| page.ahead = 0);
        self.ahead = 0;
        lines
    }

    fn lines(&self, of: impl Fn(&Page) -> u64) -> Vec<Logical> {
        let mut lines = Vec::new();
        for (&number, &index) in &self.table {
            let mask = of(&self.pages[index as usize]);
            let set = (0..PAGE_LINES).filter(|at| mask >> at & 1 == 1);
            lines.extend(set.map(|at| Logical(number * PAGE_LINES + at)));
        }
        lines.sort_unstable();
        lines
    }

    /// Forgets that the line was written.
    pub fn remove(&mut self, line: Logical) {
        if let Some((page, at)) = self.find(line) {
            self.pages[page].written &= !(1 << at);
        }
    }

    /// Pages of which something was written.
    pub fn pages(&self) -> u64 {
        self.table.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_lines_go_over_what_was_there() {
        let mut contents = Contents::new();
        let line = Logical(70);
        assert_eq!(contents.get(line), None);
        let whole = contents.put(line, 60, &[1, 2], || [9; 64], false);
        assert_eq!((whole[59], whole[60], whole[61], whole[62]), (9, 1, 2, 9));
        let whole = contents.put(line, 0, &[7], || [8; 64], true);
        assert_eq!((whole[0], whole[1], whole[60]), (7, 9, 1));
        assert!(contents.is_ahead(line) && !contents.is_ahead(Logical(71)));
        assert_eq!(contents.take_ahead(), [line]);
        assert!(!contents.is_ahead(line) && contents.take_ahead().is_empty());
        assert_eq!(contents.written(), [line]);
        contents.put(line, 0, &[3; 64], || [0; 64], true);
        contents.put(line, 0, &[4; 64], || [0; 64], false);
        assert!(!contents.is_ahead(line));
        contents.remove(line);
        assert_eq!(contents.get(line), None);
        assert_eq!(contents.pages(), 1);
    }
}
