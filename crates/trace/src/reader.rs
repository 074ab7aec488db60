//! Reads a trace file in batches, never holding more than a few pages of it.
//!
//! Whatever bytes the file holds, the outcome is records or one [`TraceError`]: never a panic, and
//! never a record that breaks the rules of `docs/simulator/trace-format.md`.

use std::cell::Cell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use arrow_array::RecordBatchReader;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Compression;
use parquet::file::metadata::ParquetMetaData;

use super::columns::{COLUMNS, ColumnRows, SITE, check_schema};
use super::error::IS_A_FOLDER;
use super::footer;
use super::pages::{CheckedPages, Checksums, Pages};
use super::provenance::{KEY, Provenance, VERSION};
use super::{Record, TraceError};

/// Records in a batch, at most.
pub const BATCH: usize = 4096;

/// A trace file, open for one pass from front to back.
pub struct TraceReader {
    path: PathBuf,
    provenance: Provenance,
    records: u64,
    rows: u64,
    batches: Option<ParquetRecordBatchReader>,
    seen: Arc<CheckedPages>,
}

impl TraceReader {
    /// Opens the trace at `path` and checks its type, columns and version.
    ///
    /// # Errors
    /// Says what is wrong with the file as a whole: missing, a directory, empty, truncated, not
    /// Parquet, a column missing or of another type, a version that this build does not know.
    pub fn open(path: impl AsRef<Path>) -> Result<TraceReader, TraceError> {
        let path = path.as_ref();
        let file = open_parquet(path)?;
        guarded(path, || start(path, file))
    }

    /// The file that is being read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The origin of the trace.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// Whether the trace has a site in the program for its records.
    pub fn has_sites(&self) -> bool {
        let schema = self.batches.as_ref().map(RecordBatchReader::schema);
        schema.is_some_and(|schema| schema.field_with_name(SITE).is_ok())
    }

    /// Records in the whole file.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The part of the file under checksums, which are checked as the file is read. Before the end it concerns the part
    /// read so far.
    pub fn checksums(&self) -> Checksums {
        self.seen.checksums()
    }

    /// Replaces the contents of `batch` by the next records; `false` at the end of the trace.
    ///
    /// # Errors
    /// The first row that is not a valid record, or damage to the file. `batch` then holds the records
    /// before it, and there is nothing more to read.
    pub fn next_batch(&mut self, batch: &mut Vec<Record>) -> Result<bool, TraceError> {
        self.next_batch_at(batch, None)
    }

    /// Replaces the contents of `batch` and `sites` by the next records and each one's site in the program, if the
    /// trace has sites.
    ///
    /// # Errors
    /// As [`TraceReader::next_batch`].
    pub fn next_batch_at(
        &mut self,
        batch: &mut Vec<Record>,
        mut sites: Option<&mut Vec<Option<u32>>>,
    ) -> Result<bool, TraceError> {
        batch.clear();
        if let Some(sites) = &mut sites {
            sites.clear();
        }
        let Some((first, rows)) = self.next_rows()? else {
            return Ok(false);
        };
        batch.reserve(rows.len());
        for i in 0..rows.len() {
            match rows.record(i) {
                Ok(record) => {
                    batch.push(record);
                    if let Some(sites) = &mut sites {
                        sites.push(rows.site(i));
                    }
                }
                Err(problem) => {
                    self.batches = None;
                    return Err(TraceError::row(&self.path, first + i as u64, problem));
                }
            }
        }
        Ok(true)
    }

    /// Decodes the next rows, unchecked, and says at which row they begin.
    pub(super) fn next_rows(&mut self) -> Result<Option<(u64, ColumnRows)>, TraceError> {
        // Taken out, so that a reader which failed half-way is never asked again.
        let Some(mut batches) = self.batches.take() else {
            return Ok(None);
        };
        let first = self.rows;
        let next = guarded(&self.path, || match batches.next() {
            None => Ok(None),
            Some(Ok(batch)) => Ok(Some(ColumnRows::new(&batch, self.provenance.level))),
            Some(Err(e)) => Err(damaged(&self.path, &format!("after row {first}: {e}"))),
        })?;
        // The footer's count and the pages are two statements, and nothing else compares them.
        self.rows += next.as_ref().map_or(0, ColumnRows::len) as u64;
        if self.rows > self.records || (next.is_none() && self.rows < self.records) {
            let found = self.rows;
            let what = format!("it promises {} records and holds {found}", self.records);
            return Err(damaged(&self.path, &what));
        }
        if next.is_some() {
            self.batches = Some(batches);
        }
        Ok(next.map(|rows| (first, rows)))
    }
}

