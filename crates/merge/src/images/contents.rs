//! The contents of all machines' pages, by the numbers that [`ContentPool`] gave them, and what a run sees of them pass by
//! pass. The numbers are in the order of the bytes, so comparing two pages is comparing two numbers.

use std::cmp::Ordering;
use std::ops::Range;

use super::pool::{ContentPool, NONE, memory_ended};
use super::{ImageError, ImageMachine, MachineSpace, ProcessPages};
use crate::{Checksum, Page, PageBytes, PageFrame, PageStore};
use sardonyx::line::{LINE_BYTES, Line};

#[derive(Debug)]
pub struct MachineImage {
    pub name: String,
    pub space: MachineSpace,
    snapshots: Vec<Vec<u32>>,
    /// Pages that the last snapshot names but does not hold.
    pub missing: u64,
    /// See [`super::Snapshot::holes`].
    pub holes: u64,
    pub process: Option<ProcessPages>,
    /// See [`ImageMachine::ended`].
    pub ended: Option<u32>,
}

impl MachineImage {
    /// The number of pages that an earlier snapshot has and the last does not.
    pub fn gone(&self) -> usize {
        let Some((last, earlier)) = self.snapshots.split_last() else {
            return 0;
        };
        let had = |page: usize| earlier.iter().any(|snapshot| snapshot[page] != NONE);
        let gone = (0..last.len()).filter(|page| last[*page] == NONE && had(*page));
        gone.count()
    }
}

#[derive(Debug)]
pub struct Images {
    pool: ContentPool,
    pub machines: Vec<MachineImage>,
    pub zero: Option<u32>,
}

impl Images {
    /// Reads all snapshots of the machines. `tell` is told the pages done and in all; if it answers false this returns
    /// `None`.
    ///
    /// # Errors
    /// If there are more pages than a run can number, or than memory has room for.
    pub fn read(
        machines: Vec<ImageMachine>,
        tell: &mut impl FnMut(u64, u64) -> bool,
    ) -> Result<Option<Images>, ImageError> {
        Images::read_into(ContentPool::new(None), machines, tell)
    }

    /// Reads them into a `pool` that has the contents of live processes already.
    pub fn read_into(
        pool: ContentPool,
        machines: Vec<ImageMachine>,
        tell: &mut impl FnMut(u64, u64) -> bool,
    ) -> Result<Option<Images>, ImageError> {
        let snapshots = machines.iter().flat_map(|machine| &machine.snapshots);
        let extents = snapshots.flat_map(|snapshot| &snapshot.extents);
        let total: u64 = extents.map(|extent| u64::from(extent.pages)).sum();
        let too_many =
            || ImageError("more than 2^31 pages: give fewer or smaller images".to_owned());
        if total >= 1 << 31 {
            return Err(too_many());
        }
        let mut images = Images {
            pool,
            machines: Vec::new(),
            zero: None,
        };
        let (mut page, mut done) = (0, 0);
        for machine in machines {
            let space = MachineSpace::new(&machine, page).ok_or_else(too_many)?;
            page = space.end;
            let mut held = MachineImage {
                name: machine.name,
                snapshots: Vec::new(),
                missing: 0,
                holes: 0,
                process: machine.process,
                ended: machine.ended,
                space,
            };
            for snapshot in machine.snapshots {
                (held.missing, held.holes) = (snapshot.missing, snapshot.holes);
                let mut pages = Vec::new();
                let count = held.space.pages();
                pages.try_reserve_exact(count).map_err(memory_ended)?;
                pages.resize(count, NONE);
                let data = images.pool.hold(snapshot.data);
                for extent in &snapshot.extents {
                    let first = held.space.page_at(extent.first) - held.space.first;
                    let into = &mut pages[first as usize..(first + extent.pages) as usize];
                    let mut tell = |read: u32| tell(done + u64::from(read), total);
                    if !images.pool.intern_all(&data, extent, into, &mut tell)? {
                        return Ok(None);
                    }
                    done += u64::from(extent.pages);
                }
                held.snapshots.push(pages);
            }
            images.machines.push(held);
        }
        images.sort()?;
        Ok(Some(images))
    }

    fn sort(&mut self) -> Result<(), ImageError> {
        let rank = self.pool.sort()?;
        self.zero = self.pool.zero().then_some(0);
        let pages = self
            .machines
            .iter_mut()
            .flat_map(|machine| &mut machine.snapshots);
        for content in pages.flatten().filter(|content| **content != NONE) {
            *content = rank[*content as usize];
        }
        Ok(())
    }

    /// Makes the images' pages of zeros count as no pages from now on.
    pub fn leave_zeros_out(&mut self) {
        let zero = self.zero.unwrap_or(NONE);
        let images = self.machines.iter_mut();
        let images = images.filter(|machine| machine.process.is_none());
        for content in images.flat_map(|machine| &mut machine.snapshots).flatten() {
            if *content == zero {
                *content = NONE;
            }
        }
    }

    /// The contents of the machines' pages in a snapshot, or in a machine's last if it has fewer.
    pub fn at(&self, snapshot: usize) -> impl Iterator<Item = (Page, u32)> {
        self.machines.iter().flat_map(move |machine| {
            let held = machine.snapshots.get(snapshot).or(machine.snapshots.last());
            let held = held.map_or(&[][..], |held| &held[..]);
            let pages = (machine.space.first..).zip(held.iter().copied());
            pages.filter(|(_, content)| *content != NONE)
        })
    }

    pub fn pages(&self) -> usize {
        self.machines
            .last()
            .map_or(0, |machine| machine.space.end as usize)
    }

