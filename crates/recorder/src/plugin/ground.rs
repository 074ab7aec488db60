//! A mapped file as it was before the program could write to it: copied while the program waits in `mmap`.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::maps::ground_name;

/// Bytes are compared with zeros in pieces of this size; a piece of zeros is a hole in the copy.
const BLOCK: usize = 64 << 10;

/// Copies the file behind the descriptor, once, if it may be written and no other process has copied it.
///
/// # Errors
/// It cannot be read, or there is no room.
pub fn keep(
    copied: &mut HashSet<(u64, u64)>,
    descriptor: i32,
    folder: &str,
    file: (u64, u64),
) -> io::Result<()> {
    if !written_through(descriptor) || !copied.insert(file) {
        return Ok(());
    }
    let to = Path::new(folder).join(ground_name(file));
    match to.exists() {
        true => Ok(()),
        false => copy(descriptor, &to),
    }
}

fn written_through(descriptor: i32) -> bool {
    // SAFETY: a call without memory.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    flags >= 0 && flags & libc::O_ACCMODE == libc::O_RDWR
}

fn copy(descriptor: i32, to: &Path) -> io::Result<()> {
    // The file is opened again, so that the program's position stays as it is.
    let from = File::open(format!("/proc/self/fd/{descriptor}"))?;
    let length = from.metadata()?.len();
    let to = File::create(to)?;
    to.set_len(length)?;
    let mut block = vec![0; BLOCK];
    let mut at = 0;
    while at < length {
        let read = from.read_at(&mut block, at)?;
        if read == 0 {
            break;
        }
        if block[..read].iter().any(|&byte| byte != 0) {
            to.write_all_at(&block[..read], at)?;
        }
        at += read as u64;
    }
    Ok(())
}
