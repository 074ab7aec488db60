//! The folder of a recording's rings: in memory if there is room, and removed with the recorder.
//!
//! A recorder that is killed cannot remove its folder, so the next one does. A folder's owner holds a lock on a file in
//! it, which the kernel releases however the owner ends; a process number would some day be another process's.
//!
//! Everybody may write where these folders lie. So each user has one of its own there, in which nobody else can make or
//! list anything, and only in that one is anything opened or removed. If somebody else has taken its name, or may write
//! to it, a folder with a new name serves. Whoever knows a recording's drawn name can enter it: a program that gives up
//! its rights is recorded on.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::{RecordError, Result};

const IN_MEMORY: &str = "/dev/shm";
const PREFIX: &str = "sardonyx-record-";
const LOCK: &str = "lock";
/// The owner's folder, through which others get to a name that they know.
const MODE: u32 = 0o711;
const OTHERS_WRITE: u32 = 0o022;

pub struct Folder {
    folder: TempDir,
    _lock: File,
}

impl Folder {
    /// Makes a new folder, after removing those of this user's dead recorders.
    ///
    /// # Errors
    /// Neither memory nor `TMPDIR` can be written.
    pub fn create() -> Result<Folder> {
        Folder::within(Path::new(IN_MEMORY))
            .or_else(|_| Folder::within(&std::env::temp_dir()))
            .map_err(|e| {
                RecordError::new(format!(
                    "no temporary folder: {e}; set TMPDIR to one that can be written"
                ))
            })
    }

    fn within(parent: &Path) -> io::Result<Folder> {
        let own = users_own(parent)?;
        if let Some(own) = &own {
            remove_abandoned(own);
        }
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(MODE))
            .tempdir_in(own.as_deref().unwrap_or(parent))?;
        // It gets its name only after it is locked, so that no other recorder takes it for abandoned.
        let unlocked = folder.path().join("new");
        let lock = File::create_new(&unlocked)?;
        lock.try_lock()?;
        std::fs::rename(unlocked, folder.path().join(LOCK))?;
        Ok(Folder {
            folder,
            _lock: lock,
        })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// This user's folder in one that all share; `None` if what has its name is not a folder that this user alone may change.
fn users_own(parent: &Path) -> io::Result<Option<PathBuf>> {
    let user = std::fs::metadata("/proc/self")?.uid();
    let own = parent.join(format!("sardonyx-{user}"));
    match std::fs::DirBuilder::new().mode(MODE).create(&own) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    // A link is not followed, and a folder of ours cannot be replaced by others where all share one (its sticky bit).
    let there = std::fs::symlink_metadata(&own)?;
    if !there.is_dir() || there.uid() != user || there.mode() & OTHERS_WRITE != 0 {
        return Ok(None);
    }
    if there.mode() & 0o777 != MODE {
        std::fs::set_permissions(&own, Permissions::from_mode(MODE))?; // a umask took some
    }
    Ok(Some(own))
}

/// Removes folders whose owners are dead.
fn remove_abandoned(parent: &Path) {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let lock = sardonyx_base::regular::open(entry.path().join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_recording_removes_what_a_dead_one_left_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let (dead, living) = (
            Folder::within(parent.path()).unwrap(),
            Folder::within(parent.path()).unwrap(),
        );
        std::fs::write(dead.path().join("first"), "a ring").unwrap();
        let strange = users_own(parent.path())
            .unwrap()
            .unwrap()
            .join("sardonyx-record-strange");
        std::fs::create_dir(&strange).unwrap();
        let Folder { folder, _lock } = dead;
        let left = folder.keep(); // as the kernel does at SIGKILL: the folder stays, the lock goes
        assert!(left.join("first").exists());
        drop(_lock);

        let next = Folder::within(parent.path()).unwrap();
        assert!(!left.exists());
        assert!(living.path().exists() && next.path().exists() && strange.exists());
        let path = living.path().to_owned();
        drop(living);
        assert!(!path.exists());
    }

    #[test]
    fn what_somebody_else_put_in_its_place_is_neither_opened_nor_removed() {
        let parent = tempfile::tempdir().unwrap();
        // A pipe waits for a reader; a folder with a lock that nobody holds looks abandoned.
        let strange = parent.path().join("sardonyx-record-x");
        std::fs::create_dir(&strange).unwrap();
        let pipe = std::ffi::CString::new(strange.join(LOCK).to_str().unwrap()).unwrap();
        // SAFETY: the name is a string that ends in 0.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o666) }, 0);
        let own = users_own(parent.path()).unwrap().unwrap();
        std::fs::remove_dir(&own).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        for squat in [
            &(|| std::os::unix::fs::symlink(elsewhere.path(), &own)) as &dyn Fn() -> io::Result<()>,
            &|| std::fs::write(&own, "mine"),
            &|| {
                std::fs::create_dir(&own)?;
                std::fs::set_permissions(&own, Permissions::from_mode(0o777))
            },
        ] {
            squat().unwrap();
            assert_eq!(users_own(parent.path()).unwrap(), None);
            let folder = Folder::within(parent.path()).unwrap();
            assert_eq!(folder.path().parent(), Some(parent.path()));
            assert_eq!(
                std::fs::symlink_metadata(folder.path()).unwrap().mode() & 0o777,
                MODE
            );
            drop(folder);
            let _ = std::fs::remove_file(&own);
        }
        assert!(strange.join(LOCK).exists());
        assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }
}
