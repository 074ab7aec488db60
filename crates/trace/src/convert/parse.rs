//! One line of text of each format as a request, or what is wrong with it.

use super::Format;
use crate::line::Line;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) cycle: Option<u64>,
    pub(super) write: bool,
    pub(super) byte: u64,
    pub(super) data: Option<Line>,
    pub(super) thread: u16,
}

impl Request {
    pub(super) fn new(write: bool, byte: u64) -> Request {
        Request {
            cycle: None,
            write,
            byte,
            data: None,
            thread: 0,
        }
    }
}

pub(super) struct Parser {
    format: Format,
    levels: Vec<u64>,
}

const LEVELS: [&str; 6] = ["channel", "rank", "bank group", "bank", "row", "column"];

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
        })
    }

    /// The request in line `number`; `None` for a header and for blank lines.
    pub(super) fn line(&self, number: u64, text: &str) -> Result<Option<Request>, String> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        if self.format == Format::NvMain && number == 1 {
            return match words[..] {
                ["NVMV1"] => Ok(None),
                _ => Err("an NVMain trace starts with a line `NVMV1`; put it there".to_owned()),
            };
        }
        if words.is_empty() {
            return Ok(None);
        }
        match self.format {
            Format::NvMain => nvmain(&words),
            Format::RamulatorLoadStore => load_store(&words),
            Format::RamulatorReadWrite => self.read_write(&words),
            Format::DramSim3 => dramsim3(&words),
            Format::ChampSim | Format::Gem5Packets => Err("the format is not text".to_owned()),
        }
        .map(Some)
    }

    fn read_write(&self, words: &[&str]) -> Result<Request, String> {
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
        Ok(Request::new(write, line * 64))
    }
}

fn nvmain(words: &[&str]) -> Result<Request, String> {
    let [cycle, op, address, more @ ..] = words else {
        return Err(shape(words, "CYCLE R|W ADDRESS [DATA OLDDATA THREAD]"));
    };
    if more.len() > 3 {
        return Err(shape(words, "CYCLE R|W ADDRESS [DATA OLDDATA THREAD]"));
    }
    let write = is_write(op, "R", "W")?;
    let mut request = Request::new(write, hex(address)?);
    request.cycle = Some(decimal(cycle, "cycle")?);
    if let Some(data) = more.first() {
        request.data = Some(bytes(data)?);
    }
    if let Some(old) = more.get(1) {
        bytes(old)?;
    }
    if let Some(thread) = more.get(2) {
        request.thread = u16::try_from(decimal(thread, "thread")?)
            .map_err(|_| format!("thread {thread} does not fit 16 bits; renumber the threads"))?;
    }
    Ok(request)
}

fn load_store(words: &[&str]) -> Result<Request, String> {
    let [op, address] = words else {
        return Err(shape(words, "LD|ST ADDRESS"));
    };
    let write = is_write(op, "LD", "ST")?;
    let byte = if address.starts_with("0x") || address.starts_with("0X") {
        hex(address)?
    } else {
        decimal(address, "address")?
    };
    Ok(Request::new(write, byte))
}

fn dramsim3(words: &[&str]) -> Result<Request, String> {
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
    let mut request = Request::new(write, hex(address)?);
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

/// 128 hex digits, the first two of them byte 0.
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
