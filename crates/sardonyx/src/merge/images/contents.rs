//! The bytes of all machines' pages, and what a run sees of them pass by pass. Each content stands once:
//! pages with the same bytes have the same number, found by hash and confirmed byte by byte. Contents are
//! numbered in the order of their bytes, so that comparing two pages is comparing two numbers.

use std::cmp::Ordering;
use std::ops::Range;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::{Data, Extent, ImageError, Machine, MachineSpace, ProcessPages, checksum};
use crate::line::{LINE_BYTES, Line};
use crate::merge::{Bytes, Checksum, Contents, Frame, PAGE_BYTES, Page};

/// The content of a page that is not there.
const NONE: u32 = u32::MAX;

/// Bytes that some page holds.
#[derive(Clone, Copy, Debug)]
struct Content {
    hash: u32,
    /// Where the bytes are: a number among the pages of all snapshots.
    place: u32,
    /// Its first eight bytes, so that the page itself need not be touched to compare most first lines.
    head: u64,
}

/// An extent among the pages of all snapshots.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    first: u32,
    data: u32,
    offset: u64,
}

/// A machine, with what its pages hold.
#[derive(Debug)]
pub struct Held {
    /// Its name.
    pub name: String,
    /// Where its pages are.
    pub space: MachineSpace,
    /// For each snapshot, each page's content.
    snapshots: Vec<Vec<u32>>,
    /// Pages that the last snapshot names but does not hold.
    pub missing: u64,
    /// What is known of a live process's other pages.
    pub process: Option<ProcessPages>,
    /// See [`Machine::ended`].
    pub ended: Option<u32>,
}

impl Held {
    /// Pages that an earlier snapshot has and the last has not.
    pub fn gone(&self) -> usize {
        let Some((last, earlier)) = self.snapshots.split_last() else {
            return 0;
        };
        let had = |page: usize| earlier.iter().any(|snapshot| snapshot[page] != NONE);
        let gone = (0..last.len()).filter(|page| last[*page] == NONE && had(*page));
        gone.count()
    }
}

/// All machines' bytes.
#[derive(Debug)]
pub struct Images {
    data: Vec<Data>,
    stretches: Vec<Stretch>,
    /// The machines, in the order in which they are scanned.
    pub machines: Vec<Held>,
    contents: Vec<Content>,
    /// The content that is all zeros.
    pub zero: Option<u32>,
}

/// Spreads a checksum over the bits that a table looks at.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn bytes_at<'d>(data: &'d [Data], stretches: &[Stretch], place: u32) -> &'d Bytes {
    let after = stretches.partition_point(|stretch| stretch.first <= place);
    let stretch = &stretches[after - 1];
    let offset = stretch.offset + u64::from(place - stretch.first) * PAGE_BYTES as u64;
    data[stretch.data as usize].page(offset)
}