fn open_parquet(path: &Path) -> Result<File, TraceError> {
    let io = |e| TraceError::unreadable(path, &e);
    let refuse = |problem: &str| Err(TraceError::file(path, problem));
    // Asked before opening: to open a pipe would wait for its other end.
    let meta = std::fs::metadata(path).map_err(io)?;
    if meta.is_dir() {
        return refuse(IS_A_FOLDER);
    }
    if !meta.is_file() {
        return refuse("is not a regular file; copy its contents to one");
    }
    if meta.len() == 0 {
        return refuse("is empty; record or copy the trace again");
    }
    let mut file = File::open(path).map_err(io)?;
    let (mut head, mut tail) = ([0; 4], [0; 4]);
    if meta.len() < 12 || file.read_exact(&mut head).is_err() || head != *b"PAR1" {
        return refuse(
            "is not a Parquet file; other simulators' traces go through `sardonyx trace convert`",
        );
    }
    file.seek(SeekFrom::End(-4)).map_err(io)?;
    file.read_exact(&mut tail).map_err(io)?;
    if tail != *b"PAR1" {
        return refuse("is truncated; record or copy the trace again");
    }
    file.rewind().map_err(io)?;
    Ok(file)
}

fn start(path: &Path, file: File) -> Result<TraceReader, TraceError> {
    let metadata = footer::read(&file).map_err(|what| damaged(path, &what))?;
    // The types are those of Parquet itself; a copy of the Arrow schema in the file is not trusted.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::try_new(Arc::new(metadata), options)
        .map_err(|e| damaged(path, &e.to_string()))?;
    let seen = Arc::new(CheckedPages::default());
    let pages = Pages {
        file,
        seen: Arc::clone(&seen),
    };
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(pages, metadata);
    check_schema(builder.schema())
        .and_then(|()| check_compression(builder.metadata()))
        .map_err(|problem| TraceError::file(path, problem))?;
    let meta = builder.metadata().file_metadata();
    let records = meta.num_rows() as u64;
    let value = meta
        .key_value_metadata()
        .and_then(|pairs| pairs.iter().rev().find(|pair| pair.key == KEY))
        .and_then(|pair| pair.value.as_deref());
    let provenance = parse_provenance(value).map_err(|problem| TraceError::file(path, problem))?;
    let names = COLUMNS.iter().map(|(name, _, _)| *name).chain([SITE]);
    let mask = ProjectionMask::columns(builder.parquet_schema(), names);
    let batches = builder
        .with_batch_size(BATCH)
        .with_projection(mask)
        .build()
        .map_err(|e| damaged(path, &e.to_string()))?;
    Ok(TraceReader {
        path: path.to_owned(),
        provenance,
        records,
        rows: 0,
        batches: Some(batches),
        seen,
    })
}

/// Refuses compressions other than zstd, the format's own, and none, which needs no library.
fn check_compression(meta: &ParquetMetaData) -> Result<(), String> {
    for chunk in meta.row_groups().iter().flat_map(|group| group.columns()) {
        let (name, compression) = (chunk.column_path().string(), chunk.compression());
        let read = matches!(
            compression,
            Compression::ZSTD(_) | Compression::UNCOMPRESSED
        );
        if !read && COLUMNS.iter().any(|(ours, _, _)| name == *ours) {
            return Err(format!(
                "column `{name}` is compressed with {compression}; write the trace with zstd (in \
                 pandas: to_parquet(.., compression=\"zstd\"))"
            ));
        }
    }
    Ok(())
}

fn parse_provenance(value: Option<&str>) -> Result<Provenance, String> {
    let Some(text) = value else {
        return Ok(Provenance::default());
    };
    let provenance: Provenance = serde_json::from_str(text).map_err(|e| {
        format!("metadata `{KEY}` is not a trace's provenance: {e}; correct it or leave it out")
    })?;
    if provenance.version != VERSION {
        return Err(format!(
            "the trace is of version {}, and this Sardonyx reads version {VERSION}; use another \
             Sardonyx or record the trace again",
            provenance.version
        ));
    }
    Ok(provenance)
}

fn damaged(path: &Path, what: &str) -> TraceError {
    TraceError::file(
        path,
        format!("is damaged or of another kind ({what}); record or copy the trace again"),
    )
}

/// Runs `read`, turning a panic into an error: the parquet crate checks most of what it reads, but
/// on hostile bytes it can still reach an assertion or an index out of bounds. Such a panic is not
/// printed; those of other threads and of other code are.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, TraceError>) -> Result<T, TraceError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !GUARDED.try_with(Cell::get).unwrap_or(false) {
                print(panic);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(outer);
    outcome.unwrap_or_else(|_| Err(damaged(path, "its pages contradict each other")))
}

thread_local! {
    /// Set while this thread is inside [`guarded`].
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}
