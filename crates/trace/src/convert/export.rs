//! Writes NVMain's format, so that its results and ours can be held against each other.

use std::io::{BufWriter, Write};
use std::path::Path;

use rustc_hash::FxHashMap;

use crate::line::{Line, ZERO_LINE};
use crate::temporary::Temporary;
use crate::{CLOCK_REMEDY, Op, Source, TraceError};

/// What went into an NVMain trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Requests written.
    pub requests: u64,
    /// Fences and flush instructions, which NVMain does not know; their gaps are kept.
    pub left_out: u64,
}

/// NVMain's CPU clock.
const CLOCK_KHZ: u64 = 2_000_000;

/// Writes the reads and writes of `source` as an NVMain trace at `to`. A cycle is the sum of the
/// gaps so far, of another clock than NVMain's as many as last as long; a trace that counts instructions
/// runs at one instruction a cycle. OLDDATA, and the
/// data of a read, are what the line last held (zeros before its first write). Memory grows with
/// the lines written.
///
/// # Errors
/// As [`Source::next_batch`], a clock that is none, or a file that cannot be written; then nothing is
/// left at `to`.
pub fn export_nvmain(
    mut source: Source,
    to: impl AsRef<Path>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Exported, TraceError> {
    let to = to.as_ref();
    let io = |e: std::io::Error| {
        TraceError::file(
            to,
            format!("cannot be written: {e}; check the folder and the space"),
        )
    };
    let provenance = source.provenance();
    let clock_khz = provenance.clock_khz().map_err(|clock| {
        let problem = format!("clock_mhz is {clock}; {CLOCK_REMEDY}");
        TraceError::file(Path::new(source.name()), problem)
    })?;
    let clock_khz = clock_khz.unwrap_or(CLOCK_KHZ);
    let (temporary, file) = Temporary::beside(to).map_err(io)?;
    let mut text = BufWriter::new(file);
    writeln!(text, "NVMV1").map_err(io)?;
    let mut lines: FxHashMap<u64, Line> = FxHashMap::default();
    let mut exported = Exported::default();
    let mut gaps = 0u64;
    source.each(progress, |record| {
        gaps += u64::from(record.gap);
        let cycle = u128::from(gaps) * u128::from(CLOCK_KHZ) / u128::from(clock_khz);
        let old = lines.get(&record.line.0).copied().unwrap_or(ZERO_LINE);
        let (letter, new) = match record.data {
            Some(data) if record.op.is_write() => {
                lines.insert(record.line.0, data);
                ('W', data)
            }
            _ if record.op == Op::ReadMiss => ('R', old),
            _ => {
                exported.left_out += 1;
                return Ok(());
            }
        };
        exported.requests += 1;
        let address = record.line.byte().0;
        let (new, old, thread) = (Hex(&new), Hex(&old), record.thread);
        writeln!(text, "{cycle} {letter} 0x{address:x} {new} {old} {thread}").map_err(io)
    })?;
    text.into_inner()
        .map_err(|e| io(e.into_error()))?
        .sync_all()
        .map_err(io)?;
    temporary.keep().map_err(io)?;
    Ok(exported)
}

/// 64 bytes as 128 digits.
struct Hex<'a>(&'a Line);

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digits = self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let text: String = digits
            .map(|digit| char::from(DIGITS[usize::from(digit)]))
            .collect();
        f.write_str(&text)
    }
}
