//! Writes other simulators' formats, so that their results and ours can be compared.

use std::io::Write;
use std::path::Path;

use super::Format;
use super::compressed::CompressedFile;
use super::parse::Bad;
use crate::temporary::Temporary;
use crate::{CLOCK_REMEDY, Source, TraceError};

/// Counts of what was written to another simulator's trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Requests written.
    pub requests: u64,
    /// Fences and flush instructions, which the format does not have; their gaps are kept.
    pub left_out: u64,
}

/// Writes the reads and writes of `source` at `to` in another simulator's format. A cycle there is the sum of the gaps
/// so far, of another clock as many as last as long; a trace that counts instructions runs at one instruction a cycle.
///
/// # Errors
/// As [`Source::next_batch`], a clock that is none, a format that is not written, or a file that cannot be written;
/// then nothing is left at `to`.
pub fn export(
    mut source: Source,
    to: impl AsRef<Path>,
    format: Format,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Exported, TraceError> {
    let to = to.as_ref();
    let io = cannot_be_written(to);
    let Some(writer) = format.foreign().writes else {
        let all = Format::ALL.into_iter();
        let written = all.filter(|one| one.foreign().writes.is_some());
        let names: Vec<&str> = written.map(Format::name).collect();
        let (last, names) = names.split_first().expect("some are");
        let problem = format!(
            "{format} is not written; {} and {last} are",
            names.join(", ")
        );
        return Err(TraceError::file(to, problem));
    };
    let mut writer = writer(clock_khz(&source)?);
    let (temporary, file) = Temporary::beside(to).map_err(io)?;
    let mut text = CompressedFile::create(file, to).map_err(io)?;
    text.write_all(writer.head().as_bytes()).map_err(io)?;
    let mut exported = Exported::default();
    let mut gaps = 0u64;
    source.each(progress, |record| {
        gaps += u64::from(record.gap);
        match writer.write(&mut text, gaps, record) {
            Ok(true) => exported.requests += 1,
            Ok(false) => exported.left_out += 1,
            Err(Bad::Trace(problem)) => return Err(TraceError::file(to, problem)),
            Err(Bad::File(error)) => return Err(io(error)),
        }
        Ok(())
    })?;
    text.finish().map_err(io)?;
    temporary.keep().map_err(io)?;
    Ok(exported)
}

fn cannot_be_written(to: &Path) -> impl Fn(std::io::Error) -> TraceError + Copy {
    move |error| {
        let problem = format!("cannot be written: {error}; check the folder and the space");
        TraceError::file(to, problem)
    }
}

fn clock_khz(source: &Source) -> Result<Option<u64>, TraceError> {
    source.provenance().clock_khz().map_err(|clock| {
        let problem = format!("clock_mhz is {clock}; {CLOCK_REMEDY}");
        TraceError::file(Path::new(source.name()), problem)
    })
}
