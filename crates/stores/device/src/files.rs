//! The file system calls of a store, behind one trait, so that a test can put a disk below it that loses its power,
//! refuses to sync or has bad sectors.
//!
//! All files of a store are in one folder. Only the rival's own files (`DIR/rival`) do not go through this trait: they
//! are made again at each start and nothing that was flushed depends on them.

use std::fmt::Debug;
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Read,
    Write,
    /// An empty file, whether it existed or not; only its owner may read it.
    New,
}

pub trait StoreFiles: Debug + Send + Sync {
    fn folder(&self) -> &Path;

    fn names(&self) -> io::Result<Vec<String>>;

    fn open(&self, name: &str, how: How) -> io::Result<Arc<dyn Bytes>>;

    /// Renames a file in one step, and replaces the file that had the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    fn remove(&self, name: &str) -> io::Result<()>;

    /// Brings all names to the disk, with that of the folder.
    fn sync_names(&self) -> io::Result<()>;

    /// Takes the lock on a file, which is made if `make` is set and it is missing; `None` if another process has the
    /// lock. It is held as long as the result lives.
    fn lock(&self, name: &str, make: bool) -> io::Result<Option<Box<dyn Debug + Send + Sync>>>;
}

pub trait Bytes: Debug + Send + Sync {
    /// Reads as much as was asked for.
    ///
    /// # Errors
    /// The disk's; `UnexpectedEof` where the file ends before.
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()>;

    /// Writes all bytes.
    ///
    /// # Errors
    /// The disk's; any part may have been written.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    fn length(&self) -> io::Result<u64>;

    fn set_length(&self, bytes: u64) -> io::Result<()>;

    /// Brings everything written to the disk.
    ///
    /// # Errors
    /// The disk's. Data written since the last sync may then be lost, although reads return them.
    fn sync(&self) -> io::Result<()>;

    /// Has the system read the file from the disk next time and not from its memory, except for data not yet synced.
    fn forget_cached(&self) -> io::Result<()>;

    /// Gives these bytes back to the disk; they read as zeros. False if the file system cannot.
    fn punch(&self, at: u64, length: u64) -> io::Result<bool>;
}

#[derive(Clone, Debug)]
pub(crate) struct Disk {
    folder: PathBuf,
}

impl Disk {
    pub fn new(folder: &Path) -> Disk {
        Disk {
            folder: folder.to_owned(),
        }
    }

    /// Makes the folder, private to its owner, and those above it, if they are missing; their names are on the disk
    /// when it returns.
    pub fn make(&self) -> io::Result<()> {
        let missing: Vec<&Path> = (self.folder.ancestors())
            .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
            .collect();
        if missing.is_empty() && self.names()?.is_empty() {
            // An empty folder that exists becomes the store's. A user who may use it but does not own it cannot change
            // its mode; the files are private in any case.
            let _ = fs::set_permissions(&self.folder, Permissions::from_mode(0o700));
        }
        for path in missing.into_iter().rev() {
            let mut builder = DirBuilder::new();
            let mode = if path == self.folder { 0o700 } else { 0o777 };
            builder.mode(mode).create(path)?;
            sync_folder_of(path)?;
        }
        Ok(())
    }
}

/// Brings the name of a folder to the disk, unless we may not open the folder above it, which another user has made
/// then.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    match path.canonicalize()?.parent().map(File::open) {
        Some(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Some(parent) => parent?.sync_all(),
        None => Ok(()),
    }
}

impl StoreFiles for Disk {
    fn folder(&self) -> &Path {
        &self.folder
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(&self.folder)?;
        entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn open(&self, name: &str, how: How) -> io::Result<Arc<dyn Bytes>> {
        let mut options = File::options();
        options.read(true).mode(0o600);
        if how != How::Read {
            options.write(true);
        }
        if how == How::New {
            options.create(true).truncate(true);
        }
        Ok(Arc::new(DiskFile(options.open(self.folder.join(name))?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.folder.join(from), self.folder.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.folder.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()?;
        sync_folder_of(&self.folder)
    }

    fn lock(&self, name: &str, make: bool) -> io::Result<Option<Box<dyn Debug + Send + Sync>>> {
        let mut options = File::options();
        options.read(true);
        if make {
            options.write(true).create(true).truncate(false).mode(0o600);
        }
        let file = options.open(self.folder.join(name))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[derive(Debug)]
struct DiskFile(File);

impl Bytes for DiskFile {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        self.0.read_exact_at(into, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, at)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn forget_cached(&self) -> io::Result<()> {
        Ok(fadvise(&self.0, 0, None, Advice::DontNeed)?)
    }

    fn punch(&self, at: u64, length: u64) -> io::Result<bool> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.0, flags, at, length) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
