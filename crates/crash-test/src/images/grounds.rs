//! The pools as they were before the recording, of which copies are made, and the folder in memory that holds all of it.

use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use tempfile::TempDir;

use crate::images::copy::{BLOCK, LARGE, fill};
use crate::recording::{LINE, Recording};
use crate::{CrashTestError, Result};

/// With pools of more data than this there is one copy at a time.
const MUCH: u64 = 256 << 20;

/// Whether one copy fills so much memory that there is only one at a time.
pub fn fill_memory(grounds: &[File], recording: &Recording) -> bool {
    let blocks = |ground: &File| ground.metadata().map_or(0, |m| m.blocks() * 512);
    let data: u64 = grounds.iter().map(blocks).sum();
    let stored = (recording.lines.len() * LINE) as u64;
    data.max(stored) >= MUCH
}

/// A folder in memory that is removed when it is dropped.
pub fn scratch() -> Result<TempDir> {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    tempfile::Builder::new()
        .prefix("sardonyx-crash-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(&place)
        .map_err(CrashTestError::io(place.display()))
}

/// Opens the pools before the recording, of full size: the kept files themselves, or files of holes.
pub fn grounds(recording: &Recording, folder: &Path) -> Result<Vec<File>> {
    let mut grounds = Vec::new();
    for (number, pool) in recording.pools.iter().enumerate() {
        let kept = pool.ground_file()?;
        // A large file is not copied: its hash was checked a moment ago, and it lies with the recording.
        if let Some(file) = &kept {
            let length = file
                .metadata()
                .map_err(CrashTestError::io("the ground"))?
                .len();
            if length == pool.bytes && length as usize >= LARGE * BLOCK {
                grounds.extend(kept);
                continue;
            }
        }
        let path = folder.join(format!("ground-{number}"));
        let failed = || CrashTestError::io(path.display());
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .map_err(failed())?;
        if let Some(kept) = kept {
            fill(&kept, &file).map_err(failed())?;
        }
        file.set_len(pool.bytes).map_err(failed())?;
        grounds.push(file);
    }
    Ok(grounds)
}
