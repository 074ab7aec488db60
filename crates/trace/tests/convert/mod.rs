//! Other simulators' traces: what their lines mean, and a clear error where their readers fail.

mod champsim;
mod compression;
mod dram;
mod gem5;
mod nvmain;
mod options;
mod programs;
mod ramulator;
mod robustness;

use std::path::{Path, PathBuf};

use crate::common::read;
use proptest::prelude::*;
use sardonyx_trace::line::Virtual;
use sardonyx_trace::{Format, ImportOptions, Op, Provenance, Record, TraceWriter, import};
use tempfile::TempDir;

struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The records of a text, or of bytes, or the error.
    fn import(
        &self,
        text: impl AsRef<[u8]>,
        format: Format,
        options: &ImportOptions,
    ) -> Result<Vec<Record>, String> {
        let (from, to) = (self.at("in.txt"), self.at("out.parquet"));
        std::fs::write(&from, text).unwrap();
        let _ = std::fs::remove_file(&to);
        match import(&from, &to, format, options, &mut |_, _| ()) {
            Ok(imported) => {
                let records = read(&to);
                assert_eq!(imported.records, records.len() as u64);
                Ok(records)
            }
            Err(e) => {
                assert!(!to.exists(), "a failed conversion leaves no file");
                Err(e.to_string().replace(&from.display().to_string(), "in.txt"))
            }
        }
    }
}

fn plain(text: &str, format: Format) -> Result<Vec<Record>, String> {
    Desk::new().import(text, format, &ImportOptions::default())
}

/// Each text is refused in words that have these.
fn all_refused(format: Format, texts: &[(&str, &str)]) {
    for (text, expected) in texts {
        let error = plain(text, format).unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

fn short(records: &[Record]) -> Vec<(u32, bool, u64)> {
    records
        .iter()
        .map(|r| (r.gap, r.op.is_write(), r.line.0))
        .collect()
}

/// Gap, thread, whether it writes, and the line of each record.
fn in_short(text: &str, format: Format) -> Vec<(u32, u16, bool, u64)> {
    let records = plain(text, format).unwrap_or_else(|error| panic!("{error}"));
    let writes = |op| matches!(op, Op::Store | Op::DirtyEviction);
    let one = |r: &Record| (r.gap, r.thread, writes(r.op), r.line.0);
    records.iter().map(one).collect()
}

/// Requests as other simulators have them: which moment, whether a write, which line.
fn asked(records: &[Record]) -> Vec<(u64, bool, u64)> {
    let mut moment = 0;
    let told = records.iter().map(|record| {
        moment += u64::from(record.gap);
        let write = record.op.is_write() || record.op == Op::Store;
        (moment, write, record.line.0)
    });
    told.collect()
}

fn requests() -> impl Strategy<Value = Vec<Record>> {
    let record = (
        any::<u32>(),
        any::<u16>(),
        any::<bool>(),
        0u64..8,
        any::<u8>(),
    );
    let record = record.prop_map(|(gap, thread, write, line, byte)| {
        let (op, data) = if write {
            (Op::DirtyEviction, Some([byte; 64]))
        } else {
            (Op::ReadMiss, None)
        };
        Record {
            gap,
            thread,
            op,
            line: Virtual(line << 40 | 5),
            data,
        }
    });
    prop::collection::vec(record, 1..100)
}

fn write(path: &Path, records: &[Record]) {
    let mut writer = TraceWriter::create(path, Provenance::default()).unwrap();
    records.iter().for_each(|r| writer.push(r).unwrap());
    writer.finish().unwrap();
}
