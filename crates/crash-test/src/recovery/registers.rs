//! The system call at which a traced process has stopped, by the registers of this machine's processor.

pub struct Call {
    pub number: libc::c_long,
    /// The first three arguments of a call. On 64-bit ARM its answer takes the place of the first.
    pub arguments: [u64; 3],
    pub answer: u64,
}

/// The call at which the process has stopped; `None`, with the system's error, if it may not be read.
pub fn call(process: libc::pid_t) -> Option<Call> {
    // SAFETY: zeros are valid registers, and the call fills as many bytes of them as it is told, or fails.
    let registers = unsafe {
        let mut registers: libc::user_regs_struct = std::mem::zeroed();
        let mut place = libc::iovec {
            iov_base: (&raw mut registers).cast(),
            iov_len: size_of_val(&registers),
        };
        let got = libc::ptrace(
            libc::PTRACE_GETREGSET,
            process,
            libc::NT_PRSTATUS,
            &raw mut place,
        );
        (got == 0).then_some(registers)
    }?;
    #[cfg(target_arch = "x86_64")]
    let call = Call {
        number: registers.orig_rax as libc::c_long,
        arguments: [registers.rdi, registers.rsi, registers.rdx],
        answer: registers.rax,
    };
    #[cfg(target_arch = "aarch64")]
    let call = Call {
        number: registers.regs[8] as libc::c_long,
        arguments: [registers.regs[0], registers.regs[1], registers.regs[2]],
        answer: registers.regs[0],
    };
    Some(call)
}

/// `PTRACE_SYSCALL_INFO_ENTRY`
const ENTRY: u8 = 1;

/// The call that a stopped process begins, with all its arguments; `None` if it has stopped elsewhere.
pub fn begun(process: libc::pid_t) -> Option<(libc::c_long, [u64; 6])> {
    // `struct ptrace_syscall_info`: what kind of stop it is, two addresses, the number, and the arguments.
    let mut info = [0_u64; 11];
    // SAFETY: the kernel fills at most as many bytes as it is told that there are.
    let got = unsafe {
        libc::ptrace(
            libc::PTRACE_GET_SYSCALL_INFO,
            process,
            size_of_val(&info),
            info.as_mut_ptr(),
        )
    };
    let kind = info[0].to_ne_bytes()[0];
    let arguments = info[4..10].try_into().ok()?;
    (got > 0 && kind == ENTRY).then_some((info[3] as libc::c_long, arguments))
}
