//! Facts about a traced process: its memory, its descriptors, its command.
#![allow(unsafe_code)]

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

const PATH: usize = 4096;
/// At most this much of one message is kept.
const MESSAGE: usize = 1 << 20;

/// Reads bytes of its memory; fewer if not all exist.
pub(super) fn memory(thread: i32, address: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let own = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: length,
    };
    let other = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: length,
    };
    // SAFETY: our own part is as long as it says; the kernel checks the other's.
    let got = unsafe { libc::process_vm_readv(thread, &raw const own, 1, &raw const other, 1, 0) };
    bytes.truncate(got.max(0) as usize);
    bytes
}

pub(super) fn word(thread: i32, address: u64) -> Option<u64> {
    Some(u64::from_ne_bytes(
        memory(thread, address, 8).try_into().ok()?,
    ))
}

/// Reads a path, which ends with a zero. It is read page by page, because the memory after it may not exist.
pub(super) fn path(thread: i32, address: u64) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    while bytes.len() < PATH {
        let at = address + bytes.len() as u64;
        let part = memory(thread, at, 4096 - at as usize % 4096);
        if let Some(end) = part.iter().position(|&byte| byte == 0) {
            bytes.extend_from_slice(&part[..end]);
            return Some(PathBuf::from(OsString::from_vec(bytes)));
        }
        if part.is_empty() {
            return None;
        }
        bytes.extend(part);
    }
    None
}

/// Reads the bytes of at most this many parts of a vector.
pub(super) fn gathered(thread: i32, vector: u64, parts: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in 0..parts.min(1024) {
        let (at, length) = (vector + part * 16, vector + part * 16 + 8);
        if let (Some(at), Some(length)) = (word(thread, at), word(thread, length)) {
            let room = MESSAGE - bytes.len().min(MESSAGE);
            bytes.extend(memory(thread, at, (length as usize).min(room)));
        }
    }
    bytes
}

/// The text of a message (`struct msghdr`).
pub(super) fn message(thread: i32, header: u64) -> Vec<u8> {
    match (word(thread, header + 16), word(thread, header + 24)) {
        (Some(vector), Some(parts)) => gathered(thread, vector, parts),
        _ => Vec::new(),
    }
}

pub(super) fn text(thread: i32, address: u64, length: u64) -> Vec<u8> {
    memory(thread, address, (length as usize).min(MESSAGE))
}

fn descriptor(thread: i32, fd: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{thread}/fd/{fd}"))
}

pub(super) fn file_metadata(thread: i32, fd: i32) -> Option<Metadata> {
    fs::metadata(descriptor(thread, fd)).ok()
}

pub(super) fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

pub(super) fn link(thread: i32, fd: i32) -> Option<PathBuf> {
    fs::read_link(descriptor(thread, fd)).ok()
}

pub(super) fn reopen(thread: i32, fd: i32) -> Option<File> {
    File::open(descriptor(thread, fd)).ok()
}

/// Reads the present bytes of the file behind a descriptor.
pub(super) fn held(thread: i32, fd: i32, offset: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    reopen(thread, fd)?.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

pub(super) fn position(thread: i32, fd: i32) -> Option<(u64, i32)> {
    let info = fs::read_to_string(format!("/proc/{thread}/fdinfo/{fd}")).ok()?;
    let field = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::trim)
    };
    let flags = i32::from_str_radix(field("flags:")?, 8).ok()?;
    Some((field("pos:")?.parse().ok()?, flags))
}

/// A path as the process means it: from its folder or that of a descriptor, with the process itself for `self`.
pub(super) fn meant(thread: i32, folder: i32, path: &Path) -> Option<PathBuf> {
    if path.as_os_str().is_empty() {
        return link(thread, folder);
    }
    for (own, other) in [("/proc/self", ""), ("/dev/fd", "/fd")] {
        if let Ok(rest) = path.strip_prefix(own) {
            return Some(Path::new(&format!("/proc/{thread}{other}")).join(rest));
        }
    }
    if path.is_absolute() {
        return Some(path.to_owned());
    }
    let base = match folder {
        libc::AT_FDCWD => fs::read_link(format!("/proc/{thread}/cwd")).ok()?,
        fd => link(thread, fd)?,
    };
    Some(base.join(path))
}

