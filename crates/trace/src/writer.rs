//! Writes a trace file record by record, under a temporary name until it is whole.
//!
//! An interrupted recording or conversion therefore never leaves a file that looks like a trace.

use std::path::{Path, PathBuf};

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::chunks::{Chunks, ROW_GROUP};
use super::columns::LINE_LIMIT;
use super::provenance::{HIGHEST_LINE, KEY, Provenance};
use super::reader::BATCH;
use super::temporary::Temporary;
use super::{Record, TraceError};

/// A trace file being written. Dropped before [`TraceWriter::finish`], it leaves nothing behind.
pub struct TraceWriter {
    path: PathBuf,
    temporary: Temporary,
    provenance: Provenance,
    rows: Vec<Record>,
    sites: Option<Vec<Option<u32>>>,
    records: u64,
    writes: u64,
    /// The highest line that a core or a cache asks for or gives.
    highest: u64,
    file: Chunks,
}

impl TraceWriter {
    /// Starts a trace that will appear at `path`, replacing what is there, when it is finished.
    ///
    /// # Errors
    /// The folder does not exist or cannot be written, or `path` is a directory.
    pub fn create(
        path: impl AsRef<Path>,
        provenance: Provenance,
    ) -> Result<TraceWriter, TraceError> {
        TraceWriter::with_level(path, provenance, 3)
    }

    /// Starts a trace as [`TraceWriter::create`] does, with a zstd level from 1 (fast) to 22 (small).
    ///
    /// # Errors
    /// As [`TraceWriter::create`], and a level out of range.
    pub fn with_level(
        path: impl AsRef<Path>,
        provenance: Provenance,
        level: i32,
    ) -> Result<TraceWriter, TraceError> {
        TraceWriter::with_sites(path, provenance, level, false)
    }

    /// Starts a trace as [`TraceWriter::with_level`] does, with a column `site` if `sites` is true.
    ///
    /// # Errors
    /// As [`TraceWriter::with_level`].
    pub fn with_sites(
        path: impl AsRef<Path>,
        provenance: Provenance,
        level: i32,
        sites: bool,
    ) -> Result<TraceWriter, TraceError> {
        let path = path.as_ref();
        let level = ZstdLevel::try_new(level)
            .map_err(|_| TraceError::file(path, format!("zstd level {level} is not in 1-22")))?;
        let (temporary, file) = Temporary::beside(path).map_err(|e| {
            TraceError::file(
                path,
                format!("cannot be written: {e}; name a file in a folder that exists"),
            )
        })?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_data_page_row_count_limit(ROW_GROUP)
            // Most lines and gaps appear once or twice: a dictionary of them is longer than they are. Neighbours in
            // a trace are often neighbours in memory, so distances of lines are short; gaps are short already.
            .set_column_dictionary_enabled("line".into(), false)
            .set_column_encoding("line".into(), Encoding::DELTA_BINARY_PACKED)
            .set_column_dictionary_enabled("gap".into(), false)
            .set_column_encoding("gap".into(), Encoding::PLAIN)
            .set_statistics_enabled(EnabledStatistics::None)
            // They would lie between the columns and the footer, and a trace is read from front to back.
            .set_offset_index_disabled(true)
            .set_created_by(concat!("sardonyx version ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let file = Chunks::new(file, properties, sites).map_err(|e| failed(path, &e))?;
        Ok(TraceWriter {
            path: path.to_owned(),
            temporary,
            provenance,
            rows: Vec::with_capacity(BATCH),
            sites: sites.then(Vec::new),
            records: 0,
            writes: 0,
            highest: 0,
            file,
        })
    }

    /// Appends one record.
    ///
    /// # Errors
    /// A record that the reader would refuse (a write without data, a line of 2^58 or more), or a
    /// full disk.
    pub fn push(&mut self, record: &Record) -> Result<(), TraceError> {
        self.push_at(record, None)
    }

    /// Appends one record with its site, which is dropped if the trace has none.
    ///
    /// # Errors
    /// As [`TraceWriter::push`].
    pub fn push_at(&mut self, record: &Record, site: Option<u32>) -> Result<(), TraceError> {
        let refuse = |problem: String| Err(TraceError::row(&self.path, self.records, problem));
        if record.line.0 >= LINE_LIMIT {
            return refuse(format!("line {} is not below 2^58", record.line.0));
        }
        if record.op.has_data() && record.data.is_none() {
            return refuse("an operation without its 64 bytes".to_owned());
        }
        self.rows.push(*record);
        if let Some(sites) = &mut self.sites {
            sites.push(site);
        }
        self.records += 1;
        self.writes += u64::from(record.op.is_write());
        if record.op.touches() {
            self.highest = self.highest.max(record.line.0);
        }
        if self.rows.len() == BATCH {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// The provenance, which can be added to until the end.
    pub fn provenance_mut(&mut self) -> &mut Provenance {
        &mut self.provenance
    }

    /// Completes the file, gives it its name and returns how many records it holds. The provenance's
    /// `records` and `writes` say what was written.
    ///
    /// # Errors
    /// A full disk, or a folder that has gone.
    pub fn finish(mut self) -> Result<u64, TraceError> {
        self.flush()?;
        let TraceWriter {
            path,
            temporary,
            mut provenance,
            records,
            writes,
            highest,
            file,
            ..
        } = self;
        provenance.more.insert("records".into(), records.into());
        provenance.more.insert("writes".into(), writes.into());
        if provenance.is_physical() {
            (provenance.more).insert(HIGHEST_LINE.into(), highest.into());
        }
        let json = serde_json::to_string(&provenance).map_err(|e| failed(&path, &e))?;
        let entry = KeyValue::new(KEY.to_owned(), json);
        let file = file.finish(entry).map_err(|e| failed(&path, &e))?;
        file.sync_all()
            .and_then(|()| temporary.keep())
            .map_err(|e| failed(&path, &e))?;
        Ok(records)
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        let sites = self.sites.as_deref().unwrap_or_default();
        let written = self.file.write(&self.rows, sites);
        self.rows.clear();
        self.sites.iter_mut().for_each(Vec::clear);
        written.map_err(|e| failed(&self.path, &e))
    }
}

fn failed(path: &Path, e: &dyn std::fmt::Display) -> TraceError {
    TraceError::file(
        path,
        format!("cannot be written: {e}; check the space and the permissions"),
    )
}
