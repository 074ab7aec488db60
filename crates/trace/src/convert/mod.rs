//! Converts other simulators' traces to trace files, and trace files to some of theirs.
//!
//! `docs/simulator/trace-format.md` lists the formats; `formats` has their lines. Where their own
//! readers crash, guess or drop a request, ours names the line and the remedy.

mod compressed;
mod export;
mod foreign;
mod formats;
mod parse;

use std::cell::Cell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, Read};
use std::path::Path;
use std::rc::Rc;
use std::str::FromStr;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use export::{Exported, export};
use foreign::{Reads, Requests, TextFormat, TextLine};
pub use formats::Format;
use parse::{Bad, ParsedRequest, ParsedRequests};

use super::error::IS_A_FOLDER;
use super::provenance::{ADDRESS_SPACE, PHYSICAL};
use super::source::stem;
use super::synth::content_bytes;
use super::{Level, Op, Provenance, Record, TraceError, TraceWriter};
use crate::line::{LINE_BYTES, Line, Virtual, ZERO_LINE};

/// The content of a write whose format has no bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fill {
    /// Zeros: everything is a duplicate.
    Zero,
    /// One of 1024 contents, at random.
    Random,
    /// Content that no other write has.
    #[default]
    Unique,
}

impl FromStr for Fill {
    type Err = String;
    fn from_str(name: &str) -> Result<Fill, String> {
        match name {
            "zero" => Ok(Fill::Zero),
            "random" => Ok(Fill::Random),
            "unique" => Ok(Fill::Unique),
            _ => Err(format!(
                "`{name}` is not a way to fill writes; choose zero, random, unique"
            )),
        }
    }
}

/// Options of a conversion.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportOptions {
    /// The content of a write without data.
    pub fill: Fill,
    /// The seed of that content.
    pub seed: u64,
    /// The clock that cycles count, in MHz; by default 2000 for NVMain (its CPU clock), and *assumed* 1200 for
    /// DRAMsim3 (DDR4-2400), 800 for DRAMSys (DDR4-1600) and 667 for DRAMSim2 (DDR3-1333).
    pub clock_mhz: Option<f64>,
    /// Sizes of channel, rank, bank group, bank, row and column (in lines), for ReadWriteTrace.
    pub levels: Vec<u64>,
    /// The most requests to convert.
    pub limit: u64,
}

impl Default for ImportOptions {
    fn default() -> ImportOptions {
        // One channel, two ranks of DDR4 8 Gb x8: Ramulator 2's example.
        let levels = vec![1, 2, 4, 4, 65_536, 128];
        ImportOptions {
            fill: Fill::Unique,
            seed: 0,
            clock_mhz: None,
            levels,
            limit: u64::MAX,
        }
    }
}

/// The level of zstd at which a trace is written.
const COMPRESSION: i32 = 3;
/// The longest line of text that a format needs, with room to spare.
const LONGEST: u64 = 4096;

/// Counts of what was written of another simulator's trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Records written.
    pub records: u64,
    /// Of a trace that tells where pages are in physical memory: records whose page it did not tell. They keep their
    /// virtual addresses; if there are none, the trace is one of physical addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untranslated: Option<u64>,
}

