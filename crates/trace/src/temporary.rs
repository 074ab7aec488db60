//! A file under a temporary name in the folder of its final one, so that renaming it is one step.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A file that is removed when dropped, unless it was [kept](Temporary::keep).
pub(super) struct Temporary {
    path: PathBuf,
    /// The path to replace. Links are followed, not replaced.
    target: PathBuf,
    gone: bool,
}

impl Temporary {
    /// Creates a hidden file next to `target`. Two files for one target have different names. A device or a pipe is
    /// refused, because renaming would put a file in its place.
    pub(super) fn beside(target: &Path) -> io::Result<(Temporary, File)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if target.file_name().is_none() || target.is_dir() {
            return Err(io::Error::other("it is a directory"));
        }
        if std::fs::metadata(target).is_ok_and(|there| !there.is_file()) {
            return Err(io::Error::other("it is a device or a pipe"));
        }
        let target = std::fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        sweep(target.parent().unwrap_or(Path::new(".")));
        // The target's own name is left out: it may be as long as a name can be. Others who may write in the folder
        // can guess the name, so nothing that has it already is opened, be it a link to a file of ours.
        let (path, file) = loop {
            let n = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = target.with_file_name(format!(".sardonyx-{}-{n}.tmp", std::process::id()));
            match File::create_new(&path) {
                Ok(file) => break (path, file),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        };
        let temporary = Temporary {
            path,
            target,
            gone: false,
        };
        Ok((temporary, file))
    }

    pub(super) fn keep(mut self) -> io::Result<()> {
        std::fs::rename(&self.path, &self.target)?;
        self.gone = true;
        Ok(())
    }
}

/// A file counts as abandoned after this time, because its process may live where we cannot see it (in a container that
/// shares the folder).
const LEFT_ALONE: Duration = Duration::from_secs(3600);

/// Removes files that killed writers have left in `folder`. This is a courtesy: a file that cannot be read or removed
/// stays.
fn sweep(folder: &Path) {
    if !Path::new("/proc/self").exists() {
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name
            .to_str()
            .and_then(|name| name.strip_prefix(".sardonyx-")?.strip_suffix(".tmp"))
            .and_then(|numbers| numbers.split_once('-')?.0.parse::<u32>().ok());
        let Some(process) = process else { continue };
        let alone = entry.metadata().and_then(|file| file.modified());
        let alone = alone.is_ok_and(|then| then.elapsed().is_ok_and(|time| time > LEFT_ALONE));
        if alone && !Path::new(&format!("/proc/{process}")).exists() {
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
    use std::time::SystemTime;

    #[test]
    fn what_a_killed_writer_left_is_swept_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - 2 * LEFT_ALONE;
        let put = |name: String, then: SystemTime| {
            let path = folder.path().join(name);
            File::create(&path).unwrap().set_modified(then).unwrap();
            path
        };
        let dead = u32::MAX; // above the largest process number
        let left = put(format!(".sardonyx-{dead}-0.tmp"), old);
        let kept = [
            put(format!(".sardonyx-{dead}-1.tmp"), SystemTime::now()),
            put(format!(".sardonyx-{}-7.tmp", std::process::id()), old),
            put(".sardonyx-x-0.tmp".to_owned(), old),
            put("trace.parquet".to_owned(), old),
        ];
        drop(Temporary::beside(&folder.path().join("new.parquet")).unwrap());
        assert!(!left.exists());
        assert!(kept.iter().all(|path| path.exists()), "{kept:?}");
    }

    #[test]
    fn a_link_that_waits_under_the_name_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("mine");
        std::fs::write(&victim, "mine").unwrap();
        let target = folder.path().join("new.parquet");
        let (first, _) = Temporary::beside(&target).unwrap();
        let name = first.path.file_name().unwrap().to_str().unwrap();
        let (process, number) = name[10..]
            .strip_suffix(".tmp")
            .unwrap()
            .split_once('-')
            .unwrap();
        let number: u64 = number.parse().unwrap();
        let names = number + 1..number + 50; // other tests take some
        for n in names {
            let name = format!(".sardonyx-{process}-{n}.tmp");
            std::os::unix::fs::symlink(&victim, folder.path().join(name)).unwrap();
        }
        drop(Temporary::beside(&target).unwrap());
        assert_eq!(std::fs::read(&victim).unwrap(), b"mine");
    }
}
