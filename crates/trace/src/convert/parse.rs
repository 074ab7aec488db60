//! One line of text of each format as a request, or what is wrong with it.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::Format;
use crate::line::{LINE_BYTES, Line};

const LINE: u64 = LINE_BYTES as u64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParsedRequest {
    pub(super) cycle: Option<u64>,
    pub(super) write: bool,
    pub(super) byte: u64,
    pub(super) data: Option<Line>,
    /// Bytes of the line from `byte` on, of a write that does not cover the whole line.
    pub(super) part: Vec<u8>,
    pub(super) thread: u16,
}

impl ParsedRequest {
    pub(super) fn new(write: bool, byte: u64) -> ParsedRequest {
        ParsedRequest {
            cycle: None,
            write,
            byte,
            data: None,
            part: Vec::new(),
            thread: 0,
        }
    }
}

pub(super) type ParsedRequests = VecDeque<ParsedRequest>;

pub(super) struct Parser {
    format: Format,
    levels: Vec<u64>,
    /// Whether an NVMain trace lacks `NVMV1` in front.
    old: bool,
    /// Instructions so far, or cycles where the trace gives the cycles between two requests.
    moment: u64,
    threads: FxHashMap<u64, usize>,
}

const LEVELS: [&str; 6] = ["channel", "rank", "bank group", "bank", "row", "column"];
const WIDEST: u64 = 4096;

impl Parser {
    pub(super) fn new(format: Format, levels: &[u64]) -> Result<Parser, String> {
        let lines = levels
            .iter()
            .try_fold(1u64, |n, &size| n.checked_mul(size).filter(|&n| n > 0));
        if levels.is_empty() || lines.is_none_or(|n| n > 1 << 58) {
            return Err(format!(
                "levels {levels:?} must each be at least 1 and together at most 2^58 lines"
            ));
        }
        Ok(Parser {
            format,
            levels: levels.to_vec(),
            old: false,
            moment: 0,
            threads: FxHashMap::default(),
        })
    }

