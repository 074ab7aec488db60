//! The places of the machines' pages in memory: page tables, merged frames, and the lines of the kernel's trees.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::images::Images;
use crate::{Page, PageFrame};
use sardonyx::machine::{Mapped, PAGE_LINES};

#[derive(Debug)]
pub struct Frames {
    tables: Vec<Arc<Mapped>>,
    firsts: Vec<Page>,
    own: Vec<u64>,
    merged: FxHashMap<u32, u64>,
    zero: Option<u64>,
    /// The next frame that was never used. None is given twice, so that nothing still on its way can reach another
    /// page.
    next: u64,
    nodes_at: u64,
}

impl Frames {
    /// Puts page k of all machines into frame k, and the kernel's nodes into the frames from `nodes_at` on.
    pub fn new(images: &Images, nodes_at: u64) -> Frames {
        let spaces = images.machines.iter().map(|machine| &machine.space);
        let table = |first, end| Arc::new(Mapped::new(u64::from(first)..u64::from(end)));
        let pages = images.pages() as u64;
        Frames {
            tables: spaces.clone().map(|s| table(s.first, s.end)).collect(),
            firsts: spaces.map(|space| space.first).collect(),
            own: (0..pages).collect(),
            merged: FxHashMap::default(),
            zero: None,
            next: pages,
            nodes_at,
        }
    }

    pub fn tables(&self) -> &[Arc<Mapped>] {
        &self.tables
    }

    pub fn pages(&self) -> Page {
        self.own.len() as Page
    }

    pub fn page(&self, machine: usize, number: u64) -> Page {
        self.firsts[machine] + number as Page
    }

    pub fn own(&self, page: Page) -> u64 {
        self.own[page as usize]
    }

    /// Notes that the page maps a merged frame or the zero page, and returns which.
    pub fn share(&mut self, page: Page, frozen: Option<u32>) -> u64 {
        let own = self.own(page);
        let frame = match frozen {
            Some(frozen) => *self.merged.entry(frozen).or_insert(own),
            None => *self.zero.get_or_insert(own),
        };
        let machine = self.firsts.partition_point(|first| *first <= page) - 1;
        let number = u64::from(page - self.firsts[machine]);
        self.tables[machine].redirect(number, frame, true);
        frame
    }

    /// Gives a machine's page a frame of its own. Returns the frame that it mapped and the new one.
    pub fn unshare(&mut self, machine: usize, number: u64) -> (u64, u64) {
        let (old, _) = self.tables[machine].entry(number);
        let (page, new) = (self.page(machine, number), self.next);
        self.next += 1;
        self.own[page as usize] = new;
        self.tables[machine].redirect(number, new, false);
        (old, new)
    }

    /// The line of a frame; one that is just being merged is still `page`'s own.
    pub fn place(&self, frame: PageFrame, page: Page) -> u64 {
        match frame {
            PageFrame::Own(page) => self.own(page),
            PageFrame::Merged(frozen) => {
                let merged = self.merged.get(&frozen);
                *merged.unwrap_or(&self.own[page as usize])
            }
        }
    }

    pub fn node(&self, frame: PageFrame) -> u64 {
        let number = match frame {
            PageFrame::Own(page) => u64::from(page) * 2,
            PageFrame::Merged(frozen) => u64::from(frozen) * 2 + 1,
        };
        self.nodes_at * PAGE_LINES + number
    }
}
