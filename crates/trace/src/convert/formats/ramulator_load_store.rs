//! Ramulator 2, LoadStoreTrace: `LD ADDR` or `ST ADDR`.

use std::io::Write;

use crate::Record;
use crate::convert::foreign::{Foreign, Reads, Writes, is_access};
use crate::convert::parse::{Bad, ParsedRequest, is_write, number, shape};

pub const FORMAT: Foreign = Foreign {
    writes: Some(|_| Box::new(Writer)),
    ..Foreign::at_bus("ramulator-load-store", None, Reads::Line(load_store))
};

fn load_store(words: &[&str]) -> Result<ParsedRequest, String> {
    let [op, address] = words else {
        return Err(shape(words, "LD|ST ADDRESS"));
    };
    let write = is_write(op, "LD", "ST")?;
    Ok(ParsedRequest::new(write, number(address)?))
}

struct Writer;

impl Writes for Writer {
    fn write(&mut self, text: &mut dyn Write, _: u64, record: &Record) -> Result<bool, Bad> {
        let Some(write) = is_access(record) else {
            return Ok(false);
        };
        let (word, address) = (if write { "ST" } else { "LD" }, record.line.byte().0);
        let done = writeln!(text, "{word} 0x{address:x}");
        done.map(|()| true).map_err(Bad::File)
    }
}
