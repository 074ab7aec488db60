//! Checksums of trace files, one a page: no changed bit gives other records, and files without checksums are still read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{
    ArrayRef, FixedSizeBinaryArray, RecordBatch, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use parquet::arrow::ArrowWriter;
use sardonyx_trace::line::Virtual;
use sardonyx_trace::{
    Checksums, Op, Provenance, Record, Spec, TraceError, TraceReader, TraceWriter, check,
    synth_to_file,
};
use tempfile::TempDir;

/// A file in a folder of its own, written over and over.
struct Scratch {
    _folder: TempDir,
    path: PathBuf,
}

impl Scratch {
    fn new() -> Scratch {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        Scratch {
            _folder: folder,
            path,
        }
    }

    /// The records of a file of these bytes, or its error.
    fn read(&self, bytes: &[u8]) -> Result<Vec<Record>, String> {
        std::fs::write(&self.path, bytes).unwrap();
        read(&self.path).map_err(|e| e.to_string())
    }

    /// Asserts that a file of these bytes is refused, in one line that names it, by reading and by checking.
    fn refused(&self, bytes: &[u8], what: &str) -> String {
        let Err(error) = self.read(bytes) else {
            panic!("{what} is not found");
        };
        assert!(error.starts_with(self.path.to_str().unwrap()), "{error}");
        assert!(!error.contains('\n'), "{what}: {error}");
        assert!(
            check(&self.path, 1, u64::MAX, &mut |_, _| ()).is_err(),
            "{what}"
        );
        error
    }
}

fn read(path: &Path) -> Result<Vec<Record>, TraceError> {
    let mut reader = TraceReader::open(path)?;
    let (mut batch, mut all) = (Vec::new(), Vec::new());
    while reader.next_batch(&mut batch)? {
        all.append(&mut batch);
    }
    Ok(all)
}

/// A trace of a few records, with all columns and their dictionaries.
fn small() -> Vec<u8> {
    let scratch = Scratch::new();
    let mut writer =
        TraceWriter::with_sites(&scratch.path, Provenance::default(), 3, true).unwrap();
    for i in 0..40u8 {
        let op = Op::from_code(i % 4).unwrap();
        let record = Record {
            gap: u32::from(i) * 100,
            thread: u16::from(i % 2),
            op,
            line: Virtual((1 << 30) + u64::from(i) * 3),
            data: op.is_write().then_some([i / 4; 64]),
        };
        let site = (i % 3 == 0).then_some(u32::from(i));
        writer.push_at(&record, site).unwrap();
    }
    writer.finish().unwrap();
    std::fs::read(&scratch.path).unwrap()
}

/// A trace of two row groups, and several pages in a column.
fn large() -> Vec<u8> {
    let scratch = Scratch::new();
    let spec = Spec {
        records: 70_000,
        footprint_lines: 4096,
        ..Spec::default()
    };
    synth_to_file(spec, 7, &scratch.path, &mut |_, _| ()).unwrap();
    std::fs::read(&scratch.path).unwrap()
}

fn footer(bytes: &[u8]) -> usize {
    let tail = bytes.len() - 8;
    tail - u32::from_le_bytes(bytes[tail..tail + 4].try_into().unwrap()) as usize
}

#[test]
fn no_inverted_bit_gives_other_records() {
    let (scratch, whole) = (Scratch::new(), small());
    let records = scratch.read(&whole).unwrap();
    let mut found = 0;
    for bit in 0..8 * footer(&whole) {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        match scratch.read(&bytes) {
            Ok(read) => assert!(read == records, "bit {} of byte {}", bit % 8, bit / 8),
            Err(_) => found += 1,
        }
    }
    // A few bits of page headers say nothing about records.
    assert!(
        found > 7 * footer(&whole),
        "{found} of {}",
        8 * footer(&whole)
    );
}

#[test]
fn inverted_bytes_of_a_large_trace_are_found() {
    let (scratch, whole) = (Scratch::new(), large());
    let records = scratch.read(&whole).unwrap();
    let step = sardonyx_property::count(10, 1);
    let mut found = 0;
    for (tried, at) in (4..footer(&whole)).step_by(9973 * step).enumerate() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xFF;
        match scratch.read(&bytes) {
            Ok(read) => assert!(read == records, "byte {at} of {}", whole.len()),
            Err(_) => found += 1,
        }
        assert!(
            found + 1 >= tried,
            "only {found} of {} are found",
            tried + 1
        );
    }
    let mut bytes = whole.clone();
    bytes[footer(&whole) - 1] ^= 1;
    let error = scratch.refused(&bytes, "the end of the last column");
    assert!(error.contains("CRC"), "{error}");
    assert!(error.contains("record or copy the trace again"), "{error}");
}

#[test]
fn what_comes_before_a_damaged_row_group_is_read() {
    let (scratch, mut bytes) = (Scratch::new(), large());
    let at = footer(&bytes) - 1;
    bytes[at] ^= 1;
    std::fs::write(&scratch.path, &bytes).unwrap();
    let report = check(&scratch.path, 1, 65_536, &mut |_, _| ()).unwrap();
    assert_eq!((report.records, report.bad), (65_536, 0));
}

#[test]
fn files_say_whether_their_pages_have_checksums() {
    let scratch = Scratch::new();
    std::fs::write(&scratch.path, small()).unwrap();
    let checksums = |path: &Path| check(path, 1, u64::MAX, &mut |_, _| ()).unwrap().checksums;
    assert_eq!(checksums(&scratch.path), Checksums::Pages);
    let columns: [(&str, ArrayRef); 5] = [
        ("gap", Arc::new(UInt32Array::from(vec![0; 3]))),
        ("thread", Arc::new(UInt16Array::from(vec![0; 3]))),
        ("op", Arc::new(UInt8Array::from(vec![0; 3]))),
        ("line", Arc::new(UInt64Array::from(vec![1, 2, 3]))),
        ("data", Arc::new(FixedSizeBinaryArray::new_null(64, 3))),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.map(|(name, column)| (name, column, name == "data")),
    );
    let batch = batch.unwrap();
    let mut foreign = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    foreign.write(&batch).unwrap();
    std::fs::write(&scratch.path, foreign.into_inner().unwrap()).unwrap();
    assert_eq!(checksums(&scratch.path), Checksums::None);
    // Traces of earlier versions have a block of checksums of their own before the footer.
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/redis.parquet");
    let bytes = std::fs::read(&recorded).unwrap();
    assert_eq!(&bytes[footer(&bytes) - 12..footer(&bytes) - 4], b"SARDCRC1");
    assert_eq!(checksums(&recorded), Checksums::Pages);
}
