//! The trace file: what is written is read back, and every way to be wrong is one clear error.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{
    ArrayRef, FixedSizeBinaryArray, Int64Array, RecordBatch, UInt8Array, UInt16Array, UInt32Array,
    UInt64Array,
};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;
use sardonyx_trace::line::Virtual;
use sardonyx_trace::{
    GapUnit, Op, Provenance, Record, Source, TraceError, TraceReader, TraceWriter, check, cut,
};

fn records() -> impl Strategy<Value = Vec<Record>> {
    let record = (
        any::<u32>(),
        any::<u16>(),
        0u8..8,
        0u64..1 << 58,
        any::<[u8; 32]>(),
        any::<bool>(),
    );
    let record = record.prop_map(|(gap, thread, op, line, half, some)| {
        let op = Op::from_code(op).unwrap();
        let mut data = [0; 64];
        data[..32].copy_from_slice(&half);
        Record {
            gap,
            thread,
            op,
            line: Virtual(line),
            data: (some || op.is_write()).then_some(data),
        }
    });
    prop::collection::vec(record, 0..200)
}

fn many(n: u32) -> Vec<Record> {
    let op = |i| {
        if i % 3 == 0 {
            Op::DirtyEviction
        } else {
            Op::ReadMiss
        }
    };
    let record = |i: u32| Record {
        gap: i,
        thread: (i % 5) as u16,
        op: op(i),
        line: Virtual(u64::from(i) * 7),
        data: op(i).is_write().then_some([(i % 251) as u8; 64]),
    };
    (0..n).map(record).collect()
}

fn write(path: &Path, records: &[Record]) {
    let mut writer = TraceWriter::create(path, Provenance::default()).unwrap();
    records.iter().for_each(|r| writer.push(r).unwrap());
    assert_eq!(writer.finish().unwrap(), records.len() as u64);
}

fn read(mut source: Source) -> Result<Vec<Record>, TraceError> {
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    while source.next_batch(&mut batch)? {
        all.append(&mut batch);
    }
    Ok(all)
}

proptest! {
    #![proptest_config(sardonyx_property::cases(64))]
    #[test]
    fn what_is_written_is_read_back(records in records()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        write(&path, &records);
        prop_assert_eq!(TraceReader::open(&path).unwrap().records(), records.len() as u64);
        prop_assert_eq!(read(Source::open(&path).unwrap()).unwrap(), records);
    }
}

#[test]
fn limits_and_cuts_are_slices() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let records = many(140_000);
    write(&path, &records);
    for limit in [0, 1, 4095, 4096, 4097, 70_000, 139_999, 140_000, 200_000] {
        let source = Source::open(&path).unwrap().limit(limit);
        let least = limit.min(140_000);
        assert_eq!(source.total(), least);
        assert!(
            read(source).unwrap() == records[..least as usize],
            "limit {limit}"
        );
    }
    let out = folder.path().join("cut.parquet");
    for (skip, limit) in [
        (0, 10),
        (4096, 4096),
        (65_000, 1_000),
        (139_999, 5),
        (1, 140_000),
    ] {
        let n = cut(&path, &out, skip, limit, &mut |_, _| ()).unwrap();
        let end = (skip + limit).min(140_000);
        assert_eq!(n, end - skip);
        let source = Source::open(&out).unwrap();
        let note = source.provenance().more["cut"].clone();
        assert_eq!(note["skip"], skip);
        assert!(
            read(source).unwrap() == records[skip as usize..end as usize],
            "cut {skip} {limit}"
        );
    }
    let error = cut(&path, &out, 140_000, 1, &mut |_, _| ())
        .unwrap_err()
        .to_string();
    assert!(error.contains("140000 records"), "{error}");
}

#[test]
fn an_unfinished_trace_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let mut writer = TraceWriter::create(&path, Provenance::default()).unwrap();
    many(100_000).iter().for_each(|r| writer.push(r).unwrap());
    drop(writer);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    write(&path, &many(3));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_writer_refuses_what_the_reader_would() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer =
        TraceWriter::create(folder.path().join("a.parquet"), Provenance::default()).unwrap();
    let good = many(2)[1];
    let line = Virtual(1 << 58);
    assert!(writer.push(&Record { line, ..good }).is_err());
    let op = Op::FlushWriteBack;
    assert!(writer.push(&Record { op, ..good }).is_err());
    let nowhere = folder.path().join("no/a.parquet");
    assert!(TraceWriter::create(nowhere, Provenance::default()).is_err());
    assert!(TraceWriter::create(folder.path(), Provenance::default()).is_err());
}

