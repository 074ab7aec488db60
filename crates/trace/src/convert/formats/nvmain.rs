//! NVMain, version 1 (`NVMV1` in front) and 0: cycles of its CPU clock, and data if it has them.

use std::io::Write;

use rustc_hash::FxHashMap;

use crate::convert::foreign::{Foreign, Reads, TextFormat, TextLine, Writes, cycle};
use crate::convert::parse::{
    Bad, ParsedRequest, ParsedRequests, bytes, decimal, hex, is_write, shape,
};
use crate::line::{Line, ZERO_LINE};
use crate::{Op, Record};

/// NVMain's CPU clock.
const CLOCK_KHZ: u64 = 2_000_000;

pub const FORMAT: Foreign = Foreign {
    writes: Some(|clock_khz| {
        Box::new(Writer {
            clock_khz: clock_khz.unwrap_or(CLOCK_KHZ),
            lines: FxHashMap::default(),
        })
    }),
    ..Foreign::at_bus(
        "nvmain",
        Some(2000.0),
        Reads::Text(|_| Box::new(NvMain::default())),
    )
};

/// The reader: whether the trace lacks `NVMV1` in front.
#[derive(Default)]
struct NvMain {
    old: bool,
}

impl TextFormat for NvMain {
    fn line(&mut self, line: &TextLine<'_>, out: &mut ParsedRequests) -> Result<(), String> {
        if line.number == 1 {
            match line.words[..] {
                ["NVMV1"] => return Ok(()),
                [word] => {
                    return Err(format!(
                        "`{word}` is no version that is known; an NVMain trace begins with `NVMV1`, or, as version 0, \
                         with its first request"
                    ));
                }
                _ => self.old = true,
            }
        }
        out.push_back(nvmain(&line.words, self.old)?);
        Ok(())
    }
}

/// Parses NVMain. Version 0 (`old`) has no old data.
fn nvmain(words: &[&str], old: bool) -> Result<ParsedRequest, String> {
    let (form, most) = match old {
        true => (
            "CYCLE R|W ADDRESS [DATA THREAD], or NVMV1 in the first line",
            2,
        ),
        false => ("CYCLE R|W ADDRESS [DATA OLDDATA THREAD]", 3),
    };
    let [cycle, op, address, more @ ..] = words else {
        return Err(shape(words, form));
    };
    if more.len() > most {
        return Err(shape(words, form));
    }
    let write = is_write(op, "R", "W")?;
    let mut request = ParsedRequest::new(write, hex(address)?);
    request.cycle = Some(decimal(cycle, "cycle")?);
    if let Some(data) = more.first() {
        request.data = Some(bytes(data)?);
    }
    if let Some(before) = more.get(1).filter(|_| !old) {
        bytes(before)?;
    }
    if let Some(thread) = more.get(most - 1) {
        request.thread = u16::try_from(decimal(thread, "thread")?)
            .map_err(|_| format!("thread {thread} does not fit 16 bits; renumber the threads"))?;
    }
    Ok(request)
}

struct Writer {
    /// The clock of the trace's gaps.
    clock_khz: u64,
    /// What each line last held: zeros before its first write.
    lines: FxHashMap<u64, Line>,
}

impl Writes for Writer {
    fn head(&self) -> &'static str {
        "NVMV1\n"
    }

    /// OLDDATA, and the data of a read, are what the line last held.
    fn write(&mut self, text: &mut dyn Write, gaps: u64, record: &Record) -> Result<bool, Bad> {
        let cycle = cycle(gaps, CLOCK_KHZ, self.clock_khz);
        let old = self.lines.get(&record.line.0).copied().unwrap_or(ZERO_LINE);
        let (letter, new) = match record.data {
            Some(data) if record.op.is_write() => {
                self.lines.insert(record.line.0, data);
                ('W', data)
            }
            _ if record.op == Op::ReadMiss => ('R', old),
            _ => return Ok(false),
        };
        let address = record.line.byte().0;
        let (new, old, thread) = (Hex(&new), Hex(&old), record.thread);
        let done = writeln!(text, "{cycle} {letter} 0x{address:x} {new} {old} {thread}");
        done.map(|()| true).map_err(Bad::File)
    }
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
