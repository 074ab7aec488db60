//! Lets QEMU 7.2 chain blocks of different pages.
//!
//! A jump to a block that was translated already goes there directly only within a page; between pages QEMU looks the block up
//! each time, which was a tenth to a fifth of a recording's time. That is needed where pages of the guest move under
//! its code, which is whole machines. A program's change by system calls (or stores), and `page_set_flags` and
//! `page_unprotect` drop the blocks of pages that are unmapped, replaced, made writable or not executable any more,
//! with all direct jumps to them. QEMU chained all blocks of user programs until 6.1. Here the one constant in
//! `translator_use_goto_tb` (accel/tcg/translator.c) that says how near the other block must be becomes the largest there is;
//! where the function's code is not exactly 7.2's, nothing is touched and a recording is slower.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

/// The function as Debian 12's compiler made it. It compares the exclusive or of both addresses with a page's last byte.
const CODE: [u8; 28] = [
    0x48, 0x8b, 0x07, // mov (%rdi),%rax
    0x8b, 0x50, 0x14, // mov 0x14(%rax),%edx
    0x31, 0xc0, // xor %eax,%eax
    0x80, 0xe6, 0x02, // and $2,%dh
    0x75, 0x0e, // jne to the ret
    0x48, 0x33, 0x77, 0x08, // xor 8(%rdi),%rsi
    0x48, 0x81, 0xfe, 0xff, 0x0f, 0x00, 0x00, // cmp $0xfff,%rsi
    0x0f, 0x96, 0xc0, // setbe %al
    0xc3, // ret
];
/// Where the constant is in it; the processor extends its sign.
const CONSTANT: usize = 20;

/// Whether blocks are chained between pages from now on.
pub fn between_pages() -> bool {
    // SAFETY: a look-up by name in the objects of this process.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"translator_use_goto_tb".as_ptr()) };
    if function.is_null() {
        return false;
    }
    // SAFETY: a function's code is mapped readable, and QEMU has more code after this one.
    if unsafe { *function.cast::<[u8; CODE.len()]>() } != CODE {
        return false;
    }
    // SAFETY: sysconf has no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let constant = function.addr() + CONSTANT;
    let start = (function as *mut u8)
        .with_addr(constant / page * page)
        .cast::<c_void>();
    if !constant.is_multiple_of(4) {
        return false;
    }
    // SAFETY: the word lies in one page of QEMU's code, which the loader mapped private. It is written in one piece, and
    // nobody runs it meanwhile, as QEMU has started no guest yet.
    unsafe {
        if libc::mprotect(
            start,
            page,
            libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
        ) != 0
        {
            return false;
        }
        let word = function.cast::<u8>().add(CONSTANT).cast::<u32>();
        AtomicU32::from_ptr(word).store(u32::MAX, Ordering::SeqCst);
        libc::mprotect(start, page, libc::PROT_READ | libc::PROT_EXEC) == 0
    }
}
