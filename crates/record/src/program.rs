//! Finds QEMU, the program, and the interpreter of a script. Anything that cannot work is refused before anything runs.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sardonyx_recorder::options::{CHECK, READY};
use sardonyx_recorder::program::{self, Executable};

use crate::error::{RecordError, Result};

const QEMU: &str = "qemu-x86_64";

const REMEDY: &str = "leave out --qemu for the emulator that comes with Sardonyx; in a checkout `make qemu` builds it";

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

/// Finds QEMU's emulator and has it load the plugin once.
///
/// # Errors
/// It is missing, or cannot record; the error says how to get one.
pub fn qemu(given: Option<&Path>, plugin: &Path) -> Result<PathBuf> {
    let path = std::env::var_os("PATH");
    let shown = given.unwrap_or(Path::new(QEMU));
    let refused =
        |problem: &str| RecordError::new(format!("{}: {problem}; {REMEDY}", shown.display()));
    let found = find(shown.as_os_str(), path.as_deref()).filter(|file| file.exists());
    let found = found.ok_or_else(|| refused("is not there"))?;
    if let Executable::Elf { loader: None } =
        program::executable(&found).map_err(RecordError::new)?
    {
        return Err(refused("is linked statically and loads no plugins"));
    }
    let asked = plugin.to_string_lossy().replace(',', ",,");
    let answer = Command::new(&found)
        .args(["-plugin", &format!("{asked},{CHECK}"), "/bin/true"])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| refused(&format!("cannot be run: {e}")))?;
    match String::from_utf8_lossy(&answer.stdout).trim() == READY {
        true => Ok(found),
        false => {
            let said = String::from_utf8_lossy(&answer.stderr);
            let said = said.lines().find(|line| !line.is_empty());
            Err(refused(&format!(
                "cannot record: {}",
                said.unwrap_or("it loads no plugins")
            )))
        }
    }
}

/// The command that runs `words` under an emulator: scripts go through their interpreters.
///
/// # Errors
/// The program is missing, or cannot be run.
pub fn command(words: &[OsString]) -> Result<Vec<OsString>> {
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
