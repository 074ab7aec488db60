//! Interpreters in recorded processes, and the frames of the scripts that they run, from their own structures in memory.

use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, Sym};
use rustc_hash::FxHashMap;
use sardonyx_crash_test::recording::ScriptFrame;

use super::java::{self, Java};
use super::process::MappedCode;
use super::python::{self, Python};
use super::shell::{self, Shell};

/// A text may have this many bytes.
const LONGEST: usize = 4096;

/// Reads memory of the process: an address and a length. Fewer bytes if not all exist.
pub(super) type Read<'a> = dyn Fn(u64, usize) -> Vec<u8> + 'a;

pub(super) fn at(bytes: &[u8], offset: u64) -> Option<u64> {
    let from = offset as usize;
    let word = bytes.get(from..from + 8)?;
    Some(u64::from_le_bytes(word.try_into().ok()?))
}

pub(super) fn word(read: &Read<'_>, address: u64) -> Option<u64> {
    at(&read(address, 8), 0)
}

/// Reads a text, which ends with a zero.
pub(super) fn text(read: &Read<'_>, address: u64) -> Option<String> {
    let mut bytes = Vec::new();
    while bytes.len() < LONGEST {
        // The memory after its page may not exist.
        let from = address.checked_add(bytes.len() as u64)?;
        let part = read(from, 256 - from as usize % 256);
        if let Some(end) = part.iter().position(|&byte| byte == 0) {
            bytes.extend_from_slice(&part[..end]);
            return String::from_utf8(bytes).ok();
        }
        if part.is_empty() {
            return None;
        }
        bytes.extend(part);
    }
    None
}

#[derive(Clone, Debug)]
enum Kind {
    Python(Python),
    Shell(Shell),
    Java(Box<Java>),
}

/// The interpreter in a process.
#[derive(Clone, Debug)]
pub(super) struct Interpreter {
    kind: Kind,
    /// The file that it lies in.
    path: PathBuf,
}

impl Interpreter {
    /// Whether a file is the interpreter's own, or of the modules that come with it.
    pub(super) fn has(&self, path: &Path) -> bool {
        path == self.path
            || path
                .components()
                .any(|part| part.as_os_str() == "lib-dynload")
    }

    /// The frames of a thread, innermost first; none if it runs no script. The frame pointers of calls in code that the
    /// program has made are given.
    pub(super) fn frames(&self, thread: i32, made: &[u64], read: &Read<'_>) -> Vec<ScriptFrame> {
        match &self.kind {
            Kind::Java(java) => java.frames(made, read),
            Kind::Python(python) => python.frames(thread, read),
            Kind::Shell(shell) => shell.frame(thread, read).into_iter().collect(),
        }
    }
}

/// Parts of the names of the files that interpreters lie in, and the symbols that lead to their structures.
const KINDS: [(&str, &[&[u8]]); 3] = [
    ("python", &python::SYMBOLS),
    ("bash", &shell::SYMBOLS),
    ("libjvm", &java::SYMBOLS),
];

/// The addresses of an interpreter's symbols in its file, and the file's loaded parts: offset, length, address.
#[derive(Debug)]
struct Symbols {
    kind: usize,
    symbols: Vec<u64>,
    parts: Vec<(u64, u64, u64)>,
}

impl Symbols {
    fn read(path: &Path) -> Option<Symbols> {
        let name = path.file_name()?.to_string_lossy();
        let kind = KINDS.iter().position(|(part, _)| name.contains(part))?;
        let bytes = std::fs::read(path).ok()?;
        let header = FileHeader64::<Endianness>::parse(&*bytes).ok()?;
        let endian = header.endian().ok()?;
        let parts = header.program_headers(endian, &*bytes).ok()?;
        let loaded = parts.iter().filter(|p| p.p_type(endian) == elf::PT_LOAD);
        let loaded = loaded.map(|p| (p.p_offset(endian), p.p_filesz(endian), p.p_vaddr(endian)));
        let all = header.sections(endian, &*bytes).ok()?;
        let table = all.symbols(endian, &*bytes, elf::SHT_DYNSYM).ok()?;
        let names = table.strings();
        let find = |name: &&[u8]| {
            let named = table.iter().find(|s| s.name(endian, names) == Ok(*name))?;
            Some(named.st_value(endian))
        };
        Some(Symbols {
            kind,
            symbols: KINDS[kind].1.iter().map(find).collect::<Option<_>>()?,
            parts: loaded.collect(),
        })
    }
}

#[derive(Debug, Default)]
pub(super) struct Interpreters {
    known: FxHashMap<PathBuf, Option<Symbols>>,
}

impl Interpreters {
    /// The interpreter among the code of a process, if there is one of a version that is known.
    pub(super) fn find(&mut self, code: &[MappedCode], read: &Read<'_>) -> Option<Interpreter> {
        code.iter().find_map(|part| {
            let symbols = self.known.entry(part.path.clone());
            let symbols = symbols.or_insert_with(|| Symbols::read(&part.path));
            let symbols = symbols.as_ref()?;
            let inside = |p: &&(u64, u64, u64)| {
                let within = part.offset.checked_sub(p.0);
                within.is_some_and(|within| within < p.1)
            };
            let (from, _, address) = symbols.parts.iter().find(inside)?;
            let moved = part
                .start
                .wrapping_sub((part.offset - from).wrapping_add(*address));
            let there = symbols.symbols.iter();
            let there: Vec<u64> = there.map(|at| at.wrapping_add(moved)).collect();
            let kind = match symbols.kind {
                0 => Kind::Python(Python::new(&there, read)?),
                1 => Kind::Shell(Shell::new(&there)?),
                _ => Kind::Java(Box::new(Java::new(&there, read)?)),
            };
            let path = part.path.clone();
            Some(Interpreter { kind, path })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn a_text_ends_with_its_zero() {
        let read = |at: u64, length: usize| b"abc\0d"[at as usize..][..length.min(4)].to_vec();
        assert_eq!(text(&read, 0).as_deref(), Some("abc"));
        assert_eq!(text(&|_, length| vec![b'x'; length], 0), None);
    }
}
