//! The guest's general registers: one by one through the interface that QEMU has for debuggers, and where QEMU keeps them.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

use super::api::{Api, GByteArray};
use crate::insn::Segment;

/// General registers.
pub const GENERAL: usize = 16;
/// Bytes of QEMU's processor in which its registers are looked for; 7.2 has them at 832.
const WITHIN: usize = 4096;

/// A thread's registers.
pub struct Registers {
    api: Api,
    cpu: *mut c_void,
}

thread_local!(static BYTES: std::cell::Cell<*mut GByteArray> = const { std::cell::Cell::new(null_mut()) });

/// GDB's order is rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8..r15 (gdb/features/i386/64bit-core.xml).
fn of_debugger(register: u8) -> c_int {
    const GDB: [c_int; 8] = [0, 2, 3, 1, 7, 6, 4, 5];
    let known = GDB.get(usize::from(register)).copied();
    known.unwrap_or(c_int::from(register))
}

impl Registers {
    pub fn of(api: Api, vcpu: c_uint) -> Registers {
        let cpu = (api.cpu)(vcpu as c_int);
        Registers { api, cpu }
    }

    fn read(&self, number: c_int) -> u64 {
        BYTES.with(|bytes| {
            if bytes.get().is_null() {
                bytes.set((self.api.new_bytes)());
            }
            (self.api.set_length)(bytes.get(), 0);
            (self.api.read_register)(self.cpu, bytes.get(), number);
            // SAFETY: the array is this thread's; QEMU has appended a register of at least 8 bytes if the length says so.
            unsafe {
                match (*bytes.get()).len {
                    8.. => (*bytes.get()).data.cast::<u64>().read_unaligned(),
                    _ => 0,
                }
            }
        })
    }

    fn write(&self, number: c_int, value: u64) {
        let mut bytes = value.to_ne_bytes();
        (self.api.write_register)(self.cpu, bytes.as_mut_ptr(), number);
    }

    /// A general register, by its number in instructions.
    pub fn general(&self, register: u8) -> u64 {
        self.read(of_debugger(register))
    }

    pub fn segment(&self, segment: Segment) -> u64 {
        // gdb/features/i386/64bit-segments.xml follows the 16 registers, rip, eflags and six selectors.
        self.read(match segment {
            Segment::Fs => 24,
            Segment::Gs => 25,
        })
    }

    /// Where QEMU keeps the sixteen general registers, in the order of their numbers, between blocks. Each is written to and
    /// looked for, and is afterwards as it was; nothing if they are not where one array would be. For a thread that
    /// runs no block now.
    pub fn place(&self) -> Option<*const u64> {
        if self.cpu.is_null() {
            return None;
        }
        let cpu = self.cpu.cast::<u64>().cast_const();
        let mark = |register: u8| 0x5A4D_0C8E_72B1_9300 | u64::from(register);
        let old: [u64; GENERAL] = std::array::from_fn(|r| self.general(r as u8));
        for register in 0..GENERAL as u8 {
            self.write(of_debugger(register), mark(register));
        }
        let words = WITHIN / 8;
        // SAFETY: QEMU's processor is larger than that.
        let marked = |at: usize| unsafe { cpu.add(at).read_volatile() };
        let mut found = (0..words - GENERAL)
            .filter(|at| (0..GENERAL).all(|r| marked(at + r) == mark(r as u8)));
        let at = (found.next(), found.next());
        for (register, value) in old.into_iter().enumerate() {
            self.write(of_debugger(register as u8), value);
        }
        let (Some(at), None) = at else { return None };
        // SAFETY: as above.
        let place = unsafe { cpu.add(at) };
        (0..GENERAL).all(|r| marked(at + r) == old[r]).then_some(place)
    }
}
