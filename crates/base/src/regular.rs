//! Regular files, opened so that nothing else can stand in for them: opening a pipe waits for its other end, a device
//! may never end.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file to read it.
///
/// # Errors
/// It cannot be opened, or is a folder, a pipe, a socket or a device.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    // Without O_NONBLOCK, a pipe without a writer would hold us here. A regular file does not care.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("is not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_is_opened() {
        let folder = std::env::temp_dir();
        let refused = |path: &Path| open(path).unwrap_err().to_string();
        assert_eq!(refused(&folder), "is not a regular file");
        assert_eq!(refused(Path::new("/dev/zero")), "is not a regular file");
        assert!(open(std::env::current_exe().unwrap()).is_ok());
        let missing = open(folder.join("there-is-no-such-file"));
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
