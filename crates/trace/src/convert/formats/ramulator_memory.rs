//! Ramulator 1, memory traces: `HEXADDR [R|W]`.

use crate::convert::foreign::{Foreign, Reads};
use crate::convert::parse::{ParsedRequest, hex, is_write, shape};

pub const FORMAT: Foreign = Foreign::at_bus("ramulator-memory", None, Reads::Line(memory));

fn memory(words: &[&str]) -> Result<ParsedRequest, String> {
    let (address, write) = match words {
        [address] => (address, false),
        [address, op] => (address, is_write(op, "R", "W")?),
        _ => return Err(shape(words, "HEXADDRESS [R|W]")),
    };
    Ok(ParsedRequest::new(write, hex(address)?))
}
