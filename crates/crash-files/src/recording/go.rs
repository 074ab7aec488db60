//! Frames of programs in Go, which have no unwinding tables of their own: `.gopclntab` says of each instruction how far
//! its function has moved the stack pointer (Go's `internal/abi/symtab.go`, since Go 1.18).

use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use sardonyx_crash_test::recording::ScriptFrame;

/// The first words of a table of Go 1.18 and 1.19, and of later ones.
const MAGIC: [u32; 2] = [0xffff_fff0, 0xffff_fff1];
const SECTIONS: [&[u8]; 2] = [b".gopclntab", b".data.rel.ro.gopclntab"];
/// Offsets in the header, which begins with 8 bytes and goes on with words.
const FUNCTIONS: usize = 8;
const TEXT: usize = 24;
const NAMES: usize = 32;
const UNITS: usize = 40;
const FILES: usize = 48;
const STACK_STEPS: usize = 56;
const TABLE: usize = 64;
/// Offsets in a function's entry: of its name, of the steps of the stack, the file and the line, and of its unit.
const NAME: usize = 4;
const STEPS: usize = 16;
const FILE_STEPS: usize = 20;
const LINE_STEPS: usize = 24;
const UNIT: usize = 32;

pub(super) struct GoTable {
    bytes: Vec<u8>,
    text: u64,
    quantum: u64,
    /// Whether the file has lines of code besides.
    has_lines: bool,
    /// Where Go's own library lies, if its files have whole paths.
    root: String,
}

impl GoTable {
    /// Whether it is the only place of lines of code: the file has no debug information.
    pub(super) fn is_alone(&self) -> bool {
        !self.has_lines
    }

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
        let mut table = GoTable {
            bytes,
            text,
            quantum,
            has_lines: sections.section_by_name(endian, b".debug_line").is_some(),
            root: String::new(),
        };
        table.root = table.library().unwrap_or_default();
        Some(table)
    }

    /// The folder of Go's own library, which has the function that calls `main`.
    fn library(&self) -> Option<String> {
        let table = usize::try_from(word64(&self.bytes, TABLE)?).ok()?;
        let count = usize::try_from(word64(&self.bytes, FUNCTIONS)?).ok()?;
        let starts = (0..count).map_while(|number| word32(&self.bytes, table + number * 8));
        let mut places = starts.filter_map(|start| self.place(self.text + u64::from(start)));
        let first = places.find(|place| place.function.as_deref() == Some("runtime.main"))?;
        first
            .file
            .strip_suffix("runtime/proc.go")
            .map(str::to_owned)
    }

    /// Whether the place of a function is not its user's: it is in Go's own library. Where paths were trimmed, that is a
    /// package without a host, or a file from elsewhere than the function's own, which was inlined.
    fn is_library(&self, function: &str, file: &str, own: &str) -> bool {
        if !self.root.is_empty() {
            return file.starts_with(&self.root);
        }
        let folder = |file: &str| file.rsplit_once('/').map(|(folder, _)| folder.to_owned());
        let last = function.rfind('/').map_or(0, |slash| slash + 1);
        let dot = function[last..]
            .find('.')
            .map_or(function.len(), |dot| last + dot);
        let package = &function[..dot];
        let host = package.split('/').next().unwrap_or_default();
        package != "main" && !host.contains('.') || folder(file) != folder(own)
    }

    /// The number of bytes by which the function of an instruction has moved the stack pointer there.
    pub(super) fn moved(&self, address: u64) -> Option<u64> {
        let (entry, at) = self.function(address)?;
        u64::try_from(self.value(entry, STEPS, at)?).ok()
    }

    /// The function, file and line of an instruction; of what was inlined there, its file and line.
    pub(super) fn place(&self, address: u64) -> Option<ScriptFrame> {
        let (entry, at) = self.function(address)?;
        let name = self
            .part(NAMES)?
            .get(word32(&self.bytes, entry + NAME)? as usize..)?;
        let (file, function) = (self.file(entry, at)?, text(name)?);
        let line = self.value(entry, LINE_STEPS, at)?;
        Some(ScriptFrame {
            library: self.is_library(&function, &file, &self.file(entry, 0)?),
            file,
            line: u32::try_from(line).ok(),
            function: Some(function),
        })
    }

    /// The file of what a function does at a distance from its beginning.
    fn file(&self, entry: usize, at: u64) -> Option<String> {
        let unit = word32(&self.bytes, entry + UNIT)? as usize;
        let number = usize::try_from(self.value(entry, FILE_STEPS, at)?).ok()?;
        let file = unit.checked_add(number)?.checked_mul(4)?;
        let file = word32(self.part(UNITS)?, file)? as usize;
        text(self.part(FILES)?.get(file..)?)
    }

    /// The part of the table whose offset is in a word of the header.
    fn part(&self, word: usize) -> Option<&[u8]> {
        let from = usize::try_from(word64(&self.bytes, word)?).ok()?;
        self.bytes.get(from..)
    }

    /// The entry of an instruction's function, and the distance from the function's beginning.
    fn function(&self, address: u64) -> Option<(usize, u64)> {
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
        Some((entry, u64::from(at - start(number)?)))
    }

    /// The value that a function's steps have at a distance from its beginning.
    fn value(&self, entry: usize, steps: usize, at: u64) -> Option<i64> {
        let steps = word32(&self.bytes, entry.checked_add(steps)?)? as usize;
        step(self.part(STACK_STEPS)?.get(steps..)?, at, self.quantum)
    }
}

/// A text until its zero.
fn text(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|&byte| byte == 0)?;
    String::from_utf8(bytes[..end].to_vec()).ok()
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
            has_lines: false,
            root: String::new(),
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

    #[test]
    fn go_s_own_library_is_known_by_its_folder_or_by_its_packages() {
        let mut table = table();
        let library = |table: &GoTable, function, file| table.is_library(function, file, file);
        assert!(library(&table, "os.Exit", "os/proc.go"));
        assert!(table.is_library("main.put", "os/file.go", "app/main.go"));
        assert!(!library(&table, "main.put", "app/main.go"));
        assert!(!library(&table, "a.org/kv/log.Put", "a.org/kv/log/log.go"));
        table.root = "/go/src/".to_owned();
        assert!(library(&table, "app/log.Put", "/go/src/os/file.go"));
        assert!(!library(&table, "app/log.Put", "/home/app/log/log.go"));
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
            let _ = (cut.moved(0x1000 + 30), cut.place(0x1000 + 30));
        }
        for at in 0..whole.bytes.len() {
            let mut broken = table();
            broken.bytes[at] = 0xff;
            let _ = (broken.moved(0x1000 + 30), broken.place(0x1000 + 30));
        }
    }
}
