//! A file under a temporary name in the folder of its final one, so that renaming it is one step.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Removed when dropped, unless it was [kept](Temporary::keep).
pub(super) struct Temporary {
    path: PathBuf,
    /// What it will replace: where links lead, not they.
    target: PathBuf,
    /// Already kept or removed.
    gone: bool,
}

impl Temporary {
    /// Creates a hidden file beside `target`. Two of the same target do not meet. A device or a pipe is
    /// refused: renaming would put a file in its place.
    pub(super) fn beside(target: &Path) -> io::Result<(Temporary, File)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if target.file_name().is_none() || target.is_dir() {
            return Err(io::Error::other("it is a directory"));
        }
        if std::fs::metadata(target).is_ok_and(|there| !there.is_file()) {
            return Err(io::Error::other("it is a device or a pipe"));
        }
        let target = std::fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        // Without the target's own name, which may be as long as a name can be.
        let path = target.with_file_name(format!(".sardonyx-{}-{n}.tmp", std::process::id()));
        let file = File::create(&path)?;
        let temporary = Temporary {
            path,
            target,
            gone: false,
        };
        Ok((temporary, file))
    }

    /// Gives the complete file its name, replacing what was there.
    pub(super) fn keep(mut self) -> io::Result<()> {
        std::fs::rename(&self.path, &self.target)?;
        self.gone = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.gone {
            // Nothing more can be done about a file that cannot be removed.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
