//! Where a simulation takes its records from: a trace file or a generator, in batches.
//!
//! A limit belongs to the source, so that no consumer has to count.

use std::path::Path;

use super::{BATCH, Provenance, Record, Synth, TraceError, TraceReader};

/// A stream of records.
pub struct Source {
    name: String,
    origin: Origin,
    done: u64,
    limit: u64,
}

enum Origin {
    File(Box<TraceReader>),
    Synth(Box<Synth>),
}

impl Source {
    /// The trace file at `path`; its name is the file's, without folder and suffix.
    ///
    /// # Errors
    /// As [`TraceReader::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Source, TraceError> {
        Ok(Source::from(TraceReader::open(path)?))
    }

    /// At most `limit` records, counted from the first.
    #[must_use]
    pub fn limit(mut self, limit: u64) -> Source {
        self.limit = limit;
        self
    }

    /// What reports call this trace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Records in all, the limit applied, if known.
    pub fn total(&self) -> Option<u64> {
        let whole = match &self.origin {
            Origin::File(reader) => reader.records(),
            Origin::Synth(synth) => synth.spec().records,
        };
        Some(whole.min(self.limit))
    }

    /// Where the records come from.
    pub fn provenance(&self) -> Provenance {
        match &self.origin {
            Origin::File(reader) => reader.provenance().clone(),
            Origin::Synth(synth) => synth.provenance(),
        }
    }

    /// Replaces the contents of `batch` by the next records; `false` at the end.
    ///
    /// # Errors
    /// As [`TraceReader::next_batch`]; generators have none.
    pub fn next_batch(&mut self, batch: &mut Vec<Record>) -> Result<bool, TraceError> {
        batch.clear();
        let left = self.limit.saturating_sub(self.done);
        if left == 0 {
            return Ok(false);
        }
        match &mut self.origin {
            Origin::File(reader) => {
                reader.next_batch(batch)?;
                batch.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            }
            Origin::Synth(synth) => {
                batch.extend(
                    synth
                        .by_ref()
                        .take(BATCH.min(usize::try_from(left).unwrap_or(BATCH))),
                );
            }
        }
        self.done += batch.len() as u64;
        Ok(!batch.is_empty())
    }
}

impl From<TraceReader> for Source {
    fn from(reader: TraceReader) -> Source {
        let name = reader
            .path()
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        Source {
            name,
            origin: Origin::File(Box::new(reader)),
            done: 0,
            limit: u64::MAX,
        }
    }
}

impl From<Synth> for Source {
    fn from(synth: Synth) -> Source {
        let name = synth.spec().name.clone();
        Source {
            name,
            origin: Origin::Synth(Box::new(synth)),
            done: 0,
            limit: u64::MAX,
        }
    }
}
