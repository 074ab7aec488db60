//! Copies a trace, or a stretch of it, to another file.

use std::path::Path;

use serde_json::json;

use super::{Source, TraceError, TraceReader, TraceWriter};

/// The zstd level of a cut, which is written once and kept in a repository.
const CUT_LEVEL: i32 = 19;

/// Writes `limit` records of the trace `from`, leaving out the first `skip` ([`Source::skip`]), to the trace `to`, with
/// the provenance of `from` and a note of the cut. Returns the number of records written.
///
/// # Errors
/// As reading and writing; and if `skip` leaves nothing, since an empty cut is a mistake.
pub fn cut(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    skip: u64,
    limit: u64,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<u64, TraceError> {
    let reader = TraceReader::open(&from)?;
    let whole = reader.records();
    if skip >= whole || limit == 0 {
        let problem = match limit {
            0 => "a stretch of no records was asked for; ask for at least one".to_owned(),
            _ => format!("has {whole} records, and {skip} are to be skipped; skip fewer"),
        };
        return Err(TraceError::file(from.as_ref(), problem));
    }
    let mut provenance = reader.provenance().clone();
    // What counted the whole trace does not count the cut.
    provenance
        .more
        .retain(|key, _| !["records", "writes", "distinct_written_lines"].contains(&&**key));
    let note = json!({"skip": skip, "limit": limit, "of_records": whole});
    provenance.more.insert("cut".to_owned(), note);
    let mut writer = TraceWriter::with_level(to, provenance, CUT_LEVEL)?;
    let mut kept = Source::from(reader).skip(skip).limit(limit);
    kept.each(progress, |record| writer.push(record))?;
    writer.finish()
}

/// Writes the trace `from` again as `to`, with its provenance and sites: the same records, under checksums. Returns
/// their number.
///
/// # Errors
/// As reading and writing.
pub fn copy(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<u64, TraceError> {
    let mut reader = TraceReader::open(&from)?;
    let (provenance, whole) = (reader.provenance().clone(), reader.records());
    let mut writer = TraceWriter::with_sites(to, provenance, CUT_LEVEL, reader.has_sites())?;
    let (mut batch, mut sites) = (Vec::new(), Vec::new());
    let mut done = 0;
    while reader.next_batch_at(&mut batch, Some(&mut sites))? {
        for (record, site) in batch.iter().zip(&sites) {
            writer.push_at(record, *site)?;
        }
        done += batch.len() as u64;
        progress(done, whole);
    }
    writer.finish()
}
