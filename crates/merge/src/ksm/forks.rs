//! Frames that are shared since a fork. A page of the child has the same frame as its parent's until one of them is
//! written, and it may map a merged frame without the kernel having noticed yet. Only such pages take memory here.

use std::iter;

use rustc_hash::FxHashMap;

use crate::Page;

#[derive(Debug, Default)]
pub struct Forks {
    /// The next page with the same frame, in a circle, for pages that share a frame which is not merged.
    next: FxHashMap<Page, Page>,
    /// Pages that map a stable node's frame and whose items do not hang on it.
    nodes: FxHashMap<Page, u32>,
}

impl Forks {
    /// Notes that `child` maps the frame of `parent`, which is not merged.
    pub fn join(&mut self, parent: Page, child: Page) {
        let after = self.next.insert(parent, child);
        self.next.insert(child, after.unwrap_or(parent));
    }

    /// The other pages that map the same frame, which is not merged.
    pub fn others(&self, page: Page) -> Vec<Page> {
        let next = |at: &Page| self.next.get(at).copied();
        let others = iter::successors(next(&page), next);
        others.take_while(|&at| at != page).collect()
    }

    /// Whether two pages map the same frame, which is not merged.
    pub fn share(&self, page: Page, other: Page) -> bool {
        page == other || (self.next.contains_key(&other) && self.others(page).contains(&other))
    }

    /// Whether no page before this one maps the same frame, which is not merged.
    pub fn is_first(&self, page: Page) -> bool {
        self.others(page).iter().all(|&other| page < other)
    }

    pub fn leave(&mut self, page: Page) {
        let others = self.others(page);
        let (Some(&first), Some(&last)) = (others.first(), others.last()) else {
            return;
        };
        self.next.remove(&page);
        if first == last {
            self.next.remove(&first);
        } else {
            self.next.insert(last, first);
        }
    }

    /// Notes that the page maps the node's frame while its item does not hang there.
    pub fn map(&mut self, page: Page, node: u32) {
        self.nodes.insert(page, node);
    }

    /// The node whose frame the page maps while its item does not hang there.
    pub fn unlisted(&self, page: Page) -> Option<u32> {
        self.nodes.get(&page).copied()
    }

    /// Notes that the page's item hangs at the frame that it maps, or that it no longer maps that frame.
    pub fn listed(&mut self, page: Page) {
        self.nodes.remove(&page);
    }
}
