//! The search of a tree of pages for a frame: by software, with a comparison at each node. PageForge does it by
//! hardware (`pageforge/driver.rs`).

use std::cmp::Ordering;

use crate::rb::{NIL, Side};
use crate::{Checksum, Page, PageFrame, PageStore};

#[derive(Clone, Copy, Debug)]
pub enum Visit {
    /// A frame to compare with. `node` hangs in the tree now, `holder` holds the frame.
    Here {
        node: u32,
        /// The node whose frame it is: `node`, or one of its chain.
        holder: u32,
        frame: PageFrame,
    },
    /// The node was stale and has been removed: the walk begins again.
    Again,
    /// The node's page is gone, so the walk ends without a place.
    Lost,
}

pub trait Walkable {
    fn root(&self) -> u32;
    fn child(&self, at: u32, side: Side) -> u32;
    /// Looks at a node; this may remove it.
    fn visit(&mut self, at: u32) -> Visit;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeWalk {
    /// The walk has found a frame with the same bytes.
    Match { node: u32, holder: u32 },
    /// The walk has ended; a node for the frame would hang here.
    End(Option<(u32, Side)>),
    /// The walk has met a page that is gone.
    Lost,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ModuleWork {
    pub tables: u64,
    pub calls: u64,
    pub comparisons: u64,
    /// Lines of 64 bytes that were read for comparisons, two at a time.
    pub compared_lines: u64,
    pub key_lines: u64,
}

/// Compares pages and takes keys, which PageForge moves into hardware.
pub trait PageSearch {
    fn walk(
        &mut self,
        contents: &mut impl PageStore,
        tree: &mut impl Walkable,
        frame: PageFrame,
    ) -> TreeWalk;

    /// The key that tells whether a page has changed. It is taken after the stable tree has been
    /// searched, unless the algorithm asks for it first.
    fn key(&mut self, contents: &mut impl PageStore, page: Page) -> u32;

    fn begin(&mut self, page: Page);

    /// Processor time so far, at so many nanoseconds a checksum and a comparison by software.
    fn cpu_ns(&self, checksum_ns: u64, compare_ns: u64) -> u64;

    fn work(&self) -> Option<ModuleWork> {
        None
    }

    fn zero_key(&self) -> Option<u32> {
        None
    }
}

#[derive(Clone, Debug)]
pub struct Software {
    checksum: Checksum,
    checksums: u64,
    comparisons: u64,
}

impl Software {
    pub fn new(checksum: Checksum) -> Software {
        Software {
            checksum,
            checksums: 0,
            comparisons: 0,
        }
    }
}

impl PageSearch for Software {
    fn walk(
        &mut self,
        contents: &mut impl PageStore,
        tree: &mut impl Walkable,
        frame: PageFrame,
    ) -> TreeWalk {
        'again: loop {
            let mut at = tree.root();
            let mut place = None;
            while at != NIL {
                let (node, holder, other) = match tree.visit(at) {
                    Visit::Here {
                        node,
                        holder,
                        frame,
                    } => (node, holder, frame),
                    Visit::Again => continue 'again,
                    Visit::Lost => return TreeWalk::Lost,
                };
                self.comparisons += 1;
                let side = match contents.compare(frame, other) {
                    Ordering::Less => Side::Left,
                    Ordering::Greater => Side::Right,
                    Ordering::Equal => return TreeWalk::Match { node, holder },
                };
                place = Some((node, side));
                at = tree.child(node, side);
            }
            return TreeWalk::End(place);
        }
    }

    fn key(&mut self, contents: &mut impl PageStore, page: Page) -> u32 {
        self.checksums += 1;
        contents.checksum(page, self.checksum)
    }

    fn begin(&mut self, _: Page) {}

    fn cpu_ns(&self, checksum_ns: u64, compare_ns: u64) -> u64 {
        self.checksums * checksum_ns + self.comparisons * compare_ns
    }
}
