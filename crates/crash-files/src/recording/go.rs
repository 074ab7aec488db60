//! Frames of programs in Go, which have no unwinding tables of their own: `.gopclntab` says of each instruction how far
//! its function has moved the stack pointer (Go's `internal/abi/symtab.go`, since Go 1.18).

use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};

/// The first words of a table of Go 1.18 and 1.19, and of later ones.
const MAGIC: [u32; 2] = [0xffff_fff0, 0xffff_fff1];
const SECTIONS: [&[u8]; 2] = [b".gopclntab", b".data.rel.ro.gopclntab"];
/// Offsets in the header, which begins with 8 bytes and goes on with words.
const FUNCTIONS: usize = 8;
const TEXT: usize = 24;
const STACK_STEPS: usize = 56;
const TABLE: usize = 64;
/// The offset of the stack's steps in a function's entry, after its address, name, arguments and deferred return.
const STEPS: usize = 16;

pub(super) struct GoTable {
    bytes: Vec<u8>,
    text: u64,
    quantum: u64,
}

impl GoTable {
    /// The table of a program, if it is in Go.
    pub(super) fn read(
        header: &FileHeader64<Endianness>,
        endian: Endianness,
        program: &[u8],
    ) -> Option<GoTable> {
        let sections = header.sections(endian, program).ok()?;
        let named = |name: &&[u8]| sections.section_by_name(endian, name);
        let (_, section) = SECTIONS.iter().find_map(named)?;
        let bytes = section.data(endian, program).ok()?.to_vec();
        if !MAGIC.contains(&word32(&bytes, 0)?) || bytes.get(7) != Some(&8) {
            return None;
        }
        // Since Go 1.26, and where the loader moves the program, the header does not say where the code begins.
        let text = match word64(&bytes, TEXT)? {
            0 => {
                let symbols = sections
                    .symbols(endian, program, object::elf::SHT_SYMTAB)
                    .ok()?;
                let strings = symbols.strings();
                let is_text = |symbol: &&object::elf::Sym64<Endianness>| {
                    use object::read::elf::Sym;
                    symbol.name(endian, strings) == Ok(b"runtime.text")
                };
                let symbol = symbols.iter().find(is_text);
                let text = sections.section_by_name(endian, b".text");
                match symbol {
                    Some(symbol) => symbol.st_value.get(endian),
                    None => text?.1.sh_addr(endian),
                }
            }
            text => text,
        };
        let quantum = u64::from(*bytes.get(6)?).max(1);
        Some(GoTable {
            bytes,
            text,
            quantum,
        })
    }

    /// The number of bytes by which the function of an instruction has moved the stack pointer there.
    pub(super) fn moved(&self, address: u64) -> Option<u64> {
        let at = u32::try_from(address.checked_sub(self.text)?).ok()?;
        let table = usize::try_from(word64(&self.bytes, TABLE)?).ok()?;
        let functions = usize::try_from(word64(&self.bytes, FUNCTIONS)?).ok()?;
        let start = |number: usize| word32(&self.bytes, table.checked_add(number.checked_mul(8)?)?);
        let (mut from, mut to) = (0, functions);
        while from < to {
            let middle = from + (to - from) / 2;
            match start(middle)? <= at {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        let number = from.checked_sub(1)?;
        if at >= start(number + 1)? {
            return None; // after the last function
        }
        let entry = table.checked_add(word32(&self.bytes, table + number * 8 + 4)? as usize)?;
        let steps = word32(&self.bytes, entry.checked_add(STEPS)?)? as usize;
        let all = usize::try_from(word64(&self.bytes, STACK_STEPS)?).ok()?;
        let steps = self.bytes.get(all.checked_add(steps)?..)?;
        let moved = step(steps, u64::from(at - start(number)?), self.quantum)?;
        u64::try_from(moved).ok()
    }
}

/// The value at a distance from the beginning of a function. Each step has a difference, and the length that has it.
fn step(mut steps: &[u8], at: u64, quantum: u64) -> Option<i64> {
    let (mut value, mut end, mut first) = (-1_i64, 0_u64, true);
    loop {
        let differs = varint(&mut steps)?;
        if differs == 0 && !first {
            return None;
        }
        first = false;
        value = value.checked_add((differs >> 1) as i64 ^ -((differs & 1) as i64))?;
        end = end.checked_add(varint(&mut steps)?.checked_mul(quantum)?)?;
        if at < end {
            return Some(value);
        }
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(word.try_into().ok()?))
}

fn word64(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(word.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function of 48 bytes at 16, which moves the stack pointer by 24 bytes from its 5th byte on, and back at its
    /// 40th; and one of 16 bytes that moves nothing.
    fn table() -> GoTable {
        let mut bytes = vec![0; 72];
        bytes[..8].copy_from_slice(&[0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8]);
        bytes[FUNCTIONS..][..8].copy_from_slice(&2_u64.to_le_bytes());
        bytes[STACK_STEPS..][..8].copy_from_slice(&72_u64.to_le_bytes());
        // The steps: from -1 to 0 for 5 bytes, to 24 for 35, to 0 for 8; and 0 for 16.
        bytes.extend([0, 2, 5, 48, 35, 47, 8, 0, 2, 16, 0]);
        let at = bytes.len() as u64;
        bytes[TABLE..][..8].copy_from_slice(&at.to_le_bytes());
        let words = |bytes: &mut Vec<u8>, words: &[u32]| {
            words
                .iter()
                .for_each(|word| bytes.extend(word.to_le_bytes()));
        };
        words(&mut bytes, &[16, 20, 64, 40, 80]);
        words(&mut bytes, &[16, 0, 0, 0, 1, 64, 0, 0, 0, 8]);
        GoTable {
            bytes,
            text: 0x1000,
            quantum: 1,
        }
    }

    #[test]
    fn the_stack_is_where_the_steps_say() {
        let moved = |at: u64| table().moved(0x1000 + at);
        assert_eq!([16, 20, 21, 55].map(moved), [0, 0, 24, 24].map(Some));
        assert_eq!([56, 63, 64, 79].map(moved), [0; 4].map(Some));
        assert_eq!([0, 15, 80, 1 << 40].map(moved), [None; 4]);
        assert_eq!(table().moved(0), None);
    }

    /// No table leads beyond its own bytes.
    #[test]
    fn a_broken_table_says_nothing() {
        let whole = table();
        for length in 0..whole.bytes.len() {
            let cut = GoTable {
                bytes: whole.bytes[..length].to_vec(),
                ..table()
            };
            let _ = cut.moved(0x1000 + 30);
        }
        for at in 0..whole.bytes.len() {
            let mut broken = table();
            broken.bytes[at] = 0xff;
            let _ = broken.moved(0x1000 + 30);
        }
    }
}
