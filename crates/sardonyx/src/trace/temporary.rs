//! A file under a temporary name in the folder of its final one, so that renaming it is one step.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Removed when dropped, unless it was [kept](Temporary::keep).
pub(super) struct Temporary {
    path: PathBuf,
    /// Already kept or removed.
    gone: bool,
}

impl Temporary {
    /// Creates a hidden file beside `target`. Two of the same target do not meet.
    pub(super) fn beside(target: &Path) -> io::Result<(Temporary, File)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = target.file_name().filter(|_| !target.is_dir());
        let name = name.ok_or_else(|| io::Error::other("it is a directory"))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        hidden.push(format!(".{}-{n}.tmp", std::process::id()));
        let path = target.with_file_name(hidden);
        let file = File::create(&path)?;
        Ok((Temporary { path, gone: false }, file))
    }

    /// Gives the complete file its name, replacing what was there.
    pub(super) fn keep(mut self, target: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, target)?;
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
