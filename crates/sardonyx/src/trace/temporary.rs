//! A file under a temporary name in the folder of its final one, so that renaming it is one step.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PREFIX: &str = ".sardonyx-";
const SUFFIX: &str = ".tmp";
/// A file that nobody has written to for so long is not being written, on whatever machine.
const FORGOTTEN: Duration = Duration::from_secs(3600);

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
        if let Some(folder) = target.parent() {
            sweep(folder, FORGOTTEN);
        }
        // Without the target's own name, which may be as long as a name can be.
        let path = target.with_file_name(format!("{PREFIX}{}-{n}{SUFFIX}", std::process::id()));
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

/// Removes what processes that were killed have left in `folder`. It is a courtesy: errors are ignored.
fn sweep(folder: &Path, forgotten: Duration) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let ours = name.to_str().and_then(|name| {
            let (process, _) = name
                .strip_prefix(PREFIX)?
                .strip_suffix(SUFFIX)?
                .split_once('-')?;
            process.parse::<u32>().ok()
        });
        let Some(process) = ours else { continue };
        let age = entry.metadata().and_then(|about| about.modified());
        let old = age.is_ok_and(|written| written.elapsed().is_ok_and(|age| age > forgotten));
        if old && !Path::new("/proc").join(process.to_string()).exists() {
            let _ = std::fs::remove_file(entry.path());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_the_dead_go_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let alive = format!("{PREFIX}{}-7{SUFFIX}", std::process::id());
        let dead = format!("{PREFIX}{}-0{SUFFIX}", u32::MAX); // beyond any process's number
        for name in [
            &alive,
            &dead,
            &"other.tmp".into(),
            &".sardonyx-x-1.tmp".into(),
        ] {
            std::fs::write(folder.path().join(name), "").expect("a file");
        }
        sweep(folder.path(), FORGOTTEN);
        assert!(folder.path().join(&dead).exists(), "young");
        std::thread::sleep(Duration::from_millis(20));
        sweep(folder.path(), Duration::from_millis(1));
        assert!(!folder.path().join(&dead).exists());
        assert_eq!(std::fs::read_dir(folder.path()).expect("it").count(), 3);
    }
}
