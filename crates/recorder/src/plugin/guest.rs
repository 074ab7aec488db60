//! What the program has in memory, read from outside of it.

use super::api::{Api, PAGE_READ};

/// The most that the kernel takes for a word of a command (`MAX_ARG_STRLEN`).
const LONGEST_STRING: usize = 32 * 4096;

/// A word of the guest's.
pub fn word(api: &Api, address: u64) -> Option<u64> {
    let readable = |at: u64| (api.page_flags)(at) & PAGE_READ != 0;
    (readable(address) && readable(address + 7)).then(|| {
        // SAFETY: both ends lie in pages that the guest has mapped readable.
        unsafe {
            let base = *api.guest_base;
            (base.wrapping_add(address as usize) as *const u64).read_unaligned()
        }
    })
}

/// A C string of the guest's.
pub fn text(api: &Api, address: u64) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    while text.len() < LONGEST_STRING {
        let at = (address + text.len() as u64) & !7;
        let bytes = word(api, at)?.to_le_bytes();
        for &byte in &bytes[((address + text.len() as u64) & 7) as usize..] {
            if byte == 0 {
                return Some(text);
            }
            text.push(byte);
        }
    }
    None
}

/// A part of the program's memory.
pub struct Area {
    pub start: u64,
    pub end: u64,
    /// Where it is in its file.
    pub offset: u64,
    /// Its file, if it begins with a slash.
    pub path: String,
}

/// What the program has mapped and can read, as the kernel has it; QEMU loads the program itself without a system call of
/// the program's.
pub fn areas(api: &Api) -> Vec<Area> {
    let mut areas = Vec::new();
    each_area(api, |area, _, _| {
        // What the program does not see is the emulator's.
        if (api.page_flags)(area.start) & PAGE_READ != 0 {
            areas.push(area);
        }
    });
    areas
}

/// All that is mapped where the program could see it, with permissions and inode.
pub fn each_area(api: &Api, mut take: impl FnMut(Area, &str, &str)) {
    // SAFETY: QEMU's variable, set before any code of the guest ran.
    let base = unsafe { *api.guest_base } as u64;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut told = |line: &str| {
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        // Start and end, permissions, offset, device, inode, path.
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
