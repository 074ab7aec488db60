//! What to run: QEMU, the program, and the interpreter of a script. All that cannot work is refused before anything runs.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sardonyx_recorder::program::{self, Executable};

use crate::RecordError;

/// QEMU's user-mode emulator, by its name in Debian's package `qemu-user`.
pub const QEMU: &str = "qemu-x86_64";

const INSTALL: &str = "install Debian 12's, as root: apt-get install qemu-user";

/// The first executable file called `name` in the folders of `path`, or `name` itself if it has a slash.
pub fn find(name: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    let folders = std::env::split_paths(path?);
    folders.map(|folder| folder.join(name)).find(|file| {
        std::fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    })
}

/// QEMU's emulator, or how to get it.
///
/// # Errors
/// It is not there, or is linked statically, and then loads no plugins.
pub fn qemu(given: Option<&Path>) -> Result<PathBuf, RecordError> {
    let path = std::env::var_os("PATH");
    let found = match given {
        Some(given) => find(given.as_os_str(), path.as_deref()).filter(|file| file.is_file()),
        None => find(OsStr::new(QEMU), path.as_deref()),
    };
    let shown = given.unwrap_or(Path::new(QEMU)).display();
    let Some(found) = found else {
        return Err(RecordError::new(format!(
            "{shown}: is not there; {INSTALL}"
        )));
    };
    match program::executable(&found).map_err(RecordError::new)? {
        Executable::Elf { loader: Some(_) } => Ok(found),
        _ => Err(RecordError::new(format!(
            "{}: is linked statically and loads no plugins; {INSTALL}",
            found.display()
        ))),
    }
}

/// The command that runs `words` under an emulator: scripts go through their interpreters.
///
/// # Errors
/// The program is not there, or cannot be run.
pub fn command(words: &[OsString]) -> Result<Vec<OsString>, RecordError> {
    let Some(first) = words.first() else {
        return Err(RecordError::new(
            "no program was named; write it after --, as in: sardonyx trace record -- sqlite3 ...",
        ));
    };
    let path = std::env::var_os("PATH");
    let Some(file) = find(first, path.as_deref()) else {
        return Err(RecordError::new(format!(
            "{}: there is no such program in PATH; install it, or give its path",
            first.display()
        )));
    };
    let mut command = words.to_vec();
    command[0] = file.clone().into_os_string();
    let (_, command) = program::through_scripts(file, command).map_err(RecordError::new)?;
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_in_the_path_or_refused() {
        let found = command(&["sh".into(), "a".into()]).unwrap();
        assert!(Path::new(&found[0]).is_absolute());
        assert_eq!(found[1], "a");
        assert!(command(&["no-such-program-1".into()]).is_err());
        assert!(command(&[]).is_err());
    }
}
