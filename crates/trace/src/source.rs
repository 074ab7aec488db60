//! Where a simulation takes its records from: a trace file or a generator, in batches.
//!
//! A limit, and what is left out before, belong to the source, so that no consumer has to count.

use std::path::Path;

use crate::line::Virtual;

use super::provenance::HIGHEST_LINE;
use super::{BATCH, Checksums, Contents, Op, Provenance, Record, Synth, TraceError, TraceReader};

/// A stream of records.
pub struct Source {
    name: String,
    origin: TraceOrigin,
    skip: u64,
    skipped: u64,
    done: u64,
    limit: u64,
    /// What the records that are left out say of lines.
    before: Contents,
}

enum TraceOrigin {
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

    /// Leaves out the first `skip` records. A read of a line of which they know the contents has these bytes, if it is
    /// the first record of the line that is not left out.
    #[must_use]
    pub fn skip(mut self, skip: u64) -> Source {
        self.skip = skip;
        self
    }

    /// Ends the source after at most `limit` records, counted from the first.
    #[must_use]
    pub fn limit(mut self, limit: u64) -> Source {
        self.limit = limit;
        self
    }

    /// Limits a file to `records` records that begin at the fraction `at` of the possible beginnings: 0 takes the first
    /// records, 1 the last ones before those that caches held at the end. A generator gives its first records, which
    /// are like all others.
    ///
    /// # Errors
    /// As [`Source::next_batch`]: the file is read for its end.
    pub fn window(self, records: u64, at: f64) -> Result<Source, TraceError> {
        if let TraceOrigin::File(reader) = &self.origin {
            let (mut number, mut end) = (0_u64, 0_u64);
            if records < reader.records() {
                Source::open(reader.path())?.each(&mut |_, _| (), |record| {
                    number += 1;
                    if record.op != Op::FinalDirty {
                        end = number;
                    }
                    Ok(())
                })?;
            }
            let skip = (end.saturating_sub(records) as f64 * at) as u64;
            return Ok(self.skip(skip).limit(records));
        }
        Ok(self.limit(records))
    }

    /// The name of the trace in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of records, with the limit and what is left out taken into account.
    pub fn total(&self) -> u64 {
        self.whole().saturating_sub(self.skip).min(self.limit)
    }

    fn whole(&self) -> u64 {
        match &self.origin {
            TraceOrigin::File(reader) => reader.records(),
            TraceOrigin::Synth(synth) => synth.spec().records,
        }
    }

    /// The number of records that are requests to memory.
    ///
    /// # Errors
    /// As [`Source::next_batch`].
    pub fn requests(mut self) -> Result<u64, TraceError> {
        if let TraceOrigin::Synth(_) = self.origin {
            return Ok(self.total());
        }
        let mut requests = 0;
        self.each(&mut |_, _| (), |record| {
            requests += u64::from(record.op == Op::ReadMiss || record.op.is_write());
            Ok(())
        })?;
        Ok(requests)
    }

    /// Finds the first record that touches a line from `lines` on: its number, from 1, and its line. Generated lines
    /// are virtual, so they are not searched. A file that states its highest line need not be read.
    ///
    /// # Errors
    /// As [`Source::next_batch`].
    pub fn first_beyond(mut self, lines: u64) -> Result<Option<(u64, Virtual)>, TraceError> {
        let (mut number, mut first) = (0, None);
        let highest = match &self.origin {
            TraceOrigin::File(reader) => reader.provenance().more.get(HIGHEST_LINE).cloned(),
            TraceOrigin::Synth(_) => return Ok(None),
        };
        if highest.is_some_and(|line| line.as_u64().is_some_and(|line| line < lines)) {
            return Ok(None);
        }
        self.batches(&mut |_, _| (), |batch| {
            if first.is_none() {
                let beyond = |record: &Record| record.op.touches() && record.line.0 >= lines;
                let found = batch.iter().position(beyond);
                first = found.map(|at| (number + 1 + at as u64, batch[at].line));
                number += batch.len() as u64;
            }
            Ok(())
        })?;
        Ok(first)
    }

    /// The part of the file read so far that is under checksums; `None` for a generator.
    pub fn checksums(&self) -> Option<Checksums> {
        match &self.origin {
            TraceOrigin::File(reader) => Some(reader.checksums()),
            TraceOrigin::Synth(_) => None,
        }
    }

    /// The origin of the records.
    pub fn provenance(&self) -> Provenance {
        match &self.origin {
            TraceOrigin::File(reader) => reader.provenance().clone(),
            TraceOrigin::Synth(synth) => synth.provenance(),
        }
    }

    /// Replaces the contents of `batch` by the next records; `false` at the end.
    ///
    /// # Errors
    /// As [`TraceReader::next_batch`]; generators have none.
    pub fn next_batch(&mut self, batch: &mut Vec<Record>) -> Result<bool, TraceError> {
        batch.clear();
        let left = usize::try_from(self.limit.saturating_sub(self.done)).unwrap_or(usize::MAX);
        if left == 0 {
            return Ok(false);
        }
        loop {
            match &mut self.origin {
                TraceOrigin::File(reader) => drop(reader.next_batch(batch)?),
                TraceOrigin::Synth(synth) => batch.extend(synth.take(BATCH)),
            };
            let over = (self.skip - self.skipped).min(batch.len() as u64);
            self.skipped += over;
            batch
                .drain(..over as usize)
                .for_each(|record| self.before.see(&record));
            if over == 0 || !batch.is_empty() {
                break;
            }
        }
        batch.truncate(left);
        if self.skip > 0 {
            batch.iter_mut().for_each(|record| self.before.fill(record));
        }
        self.done += batch.len() as u64;
        Ok(!batch.is_empty())
    }

    pub(super) fn each(
        &mut self,
        progress: &mut dyn FnMut(u64, u64),
        mut work: impl FnMut(&Record) -> Result<(), TraceError>,
    ) -> Result<(), TraceError> {
        self.batches(progress, |batch| batch.iter().try_for_each(&mut work))
    }

    pub(super) fn batches(
        &mut self,
        progress: &mut dyn FnMut(u64, u64),
        mut work: impl FnMut(&[Record]) -> Result<(), TraceError>,
    ) -> Result<(), TraceError> {
        let mut batch = Vec::new();
        while self.next_batch(&mut batch)? {
            work(&batch)?;
            progress(self.done, self.total());
        }
        Ok(())
    }

    fn new(name: String, origin: TraceOrigin) -> Source {
        Source {
            name,
            origin,
            skip: 0,
            skipped: 0,
            done: 0,
            limit: u64::MAX,
            before: Contents::default(),
        }
    }
}

impl From<TraceReader> for Source {
    fn from(reader: TraceReader) -> Source {
        Source::new(stem(reader.path()), TraceOrigin::File(Box::new(reader)))
    }
}

impl From<Synth> for Source {
    fn from(synth: Synth) -> Source {
        Source::new(
            synth.spec().name.clone(),
            TraceOrigin::Synth(Box::new(synth)),
        )
    }
}

pub(super) fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
