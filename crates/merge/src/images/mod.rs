//! Sources of pages: raw dumps, ELF cores (of processes, and of QEMU's `dump-guest-memory`), live processes, and a
//! seeded generator. A machine has a sequence of snapshots; pass k sees the k-th.

mod contents;
mod elf;
mod hash;
mod holes;
mod lime;
mod memory;
pub mod mixes;
mod pool;
mod process;
mod raw;
mod space;

use std::fs::{self, File};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::{PAGE_BYTES, PageBytes};
pub use contents::{Images, MachineImage, PageChange, View};
pub use hash::checksum;
pub use memory::ModelMemory;
pub use pool::{ContentPool, Keep};
pub use process::{HUGE_PAGES, Process, ProcessPages, Wanted};
pub use space::{MachineSpace, Region};

/// Pages of one snapshot that follow each other in both the machine and the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageExtent {
    /// The number of the first page in the machine: its address divided by the page size.
    pub first: u64,
    pub pages: u32,
    /// The offset of the first page in the data.
    pub offset: u64,
}

/// A stretch of a machine that has a name, such as the file that is mapped there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRange {
    pub first: u64,
    pub end: u64,
    pub name: String,
}

#[derive(Debug)]
pub enum Data {
    Mapped(memmap2::Mmap),
    Memory(Vec<u8>),
    /// Contents that a [`ContentPool`] knows: one number for each 4,096 bytes.
    Contents(Vec<u32>),
}

impl Data {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Data::Mapped(map) => map,
            Data::Memory(bytes) => bytes,
            Data::Contents(_) => &[],
        }
    }

    pub fn page(&self, offset: u64) -> &PageBytes {
        let start = offset as usize;
        let bytes = &self.bytes()[start..start + PAGE_BYTES];
        bytes.try_into().expect("a page's bytes")
    }
}

#[derive(Debug)]
pub struct Snapshot {
    pub data: Data,
    pub extents: Vec<PageExtent>,
    pub names: Vec<NamedRange>,
    /// Pages that the image names but does not hold, such as those of mapped files in a core.
    pub missing: u64,
    /// Pages of holes of the file, which the dumping program never wrote.
    pub holes: u64,
}

impl Snapshot {
    pub fn empty() -> Snapshot {
        Snapshot {
            data: Data::Memory(Vec::new()),
            extents: Vec::new(),
            names: Vec::new(),
            missing: 0,
            holes: 0,
        }
    }
}