#[test]
fn provenance_keeps_what_it_does_not_know() {
    let text =
        r#"{"program": "cc1", "caches": {"llc": "16 MiB"}, "version": 1, "level": "memory"}"#;
    let provenance: Provenance = serde_json::from_str(text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let mut writer = TraceWriter::create(&path, provenance).unwrap();
    writer.push(&many(1)[0]).unwrap();
    writer.finish().unwrap();
    let reader = TraceReader::open(&path).unwrap();
    let provenance = reader.provenance();
    assert_eq!(provenance.program, "cc1");
    assert_eq!(provenance.gap_unit, GapUnit::Instructions);
    assert_eq!(provenance.more["caches"]["llc"], "16 MiB");
    assert_eq!(provenance.more["records"], 1);
}

/// A file of three columns as given and two sound ones, as another tool would write it.
struct Foreign {
    op: ArrayRef,
    line: ArrayRef,
    data: ArrayRef,
    metadata: Option<&'static str>,
}

fn sound(n: usize) -> Foreign {
    Foreign {
        op: Arc::new(UInt8Array::from(vec![1; n])),
        line: Arc::new(UInt64Array::from(vec![5; n])),
        data: data(vec![Some(1); n]),
        metadata: None,
    }
}

fn data(bytes: Vec<Option<u8>>) -> ArrayRef {
    let lines = bytes.into_iter().map(|b| b.map(|b| [b; 64]));
    Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(lines, 64).unwrap())
}

impl Foreign {
    fn write(self, folder: &Path) -> PathBuf {
        let n = self.op.len();
        let gap: ArrayRef = Arc::new(UInt32Array::from(vec![1; n]));
        let thread: ArrayRef = Arc::new(UInt16Array::from(vec![0; n]));
        let columns = [
            ("op", self.op),
            ("line", self.line),
            ("gap", gap),
            ("thread", thread),
        ];
        let columns = columns.into_iter().chain([("data", self.data)]);
        self::foreign(
            folder,
            RecordBatch::try_from_iter(columns).unwrap(),
            self.metadata,
        )
    }

    fn error(self) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = self.write(folder.path());
        let error = Source::open(path).and_then(read).unwrap_err().to_string();
        error.replace(&folder.path().display().to_string(), "")
    }
}

fn foreign(folder: &Path, batch: RecordBatch, metadata: Option<&str>) -> PathBuf {
    let path = folder.join("a.parquet");
    let pair = metadata.map(|m| vec![KeyValue::new("sardonyx.trace".to_owned(), m.to_owned())]);
    let properties = WriterProperties::builder()
        .set_key_value_metadata(pair)
        .build();
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    path
}

#[test]
fn another_tools_file_is_read_whatever_its_column_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = sound(10).write(folder.path());
    assert_eq!(read(Source::open(path).unwrap()).unwrap().len(), 10);
}

#[test]
fn bad_rows_are_named() {
    let mut codes = vec![1; 5000];
    codes[4812] = 12;
    let op = Arc::new(UInt8Array::from(codes));
    let error = Foreign { op, ..sound(5000) }.error();
    assert_eq!(error, "/a.parquet, row 4812: op 12 is not one of 0-11");

    let refused = |words: &str, foreign: Foreign| {
        let error = foreign.error();
        assert!(error.contains(words), "{error}");
    };
    let op = Arc::new(UInt8Array::from(vec![Some(1), None]));
    refused("row 1: `op` is null", Foreign { op, ..sound(2) });
    let line = Arc::new(UInt64Array::from(vec![Some(1), None]));
    refused("row 1: `line` is null", Foreign { line, ..sound(2) });
    let line = Arc::new(UInt64Array::from(vec![(1 << 58) - 1, 1 << 58]));
    let words = "row 1: line 288230376151711744 is not";
    refused(words, Foreign { line, ..sound(2) });
    let data = data(vec![Some(0), None]);
    refused("row 1: op 1 carries a line", Foreign { data, ..sound(2) });
}

#[test]
fn records_before_a_bad_row_are_delivered_and_then_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let op = Arc::new(UInt8Array::from(vec![0, 0, 12, 0]));
    let path = Foreign { op, ..sound(4) }.write(folder.path());
    let (mut reader, mut batch) = (TraceReader::open(path).unwrap(), Vec::new());
    assert!(reader.next_batch(&mut batch).is_err());
    assert_eq!(batch.len(), 2);
    assert!(!reader.next_batch(&mut batch).unwrap());
}

#[test]
fn check_goes_on_after_a_bad_row() {
    let folder = tempfile::tempdir().unwrap();
    let op = Arc::new(UInt8Array::from(
        (0..9000)
            .map(|i| if i % 1000 == 7 { 77 } else { 1 })
            .collect::<Vec<u8>>(),
    ));
    let path = Foreign { op, ..sound(9000) }.write(folder.path());
    let report = check(&path, 3, u64::MAX, &mut |_, _| ()).unwrap();
    assert_eq!(
        (report.records, report.bad, report.is_ok()),
        (9000, 9, false)
    );
    assert_eq!(
        report.problems.iter().map(|p| p.row).collect::<Vec<_>>(),
        [7, 1007, 2007]
    );
    for (limit, bad) in [(0, 0), (7, 0), (8, 1), (5007, 5), (5008, 6), (10_000, 9)] {
        let report = check(&path, 3, limit, &mut |_, _| ()).unwrap();
        assert_eq!((report.records, report.bad), (limit.min(9000), bad));
    }
    write(&path, &many(10));
    assert!(check(&path, 3, u64::MAX, &mut |_, _| ()).unwrap().is_ok());
}

