//! Lets QEMU 7.2 chain blocks of different pages.
//!
//! A jump to a block that was translated already goes there directly only within a page; between pages QEMU looks the block up
//! each time, which was a tenth to a fifth of a recording's time. That is needed where pages of the guest move under
//! its code, which is whole machines. A program's change by system calls (or stores), and `page_set_flags` and
//! `page_unprotect` drop the blocks of pages that are unmapped, replaced, made writable or not executable any more,
//! with all direct jumps to them. QEMU chained all blocks of user programs until 6.1. Here the one constant in
//! `translator_use_goto_tb` (accel/tcg/translator.c) that says how near the other block must be becomes the largest there is;
//! where the function's code is not exactly 7.2's, nothing is touched and a recording is slower.

use libc::{PROT_EXEC, PROT_READ, PROT_WRITE};

use super::sync::patch;

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
    // SAFETY: the constant is within the function, which is longer.
    let constant = unsafe { function.cast::<u8>().add(CONSTANT).cast::<u32>() };
    let (during, after) = (PROT_READ | PROT_WRITE | PROT_EXEC, PROT_READ | PROT_EXEC);
    // SAFETY: the word lies in QEMU's code, which the loader mapped private, and any number may stand there.
    constant.is_aligned() && unsafe { patch(constant, u32::MAX, during, after) }
}
