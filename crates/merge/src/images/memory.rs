//! Pages in plain memory that a caller writes as it likes, compared byte by byte.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::checksum;
use crate::{Bytes, Checksum, Contents, Frame, PAGE_BYTES, Page};
use sardonyx::line::{LINE_BYTES, Line};

/// Some pages, and the merged frames made of them.
#[derive(Debug)]
pub struct Memory {
    pub own: Vec<Bytes>,
    frozen: FxHashMap<u32, Bytes>,
    next: u32,
}

impl Memory {
    pub fn new(own: Vec<Bytes>) -> Memory {
        Memory {
            own,
            frozen: FxHashMap::default(),
            next: 0,
        }
    }

    /// The bytes of a frame.
    pub fn bytes(&self, frame: Frame) -> &Bytes {
        match frame {
            Frame::Own(page) => &self.own[page as usize],
            Frame::Merged(frozen) => &self.frozen[&frozen],
        }
    }

    pub fn kept(&self) -> usize {
        self.frozen.len()
    }
}

impl Contents for Memory {
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

    fn compare(&mut self, a: Frame, b: Frame) -> Ordering {
        self.bytes(a).cmp(self.bytes(b))
    }

    fn identical(&mut self, a: Frame, b: Frame) -> bool {
        self.bytes(a) == self.bytes(b)
    }

    fn line(&mut self, frame: Frame, line: usize) -> Line {
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
