//! DRAMSim2, kinds k6, mase and misc: `HEXADDR OP CYCLE [DATA]`. Everything after the cycle is dropped. The clock is
//! *assumed*: DDR3-1333.

use crate::convert::foreign::{Foreign, Reads};
use crate::convert::parse::{ParsedRequest, decimal, hex, shape};

pub const FORMAT: Foreign = Foreign::at_bus("dramsim2", Some(667.0), Reads::Line(dramsim2));

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
