//! The files below a path, by name within each directory: regular ones, each once however many
//! names it has, links not followed. A path that is a file or a device is the only one.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use walkdir::{IntoIter, WalkDir};

use super::{EstimateError, EstimateResult};

/// The bytes of memory, roughly, for each file that has several names.
pub(super) const LINK: u64 = 64;

#[derive(Default)]
pub(super) struct Size {
    pub bytes: Option<u64>,
    pub files: u64,
    pub links: u64,
    /// The path is one file or one device.
    pub single: Option<()>,
}

pub(super) struct TreeFile {
    pub path: PathBuf,
    pub length: u64,
}

pub(super) fn size(path: &Path) -> EstimateResult<Size> {
    let named = |error| EstimateError::Io(path.display().to_string(), error);
    let metadata = fs::metadata(path).map_err(named)?;
    let refused = |what: &str| {
        let path = path.display();
        Err(EstimateError::Bad(format!(
            "{path}: {what}, which may have no end; pipe as much as you want: head -c 1G {path} | .. -"
        )))
    };
    if is_made_up(path) {
        return refused("is made by the kernel, not on a disk");
    }
    if metadata.file_type().is_char_device() {
        return refused("is a character device");
    }
    if metadata.is_dir() {
        let mut size = Size {
            bytes: Some(0),
            ..Size::default()
        };
        let mut tree = DirectoryTree::below(path);
        for found in &mut tree {
            let Ok(found) = found else { continue };
            size.files += 1;
            size.bytes = size.bytes.map(|bytes| bytes + found.length);
        }
        size.links = tree.linked.len() as u64;
        return Ok(size);
    }
    let bytes = if metadata.file_type().is_block_device() {
        let mut device = File::open(path).map_err(named)?;
        Some(device.seek(SeekFrom::End(0)).map_err(named)?)
    } else {
        metadata.is_file().then_some(metadata.len())
    };
    Ok(Size {
        bytes,
        files: 1,
        links: 0,
        single: Some(()),
    })
}

/// File systems that have no disk behind them, and whose files may have no end: `statfs` names them by these numbers
/// (linux/magic.h: proc, sysfs, debugfs, tracefs, cgroup, cgroup2, bpf, securityfs, selinuxfs, configfs).
const MADE_UP: [i64; 10] = [
    0x9fa0,
    0x6265_6572,
    0x6462_6720,
    0x7472_6163,
    0x0027_e0eb,
    0x6367_7270,
    0xcafe_4a11,
    0x7363_6673,
    0xf97c_ff8c,
    0x6265_6570,
];

fn is_made_up(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|about| MADE_UP.contains(&about.f_type))
}

pub(super) struct DirectoryTree {
    entries: IntoIter,
    made_up: HashMap<u64, bool>,
    /// The device and number of files that have been met and have other names.
    linked: HashSet<(u64, u64)>,
}

impl DirectoryTree {
    pub fn below(path: &Path) -> DirectoryTree {
        let entries = WalkDir::new(path)
            .sort_by_file_name()
            .follow_root_links(true)
            .into_iter();
        DirectoryTree {
            entries,
            made_up: HashMap::new(),
            linked: HashSet::new(),
        }
    }
}

impl Iterator for DirectoryTree {
    type Item = Result<TreeFile, String>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = match self.entries.next()? {
                Ok(entry) => entry,
                Err(error) => return Some(Err(error.to_string())),
            };
            if entry.file_type().is_dir()
                && let Ok(metadata) = entry.metadata()
                && *(self.made_up.entry(metadata.dev())).or_insert_with(|| is_made_up(entry.path()))
            {
                self.entries.skip_current_dir();
                let path = entry.path().display();
                return Some(Err(format!("{path}: is made by the kernel, not on a disk")));
            }
            let only = entry.depth() == 0 && !entry.file_type().is_dir();
            if !entry.file_type().is_file() && !only {
                continue;
            }
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                Err(error) => return Some(Err(error.to_string())),
            };
            let links = metadata.nlink() > 1 && !only;
            if links && !self.linked.insert((metadata.dev(), metadata.ino())) {
                continue;
            }
            return Some(Ok(TreeFile {
                length: metadata.len(),
                path: entry.into_path(),
            }));
        }
    }
}
