//! Other tools' traces as gzip, xz or zstd compresses them: read by their first bytes, written by their name.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Cursor, Read, Result, Write};
use std::path::Path;

const GZIP: &[u8] = b"\x1f\x8b";
const XZ: &[u8] = b"\xfd7zXZ\0";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

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

pub(super) enum CompressedFile {
    Plain(BufWriter<File>),
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
    Xz(Box<lzma_rust2::XzWriter<BufWriter<File>>>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
}

impl CompressedFile {
    /// Writes to `file`, as the ending of `name` says: .gz, .xz, .zst or none of them.
    pub(super) fn create(file: File, name: &Path) -> Result<CompressedFile> {
        let file = BufWriter::new(file);
        let ending = name.extension().and_then(|ending| ending.to_str());
        Ok(match ending {
            Some("gz") => {
                let level = flate2::Compression::default();
                CompressedFile::Gzip(flate2::write::GzEncoder::new(file, level))
            }
            Some("xz") => {
                let options = lzma_rust2::XzOptions::with_preset(2); // ten times as fast as 6
                CompressedFile::Xz(Box::new(lzma_rust2::XzWriter::new(file, options)?))
            }
            Some("zst") => CompressedFile::Zstd(zstd::Encoder::new(file, 3)?),
            _ => CompressedFile::Plain(file),
        })
    }

    /// Flushes the file and waits until it is on its disk.
    pub(super) fn finish(self) -> Result<()> {
        let file = match self {
            CompressedFile::Plain(file) => file,
            CompressedFile::Gzip(encoder) => encoder.finish()?,
            CompressedFile::Xz(encoder) => encoder.finish()?,
            CompressedFile::Zstd(encoder) => encoder.finish()?,
        };
        file.into_inner().map_err(|e| e.into_error())?.sync_all()
    }
}

impl Write for CompressedFile {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        match self {
            CompressedFile::Plain(to) => to.write(bytes),
            CompressedFile::Gzip(to) => to.write(bytes),
            CompressedFile::Xz(to) => to.write(bytes),
            CompressedFile::Zstd(to) => to.write(bytes),
        }
    }

    fn flush(&mut self) -> Result<()> {
        match self {
            CompressedFile::Plain(to) => to.flush(),
            CompressedFile::Gzip(to) => to.flush(),
            CompressedFile::Xz(to) => to.flush(),
            CompressedFile::Zstd(to) => to.flush(),
        }
    }
}
