//! Reads the footer of a trace file, holding it against bounds before and after the parquet crate does.
//!
//! The shapes are those of the Parquet format (parquet.thrift), as far as the crate reads them.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use super::thrift::Claim::{Children, Nothing, RowGroup, SchemaElement};
use super::thrift::Shape::{Binary, Bool, Byte, Double, Int, List, Struct};
use super::thrift::{Claim, Fault, Shape, walk};

/// Bytes at the end of the file: the footer's length and the magic number.
const TAIL: u64 = 8;
/// The first four bytes of the file.
const MAGIC: u64 = 4;
/// The longest footer; that of 2^33 records in our row groups has about as much.
const FOOTER_BYTES: u64 = 1 << 27;
const SCHEMA_ELEMENTS: usize = 10_000;
const SCHEMA_DEPTH: usize = 32;
const ROW_GROUPS: i64 = 1 << 20;

/// Reads and checks the footer of `file`, whose first and last four bytes are known to be Parquet's.
///
/// # Errors
/// What contradicts itself or goes beyond a bound, for [`super::TraceError`] to complete.
pub(super) fn read(file: &mut File) -> Result<ParquetMetaData, String> {
    let io = |e: std::io::Error| format!("cannot be read: {e}");
    let end = file.seek(SeekFrom::End(0)).map_err(io)? - TAIL;
    file.seek(SeekFrom::Start(end)).map_err(io)?;
    let mut length = [0; 4];
    file.read_exact(&mut length).map_err(io)?;
    let length = u64::from(u32::from_le_bytes(length));
    if length > end - MAGIC.min(end) {
        return Err(format!(
            "its footer claims {length} bytes, more than the file has"
        ));
    }
    if length > FOOTER_BYTES {
        return Err(format!(
            "its footer has {length} bytes, more than {FOOTER_BYTES}; write larger row groups"
        ));
    }
    file.seek(SeekFrom::Start(end - length)).map_err(io)?;
    let mut bytes = vec![0; length as usize];
    file.read_exact(&mut bytes).map_err(io)?;
    check_claims(&bytes)?;
    let metadata = ParquetMetaDataReader::decode_metadata(&bytes).map_err(|e| e.to_string())?;
    check_rows(&metadata)?;
    check_places(&metadata, end - length)?;
    Ok(metadata)
}

/// The footer's lists are as long as it says, and not absurd.
fn check_claims(bytes: &[u8]) -> Result<(), String> {
    let mut children: Vec<i64> = Vec::new();
    let mut see = |claim: Claim, value: i64| match claim {
        SchemaElement if children.len() == SCHEMA_ELEMENTS => {
            Err(format!("it has more than {SCHEMA_ELEMENTS} columns"))
        }
        SchemaElement => {
            children.push(0);
            Ok(())
        }
        Children => {
            if let Some(last) = children.last_mut() {
                *last = value;
            }
            Ok(())
        }
        RowGroup if value >= ROW_GROUPS => Err(format!(
            "it has more than {ROW_GROUPS} row groups; write larger ones"
        )),
        _ => Ok(()),
    };
    walk(bytes, &FILE, &mut see).map_err(|fault| match fault {
        Fault::Short => "its footer ends before what it announces".to_owned(),
        Fault::Wrong(what) => format!("in its footer, {what}"),
    })?;
    check_tree(&children)
}

/// The schema is one tree, written depth first, of which `children` has the number of each node's.
fn check_tree(children: &[i64]) -> Result<(), String> {
    let mut open: Vec<i64> = vec![1];
    for &count in children {
        while open.last() == Some(&0) {
            open.pop();
        }
        match open.last_mut() {
            Some(left) => *left -= 1,
            None => return Err("its schema has columns beyond its tree".to_owned()),
        }
        if count < 0 || count > children.len() as i64 {
            return Err(format!("its schema claims {count} columns in one"));
        }
        if count > 0 {
            open.push(count);
        }
        if open.len() > SCHEMA_DEPTH {
            return Err(format!(
                "its schema is nested more than {SCHEMA_DEPTH} deep"
            ));
        }
    }
    if open.iter().any(|&left| left > 0) {
        return Err("its schema lacks columns that it announces".to_owned());
    }
    Ok(())
}

/// The counts of rows agree with each other; whether the pages hold so many is seen when they are read.
fn check_rows(metadata: &ParquetMetaData) -> Result<(), String> {
    let whole = metadata.file_metadata().num_rows();
    let mut sum = 0i64;
    for (index, group) in metadata.row_groups().iter().enumerate() {
        let rows = group.num_rows();
        if rows < 0 {
            return Err(format!("row group {index} has {rows} rows"));
        }
        sum = sum
            .checked_add(rows)
            .ok_or("its row groups have more than 2^63 rows")?;
    }
    if whole != sum {
        return Err(format!(
            "it promises {whole} records, and its row groups hold {sum}"
        ));
    }
    Ok(())
}

