//! The calls that led to a system call, by the unwinding tables of the program and its libraries (`.eh_frame`): they
//! are there without debug information and without frame pointers. Code in Go has tables of its own ([`super::go`]).

use std::path::{Path, PathBuf};

use gimli::{BaseAddresses, CfaRule, CieOrFde, EhFrame, FrameDescriptionEntry, NativeEndian};
use gimli::{Register, RegisterRule, UnwindContext, UnwindSection};
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, elf};
use rustc_hash::FxHashMap;
use sardonyx_crash_test::recording::ScriptFrame;

use super::go::GoTable;
use super::machine::{CALLS_PUSH, FRAME, INSTRUCTION, REGISTERS, Registers, STACK_AND_RETURN};
use super::process::{self, MappedCode};

/// At most this many calls are looked at: *assumed* to be enough to leave the libraries.
const DEEPEST: usize = 48;
/// A frame is smaller than this: *assumed*, as large as stacks are by default.
const STACK: u64 = 8 << 20;

type SectionBytes = gimli::EndianArcSlice<NativeEndian>;

struct UnwindTable {
    frames: EhFrame<SectionBytes>,
    bases: BaseAddresses,
    /// (offset in the file, length, address) of each loaded part
    parts: Vec<(u64, u64, u64)>,
    entries: Vec<FrameDescriptionEntry<SectionBytes>>,
    go: Option<GoTable>,
}

impl UnwindTable {
    fn read(path: &Path) -> Option<UnwindTable> {
        let bytes = std::fs::read(path).ok()?;
        let header = FileHeader64::<Endianness>::parse(&*bytes).ok()?;
        let endian = header.endian().ok()?;
        let parts = header.program_headers(endian, &*bytes).ok()?;
        let loaded = parts.iter().filter(|p| p.p_type(endian) == elf::PT_LOAD);
        let parts = loaded
            .map(|p| (p.p_offset(endian), p.p_filesz(endian), p.p_vaddr(endian)))
            .collect();
        let sections = header.sections(endian, &*bytes).ok()?;
        let go = GoTable::read(header, endian, &bytes);
        let frames = sections.section_by_name(endian, b".eh_frame");
        let text = sections.section_by_name(endian, b".text");
        let text = text.map_or(0, |(_, section)| section.sh_addr(endian));
        let bases = BaseAddresses::default()
            .set_eh_frame(frames.map_or(0, |(_, section)| section.sh_addr(endian)))
            .set_text(text);
        let data = match frames {
            Some((_, section)) => section.data(endian, &*bytes).ok()?,
            None if go.is_some() => &[],
            None => return None,
        };
        let frames = EhFrame::from(SectionBytes::new(data.into(), NativeEndian));
        let entries = entries(&frames, &bases);
        Some(UnwindTable {
            frames,
            bases,
            parts,
            entries,
            go,
        })
    }

    /// The registers of the caller of a frame, given the address in the file.
    fn caller(
        &self,
        thread: i32,
        address: u64,
        registers: &[u64; REGISTERS],
    ) -> Option<[u64; REGISTERS]> {
        if let Some(moved) = self.go.as_ref().and_then(|go| go.moved(address)) {
            return go_caller(thread, moved, registers);
        }
        let after =
            |entry: &FrameDescriptionEntry<SectionBytes>| entry.initial_address() <= address;
        let at = self.entries.partition_point(after);
        let entry = self.entries.get(at.checked_sub(1)?)?;
        let mut context = UnwindContext::new();
        let row = entry
            .unwind_info_for_address(&self.frames, &self.bases, &mut context, address)
            .ok()?;
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else {
            return None;
        };
        let frame = registers
            .get(register.0 as usize)?
            .wrapping_add_signed(*offset);
        let mut above = *registers;
        for (number, value) in above.iter_mut().enumerate() {
            match row.register(Register(number as u16)) {
                Some(RegisterRule::Offset(offset)) => {
                    *value = process::word(thread, frame.wrapping_add_signed(offset))?;
                }
                Some(RegisterRule::ValOffset(offset)) => *value = frame.wrapping_add_signed(offset),
                Some(RegisterRule::Register(other)) => *value = *registers.get(other.0 as usize)?,
                Some(RegisterRule::Undefined) if number == STACK_AND_RETURN[1] => return None,
                _ => {}
            }
        }
        let [stack, back] = STACK_AND_RETURN;
        above[stack] = frame;
        above[INSTRUCTION] = above[back];
        Some(above)
    }
}

/// The registers of the caller of a function in Go that has moved the stack pointer by so many bytes.
fn go_caller(thread: i32, moved: u64, registers: &[u64; REGISTERS]) -> Option<[u64; REGISTERS]> {
    let [stack, back] = STACK_AND_RETURN;
    let mut above = *registers;
    above[stack] = registers[stack].wrapping_add(moved);
    if CALLS_PUSH {
        above[back] = process::word(thread, above[stack])?;
        above[stack] = above[stack].wrapping_add(8);
    } else if moved > 0 {
        above[back] = process::word(thread, registers[stack])?;
    }
    above[INSTRUCTION] = above[back];
    Some(above)
}

