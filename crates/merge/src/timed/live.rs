//! The pages of running machines: those of the images, written by their processors meanwhile. The merging's reads of
//! them are logged on demand, so that they can be repeated in time.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use crate::images::{View, checksum};
use crate::{Checksum, PAGE_BYTES, Page, PageBytes, PageFrame, PageStore};
use sardonyx::line::{LINE_BYTES, Line};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Software has compared two frames, reading this many lines of each.
    Compare(PageFrame, PageFrame, u8),
    /// Software has compared two frames under write protection.
    Final(PageFrame, PageFrame, u8),
    Hash(Page),
    Merged(Page, u32),
    Zeroed(Page),
    /// The Scan Table is filled, after this many calls of its functions in all, and set to work.
    Hardware(u64),
    /// The table has compared this many lines of the candidate with those of another page.
    Pair(PageFrame, PageFrame, u8),
    /// The table has read a line of the candidate for the key alone.
    KeyLine(PageFrame, u8),
}

#[derive(Debug)]
pub struct Live<'i> {
    view: View<'i>,
    /// Own frames whose bytes differ from an image's.
    written: FxHashMap<Page, Box<PageBytes>>,
    /// The contents of pages at the time of their keys, if they have changed since.
    keyed: FxHashMap<Page, Box<PageBytes>>,
    frozen: FxHashMap<u32, Box<PageBytes>>,
    next_frozen: u32,
    pub log: Option<Vec<Touch>>,
}

impl<'i> Live<'i> {
    pub fn new(mut view: View<'i>) -> Live<'i> {
        for _ in 0..view.images().snapshots() {
            view.advance();
        }
        Live {
            next_frozen: view.images().contents() as u32,
            view,
            written: FxHashMap::default(),
            keyed: FxHashMap::default(),
            frozen: FxHashMap::default(),
            log: None,
        }
    }

    /// `None` after the last page.
    pub fn exists(&self, page: Page) -> Option<bool> {
        let images = self.view.images();
        let known = (page as usize) < images.pages();
        known.then(|| self.view.content(page).is_some())
    }

    pub fn bytes(&self, frame: PageFrame) -> &PageBytes {
        let written = match frame {
            PageFrame::Own(page) => self.written.get(&page),
            PageFrame::Merged(frozen) => self.frozen.get(&frozen),
        };
        match written {
            Some(bytes) => bytes,
            None => self.view.images().bytes(self.image_of(frame)),
        }
    }

    pub fn store(&mut self, page: Page, from: usize, bytes: &[u8]) {
        let image = &self.view;
        let own = self.written.entry(page).or_insert_with(|| {
            let content = image.content(page).expect("a page that is there");
            Box::new(*image.images().bytes(content))
        });
        own[from..from + bytes.len()].copy_from_slice(bytes);
    }

    /// Gives the page a frame of its own again, a copy of a merged one.
    pub fn copy(&mut self, page: Page, from: PageFrame) {
        match from {
            PageFrame::Merged(content) if !self.frozen.contains_key(&content) => {
                self.written.remove(&page);
                self.view.put(page, content);
            }
            from => {
                let bytes = Box::new(*self.bytes(from));
                self.written.insert(page, bytes);
            }
        }
    }

    pub fn copy_zero(&mut self, page: Page) {
        self.written.insert(page, Box::new([0; PAGE_BYTES]));
    }

    fn image_of(&self, frame: PageFrame) -> u32 {
        match frame {
            PageFrame::Own(page) => self.view.content(page).expect("a page that is there"),
            PageFrame::Merged(content) => content,
        }
    }

    fn is_written(&self, frame: PageFrame) -> bool {
        match frame {
            PageFrame::Own(page) => self.written.contains_key(&page),
            PageFrame::Merged(frozen) => self.frozen.contains_key(&frozen),
        }
    }

    fn order(&self, a: PageFrame, b: PageFrame) -> Ordering {
        if self.is_written(a) || self.is_written(b) {
            return self.bytes(a).cmp(self.bytes(b));
        }
        self.image_of(a).cmp(&self.image_of(b))
    }

    /// The number of lines of each frame that a comparison reads until it ends.
    fn lines_read(&self, a: PageFrame, b: PageFrame) -> u8 {
        let (a, b) = (self.bytes(a), self.bytes(b));
        let lines = a.chunks(LINE_BYTES).zip(b.chunks(LINE_BYTES));
        let equal = lines.take_while(|(a, b)| a == b).count();
        (equal + 1).min(PAGE_BYTES / LINE_BYTES) as u8
    }

    fn note(&mut self, event: impl FnOnce(&Live) -> Touch) {
        if self.log.is_none() {
            return;
        }
        let event = event(self);
        if let Some(log) = &mut self.log {
            log.push(event);
        }
    }
}

impl PageStore for Live<'_> {
    fn checksum(&mut self, page: Page, kind: Checksum) -> u32 {
        self.note(|_| Touch::Hash(page));
        match self.written.get(&page) {
            Some(bytes) => checksum(bytes, kind),
            None => self.view.checksum(page, kind),
        }
    }

