//! Holes of a dump's file: pages that the dumping program never wrote. The kernel leaves one where a process has never
//! touched a page; gcore and QEMU write zeros there, which cannot be told from touched pages.

use std::fs::File;
use std::ops::Range;

use rustix::fs::{SeekFrom, seek};

use super::{PageExtent, Snapshot};
use crate::PAGE_BYTES;

const PAGE: u64 = PAGE_BYTES as u64;

/// The parts of a file that are no holes; all of it if the file system does not say.
fn data(file: &File, len: u64) -> Vec<Range<u64>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < len {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(rustix::io::Errno::NXIO) => break,
            Err(_) => return std::iter::once(0..len).collect(),
        };
        let end = seek(file, SeekFrom::Hole(start)).unwrap_or(len);
        found.push(start..end.max(start + 1));
        at = end.max(start + 1);
    }
    found
}

pub fn left_out(mut snapshot: Snapshot, file: &File) -> Snapshot {
    let data = data(file, snapshot.data.bytes().len() as u64);
    let mut kept = Vec::new();
    for extent in &snapshot.extents {
        let all = extent.offset..extent.offset + u64::from(extent.pages) * PAGE;
        let mut next = 0; // the page of the extent after the last that was kept
        let after = data.partition_point(|part| part.end <= all.start);
        for part in data[after..].iter().take_while(|part| part.start < all.end) {
            let first = part.start.saturating_sub(all.start) / PAGE;
            let end = (part.end.min(all.end) - all.start).div_ceil(PAGE);
            let first = first.max(next);
            if first < end {
                kept.push(PageExtent {
                    first: extent.first + first,
                    pages: (end - first) as u32,
                    offset: extent.offset + first * PAGE,
                });
                next = end;
            }
        }
    }
    let pages = |extents: &[PageExtent]| -> u64 {
        let each = extents.iter().map(|extent| u64::from(extent.pages));
        each.sum()
    };
    snapshot.holes = pages(&snapshot.extents) - pages(&kept);
    snapshot.extents = kept;
    snapshot
}