impl Images {
    /// Reads all snapshots of the machines. `tell` hears how many of how many pages are done, and may
    /// end it: then there is nothing.
    ///
    /// # Errors
    /// If there are more pages than a run can number.
    pub fn read(
        machines: Vec<Machine>,
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
            data: Vec::new(),
            stretches: Vec::new(),
            machines: Vec::new(),
            contents: Vec::new(),
            zero: None,
        };
        let mut known = HashTable::new();
        let (mut page, mut place) = (0, 0);
        for machine in machines {
            let space = MachineSpace::new(&machine, page).ok_or_else(too_many)?;
            page = space.end;
            let mut held = Held {
                name: machine.name,
                snapshots: Vec::new(),
                missing: 0,
                process: machine.process,
                ended: machine.ended,
                space,
            };
            for snapshot in machine.snapshots {
                held.missing = snapshot.missing;
                let mut pages = vec![NONE; held.space.pages()];
                images.data.push(snapshot.data);
                for extent in &snapshot.extents {
                    images.stretches.push(Stretch {
                        first: place,
                        data: images.data.len() as u32 - 1,
                        offset: extent.offset,
                    });
                    let first = held.space.page_at(extent.first) - held.space.first;
                    let into = &mut pages[first as usize..(first + extent.pages) as usize];
                    if !images.intern_all(&mut known, extent, place, into, total, tell) {
                        return Ok(None);
                    }
                    place += extent.pages;
                }
                held.snapshots.push(pages);
            }
            images.machines.push(held);
        }
        drop(known);
        images.sort();
        Ok(Some(images))
    }

    fn intern_all(
        &mut self,
        known: &mut HashTable<u32>,
        extent: &Extent,
        place: u32,
        into: &mut [u32],
        total: u64,
        tell: &mut impl FnMut(u64, u64) -> bool,
    ) -> bool {
        let data = self.data.len() - 1;
        for (index, content) in into.iter_mut().enumerate() {
            let offset = extent.offset + (index * PAGE_BYTES) as u64;
            let at = place + index as u32;
            *content = self.intern(known, at, (data, offset));
            if at.is_multiple_of(4096) && !tell(u64::from(at), total) {
                return false;
            }
        }
        true
    }

    /// The number of the content at `place`.
    fn intern(
        &mut self,
        known: &mut HashTable<u32>,
        place: u32,
        (data, offset): (usize, u64),
    ) -> u32 {
        let bytes = self.data[data].page(offset);
        let hash = checksum(bytes, Checksum::XxHash64);
        let same = |content: &u32| {
            let content = &self.contents[*content as usize];
            content.hash == hash && bytes_at(&self.data, &self.stretches, content.place) == bytes
        };
        let rehash = |content: &u32| spread(self.contents[*content as usize].hash);
        match known.entry(spread(hash), same, rehash) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(vacant) => {
                let content = self.contents.len() as u32;
                vacant.insert(content);
                let head = bytes.first_chunk().expect("a page has eight bytes");
                let head = u64::from_be_bytes(*head);
                self.contents.push(Content { hash, place, head });
                content
            }
        }
    }

    /// Numbers the contents in the order of their bytes.
    fn sort(&mut self) {
        let bytes = |content: u32| {
            let place = self.contents[content as usize].place;
            bytes_at(&self.data, &self.stretches, place)
        };
        let heads = self.contents.iter().zip(0..);
        let mut order: Vec<(u64, u32)> = heads.map(|(content, at)| (content.head, at)).collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| bytes(a.1).cmp(bytes(b.1))));
        let first = order
            .first()
            .filter(|first| *bytes(first.1) == [0; PAGE_BYTES]);
        let zero = first.map(|_| 0);
        let mut rank = vec![0; order.len()];
        for (at, (_, content)) in order.iter().enumerate() {
            rank[*content as usize] = at as u32;
        }
        let sorted = order
            .iter()
            .map(|(_, content)| self.contents[*content as usize]);
        self.contents = sorted.collect();
        self.zero = zero;
        let pages = self
            .machines
            .iter_mut()
            .flat_map(|machine| &mut machine.snapshots);
        for content in pages.flatten().filter(|content| **content != NONE) {
            *content = rank[*content as usize];
        }
    }

    /// Pages of all machines, by number.
    pub fn pages(&self) -> usize {
        self.machines
            .last()
            .map_or(0, |machine| machine.space.end as usize)
    }

    /// Snapshots of the machine that has most.
    pub fn snapshots(&self) -> usize {
        let each = self.machines.iter().map(|machine| machine.snapshots.len());
        each.max().unwrap_or(0)
    }

    /// How many contents there are; their numbers are the smaller ones.
    pub fn contents(&self) -> usize {
        self.contents.len()
    }

    /// The bytes of a content.
    pub fn bytes(&self, content: u32) -> &Bytes {
        bytes_at(
            &self.data,
            &self.stretches,
            self.contents[content as usize].place,
        )
    }

    /// What a page holds in the last snapshot.
    pub fn last(&self, page: Page) -> Option<u32> {
        let machine = self.machine_of(page);
        let last = machine.snapshots.last()?;
        Some(last[(page - machine.space.first) as usize]).filter(|content| *content != NONE)
    }

    /// Snapshots that differ from the one before in that page.
    pub fn changes_of(&self, page: Page) -> usize {
        let machine = self.machine_of(page);
        let at = (page - machine.space.first) as usize;
        let pairs = machine.snapshots.windows(2);
        pairs.filter(|pair| pair[0][at] != pair[1][at]).count()
    }

    /// The machine that a page belongs to.
    pub fn machine_of(&self, page: Page) -> &Held {
        let index = self
            .machines
            .partition_point(|machine| machine.space.end <= page);
        &self.machines[index]
    }
}

