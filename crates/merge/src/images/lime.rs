//! Dumps of LiME, the Linux memory extractor, in its own format: ranges of physical memory, each behind a head of
//! 32 bytes (magic, version, first and last address, 8 bytes of nothing), as its documentation has them.

use std::path::Path;

use memmap2::Mmap;

use super::{Data, ImageError, PageExtent, Snapshot, bad};
use crate::PAGE_BYTES;

/// The first bytes of each range.
pub const MAGIC: &[u8] = b"EMiL";
const HEAD: usize = 32;
const PAGE: u64 = PAGE_BYTES as u64;

pub fn read(path: &Path, map: Mmap) -> Result<Snapshot, ImageError> {
    let (mut extents, mut at): (Vec<PageExtent>, usize) = (Vec::new(), 0);
    while at < map.len() {
        let Some(head) = map.get(at..at + HEAD) else {
            return Err(cut_short(path, at));
        };
        let word = |from: usize| u64::from_le_bytes(head[from..from + 8].try_into().expect("8"));
        if &head[..4] != MAGIC || head[4..8] != 1u32.to_le_bytes() {
            let problem = format!("as a dump of LiME: no range of version 1 begins at byte {at}");
            return Err(bad(
                path,
                problem + "; dump it with format=lime, uncompressed",
            ));
        }
        let (first, last) = (word(8), word(16));
        let bytes = last.wrapping_sub(first).wrapping_add(1);
        if first > last || first % PAGE != 0 || bytes % PAGE != 0 || bytes / PAGE >= 1 << 31 {
            let problem = format!(
                "as a dump of LiME: the range {first:#x} to {last:#x} is not made of pages"
            );
            return Err(bad(path, problem + " of 4096"));
        }
        at += HEAD;
        let end = at.checked_add(bytes as usize);
        let Some(end) = end.filter(|end| *end <= map.len()) else {
            return Err(cut_short(path, at));
        };
        let follows = extents.last();
        if follows.is_some_and(|last| last.first + u64::from(last.pages) > first / PAGE) {
            return Err(bad(
                path,
                format!("as a dump of LiME: the range at {first:#x} comes twice"),
            ));
        }
        extents.push(PageExtent {
            first: first / PAGE,
            pages: (bytes / PAGE) as u32,
            offset: at as u64,
        });
        at = end;
    }
    Ok(Snapshot {
        data: Data::Mapped(map),
        extents,
        names: Vec::new(),
        missing: 0,
        holes: 0,
    })
}

fn cut_short(path: &Path, at: usize) -> ImageError {
    bad(
        path,
        format!("as a dump of LiME: is cut short in the range at byte {at}; dump it again"),
    )
}
