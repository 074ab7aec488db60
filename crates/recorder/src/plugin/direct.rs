//! Grants `MAP_SYNC`, as a file system of persistent memory (DAX) does: the program's stores are to be the medium's.
//!
//! Programs ask for `MAP_SHARED_VALIDATE | MAP_SYNC` first, and map as shared where that is refused. QEMU 7.2 first reserves the
//! addresses by an anonymous mapping of the same kind, which the kernel refuses; and QEMU keeps the addresses that it had looked
//! out, so that the second attempt goes elsewhere, whatever address the program asks for. Here QEMU's call of `mmap` is led through a
//! function that asks for a shared mapping where the program asked for a validated one. Where QEMU does not call `mmap`
//! through its table of imports nothing is touched.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use libc::{
    Elf64_Phdr, MAP_SHARED, MAP_SHARED_VALIDATE, MAP_TYPE, PROT_READ, PROT_WRITE, PT_DYNAMIC,
    dl_phdr_info, off_t,
};

/// Tags of the dynamic section (`elf.h`), and the kinds of relocation that hold a function's address.
const JMPREL: u64 = 23;
const PLTRELSZ: u64 = 2;
const RELA: u64 = 7;
const RELASZ: u64 = 8;
const SYMTAB: u64 = 6;
const STRTAB: u64 = 5;
const GLOB_DAT: u64 = 6;
const JUMP_SLOT: u64 = 7;

#[repr(C)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

thread_local! {
    /// The program's call, in which this thread is, asks for a validated mapping.
    static VALIDATED: Cell<bool> = const { Cell::new(false) };
}

/// The program calls `mmap` with these flags.
pub fn asked(flags: u64) {
    VALIDATED.set(flags & MAP_TYPE as u64 == MAP_SHARED_VALIDATE as u64);
}

/// What QEMU calls for `mmap`.
unsafe extern "C" fn map(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: off_t,
) -> *mut c_void {
    let flags = match VALIDATED.get() && flags & MAP_TYPE == MAP_SHARED_VALIDATE {
        true => flags & !MAP_TYPE | MAP_SHARED,
        false => flags,
    };
    // SAFETY: the caller's own call, of which only the kind is another.
    unsafe { libc::mmap64(address, length, protection, flags, file, offset) }
}

/// From now on the mappings of the program are granted.
pub fn is_granted() {
    // SAFETY: the callback looks at what the loader hands it, and at QEMU's own tables.
    unsafe { libc::dl_iterate_phdr(Some(object), std::ptr::null_mut()) };
}

/// Of the objects of this process the first is QEMU itself; the others are left alone.
unsafe extern "C" fn object(info: *mut dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
    // SAFETY: the loader's promise: headers of an object that is loaded, whose tables stay.
    unsafe {
        let base = (*info).dlpi_addr;
        let headers: &[Elf64_Phdr] =
            std::slice::from_raw_parts((*info).dlpi_phdr, usize::from((*info).dlpi_phnum));
        let Some(dynamic) = headers.iter().find(|h| h.p_type == PT_DYNAMIC) else {
            return 1;
        };
        let mut table = (base + dynamic.p_vaddr) as *const [u64; 2];
        let mut values = [0u64; 24];
        while (*table)[0] != 0 {
            if let Some(value) = values.get_mut((*table)[0] as usize) {
                *value = (*table)[1];
            }
            table = table.add(1);
        }
        // The loader has made addresses of them, or has left them as they are in the file.
        let size = |tag: u64| tag == PLTRELSZ || tag == RELASZ;
        let value = |tag: u64| match values[tag as usize] {
            offset if offset != 0 && offset < base && !size(tag) => base + offset,
            value => value,
        };
        for (at, bytes) in [
            (value(JMPREL), value(PLTRELSZ)),
            (value(RELA), value(RELASZ)),
        ] {
            let count = bytes as usize / size_of::<Relocation>();
            if at == 0 || value(SYMTAB) == 0 || value(STRTAB) == 0 {
                continue;
            }
            for relocation in std::slice::from_raw_parts(at as *const Relocation, count) {
                if matches!(relocation.info & 0xFFFF_FFFF, GLOB_DAT | JUMP_SLOT) {
                    let symbol = value(SYMTAB) + (relocation.info >> 32) * 24;
                    let name = value(STRTAB) + u64::from(*(symbol as *const u32));
                    if matches!(
                        CStr::from_ptr(name as *const c_char).to_bytes(),
                        b"mmap" | b"mmap64"
                    ) {
                        lead(base + relocation.offset);
                    }
                }
            }
        }
    }
    1
}

/// Has the entry of the table of imports at this address lead to [`map`].
unsafe fn lead(entry: u64) {
    let page = entry & !0xFFF;
    // SAFETY: by the caller's promise an entry of QEMU's table, which the loader has filled and may have made read-only.
    unsafe {
        if libc::mprotect(page as *mut c_void, 4096, PROT_READ | PROT_WRITE) == 0 {
            AtomicU64::from_ptr(entry as *mut u64).store(map as *const () as u64, Ordering::SeqCst);
        }
    }
}
