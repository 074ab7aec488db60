//! Maps files read-only.

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// Maps the file's bytes. Whoever changes the file meanwhile changes the bytes, and whoever shortens it ends the
/// program when the lost bytes are read.
///
/// # Errors
/// If the file cannot be mapped.
pub fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the bytes are only ever read as bytes, of which each value is valid. A file that another
    // program writes or cuts short is said to be the caller's affair, above and in `docs/merge/pages.md`.
    unsafe { Mmap::map(file) }
}
