//! Where pages come from: raw dumps, ELF cores (of processes, and of QEMU's `dump-guest-memory`), live
//! processes, a seeded generator. A machine is a row of snapshots; the k-th is what pass k sees.

mod contents;
mod elf;
mod hash;
mod memory;
pub mod mixes;
mod process;
mod raw;
mod space;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::{Bytes, PAGE_BYTES};
pub use contents::{Change, Held, Images, View};
pub use hash::checksum;
pub use memory::Memory;
pub use process::{Process, ProcessPages};
pub use space::{MachineSpace, Region};

/// Pages of one snapshot that follow each other in both the machine and the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Number of the first page in the machine: its address by the page size.
    pub first: u64,
    /// How many.
    pub pages: u32,
    /// Where the first begins in the data.
    pub offset: u64,
}

/// A stretch of a machine that has a name, such as the file that is mapped there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Number of the first page.
    pub first: u64,
    /// Number after the last.
    pub end: u64,
    /// What lies there.
    pub name: String,
}

/// A snapshot's bytes.
#[derive(Debug)]
pub enum Data {
    /// A mapped file.
    Mapped(memmap2::Mmap),
    /// Bytes read or made.
    Memory(Vec<u8>),
}

impl Data {
    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Data::Mapped(map) => map,
            Data::Memory(bytes) => bytes,
        }
    }

    /// The page that begins at `offset`.
    pub fn page(&self, offset: u64) -> &Bytes {
        let start = offset as usize;
        let bytes = &self.bytes()[start..start + PAGE_BYTES];
        bytes.try_into().expect("a page's bytes")
    }
}

/// A machine's pages at one time.
#[derive(Debug)]
pub struct Snapshot {
    /// Their bytes.
    pub data: Data,
    /// Where they are, by page number, without overlaps.
    pub extents: Vec<Extent>,
    /// What lies where, as far as it is known.
    pub names: Vec<Named>,
    /// Pages that the image names but does not hold, such as those of mapped files in a core.
    pub missing: u64,
}

impl Snapshot {
    /// Of a machine that has no pages.
    pub fn empty() -> Snapshot {
        Snapshot {
            data: Data::Memory(Vec::new()),
            extents: Vec::new(),
            names: Vec::new(),
            missing: 0,
        }
    }
}

/// A machine over time.
#[derive(Debug)]
pub struct Machine {
    /// Its name: the path or the process.
    pub name: String,
    /// In the order of passes; at least one.
    pub snapshots: Vec<Snapshot>,
    /// What is known of a live process's other pages.
    pub process: Option<ProcessPages>,
    /// The pass from which on a live process is gone, because it had exited.
    pub ended: Option<u32>,
}

/// What is wrong with an image, with the place and the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ImageError(pub String);

fn bad(path: &Path, problem: impl std::fmt::Display) -> ImageError {
    ImageError(format!("{}: {problem}", path.display()))
}

/// Opens an image, or a folder of snapshots in the order of their names.
///
/// # Errors
/// If a file is none of the formats, is cut short, or has pages of another size.
pub fn open(path: &Path) -> Result<Machine, ImageError> {
    let name = path.display().to_string();
    let about = fs::metadata(path).map_err(|error| bad(path, error))?;
    let files = if about.is_dir() {
        snapshots_in(path)?
    } else {
        vec![path.to_owned()]
    };
    let snapshots = files.iter().map(|file| open_snapshot(file));
    Ok(Machine {
        name,
        snapshots: snapshots.collect::<Result<_, _>>()?,
        process: None,
        ended: None,
    })
}

fn snapshots_in(folder: &Path) -> Result<Vec<PathBuf>, ImageError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| bad(folder, error))? {
        let path = entry.map_err(|error| bad(folder, error))?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
        if hidden {
            continue;
        }
        if !path.is_file() {
            return Err(bad(
                &path,
                "is not a file; a machine is a folder of snapshots, one file each",
            ));
        }
        files.push(path);
    }
    if files.is_empty() {
        return Err(bad(
            folder,
            "has no snapshots; give an image or a folder of images",
        ));
    }
    files.sort();
    Ok(files)
}

fn open_snapshot(path: &Path) -> Result<Snapshot, ImageError> {
    let file = File::open(path).map_err(|error| bad(path, error))?;
    let about = file.metadata().map_err(|error| bad(path, error))?;
    if !about.is_file() {
        return Err(bad(
            path,
            "is not a regular file, so it cannot be mapped; copy it to one",
        ));
    }
    if about.len() == 0 {
        return Err(bad(path, "is empty; was the dump broken off?"));
    }
    let map = sardonyx_mapped::map(&file).map_err(|error| bad(path, error))?;
    let head = &map[..map.len().min(16)];
    let compressed: [(&[u8], &str, &str); 5] = [
        (b"KDUMP   ", "a compressed kdump", "dump without -z, -l, -s"),
        (
            b"\x28\xb5\x2f\xfd",
            "compressed with zstd",
            "unpack it: zstd -d",
        ),
        (b"\x1f\x8b", "compressed with gzip", "unpack it: gzip -d"),
        (b"\xfd7zXZ", "compressed with xz", "unpack it: xz -d"),
        (
            b"QEVM",
            "a QEMU migration stream",
            "use pmemsave or dump-guest-memory",
        ),
    ];
    for (magic, what, remedy) in compressed {
        if head.starts_with(magic) {
            return Err(bad(path, format!("is {what}; {remedy}")));
        }
    }
    if head.starts_with(b"\x7fELF") {
        elf::read(path, map)
    } else {
        raw::read(path, map)
    }
}
