//! KSM's passes, as `mm/ksm.c` of the Linux kernel makes them, with its counters under its names.
//!
//! An *item* is what the kernel keeps for a page that it has seen; it hangs in the stable tree, in the
//! unstable tree or nowhere. A page maps its own frame, a merged one or the zero page. A write breaks the
//! mapping at once, but the item notices when it is scanned next, and so do the counters.

mod advisor;
mod forks;
mod search;
pub mod settings;
mod stable;

use std::ops::Range;

use super::images::checksum;
use super::rb::{Links, Node, RedBlackTree, Side};
use super::{PAGE_BYTES, Page, PageFrame, PageStore};
use advisor::ScanTime;
use forks::Forks;
pub use search::{ModuleWork, PageSearch, Software, TreeWalk, Visit, Walkable};
use settings::{Advisor, Knobs, Order, wakes};
use stable::Stable;

/// Bytes that the kernel keeps for an item, `sizeof(struct ksm_rmap_item)`.
pub const ITEM_BYTES: i64 = 64;
/// Bytes that the kernel keeps for a merged frame, `sizeof(struct ksm_stable_node)` with NUMA.
pub const NODE_BYTES: i64 = 64;
/// The memory that a run takes for a page: its item, its content now and before, and whether it has changed.
pub const BYTES_A_PAGE: usize = size_of::<RmapItem>() + 2 * size_of::<u32>() + 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maps {
    /// Nothing that could merge.
    Nothing,
    Own,
    /// The merged frame on which its item hangs.
    Merged,
    Zero,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hangs {
    /// The kernel keeps no item for the page.
    Unknown,
    Nowhere,
    /// In the unstable tree of the pass of that parity.
    Unstable(bool),
    /// On the stable node `RmapItem::on`.
    Stable,
}

#[derive(Clone, Copy, Debug)]
struct RmapItem {
    checksum: u32,
    on: u32,
    links: Links,
    hangs: Hangs,
    maps: Maps,
    age: u8,
    skips: u8,
}

impl Node for RmapItem {
    fn links(&self) -> &Links {
        &self.links
    }
    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

struct UnstableWalk<'i> {
    items: &'i [RmapItem],
    forks: &'i Forks,
    stable: &'i Stable,
    root: u32,
    candidate: Page,
}

impl Walkable for UnstableWalk<'_> {
    fn root(&self) -> u32 {
        self.root
    }

    fn child(&self, at: u32, side: Side) -> u32 {
        self.items[at as usize].links.child(side)
    }

    fn visit(&mut self, at: u32) -> Visit {
        let frame = match self.items[at as usize].maps {
            // A page is not merged with its own frame in another process.
            Maps::Own if self.forks.share(self.candidate, at) => return Visit::Lost,
            Maps::Own => PageFrame::Own(at),
            Maps::Merged => {
                let node = self
                    .forks
                    .unlisted(at)
                    .expect("in the tree, so on no frame");
                PageFrame::Merged(self.stable.frozen(node))
            }
            Maps::Nothing | Maps::Zero => return Visit::Lost,
        };
        Visit::Here {
            node: at,
            holder: at,
            frame,
        }
    }
}

/// The kernel's counters, from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct KsmCounters {
    pub pages_shared: u64,
    /// Pages that share them, without the first of each: the saved ones.
    pub pages_sharing: u64,
    pub pages_unshared: u64,
    pub pages_volatile: u64,
    pub pages_skipped: u64,
    pub pages_scanned: u64,
    pub ksm_zero_pages: u64,
    pub stable_node_chains: u64,
    pub stable_node_dups: u64,
    /// Bytes saved less bytes of items.
    pub general_profit: i64,
    /// Pages that the kernel keeps an item for, of 64 bytes each.
    pub rmap_items: u64,
}

/// The outcomes of keys (checksums), and whether they were right (PageForge, Fig. 8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Keys {
    pub matches: u64,
    pub mismatches: u64,
    pub false_matches: u64,
}