    pub fn snapshots(&self) -> usize {
        let each = self.machines.iter().map(|machine| machine.snapshots.len());
        each.max().unwrap_or(0)
    }

    /// The number of contents; they are numbered from 0.
    pub fn contents(&self) -> usize {
        self.pool.len()
    }

    /// Whether the bytes of all contents are kept; if not, those of live processes were dropped because they took too
    /// much memory.
    pub fn has_bytes(&self) -> bool {
        self.pool.has_bytes()
    }

    /// The bytes of a content, if [`Images::has_bytes`].
    pub fn bytes(&self, content: u32) -> &PageBytes {
        self.pool.bytes(content)
    }

    pub fn last(&self, page: Page) -> Option<u32> {
        let machine = self.machine_of(page);
        let last = machine.snapshots.last()?;
        Some(last[(page - machine.space.first) as usize]).filter(|content| *content != NONE)
    }

    /// The number of snapshots that differ from the one before in this page.
    pub fn changes_of(&self, page: Page) -> usize {
        let machine = self.machine_of(page);
        let at = (page - machine.space.first) as usize;
        let pairs = machine.snapshots.windows(2);
        pairs.filter(|pair| pair[0][at] != pair[1][at]).count()
    }

    pub fn machine_of(&self, page: Page) -> &MachineImage {
        let index = self
            .machines
            .partition_point(|machine| machine.space.end <= page);
        &self.machines[index]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageChange {
    Came,
    Written,
    Went,
}

#[derive(Debug)]
pub struct View<'i> {
    images: &'i Images,
    chosen: Vec<bool>,
    page: Vec<u32>,
    keyed: Vec<u32>,
    pass: usize,
}

impl<'i> View<'i> {
    /// The view before the first pass, in which no page exists. `chosen` says which machines take part.
    pub fn new(images: &'i Images, chosen: Vec<bool>) -> View<'i> {
        View {
            images,
            chosen,
            page: vec![NONE; images.pages()],
            keyed: vec![NONE; images.pages()],
            pass: 0,
        }
    }

    /// Goes to the next pass: each machine's next snapshot, if it has one.
    pub fn advance(&mut self) -> Vec<(Page, PageChange)> {
        let mut changes = Vec::new();
        let machines = self.images.machines.iter().zip(&self.chosen);
        for (machine, _) in machines.filter(|(_, chosen)| **chosen) {
            let Some(snapshot) = machine.snapshots.get(self.pass) else {
                continue;
            };
            for (page, new) in (machine.space.first..).zip(snapshot) {
                let old = std::mem::replace(&mut self.page[page as usize], *new);
                if old == *new {
                    continue;
                }
                let change = match (old, *new) {
                    (NONE, _) => PageChange::Came,
                    (_, NONE) => PageChange::Went,
                    _ => PageChange::Written,
                };
                changes.push((page, change));
            }
        }
        self.pass += 1;
        changes
    }

    pub fn exited(&self) -> Vec<Range<Page>> {
        let machines = self.images.machines.iter().zip(&self.chosen);
        let now = machines.filter(|(machine, chosen)| {
            **chosen && machine.ended.is_some_and(|pass| pass as usize == self.pass)
        });
        now.map(|(machine, _)| machine.space.first..machine.space.end)
            .collect()
    }

    pub fn put(&mut self, page: Page, content: u32) {
        self.page[page as usize] = content;
    }

    pub fn keyed_content(&self, page: Page) -> Option<u32> {
        Some(self.keyed[page as usize]).filter(|content| *content != NONE)
    }

    pub fn images(&self) -> &'i Images {
        self.images
    }

    pub fn content(&self, page: Page) -> Option<u32> {
        Some(self.page[page as usize]).filter(|content| *content != NONE)
    }

    fn of(&self, frame: PageFrame) -> u32 {
        match frame {
            PageFrame::Own(page) => self.page[page as usize],
            PageFrame::Merged(content) => content,
        }
    }
}

impl PageStore for View<'_> {
    fn checksum(&mut self, page: Page, kind: Checksum) -> u32 {
        let content = self.page[page as usize];
        self.images.pool.checksum(content, kind)
    }

    fn unchanged(&self, page: Page) -> Option<bool> {
        Some(self.keyed[page as usize] == self.page[page as usize])
    }

    fn keyed(&mut self, page: Page) {
        self.keyed[page as usize] = self.page[page as usize];
    }

    fn is_zero(&mut self, page: Page) -> bool {
        Some(self.page[page as usize]) == self.images.zero
    }

    fn compare(&mut self, a: PageFrame, b: PageFrame) -> Ordering {
        self.of(a).cmp(&self.of(b))
    }

    fn identical(&mut self, a: PageFrame, b: PageFrame) -> bool {
        self.of(a) == self.of(b)
    }

    fn line(&mut self, frame: PageFrame, line: usize) -> Line {
        let bytes = self.images.bytes(self.of(frame));
        let start = line * LINE_BYTES;
        bytes[start..start + LINE_BYTES]
            .try_into()
            .expect("a line's bytes")
    }

    fn line_order(&mut self, a: PageFrame, b: PageFrame, line: usize) -> Ordering {
        let (a, b) = (self.of(a), self.of(b));
        let head = |content: u32| self.images.pool.head(content);
        if line == 0 && head(a) != head(b) {
            return head(a).cmp(&head(b));
        }
        let range = line * LINE_BYTES..(line + 1) * LINE_BYTES;
        self.images.bytes(a)[range.clone()].cmp(&self.images.bytes(b)[range])
    }

    fn freeze(&mut self, page: Page) -> u32 {
        self.page[page as usize]
    }

    fn release(&mut self, _: u32) {}
}
