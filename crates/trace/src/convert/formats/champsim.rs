//! ChampSim: instructions of 64 bytes, from before any cache. An address in `source_memory` is a load, one in
//! `destination_memory` a store.

use std::collections::VecDeque;
use std::io::{BufRead, Write};

use crate::Record;
use crate::convert::foreign::{Foreign, Reads, Requests, Writes, is_access};
use crate::convert::parse::{Bad, ParsedRequest};

const INSTRUCTION: usize = 64;
/// Instructions between two accesses that are written, at most. That many take 1 GiB.
const LONGEST_GAP: u64 = 1 << 24;

pub const FORMAT: Foreign = Foreign {
    has_pc: true,
    writes: Some(|_| Box::new(Writer::default())),
    ..Foreign::at_core("champsim", Reads::Bytes(|_| Box::new(ChampSim::default())))
};

/// The reader: the number of an instruction is the moment of its accesses.
#[derive(Default)]
struct ChampSim {
    waiting: VecDeque<ParsedRequest>,
    number: u64,
}

impl Requests for ChampSim {
    fn next(&mut self, from: &mut dyn BufRead) -> Result<Option<ParsedRequest>, Bad> {
        while self.waiting.is_empty() {
            if from.fill_buf()?.is_empty() {
                return Ok(None);
            }
            let mut instruction = [0; INSTRUCTION];
            from.read_exact(&mut instruction)?;
            self.number += 1;
            let (is_branch, taken) = (instruction[8], instruction[9]);
            if is_branch > 1 || taken > 1 {
                let number = self.number;
                return Err(Bad::Trace(format!(
                    "instruction {number}: branch flags {is_branch} and {taken} are not 0 or 1; is it ChampSim's \
                     format of 64 bytes an instruction?"
                )));
            }
            let [pc, _, words @ ..] = instruction.as_chunks::<8>().0 else {
                unreachable!("an instruction has eight words")
            };
            let addresses = words.iter().map(|word| u64::from_le_bytes(*word));
            // Two addresses that are written, then four that are read; a load comes before its store.
            let mut accesses: Vec<(bool, u64)> = addresses
                .enumerate()
                .map(|(index, address)| (index < 2, address))
                .filter(|(_, address)| *address != 0)
                .collect();
            accesses.sort_by_key(|(write, _)| *write);
            for (write, byte) in accesses {
                let mut request = ParsedRequest::new(write, byte);
                request.cycle = Some(self.number);
                request.pc = Some(u64::from_le_bytes(*pc));
                self.waiting.push_back(request);
            }
        }
        Ok(self.waiting.pop_front())
    }
}

#[derive(Default)]
struct Writer {
    /// Instructions so far.
    instructions: u64,
}

impl Writes for Writer {
    /// Each instruction of a gap is one without a memory access.
    fn write(&mut self, text: &mut dyn Write, gaps: u64, record: &Record) -> Result<bool, Bad> {
        let gap = gaps.saturating_sub(self.instructions);
        if gap > LONGEST_GAP {
            return Err(Bad::Trace(format!(
                "{gap} instructions without an access would be as many times {INSTRUCTION} bytes; at most {LONGEST_GAP} \
                 are written for ChampSim"
            )));
        }
        // An address of 0 is none for ChampSim.
        let access = is_access(record).filter(|_| record.line.0 != 0);
        let Some(write) = access else {
            return Ok(false);
        };
        while self.instructions + 1 < gaps {
            let empty = instruction(self.instructions, None);
            text.write_all(&empty).map_err(Bad::File)?;
            self.instructions += 1;
        }
        self.instructions += 1;
        let access = Some((write, record.line.byte().0));
        let done = text.write_all(&instruction(self.instructions, access));
        done.map(|()| true).map_err(Bad::File)
    }
}

/// A loop of 1 KiB of code: no branch, one register, at most one access.
fn instruction(number: u64, access: Option<(bool, u64)>) -> [u8; INSTRUCTION] {
    let mut bytes = [0; INSTRUCTION];
    bytes[..8].copy_from_slice(&(0x40_0000 + number % 256 * 4).to_le_bytes());
    (bytes[10], bytes[12]) = (1, 2); // from register 2 to register 1
    if let Some((write, address)) = access {
        let at = if write { 16 } else { 32 };
        bytes[at..at + 8].copy_from_slice(&address.to_le_bytes());
    }
    bytes
}
