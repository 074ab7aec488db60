//! Converts other simulators' traces to trace files, and trace files to some of theirs.
//!
//! `docs/simulator/trace-format.md` lists the formats; [`Format`] and `parse` have their lines. Where their own
//! readers crash, guess or drop a request, ours names the line and the remedy.

mod binary;
mod compressed;
mod export;
mod parse;

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, Read};
use std::path::Path;
use std::rc::Rc;
use std::str::FromStr;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::json;

use binary::Bad;
pub use export::{Exported, export, export_nvmain};
use parse::{ParsedRequest, ParsedRequests, Parser};

use super::error::IS_A_FOLDER;
use super::provenance::{ADDRESS_SPACE, PHYSICAL};
use super::source::stem;
use super::synth::content_bytes;
use super::{Arrivals, GapUnit, Level, Op, Provenance, Record, TraceError, TraceWriter};
use crate::line::{LINE_BYTES, Line, Virtual, ZERO_LINE};

/// A format of another simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// NVMain, version 1 (`NVMV1` in front) and 0: cycles, and data if it has them.
    #[serde(rename = "nvmain")]
    NvMain,
    /// Ramulator 2, LoadStoreTrace: `LD ADDR` or `ST ADDR`.
    RamulatorLoadStore,
    /// Ramulator 2, ReadWriteTrace: `R 0,0,0,0,12,3`.
    RamulatorReadWrite,
    /// Ramulator 1 and 2, instruction traces: `BUBBLES LOAD [WRITEBACK]`.
    RamulatorInstructions,
    /// Ramulator 1, memory traces: `HEXADDR R|W`.
    RamulatorMemory,
    /// DRAMSim2, kinds k6, mase and misc: `HEXADDR OP CYCLE`.
    #[serde(rename = "dramsim2")]
    DramSim2,
    /// DRAMSys, .stl: `CYCLE: [(BYTES)] read|write ADDRESS [DATA]`.
    #[serde(rename = "dramsys")]
    DramSys,
    /// DRAMSys, .rstl: the same with cycles since the request before.
    #[serde(rename = "dramsys-relative")]
    DramSysRelative,
    /// Pin's pinatrace: `PC: R|W ADDRESS`.
    Pinatrace,
    /// Valgrind's lackey, --trace-mem=yes.
    Lackey,
    /// DynamoRIO's drmemtrace, the text of its view tool.
    #[serde(rename = "dynamorio")]
    DynamoRio,
    /// DRAMsim3: `HEXADDR OP CYCLE`.
    #[serde(rename = "dramsim3")]
    DramSim3,
    /// ChampSim: instructions of 64 bytes, from before any cache.
    #[serde(rename = "champsim")]
    ChampSim,
    /// gem5: packets of a communication monitor, protobuf.
    Gem5Packets,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 14] = [
        Format::NvMain,
        Format::RamulatorLoadStore,
        Format::RamulatorReadWrite,
        Format::RamulatorInstructions,
        Format::RamulatorMemory,
        Format::DramSim2,
        Format::DramSim3,
        Format::DramSys,
        Format::DramSysRelative,
        Format::Pinatrace,
        Format::Lackey,
        Format::DynamoRio,
        Format::ChampSim,
        Format::Gem5Packets,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Format::NvMain => "nvmain",
            Format::RamulatorLoadStore => "ramulator-load-store",
            Format::RamulatorReadWrite => "ramulator-read-write",
            Format::RamulatorInstructions => "ramulator-instructions",
            Format::RamulatorMemory => "ramulator-memory",
            Format::DramSim2 => "dramsim2",
            Format::DramSim3 => "dramsim3",
            Format::DramSys => "dramsys",
            Format::DramSysRelative => "dramsys-relative",
            Format::Pinatrace => "pinatrace",
            Format::Lackey => "lackey",
            Format::DynamoRio => "dynamorio",
            Format::ChampSim => "champsim",
            Format::Gem5Packets => "gem5-packets",
        }
    }

    /// Whether accesses are a program's own, from before any cache.
    fn at_core(self) -> bool {
        matches!(
            self,
            Format::ChampSim | Format::Pinatrace | Format::Lackey | Format::DynamoRio
        )
    }

    /// Whether addresses are those of a memory bus. Programs have virtual addresses, and so do Ramulator's instruction
    /// traces, whose lines its frontend translates.
    fn is_physical(self) -> bool {
        !self.at_core() && self != Format::RamulatorInstructions
    }

    /// Whether moments are arrivals at memory. Cycles are stamps of a memory bus; a trace that counts instructions, or
    /// nothing, is played by a core.
    fn arrivals(self) -> Arrivals {
        match self.clock().0 {
            GapUnit::Cycles => Arrivals::Open,
            GapUnit::Instructions => Arrivals::Closed,
        }
    }

    /// The unit of a converted trace's gaps, and the clock in MHz where it is cycles.
    fn clock(self) -> (GapUnit, Option<f64>) {
        match self {
            Format::NvMain => (GapUnit::Cycles, Some(2000.0)),
            Format::DramSim3 => (GapUnit::Cycles, Some(1200.0)),
            Format::Gem5Packets => (GapUnit::Cycles, Some(1000.0)),
            Format::DramSim2 => (GapUnit::Cycles, Some(667.0)),
            Format::DramSys | Format::DramSysRelative => (GapUnit::Cycles, Some(800.0)),
            Format::RamulatorLoadStore
            | Format::RamulatorReadWrite
            | Format::RamulatorInstructions
            | Format::RamulatorMemory
            | Format::Pinatrace
            | Format::Lackey
            | Format::DynamoRio
            | Format::ChampSim => (GapUnit::Instructions, None),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;
    fn from_str(name: &str) -> Result<Format, String> {
        Format::ALL
            .into_iter()
            .find(|f| f.name() == name)
            .ok_or_else(|| {
                let names = Format::ALL.map(Format::name).join(", ");
                format!("`{name}` is not a trace format; choose {names}")
            })
    }
}

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

/// The longest line of text that a format needs, with room to spare.
const LONGEST: u64 = 4096;

/// Converts the trace `from` of another simulator to the trace file `to`; returns the number of records written.
/// `progress` is told the bytes done and in all.
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
) -> Result<u64, TraceError> {
    let path = from.as_ref();
    let mut parser = Parser::new(format, &options.levels).map_err(|e| TraceError::file(path, e))?;
    let io = |e| TraceError::unreadable(path, &e);
    let file = File::open(path).map_err(io)?;
    let meta = file.metadata().map_err(io)?;
    if meta.is_dir() {
        return Err(TraceError::file(path, IS_A_FOLDER));
    }
    let read = Rc::new(Cell::new(0));
    let mut text = compressed::open(CountedFile(file, read.clone())).map_err(io)?;
    let mut writer = TraceWriter::create(to, provenance(path, format, options))?;
    let mut records = Records {
        options,
        at_core: format.at_core(),
        held: FxHashMap::default(),
        dice: ChaCha8Rng::seed_from_u64(options.seed),
        sequence: 0,
        moment: 0,
    };
    let mut lines = TextLines {
        format,
        parser: &mut parser,
        waiting: VecDeque::new(),
        line: Vec::new(),
        number: 0,
    };
    let mut champsim = binary::ChampSim::default();
    let mut gem5 = binary::Gem5::new(options.clock_mhz.unwrap_or(1000.0));
    let mut count = 0;
    while count < options.limit {
        let next = match format {
            Format::ChampSim => champsim.next(&mut text),
            Format::Gem5Packets => gem5.next(&mut text),
            _ => lines.next(&mut text),
        };
        // Where it is stands in front: a line of text has a number, what is not text says it.
        let place = |problem| match lines.number {
            0 => TraceError::file(path, problem),
            number => TraceError::text(path, number, problem),
        };
        let request = next.map_err(|bad| match bad {
            Bad::Trace(problem) => place(problem),
            Bad::File(error) => io(error),
        })?;
        let Some(request) = request else { break };
        writer.push(&records.next(request).map_err(place)?)?;
        count += 1;
        if count % 65_536 == 0 {
            progress(read.get(), meta.len());
        }
    }
    let bytes = meta.len();
    if count == 0 {
        let problem = format!("holds no request; is it a {format} trace?");
        return Err(TraceError::file(path, problem));
    }
    progress(bytes, meta.len());
    writer.finish()
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

struct TextLines<'p> {
    format: Format,
    parser: &'p mut Parser,
    waiting: ParsedRequests,
    line: Vec<u8>,
    number: u64,
}

