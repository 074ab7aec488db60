//! What the parquet crate reads a trace's pages through: a page beyond the memory limit is refused.
//!
//! Pages are decompressed whole, so the size that their headers claim bounds what reading takes.

use std::fs::File;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Seek, SeekFrom};

use bytes::Bytes;
use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};

/// Bytes of a page when decompressed; writers aim at 1 MB and few go beyond a row group of 100 MB.
const PAGE_BYTES: u64 = 128 << 20;

/// A trace file whose pages are to be read.
pub(super) struct Pages(pub(super) File);

impl Length for Pages {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Pages {
    type T = Header;

    fn get_read(&self, start: u64) -> Result<Header> {
        Ok(Header {
            file: BufReader::with_capacity(1 << 10, self.0.try_clone()?),
            unread: Some(start),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}

/// Reads a page header, looked at when its first byte is asked for: the crate also makes readers where
/// no header is, and does not use them.
pub(super) struct Header {
    file: BufReader<File>,
    /// Where it begins, while nothing of it has been read.
    unread: Option<u64>,
}

impl Read for Header {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if let Some(start) = self.unread.take() {
            self.file.seek(SeekFrom::Start(start))?;
            match page_bytes(self.file.fill_buf()?) {
                Some(0..=PAGE_BYTES) => {}
                claim => {
                    let claim = claim.map_or("a size unknown".into(), |n| format!("{n} bytes"));
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

/// The size of the decompressed page that a header claims. All writers begin with the page's type and
/// this size: each a byte that says "the next field, a number", and a zigzag number (Thrift's compact protocol).
fn page_bytes(header: &[u8]) -> Option<u64> {
    const NEXT_FIELD_I32: u8 = 0x15;
    let mut bytes = header.iter();
    let mut number = || {
        let mut value = 0;
        if *bytes.next()? != NEXT_FIELD_I32 {
            return None;
        }
        for shift in (0..35).step_by(7) {
            let byte = bytes.next()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return (value & 1 == 0).then_some(value >> 1);
            }
        }
        None
    };
    number()?;
    number()
}

#[cfg(test)]
mod tests {
    use super::page_bytes;

    #[test]
    fn a_page_headers_claim_is_read() {
        assert_eq!(page_bytes(&[0x15, 0, 0x15, 20, 0x15, 20, 0]), Some(10));
        let gigabyte = [0x15, 4, 0x15, 0x80, 0x80, 0x80, 0x80, 0x08, 0];
        assert_eq!(page_bytes(&gigabyte), Some(1 << 30));
        assert_eq!(page_bytes(&[0x15, 0, 0x15, 1]), None, "negative");
        assert_eq!(page_bytes(&[0x15, 0, 0x25, 2]), None, "another field");
        assert_eq!(page_bytes(&[0x15, 0, 0x15, 0x80]), None, "no end");
    }
}
