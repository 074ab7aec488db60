//! Hostile bytes: cut, mutated and crafted files give records or one error, soon and in little memory.
//!
//! The fuzz target `trace_reader` runs the same entry point; this one needs no nightly compiler.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, FixedSizeBinaryArray, RecordBatch, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::Encoding;
use parquet::file::properties::WriterProperties;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sardonyx_trace::{Spec, TraceError, TraceReader, synth_to_file};

#[path = "../../../fuzz/drain.rs"]
mod entry;

use entry::drain;

const MUTATIONS: u64 = 10_000;

fn ours() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours.parquet");
    let spec = Spec {
        records: 300,
        footprint_lines: 64,
        ..Spec::default()
    };
    synth_to_file(spec, 7, &path, &mut |_, _| ()).unwrap();
    std::fs::read(path).unwrap()
}

/// Another tool's: several row groups, no compression and so no checksum either; `data` in this encoding.
fn foreign(encoding: Encoding) -> Vec<u8> {
    let lines = (0..60u8).map(|i| (i % 3 > 0).then_some([i % 7; 64]));
    let data = FixedSizeBinaryArray::try_from_sparse_iter_with_size(lines, 64).unwrap();
    let columns: [(&str, ArrayRef); 5] = [
        ("gap", Arc::new(UInt32Array::from_iter_values(0..60))),
        ("thread", Arc::new(UInt16Array::from(vec![0; 60]))),
        (
            "op",
            Arc::new(UInt8Array::from_iter_values((0..60).map(|i| i % 3))),
        ),
        ("line", Arc::new(UInt64Array::from_iter_values(0..60))),
        ("data", Arc::new(data)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(20))
        .set_column_dictionary_enabled("data".into(), encoding == Encoding::PLAIN)
        .set_column_encoding("data".into(), encoding)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn mutate(bytes: &mut Vec<u8>, dice: &mut ChaCha8Rng) {
    for _ in 0..dice.random_range(1..=4) {
        let len = bytes.len();
        let footer = len.saturating_sub(700);
        // The footer is where a single byte does the most damage.
        let start = if dice.random_range(0..2) == 0 {
            footer
        } else {
            0
        };
        let at = dice.random_range(start..len);
        match dice.random_range(0..6) {
            0 => bytes[at] ^= 1 << dice.random_range(0..8),
            1 => bytes[at] = dice.next_u32() as u8,
            2 => bytes[at] = [0, 0x7F, 0x80, 0xFF][dice.random_range(0..4)],
            3 => drop(bytes.remove(at)),
            4 => bytes.insert(at, dice.next_u32() as u8),
            _ => {
                let end = (at + dice.random_range(1..32)).min(len);
                let from = dice.random_range(0..len - (end - at) + 1);
                bytes.copy_within(from..from + (end - at), at);
            }
        }
    }
}

fn recorded() -> Vec<u8> {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    std::fs::read(traces.join("redis.parquet")).unwrap()
}

/// The number of the `count` files of `make` that are read to their ends.
fn read_whole(count: u64, make: impl Fn(u64) -> Vec<u8>) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.parquet");
    let mut whole = 0;
    for seed in 0..count {
        std::fs::write(&path, make(seed)).unwrap();
        whole += u64::from(drain(&path)); // which counts: no file gives more records than it promises
    }
    whole
}

#[test]
fn mutated_files_give_records_or_an_error() {
    let valid = [ours(), foreign(Encoding::PLAIN)];
    let whole = read_whole(MUTATIONS, |seed| {
        let mut bytes = valid[(seed % 2) as usize].clone();
        if seed >= 2 {
            mutate(&mut bytes, &mut ChaCha8Rng::seed_from_u64(seed));
        }
        bytes
    });
    // Both happen, or the mutations test nothing.
    assert!((100..MUTATIONS - 100).contains(&whole), "{whole} read");
}

#[test]
fn a_mutated_recording_gives_records_or_an_error() {
    let valid = recorded();
    let whole = read_whole(300, |seed| {
        let mut bytes = valid.clone();
        mutate(&mut bytes, &mut ChaCha8Rng::seed_from_u64(seed));
        bytes
    });
    assert!(whole < 300, "some are refused");
}

#[test]
fn every_truncation_is_refused() {
    for (whole, step) in [(foreign(Encoding::PLAIN), 1), (recorded(), 4999)] {
        let ends: Vec<usize> = (0..whole.len() - 4).step_by(step).collect();
        let cut = |i: u64| whole[..ends[i as usize]].to_vec();
        assert_eq!(read_whole(ends.len() as u64, cut), 0);
        // And with a tail that makes it look whole.
        let tailed = |i: u64| [&cut(i), b"PAR1".as_slice()].concat();
        assert_eq!(read_whole(ends.len() as u64, tailed), 0);
    }
}

/// Reads all of it; the error, if there is one.
fn outcome(bytes: &[u8]) -> Result<u64, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    std::fs::write(&path, bytes).unwrap();
    let read = || {
        let mut reader = TraceReader::open(&path)?;
        let (mut batch, mut count) = (Vec::new(), 0);
        while reader.next_batch(&mut batch)? {
            count += batch.len() as u64;
        }
        Ok(count)
    };
    read().map_err(|e: TraceError| e.to_string())
}

fn refused(bytes: &[u8], words: &str) {
    let error = outcome(bytes).unwrap_err();
    assert!(error.contains(words), "{error}");
    assert!(error.contains("record or copy the trace again"), "{error}");
}

fn footer(bytes: &[u8]) -> std::ops::Range<usize> {
    let tail = bytes.len() - 8;
    let length = u32::from_le_bytes(bytes[tail..tail + 4].try_into().unwrap());
    tail - length as usize..tail
}

#[test]
fn claims_of_the_footer_are_held_against_the_file() {
    let whole = foreign(Encoding::PLAIN);
    let footer = footer(&whole);
    let bare = [b"PAR1", &whole[footer.start..]].concat();
    refused(&bare, "is not in the file");
    let mut long = whole.clone();
    long[footer.end..footer.end + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    refused(&long, "more than the file has");
    // A list of 2^31 - 1 numbers in an unknown field, before the end of the footer's struct.
    let list = [0x99, 0xF5, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0];
    let mut listed = whole[..footer.end - 1].to_vec();
    listed.extend(list);
    listed.extend((footer.len() as u32 + list.len() as u32 - 1).to_le_bytes());
    listed.extend(b"PAR1");
    assert!(outcome(&listed).is_err());
}

#[test]
fn a_page_beyond_the_memory_limit_is_refused() {
    let whole = foreign(Encoding::PLAIN);
    // The first page begins with its type, and its size when decompressed.
    assert_eq!(whole[4..7], [0x15, 4, 0x15]);
    let size = whole[7..].iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    let gigabyte = [0x80, 0x80, 0x80, 0x80, 0x08];
    let large = [&whole[..7], &gigabyte, &whole[7 + size..]].concat();
    refused(&large, "claims 1073741824 bytes");
}

/// Pages in this encoding claim a number of values for which the parquet crate makes room at once.
#[test]
fn the_encoding_without_a_bound_is_refused_with_the_remedy() {
    assert_eq!(outcome(&foreign(Encoding::BYTE_STREAM_SPLIT)), Ok(60));
    refused(&foreign(Encoding::DELTA_BYTE_ARRAY), "write it as PLAIN");
}
