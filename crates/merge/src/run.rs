//! Runs of a merging algorithm over machines, pass by pass.

use serde::Serialize;

use super::images::{Images, PageChange, View};
use super::ksm::settings::Knobs;
use super::ksm::{Keys, Ksm, KsmCounters, Maps, ModuleWork, PageSearch};
use super::{Page, PageFrame};
use sardonyx::settings::Settings;

/// The number of pages by their fate in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageCounts {
    pub pages: u64,
    pub frames: u64,
    pub unmerged: u64,
    pub merged_zero: u64,
    /// Frames that these take, with the kernel's zero page.
    pub zero_frames: u64,
    pub merged: u64,
    pub merged_frames: u64,
}

pub trait Runner {
    /// Takes the machines' next snapshots, and makes one pass over all pages. False if `tell` ended it.
    fn pass(&mut self, tell: &mut dyn FnMut(u64) -> bool) -> bool;
    fn counters(&self) -> KsmCounters;
    fn keys(&self) -> Keys;
    fn frames(&self) -> u64;
    fn maps(&self, page: Page) -> Maps;
    /// The merged frame that a page maps, and the number of pages that map it.
    fn sharers(&self, page: Page) -> Option<(u32, u32)>;
    fn has_item(&self, page: Page) -> bool;
    fn breaks(&self) -> u64;
    /// Processor time and time so far, in nanoseconds.
    fn times_ns(&self) -> (u64, u64);
    fn size(&self) -> u64;
    fn pages(&self) -> PageCounts;
    /// Merged frames of zeros, without the kernel's zero page.
    fn zero_nodes(&self) -> u64;
    fn hardware(&self) -> Option<ModuleWork>;
}

#[derive(Debug)]
pub struct PassRun<'i, S> {
    images: &'i Images,
    ksm: Ksm<View<'i>, S>,
}

impl<'i, S: PageSearch> PassRun<'i, S> {
    pub fn new(
        images: &'i Images,
        chosen: Vec<bool>,
        search: S,
        settings: &Settings,
    ) -> PassRun<'i, S> {
        let (view, knobs) = (View::new(images, chosen), Knobs::from_settings(settings));
        PassRun {
            images,
            ksm: Ksm::new(view, search, knobs, images.pages()),
        }
    }
}

impl<S: PageSearch> Runner for PassRun<'_, S> {
    fn pass(&mut self, mut tell: &mut dyn FnMut(u64) -> bool) -> bool {
        for (page, change) in self.ksm.contents.advance() {
            match change {
                PageChange::Came => self.ksm.map(page),
                PageChange::Written => self.ksm.write(page),
                PageChange::Went => self.ksm.unmap(page),
            }
        }
        let exited = self.ksm.contents.exited();
        self.ksm.exit(&exited);
        self.ksm.pass(&mut tell)
    }

    fn counters(&self) -> KsmCounters {
        self.ksm.counters()
    }

    fn keys(&self) -> Keys {
        self.ksm.keys
    }

    fn frames(&self) -> u64 {
        self.ksm.frames()
    }

    fn maps(&self, page: Page) -> Maps {
        self.ksm.maps(page)
    }

    fn sharers(&self, page: Page) -> Option<(u32, u32)> {
        self.ksm.sharers(page)
    }

    fn has_item(&self, page: Page) -> bool {
        self.ksm.has_item(page)
    }

    fn breaks(&self) -> u64 {
        self.ksm.breaks()
    }

    fn times_ns(&self) -> (u64, u64) {
        (self.ksm.cpu_ns(), self.ksm.elapsed_ns())
    }

    fn size(&self) -> u64 {
        self.images.pages() as u64
    }

    fn pages(&self) -> PageCounts {
        let frame = |page| match self.ksm.frame(page) {
            Some(PageFrame::Merged(content)) => Some(content),
            _ => None,
        };
        let maps = |page| self.ksm.maps(page);
        let (pages, zero) = (self.images.pages(), self.images.zero);
        pages_of(pages, zero, maps, frame, self.ksm.merged_frames())
    }

    fn zero_nodes(&self) -> u64 {
        let zero = |(content, _): &(u32, u32)| Some(*content) == self.images.zero;
        self.ksm.merged_frames().filter(zero).count() as u64
    }

    fn hardware(&self) -> Option<ModuleWork> {
        self.ksm.search.work()
    }
}

pub(super) fn pages_of(
    count: usize,
    zero: Option<u32>,
    maps: impl Fn(Page) -> Maps,
    frame: impl Fn(Page) -> Option<u32>,
    merged: impl Iterator<Item = (u32, u32)>,
) -> PageCounts {
    let mut pages = PageCounts::default();
    for page in 0..count as Page {
        match maps(page) {
            Maps::Nothing => continue,
            Maps::Own => pages.unmerged += 1,
            Maps::Zero => pages.merged_zero += 1,
            Maps::Merged if frame(page) == zero => pages.merged_zero += 1,
            Maps::Merged => pages.merged += 1,
        }
        pages.pages += 1;
    }
    let zero_page = (0..count as Page).any(|page| maps(page) == Maps::Zero);
    pages.zero_frames = u64::from(zero_page);
    for (content, _) in merged {
        if Some(content) == zero {
            pages.zero_frames += 1;
        } else {
            pages.merged_frames += 1;
        }
    }
    pages.frames = pages.unmerged + pages.zero_frames + pages.merged_frames;
    pages
}
