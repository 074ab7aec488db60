//! Frames of CPython 3.11 to 3.13, read from the structures of a process's interpreter: thread state, frame, code object,
//! table of lines. Any other version, and whatever does not look as it should, has no frames here.
//!
//! Offsets are of 64-bit release builds: `Include/internal/pycore_*.h` and `Include/cpython` of 3.11.7 and 3.12.1. Since
//! 3.13 the interpreter says its own (`_Py_DebugOffsets`). The table of lines is as `Objects/locations.md` has it.

use sardonyx_crash_test::recording::ScriptFrame;

use super::interpreters::{Read, at, word};

/// At most this many frames, threads or interpreters are looked at.
const MOST: usize = 128;
/// Names and tables of lines may have this many bytes.
const LONGEST: usize = 1 << 20;
/// Frames of the interpreter itself, which run no code (`FRAME_OWNED_BY_CSTACK`).
const OWN: u8 = 3;
/// What every record of offsets begins with.
const COOKIE: &[u8; 8] = b"xdebugpy";

#[derive(Clone, Copy, Debug, PartialEq)]
struct Offsets {
    first_interpreter: u64,
    next_interpreter: u64,
    first_thread: u64,
    next_thread: u64,
    interpreter: u64,
    native_id: u64,
    /// The frame in a thread's state; if the second is set, in what that word leads to.
    frame: (u64, Option<u64>),
    previous: u64,
    code: u64,
    instruction: u64,
    owner: u64,
    file: u64,
    name: u64,
    lines: u64,
    first_line: u64,
    instructions: u64,
    /// The sizes of the headers of a text in ASCII and of others.
    text: [u64; 2],
}

const V3_11: Offsets = Offsets {
    first_interpreter: 40,
    next_interpreter: 0,
    first_thread: 16,
    next_thread: 8,
    interpreter: 16,
    native_id: 160,
    frame: (56, Some(8)),
    previous: 48,
    code: 32,
    instruction: 56,
    owner: 69,
    file: 112,
    name: 128,
    lines: 136,
    first_line: 72,
    instructions: 184,
    text: [48, 72],
};

const V3_12: Offsets = Offsets {
    first_thread: 72,
    native_id: 144,
    frame: (56, Some(0)),
    previous: 8,
    code: 0,
    owner: 70,
    first_line: 68,
    instructions: 192,
    text: [40, 56],
    ..V3_11
};

/// The words of a record of offsets, by their place in it (3.13: `Include/internal/pycore_runtime.h`).
fn told(record: &[u8]) -> Option<Offsets> {
    let word = |number: usize| {
        let bytes = record.get(number * 8..number * 8 + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?)).filter(|offset| *offset < 1 << 20)
    };
    (record.get(..8)? == COOKIE).then_some(())?;
    let ascii = word(70)?;
    Some(Offsets {
        first_interpreter: word(5)?,
        next_interpreter: word(8)?,
        first_thread: word(9)?,
        next_thread: word(21)?,
        interpreter: word(22)?,
        frame: (word(23)?, None),
        native_id: word(25)?,
        previous: word(29)?,
        code: word(30)?,
        instruction: word(31)?,
        owner: word(33)?,
        file: word(35)?,
        name: word(37)?,
        lines: word(38)?,
        first_line: word(39)?,
        instructions: word(43)?,
        text: [ascii, ascii + 16],
    })
}

/// The interpreter in a process.
#[derive(Clone, Debug)]
pub(super) struct Python {
    runtime: u64,
    offsets: Offsets,
}

/// The symbols that lead to it.
pub(super) const SYMBOLS: [&[u8]; 2] = [b"_PyRuntime", b"Py_Version"];

impl Python {
    /// An interpreter whose [`SYMBOLS`] are at these addresses, if its version is known.
    pub(super) fn new(symbols: &[u64], read: &Read<'_>) -> Option<Python> {
        let [runtime, version] = symbols.try_into().ok()?;
        let offsets = match word(read, version)? >> 16 {
            0x30b => V3_11,
            0x30c => V3_12,
            0x30d => told(&read(runtime, 640))?,
            _ => return None,
        };
        Some(Python { runtime, offsets })
    }