#[test]
fn operations_of_the_other_level_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let codes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    let cpu = Some(r#"{"version": 1, "level": "cpu"}"#);
    for (metadata, refused) in [(None, vec![8, 9]), (cpu, vec![0, 1, 3])] {
        let op = Arc::new(UInt8Array::from(codes.to_vec()));
        let path = Foreign {
            op,
            metadata,
            ..sound(codes.len())
        }
        .write(folder.path());
        let report = check(&path, 9, u64::MAX, &mut |_, _| ()).unwrap();
        assert_eq!(
            report.problems.iter().map(|p| p.row).collect::<Vec<_>>(),
            refused
        );
        let words = format!("op {} in a trace of level", refused[0]);
        assert!(report.problems[0].problem.contains(&words), "{report:?}");
        assert!(
            read(Source::open(&path).unwrap())
                .unwrap_err()
                .to_string()
                .contains(&words),
            "a simulation would drop it silently"
        );
    }
}

#[test]
fn wrong_columns_are_named() {
    let op = Arc::new(Int64Array::from(vec![1]));
    let error = Foreign { op, ..sound(1) }.error();
    assert!(
        error.contains("column `op` is Int64, but must be an unsigned 8-bit integer"),
        "{error}"
    );
    let narrow = [[0u8; 32]].map(Some).into_iter();
    let narrow =
        Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(narrow, 32).unwrap());
    let data = narrow;
    let error = Foreign { data, ..sound(1) }.error();
    assert!(error.contains("column `data`"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let gap: ArrayRef = Arc::new(UInt32Array::from(vec![1]));
    let path = foreign(
        folder.path(),
        RecordBatch::try_from_iter([("gap", gap)]).unwrap(),
        None,
    );
    let error = TraceReader::open(path).err().unwrap().to_string();
    assert!(error.contains("no column `thread` among [gap]"), "{error}");
}

/// Found by fuzzing: a footer that promises fewer rows than its row groups hold, or more; and row groups
/// that promise fewer or more than their pages hold.
#[test]
fn a_footer_that_miscounts_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = sound(10).write(folder.path());
    let whole = std::fs::read(&path).unwrap();
    // `num_rows` of the file (10, zigzag 20), before the list of row groups.
    let rows = b"\x16\x14\x19";
    let in_file = whole.windows(3).position(|w| w == rows).unwrap() + 1;
    // And of the only row group, the last such bytes in the footer.
    let in_group = whole.windows(2).rposition(|w| w == b"\x16\x14").unwrap() + 1;
    assert!(in_group > in_file);
    for other in [9, 11] {
        let mut bytes = whole.clone();
        bytes[in_file] = 2 * other;
        let error = error_of(&path, &bytes);
        let words = format!("promises {other} records, and its row groups hold 10");
        assert!(error.contains(&words), "{error}");
        bytes[in_group] = 2 * other;
        let error = error_of(&path, &bytes);
        let words = format!("promises {other} records and holds 10");
        assert!(error.contains(&words), "{error}");
    }
}

/// The error of a file at `path` that holds `bytes`.
fn error_of(path: &Path, bytes: &[u8]) -> String {
    std::fs::write(path, bytes).unwrap();
    Source::open(path).and_then(read).unwrap_err().to_string()
}

#[test]
fn another_compression_is_named_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = sound(10).write(folder.path());
    let mut bytes = std::fs::read(&path).unwrap();
    // The codec of column `gap` in the footer, from none (0) to Snappy (1, zigzag 2).
    let codec = b"\x19\x18\x03gap\x15\x00";
    let at = bytes.windows(codec.len()).position(|w| w == codec).unwrap() + codec.len() - 1;
    bytes[at] = 2;
    std::fs::write(&path, bytes).unwrap();
    let error = TraceReader::open(path).err().unwrap().to_string();
    assert!(
        error.contains("column `gap` is compressed with SNAPPY; write"),
        "{error}"
    );
}

#[test]
fn other_versions_and_broken_provenance_are_refused() {
    for (metadata, words) in [
        (r#"{"version": 2}"#, "the trace is of version 2"),
        ("{", "not a trace's provenance"),
        (r#"{"gap_unit": "fortnights"}"#, "fortnights"),
    ] {
        let metadata = Some(metadata);
        let error = Foreign {
            metadata,
            ..sound(1)
        }
        .error();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn what_is_no_trace_file_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let error = |path: &Path| TraceReader::open(path).err().unwrap().to_string();
    assert!(error(&at("none.parquet")).contains("No such file"));
    assert!(error(folder.path()).contains("is a directory"));
    std::fs::write(at("empty"), "").unwrap();
    assert!(error(&at("empty")).contains("is empty"));
    std::fs::write(at("text"), "NVMV1\n1 R 0x40\n").unwrap();
    assert!(error(&at("text")).contains("not a Parquet file"));
    write(&at("whole"), &many(9000));
    let bytes = std::fs::read(at("whole")).unwrap();
    for end in [5, 100, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(at("cut"), &bytes[..end]).unwrap();
        let error = error(&at("cut"));
        assert!(
            error.contains("truncated") || error.contains("not a Parquet"),
            "{end}: {error}"
        );
    }
}