impl TextLines<'_> {
    fn next(&mut self, text: &mut impl BufRead) -> Result<Option<ParsedRequest>, Bad> {
        loop {
            if let Some(request) = self.waiting.pop_front() {
                return Ok(Some(request));
            }
            self.line.clear();
            let mut most = text.by_ref().take(LONGEST);
            let read = most.read_until(b'\n', &mut self.line)? as u64;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            let format = self.format;
            if read == LONGEST {
                return Err(Bad::Trace(format!(
                    "has over {LONGEST} bytes; this is not a {format} trace"
                )));
            }
            let words = std::str::from_utf8(&self.line)
                .map_err(|_| Bad::Trace(format!("is not text; is it a {format} trace?")))?;
            self.parser
                .line(self.number, words, &mut self.waiting)
                .map_err(Bad::Trace)?;
        }
    }
}

fn provenance(path: &Path, format: Format, options: &ImportOptions) -> Provenance {
    let (gap_unit, clock) = format.clock();
    let mut provenance = Provenance {
        program: stem(path),
        description: format!("converted from {format}"),
        gap_unit,
        arrivals: format.arrivals(),
        level: match format.at_core() {
            true => Level::Cpu,
            false => Level::Memory,
        },
        ..Provenance::default()
    };
    let fill =
        json!({"format": format, "data_of_writes_without": options.fill, "seed": options.seed});
    provenance.more.insert("converted".to_owned(), fill);
    let space = match format.is_physical() {
        true => PHYSICAL,
        false => "virtual",
    };
    (provenance.more).insert(ADDRESS_SPACE.to_owned(), space.into());
    if let Some(clock) = clock {
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
