//! The frame of a page at its first touch, and how the kernel fills it.

use super::PluginState;
use crate::caches::{NAMELESS, Unfetched};
use crate::codec::RecorderEvent;
use crate::frames::{
    FirstContents, FrameNumbers, FramePlace, PAGE_BYTES, PAGE_LINES, Regions, ZERO,
};
use crate::maps::FILES;
use crate::options::Clearing;
use crate::plugin::{counters, guest};

impl PluginState {
    /// The first line of the address's page, which gets a frame if it needs one.
    pub(super) fn walk(&mut self, vcpu: u32, address: u64, store: bool) -> u64 {
        let page = address / PAGE_BYTES;
        let before = self.out.frames.place(page);
        if let Some(place) = before
            && (place.own || !store)
        {
            return place.line;
        }
        if before.is_some() {
            self.caches
                .forget(page * PAGE_LINES..(page + 1) * PAGE_LINES);
        }
        let line = self.out.maps.line(page * PAGE_BYTES);
        if line >= FILES {
            self.out.first_touch(line, page * PAGE_BYTES);
            return self.settle_in(page, FramePlace { line, own: true });
        }
        match (self.contents(page), store) {
            (FirstContents::Zeros, false) => {
                let line = ZERO * PAGE_LINES;
                self.settle_in(page, FramePlace { line, own: false })
            }
            (FirstContents::Zeros, true) | (FirstContents::SharedZeros, _) => {
                let line = self.frame(page).0;
                self.clear_page(vcpu, line);
                self.settle_in(page, FramePlace { line, own: true })
            }
            (FirstContents::Copied, false) => {
                let line = self.filled_frame(page);
                self.settle_in(page, FramePlace { line, own: false })
            }
            (FirstContents::Shared, _) => {
                let line = self.filled_frame(page);
                self.settle_in(page, FramePlace { line, own: true })
            }
            (FirstContents::Copied, true) => {
                let from = match before {
                    Some(place) => place.line,
                    None => {
                        let line = self.filled_frame(page);
                        self.settle_in(page, FramePlace { line, own: false })
                    }
                };
                let to = self.frame(page).0;
                self.copy_page(vcpu, from, to, address);
                self.settle_in(
                    page,
                    FramePlace {
                        line: to,
                        own: true,
                    },
                )
            }
        }
    }

    /// Puts the page there. Returns its first line.
    pub fn settle_in(&mut self, page: u64, place: FramePlace) -> u64 {
        self.out.frames.put(page, place);
        let frame = place.line / PAGE_LINES;
        if self.tell_frames && frame != ZERO {
            self.out.tell(&RecorderEvent::Frame { page, frame });
        }
        place.line
    }

    fn contents(&mut self, page: u64) -> FirstContents {
        let address = page * PAGE_BYTES;
        if self.regions.find(address).is_none() {
            self.regions = self.regions_of_the_kernel();
        }
        let found = self.regions.find(address);
        if found.is_none() {
            // Pages that the kernel does not show as mapped are not asked for again.
            (self.regions).set(address, address + PAGE_BYTES, FirstContents::Zeros);
        }
        match found.unwrap_or(FirstContents::Zeros) {
            FirstContents::Zeros if self.out.frames.is_inherited(page) => FirstContents::Copied,
            FirstContents::SharedZeros if self.out.frames.is_inherited(page) => {
                FirstContents::Shared
            }
            contents => contents,
        }
    }

    pub(super) fn regions_of_the_kernel(&self) -> Regions {
        let mut regions = Regions::default();
        guest::each_area(|area, permissions, inode| {
            let device_of_zeros = area.path.starts_with("/dev/zero");
            let contents = match permissions.ends_with('s') {
                true if device_of_zeros || area.path.starts_with("/SYSV") => {
                    FirstContents::SharedZeros
                }
                true => FirstContents::Shared,
                false if inode == "0" || device_of_zeros => FirstContents::Zeros,
                false => FirstContents::Copied,
            };
            regions.set(area.start, area.end, contents);
        });
        regions
    }

    /// A frame for the page: its first line, and whether a page had it before.
    fn frame(&mut self, page: u64) -> (u64, bool) {
        let kernel = match self.options.numbers {
            FrameNumbers::Kernel => self.out.frame(page),
            _ => None,
        };
        if kernel == Some(0) {
            self.out.tell(&RecorderEvent::Frame { page, frame: 0 });
        }
        let given = self.out.frames.give(kernel);
        let line = given.frame * PAGE_LINES;
        if given.again && self.options.clearing == Clearing::Unrecorded {
            self.emptied(line);
        }
        (line, given.again)
    }

    /// A frame whose bytes came without a store of a processor: from a device, or another process.
    fn filled_frame(&mut self, page: u64) -> u64 {
        let (line, again) = self.frame(page);
        if again && self.options.clearing != Clearing::Unrecorded {
            self.emptied(line);
        }
        line
    }

    /// Removes a frame from the caches without a write-back, because its contents are gone.
    fn emptied(&mut self, first: u64) {
        for line in first..first + PAGE_LINES {
            self.caches.flush(line, true);
            self.out.captured.remove(&line);
        }
        self.out.forget(first, PAGE_LINES);
        self.out.tell(&RecorderEvent::Gone {
            line: first,
            lines: PAGE_LINES,
        });
    }

    fn clear_page(&mut self, vcpu: u32, first: u64) {
        if self.options.clearing == Clearing::Unrecorded {
            return;
        }
        self.cleared_pages += 1;
        let core = self.core(vcpu);
        counters::add_kernel(self.options.kernel.fault);
        for line in first..first + PAGE_LINES {
            counters::add_kernel(self.options.kernel.line);
            self.overwrite(core, line);
            self.out.zeros = first..line + 1;
        }
        self.out.zeros = 0..0;
        self.settled(first);
    }

    /// Has the kernel copy a frame to one that no page has yet, because of a store to the address. The copy is of the
    /// page's present bytes, so the line that was stored to comes last.
    fn copy_page(&mut self, vcpu: u32, from: u64, to: u64, address: u64) {
        if self.options.clearing == Clearing::Unrecorded {
            return;
        }
        self.copied_pages += 1;
        counters::add_kernel(self.options.kernel.fault);
        let core = self.core(vcpu);
        let (page, last) = (address / PAGE_BYTES, address / 64 % PAGE_LINES);
        for at in (last + 1..PAGE_LINES).chain(0..=last) {
            counters::add_kernel(2 * self.options.kernel.line);
            (self.caches).access(core, from + at, NAMELESS, false, &mut self.out);
            self.overwrite(core, to + at);
            let bytes = self.out.memory_at(page * PAGE_BYTES + at * 64);
            self.out.captured.insert(to + at, bytes);
        }
        self.settled(to);
    }

    fn overwrite(&mut self, core: usize, line: u64) {
        match self.options.clearing {
            Clearing::Fetched => (self.caches).access(core, line, NAMELESS, true, &mut self.out),
            _ => (self.caches).access(core, line, NAMELESS, true, &mut Unfetched(&mut self.out)),
        }
    }

    /// Notes that memory has the frame's bytes from now on.
    fn settled(&mut self, first: u64) {
        if self.out.captured.is_empty() {
            return;
        }
        for line in first..first + PAGE_LINES {
            self.out.captured.remove(&line);
        }
    }
}