    /// Puts the requests of line `number` into `out`. Headers, blank lines and comments (`#` or `//`) have none.
    pub(super) fn line(
        &mut self,
        number: u64,
        text: &str,
        out: &mut ParsedRequests,
    ) -> Result<(), String> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let Some(first) = words.first() else {
            return Ok(());
        };
        if first.starts_with('#') || first.starts_with("//") {
            return Ok(());
        }
        if self.format == Format::NvMain && number == 1 {
            match words[..] {
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
        let request = match self.format {
            Format::NvMain => nvmain(&words, self.old),
            Format::RamulatorLoadStore => load_store(&words),
            Format::RamulatorReadWrite => self.read_write(&words),
            Format::RamulatorInstructions => return self.instructions(&words, out),
            Format::RamulatorMemory => memory(&words),
            Format::DramSim3 => dramsim3(&words),
            Format::DramSim2 => dramsim2(&words),
            Format::DramSys | Format::DramSysRelative => return self.dramsys(&words, out),
            Format::Pinatrace => return self.pinatrace(&words, out),
            Format::Lackey => return self.lackey(text, &words, out),
            Format::DynamoRio => return self.dynamorio(&words, out),
            Format::ChampSim | Format::Gem5Packets => Err("the format is not text".to_owned()),
        };
        out.push_back(request?);
        Ok(())
    }

    /// Parses `BUBBLES LOAD [WRITEBACK]`, or `BUBBLES ADDRESS R|W`: that many instructions, then one that accesses
    /// memory.
    fn instructions(&mut self, words: &[&str], out: &mut ParsedRequests) -> Result<(), String> {
        const FORM: &str = "BUBBLES LOAD [WRITEBACK] or BUBBLES ADDRESS R|W";
        let [bubbles, address, more @ ..] = words else {
            return Err(shape(words, FORM));
        };
        self.moment += decimal(bubbles, "count of other instructions")? + 1;
        let byte = number(address)?;
        let request = |write, byte| ParsedRequest {
            cycle: Some(self.moment),
            ..ParsedRequest::new(write, byte)
        };
        match more {
            [] | ["R"] => out.push_back(request(false, byte)),
            ["W"] => out.push_back(request(true, byte)),
            [written] => {
                let written = number(written)?;
                out.push_back(request(false, byte));
                out.push_back(request(true, written));
            }
            _ => return Err(shape(words, FORM)),
        }
        Ok(())
    }

    /// Parses DRAMSys: `CYCLE[:] [(BYTES)] read|write ADDRESS [DATA]`.
    fn dramsys(&mut self, words: &[&str], out: &mut ParsedRequests) -> Result<(), String> {
        const FORM: &str = "CYCLE: [(BYTES)] read|write ADDRESS [DATA]";
        let [cycle, rest @ ..] = words else {
            return Err(shape(words, FORM));
        };
        let cycle = decimal(cycle.trim_end_matches(':'), "cycle")?;
        let (bytes, rest) = match rest {
            [length, rest @ ..] if length.starts_with('(') => {
                let digits = length.trim_start_matches('(').trim_end_matches(')');
                (Some(decimal(digits, "length")?), rest)
            }
            _ => (None, rest),
        };
        let (op, address, data) = match rest {
            [op, address] => (op, address, None),
            [op, address, data] => (op, address, Some(data)),
            _ => return Err(shape(words, FORM)),
        };
        let write = is_write(op, "read", "write")?;
        let data = match data {
            Some(data) if write => hex_bytes(data)?,
            _ => Vec::new(),
        };
        let width = bytes.unwrap_or(data.len().max(1) as u64);
        if !data.is_empty() && data.len() as u64 != width {
            return Err(format!(
                "data has {} bytes, and the length is {width}; give as many",
                data.len()
            ));
        }
        self.moment = match self.format {
            Format::DramSysRelative => self.moment + cycle,
            _ => cycle,
        };
        self.touch((write, hex(address)?, width), &data, 0, out)
    }

    /// Parses Pin's pinatrace: `PC: R|W ADDRESS`.
    fn pinatrace(&mut self, words: &[&str], out: &mut ParsedRequests) -> Result<(), String> {
        let [place, op, address] = words else {
            return Err(shape(words, "PC: R|W ADDRESS"));
        };
        hex(place.trim_end_matches(':'))?;
        self.moment += 1;
        self.touch((is_write(op, "R", "W")?, hex(address)?, 1), &[], 0, out)
    }

    /// Parses Valgrind's lackey with --trace-mem=yes: `I ADDRESS,SIZE`, and indented `L`, `S` or `M` (load and store).
    fn lackey(
        &mut self,
        text: &str,
        words: &[&str],
        out: &mut ParsedRequests,
    ) -> Result<(), String> {
        if text.starts_with("==") || text.starts_with("--") {
            return Ok(()); // valgrind's own words
        }
        let [op, place] = words else {
            return Err(shape(words, "I|L|S|M ADDRESS,SIZE"));
        };
        let (address, size) = place
            .split_once(',')
            .ok_or_else(|| format!("`{place}` is not ADDRESS,SIZE; correct or remove the line"))?;
        let (byte, size) = (hex(address)?, decimal(size, "size")?);
        let kinds: &[bool] = match *op {
            "I" => {
                self.moment += 1;
                return Ok(());
            }
            "L" => &[false],
            "S" => &[true],
            "M" => &[false, true],
            _ => return Err(format!("`{op}` is not I, L, S or M")),
        };
        for &write in kinds {
            self.touch((write, byte, size), &[], 0, out)?;
        }
        Ok(())
    }

    /// Parses DynamoRIO's view of a memory trace: `.. T12 read 8 byte(s) @ 0x1000 by PC ..`.
    fn dynamorio(&mut self, words: &[&str], out: &mut ParsedRequests) -> Result<(), String> {
        let Some(at) = words.windows(2).position(|two| two == ["byte(s)", "@"]) else {
            // Headings, markers and the counts at the end.
            let known = words
                .iter()
                .any(|word| word.starts_with('<') || word.ends_with(':') || word.starts_with("--"));
            return match known {
                true => Ok(()),
                false => Err("is not a line of DynamoRIO's view tool".to_owned()),
            };
        };
        let (Some(kind), Some(size), Some(address)) = (
            at.checked_sub(2).map(|kind| words[kind]),
            at.checked_sub(1).map(|size| words[size]),
            words.get(at + 2),
        ) else {
            return Err(shape(words, ".. KIND SIZE byte(s) @ ADDRESS"));
        };
        let write = match kind {
            "ifetch" | "non-fetched" => {
                self.moment += 1;
                return Ok(());
            }
            "read" => false,
            "write" => true,
            // Prefetches and flushes move no bytes of the program.
            _ => return Ok(()),
        };
        let thread = words[..at].iter().find_map(|word| {
            let thread = word.rsplit_once('T').map_or("", |(_, digits)| digits);
            thread.parse::<u64>().ok()
        });
        // Threads have large numbers of the system; here the first one is 0.
        let next = self.threads.len();
        let number = *(self.threads.entry(thread.unwrap_or(0))).or_insert(next);
        let thread =
            u16::try_from(number).map_err(|_| "has more than 65,536 threads".to_owned())?;
        self.touch(
            (write, hex(address)?, decimal(size, "size")?),
            &[],
            thread,
            out,
        )
    }

    fn touch(
        &self,
        (write, byte, size): (bool, u64, u64),
        data: &[u8],
        thread: u16,
        out: &mut ParsedRequests,
    ) -> Result<(), String> {
        if size == 0 || size > WIDEST {
            return Err(format!("an access of {size} bytes; 1 to {WIDEST} are read"));
        }
        let end = byte
            .checked_add(size)
            .ok_or_else(|| format!("address {byte:#x} and {size} bytes do not fit 64 bits"))?;
        let mut from = byte;
        while from < end {
            let to = end.min((from / LINE + 1) * LINE);
            let mut request = ParsedRequest::new(write, from);
            request.cycle = Some(self.moment);
            request.thread = thread;
            if !data.is_empty() {
                request.part = data[(from - byte) as usize..(to - byte) as usize].to_vec();
            }
            out.push_back(request);
            from = to;
        }
        Ok(())
    }

    fn read_write(&self, words: &[&str]) -> Result<ParsedRequest, String> {
        let [op, address] = words else {
            return Err(shape(words, "R|W CHANNEL,RANK,..,COLUMN"));
        };
        let write = is_write(op, "R", "W")?;
        let parts: Vec<&str> = address.split(',').collect();
        if parts.len() != self.levels.len() {
            return Err(format!(
                "address `{address}` has {} parts, and the device {} levels ({}); give its levels",
                parts.len(),
                self.levels.len(),
                LEVELS.join(", ")
            ));
        }
        let mut line = 0;
        for (i, (part, &size)) in parts.iter().zip(&self.levels).enumerate() {
            let value = decimal(part, "address part")?;
            if value >= size {
                let level = LEVELS.get(i).copied().unwrap_or("level");
                return Err(format!(
                    "{level} {value} is not below {size}; give the levels of your device"
                ));
            }
            line = line * size + value;
        }
        Ok(ParsedRequest::new(write, line * 64))
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

fn load_store(words: &[&str]) -> Result<ParsedRequest, String> {
    let [op, address] = words else {
        return Err(shape(words, "LD|ST ADDRESS"));
    };
    let write = is_write(op, "LD", "ST")?;
    Ok(ParsedRequest::new(write, number(address)?))
}

/// Parses Ramulator 1's memory trace: `ADDRESS [R|W]`, hexadecimal.
fn memory(words: &[&str]) -> Result<ParsedRequest, String> {
    let (address, write) = match words {
        [address] => (address, false),
        [address, op] => (address, is_write(op, "R", "W")?),
        _ => return Err(shape(words, "HEXADDRESS [R|W]")),
    };
    Ok(ParsedRequest::new(write, hex(address)?))
}

/// Parses DRAMSim2's kinds k6, mase and misc: `HEXADDRESS OP CYCLE [DATA]`. Everything after the cycle is dropped.
fn dramsim2(words: &[&str]) -> Result<ParsedRequest, String> {
    let [address, op, cycle, more @ ..] = words else {
        return Err(shape(words, "HEXADDRESS OP CYCLE [DATA]"));
    };
    if more.len() > 1 {
        return Err(shape(words, "HEXADDRESS OP CYCLE [DATA]"));
    }
    let write = match *op {
        "P_MEM_WR" | "BOFF" | "WRITE" | "write" => true,
        "P_FETCH" | "P_MEM_RD" | "P_LOCK_RD" | "P_LOCK_WR" | "IFETCH" | "READ" | "read" => false,
        _ => {
            return Err(format!(
                "operation `{op}` is none of DRAMSim2's: P_MEM_RD, P_MEM_WR, P_FETCH, P_LOCK_RD, P_LOCK_WR, BOFF, \
                 IFETCH, READ, WRITE"
            ));
        }
    };
    let mut request = ParsedRequest::new(write, hex(address)?);
    request.cycle = Some(decimal(cycle, "cycle")?);
    Ok(request)
}

fn dramsim3(words: &[&str]) -> Result<ParsedRequest, String> {
    let [address, op, cycle] = words else {
        return Err(shape(words, "HEXADDRESS OP CYCLE"));
    };
    // DRAMsim3 takes every other word for a read; these are the ones that mean it.
    let write = match *op {
        "WRITE" | "write" | "P_MEM_WR" | "BOFF" => true,
        "READ" | "read" | "P_MEM_RD" | "P_FETCH" => false,
        _ => {
            return Err(format!(
                "operation `{op}` is not READ, WRITE or one of their kin"
            ));
        }
    };
    let mut request = ParsedRequest::new(write, hex(address)?);
    request.cycle = Some(decimal(cycle, "cycle")?);
    Ok(request)
}

fn is_write(op: &str, read: &str, write: &str) -> Result<bool, String> {
    if op != read && op != write {
        return Err(format!("operation `{op}` is not {read} or {write}"));
    }
    Ok(op == write)
}

fn shape(words: &[&str], form: &str) -> String {
    format!(
        "has {} words, but a request is `{form}`; correct or remove the line",
        words.len()
    )
}

fn decimal(word: &str, what: &str) -> Result<u64, String> {
    // `parse` alone would take a plus sign.
    let digits = word.bytes().all(|b| b.is_ascii_digit());
    word.parse()
        .ok()
        .filter(|_| digits)
        .ok_or_else(|| format!("{what} `{word}` is not a decimal number of at most 64 bits"))
}

fn number(word: &str) -> Result<u64, String> {
    match word.starts_with("0x") || word.starts_with("0X") {
        true => hex(word),
        false => decimal(word, "address"),
    }
}

/// Parses hexadecimal digits, of which the first two are byte 0.
fn hex_bytes(word: &str) -> Result<Vec<u8>, String> {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let bad = || format!("data `{word}` is not pairs of hexadecimal digits");
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if !rest.is_empty() || pairs.is_empty() {
        return Err(bad());
    }
    pairs
        .iter()
        .map(|pair| {
            let digit = |c: u8| char::from(c).to_digit(16).ok_or_else(bad);
            Ok((digit(pair[0])? * 16 + digit(pair[1])?) as u8)
        })
        .collect()
}

fn hex(word: &str) -> Result<u64, String> {
    let digits = word
        .strip_prefix("0x")
        .or_else(|| word.strip_prefix("0X"))
        .unwrap_or(word);
    let only_digits = digits.bytes().all(|b| b.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16)
        .ok()
        .filter(|_| only_digits)
        .ok_or_else(|| format!("address `{word}` is not a hexadecimal number of at most 64 bits"))
}

/// Parses 128 hexadecimal digits, of which the first two are byte 0.
fn bytes(word: &str) -> Result<Line, String> {
    let bad = || {
        format!(
            "data has {} characters, not 128 hexadecimal digits",
            word.len()
        )
    };
    let (pairs, rest) = word.as_bytes().as_chunks::<2>();
    if pairs.len() != 64 || !rest.is_empty() {
        return Err(bad());
    }
    let mut line = [0; 64];
    for (byte, pair) in line.iter_mut().zip(pairs) {
        let digit = |c: u8| char::from(c).to_digit(16).ok_or_else(bad);
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Ok(line)
}