/// Converts the trace `from` of another simulator to the trace file `to`; returns what was written. `progress`
/// is told the bytes done and in all.
///
/// # Errors
/// The line that is not a request of that format, with the remedy; a file that cannot be read or
/// written, or holds no request.
pub fn import(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    format: Format,
    options: &ImportOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Imported, TraceError> {
    let path = from.as_ref();
    check_levels(&options.levels).map_err(|e| TraceError::file(path, e))?;
    let io = |e| TraceError::unreadable(path, &e);
    let file = File::open(path).map_err(io)?;
    let meta = file.metadata().map_err(io)?;
    if meta.is_dir() {
        return Err(TraceError::file(path, is_a_folder(format)));
    }
    let read = Rc::new(Cell::new(0));
    let mut text = compressed::open(CountedFile(file, read.clone())).map_err(io)?;
    let has_pc = format.foreign().has_pc;
    let provenance = provenance(path, format, options);
    let mut writer = TraceWriter::with_sites(to, provenance, COMPRESSION, has_pc)?;
    let mut sites = Sites::default();
    let mut records = Records {
        options,
        at_core: format.foreign().at_core,
        held: FxHashMap::default(),
        dice: ChaCha8Rng::seed_from_u64(options.seed),
        sequence: 0,
        moment: 0,
    };
    let mut requests = reader(format, options);
    let (mut count, mut translated) = (0, 0);
    while count < options.limit {
        let next = requests.next(&mut text);
        // Where it is stands in front: a line of text has a number, what is not text says it.
        let place = |problem| match requests.line() {
            0 => TraceError::file(path, problem),
            number => TraceError::text(path, number, problem),
        };
        let request = next.map_err(|bad| match bad {
            Bad::Trace(problem) => place(problem),
            Bad::File(error) => io(error),
        })?;
        let Some(request) = request else { break };
        translated += u64::from(request.translated);
        let site = request.pc.map(|pc| sites.number(pc));
        writer.push_at(&records.next(request).map_err(place)?, site)?;
        count += 1;
        if count % 65_536 == 0 {
            progress(read.get(), meta.len());
        }
    }
    if count == 0 {
        let problem = format!("holds no request; is it a {format} trace?");
        return Err(TraceError::file(path, problem));
    }
    progress(meta.len(), meta.len());
    let more = &mut writer.provenance_mut().more;
    if has_pc {
        more.insert("sites".to_owned(), sites.list.into());
    }
    if translated == count {
        more.insert(ADDRESS_SPACE.to_owned(), PHYSICAL.into());
    }
    let records = writer.finish()?;
    Ok(Imported {
        records,
        untranslated: (translated > 0).then_some(records - translated),
    })
}

fn reader(format: Format, options: &ImportOptions) -> Box<dyn Requests> {
    let text_lines = |parser| TextLines {
        format,
        parser,
        waiting: VecDeque::new(),
        line: Vec::new(),
        number: 0,
    };
    match format.foreign().reads {
        Reads::Line(parse) => Box::new(text_lines(Box::new(parse))),
        Reads::Text(parser) => Box::new(text_lines(parser(options))),
        Reads::Bytes(requests) => requests(options),
    }
}

/// Addresses of instructions, as the provenance lists them: without a caller, and not of a locked instruction.
#[derive(Default)]
struct Sites {
    numbers: FxHashMap<u64, u32>,
    list: Vec<Value>,
}

impl Sites {
    fn number(&mut self, pc: u64) -> u32 {
        *self.numbers.entry(pc).or_insert_with(|| {
            self.list.push(json!([0, pc, false]));
            self.list.len() as u32 - 1
        })
    }
}

/// A file that counts the bytes read from it.
struct CountedFile(File, Rc<Cell<u64>>);

impl Read for CountedFile {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read(buffer)?;
        self.1.set(self.1.get() + read as u64);
        Ok(read)
    }
}

struct TextLines {
    format: Format,
    parser: Box<dyn TextFormat>,
    waiting: ParsedRequests,
    line: Vec<u8>,
    number: u64,
}

impl Requests for TextLines {
    /// Blank lines and comments (`#` or `//`) have no requests.
    fn next(&mut self, mut text: &mut dyn BufRead) -> Result<Option<ParsedRequest>, Bad> {
        loop {
            if let Some(request) = self.waiting.pop_front() {
                return Ok(Some(request));
            }
            self.line.clear();
            let mut most = (&mut text).take(LONGEST);
            let read = most.read_until(b'\n', &mut self.line)? as u64;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            let format = self.format;
            if read == LONGEST {
                let remedy = remedy(format);
                return Err(Bad::Trace(format!("has over {LONGEST} bytes; {remedy}")));
            }
            let text = std::str::from_utf8(&self.line).ok();
            let text = text.filter(|text| !text.contains('\0'));
            let text =
                text.ok_or_else(|| Bad::Trace(format!("is not text; {}", remedy(format))))?;
            let words: Vec<&str> = text.split_ascii_whitespace().collect();
            let is_comment = |word: &&str| word.starts_with('#') || word.starts_with("//");
            if words.first().is_none_or(is_comment) {
                continue;
            }
            let line = TextLine {
                number: self.number,
                text,
                words,
            };
            let parsed = self.parser.line(&line, &mut self.waiting);
            parsed.map_err(Bad::Trace)?;
        }
    }

