//! Writes other simulators' formats, so that their results and ours can be compared.

use std::io::Write;
use std::path::Path;

use rustc_hash::FxHashMap;

use super::Format;
use super::binary::INSTRUCTION;
use super::compressed::CompressedFile;
use crate::line::{Line, ZERO_LINE};
use crate::temporary::Temporary;
use crate::{CLOCK_REMEDY, Op, Source, TraceError};

/// Counts of what was written to another simulator's trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Requests written.
    pub requests: u64,
    /// Fences and flush instructions, which the format does not have; their gaps are kept.
    pub left_out: u64,
}

/// NVMain's CPU clock, and the clock of DRAMsim3's DDR4-2400.
const CLOCK_KHZ: u64 = 2_000_000;
const DRAMSIM3_KHZ: u64 = 1_200_000;
/// Instructions between two accesses that are written for ChampSim, at most. That many take 1 GiB.
const LONGEST_GAP: u64 = 1 << 24;

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
    let io = cannot_be_written(to);
    let clock_khz = clock_khz(&source, CLOCK_KHZ)?;
    let (temporary, file) = Temporary::beside(to).map_err(io)?;
    let mut text = CompressedFile::create(file, to).map_err(io)?;
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
    text.finish().map_err(io)?;
    temporary.keep().map_err(io)?;
    Ok(exported)
}

/// Writes the reads and writes of `source` at `to` in a format that has no bytes: Ramulator's LoadStoreTrace, DRAMsim3's, in
/// cycles of 1200 MHz, or ChampSim's, where each instruction of a gap is one without a memory access. A trace of
/// cycles runs at one instruction a cycle there, and in the cycles of its own clock in DRAMsim3's.
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
    let written = [
        Format::RamulatorLoadStore,
        Format::DramSim3,
        Format::ChampSim,
    ];
    if !written.contains(&format) {
        let names = written.map(Format::name).join(", ");
        let problem = format!("{format} is not written; {names} and nvmain are");
        return Err(TraceError::file(to, problem));
    }
    let clock_khz = clock_khz(&source, DRAMSIM3_KHZ)?;
    let (temporary, file) = Temporary::beside(to).map_err(io)?;
    let mut text = CompressedFile::create(file, to).map_err(io)?;
    let mut exported = Exported::default();
    let (mut gaps, mut instructions) = (0u64, 0u64);
    source.each(progress, |record| {
        gaps += u64::from(record.gap);
        if format == Format::ChampSim {
            no_longer_than_written(gaps.saturating_sub(instructions), to)?;
        }
        let write = match record.op {
            // An address of 0 is none for ChampSim.
            _ if format == Format::ChampSim && record.line.0 == 0 => {
                exported.left_out += 1;
                return Ok(());
            }
            op if op.is_write() || op == Op::Store => true,
            Op::ReadMiss | Op::Load => false,
            _ => {
                exported.left_out += 1;
                return Ok(());
            }
        };
        exported.requests += 1;
        let address = record.line.byte().0;
        let said = match format {
            Format::DramSim3 => {
                let cycle = u128::from(gaps) * u128::from(DRAMSIM3_KHZ) / u128::from(clock_khz);
                let word = if write { "WRITE" } else { "READ" };
                writeln!(text, "0x{address:X} {word} {cycle}")
            }
            Format::RamulatorLoadStore => {
                let word = if write { "ST" } else { "LD" };
                writeln!(text, "{word} 0x{address:x}")
            }
            _ => {
                let mut said = Ok(());
                while instructions + 1 < gaps && said.is_ok() {
                    said = text.write_all(&instruction(instructions, None));
                    instructions += 1;
                }
                instructions += 1;
                said.and_then(|()| {
                    text.write_all(&instruction(instructions, Some((write, address))))
                })
            }
        };
        said.map_err(io)
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

fn clock_khz(source: &Source, usual: u64) -> Result<u64, TraceError> {
    let clock = source.provenance().clock_khz().map_err(|clock| {
        let problem = format!("clock_mhz is {clock}; {CLOCK_REMEDY}");
        TraceError::file(Path::new(source.name()), problem)
    })?;
    Ok(clock.unwrap_or(usual))
}

fn no_longer_than_written(gap: u64, to: &Path) -> Result<(), TraceError> {
    if gap <= LONGEST_GAP {
        return Ok(());
    }
    let problem = format!(
        "{gap} instructions without an access would be as many times {INSTRUCTION} bytes; at most {LONGEST_GAP} \
         are written for ChampSim"
    );
    Err(TraceError::file(to, problem))
}

/// One ChampSim instruction in a loop of 1 KiB of code: no branch, one register, at most one access.
fn instruction(number: u64, access: Option<(bool, u64)>) -> [u8; INSTRUCTION] {
    let mut bytes = [0; INSTRUCTION];
    bytes[..8].copy_from_slice(&(0x40_0000 + number % 256 * 4).to_le_bytes());
    (bytes[10], bytes[12]) = (1, 2); // from register 2 to register 1
    if let Some((write, address)) = access {
        let at = if write { 16 } else { 32 };
        bytes[at..at + 8].copy_from_slice(&address.to_le_bytes());
    }
    bytes
}

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