/// The registers of the caller of a function that is at its system call and has no table, as the one that makes a process
/// in glibc: the return address is where a call has put it.
fn leaf_caller(
    thread: i32,
    registers: &[u64; REGISTERS],
    code: &[MappedCode],
) -> Option<[u64; REGISTERS]> {
    let above = go_caller(thread, 0, registers)?;
    let back = above[INSTRUCTION];
    let known = code.iter().any(|c| (c.start..c.end).contains(&back));
    known.then_some(above)
}

/// The registers of the caller of code without tables that keeps a frame pointer, as code that was made while the program
/// ran: only if it leads up the stack and into code.
fn frame_caller(
    thread: i32,
    registers: &[u64; REGISTERS],
    code: &[MappedCode],
) -> Option<[u64; REGISTERS]> {
    let [stack, back] = STACK_AND_RETURN;
    let frame = registers[FRAME];
    let within = frame >= registers[stack] && frame - registers[stack] < STACK;
    let mut above = *registers;
    above[FRAME] = process::word(thread, Some(frame).filter(|_| within)?)?;
    above[back] = process::word(thread, frame + 8)?;
    above[stack] = frame + 16;
    above[INSTRUCTION] = above[back];
    let known = code.iter().any(|c| (c.start..c.end).contains(&above[back]));
    known.then_some(above)
}

fn entries(
    frames: &EhFrame<SectionBytes>,
    bases: &BaseAddresses,
) -> Vec<FrameDescriptionEntry<SectionBytes>> {
    let mut found = Vec::new();
    let mut all = frames.entries(bases);
    while let Ok(Some(entry)) = all.next() {
        if let CieOrFde::Fde(partial) = entry
            && let Ok(entry) = partial.parse(EhFrame::cie_from_offset)
        {
            found.push(entry);
        }
    }
    found.sort_unstable_by_key(FrameDescriptionEntry::initial_address);
    found
}

/// A walk along the calls that led to a system call.
pub(super) struct Walked {
    /// The addresses of the instructions, innermost first.
    pub(super) calls: Vec<u64>,
    /// The frame pointers of those in code that the program has made.
    pub(super) made: Vec<u64>,
    /// Whether it ended at an address where no code is known.
    pub(super) left: bool,
}

#[derive(Default)]
pub(super) struct Stacks {
    tables: FxHashMap<PathBuf, Option<UnwindTable>>,
}

impl Stacks {
    /// The place of an instruction at an offset in a file that has no lines but those of Go's own table.
    pub(super) fn go_place(&self, path: &Path, offset: u64) -> Option<ScriptFrame> {
        let table = self.tables.get(path)?.as_ref()?;
        let go = table.go.as_ref().filter(|go| go.is_alone())?;
        let inside = |p: &&(u64, u64, u64)| (p.0..p.0 + p.1).contains(&offset);
        let (from, _, address) = table.parts.iter().find(inside)?;
        go.place(offset - from + address)
    }

    /// The addresses of the instructions of a system call and of the calls that led to it, innermost first.
    pub(super) fn walk(
        &mut self,
        thread: i32,
        registers: &Registers,
        code: &[MappedCode],
    ) -> Walked {
        let mut registers = registers.dwarf();
        let mut found = Vec::new();
        let mut made = Vec::new();
        let mut left = false;
        while found.len() < DEEPEST {
            // A return address is after its call, and may be after the end of its function.
            let at = registers[INSTRUCTION].wrapping_sub(1);
            let Some(part) = code.iter().find(|c| (c.start..c.end).contains(&at)) else {
                left = true;
                break;
            };
            found.push(at);
            made.extend((!part.is_of_file()).then_some(registers[FRAME]));
            let table = self.tables.entry(part.path.clone());
            let table = table.or_insert_with(|| match part.is_of_file() {
                true => UnwindTable::read(&part.path),
                false => None,
            });
            let above = table.as_ref().and_then(|table| {
                let offset = at - part.start + part.offset;
                let inside = |p: &&(u64, u64, u64)| (p.0..p.0 + p.1).contains(&offset);
                let (from, _, address) = table.parts.iter().find(inside)?;
                table.caller(thread, offset - from + address, &registers)
            });
            let above = above.or_else(|| match found.len() {
                1 => leaf_caller(thread, &registers, code),
                _ => frame_caller(thread, &registers, code),
            });
            match above {
                Some(above) if above[INSTRUCTION] != 0 => registers = above,
                _ => break,
            }
        }
        Walked {
            calls: found,
            made,
            left,
        }
    }
}
