//! The files below a path, by name within each directory: regular ones, each once however many
//! names it has, links not followed. A path that is a file or a device is the only one.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use walkdir::{IntoIter, WalkDir};

use super::{EstimateError, Outcome};

/// Bytes of memory for each file that has several names, about.
pub(super) const LINK: u64 = 64;

/// What is to be read.
#[derive(Default)]
pub(super) struct Size {
    /// `None` of a pipe.
    pub bytes: Option<u64>,
    pub files: u64,
    /// Of the files, those that have several names.
    pub links: u64,
    /// The path is one file or one device.
    pub single: Option<()>,
}

pub(super) struct Found {
    pub path: PathBuf,
    pub length: u64,
}

/// Bytes and files, without reading any.
pub(super) fn size(path: &Path) -> Outcome<Size> {
    let named = |error| EstimateError::Io(path.display().to_string(), error);
    let metadata = fs::metadata(path).map_err(named)?;
    if metadata.is_dir() {
        let mut size = Size {
            bytes: Some(0),
            ..Size::default()
        };
        let mut tree = Tree::below(path);
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

pub(super) struct Tree {
    entries: IntoIter,
    /// Device and number of files that have been met and have other names.
    linked: HashSet<(u64, u64)>,
}

impl Tree {
    pub fn below(path: &Path) -> Tree {
        let entries = WalkDir::new(path)
            .sort_by_file_name()
            .follow_root_links(true)
            .into_iter();
        Tree {
            entries,
            linked: HashSet::new(),
        }
    }
}

impl Iterator for Tree {
    type Item = Result<Found, String>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = match self.entries.next()? {
                Ok(entry) => entry,
                Err(error) => return Some(Err(error.to_string())),
            };
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
            return Some(Ok(Found {
                length: metadata.len(),
                path: entry.into_path(),
            }));
        }
    }
}
