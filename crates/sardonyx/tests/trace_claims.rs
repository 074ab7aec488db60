//! Files whose footers claim what is not there: each is refused at once, in words, and in little memory.
//!
//! A footer ends with the stop of its struct, so claims are put before that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{
    ArrayRef, FixedSizeBinaryArray, RecordBatch, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::Encoding;
use parquet::file::properties::WriterProperties;
use sardonyx::trace::{TraceError, TraceReader};

/// A sound trace of another tool, its `data` in this encoding.
fn sound(encoding: Encoding) -> Vec<u8> {
    let lines = (0..40u8).map(|i| Some([i % 7; 64]));
    let data = FixedSizeBinaryArray::try_from_sparse_iter_with_size(lines, 64).unwrap();
    let columns: [(&str, ArrayRef); 5] = [
        ("gap", Arc::new(UInt32Array::from_iter_values(0..40))),
        ("thread", Arc::new(UInt16Array::from(vec![0; 40]))),
        ("op", Arc::new(UInt8Array::from(vec![1; 40]))),
        ("line", Arc::new(UInt64Array::from_iter_values(0..40))),
        ("data", Arc::new(data)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_column_encoding("data".into(), encoding)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// The file with its footer passed through `change`.
fn with_footer(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let whole = sound(Encoding::PLAIN);
    let tail = whole.len() - 8;
    let length = u32::from_le_bytes(whole[tail..tail + 4].try_into().unwrap()) as usize;
    let mut footer = whole[tail - length..tail].to_vec();
    change(&mut footer);
    let mut bytes = whole[..tail - length].to_vec();
    bytes.extend(&footer);
    bytes.extend((footer.len() as u32).to_le_bytes());
    bytes.extend(b"PAR1");
    bytes
}

/// The footer with an unknown field more.
fn with_field(field: &[u8]) -> Vec<u8> {
    with_footer(|footer| {
        assert_eq!(footer.pop(), Some(0));
        footer.extend(field);
        footer.push(0);
    })
}

/// Reads all of it; the error, if there is one.
fn outcome(bytes: &[u8]) -> Result<u64, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    std::fs::write(&path, bytes).unwrap();
    let began = Instant::now();
    let read = || {
        let mut reader = TraceReader::open(&path)?;
        let (mut batch, mut count) = (Vec::new(), 0);
        while reader.next_batch(&mut batch)? {
            count += batch.len() as u64;
        }
        Ok(count)
    };
    let outcome = read().map_err(|e: TraceError| e.to_string());
    let took = began.elapsed();
    assert!(took < Duration::from_millis(500), "{took:?}: {outcome:?}");
    outcome
}

fn refused(bytes: &[u8], words: &str) {
    let error = outcome(bytes).unwrap_err();
    assert!(error.contains(words), "{error}");
    assert!(error.contains("record or copy the trace again"), "{error}");
}

/// 2^31 - 1 as Thrift writes a length.
const MANY: [u8; 5] = [0xFF, 0xFF, 0xFF, 0xFF, 0x07];

#[test]
fn an_unknown_field_is_passed_over() {
    assert_eq!(outcome(&with_footer(|_| ())), Ok(40));
    assert_eq!(outcome(&with_field(&[0x98, 3, 1, 2, 3])), Ok(40));
    // Of lists of numbers, one is empty and the other has two.
    let lists = [0x99, 0x29, 0x05, 0x25, 2, 4];
    assert_eq!(outcome(&with_field(&lists)), Ok(40));
}

/// The parquet crate passes over 2^31 truth values, which take no bytes, one by one: seconds for
/// seven bytes, and minutes for a list of such lists.
#[test]
fn a_list_of_truth_values_does_not_stall_the_reader() {
    refused(
        &with_field(&[&[0x99, 0xF1], &MANY[..]].concat()),
        "truth values",
    );
    let lists = [[0xF1].as_slice(), &MANY].concat().repeat(200);
    let head = [0x99, 0xF9, 200, 1];
    refused(&with_field(&[&head[..], &lists].concat()), "truth values");
}

#[test]
fn lists_longer_than_the_footer_are_refused() {
    for element in [3, 5, 8, 9, 12] {
        let field = [&[0x99, 0xF0 | element], &MANY[..]].concat();
        refused(&with_field(&field), "ends before");
    }
    let deep = [0x9C].into_iter().chain([0x1C; 5000]).collect::<Vec<u8>>();
    refused(&with_field(&deep), "too deep");
}

/// The parquet crate makes room for as many columns as one says that it has.
#[test]
fn a_schema_that_claims_columns_is_refused() {
    let children = |bytes: &[u8]| {
        with_footer(|footer| {
            // The root: `num_children` 5 (zigzag 10), after its name.
            let root = b"arrow_schema\x15\x0A";
            let at = footer.windows(root.len()).position(|w| w == root);
            let at = at.unwrap() + root.len() - 1;
            footer.splice(at..=at, bytes.iter().copied());
        })
    };
    assert_eq!(outcome(&children(&[10])), Ok(40));
    refused(&children(&[8]), "columns beyond its tree");
    refused(&children(&[12]), "lacks columns");
    refused(
        &children(&[0xFE, 0xFF, 0xFF, 0xFF, 0x0F]),
        "claims 2147483647 columns",
    );
    refused(&children(&[9]), "claims -5 columns");
}

#[test]
fn columns_beyond_the_file_are_refused() {
    let whole = with_footer(|_| ());
    // Without a byte of its first page, every place is one too far.
    let mut short = whole.clone();
    short.remove(40);
    assert!(outcome(&short).is_err());
    // Without the pages, none is there.
    let tail = whole.len() - 8;
    let length = u32::from_le_bytes(whole[tail..tail + 4].try_into().unwrap()) as usize;
    let bare = [b"PAR1".as_slice(), &whole[tail - length..]].concat();
    refused(&bare, "is not in the file");
}

#[test]
fn a_footer_longer_than_the_file_is_refused() {
    let mut bytes = with_footer(|_| ());
    let tail = bytes.len() - 8;
    bytes[tail..tail + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    refused(&bytes, "more than the file has");
}

/// The parquet crate makes room for as many values as a page of this encoding claims.
#[test]
fn the_encoding_without_a_bound_is_refused_with_the_remedy() {
    assert_eq!(outcome(&sound(Encoding::BYTE_STREAM_SPLIT)), Ok(40));
    refused(&sound(Encoding::DELTA_BYTE_ARRAY), "write `data` as PLAIN");
}

#[test]
fn every_truncation_is_refused() {
    let whole = sound(Encoding::PLAIN);
    for end in 0..whole.len() - 4 {
        assert!(outcome(&whole[..end]).is_err(), "{end} bytes");
        // And with a tail that makes it look whole.
        let tailed = [&whole[..end], b"PAR1"].concat();
        assert!(outcome(&tailed).is_err(), "{end} bytes and a tail");
    }
}