/// A merging algorithm on pages. `C` has the pages, and `S` compares them.
#[derive(Debug)]
pub struct Ksm<C, S> {
    pub contents: C,
    /// Software, or PageForge's module.
    pub search: S,
    knobs: Knobs,
    items: Vec<RmapItem>,
    unstable: RedBlackTree,
    stable: Stable,
    forks: Forks,
    parity: bool,
    zero_key: u32,
    zero_pages: u64,
    unshared: u64,
    known: u64,
    scanned: u64,
    skipped: u64,
    pub keys: Keys,
    merges: u64,
    breaks: u64,
    visits: u64,
    slept_ns: u64,
    in_batch: u64,
    advisor: ScanTime,
}

impl<C: PageStore, S: PageSearch> Ksm<C, S> {
    pub fn new(contents: C, search: S, knobs: Knobs, pages: usize) -> Ksm<C, S> {
        let item = RmapItem {
            checksum: 0,
            on: 0,
            links: Links::default(),
            hangs: Hangs::Unknown,
            maps: Maps::Nothing,
            age: 0,
            skips: 0,
        };
        Ksm {
            stable: Stable::new(knobs.max_page_sharing, knobs.prune_millisecs),
            zero_key: search
                .zero_key()
                .unwrap_or_else(|| checksum(&[0; PAGE_BYTES], knobs.checksum)),
            contents,
            search,
            knobs,
            items: vec![item; pages],
            unstable: RedBlackTree::default(),
            forks: Forks::default(),
            parity: false,
            zero_pages: 0,
            unshared: 0,
            known: 0,
            scanned: 0,
            skipped: 0,
            keys: Keys::default(),
            merges: 0,
            breaks: 0,
            visits: 0,
            slept_ns: 0,
            in_batch: 0,
            advisor: ScanTime::default(),
        }
    }

    fn item(&mut self, page: Page) -> &mut RmapItem {
        &mut self.items[page as usize]
    }

    pub fn maps(&self, page: Page) -> Maps {
        self.items[page as usize].maps
    }

    /// The stable node whose frame the page maps; valid while it maps a merged one.
    fn node_of(&self, page: Page) -> u32 {
        let unlisted = self.forks.unlisted(page);
        unlisted.unwrap_or(self.items[page as usize].on)
    }

    /// The frame behind a page; `None` if it maps the zero page or nothing. After a fork others may map its own frame
    /// too.
    pub fn frame(&self, page: Page) -> Option<PageFrame> {
        match self.maps(page) {
            Maps::Own => Some(PageFrame::Own(page)),
            Maps::Merged => Some(PageFrame::Merged(self.stable.frozen(self.node_of(page)))),
            Maps::Nothing | Maps::Zero => None,
        }
    }

    /// The merged frame that the page maps, and the number of pages that map it.
    pub fn sharers(&self, page: Page) -> Option<(u32, u32)> {
        let merged = self.maps(page) == Maps::Merged;
        merged.then(|| (self.node_of(page), self.stable.mapped(self.node_of(page))))
    }

    pub fn has_item(&self, page: Page) -> bool {
        self.items[page as usize].hangs != Hangs::Unknown
    }

    pub fn breaks(&self) -> u64 {
        self.breaks
    }

    /// Merged frames that some page maps, each with the number of its mappings.
    pub fn merged_frames(&self) -> impl Iterator<Item = (u32, u32)> {
        self.stable.live()
    }

    /// Page frames in use: own ones, merged ones, and the zero page if it is mapped.
    pub fn frames(&self) -> u64 {
        let own = (0..self.items.len() as Page)
            .filter(|&page| self.maps(page) == Maps::Own && self.forks.is_first(page));
        let zero = u64::from(self.zero_pages > 0);
        own.count() as u64 + self.stable.live().count() as u64 + zero
    }

    pub fn map(&mut self, page: Page) {
        self.item(page).maps = Maps::Own;
    }

    /// Forks a page: `child`, which mapped nothing so far, maps what `parent` maps. The bytes of both stay equal until
    /// one of them is written.
    pub fn fork(&mut self, parent: Page, child: Page) {
        let maps = self.maps(parent);
        match maps {
            Maps::Nothing => return,
            Maps::Own => self.forks.join(parent, child),
            Maps::Merged => {
                let node = self.node_of(parent);
                self.stable.mapped_too(node);
                self.forks.map(child, node);
            }
            Maps::Zero => self.zero_pages += 1,
        }
        self.item(child).maps = maps;
    }

