//! ELF cores: of a process by virtual address, as the kernel or gcore writes them, and of a machine by physical
//! address, as QEMU's `dump-guest-memory` does.

use std::path::Path;

use memmap2::Mmap;
use object::elf::{ET_CORE, FileHeader64, PT_LOAD, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endian, Endianness};

use super::{Data, ImageError, NamedRange, PageExtent, Snapshot, bad};
use crate::PAGE_BYTES;

const PAGE: u64 = PAGE_BYTES as u64;
const NT_FILE: u32 = 0x4649_4c45;

pub fn read(path: &Path, map: Mmap) -> Result<Snapshot, ImageError> {
    let problem = |error: object::read::Error| bad(path, format!("as an ELF core: {error}"));
    let header = FileHeader64::<Endianness>::parse(&*map).map_err(|_| {
        bad(
            path,
            "is an ELF file that is not 64-bit, or is cut short in its header",
        )
    })?;
    let endian = header.endian().map_err(problem)?;
    if header.e_type(endian) != ET_CORE {
        return Err(bad(
            path,
            "is an ELF file but no core; give a core, or a raw dump",
        ));
    }
    let segments = header.program_headers(endian, &*map).map_err(problem)?;
    let (extents, missing) = extents(path, endian, segments, map.len() as u64)?;
    let mut names = Vec::new();
    for segment in segments {
        let Ok(Some(mut notes)) = segment.notes(endian, &*map) else {
            continue;
        };
        while let Ok(Some(note)) = notes.next() {
            if note.n_type(endian).0 == NT_FILE {
                names.extend(mapped_files(endian, note.desc()));
            }
        }
    }
    names.sort_by_key(|named: &NamedRange| named.first);
    Ok(Snapshot {
        data: Data::Mapped(map),
        extents,
        names,
        missing,
        holes: 0,
    })
}

/// The pages of all segments in order, and the number of pages that segments name but do not hold. A core of a machine has
/// physical addresses; the kernel leaves those of a process zero.
fn extents(
    path: &Path,
    endian: Endianness,
    segments: &[ProgramHeader64<Endianness>],
    file_bytes: u64,
) -> Result<(Vec<PageExtent>, u64), ImageError> {
    let loads = segments
        .iter()
        .filter(|segment| segment.p_type(endian) == PT_LOAD);
    let physical = loads.clone().any(|segment| segment.p_paddr(endian) != 0);
    let (mut extents, mut missing) = (Vec::new(), 0);
    for segment in loads {
        let address = if physical {
            segment.p_paddr(endian)
        } else {
            segment.p_vaddr(endian)
        };
        let (offset, held) = (segment.p_offset(endian), segment.p_filesz(endian));
        let all = segment.p_memsz(endian).max(held);
        if address % PAGE != 0 || held % PAGE != 0 {
            let problem = format!(
                "the segment at {address:#x} of {held} bytes is not made of pages of {PAGE_BYTES}"
            );
            return Err(bad(path, problem));
        }
        if offset.saturating_add(held) > file_bytes {
            let short = offset.saturating_add(held) - file_bytes;
            let problem = format!(
                "is cut short: the segment at {address:#x} lacks {short} bytes; dump it again"
            );
            return Err(bad(path, problem));
        }
        missing += (all - held) / PAGE;
        let pages = u32::try_from(held / PAGE)
            .map_err(|_| bad(path, "has a segment larger than 16 TiB"))?;
        if pages > 0 {
            extents.push(PageExtent {
                first: address / PAGE,
                pages,
                offset,
            });
        }
    }
    extents.sort_by_key(|extent| extent.first);
    let overlap = extents
        .windows(2)
        .find(|pair| pair[0].first + u64::from(pair[0].pages) > pair[1].first);
    if let Some(pair) = overlap {
        let at = pair[1].first * PAGE;
        return Err(bad(
            path,
            format!("two segments hold the page at {at:#x}; dump without paging (-p)"),
        ));
    }
    if extents.is_empty() {
        return Err(bad(path, "holds no pages"));
    }
    Ok((extents, missing))
}

/// The mapped files that the note names; none if the note is damaged.
fn mapped_files(endian: Endianness, note: &[u8]) -> Vec<NamedRange> {
    let word = |index: usize| {
        let bytes = note.get(index * 8..index * 8 + 8)?;
        Some(endian.read_u64(bytes.try_into().ok()?))
    };
    let Some(count) = word(0).and_then(|count| usize::try_from(count).ok()) else {
        return Vec::new();
    };
    let Some(paths) = count
        .checked_mul(24)
        .and_then(|bytes| note.get(bytes.checked_add(16)?..))
    else {
        return Vec::new();
    };
    let paths = paths.split(|byte| *byte == 0);
    let ranges = (0..count).map_while(|index| Some((word(2 + 3 * index)?, word(3 + 3 * index)?)));
    let named = ranges.zip(paths).map(|((first, end), path)| NamedRange {
        first: first / PAGE,
        end: end / PAGE,
        name: String::from_utf8_lossy(path).into_owned(),
    });
    named.collect()
}
