//! Reads the program's memory from outside of it.
//!
//! QEMU's own function for that, `qemu_plugin_read_memory_vaddr`, takes the lock of its mappings, which a thread holds
//! that translates and waits for ours. So it is called only without our lock, and elsewhere the kernel is asked.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::api::api;

/// The most that the kernel takes for a word of a command (`MAX_ARG_STRLEN`).
const LONGEST_STRING: usize = 32 * 4096;

static BASE: AtomicUsize = AtomicUsize::new(0);

/// Notes where QEMU has the program's byte at this address, which tells the place of all others.
pub fn lies(address: u64, host: *const u8) {
    if !host.is_null() {
        BASE.store(
            host.addr().wrapping_sub(address as usize),
            Ordering::Relaxed,
        );
    }
}

#[inline(always)]
pub fn host(address: u64) -> *const u8 {
    let base = BASE.load(Ordering::Relaxed);
    std::ptr::with_exposed_provenance(base.wrapping_add(address as usize))
}

pub fn read<const BYTES: usize>(address: u64) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    let part = |at: *mut libc::c_void| libc::iovec {
        iov_base: at,
        iov_len: BYTES,
    };
    let (to, from) = (
        part(bytes.as_mut_ptr().cast()),
        part(host(address).cast_mut().cast()),
    );
    // SAFETY: the kernel writes to our array; it knows whether the source can be read.
    let read =
        unsafe { libc::process_vm_readv(libc::getpid(), &raw const to, 1, &raw const from, 1, 0) };
    (read == BYTES as isize).then_some(bytes)
}

pub fn is_readable(address: u64) -> bool {
    read::<1>(address).is_some()
}

pub fn word(address: u64) -> Option<u64> {
    read(address).map(u64::from_le_bytes)
}

pub fn text(address: u64) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    while text.len() < LONGEST_STRING {
        let at = address + text.len() as u64;
        let bytes = word(at & !7)?.to_le_bytes();
        for &byte in &bytes[(at & 7) as usize..] {
            if byte == 0 {
                return Some(text);
            }
            text.push(byte);
        }
    }
    None
}

pub struct Area {
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    /// The file's path, if the name begins with a slash.
    pub path: String,
}

/// The program's mappings, as the kernel has them; QEMU loads the program itself without a system call of the
/// program's. Our lock is not held.
pub fn areas() -> Vec<Area> {
    let (mut areas, byte) = (Vec::new(), (api().new_bytes)());
    each_area(|area, permissions, _| {
        // A file that was cut has nothing there, which the kernel says and QEMU ends of. Mappings that the program
        // cannot see are the emulator's.
        let holds = permissions.starts_with('r') && is_readable(area.start);
        if holds && (api().read_memory)(area.start, byte, 1) {
            areas.push(area);
        }
    });
    areas
}

/// Calls `take` for each mapping that the program could see, with permissions and inode.
pub fn each_area(mut take: impl FnMut(Area, &str, &str)) {
    let base = BASE.load(Ordering::Relaxed) as u64;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut told = |line: &str| {
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        // The words are start and end, permissions, offset, device, inode, path.
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let permissions = words.next()?;
        let offset = hex(words.next()?)?;
        let inode = words.nth(1)?;
        let path = words.next().unwrap_or_default().trim_start();
        let area = Area {
            start: hex(start)?.checked_sub(base)?,
            end: hex(end)? - base,
            offset,
            path: path.trim_end_matches(" (deleted)").to_owned(),
        };
        take(area, permissions, inode);
        Some(())
    };
    for line in maps.lines() {
        told(line);
    }
}
