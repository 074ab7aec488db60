//! The kinds of files that the kernel can run: a program, or a script for one.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Executable {
    /// An x86-64 program; `loader` if it is linked dynamically.
    Elf {
        loader: Option<PathBuf>,
    },
    Script(OsString, Option<OsString>),
}

/// Looks at the beginning of the file at `path`.
///
/// # Errors
/// It is missing, not executable, or for another processor.
pub fn executable(path: &Path) -> Result<Executable, String> {
    let refuse = |problem: &str| Err(format!("{}: {problem}", path.display()));
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
    let read = File::open(path).and_then(|file| {
        (&file).take(4096).read_to_end(&mut head)?;
        Ok(file)
    });
    let file = match read {
        Ok(file) => file,
        Err(e) => return refuse(&format!("cannot be read: {e}; make it readable")),
    };
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
        return Ok(Executable::Script(
            owned(name),
            (!rest.is_empty()).then(|| owned(rest)),
        ));
    }
    elf(&head, &file).or_else(|problem| refuse(&problem))
}

fn elf(head: &[u8], file: &File) -> Result<Executable, String> {
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
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("8 bytes"));
    let (size, count) = (usize::from(half(54)), usize::from(half(56)));
    let headers = head.get(word(32) as usize..).unwrap_or_default();
    let header = (headers.chunks_exact(size.max(56)).take(count))
        .find(|header| header.starts_with(&3u32.to_le_bytes())); // PT_INTERP
    let loader = header.and_then(|header| {
        let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"));
        let mut name = vec![0; word(32).min(4096) as usize];
        file.read_exact_at(&mut name, word(8)).ok()?;
        Some(PathBuf::from(OsStr::from_bytes(name.strip_suffix(b"\0")?)))
    });
    Ok(Executable::Elf { loader })
}

/// Follows scripts as the kernel does, from a command's words of which the first stands for `file`: returns the
/// program, and its words. A script's interpreter gets the script.
pub fn through_scripts(
    file: PathBuf,
    words: Vec<OsString>,
) -> Result<(PathBuf, Vec<OsString>), String> {
    let (mut program, mut words) = (file, words);
    // The kernel follows four scripts.
    for _ in 0..=4 {
        match executable(&program)? {
            Executable::Elf { .. } => return Ok((program, words)),
            Executable::Script(interpreter, argument) => {
                let script = std::mem::replace(&mut program, interpreter.clone().into());
                let before = [Some(interpreter), argument, Some(script.into_os_string())];
                let first = 0..words.len().min(1);
                words.splice(first, before.into_iter().flatten());
            }
        }
    }
    Err(format!(
        "{}: scripts that run scripts that run scripts; name the program itself",
        program.display()
    ))
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
        executable(path).unwrap_err()
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
            executable(&file(at, "own", &arm, 0o755)),
            Ok(Executable::Elf { loader: Some(_) })
        ));
        arm[18] = 183;
        assert!(problem(&file(at, "arm", &arm, 0o755)).contains("64-bit ARM"));
        assert!(problem(&file(at, "cut", &arm[..40], 0o755)).contains("neither"));
    }

    #[test]
    fn a_script_runs_through_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let script = file(folder.path(), "s", b"#!/bin/sh -e\necho\n", 0o755);
        let above = format!("#! {} x y\n", script.display());
        let above = file(folder.path(), "t", above.as_bytes(), 0o755);
        let (program, words) =
            through_scripts(above.clone(), vec!["t".into(), "a".into()]).unwrap();
        assert_eq!(program, Path::new("/bin/sh"));
        let script = script.into_os_string();
        let expected = [
            "/bin/sh".into(),
            "-e".into(),
            script,
            "x y".into(),
            above.into(),
            "a".into(),
        ];
        assert_eq!(words, expected);
        let own = folder.path().join("own");
        let line = format!("#!{}\n", own.display());
        file(folder.path(), "own", line.as_bytes(), 0o755);
        let problem = through_scripts(own, Vec::new()).unwrap_err();
        assert!(problem.contains("scripts that run scripts"), "{problem}");
    }
}
