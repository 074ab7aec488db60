//! Checksums of a trace file: every byte of it is under one, so a byte that changed is found before it is decoded.
//!
//! Each page header has Parquet's own CRC of its page, which other tools check as well. Headers and footer have none in
//! Parquet, so a block of CRCs stands before the footer, where readers that do not know it look at nothing. From its
//! start: a CRC of each column chunk (headers and pages) in the file's order; how many those are; the CRC of footer,
//! footer length and magic number; the block's own magic number; the CRC of the block so far. All are CRC-32 (that of
//! zlib and Parquet) and little-endian.

use std::fs::File;
use std::os::unix::fs::FileExt;

use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use serde::Serialize;

/// The writer's name in the footer of files that have the block. The block and the name confirm each other, so that one
/// changed byte cannot hide both.
pub(super) const CREATED_BY: &str = concat!(
    "sardonyx version ",
    env!("CARGO_PKG_VERSION"),
    " (build with checksums)"
);
const MAGIC: &[u8; 8] = b"SARDCRC1";
const CRC: usize = 4;
/// Bytes of the block's fixed fields: the number of chunks, the footer's CRC, the magic number and the block's CRC.
const FIXED: usize = CRC + CRC + MAGIC.len() + CRC;
const FIRST: u64 = 4;
const PIECE: usize = 1 << 18;

/// The part of a trace file that is under a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Checksums {
    /// Every byte.
    All,
    /// The pages that were read; not their headers, and not the footer.
    Pages,
    /// Not all pages that were read, or none.
    None,
}

/// Makes the block of a file whose column chunks have these CRCs. `footer` includes its length and the magic number.
pub(super) fn block(chunks: &[u32], footer: &[u8]) -> Vec<u8> {
    let mut block = Vec::with_capacity(chunks.len() * CRC + FIXED);
    let mut put = |crc: u32| block.extend(crc.to_le_bytes());
    chunks.iter().for_each(|crc| put(*crc));
    put(u32::try_from(chunks.len()).expect("fewer than 2^32 column chunks"));
    put(crc32fast::hash(footer));
    block.extend(MAGIC);
    block.extend(crc32fast::hash(&block).to_le_bytes());
    block
}

pub(super) struct Sums {
    start: u64,
    chunks: Vec<u32>,
}

impl Sums {
    /// Reads the checksums of a file, if it has any, and checks the footer against its own. The `footer`, with length
    /// and magic number, begins at `end`.
    ///
    /// # Errors
    /// A block or a footer that has changed.
    pub(super) fn read(file: &File, end: u64, footer: &[u8]) -> Result<Option<Sums>, String> {
        let mut fixed = [0; FIXED];
        let Some(start) = end.checked_sub(FIXED as u64).filter(|at| *at >= FIRST) else {
            return Ok(None);
        };
        read_at(file, &mut fixed, start)?;
        if fixed[2 * CRC..FIXED - CRC] != *MAGIC {
            return Ok(None);
        }
        let number = |at: usize| u32::from_le_bytes(fixed[at..at + CRC].try_into().expect("four"));
        let length = u64::from(number(0)) * CRC as u64;
        let changed = |from: u64| format!("its checksums, bytes {from}-{}, have changed", end - 1);
        let Some(start) = start.checked_sub(length).filter(|at| *at >= FIRST) else {
            return Err(changed(start));
        };
        let mut block = vec![0; length as usize + FIXED];
        read_at(file, &mut block, start)?;
        let own = block.len() - CRC;
        if crc32fast::hash(&block[..own]) != number(FIXED - CRC) {
            return Err(changed(start));
        }
        if crc32fast::hash(footer) != number(CRC) {
            let last = end + footer.len() as u64 - 1;
            return Err(format!(
                "its footer, bytes {end}-{last}, does not have its checksum"
            ));
        }
        let words = block[..length as usize].chunks_exact(CRC);
        let chunks = words.map(|word| u32::from_le_bytes(word.try_into().expect("four")));
        Ok(Some(Sums {
            start,
            chunks: chunks.collect(),
        }))
    }

    /// Checks that the chunks which the footer names are those of the block, and leave no byte before the block out.
    ///
    /// # Errors
    /// A gap or another number.
    pub(super) fn check_cover(&self, metadata: &ParquetMetaData) -> Result<(), String> {
        let groups = metadata.row_groups().iter();
        let chunks: Vec<_> = groups.flat_map(|group| group.columns()).collect();
        let mut at = FIRST;
        for chunk in &chunks {
            let (start, length) = extent(chunk);
            if start != at {
                break;
            }
            at += length;
        }
        if chunks.len() != self.chunks.len() || at != self.start {
            return Err("its checksums are not those of its columns".to_owned());
        }
        Ok(())
    }

    /// Checks the chunks of row group `index`, whose first row is `row`, against their checksums.
    ///
    /// # Errors
    /// The first chunk that has changed.
    pub(super) fn check_group(
        &self,
        file: &File,
        metadata: &ParquetMetaData,
        index: usize,
        row: u64,
    ) -> Result<(), String> {
        let group = metadata.row_group(index);
        let first = index * group.num_columns();
        let mut piece = vec![0; PIECE];
        for (chunk, sum) in group.columns().iter().zip(&self.chunks[first..]) {
            let (start, length) = extent(chunk);
            let mut hasher = crc32fast::Hasher::new();
            let mut done = 0;
            while done < length {
                let part = &mut piece[..(length - done).min(PIECE as u64) as usize];
                read_at(file, part, start + done)?;
                hasher.update(part);
                done += part.len() as u64;
            }
            if hasher.finalize() != *sum {
                let (name, last) = (chunk.column_path().string(), start + length - 1);
                let rows = row + (group.num_rows() as u64).max(1) - 1;
                return Err(format!(
                    "column `{name}` of rows {row}-{rows}, bytes {start}-{last}, does not have its checksum"
                ));
            }
        }
        Ok(())
    }
}

/// The offset and the length of a column chunk. The footer's bounds have been checked before.
fn extent(chunk: &ColumnChunkMetaData) -> (u64, u64) {
    let start = (chunk.dictionary_page_offset()).unwrap_or(chunk.data_page_offset());
    (start as u64, chunk.compressed_size() as u64)
}

fn read_at(file: &File, into: &mut [u8], at: u64) -> Result<(), String> {
    file.read_exact_at(into, at)
        .map_err(|e| format!("cannot be read: {e}"))
}
