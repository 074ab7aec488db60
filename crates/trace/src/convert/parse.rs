//! What formats of text share: requests, and the words of a line.

use std::collections::VecDeque;
use std::io::ErrorKind;

use crate::line::{LINE_BYTES, Line};

const LINE: u64 = LINE_BYTES as u64;
const WIDEST: u64 = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedRequest {
    pub cycle: Option<u64>,
    pub write: bool,
    pub byte: u64,
    /// Whether `byte` is a physical address in a format of virtual ones.
    pub translated: bool,
    pub data: Option<Line>,
    /// Bytes of the line from `byte` on, of a write that does not cover the whole line.
    pub part: Vec<u8>,
    pub thread: u16,
    /// The address of the instruction, if the format has it.
    pub pc: Option<u64>,
}

impl ParsedRequest {
    pub fn new(write: bool, byte: u64) -> ParsedRequest {
        ParsedRequest {
            cycle: None,
            write,
            byte,
            translated: false,
            data: None,
            part: Vec::new(),
            thread: 0,
            pc: None,
        }
    }
}

pub type ParsedRequests = VecDeque<ParsedRequest>;

pub enum Bad {
    Trace(String),
    File(std::io::Error),
}

impl From<std::io::Error> for Bad {
    fn from(error: std::io::Error) -> Bad {
        match error.kind() {
            ErrorKind::UnexpectedEof => Bad::Trace("ends in the middle; it was cut off".into()),
            ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::Other => {
                Bad::Trace(format!("is damaged: {error}"))
            }
            _ => Bad::File(error),
        }
    }
}

/// Puts a request for each line of an access into `out`, with its part of `data` if there is any.
pub fn touch(
    moment: u64,
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
        request.cycle = Some(moment);
        request.thread = thread;
        if !data.is_empty() {
            request.part = data[(from - byte) as usize..(to - byte) as usize].to_vec();
        }
        out.push_back(request);
        from = to;
    }
    Ok(())
}

pub fn is_write(op: &str, read: &str, write: &str) -> Result<bool, String> {
    if op != read && op != write {
        return Err(format!("operation `{op}` is not {read} or {write}"));
    }
    Ok(op == write)
}

pub fn shape(words: &[&str], form: &str) -> String {
    format!(
        "has {} words, but a request is `{form}`; correct or remove the line",
        words.len()
    )
}

pub fn decimal(word: &str, what: &str) -> Result<u64, String> {
    // `parse` alone would take a plus sign.
    let digits = word.bytes().all(|b| b.is_ascii_digit());
    word.parse()
        .ok()
        .filter(|_| digits)
        .ok_or_else(|| format!("{what} `{word}` is not a decimal number of at most 64 bits"))
}

/// The moment of an instruction that comes after `others`, of which the last was at `moment`.
pub fn after(moment: u64, others: &str) -> Result<u64, String> {
    let others = decimal(others, "count of other instructions")?;
    let next = others
        .checked_add(1)
        .and_then(|all| moment.checked_add(all));
    next.ok_or_else(|| "the count of instructions does not fit 64 bits".to_owned())
}

pub fn number(word: &str) -> Result<u64, String> {
    match word.starts_with("0x") || word.starts_with("0X") {
        true => hex(word),
        false => decimal(word, "address"),
    }
}

/// Parses hexadecimal digits, of which the first two are byte 0.
pub fn hex_bytes(word: &str) -> Result<Vec<u8>, String> {
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

pub fn hex(word: &str) -> Result<u64, String> {
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
pub fn bytes(word: &str) -> Result<Line, String> {
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