    /// The frames of a thread, innermost first; none if it runs no Python.
    pub(super) fn frames(&self, thread: i32, read: &Read<'_>) -> Vec<ScriptFrame> {
        let offsets = &self.offsets;
        let mut found = Vec::new();
        let mut next = self.thread(thread, read).and_then(|state| {
            let held = word(read, state + offsets.frame.0)?;
            match offsets.frame.1 {
                Some(further) => word(read, held.checked_add(further)?),
                None => Some(held),
            }
        });
        for _ in 0..MOST {
            let Some(frame) = next.filter(|frame| *frame != 0) else {
                break;
            };
            let bytes = read(frame, 80);
            let Some(&owner) = bytes.get(offsets.owner as usize) else {
                break;
            };
            next = at(&bytes, offsets.previous);
            if owner < OWN {
                let place = at(&bytes, offsets.code).zip(at(&bytes, offsets.instruction));
                match place.and_then(|(code, instruction)| self.frame(code, instruction, read)) {
                    Some(one) => found.push(one),
                    None => return Vec::new(), // not what it was taken for
                }
            }
        }
        found
    }

    /// The state of a thread.
    fn thread(&self, thread: i32, read: &Read<'_>) -> Option<u64> {
        let offsets = &self.offsets;
        let mut interpreter = word(read, self.runtime + offsets.first_interpreter)?;
        for _ in 0..MOST {
            if interpreter == 0 {
                break;
            }
            let mut state = word(read, interpreter.checked_add(offsets.first_thread)?)?;
            for _ in 0..MOST {
                if state == 0 {
                    break;
                }
                let of = word(read, state.checked_add(offsets.interpreter)?)?;
                if of != interpreter {
                    return None; // not what it was taken for
                }
                if word(read, state + offsets.native_id)? == thread as u64 {
                    return Some(state);
                }
                state = word(read, state + offsets.next_thread)?;
            }
            interpreter = word(read, interpreter.checked_add(offsets.next_interpreter)?)?;
        }
        None
    }

    fn frame(&self, code: u64, instruction: u64, read: &Read<'_>) -> Option<ScriptFrame> {
        let offsets = &self.offsets;
        let object = read(code, offsets.instructions as usize);
        let first = object.get(offsets.first_line as usize..offsets.first_line as usize + 4)?;
        let first = i32::from_le_bytes(first.try_into().ok()?);
        let table = at(&object, offsets.lines)?;
        let length = usize::try_from(word(read, table.checked_add(16)?)?).ok()?;
        let table = read(table + 32, Some(length).filter(|l| *l <= LONGEST)?);
        let unit = instruction.checked_sub(code.checked_add(offsets.instructions)?);
        // Before its first instruction a frame is at the beginning.
        let line = line(&table, first, unit.map_or(0, |bytes| bytes / 2));
        let file = self.text(at(&object, offsets.file)?, read)?;
        Some(ScriptFrame {
            line: line.and_then(|line| u32::try_from(line).ok()),
            function: Some(self.text(at(&object, offsets.name)?, read)?),
            library: is_library(&file),
            file,
        })
    }

    /// A text: its length after the object's header, then its kind, then the letters (PEP 393).
    fn text(&self, object: u64, read: &Read<'_>) -> Option<String> {
        let header = read(object, 40);
        let length = usize::try_from(at(&header, 16)?).ok()?;
        let length = Some(length).filter(|length| *length <= LONGEST / 4)?;
        let state = *header.get(32)?;
        let (kind, compact, ascii) = (usize::from(state >> 2 & 7), state & 32, state & 64);
        if compact == 0 {
            return None;
        }
        let from = object + self.offsets.text[usize::from(ascii == 0)];
        let bytes = read(from, length * kind);
        if bytes.len() < length * kind {
            return None;
        }
        match kind {
            1 => Some(bytes.iter().map(|&byte| char::from(byte)).collect()),
            2 => {
                let units = bytes.chunks(2).map(|b| u16::from_le_bytes([b[0], b[1]]));
                String::from_utf16(&units.collect::<Vec<_>>()).ok()
            }
            4 => bytes
                .chunks(4)
                .map(|b| char::from_u32(u32::from_le_bytes([b[0], b[1], b[2], b[3]])))
                .collect(),
            _ => None,
        }
    }
}

