//! Every request of a run as a row of a Parquet file: who asked for what, when it arrived, entered, was accepted and
//! done, and what its latency is made of. Rows come in the order in which requests are done, and leave memory a row
//! group at a time.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use rustc_hash::FxHashMap;

use sardonyx::plan::observe::Observer;
use sardonyx::plan::performed::Part;
use sardonyx::plan::request::{Answer, Asked, Request};
use sardonyx::stats::Cause;
use sardonyx::units::Time;

const BATCH: usize = 8192;
/// Rows of a row group. A whole group stays in memory until it is written.
const ROW_GROUP: usize = 1 << 17;

struct UnderWay {
    number: u64,
    asked: Asked,
    accepted: Time,
}

/// Writes a row for each request.
pub struct Requests {
    names: [String; 2],
    file: Option<ArrowWriter<File>>,
    failed: Result<()>,
    rows: Rows,
    asked: Asked,
    admitted: u64,
    under_way: FxHashMap<u32, UnderWay>,
    parts: Vec<Part>,
}

#[derive(Default)]
struct Rows {
    count: usize,
    request: UInt64Builder,
    core: UInt32Builder,
    operation: StringBuilder,
    line: UInt64Builder,
    counted: BooleanBuilder,
    times: [UInt64Builder; TIMES.len()],
    waited: UInt64Builder,
    causes: [UInt64Builder; Cause::ALL.len()],
}

/// A request is presented, enters the ingress, leaves it and is done at these times, in picoseconds.
const TIMES: [&str; 4] = ["arrived_ps", "admitted_ps", "accepted_ps", "done_ps"];

fn schema() -> Schema {
    let column = |name: &str, of: DataType| Field::new(name, of, name == "line");
    let of_time = |name: &str| column(name, DataType::UInt64);
    let first = [
        column("trace", DataType::Utf8),
        column("design", DataType::Utf8),
        column("request", DataType::UInt64),
        column("core", DataType::UInt32),
        column("operation", DataType::Utf8),
        column("line", DataType::UInt64),
        column("counted", DataType::Boolean),
    ];
    let causes = Cause::ALL.map(|cause| of_time(&format!("{}_ps", cause.name())));
    let times = TIMES.into_iter().chain(["waited_ps"]).map(of_time);
    Schema::new(
        first
            .into_iter()
            .chain(times)
            .chain(causes)
            .collect::<Vec<_>>(),
    )
}

impl Requests {
    /// Starts a table of the requests of `design` on `trace`, which will be written to `path`.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path, trace: &str, design: &str) -> Result<Requests> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
            .set_max_row_group_row_count(Some(ROW_GROUP))
            .set_created_by(concat!("sardonyx ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let file = ArrowWriter::try_new(File::create(path)?, Arc::new(schema()), Some(properties))?;
        Ok(Requests {
            names: [trace, design].map(str::to_owned),
            file: Some(file),
            failed: Ok(()),
            rows: Rows::default(),
            asked: Asked::Commit,
            admitted: 0,
            under_way: FxHashMap::default(),
            parts: Vec::new(),
        })
    }

    /// Completes the file.
    ///
    /// # Errors
    /// It could not be written to the end: a full disk.
    pub fn finish(mut self) -> Result<()> {
        self.write();
        self.failed?;
        if let Some(file) = self.file {
            file.close()?;
        }
        Ok(())
    }

    /// Writes a row group. A failed write is not repeated: the run continues, and [`Requests::finish`] reports the
    /// error.
    fn write(&mut self) {
        let Some(file) = &mut self.file else { return };
        let batch = self.rows.batch(&self.names);
        let written = batch.and_then(|batch| file.write(&batch));
        if written.is_err() {
            (self.failed, self.file) = (written, None);
        }
    }
}

impl Rows {
    fn push(&mut self, under_way: &UnderWay, answer: &Answer, parts: &[Part]) {
        let Request {
            arrival,
            core,
            counted,
            ..
        } = answer.request;
        self.request.append_value(under_way.number);
        self.core.append_value(core);
        self.operation.append_value(under_way.asked.name());
        let line = under_way.asked.line();
        self.line.append_option(line.map(|line| line.0));
        self.counted.append_value(counted);
        let times = [arrival, answer.admitted, under_way.accepted, answer.at];
        for (column, time) in self.times.iter_mut().zip(times) {
            column.append_value(time.ps());
        }
        let mut causes = [0; Cause::ALL.len()];
        for part in parts {
            causes[part.purpose.what as usize] += part.latency.ps();
        }
        for (column, latency) in self.causes.iter_mut().zip(causes) {
            column.append_value(latency);
        }
        self.waited
            .append_value(parts.iter().map(|part| part.waited.ps()).sum());
        self.count += 1;
    }

    fn batch(&mut self, names: &[String; 2]) -> Result<RecordBatch> {
        let count = std::mem::take(&mut self.count);
        let same = |name: &String| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(std::iter::repeat_n(
                name, count,
            )))
        };
        let mut columns: Vec<ArrayRef> = names.iter().map(same).collect();
        columns.push(Arc::new(self.request.finish()));
        columns.push(Arc::new(self.core.finish()));
        columns.push(Arc::new(self.operation.finish()));
        columns.push(Arc::new(self.line.finish()));
        columns.push(Arc::new(self.counted.finish()));
        let times = self.times.iter_mut().chain([&mut self.waited]);
        for column in times.chain(&mut self.causes) {
            columns.push(Arc::new(column.finish()));
        }
        Ok(RecordBatch::try_new(Arc::new(schema()), columns)?)
    }
}

impl Observer for Requests {
    fn of_steps(&self) -> bool {
        true
    }

    fn asked(&mut self, asked: Asked) {
        self.asked = asked;
    }

    fn admitted(&mut self, _now: Time, number: u32, _request: &Request) {
        let under_way = UnderWay {
            number: self.admitted,
            asked: self.asked,
            accepted: Time::ZERO,
        };
        self.admitted += 1;
        self.under_way.insert(number, under_way);
    }

    fn accepted(&mut self, now: Time, number: u32, _request: &Request) {
        if let Some(under_way) = self.under_way.get_mut(&number) {
            under_way.accepted = now;
        }
    }

    fn booked(&mut self, _number: u32, parts: &[Part]) {
        self.parts.clear();
        self.parts.extend_from_slice(parts);
    }

    fn answered(&mut self, number: u32, answer: &Answer) {
        let under_way = self.under_way.remove(&number).expect("it was admitted");
        self.rows.push(&under_way, answer, &self.parts);
        if self.rows.count == BATCH {
            self.write();
        }
    }
}
