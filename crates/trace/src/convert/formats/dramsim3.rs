//! DRAMsim3: `HEXADDR OP CYCLE`. The clock is *assumed*: DDR4-2400.

use std::io::Write;

use crate::Record;
use crate::convert::foreign::{Foreign, Reads, Writes};
use crate::convert::foreign::{cycle, is_access};
use crate::convert::parse::{Bad, ParsedRequest, decimal, hex, shape};

const CLOCK_KHZ: u64 = 1_200_000;

pub const FORMAT: Foreign = Foreign {
    writes: Some(|clock_khz| {
        Box::new(Writer {
            clock_khz: clock_khz.unwrap_or(CLOCK_KHZ),
        })
    }),
    ..Foreign::at_bus("dramsim3", Some(1200.0), Reads::Line(dramsim3))
};

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

struct Writer {
    /// The clock of the trace's gaps.
    clock_khz: u64,
}

impl Writes for Writer {
    fn write(&mut self, text: &mut dyn Write, gaps: u64, record: &Record) -> Result<bool, Bad> {
        let Some(write) = is_access(record) else {
            return Ok(false);
        };
        let cycle = cycle(gaps, CLOCK_KHZ, self.clock_khz);
        let word = if write { "WRITE" } else { "READ" };
        let done = writeln!(text, "0x{:X} {word} {cycle}", record.line.byte().0);
        done.map(|()| true).map_err(Bad::File)
    }
}
