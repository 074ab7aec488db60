//! Reads traces that are not text: ChampSim's instructions, gem5's packets.

use std::collections::VecDeque;
use std::io::{BufRead, ErrorKind, Read};

use super::parse::ParsedRequest;

pub(super) const INSTRUCTION: usize = 64;
/// Bytes of one gem5 message, or of the memory that one packet touches, at most.
const MOST: u64 = 1 << 20;
/// gem5's ticks in a second, where a trace does not say.
const TICKS: u64 = 1_000_000_000_000;

pub(super) enum Bad {
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

/// ChampSim's instructions of 64 bytes. An address in `source_memory` is a load, one in `destination_memory` a store.
/// The number of the instruction is the moment of its accesses.
#[derive(Default)]
pub(super) struct ChampSim {
    waiting: VecDeque<ParsedRequest>,
    number: u64,
}

impl ChampSim {
    pub(super) fn next(&mut self, from: &mut impl BufRead) -> Result<Option<ParsedRequest>, Bad> {
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
            let words = instruction[16..].as_chunks::<8>().0;
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
                self.waiting.push_back(request);
            }
        }
        Ok(self.waiting.pop_front())
    }
}

/// gem5's packet trace: the word `gem5`, then protobuf messages, each after its length. The first message is the
/// header.
pub(super) struct Gem5 {
    clock_khz: u64,
    ticks: Option<u64>,
    waiting: VecDeque<ParsedRequest>,
    number: u64,
    first: Option<u64>,
}

impl Gem5 {
    pub(super) fn new(clock_mhz: f64) -> Gem5 {
        Gem5 {
            clock_khz: (clock_mhz * 1000.0).round().max(1.0) as u64,
            ticks: None,
            waiting: VecDeque::new(),
            number: 0,
            first: None,
        }
    }

    pub(super) fn next(&mut self, from: &mut impl BufRead) -> Result<Option<ParsedRequest>, Bad> {
        if self.ticks.is_none() {
            let mut magic = [0; 4];
            from.read_exact(&mut magic)?;
            match &magic {
                b"gem5" => {}
                _ => return Err(Bad::Trace("does not begin with gem5's mark".into())),
            }
            let head = message(from)?.ok_or_else(|| Bad::Trace("has no head".into()))?;
            let ticks = fields(&head).map_err(Bad::Trace)?.get(3);
            self.ticks = Some(ticks.unwrap_or(TICKS).max(1));
        }
        while self.waiting.is_empty() {
            let Some(packet) = message(from)? else {
                return Ok(None);
            };
            self.number += 1;
            let said = self.packet(&packet);
            said.map_err(|problem| Bad::Trace(format!("packet {}: {problem}", self.number)))?;
        }
        Ok(self.waiting.pop_front())
    }

    /// Turns a packet into a request for each line. Packets that move no bytes have none.
    fn packet(&mut self, packet: &[u8]) -> Result<(), String> {
        let fields = fields(packet)?;
        let (Some(tick), Some(command), Some(address)) =
            (fields.get(1), fields.get(2), fields.get(3))
        else {
            return Err("has no tick, command or address; is it a packet trace?".into());
        };
        let write = match command {
            // ReadReq, three prefetches, ReadEx, ReadClean, ReadShared, LoadLocked: gem5's MemCmd since version 21.
            1 | 11 | 12 | 13 | 22 | 24 | 25 | 26 => false,
            // WriteReq, WritebackDirty, WriteClean, WriteLine, StoreCond.
            4 | 7 | 9 | 16 | 27 => true,
            _ => return Ok(()),
        };
        let size = fields.get(4).unwrap_or(1).max(1);
        if size > MOST || address.checked_add(size).is_none() {
            return Err(format!("{size} bytes at {address:#x}"));
        }
        let begin = *self.first.get_or_insert(tick);
        let since = tick
            .checked_sub(begin)
            .ok_or("time goes back; sort the trace by tick")?;
        let ticks = u128::from(self.ticks.unwrap_or(TICKS));
        let cycle = u128::from(since) * u128::from(self.clock_khz) * 1000 / ticks;
        for line in address / 64..=(address + size - 1) / 64 {
            let mut request = ParsedRequest::new(write, line * 64);
            request.cycle = Some(u64::try_from(cycle).map_err(|_| "its tick is too large")?);
            self.waiting.push_back(request);
        }
        Ok(())
    }
}

fn message(from: &mut impl BufRead) -> Result<Option<Vec<u8>>, Bad> {
    if from.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let mut size = 0u64;
    for shift in (0..).step_by(7) {
        let mut byte = [0];
        from.read_exact(&mut byte)?;
        size |= u64::from(byte[0] & 127) << shift;
        if byte[0] < 128 {
            break;
        }
        if shift > 21 {
            return Err(Bad::Trace("a message of over 1 MiB; it is damaged".into()));
        }
    }
    if size > MOST {
        return Err(Bad::Trace(format!(
            "a message of {size} bytes; it is damaged"
        )));
    }
    let mut bytes = vec![0; size as usize];
    from.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

struct Fields([Option<u64>; 8]);

impl Fields {
    fn get(&self, field: usize) -> Option<u64> {
        self.0[field]
    }
}

fn fields(mut message: &[u8]) -> Result<Fields, String> {
    let mut found = Fields([None; 8]);
    while !message.is_empty() {
        let key = varint(&mut message)?;
        let (field, kind) = ((key >> 3) as usize, key & 7);
        let skipped = match kind {
            0 => {
                let value = varint(&mut message)?;
                if let Some(place) = found.0.get_mut(field) {
                    *place = Some(value);
                }
                0
            }
            1 => 8,
            2 => varint(&mut message)?,
            5 => 4,
            _ => return Err(format!("a field of kind {kind}; it is damaged")),
        };
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        message = message
            .get(skipped..)
            .ok_or("a field goes beyond its message; it is damaged")?;
    }
    Ok(found)
}

fn varint(message: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let mut byte = [0];
        let ended = message.read_exact(&mut byte);
        ended.map_err(|_| "a number goes beyond its message; it is damaged")?;
        value |= u64::from(byte[0] & 127).checked_shl(shift).unwrap_or(0);
        if byte[0] < 128 {
            return Ok(value);
        }
    }
    Err("a number of over 64 bits; it is damaged".into())
}
