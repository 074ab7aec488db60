//! What the tests of the processor's side share: records, and traces made of them.
//!
//! Traces go through a file, as a simulation's do.
#![allow(dead_code)]

use std::path::Path;

use sardonyx::line::Virtual;
use sardonyx::trace::{GapUnit, Op, Provenance, Record, Source, TraceWriter};

pub fn record(gap: u32, op: Op, line: u64, byte: u8) -> Record {
    Record {
        gap,
        thread: 0,
        op,
        line: Virtual(line),
        data: op.has_data().then_some([byte; 64]),
    }
}

pub fn read(gap: u32, line: u64) -> Record {
    record(gap, Op::ReadMiss, line, 0)
}

pub fn write(gap: u32, line: u64, byte: u8) -> Record {
    record(gap, Op::DirtyEviction, line, byte)
}

pub fn fence(gap: u32) -> Record {
    record(gap, Op::Fence, 0, 0)
}

pub fn trace(folder: &Path, unit: GapUnit, records: &[Record]) -> Source {
    trace_from(
        folder,
        Provenance {
            gap_unit: unit,
            ..Provenance::default()
        },
        records,
    )
}

/// A trace that counts the cycles of a clock.
pub fn clocked(folder: &Path, clock_mhz: serde_json::Value, records: &[Record]) -> Source {
    let mut provenance = Provenance {
        gap_unit: GapUnit::Cycles,
        ..Provenance::default()
    };
    provenance.more.insert("clock_mhz".to_owned(), clock_mhz);
    trace_from(folder, provenance, records)
}

fn trace_from(folder: &Path, provenance: Provenance, records: &[Record]) -> Source {
    let path = folder.join("trace.parquet");
    let mut writer = TraceWriter::create(&path, provenance).unwrap();
    for record in records {
        writer.push(record).unwrap();
    }
    writer.finish().unwrap();
    Source::open(&path).unwrap()
}
