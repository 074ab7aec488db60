//! Same-page merging: KSM as the Linux kernel does it, and PageForge (Skarlatos, Kim and Torrellas,
//! MICRO 2017), on the page images of real machines. `ksm/` is the operating system's side, `pageforge/` the
//! hardware in the memory controller and its driver, `images/` where pages come from. Left out: NUMA
//! nodes, huge pages that are split, swapping. `docs/merge/pages.md` tells the whole.

pub mod advice;
pub mod algorithms;
pub mod answer;
pub mod convergence;
mod host;
pub mod images;
pub mod keys;
pub mod ksm;
pub mod owner;
pub mod pageforge;
pub mod question;
mod rb;
pub mod run;
#[cfg(test)]
mod tests;
pub mod timed;
mod unmerged;

use std::cmp::Ordering;

pub const PAGE_BYTES: usize = 4096;

pub type PageBytes = [u8; PAGE_BYTES];

/// A page of some machine: its number among all machines' pages, in the order in which they are scanned.
pub type Page = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFrame {
    /// The page's own frame, which may change at any time.
    Own(Page),
    /// A merged frame, under write protection, by the number that [`PageStore::freeze`] gave.
    Merged(u32),
}

/// The hash that tells whether a page has changed since the last pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// The low half of xxHash64 of the page: kernels from 5.0 on.
    XxHash64,
    /// jhash2 of the page, seed 17: kernels before.
    Jhash2,
    /// jhash2 of the page's first kilobyte, seed 17: as PageForge's paper has it (2.1).
    Jhash2Kilobyte,
}

sardonyx::settings::words!(Checksum {
    "xxhash64" => XxHash64,
    "jhash2" => Jhash2,
    "jhash2-1k" => Jhash2Kilobyte,
});

/// The bytes of all pages, with the source of their writes.
pub trait PageStore {
    fn checksum(&mut self, page: Page, kind: Checksum) -> u32;

    /// Whether the page holds the bytes that it held when its key was last taken, by [`PageStore::checksum`] or
    /// otherwise, whatever it held meanwhile. `None` if that is unknown.
    fn unchanged(&self, page: Page) -> Option<bool>;

    fn keyed(&mut self, page: Page);

    fn is_zero(&mut self, page: Page) -> bool;

    /// The order of two frames' bytes. The frames may be written meanwhile.
    fn compare(&mut self, a: PageFrame, b: PageFrame) -> Ordering;

    /// Compares two frames that are under write protection.
    fn identical(&mut self, a: PageFrame, b: PageFrame) -> bool;

    fn line(&mut self, frame: PageFrame, line: usize) -> sardonyx::line::Line;

    fn line_order(&mut self, a: PageFrame, b: PageFrame, line: usize) -> Ordering {
        self.line(a, line).cmp(&self.line(b, line))
    }

    /// Makes the page's own frame a merged one, and gives its number.
    fn freeze(&mut self, page: Page) -> u32;

    fn release(&mut self, frozen: u32);

    fn merged(&mut self, _page: Page, _frozen: u32) {}

    fn zeroed(&mut self, _page: Page) {}

    /// Tells that PageForge's hardware begins to work, after so many calls in all.
    fn hardware_runs(&mut self, _calls: u64) {}

    /// A page that was written since the last call.
    fn next_write(&mut self) -> Option<Page> {
        None
    }
}
