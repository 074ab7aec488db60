//! What the parquet crate reads a trace's pages through: a page beyond the memory limit is refused.
//!
//! Pages are decompressed whole, so the size that their headers claim bounds what reading takes.

use std::fs::File;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};
use serde::Serialize;

/// Bytes of a decompressed page, at most. Writers aim at 1 MB, and few pages exceed a row group of 100 MB.
const PAGE_BYTES: u64 = 128 << 20;

/// The part of a trace file that is under checksums, Parquet's own: a page's is in its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Checksums {
    /// The pages that were read; not their headers, and not the footer.
    Pages,
    /// Not all pages that were read, or none.
    None,
}

pub(super) struct Pages {
    pub(super) file: File,
    pub(super) seen: Arc<CheckedPages>,
}

#[derive(Default)]
pub(super) struct CheckedPages {
    with: AtomicBool,
    without: AtomicBool,
}

impl CheckedPages {
    pub(super) fn checksums(&self) -> Checksums {
        match self.with.load(Ordering::Relaxed) && !self.without.load(Ordering::Relaxed) {
            true => Checksums::Pages,
            false => Checksums::None,
        }
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Pages {
    type T = PageHeader;

    fn get_read(&self, start: u64) -> Result<PageHeader> {
        Ok(PageHeader {
            file: BufReader::with_capacity(1 << 10, self.file.try_clone()?),
            unread: Some(start),
            seen: Arc::clone(&self.seen),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.file.get_bytes(start, length)
    }
}

/// Reads a page header when its first byte is asked for. The parquet crate also makes readers where no header is, and
/// does not use them.
pub(super) struct PageHeader {
    file: BufReader<File>,
    unread: Option<u64>,
    seen: Arc<CheckedPages>,
}

impl Read for PageHeader {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if let Some(start) = self.unread.take() {
            self.file.seek(SeekFrom::Start(start))?;
            match Claims::parse(self.file.fill_buf()?) {
                Some(claims) if claims.bytes <= PAGE_BYTES => {
                    let seen = [&self.seen.without, &self.seen.with];
                    seen[usize::from(claims.checksum)].store(true, Ordering::Relaxed);
                }
                claims => {
                    let claim =
                        claims.map_or("a size unknown".into(), |c| format!("{} bytes", c.bytes));
                    let what = format!(
                        "the page at byte {start} claims {claim}, and a trace's pages have at most \
                         {PAGE_BYTES} bytes; write smaller ones"
                    );
                    return Err(Error::new(ErrorKind::InvalidData, what));
                }
            }
        }
        self.file.read(into)
    }
}

/// The first fields of a page header. All writers begin with the page's type, its decompressed size and its size in the
/// file. In Thrift's compact protocol each is a byte that says "the next field, a number" and then a zigzag number. The
/// page's checksum is the next field; a header without one continues with a later field.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Claims {
    pub(super) bytes: u64,
    pub(super) end: usize,
    pub(super) checksum: bool,
}

/// The byte before a 32-bit number that is the next field of a header.
pub(super) const NEXT_FIELD_I32: u8 = 0x15;

impl Claims {
    pub(super) fn parse(header: &[u8]) -> Option<Claims> {
        let mut at = 0;
        let mut number = || {
            let mut value = 0;
            if *header.get(at)? != NEXT_FIELD_I32 {
                return None;
            }
            for shift in (0..35).step_by(7) {
                at += 1;
                let byte = *header.get(at)?;
                value |= u64::from(byte & 0x7F) << shift;
                if byte & 0x80 == 0 {
                    at += 1;
                    return (value & 1 == 0).then_some(value >> 1);
                }
            }
            None
        };
        let (_, bytes, _) = (number()?, number()?, number()?);
        let checksum = header.get(at) == Some(&NEXT_FIELD_I32);
        Some(Claims {
            bytes,
            end: at,
            checksum,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Claims;

    #[test]
    fn a_page_headers_claims_are_read() {
        let claims = |header: &[u8]| Claims::parse(header).map(|c| (c.bytes, c.end, c.checksum));
        let plain = [0x15, 0, 0x15, 20, 0x15, 20, 0x2C];
        assert_eq!(claims(&plain), Some((10, 6, false)));
        let summed = [0x15, 0, 0x15, 20, 0x15, 20, 0x15, 6, 0x1C];
        assert_eq!(claims(&summed), Some((10, 6, true)));
        let gigabyte = [0x15, 4, 0x15, 0x80, 0x80, 0x80, 0x80, 0x08, 0x15, 2, 0];
        assert_eq!(claims(&gigabyte), Some((1 << 30, 10, false)));
        assert_eq!(claims(&[0x15, 0, 0x15, 1, 0x15, 20]), None, "negative");
        assert_eq!(claims(&[0x15, 0, 0x25, 2, 0x15, 20]), None, "another field");
        assert_eq!(claims(&[0x15, 0, 0x15, 0x80]), None, "no end");
    }
}
