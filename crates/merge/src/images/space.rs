//! The pages of a machine over all its snapshots, numbered: a page keeps its number when it goes and comes back.
//! Stretches of pages have names.

use super::{ImageMachine, NamedRange};
use crate::{PAGE_BYTES, Page};

/// Pages of an unnamed stretch are told apart in pieces of this many: 32 MiB.
const PIECE: u64 = 8192;

#[derive(Clone, Copy, Debug)]
struct Span {
    first: u64,
    end: u64,
    page: Page,
}

#[derive(Debug)]
pub struct MachineSpace {
    spans: Vec<Span>,
    names: Vec<NamedRange>,
    pub first: Page,
    pub end: Page,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Region(pub String);

impl MachineSpace {
    /// Numbers the machine's pages from `first` on. `None` if there are more than fit.
    pub fn new(machine: &ImageMachine, first: Page) -> Option<MachineSpace> {
        let extents = machine
            .snapshots
            .iter()
            .flat_map(|snapshot| &snapshot.extents);
        let ranges = extents.map(|extent| (extent.first, extent.first + u64::from(extent.pages)));
        let mut ranges: Vec<(u64, u64)> = ranges.collect();
        ranges.sort_unstable();
        let mut spans: Vec<Span> = Vec::new();
        let mut page = u64::from(first);
        for (start, end) in ranges {
            let last = spans.last_mut().filter(|last| start <= last.end);
            if let Some(last) = last {
                page += end.saturating_sub(last.end);
                last.end = last.end.max(end);
            } else {
                spans.push(Span {
                    first: start,
                    end,
                    page: u32::try_from(page).ok()?,
                });
                page += end - start;
            }
        }
        let mut names: Vec<NamedRange> = machine
            .snapshots
            .iter()
            .flat_map(|s| s.names.clone())
            .collect();
        names.sort_by_key(|named| named.first);
        names.dedup();
        Some(MachineSpace {
            spans,
            names,
            first,
            end: u32::try_from(page).ok().filter(|page| *page < 1 << 31)?,
        })
    }

    pub fn pages(&self) -> usize {
        (self.end - self.first) as usize
    }

    /// The number of the page at an address that some snapshot has.
    pub fn page_at(&self, address: u64) -> Page {
        let after = self.spans.partition_point(|span| span.first <= address);
        let span = &self.spans[after - 1];
        span.page + (address - span.first) as Page
    }

    pub fn address_of(&self, page: Page) -> u64 {
        let after = self.spans.partition_point(|span| span.page <= page);
        let span = &self.spans[after - 1];
        span.first + u64::from(page - span.page)
    }

    /// The file that is mapped at a page, or a stretch of addresses.
    pub fn region(&self, page: Page) -> Region {
        let address = self.address_of(page);
        let after = self.names.partition_point(|named| named.first <= address);
        let named = self.names[..after].iter().rev().take(8);
        if let Some(named) = named.clone().find(|named| address < named.end) {
            return Region(named.name.clone());
        }
        let first = address / PIECE * PIECE;
        let bytes = PAGE_BYTES as u64;
        Region(format!(
            "{:#x}-{:#x}",
            first * bytes,
            (first + PIECE) * bytes
        ))
    }
}
