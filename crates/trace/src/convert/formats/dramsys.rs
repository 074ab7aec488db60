//! DRAMSys, .stl: `CYCLE: [(BYTES)] read|write ADDRESS [DATA]`. The clock is *assumed*: DDR4-1600.

use crate::convert::foreign::{Foreign, Reads, TextFormat, TextLine};
use crate::convert::parse::{ParsedRequests, decimal, hex, hex_bytes, is_write, shape, touch};

pub const FORMAT: Foreign = Foreign::at_bus(
    "dramsys",
    Some(800.0),
    Reads::Text(|_| Box::new(DramSys::<false>::default())),
);

/// The reader; `RELATIVE` cycles count from the request before.
#[derive(Default)]
pub struct DramSys<const RELATIVE: bool> {
    moment: u64,
}

impl<const RELATIVE: bool> TextFormat for DramSys<RELATIVE> {
    fn line(&mut self, line: &TextLine<'_>, out: &mut ParsedRequests) -> Result<(), String> {
        const FORM: &str = "CYCLE: [(BYTES)] read|write ADDRESS [DATA]";
        let [cycle, rest @ ..] = &line.words[..] else {
            return Err(shape(&line.words, FORM));
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
            _ => return Err(shape(&line.words, FORM)),
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
        self.moment = match RELATIVE {
            true => self.moment + cycle,
            false => cycle,
        };
        touch(self.moment, (write, hex(address)?, width), &data, 0, out)
    }
}