    fn unchanged(&self, page: Page) -> Option<bool> {
        if !self.written.contains_key(&page) && !self.keyed.contains_key(&page) {
            return self.view.unchanged(page);
        }
        let then = self.keyed.get(&page).map(|bytes| &**bytes);
        let image = |content| self.view.images().bytes(content);
        let then = then.or_else(|| self.view.keyed_content(page).map(image));
        Some(then == Some(self.bytes(PageFrame::Own(page))))
    }

    fn keyed(&mut self, page: Page) {
        match self.written.get(&page) {
            Some(bytes) => {
                self.keyed.insert(page, bytes.clone());
            }
            None => {
                self.keyed.remove(&page);
                self.view.keyed(page);
            }
        }
    }

    fn is_zero(&mut self, page: Page) -> bool {
        *self.bytes(PageFrame::Own(page)) == [0; PAGE_BYTES]
    }

    fn compare(&mut self, a: PageFrame, b: PageFrame) -> Ordering {
        self.note(|live| Touch::Compare(a, b, live.lines_read(a, b)));
        self.order(a, b)
    }

    fn identical(&mut self, a: PageFrame, b: PageFrame) -> bool {
        self.note(|live| Touch::Final(a, b, live.lines_read(a, b)));
        self.order(a, b).is_eq()
    }

    fn line(&mut self, frame: PageFrame, line: usize) -> Line {
        // Lines that were read for a comparison are not read again for the key.
        let read = self.log.as_ref().and_then(|log| log.last());
        let read = matches!(read, Some(Touch::Pair(a, _, lines)) if *a == frame && line < usize::from(*lines));
        if !read {
            self.note(|_| Touch::KeyLine(frame, line as u8));
        }
        self.bytes(frame).as_chunks::<LINE_BYTES>().0[line]
    }

    fn line_order(&mut self, a: PageFrame, b: PageFrame, line: usize) -> Ordering {
        if let Some(log) = &mut self.log {
            let lines = line as u8 + 1;
            match log.last_mut() {
                Some(Touch::Pair(x, y, read)) if line > 0 && (*x, *y) == (a, b) => *read = lines,
                _ => log.push(Touch::Pair(a, b, lines)),
            }
        }
        if self.is_written(a) || self.is_written(b) {
            let line_of = |frame| self.bytes(frame).as_chunks::<LINE_BYTES>().0[line];
            return line_of(a).cmp(&line_of(b));
        }
        self.view.line_order(a, b, line)
    }

    fn freeze(&mut self, page: Page) -> u32 {
        let Some(bytes) = self.written.get(&page) else {
            return self.view.freeze(page);
        };
        let number = self.next_frozen;
        self.next_frozen += 1;
        self.frozen.insert(number, bytes.clone());
        number
    }

    fn release(&mut self, frozen: u32) {
        self.frozen.remove(&frozen);
    }

    fn merged(&mut self, page: Page, frozen: u32) {
        self.note(|_| Touch::Merged(page, frozen));
    }

    fn zeroed(&mut self, page: Page) {
        self.note(|_| Touch::Zeroed(page));
    }

    fn hardware_runs(&mut self, calls: u64) {
        self.note(|_| Touch::Hardware(calls));
    }
}