    fn line(&self) -> u64 {
        self.number
    }
}

fn is_a_folder(format: Format) -> String {
    match format.foreign().text_by {
        Some(_) => format!("is a directory; {}", remedy(format)),
        None => IS_A_FOLDER.to_owned(),
    }
}

/// What to do with a file that is not text of the format.
fn remedy(format: Format) -> String {
    match format.foreign().text_by {
        Some(command) => format!("make text of a recording by `{command}`"),
        None => format!("is it a {format} trace?"),
    }
}

fn check_levels(levels: &[u64]) -> Result<(), String> {
    let lines = levels
        .iter()
        .try_fold(1u64, |n, &size| n.checked_mul(size).filter(|&n| n > 0));
    match levels.is_empty() || lines.is_none_or(|n| n > 1 << 58) {
        true => Err(format!(
            "levels {levels:?} must each be at least 1 and together at most 2^58 lines"
        )),
        false => Ok(()),
    }
}

fn provenance(path: &Path, format: Format, options: &ImportOptions) -> Provenance {
    let mut provenance = Provenance {
        program: stem(path),
        description: format!("converted from {format}"),
        gap_unit: format.gap_unit(),
        arrivals: format.arrivals(),
        level: match format.foreign().at_core {
            true => Level::Cpu,
            false => Level::Memory,
        },
        ..Provenance::default()
    };
    let fill =
        json!({"format": format, "data_of_writes_without": options.fill, "seed": options.seed});
    provenance.more.insert("converted".to_owned(), fill);
    let space = match format.foreign().is_physical {
        true => PHYSICAL,
        false => "virtual",
    };
    (provenance.more).insert(ADDRESS_SPACE.to_owned(), space.into());
    if let Some(clock) = format.foreign().clock_mhz {
        let clock = options.clock_mhz.unwrap_or(clock);
        provenance.more.insert("clock_mhz".to_owned(), clock.into());
    }
    provenance
}

/// Turns requests into records: moments become gaps, and writes without contents get some.
struct Records<'a> {
    options: &'a ImportOptions,
    /// Whether records are loads and stores of a core, from before any cache.
    at_core: bool,
    /// The contents of lines of which only parts are written.
    held: FxHashMap<u64, Line>,
    dice: ChaCha8Rng,
    sequence: u64,
    moment: u64,
}

impl Records<'_> {
    fn next(&mut self, request: ParsedRequest) -> Result<Record, String> {
        let moment = request.cycle.unwrap_or(self.moment);
        let gap = moment.checked_sub(self.moment).ok_or_else(|| {
            format!(
                "cycle {moment} is before the previous {}; sort the trace by cycle",
                self.moment
            )
        })?;
        let gap = u32::try_from(gap).map_err(|_| {
            format!("{gap} cycles since the previous request do not fit 32 bits; shift the cycles")
        })?;
        self.moment = moment;
        let line = request.byte / LINE_BYTES as u64;
        let (op, data) = if request.write {
            let data = match (request.data, &request.part[..]) {
                (Some(data), _) => data,
                (None, []) => self.content(line),
                (None, part) => {
                    let held = self.held.entry(line).or_insert(ZERO_LINE);
                    let from = (request.byte % LINE_BYTES as u64) as usize;
                    held[from..from + part.len()].copy_from_slice(part);
                    *held
                }
            };
            let op = if self.at_core {
                Op::Store
            } else {
                Op::DirtyEviction
            };
            (op, Some(data))
        } else {
            let op = if self.at_core { Op::Load } else { Op::ReadMiss };
            (op, None)
        };
        Ok(Record {
            gap,
            thread: request.thread,
            op,
            line: Virtual(line),
            data,
        })
    }

    fn content(&mut self, line: u64) -> Line {
        self.sequence += 1;
        match self.options.fill {
            Fill::Zero => ZERO_LINE,
            Fill::Random => content_bytes(self.options.seed, 1 + self.dice.next_u64() % 1024),
            Fill::Unique => {
                // The sequence makes it unique, the line readable in a dump.
                let mut data = content_bytes(self.options.seed, self.sequence);
                data[56..].copy_from_slice(&line.to_le_bytes());
                data
            }
        }
    }
}
