//! The folder of a recording's rings: in memory if there is room, and removed with the recorder.
//!
//! A recorder that is killed cannot remove its folder, so the next one does. A folder's owner holds a lock on a file in
//! it, which the kernel releases however the owner ends; a process number would some day be another process's.

use std::fs::File;
use std::path::Path;

use tempfile::TempDir;

use crate::{RecordError, Result};

const IN_MEMORY: &str = "/dev/shm";
const PREFIX: &str = "sardonyx-record-";
const LOCK: &str = "lock";

pub struct Folder {
    folder: TempDir,
    _lock: File,
}

impl Folder {
    /// Makes a new folder, after removing those of dead recorders.
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

    fn within(parent: &Path) -> std::io::Result<Folder> {
        remove_abandoned(parent);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
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

/// Removes folders whose owners are dead; other users' folders cannot be opened, and stay.
fn remove_abandoned(parent: &Path) {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let lock = File::options().write(true).open(entry.path().join(LOCK));
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
        let strange = parent.path().join("sardonyx-record-strange");
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
}