/// The columns lie in the file, before the footer, which begins at `end`.
fn check_places(metadata: &ParquetMetaData, end: u64) -> Result<(), String> {
    for (index, group) in metadata.row_groups().iter().enumerate() {
        for column in group.columns() {
            let start = column
                .dictionary_page_offset()
                .unwrap_or(column.data_page_offset());
            let length = column.compressed_size();
            let last = start.checked_add(length);
            if start < 0 || length < 0 || last.is_none_or(|last| last as u64 > end) {
                let name = column.column_path().string();
                return Err(format!(
                    "row group {index} has column `{name}` at byte {start}, {length} bytes long, which \
                     is not in the file"
                ));
            }
        }
    }
    Ok(())
}

static FILE: Shape = Struct(&[
    (1, INT),
    (2, List(SchemaElement, &ELEMENT)),
    (3, INT),
    (4, List(RowGroup, &GROUP)),
    (5, List(Nothing, &KEY_VALUE)),
    (6, Binary),
    (7, List(Nothing, &ORDER)),
]);
const INT: Shape = Int(Nothing);
static ELEMENT: Shape = Struct(&[
    (1, INT),
    (2, INT),
    (3, INT),
    (4, Binary),
    (5, Int(Children)),
    (6, INT),
    (7, INT),
    (8, INT),
    (9, INT),
    (10, LOGICAL),
]);
const NONE: Shape = Struct(&[]);
const UNIT: Shape = Struct(&[(1, NONE), (2, NONE), (3, NONE)]);
const CLOCK: Shape = Struct(&[(1, Bool), (2, UNIT)]);
const LOGICAL: Shape = Struct(&[
    (1, NONE),
    (2, NONE),
    (3, NONE),
    (4, NONE),
    (5, Struct(&[(1, INT), (2, INT)])),
    (6, NONE),
    (7, CLOCK),
    (8, CLOCK),
    (10, Struct(&[(1, Byte), (2, Bool)])),
    (11, NONE),
    (12, NONE),
    (13, NONE),
    (14, NONE),
    (15, NONE),
    (16, Struct(&[(1, Byte)])),
    (17, Struct(&[(1, Binary)])),
    (18, Struct(&[(1, Binary), (2, INT)])),
    (19, NONE),
]);
static KEY_VALUE: Shape = Struct(&[(1, Binary), (2, Binary)]);
static ORDER: Shape = Struct(&[(1, NONE), (2, NONE), (3, NONE)]);
static GROUP: Shape = Struct(&[
    (1, List(Nothing, &CHUNK)),
    (2, INT),
    (3, INT),
    (4, List(Nothing, &SORTING)),
    (5, INT),
    (6, INT),
    (7, INT),
]);
static SORTING: Shape = Struct(&[(1, INT), (2, Bool), (3, Bool)]);
static CHUNK: Shape = Struct(&[
    (1, Binary),
    (2, INT),
    (3, COLUMN),
    (4, INT),
    (5, INT),
    (6, INT),
    (7, INT),
]);
const COLUMN: Shape = Struct(&[
    (1, INT),
    (2, List(Nothing, &INT)),
    (3, List(Nothing, &Binary)),
    (4, INT),
    (5, INT),
    (6, INT),
    (7, INT),
    (8, List(Nothing, &KEY_VALUE)),
    (9, INT),
    (10, INT),
    (11, INT),
    (12, STATISTICS),
    (13, List(Nothing, &Struct(&[(1, INT), (2, INT), (3, INT)]))),
    (14, INT),
    (15, INT),
    (16, Struct(&[(1, INT), (2, LEVELS), (3, LEVELS)])),
    (17, Struct(&[(1, BOX), (2, LEVELS)])),
]);
const LEVELS: Shape = List(Nothing, &INT);
const BOX: Shape = Struct(&[
    (1, Double),
    (2, Double),
    (3, Double),
    (4, Double),
    (5, Double),
    (6, Double),
    (7, Double),
    (8, Double),
]);
/// Of a column or of a page.
pub(super) const STATISTICS: Shape = Struct(&[
    (1, Binary),
    (2, Binary),
    (3, INT),
    (4, INT),
    (5, Binary),
    (6, Binary),
    (7, Bool),
    (8, Bool),
    (9, INT),
]);
