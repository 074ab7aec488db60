//! Pages in plain memory that a caller writes as it likes, compared byte by byte.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::checksum;
use crate::{Checksum, PAGE_BYTES, Page, PageBytes, PageFrame, PageStore};
use sardonyx::line::{LINE_BYTES, Line};

/// Some pages, and the merged frames made of them.
#[derive(Debug)]
pub struct ModelMemory {
    pub own: Vec<PageBytes>,
    frozen: FxHashMap<u32, PageBytes>,
    next: u32,
}

impl ModelMemory {
    pub fn new(own: Vec<PageBytes>) -> ModelMemory {
        ModelMemory {
            own,
            frozen: FxHashMap::default(),
            next: 0,
        }
    }

    pub fn bytes(&self, frame: PageFrame) -> &PageBytes {
        match frame {
            PageFrame::Own(page) => &self.own[page as usize],
            PageFrame::Merged(frozen) => &self.frozen[&frozen],
        }
    }
}

impl PageStore for ModelMemory {
    fn checksum(&mut self, page: Page, kind: Checksum) -> u32 {
        checksum(&self.own[page as usize], kind)
    }

    fn unchanged(&self, _: Page) -> Option<bool> {
        None
    }

    fn keyed(&mut self, _: Page) {}

    fn is_zero(&mut self, page: Page) -> bool {
        self.own[page as usize] == [0; PAGE_BYTES]
    }

    fn compare(&mut self, a: PageFrame, b: PageFrame) -> Ordering {
        self.bytes(a).cmp(self.bytes(b))
    }

    fn identical(&mut self, a: PageFrame, b: PageFrame) -> bool {
        self.bytes(a) == self.bytes(b)
    }

    fn line(&mut self, frame: PageFrame, line: usize) -> Line {
        let start = line * LINE_BYTES;
        let bytes = &self.bytes(frame)[start..start + LINE_BYTES];
        bytes.try_into().expect("a line's bytes")
    }

    fn freeze(&mut self, page: Page) -> u32 {
        self.next += 1;
        self.frozen.insert(self.next, self.own[page as usize]);
        self.next
    }

    fn release(&mut self, frozen: u32) {
        self.frozen.remove(&frozen).expect("a frame is freed once");
    }
}
