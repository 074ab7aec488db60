//! What to run: QEMU, the program, and the interpreter of a script. All that cannot work is refused before anything runs.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

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
    match kind(&found)? {
        Kind::Elf { interpreter: true } => Ok(found),
        _ => Err(RecordError::new(format!(
            "{}: is linked statically and loads no plugins; {INSTALL}",
            found.display()
        ))),
    }
}

/// What a file is to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An x86-64 program; `interpreter` if it is linked dynamically.
    Elf {
        /// It names a dynamic loader.
        interpreter: bool,
    },
    /// A script: its interpreter, and its argument.
    Script(OsString, Option<OsString>),
}

/// Looks at the beginning of the file at `path`.
///
/// # Errors
/// It is not there, not executable, or for another processor.
pub fn kind(path: &Path) -> Result<Kind, RecordError> {
    let refuse = |problem: &str| Err(RecordError::new(format!("{}: {problem}", path.display())));
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(e) => return refuse(&format!("cannot be run: {e}; name a program that is there")),
    };
    if !metadata.is_file() {
        return refuse("is not a file; name a program");
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return refuse("is not executable; chmod +x it, or name its interpreter first");
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4096).read_to_end(&mut head));
    if let Err(e) = read {
        return refuse(&format!("cannot be read: {e}; make it readable"));
    }
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|&b| b == b'\n').next().unwrap_or_default();
        let line = line.trim_ascii();
        let (name, rest) = match line.iter().position(u8::is_ascii_whitespace) {
            Some(at) => (&line[..at], line[at..].trim_ascii()),
            None => (line, &line[line.len()..]),
        };
        if name.is_empty() {
            return refuse("is a script without an interpreter; name the interpreter first");
        }
        let owned = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        return Ok(Kind::Script(
            owned(name),
            (!rest.is_empty()).then(|| owned(rest)),
        ));
    }
    elf(&head).or_else(|problem| refuse(&problem))
}

fn elf(head: &[u8]) -> Result<Kind, String> {
    let half = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    if !head.starts_with(b"\x7FELF") || head.len() < 64 {
        return Err("is neither a program nor a script; name an x86-64 program".to_owned());
    }
    let machine = if head[5] == 2 {
        half(18).swap_bytes()
    } else {
        half(18)
    };
    if machine != 62 || head[4] != 2 {
        let name = match (machine, head[4]) {
            (62, 1) => "x32".to_owned(),
            (3, _) => "32-bit x86".to_owned(),
            (40, _) => "32-bit ARM".to_owned(),
            (183, _) => "64-bit ARM".to_owned(),
            (243, _) => "RISC-V".to_owned(),
            (other, _) => format!("ELF machine {other}"),
        };
        return Err(format!(
            "is a program for {name}; only x86-64 programs can be recorded, so name one"
        ));
    }
    if !matches!(half(16), 2 | 3) {
        return Err("is an ELF file but no program; link it first".to_owned());
    }
    let offset = u64::from_le_bytes(head[32..40].try_into().expect("8 bytes"));
    let (size, count) = (usize::from(half(54)), usize::from(half(56)));
    let interpreter = (0..count).any(|i| {
        let at = offset as usize + i * size;
        head.get(at..at + 4) == Some(&3u32.to_le_bytes()) // PT_INTERP
    });
    Ok(Kind::Elf { interpreter })
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
    command[0] = file.into_os_string();
    // The kernel follows four scripts.
    for _ in 0..4 {
        match kind(Path::new(&command[0]))? {
            Kind::Elf { .. } => return Ok(command),
            Kind::Script(interpreter, argument) => {
                let is_env = Path::new(&interpreter).file_name() == Some(OsStr::new("env"));
                match (is_env, argument) {
                    // `env` would replace itself by a program that runs unrecorded.
                    (true, Some(name)) if !name.as_bytes().contains(&b' ') => {
                        let Some(found) = find(&name, path.as_deref()) else {
                            return Err(RecordError::new(format!(
                                "{}: its interpreter {} is not in PATH; install it",
                                Path::new(&command[0]).display(),
                                name.display()
                            )));
                        };
                        command.insert(0, found.into_os_string());
                    }
                    (_, argument) => {
                        command.splice(0..0, std::iter::once(interpreter).chain(argument));
                    }
                }
            }
        }
    }
    Err(RecordError::new(format!(
        "{}: scripts that run scripts that run scripts; name the program itself",
        first.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path, name: &str, bytes: &[u8], mode: u32) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn problem(path: &Path) -> String {
        kind(path).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_run_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        assert!(problem(&at.join("none")).contains("cannot be run"));
        assert!(problem(at).contains("is not a file"));
        assert!(problem(&file(at, "plain", b"#!/bin/sh\n", 0o644)).contains("chmod +x"));
        assert!(problem(&file(at, "text", b"hello", 0o755)).contains("neither"));
        let mut arm = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        arm.truncate(4096);
        assert!(matches!(
            kind(&file(at, "own", &arm, 0o755)),
            Ok(Kind::Elf { .. })
        ));
        arm[18] = 183;
        assert!(problem(&file(at, "arm", &arm, 0o755)).contains("64-bit ARM"));
        assert!(problem(&file(at, "cut", &arm[..40], 0o755)).contains("neither"));
    }

    #[test]
    fn a_script_runs_through_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let script = file(folder.path(), "s", b"#!/bin/sh -e\necho\n", 0o755);
        let words = [script.clone().into_os_string(), "a".into()];
        let expected: Vec<OsString> = vec![
            "/bin/sh".into(),
            "-e".into(),
            script.into_os_string(),
            "a".into(),
        ];
        assert_eq!(command(&words).unwrap(), expected);
        let script = file(folder.path(), "t", b"#!/usr/bin/env sh\n", 0o755);
        let through = command(&[script.into_os_string()]).unwrap();
        assert_eq!(Path::new(&through[0]).file_name(), Some(OsStr::new("sh")));
        assert!(command(&["no-such-program-1".into()]).is_err());
        assert!(command(&[]).is_err());
    }
}
