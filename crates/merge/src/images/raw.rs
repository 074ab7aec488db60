//! Raw dumps: pages from address 0 on, as QEMU's `pmemsave` writes them.

use std::path::Path;

use memmap2::Mmap;

use super::{Data, ImageError, PageExtent, Snapshot, bad};
use crate::PAGE_BYTES;

pub fn read(path: &Path, map: Mmap) -> Result<Snapshot, ImageError> {
    let bytes = map.len();
    let over = bytes % PAGE_BYTES;
    if over != 0 {
        return Err(bad(
            path,
            format!(
                "{bytes} bytes are no whole number of pages of {PAGE_BYTES}; it is cut short by {}, or no dump",
                PAGE_BYTES - over
            ),
        ));
    }
    let pages =
        u32::try_from(bytes / PAGE_BYTES).map_err(|_| bad(path, "is larger than 16 TiB"))?;
    let extent = PageExtent {
        first: 0,
        pages,
        offset: 0,
    };
    Ok(Snapshot {
        data: Data::Mapped(map),
        extents: vec![extent],
        names: Vec::new(),
        missing: 0,
        holes: 0,
    })
}