/// What a page did between two passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is there now.
    Came,
    /// Its bytes are others now.
    Written,
    /// It is gone.
    Went,
}

/// What a run sees: some machines at some pass.
#[derive(Debug)]
pub struct View<'i> {
    images: &'i Images,
    /// Machines whose pages are there.
    chosen: Vec<bool>,
    page: Vec<u32>,
    /// What each page held when its key was last taken.
    keyed: Vec<u32>,
    pass: usize,
}

impl<'i> View<'i> {
    /// Before the first pass, when no page is there. `chosen` says which machines take part.
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
    pub fn advance(&mut self) -> Vec<(Page, Change)> {
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
                    (NONE, _) => Change::Came,
                    (_, NONE) => Change::Went,
                    _ => Change::Written,
                };
                changes.push((page, change));
            }
        }
        self.pass += 1;
        changes
    }

    /// The pages of processes that have exited since the last pass.
    pub fn exited(&self) -> Vec<Range<Page>> {
        let machines = self.images.machines.iter().zip(&self.chosen);
        let now = machines.filter(|(machine, chosen)| {
            **chosen && machine.ended.is_some_and(|pass| pass as usize == self.pass)
        });
        now.map(|(machine, _)| machine.space.first..machine.space.end)
            .collect()
    }

    /// The page holds that content from now on.
    pub fn put(&mut self, page: Page, content: u32) {
        self.page[page as usize] = content;
    }

    /// What the page held when its key was last taken.
    pub fn keyed_content(&self, page: Page) -> Option<u32> {
        Some(self.keyed[page as usize]).filter(|content| *content != NONE)
    }

    /// All machines' bytes.
    pub fn images(&self) -> &'i Images {
        self.images
    }

    /// What the page holds now.
    pub fn content(&self, page: Page) -> Option<u32> {
        Some(self.page[page as usize]).filter(|content| *content != NONE)
    }

    fn of(&self, frame: Frame) -> u32 {
        match frame {
            Frame::Own(page) => self.page[page as usize],
            Frame::Merged(content) => content,
        }
    }
}

impl Contents for View<'_> {
    fn checksum(&mut self, page: Page, kind: Checksum) -> u32 {
        let content = self.page[page as usize];
        match kind {
            Checksum::XxHash64 => self.images.contents[content as usize].hash,
            _ => checksum(self.images.bytes(content), kind),
        }
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

    fn compare(&mut self, a: Frame, b: Frame) -> Ordering {
        self.of(a).cmp(&self.of(b))
    }

    fn identical(&mut self, a: Frame, b: Frame) -> bool {
        self.of(a) == self.of(b)
    }

    fn line(&mut self, frame: Frame, line: usize) -> Line {
        let bytes = self.images.bytes(self.of(frame));
        let start = line * LINE_BYTES;
        bytes[start..start + LINE_BYTES]
            .try_into()
            .expect("a line's bytes")
    }

    fn line_order(&mut self, a: Frame, b: Frame, line: usize) -> Ordering {
        let (a, b) = (self.of(a), self.of(b));
        let head = |content: u32| self.images.contents[content as usize].head;
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
