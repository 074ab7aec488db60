//! The registers of a traced thread that has stopped, for this machine's processor, and the filter of the system calls
//! that stop it.
#![allow(unsafe_code)]

use std::io;

/// The number of registers by their DWARF numbers, the last of them the one that the frame returns to: enough for
/// either processor.
pub(super) const REGISTERS: usize = 33;

#[derive(Clone, Debug)]
pub(super) struct Registers {
    raw: libc::user_regs_struct,
}

fn regset(request: libc::c_uint, thread: i32, raw: &mut libc::user_regs_struct) -> io::Result<()> {
    let mut place = libc::iovec {
        iov_base: (&raw mut *raw).cast(),
        iov_len: size_of_val(raw),
    };
    // SAFETY: the thread is traced by us and stopped, and the place is as large as it says.
    let done = unsafe { libc::ptrace(request, thread, libc::NT_PRSTATUS, &raw mut place) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Registers {
    pub(super) fn read(thread: i32) -> io::Result<Registers> {
        // SAFETY: zeros are valid registers.
        let mut raw = unsafe { std::mem::zeroed() };
        regset(libc::PTRACE_GETREGSET, thread, &mut raw)?;
        Ok(Registers { raw })
    }
}

#[cfg(target_arch = "x86_64")]
impl Registers {
    pub(super) fn number(&self) -> i64 {
        self.raw.orig_rax as i64
    }

    pub(super) fn arguments(&self) -> [u64; 6] {
        let r = &self.raw;
        [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9]
    }

    /// The answer, at the end of a call: a negative number of an error if it failed.
    pub(super) fn answer(&self) -> i64 {
        self.raw.rax as i64
    }

    pub(super) fn dwarf(&self) -> [u64; REGISTERS] {
        let r = &self.raw;
        let mut all = [0; REGISTERS];
        let known = [
            r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11,
            r.r12, r.r13, r.r14, r.r15, r.rip,
        ];
        all[..known.len()].copy_from_slice(&known);
        all
    }

    pub(super) fn skip_call(&mut self, thread: i32) -> io::Result<()> {
        self.raw.orig_rax = u64::MAX;
        regset(libc::PTRACE_SETREGSET, thread, &mut self.raw)
    }

    pub(super) fn set_answer(&mut self, thread: i32, answer: i64) -> io::Result<()> {
        self.raw.rax = answer as u64;
        regset(libc::PTRACE_SETREGSET, thread, &mut self.raw)
    }
}

#[cfg(target_arch = "aarch64")]
impl Registers {
    pub(super) fn number(&self) -> i64 {
        self.raw.regs[8] as i64
    }

    /// Valid at the beginning of a call; the answer takes the place of the first argument.
    pub(super) fn arguments(&self) -> [u64; 6] {
        self.raw.regs[..6].try_into().expect("six")
    }

    pub(super) fn answer(&self) -> i64 {
        self.raw.regs[0] as i64
    }

    pub(super) fn dwarf(&self) -> [u64; REGISTERS] {
        let mut all = [0; REGISTERS];
        all[..31].copy_from_slice(&self.raw.regs);
        all[31] = self.raw.sp;
        all[32] = self.raw.pc;
        all
    }

    pub(super) fn skip_call(&mut self, thread: i32) -> io::Result<()> {
        const NT_ARM_SYSTEM_CALL: libc::c_int = 0x404;
        let mut number: libc::c_int = -1;
        let mut place = libc::iovec {
            iov_base: (&raw mut number).cast(),
            iov_len: size_of_val(&number),
        };
        // SAFETY: the thread is traced by us and stopped, and the place is as large as it says.
        let done = unsafe {
            libc::ptrace(
                libc::PTRACE_SETREGSET,
                thread,
                NT_ARM_SYSTEM_CALL,
                &raw mut place,
            )
        };
        match done {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub(super) fn set_answer(&mut self, thread: i32, answer: i64) -> io::Result<()> {
        self.raw.regs[0] = answer as u64;
        regset(libc::PTRACE_SETREGSET, thread, &mut self.raw)
    }
}

/// The DWARF numbers of the stack pointer and of the return address.
#[cfg(target_arch = "x86_64")]
pub(super) const STACK_AND_RETURN: [usize; 2] = [7, 16];
/// The DWARF numbers of the stack pointer and of the link register, which holds the return address until a frame saves
/// it.
#[cfg(target_arch = "aarch64")]
pub(super) const STACK_AND_RETURN: [usize; 2] = [31, 30];
/// The DWARF number of the frame pointer, where it is kept: its word has the caller's, and the next word the return address.
#[cfg(target_arch = "x86_64")]
pub(super) const FRAME: usize = 6;
#[cfg(target_arch = "aarch64")]
pub(super) const FRAME: usize = 29;
/// Whether a call puts the return address on the stack.
pub(super) const CALLS_PUSH: bool = cfg!(target_arch = "x86_64");
#[cfg(target_arch = "x86_64")]
pub(super) const INSTRUCTION: usize = 16;
#[cfg(target_arch = "aarch64")]
pub(super) const INSTRUCTION: usize = 32;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// The value in a stop's message if the call is of another instruction set than ours, as of 32-bit programs.
pub(super) const FOREIGN: u16 = 1;

/// Builds a filter by which some system calls stop the thread for its tracer, some do not exist, and all others run at
/// full speed.
pub(super) fn filter(calls: &[i64], missing: &[i64]) -> Vec<libc::sock_filter> {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    const ALLOW: u32 = 0x7fff_0000;
    const NO_SUCH_CALL: u32 = 0x0005_0000 | libc::ENOSYS as u32;
    let word = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let mut words = vec![
        word(LOAD, 4, 0, 0), // the instruction set
        word(EQUAL, ARCHITECTURE, 1, 0),
        word(RETURN, libc::SECCOMP_RET_TRACE | u32::from(FOREIGN), 0, 0),
        word(LOAD, 0, 0, 0), // the call's number
    ];
    let stopping = calls.iter().map(|call| (call, libc::SECCOMP_RET_TRACE));
    for (&call, then) in stopping.chain(missing.iter().map(|call| (call, NO_SUCH_CALL))) {
        words.push(word(EQUAL, call as u32, 0, 1));
        words.push(word(RETURN, then, 0, 0));
    }
    words.push(word(RETURN, ALLOW, 0, 0));
    words
}

/// Asks to be traced under a filter. A child calls it before it runs its program, so it allocates nothing.
///
/// # Errors
/// The system allows neither.
pub(super) fn be_traced(filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the filter lives through the calls, and the kernel copies it.
    let done = unsafe {
        libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ) == 0
    };
    match done {
        true => Ok(()),
        false => Err(io::Error::last_os_error()),
    }
}