    /// Writes the page, which maps its own frame from now on.
    pub fn write(&mut self, page: Page) {
        let merged = matches!(self.maps(page), Maps::Merged | Maps::Zero);
        self.breaks += u64::from(merged);
        self.leave_frame(page);
        if self.maps(page) != Maps::Nothing {
            self.item(page).maps = Maps::Own;
        }
    }

    pub fn unmap(&mut self, page: Page) {
        self.leave_frame(page);
        self.item(page).maps = Maps::Nothing;
    }

    /// Ends the processes with these pages, which have exited since the last pass in that order; call it after all
    /// writes. The thread comes to them first in its next pass, the last one before the others, wherever their turn
    /// would have been (`__ksm_exit` in the kernel), and drops all that it keeps for the pages.
    pub fn exit(&mut self, processes: &[Range<Page>]) {
        for page in processes.iter().cloned().flatten() {
            self.unmap(page);
        }
        for page in processes.iter().rev().cloned().flatten() {
            self.forget(page);
        }
    }

    /// Drops what the kernel keeps for a page that it will not find again.
    fn forget(&mut self, page: Page) {
        if self.item(page).hangs == Hangs::Unknown {
            return;
        }
        self.leave_tree(page);
        let item = self.item(page);
        (item.hangs, item.checksum, item.age, item.skips) = (Hangs::Unknown, 0, 0, 0);
        self.known -= 1;
    }

    fn leave_frame(&mut self, page: Page) {
        match self.maps(page) {
            Maps::Merged => {
                if let Some(frozen) = self.stable.unmapped(self.node_of(page)) {
                    self.contents.release(frozen);
                }
                self.forks.listed(page);
            }
            Maps::Zero => self.zero_pages -= 1,
            Maps::Own => self.forks.leave(page),
            Maps::Nothing => {}
        }
    }

    fn take_writes(&mut self) {
        while let Some(page) = self.contents.next_write() {
            self.write(page);
        }
    }

    /// Makes one pass over all pages. `tell` is told now and then how many are done, and may end the pass by answering
    /// false.
    pub fn pass(&mut self, tell: &mut impl FnMut(u64) -> bool) -> bool {
        let began = self.elapsed_ns();
        self.begin_pass();
        for page in 0..self.items.len() as Page {
            if page % 4096 == 0 && !tell(u64::from(page)) {
                return false;
            }
            self.step(page);
        }
        self.take_writes();
        self.sleep(); // the end of a pass ends its batch
        if self.knobs.advisor == Advisor::ScanTime {
            let pass_ms = (self.elapsed_ns() - began) / 1_000_000;
            let cpu_ns = self.cpu_ns();
            let Knobs {
                pages_to_scan,
                advice,
                ..
            } = self.knobs;
            self.knobs.pages_to_scan = self.advisor.advise(pages_to_scan, advice, pass_ms, cpu_ns);
        }
        true
    }

    pub fn begin_pass(&mut self) {
        // The kernel starts each pass with an empty unstable tree. Items know by the parity whether they hang in it.
        self.unstable = RedBlackTree::default();
        self.parity = !self.parity;
    }

    /// Scans a page; a pass steps through all of them in order.
    pub fn step(&mut self, page: Page) {
        self.take_writes();
        self.scan(page);
    }

    fn scan(&mut self, page: Page) {
        let RmapItem { maps, hangs, .. } = *self.item(page);
        if matches!(maps, Maps::Nothing | Maps::Zero) {
            self.forget(page);
            return;
        }
        if hangs == Hangs::Unknown {
            self.item(page).hangs = Hangs::Nowhere;
            self.known += 1;
        }
        self.visits += 1;
        if self.skip(page) {
            return;
        }
        self.consider(page);
        self.scanned += 1;
        self.in_batch += 1;
        if self.in_batch >= self.knobs.pages_to_scan {
            self.sleep();
        }
    }

