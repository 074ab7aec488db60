//! Makes QEMU 7.2 store the guest's registers before it calls back for an instruction.
//!
//! QEMU keeps guest registers in the host's while a block runs, and stores them before what may fault and before calls
//! of helpers that read them. Version 1 of the interface takes `QEMU_PLUGIN_CB_R_REGS` but ignores it: its helper
//! `plugin_vcpu_udata_cb` is declared with `TCG_CALL_NO_RWG` (accel/tcg/plugin-helpers.h), so a register that changed
//! since the last load or store would be seen as it was. Later versions declare a second helper with
//! `TCG_CALL_NO_WG`. Here that one word is changed in QEMU's table of helpers, which it reads for each call that it
//! generates. The table is not exported, so the entry is found by its name; where it does not look as in 7.2 nothing is
//! touched and flushes are recorded with a note.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{PROT_READ, PROT_WRITE};

/// The helper that calls back before blocks and instructions.
const NAME: &[u8] = b"\0plugin_vcpu_udata_cb\0";
/// `TCG_CALL_NO_READ_GLOBALS`, which `TCG_CALL_NO_RWG` is in 7.2 (include/tcg/tcg.h).
const NO_READ_GLOBALS: u32 = 1;
/// `TCG_CALL_NO_WRITE_GLOBALS`: registers are stored before, and need not be loaded after.
const NO_WRITE_GLOBALS: u32 = 2;
/// `PF_X`
const EXECUTABLE: u32 = 1;
/// `PF_W`
const WRITABLE: u32 = 2;

/// QEMU's own segments in memory.
#[derive(Default)]
struct Segments {
    seen: bool,
    fixed: Vec<Range<usize>>,
    code: Vec<Range<usize>>,
    data: Vec<Range<usize>>,
    /// Made read-only after relocation.
    sealed: Option<Range<usize>>,
}

unsafe extern "C" fn segments_of(
    info: *mut libc::dl_phdr_info,
    _: usize,
    kept: *mut c_void,
) -> c_int {
    // SAFETY: `store_registers` hands over its `Segments`, and the loader a description of a loaded object.
    let (kept, info) = unsafe { (&mut *kept.cast::<Segments>(), &*info) };
    if std::mem::replace(&mut kept.seen, true) {
        return 1;
    }
    // SAFETY: as the loader says.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    for header in headers {
        let start = (info.dlpi_addr + header.p_vaddr) as usize;
        let range = start..start + header.p_filesz as usize;
        match header.p_type {
            libc::PT_GNU_RELRO => kept.sealed = Some(start..start + header.p_memsz as usize),
            libc::PT_LOAD if header.p_flags & EXECUTABLE != 0 => kept.code.push(range),
            libc::PT_LOAD if header.p_flags & WRITABLE != 0 => kept.data.push(range),
            libc::PT_LOAD => kept.fixed.push(range),
            _ => {}
        }
    }
    1 // the first object is the executable
}

/// Where the flags of the helper are, if there is exactly one entry that looks as it should.
fn flags(segments: &Segments) -> Option<*mut u32> {
    let name = segments.fixed.iter().find_map(|range| {
        // SAFETY: the loader mapped this readable, and it never changes.
        let bytes = unsafe { std::slice::from_raw_parts(range.start as *const u8, range.len()) };
        let at = bytes.windows(NAME.len()).position(|w| w == NAME)?;
        Some(range.start + at + 1)
    })?;
    let mut found = None;
    for range in &segments.data {
        let words = range.start.next_multiple_of(8)..range.end.saturating_sub(16);
        for at in words.step_by(8) {
            // SAFETY: within a mapped segment; other threads do not exist yet.
            let is_name = unsafe { *(at as *const usize) } == name;
            // SAFETY: as above; the entry begins with the function, before its name.
            if is_name && at - 8 >= range.start {
                let function = unsafe { *((at - 8) as *const usize) };
                let flags = (at + 8) as *mut u32;
                // SAFETY: as above.
                let expected = unsafe { *flags } == NO_READ_GLOBALS
                    && segments.code.iter().any(|code| code.contains(&function));
                if !expected || found.replace(flags).is_some() {
                    return None;
                }
            }
        }
    }
    found
}

/// Has QEMU store the registers before each such callback of code that it translates from now on; false if this QEMU
/// is not as expected.
pub fn store_registers() -> bool {
    let mut segments = Segments::default();
    // SAFETY: the callback fits, and the pointer lives through the call.
    unsafe { libc::dl_iterate_phdr(Some(segments_of), (&raw mut segments).cast()) };
    let Some(flags) = flags(&segments) else {
        return false;
    };
    let sealed = segments.sealed;
    let sealed = sealed.is_some_and(|sealed| sealed.contains(&(flags as usize)));
    let during = PROT_READ | PROT_WRITE;
    let after = if sealed { PROT_READ } else { during };
    // SAFETY: the word lies in QEMU's data, which the loader mapped private, and holds flags.
    unsafe { patch(flags, NO_WRITE_GLOBALS, during, after) }
}

/// Writes a word of QEMU's own, whose page is `during` accessible meanwhile and `after` from then on; false if it cannot be.
///
/// # Safety
/// The aligned word is QEMU's and may have that value. QEMU has started no guest yet, so nobody looks at it meanwhile.
pub unsafe fn patch(word: *mut u32, value: u32, during: c_int, after: c_int) -> bool {
    // SAFETY: sysconf has no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let start = word.map_addr(|at| at / page * page).cast::<c_void>();
    // SAFETY: by the caller's promise. It is written in one piece.
    unsafe {
        if libc::mprotect(start, page, during) != 0 {
            return false;
        }
        AtomicU32::from_ptr(word).store(value, Ordering::SeqCst);
        libc::mprotect(start, page, after) == 0
    }
}