#[derive(Debug)]
pub struct ImageMachine {
    pub name: String,
    /// The snapshots in the order of passes; at least one.
    pub snapshots: Vec<Snapshot>,
    pub process: Option<ProcessPages>,
    /// The pass from which on a live process is gone; `None` if it has not exited.
    pub ended: Option<u32>,
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ImageError(pub String);

/// Checks that the system can give this many bytes more.
///
/// # Errors
/// What lacks, and the remedy.
pub fn enough(bytes: u64) -> Result<(), ImageError> {
    let mut probe: Vec<u8> = Vec::new();
    probe
        .try_reserve_exact(bytes as usize)
        .map_err(pool::memory_ended)?;
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = info
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let available: Option<u64> =
        available.and_then(|text| text.trim().strip_suffix("kB")?.trim().parse().ok());
    match available {
        Some(available) if bytes > available * 1024 => Err(ImageError(format!(
            "the run takes {} MiB, and the system has {} left; give fewer machines or fewer --snapshots",
            bytes >> 20,
            available >> 10
        ))),
        _ => Ok(()),
    }
}

fn bad(path: &Path, problem: impl std::fmt::Display) -> ImageError {
    ImageError(format!("{}: {problem}", path.display()))
}

/// The meaning of an image's pages of zeros, which may never have been touched.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Deserialize,
    serde::Serialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Zeros {
    /// Zeros are pages, holes of the file too.
    Held,
    /// Holes of the file are no pages, since whoever dumped never wrote them; other zeros are.
    #[default]
    NoHoles,
    /// Zeros are no pages.
    None,
}

/// Opens an image, or a folder of snapshots in the order of their names.
///
/// # Errors
/// If a file is none of the formats, is cut short, or has pages of another size.
pub fn open(path: &Path, zeros: Zeros) -> Result<ImageMachine, ImageError> {
    let name = path.display().to_string();
    let about = fs::metadata(path).map_err(|error| bad(path, error))?;
    let files = if about.is_dir() {
        snapshots_in(path)?
    } else {
        vec![path.to_owned()]
    };
    let snapshots = files.iter().map(|file| open_snapshot(file, zeros));
    Ok(ImageMachine {
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

/// Formats by their first bytes that are refused, with the remedy.
const REFUSED: [(&[u8], &str, &str); 14] = [
    (b"KDUMP   ", "a compressed kdump", "dump without -z, -l, -s"),
    (
        b"makedumpfile",
        "a flattened kdump",
        "use dump-guest-memory without compression",
    ),
    (
        b"\x28\xb5\x2f\xfd",
        "compressed with zstd",
        "unpack it: zstd -d",
    ),
    (b"\x1f\x8b", "compressed with gzip", "unpack it: gzip -d"),
    (b"\xfd7zXZ", "compressed with xz", "unpack it: xz -d"),
    (b"BZh", "compressed with bzip2", "unpack it: bzip2 -d"),
    (
        b"\x04\x22\x4d\x18",
        "compressed with lz4",
        "unpack it: lz4 -d",
    ),
    (
        b"QEVM",
        "a QEMU migration stream",
        "use pmemsave or dump-guest-memory",
    ),
    (
        b"LibvirtQemudSave",
        "what `virsh save` writes, a migration stream",
        MEMORY_ONLY,
    ),
    (
        b"LibvirtQemudPart",
        "what `virsh save` writes, broken off",
        MEMORY_ONLY,
    ),
    (b"QFI\xfb", "a qcow2 disk image, not memory", MEMORY_ONLY),
    (
        b"AVML",
        "a compressed dump of LiME or AVML",
        "use LiME's format=lime, or avml-convert",
    ),
    (
        b"PAGEDU64",
        "a crash dump of Windows",
        "take a raw dump or an ELF core",
    ),
    (
        b"KDMV",
        "a VMDK disk image, not memory",
        "give the .vmem file beside the snapshot",
    ),
];
const MEMORY_ONLY: &str = "use `virsh dump --memory-only`, or pmemsave";

fn open_snapshot(path: &Path, zeros: Zeros) -> Result<Snapshot, ImageError> {
    // The type is checked first, because opening a pipe would wait for its writer.
    let about = fs::metadata(path).map_err(|error| bad(path, error))?;
    if !about.is_file() {
        let what = if about.file_type().is_fifo() {
            "a pipe"
        } else {
            "not a regular file"
        };
        let problem = format!("is {what}, so it cannot be mapped; copy it to a file");
        return Err(bad(path, problem));
    }
    let file = File::open(path).map_err(|error| bad(path, error))?;
    if about.len() == 0 {
        return Err(bad(path, "is empty; was the dump broken off?"));
    }
    let map = sardonyx_base::map(&file).map_err(|error| bad(path, error))?;
    let head = &map[..map.len().min(16)];
    for (magic, what, remedy) in REFUSED {
        if head.starts_with(magic) {
            return Err(bad(path, format!("is {what}; {remedy}")));
        }
    }
    let snapshot = if head.starts_with(b"\x7fELF") {
        elf::read(path, map)
    } else if head.starts_with(lime::MAGIC) {
        lime::read(path, map)
    } else {
        raw::read(path, map)
    };
    if zeros == Zeros::Held {
        return snapshot;
    }
    let snapshot = holes::left_out(snapshot?, &file);
    if snapshot.extents.is_empty() {
        return Err(bad(path, "is one hole: nothing was ever written to it"));
    }
    Ok(snapshot)
}
