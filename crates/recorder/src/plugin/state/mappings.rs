//! Pages that leave the address space, or can no longer be read: the bytes of their dirty lines are kept.

use std::collections::BTreeSet;

use super::PluginState;
use crate::codec::RecorderEvent;
use crate::frames::{FramePlace, PAGE_BYTES, PAGE_LINES};
use crate::options::Level;

/// The pages that a system call removes from the address space, with their places, and parts of mapped files as
/// address, length and line.
#[derive(Default)]
pub struct Vacated {
    pub pages: Vec<(u64, FramePlace)>,
    /// The first page, and the page after the last, whether they had been touched or not.
    pub range: (u64, u64),
    pub files: Vec<(u64, u64, u64)>,
}

impl PluginState {
    /// Handles addresses `start..end` that will no longer be readable, or be something else. Dirty lines stay in the
    /// caches, and their bytes are kept.
    pub fn vacate(&mut self, vcpu: u32, start: u64, end: u64) -> Vacated {
        self.settle(vcpu);
        // Stores that no callback has told yet must be read now, because later there is no memory to read them from.
        for address in take(&mut self.cleared, start, end) {
            self.touch(vcpu, address, 4, true);
        }
        for address in take(&mut self.late, start, end) {
            self.touch(vcpu, address, 1, true);
        }
        self.leaving(start, end);
        let files = match self.level {
            Level::Memory => self.out.maps.remove(start, end),
            Level::Cpu => self.out.maps.clone().remove(start, end),
        };
        if self.level == Level::Cpu {
            let lines = start / 64..end.div_ceil(64);
            self.empty_buffers(|buffer| lines.contains(&buffer.line));
            for (_, length, line) in &files {
                self.empty_buffers(|b| (*line..line + length / 64).contains(&b.line));
            }
            return Vacated::default();
        }
        self.regions.remove(start, end);
        self.caches.forget(start / 64..end.div_ceil(64));
        (self.out.blind).retain(|page| !(start..end).contains(&(page * PAGE_BYTES)));
        let (first, end) = (start / PAGE_BYTES, end.div_ceil(PAGE_BYTES));
        let taken = self.out.frames.take(first, end);
        Vacated {
            pages: taken,
            range: (first, end),
            files,
        }
    }

    fn leaving(&mut self, start: u64, end: u64) {
        if self.level == Level::Cpu {
            return;
        }
        let (first, end) = (start / PAGE_BYTES, end.div_ceil(PAGE_BYTES));
        let pages = self.out.frames.pages(first, end);
        let firsts: Vec<u64> = pages.iter().map(|(_, place)| place.line).collect();
        if !self.buffers.is_empty() {
            let of: BTreeSet<u64> = firsts.iter().copied().collect();
            self.empty_buffers(|buffer| of.contains(&(buffer.line / PAGE_LINES * PAGE_LINES)));
        }
        self.out.capture(self.caches.dirty_of(&firsts));
    }

    /// Handles pages `start..end` that can no longer be read, but stay.
    pub fn hide(&mut self, vcpu: u32, start: u64, end: u64) {
        self.settle(vcpu);
        if self.level == Level::Cpu {
            self.vacate(vcpu, start, end);
            return;
        }
        self.leaving(start, end);
        let pages = self
            .out
            .frames
            .pages(start / PAGE_BYTES, end.div_ceil(PAGE_BYTES));
        self.out.blind.extend(pages.iter().map(|(page, _)| *page));
    }

    pub fn show(&mut self, start: u64, end: u64) {
        if !self.out.blind.is_empty() {
            (self.out.blind).retain(|page| !(start..end).contains(&(page * PAGE_BYTES)));
        }
    }

    /// Frees the frames of pages that went; a child's pages there are no longer its parent's.
    pub fn free(&mut self, vacated: &Vacated) {
        for (_, place) in &vacated.pages {
            if let Some(frame) = place.frame() {
                self.out.frames.free(frame);
            }
        }
        let (first, end) = vacated.range;
        self.out.frames.disinherit(first, end);
    }

    pub fn put_back(&mut self, vacated: Vacated) {
        for (start, length, line) in vacated.files {
            self.out.maps.add(start, length, line);
        }
        for (page, place) in vacated.pages {
            self.settle_in(page, place);
        }
    }

    /// At level `cpu` the trace's knowledge of `start..end` is void. At level `memory` it is about frames, and stays.
    pub fn gone(&mut self, start: u64, end: u64) {
        if self.level == Level::Memory {
            return;
        }
        let (line, lines) = (start / 64, end.saturating_sub(start) / 64);
        self.out.maps.remove(start, end);
        self.out.forget(line, lines);
        if !self.out.child {
            self.out.tell(&RecorderEvent::Gone { line, lines });
        }
    }
}

fn take(set: &mut BTreeSet<u64>, start: u64, end: u64) -> Vec<u64> {
    let mut taken = set.split_off(&start);
    set.append(&mut taken.split_off(&end));
    taken.into_iter().collect()
}
