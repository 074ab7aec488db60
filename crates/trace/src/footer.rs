//! Reads the footer of a trace file, which is checked against limits before any page is decoded.

use std::fs::File;
use std::os::unix::fs::FileExt;

use parquet::basic::Encoding;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

/// Bytes at the end of the file: the footer's length and the magic number.
const TAIL: u64 = 8;
const MAGIC: u64 = 4;
/// Bytes of the longest footer that is read. About as much describes 2^33 records in our row groups.
const FOOTER_BYTES: u64 = 1 << 27;
const ROW_GROUPS: usize = 1 << 20;

/// Reads and checks the footer of `file`. The caller knows that the first and the last four bytes are Parquet's.
///
/// # Errors
/// What contradicts itself or goes beyond a bound, for [`super::TraceError`] to complete.
pub(super) fn read(file: &File) -> Result<ParquetMetaData, String> {
    let io = |e: std::io::Error| format!("cannot be read: {e}");
    let end = file.metadata().map_err(io)?.len() - TAIL;
    let mut length = [0; 4];
    file.read_exact_at(&mut length, end).map_err(io)?;
    let length = u64::from(u32::from_le_bytes(length));
    if length > end.saturating_sub(MAGIC) {
        return Err(format!(
            "its footer claims {length} bytes, more than the file has"
        ));
    }
    if length > FOOTER_BYTES {
        return Err(format!(
            "its footer has {length} bytes, more than {FOOTER_BYTES}; write larger row groups"
        ));
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, end - length).map_err(io)?;
    let metadata = ParquetMetaDataReader::decode_metadata(&bytes).map_err(|e| e.to_string())?;
    check(&metadata, end - length)?;
    Ok(metadata)
}

/// Checks that the counts of rows agree with each other, that the columns lie in the file before the footer, which
/// begins at `end`, and that their encoding is one whose pages the parquet crate bounds. Whether pages hold as many
/// rows shows when they are read.
fn check(metadata: &ParquetMetaData, end: u64) -> Result<(), String> {
    let groups = metadata.row_groups();
    if groups.len() > ROW_GROUPS {
        return Err(format!(
            "it has {} row groups, more than {ROW_GROUPS}; write larger ones",
            groups.len()
        ));
    }
    let mut sum = 0i64;
    for (index, group) in groups.iter().enumerate() {
        let rows = group.num_rows();
        if rows < 0 {
            return Err(format!("row group {index} has {rows} rows"));
        }
        sum = sum
            .checked_add(rows)
            .ok_or("its row groups have more than 2^63 rows")?;
        for column in group.columns() {
            let name = column.column_path().string();
            let start = column
                .dictionary_page_offset()
                .unwrap_or(column.data_page_offset());
            let length = column.compressed_size();
            let last = start.checked_add(length);
            if start < 0 || length < 0 || last.is_none_or(|last| last as u64 > end) {
                return Err(format!(
                    "row group {index} has column `{name}` at byte {start}, {length} bytes long, which \
                     is not in the file"
                ));
            }
            if column.encodings().any(|e| e == Encoding::DELTA_BYTE_ARRAY) {
                return Err(format!(
                    "column `{name}` is encoded as DELTA_BYTE_ARRAY, which is not read; write it as \
                     PLAIN or with a dictionary"
                ));
            }
        }
    }
    let whole = metadata.file_metadata().num_rows();
    if whole != sum {
        return Err(format!(
            "it promises {whole} records, and its row groups hold {sum}"
        ));
    }
    Ok(())
}
