//! What a format of another simulator says of itself: a file of `formats` holds one.

use std::io::{BufRead, Write};

use super::ImportOptions;
use super::parse::{Bad, ParsedRequest, ParsedRequests};
use crate::{Op, Record};

pub struct Foreign {
    /// The name on the command line.
    pub name: &'static str,
    /// Whether accesses are a program's own, from before any cache.
    pub at_core: bool,
    /// Whether addresses are those of a memory bus, and not a program's.
    pub is_physical: bool,
    /// The clock of the gaps; `None` if they are instructions, or the trace has none.
    pub clock_mhz: Option<f64>,
    /// Whether accesses have the address of their instruction.
    pub has_pc: bool,
    pub reads: Reads,
    /// The command that makes text of what the tool records, if that is not text.
    pub text_by: Option<&'static str>,
    pub writes: Option<Writer>,
}

/// Makes a writer of gaps of a clock in kHz, if the trace has one.
pub type Writer = fn(Option<u64>) -> Box<dyn Writes>;

impl Foreign {
    /// A format of requests to memory, by physical addresses.
    pub const fn at_bus(name: &'static str, clock_mhz: Option<f64>, reads: Reads) -> Foreign {
        Foreign {
            name,
            at_core: false,
            is_physical: true,
            clock_mhz,
            has_pc: false,
            reads,
            text_by: None,
            writes: None,
        }
    }

    /// A format of a program's own accesses, which counts instructions.
    pub const fn at_core(name: &'static str, reads: Reads) -> Foreign {
        Foreign {
            at_core: true,
            is_physical: false,
            ..Foreign::at_bus(name, None, reads)
        }
    }
}

/// How a trace is read.
#[derive(Clone, Copy)]
pub enum Reads {
    /// Each line of text is a request.
    Line(fn(&[&str]) -> Result<ParsedRequest, String>),
    /// Line by line.
    Text(fn(&ImportOptions) -> Box<dyn TextFormat>),
    Bytes(fn(&ImportOptions) -> Box<dyn Requests>),
}

pub struct TextLine<'t> {
    pub number: u64,
    pub text: &'t str,
    /// Its words, of which there is one at least.
    pub words: Vec<&'t str>,
}

pub trait TextFormat {
    /// Puts the requests of a line, which is no comment, into `out`.
    fn line(&mut self, line: &TextLine<'_>, out: &mut ParsedRequests) -> Result<(), String>;
}

impl TextFormat for fn(&[&str]) -> Result<ParsedRequest, String> {
    fn line(&mut self, line: &TextLine<'_>, out: &mut ParsedRequests) -> Result<(), String> {
        out.push_back(self(&line.words)?);
        Ok(())
    }
}

pub trait Requests {
    fn next(&mut self, from: &mut dyn BufRead) -> Result<Option<ParsedRequest>, Bad>;

    /// The number of the line that was read last; 0 if there are no lines.
    fn line(&self) -> u64 {
        0
    }
}

pub trait Writes {
    fn head(&self) -> &'static str {
        ""
    }

    /// Writes a record after so many `gaps` in all. Returns false if the format has no such request.
    fn write(&mut self, text: &mut dyn Write, gaps: u64, record: &Record) -> Result<bool, Bad>;
}

/// Whether a record is a write, in a format that has no bytes; `None` if it is no access.
pub fn is_access(record: &Record) -> Option<bool> {
    match record.op {
        op if op.is_write() || op == Op::Store => Some(true),
        Op::ReadMiss | Op::Load => Some(false),
        _ => None,
    }
}

/// Gaps of one clock as cycles of another, as long.
pub fn cycle(gaps: u64, own_khz: u64, clock_khz: u64) -> u128 {
    u128::from(gaps) * u128::from(own_khz) / u128::from(clock_khz)
}