/// Whether a file came with Python or was installed for it, so that it is not the user's own.
fn is_library(file: &str) -> bool {
    let parts = [
        "/lib/python3.",
        "/lib64/python3.",
        "/site-packages/",
        "/dist-packages/",
        "/usr/lib/python3/",
    ];
    file.starts_with("<frozen ") || parts.iter().any(|part| file.contains(part))
}

/// The line of an instruction, in units of two bytes; `None` if the table has none for it.
///
/// An entry begins with a byte whose highest bit is set, and no other of its bytes has that bit.
fn line(table: &[u8], first: i32, unit: u64) -> Option<i32> {
    let (mut line, mut end) = (first, 0);
    let mut rest = table;
    while let Some((&head, bytes)) = rest.split_first() {
        let length = bytes.iter().position(|byte| byte & 0x80 != 0);
        let (entry, after) = bytes.split_at(length.unwrap_or(bytes.len()));
        rest = after;
        end += u64::from(head & 7) + 1;
        let form = head >> 3 & 15;
        let moved = match form {
            10..=12 => i32::from(form) - 10,
            13 | 14 => signed(entry)?,
            _ => 0,
        };
        line = line.checked_add(moved)?;
        if unit < end {
            return (form != 15).then_some(line);
        }
    }
    None
}

/// A number of six bits a byte, the lowest first; its lowest bit is its sign.
fn signed(bytes: &[u8]) -> Option<i32> {
    let mut value: u32 = 0;
    for (place, byte) in bytes.iter().take(6).enumerate() {
        value |= u32::from(byte & 63).checked_shl(6 * place as u32)?;
        if byte & 64 == 0 {
            let size = (value >> 1) as i32;
            return Some(if value & 1 == 1 { -size } else { size });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `co_linetable` of
    ///
    ///     def f(x):
    ///         y = x
    ///
    ///
    ///         return y
    ///
    /// at line 1 in 3.11, and an entry that goes back by two lines, and one without a line.
    #[test]
    fn a_line_is_what_the_table_says() {
        let table = [0x80, 0, 0xd8, 8, 9, 0x80, 0x41, 0xe8, 6, 0xe8, 5, 0xf8];
        let at = |unit| line(&table, 1, unit);
        assert_eq!(at(0), Some(1));
        assert_eq!([1, 2].map(at), [Some(2), Some(2)]);
        assert_eq!([3, 4].map(at), [Some(5), Some(3)]);
        assert_eq!([5, 6].map(at), [None, None]);
    }

    #[test]
    fn numbers_have_six_bits_a_byte_and_a_sign() {
        assert_eq!(signed(&[6]), Some(3));
        assert_eq!(signed(&[7]), Some(-3));
        assert_eq!(signed(&[64 | 2, 1]), Some(33));
        assert_eq!(signed(&[64, 64]), None);
    }

    /// Memory that repeats some bytes for ever never brings it to an end of its own, and has no frames.
    #[test]
    fn what_does_not_look_as_it_should_has_no_frames() {
        for offsets in [V3_11, V3_12] {
            let interpreter = Python {
                runtime: 4096,
                offsets,
            };
            for byte in [0, 1, 0x7f, 0xff] {
                let read = |_, length| vec![byte; length];
                assert!(interpreter.frames(i32::MAX, &read).is_empty());
                assert!(interpreter.frame(4096, 8192, &read).is_none());
            }
            assert!(interpreter.frames(1, &|_, _| Vec::new()).is_empty());
        }
        assert_eq!(told(&[0; 640]), None);
    }

    #[test]
    fn what_was_installed_is_a_library() {
        let library = |file| is_library(file);
        assert!(library("/usr/lib/python3.11/os.py"));
        assert!(library("/app/.venv/lib/python3.12/site-packages/x.py"));
        assert!(library("<frozen runpy>"));
        assert!(!library("/home/me/python3/app.py") && !library("<string>"));
    }
}
