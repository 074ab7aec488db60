//! gem5: packets of a communication monitor: the word `gem5`, then protobuf messages, each after its length. The first
//! message is the header.

use std::collections::VecDeque;
use std::io::{BufRead, Read};

use crate::convert::foreign::{Foreign, Reads, Requests};
use crate::convert::parse::{Bad, ParsedRequest};

/// Bytes of one message, or of the memory that one packet touches, at most.
const MOST: u64 = 1 << 20;
/// gem5's ticks in a second, where a trace does not say.
const TICKS: u64 = 1_000_000_000_000;
const CLOCK_MHZ: f64 = 1000.0;

pub const FORMAT: Foreign = Foreign::at_bus(
    "gem5-packets",
    Some(CLOCK_MHZ),
    Reads::Bytes(|options| Box::new(Gem5::new(options.clock_mhz.unwrap_or(CLOCK_MHZ)))),
);

struct Gem5 {
    clock_khz: u64,
    ticks: Option<u64>,
    waiting: VecDeque<ParsedRequest>,
    number: u64,
    first: Option<u64>,
}

impl Gem5 {
    fn new(clock_mhz: f64) -> Gem5 {
        Gem5 {
            clock_khz: (clock_mhz * 1000.0).round().max(1.0) as u64,
            ticks: None,
            waiting: VecDeque::new(),
            number: 0,
            first: None,
        }
    }
}

impl Requests for Gem5 {
    fn next(&mut self, mut from: &mut dyn BufRead) -> Result<Option<ParsedRequest>, Bad> {
        if self.ticks.is_none() {
            let mut magic = [0; 4];
            from.read_exact(&mut magic)?;
            match &magic {
                b"gem5" => {}
                _ => return Err(Bad::Trace("does not begin with gem5's mark".into())),
            }
            let head = message(&mut from)?.ok_or_else(|| Bad::Trace("has no head".into()))?;
            let ticks = fields(&head).map_err(Bad::Trace)?.get(3);
            self.ticks = Some(ticks.unwrap_or(TICKS).max(1));
        }
        while self.waiting.is_empty() {
            let Some(packet) = message(&mut from)? else {
                return Ok(None);
            };
            self.number += 1;
            let said = self.packet(&packet);
            said.map_err(|problem| Bad::Trace(format!("packet {}: {problem}", self.number)))?;
        }
        Ok(self.waiting.pop_front())
    }
}

impl Gem5 {
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
