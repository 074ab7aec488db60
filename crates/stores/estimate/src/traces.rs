//! Traces that have digests in the place of contents: FIU's of I/O deduplication (Koller and
//! Rangaswami, FAST 2010) and destor's (Fu et al., FAST 2015). docs/store/estimate.md has both
//! layouts. Digests go through SHA-1, so that any text of hexadecimal digits spreads evenly.

use std::io::{BufRead, BufReader, Read};

use sardonyx_store::FiuRequest;
use serde::Serialize;
use sha1::{Digest as _, Sha1};

use super::distinct::Distinct;
use super::{EstimateError, EstimateResult, bad};

/// A line that is longer is not of a trace.
const LONGEST: u64 = 1 << 20;
const TELL_EVERY: u64 = 1 << 14;

/// Whose layout a trace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Requests to a disk, each with the MD5 of every 4096 (or 512) bytes.
    Fiu,
    /// Files, each with the SHA-1 and the length of every chunk.
    Destor,
}

impl Format {
    /// The fewest bytes of text for each chunk.
    pub(super) fn shortest(self) -> u64 {
        match self {
            Format::Fiu => 33,
            Format::Destor => 42,
        }
    }
}

#[derive(Default)]
pub(super) struct Counted {
    pub files: u64,
    pub reads: u64,
}

pub(super) fn count(
    name: &str,
    input: impl Read,
    format: Format,
    table: &mut Distinct,
    tell: &dyn Fn(u64) -> bool,
) -> EstimateResult<Counted> {
    let mut lines = NumberedLines::new(name, input);
    let mut counted = Counted::default();
    let mut destor = Destor::Outside;
    while lines.next()? {
        if lines.number.is_multiple_of(TELL_EVERY) && !tell(lines.bytes) {
            return Err(EstimateError::Lost);
        }
        if let Destor::Name(length) = destor {
            if lines.line.len() != length {
                return lines.bad(&format!("is not a name of {length} bytes"));
            }
            destor = Destor::Within; // whatever the name's encoding is
            continue;
        }
        let line = lines.text()?;
        let taken = match format {
            Format::Fiu => fiu(line, table, &mut counted),
            Format::Destor => destor.line(line, table, &mut counted),
        };
        taken.or_else(|problem| lines.bad(&problem))?;
    }
    match (format, destor) {
        (Format::Destor, Destor::Ended) => {}
        (Format::Destor, _) => return lines.bad("there is no `stream end`; the trace is cut off"),
        (Format::Fiu, _) => counted.files = 1,
    }
    Ok(counted)
}

fn fiu(line: &str, table: &mut Distinct, counted: &mut Counted) -> Result<(), String> {
    let request = FiuRequest::parse(line)?;
    let length = u32::try_from(request.bytes / request.digests.len() as u64)
        .map_err(|_| format!("{} bytes are too many", request.bytes))?;
    for digest in request.digests {
        if request.write {
            table.add(&spread(digest, 32)?, length, || length);
        } else {
            counted.reads += 1;
        }
    }
    Ok(())
}

enum Destor {
    Outside,
    /// The next line is a name of this many bytes.
    Name(usize),
    Within,
    Ended,
}

impl Destor {
    fn line(
        &mut self,
        line: &str,
        table: &mut Distinct,
        counted: &mut Counted,
    ) -> Result<(), String> {
        *self = match self {
            Destor::Outside if line == "stream end" => Destor::Ended,
            Destor::Outside => {
                let length = line
                    .strip_prefix("file start ")
                    .and_then(|text| text.parse().ok());
                Destor::Name(length.ok_or("is neither `file start LENGTH` nor `stream end`")?)
            }
            Destor::Name(_) => unreachable!("names are taken as bytes"),
            Destor::Within if line == "file end" => {
                counted.files += 1;
                Destor::Outside
            }
            Destor::Within => {
                let (digest, length) = line
                    .split_once(' ')
                    .and_then(|(digest, length)| Some((digest, length.parse::<u32>().ok()?)))
                    .filter(|(_, length)| *length > 0)
                    .ok_or("is neither `DIGEST BYTES` nor `file end`")?;
                table.add(&spread(digest, 40)?, length, || length);
                Destor::Within
            }
            Destor::Ended => return Err("follows `stream end`".into()),
        };
        Ok(())
    }
}

fn spread(digest: &str, digits: usize) -> Result<[u8; 20], String> {
    if digest.len() != digits || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(format!(
            "{digest:.50} is not a digest of {digits} hexadecimal digits"
        ));
    }
    Ok(Sha1::digest(digest.to_ascii_lowercase()).into())
}

/// Lines of text, with their number for errors.
struct NumberedLines<'a, R> {
    name: &'a str,
    input: BufReader<R>,
    line: Vec<u8>,
    number: u64,
    bytes: u64,
}

impl<'a, R: Read> NumberedLines<'a, R> {
    fn new(name: &'a str, input: R) -> NumberedLines<'a, R> {
        let input = BufReader::with_capacity(1 << 20, input);
        NumberedLines {
            name,
            input,
            line: Vec::new(),
            number: 0,
            bytes: 0,
        }
    }

    fn next(&mut self) -> EstimateResult<bool> {
        self.line.clear();
        let read = (&mut self.input)
            .take(LONGEST)
            .read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| EstimateError::Io(self.name.into(), error))?;
        self.number += 1;
        self.bytes += read as u64;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if read as u64 == LONGEST {
            return self.bad("is too long");
        }
        Ok(read > 0)
    }

    fn text(&self) -> EstimateResult<&str> {
        std::str::from_utf8(&self.line).or_else(|_| self.bad("is no text"))
    }

    fn bad<T>(&self, problem: &str) -> EstimateResult<T> {
        bad(format!("{}, line {}: {problem}", self.name, self.number))
    }
}