/// Whether a thread waits in its system call and may be interrupted there (state S of `/proc/PID/stat`).
pub(super) fn sleeps(thread: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{thread}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
    state.is_some_and(|state| state.starts_with('S'))
}

pub(super) fn of_thread(thread: i32) -> i32 {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let group = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    group
        .and_then(|id| id.trim().parse().ok())
        .unwrap_or(thread)
}

pub(super) fn command(process: i32) -> String {
    let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words)
        .trim_end_matches('\0')
        .replace('\0', " ");
    let first: Vec<&str> = words.split_whitespace().collect();
    let mut shown = first.join(" ");
    if shown.len() > 80 {
        shown = shown.chars().take(77).collect::<String>() + "...";
    }
    shown
}

/// The name of a command without its arguments: its program or script, with the word after it if that names what it does,
/// as in `git commit`.
pub(super) fn label(process: i32) -> String {
    let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words).into_owned();
    let words: Vec<&str> = words.trim_end_matches('\0').split('\0').collect();
    let folder = fs::read_link(format!("/proc/{process}/cwd")).unwrap_or_default();
    label_of(&words, &|name| folder.join(name).exists())
}

/// Programs that run a script, by their names without versions.
const SCRIPTED: [&str; 12] = [
    "sh", "bash", "dash", "ksh", "zsh", "busybox", "python", "perl", "ruby", "node", "java", "php",
];

/// A program's name without the digits and dots at its end.
pub(crate) fn without_version(program: &str) -> &str {
    program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

pub(crate) fn runs_scripts(program: &str) -> bool {
    SCRIPTED.contains(&without_version(program))
}

fn label_of(words: &[&str], exists: &dyn Fn(&str) -> bool) -> String {
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let program = name(words.first().copied().unwrap_or_default());
    let bare = without_version(&program);
    let rest = words.get(1..).unwrap_or_default();
    if runs_scripts(&program) {
        let script = rest.iter().find(|word| !word.starts_with('-'));
        return match (rest.first(), script) {
            (Some(option @ (&"-c" | &"-e")), _) => format!("{bare} {option}"),
            (Some(&"-m"), Some(module)) => format!("{bare} -m {module}"),
            (_, Some(script)) => name(script),
            _ => program,
        };
    }
    let plain = |word: &&&str| {
        let letters = word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        letters && word.starts_with(|c| c != '-') && word.len() > 1 && !exists(word)
    };
    match rest.first().filter(plain) {
        Some(what) => format!("{program} {what}"),
        None => program,
    }
}

/// A part of a file that is mapped to be run: its first address, the address after its last, the offset, and the file;
/// none for code that the program has made.
#[derive(Clone, Debug)]
pub(super) struct MappedCode {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) offset: u64,
    pub(super) path: PathBuf,
}

impl MappedCode {
    pub(super) fn is_of_file(&self) -> bool {
        !self.path.as_os_str().is_empty()
    }
}

pub(super) fn code(process: i32) -> Vec<MappedCode> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    maps.lines().filter_map(one_code).collect()
}

fn one_code(line: &str) -> Option<MappedCode> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    if !words.next()?.contains('x') {
        return None;
    }
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let offset = hex(words.next()?)?;
    let name = words.nth(2).unwrap_or_default();
    let path = match line.find('/') {
        Some(at) => PathBuf::from(&line[at..]),
        None if name.is_empty() || name.starts_with("[anon") => PathBuf::new(),
        None => return None,
    };
    Some(MappedCode {
        start: hex(start)?,
        end: hex(end)?,
        offset,
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_named_without_its_arguments() {
        let label = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            label_of(&words, &|name| name == "docs")
        };
        assert_eq!(label("/usr/bin/git commit -m c1"), "git commit");
        assert_eq!(label("git commit -m c2"), "git commit");
        assert_eq!(label("cp docs out"), "cp");
        assert_eq!(label("touch f1"), "touch");
        assert_eq!(label("/bin/sh ./s.sh d"), "s.sh");
        assert_eq!(label("sh -c echo"), "sh -c");
        assert_eq!(label("python3.11 -u /a/b.py x"), "b.py");
        assert_eq!(label("python3 -m app x"), "python -m app");
        assert_eq!(label("bash"), "bash");
        assert_eq!(label(""), "");
    }
}