    fn sleep(&mut self) {
        self.in_batch = 0;
        let now = self.elapsed_ns();
        self.slept_ns += wakes(now, self.knobs.sleep_millisecs, self.knobs.tick) - now;
    }

    /// Whether `smart_scan` skips a page in this pass, as should_skip_rmap_item() of mm/ksm.c decides.
    fn skip(&mut self, page: Page) -> bool {
        if !self.knobs.smart_scan || self.maps(page) == Maps::Merged {
            return false;
        }
        let item = self.item(page);
        let age = item.age;
        item.age = age.saturating_add(1);
        // A page is scanned three times before it may be skipped, and then once after each run of skips, which gets
        // longer with its age (skip_age() of mm/ksm.c).
        if age < 3 {
            return false;
        }
        if item.skips == 0 {
            item.skips = match age {
                ..=3 => 1,
                4..=5 => 2,
                6..=8 => 4,
                _ => 8,
            };
            return false;
        }
        item.skips -= 1;
        self.skipped += 1;
        self.leave_tree(page);
        true
    }

    fn leave_tree(&mut self, page: Page) {
        let RmapItem { hangs, on, .. } = *self.item(page);
        match hangs {
            Hangs::Unknown | Hangs::Nowhere => {}
            Hangs::Stable => self.stable.detach(on),
            Hangs::Unstable(parity) => {
                // An item of an earlier pass hangs in no tree any more, so only the counter changes.
                if parity == self.parity {
                    self.unstable.erase(&mut self.items, page);
                }
                self.unshared -= 1;
            }
        }
        self.item(page).hangs = Hangs::Nowhere;
    }

    fn consider(&mut self, page: Page) {
        if self.maps(page) == Maps::Merged {
            self.list(page);
            return;
        }
        self.search.begin(page);
        let gate_first = self.knobs.order == Order::GateFirst;
        if gate_first {
            self.leave_tree(page);
            if !self.key_is_as_before(page) || self.merge_with_zero(page) {
                return;
            }
        }
        let stable = self.find_stable(page);
        // The kernel takes the item out of its tree only after the search of the stable tree (cmp_and_merge_page() of
        // mm/ksm.c).
        self.leave_tree(page);
        self.take_writes();
        if let Some(node) = stable {
            self.merge_with(page, node);
            return;
        }
        if !gate_first && (!self.key_is_as_before(page) || self.merge_with_zero(page)) {
            return;
        }
        let mut unstable = UnstableWalk {
            items: &self.items,
            forks: &self.forks,
            stable: &self.stable,
            root: self.unstable.root,
            candidate: page,
        };
        let walk = self
            .search
            .walk(&mut self.contents, &mut unstable, PageFrame::Own(page));
        self.take_writes();
        match walk {
            TreeWalk::Lost => {}
            TreeWalk::End(place) => {
                self.unstable.insert(&mut self.items, place, page);
                self.item(page).hangs = Hangs::Unstable(self.parity);
                self.unshared += 1;
            }
            TreeWalk::Match { holder, .. } => self.merge_two(page, holder),
        }
    }

    /// Takes the page's key and compares it with the last one, which it replaces.
    fn key_is_as_before(&mut self, page: Page) -> bool {
        let unchanged = self.contents.unchanged(page);
        let key = self.search.key(&mut self.contents, page);
        self.contents.keyed(page);
        let item = self.item(page);
        let same = item.checksum == key;
        item.checksum = key;
        if same {
            self.keys.matches += 1;
            self.keys.false_matches += u64::from(unchanged == Some(false));
        } else {
            self.keys.mismatches += 1;
        }
        same
    }

    fn merge_with_zero(&mut self, page: Page) -> bool {
        let zero = self.knobs.use_zero_pages
            && self.items[page as usize].checksum == self.zero_key
            && self.contents.is_zero(page);
        if zero {
            self.forks.leave(page);
            self.item(page).maps = Maps::Zero;
            self.contents.zeroed(page);
            self.zero_pages += 1;
            self.merges += 1;
        }
        zero
    }

