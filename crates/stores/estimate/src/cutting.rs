//! The cutting of a file's bytes into chunks: fixed blocks of several sizes at once, and chunks whose ends the content
//! decides (FastCDC, ATC 2016).
//!
//! Every byte is hashed once for all fixed sizes: the smallest blocks by SHA-1, larger ones over the digests of those
//! in them. A file's last block is as long as the rest of the file. A block that is a hole is none, and a chunk by
//! content ends at a hole.

use std::io;
use std::ops::Range;

use fastcdc::v2020::FastCDC;
use sha1::{Digest as _, Sha1};
use zstd::bulk::Compressor;
use zstd::zstd_safe::compress_bound;

use super::distinct::Distinct;

/// The bytes of a file that are taken together; a multiple of every fixed size.
pub(super) const BUFFER: usize = 1 << 20;

type Sha1Digest = [u8; 20];

/// Fixed blocks of several sizes, each at least twice as large as the one before.
pub(super) struct Fixed {
    /// Ascending; each a multiple of the first.
    sizes: Vec<usize>,
    digests: Vec<Sha1Digest>,
    zero: Vec<bool>,
    hole: Vec<bool>,
}

impl Fixed {
    pub fn new(sizes: &[u32]) -> Fixed {
        let sizes = sizes.iter().map(|&size| size as usize).collect();
        Fixed {
            sizes,
            digests: Vec::new(),
            zero: Vec::new(),
            hole: Vec::new(),
        }
    }

    /// Takes the next part of a file, whose bytes outside `data` are holes. Only a file's last part may have another
    /// length than [`BUFFER`] bytes. Returns the bytes of the smallest blocks that are holes.
    pub fn part(
        &mut self,
        bytes: &[u8],
        data: &[Range<usize>],
        tables: &mut [Distinct],
        compression: &mut Compression,
    ) -> u64 {
        let Some(&smallest) = self.sizes.first() else {
            return (bytes.len() - data.iter().map(Range::len).sum::<usize>()) as u64;
        };
        let mut skipped = 0;
        self.digests.clear();
        self.zero.clear();
        self.hole.clear();
        let mut data = data.iter().peekable();
        for (number, block) in bytes.chunks(smallest).enumerate() {
            let (start, end) = (number * smallest, number * smallest + block.len());
            while data.next_if(|data| data.end <= start).is_some() {}
            let hole = data.peek().is_none_or(|data| data.start >= end);
            self.digests.push(Sha1::digest(block).into());
            self.zero.push(is_zero(block));
            self.hole.push(hole);
            skipped += if hole { block.len() as u64 } else { 0 };
        }
        for (&size, table) in self.sizes.iter().zip(tables) {
            let together = size / smallest;
            let parts = (self.digests.chunks(together))
                .zip(self.zero.chunks(together))
                .zip(self.hole.chunks(together));
            for (block, ((digests, zero), hole)) in bytes.chunks(size).zip(parts) {
                if hole.iter().all(|&hole| hole) {
                    continue;
                }
                table.zero_chunks += u64::from(zero.iter().all(|&zero| zero));
                let compressed = || compression.bytes(block);
                table.add(&joined(digests), block.len() as u32, compressed);
            }
        }
        skipped
    }
}

/// The digest of a block, from those of its parts.
fn joined(digests: &[Sha1Digest]) -> Sha1Digest {
    if let [only] = digests {
        return *only;
    }
    let mut whole = Sha1::new_with_prefix(b"sardonyx: digests of parts");
    for digest in digests {
        whole.update(digest);
    }
    whole.finalize().into()
}

pub(super) fn is_zero(block: &[u8]) -> bool {
    let mut words = block.chunks(32); // which the compiler compares at once
    words.all(|word| word.iter().fold(0, |all, byte| all | byte) == 0)
}

/// Compresses each chunk by itself, with zstd.
pub(super) struct Compression {
    /// `None` if nothing is compressed.
    compressor: Option<Compressor<'static>>,
    buffer: Vec<u8>,
}

impl Compression {
    pub fn new(level: Option<i32>) -> io::Result<Compression> {
        Ok(Compression {
            compressor: level.map(Compressor::new).transpose()?,
            buffer: Vec::new(),
        })
    }

    /// The bytes that are kept of a chunk: it stays as it is if it does not shrink.
    fn bytes(&mut self, chunk: &[u8]) -> u32 {
        let shorter = self.compressor.as_mut().and_then(|compressor| {
            self.buffer.clear();
            self.buffer.reserve(compress_bound(chunk.len()));
            compressor.compress_to_buffer(chunk, &mut self.buffer).ok()
        });
        shorter.unwrap_or(chunk.len()).min(chunk.len()) as u32
    }
}

pub(super) struct ByContent {
    average: usize,
    pending: Vec<u8>,
}

impl ByContent {
    pub fn new(average: u32) -> ByContent {
        ByContent {
            average: average as usize,
            pending: Vec::new(),
        }
    }

    /// Takes the next part of a file, whose bytes outside `data` are holes and which `last` says is the last one.
    pub fn part(
        &mut self,
        bytes: &[u8],
        data: &[Range<usize>],
        last: bool,
        table: &mut Distinct,
        compression: &mut Compression,
    ) {
        let mut end = 0;
        for data in data {
            if data.start > end {
                self.end(table, compression);
            }
            self.cut(&bytes[data.clone()], false, table, compression);
            end = data.end;
        }
        if last || end < bytes.len() {
            self.end(table, compression);
        }
    }

    /// Ends the chunk in progress, because a hole or nothing follows.
    pub fn end(&mut self, table: &mut Distinct, compression: &mut Compression) {
        self.cut(&[], true, table, compression);
    }

    fn cut(
        &mut self,
        bytes: &[u8],
        last: bool,
        table: &mut Distinct,
        compression: &mut Compression,
    ) {
        self.pending.extend_from_slice(bytes);
        let most = self.average * 4;
        let cutter = FastCDC::new(&self.pending, self.average / 4, self.average, most);
        let mut start = 0;
        while start < self.pending.len() && (last || self.pending.len() - start >= most) {
            let (_, end) = cutter.cut(start, self.pending.len() - start);
            let chunk = &self.pending[start..end];
            table.zero_chunks += u64::from(is_zero(chunk));
            let compressed = || compression.bytes(chunk);
            table.add(&Sha1::digest(chunk).into(), chunk.len() as u32, compressed);
            start = end;
        }
        self.pending.drain(..start);
    }

    pub fn pending(&self) -> &[u8] {
        &self.pending
    }

    pub fn resume(&mut self, pending: Vec<u8>) {
        self.pending = pending;
    }
}
