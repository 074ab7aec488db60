//! Runs of a merging algorithm over machines, pass by pass.

use super::images::{Change, Images, View};
use super::ksm::settings::Knobs;
use super::ksm::{Counters, Keys, Ksm, Maps, Search, Software};
use super::pageforge::Work;
use super::question::{self, Pages};
use super::{Frame, Page};
use crate::settings::Settings;

/// A run that goes on pass by pass.
pub trait Runner {
    /// The machines' next snapshots, and one pass over all pages. False if `tell` ended it.
    fn pass(&mut self, tell: &mut dyn FnMut(u64) -> bool) -> bool;
    /// The kernel's counters.
    fn counters(&self) -> Counters;
    /// What the keys have said.
    fn keys(&self) -> Keys;
    /// Page frames in use.
    fn frames(&self) -> u64;
    /// What a page maps.
    fn maps(&self, page: Page) -> Maps;
    /// Processor time and time so far, in nanoseconds.
    fn times_ns(&self) -> (u64, u64);
    /// Pages that it may see.
    fn size(&self) -> u64;
    /// What has become of the pages.
    fn pages(&self) -> Pages;
    /// Merged frames of zeros, the kernel's zero page aside.
    fn zero_nodes(&self) -> u64;
    /// What PageForge's hardware has done.
    fn hardware(&self) -> Option<Work>;
}

/// The run of an algorithm on images.
#[derive(Debug)]
pub struct Run<'i, S> {
    images: &'i Images,
    ksm: Ksm<View<'i>, S>,
}

impl<'i> Run<'i, Software> {
    /// KSM.
    pub fn ksm(images: &'i Images, chosen: Vec<bool>, settings: &Settings) -> Run<'i, Software> {
        let knobs = Knobs::of(settings);
        Run::new(images, chosen, Software::new(knobs.checksum), knobs)
    }
}

impl<'i, S: Search> Run<'i, S> {
    /// An algorithm with that search.
    pub fn new(images: &'i Images, chosen: Vec<bool>, search: S, knobs: Knobs) -> Run<'i, S> {
        let view = View::new(images, chosen);
        Run {
            images,
            ksm: Ksm::new(view, search, knobs, images.pages()),
        }
    }
}

impl<S: Search> Runner for Run<'_, S> {
    fn pass(&mut self, mut tell: &mut dyn FnMut(u64) -> bool) -> bool {
        for (page, change) in self.ksm.contents.advance() {
            match change {
                Change::Came => self.ksm.map(page),
                Change::Written => self.ksm.write(page),
                Change::Went => self.ksm.unmap(page),
            }
        }
        let exited = self.ksm.contents.exited();
        self.ksm.exit(&exited);
        self.ksm.pass(&mut tell)
    }

    fn counters(&self) -> Counters {
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

    fn times_ns(&self) -> (u64, u64) {
        (self.ksm.cpu_ns(), self.ksm.elapsed_ns())
    }

    fn size(&self) -> u64 {
        self.images.pages() as u64
    }

    fn pages(&self) -> Pages {
        let frame = |page| match self.ksm.frame(page) {
            Some(Frame::Merged(content)) => Some(content),
            _ => None,
        };
        let maps = |page| self.ksm.maps(page);
        let (pages, zero) = (self.images.pages(), self.images.zero);
        question::pages_of(pages, zero, maps, frame, self.ksm.merged_frames())
    }

    fn zero_nodes(&self) -> u64 {
        let zero = |(content, _): &(u32, u32)| Some(*content) == self.images.zero;
        self.ksm.merged_frames().filter(zero).count() as u64
    }

    fn hardware(&self) -> Option<Work> {
        self.ksm.search.work()
    }
}