    /// A merged frame with the same content, if there is one that takes another page.
    fn find_stable(&mut self, page: Page) -> Option<u32> {
        let now_ms = self.now_ms();
        let mut tree = self.stable.walk(true, now_ms);
        match self
            .search
            .walk(&mut self.contents, &mut tree, PageFrame::Own(page))
        {
            TreeWalk::Match { holder, .. } if self.stable.takes_more(holder) => Some(holder),
            _ => None,
        }
    }

    /// Maps the page to a merged frame, if the bytes are still the same under write protection.
    fn merge_with(&mut self, page: Page, node: u32) {
        let frame = PageFrame::Merged(self.stable.frozen(node));
        if self.stable.is_mapped(node) && self.contents.identical(PageFrame::Own(page), frame) {
            self.hang(page, node);
            self.merges += 1;
        }
    }

    /// Hangs the item of a page that has come to a merged frame by a fork on that frame, `max_page_sharing` or not.
    fn list(&mut self, page: Page) {
        let Some(node) = self.forks.unlisted(page) else {
            return;
        };
        self.leave_tree(page);
        self.forks.listed(page);
        self.stable.append(node);
        let item = self.item(page);
        (item.hangs, item.on) = (Hangs::Stable, node);
    }

    /// Maps a page with a frame of its own to the frame of the node, and hangs its item there.
    fn hang(&mut self, page: Page, node: u32) {
        self.forks.leave(page);
        self.stable.mapped_too(node);
        self.stable.append(node);
        let frozen = self.stable.frozen(node);
        self.contents.merged(page, frozen);
        let item = self.item(page);
        (item.hangs, item.on, item.maps) = (Hangs::Stable, node, Maps::Merged);
    }

    /// Merges the page with the page of an item in the unstable tree: they become a new node of the stable tree.
    fn merge_two(&mut self, page: Page, other: Page) {
        let Some(of_other) = self.frame(other) else {
            return;
        };
        if !self.contents.identical(PageFrame::Own(page), of_other) {
            return;
        }
        // An item hangs in one tree at a time.
        self.leave_tree(other);
        self.leave_frame(other);
        let frozen = self.contents.freeze(page);
        let now_ms = self.now_ms();
        let mut tree = self.stable.walk(false, now_ms);
        let walk = self
            .search
            .walk(&mut self.contents, &mut tree, PageFrame::Merged(frozen));
        let (place, beside) = match walk {
            TreeWalk::Match { node, .. } => (None, Some(node)),
            TreeWalk::End(place) => (place, None),
            TreeWalk::Lost => unreachable!("a stable tree has no page that can be lost"),
        };
        let node = self.stable.insert(frozen, place, beside, now_ms);
        self.hang(other, node);
        // The candidate's frame is the merged one now, and pages that share it since a fork map it too.
        for sharer in self.forks.others(page) {
            self.forks.leave(sharer);
            self.forks.map(sharer, node);
            self.stable.mapped_too(node);
            self.contents.merged(sharer, frozen);
            self.item(sharer).maps = Maps::Merged;
        }
        self.hang(page, node);
        self.merges += 1;
    }

    fn now_ms(&self) -> u32 {
        (self.slept_ns / 1_000_000) as u32
    }

    pub fn cpu_ns(&self) -> u64 {
        let [visit, checksum, compare, merge] = self.knobs.costs;
        self.visits * visit + self.search.cpu_ns(checksum, compare) + self.merges * merge
    }

    pub fn elapsed_ns(&self) -> u64 {
        self.cpu_ns() + self.slept_ns
    }

    pub fn counters(&self) -> KsmCounters {
        let Stable {
            shared,
            sharing,
            chains,
            dups,
            ..
        } = self.stable;
        let saved = (sharing + self.zero_pages) as i64 * PAGE_BYTES as i64;
        KsmCounters {
            pages_shared: shared,
            pages_sharing: sharing,
            pages_unshared: self.unshared,
            pages_volatile: self.known - shared - sharing - self.unshared,
            pages_skipped: self.skipped,
            pages_scanned: self.scanned,
            ksm_zero_pages: self.zero_pages,
            stable_node_chains: chains,
            stable_node_dups: dups,
            general_profit: saved - self.known as i64 * ITEM_BYTES,
            rmap_items: self.known,
        }
    }
}
