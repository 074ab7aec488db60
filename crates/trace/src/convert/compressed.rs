//! Opens what gzip, xz or zstd has compressed as what it was, by its first bytes.

use std::io::{BufRead, BufReader, Cursor, Read, Result};

const GZIP: &[u8] = b"\x1f\x8b";
const XZ: &[u8] = b"\xfd7zXZ\0";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// Reads `from`, decompressed if it is compressed.
pub(super) fn open(mut from: impl Read + 'static) -> Result<Box<dyn BufRead>> {
    let mut first = Vec::new();
    from.by_ref()
        .take(XZ.len() as u64)
        .read_to_end(&mut first)?;
    let is = |mark: &[u8]| first.starts_with(mark);
    let (gzip, xz, zstd) = (is(GZIP), is(XZ), is(ZSTD));
    let whole = BufReader::new(Cursor::new(first).chain(from));
    Ok(if gzip {
        Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(whole)))
    } else if xz {
        Box::new(BufReader::new(lzma_rust2::XzReader::new(whole, true)))
    } else if zstd {
        Box::new(BufReader::new(zstd::Decoder::with_buffer(whole)?))
    } else {
        Box::new(whole)
    })
}
