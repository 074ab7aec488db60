//! A program that becomes another by exec is recorded on: where it asks the kernel for that, this process becomes QEMU again,
//! with the same plugin and the new program. Process, descriptors and working directory stay, as they do without a
//! recorder. What the kernel would refuse, and what is no x86-64 program, is left to the kernel.

use std::ffi::{CStr, CString, OsString, c_char};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::sites::Sites;
use super::state::State;
use super::{counters, kernel};
use crate::codec::{Event, op};
use crate::maps::Maps;
use crate::program::{self, Kind};

/// The most words of a list that are read (`MAX_ARG_STRINGS` is more than fit).
const WORDS: u64 = 1 << 20;

/// Before an `execve` with these arguments. It returns if the kernel is to do what it does.
pub fn before(state: &mut State, [path, words, environment, ..]: [u64; 6]) {
    let Some(path) = kernel::text(state, path).and_then(|path| CString::new(path).ok()) else {
        return;
    };
    // SAFETY: a C string.
    let refused = unsafe { libc::access(path.as_ptr(), libc::X_OK) } != 0;
    if refused || !state.out.on() {
        return;
    }
    if let Some(command) = command(state, &path, words)
        && let Some(environment) = list(state, environment)
    {
        state.empty(op::EVICT);
        state.remark();
        let left = Left::of(state, path.clone());
        if left.keep(&state.options.folder).is_ok() {
            become_it(&command, &environment);
            let _ = Left::take(&state.options.folder);
        }
    }
    state.finish(&Event::Lost(path.into_bytes()));
}

/// Becomes a program; returns if that cannot be.
fn become_it(command: &[CString], environment: &[CString]) {
    let pointers = |strings: &[CString]| -> Vec<*const c_char> {
        let all = strings.iter().map(|string| string.as_ptr());
        all.chain([std::ptr::null()]).collect()
    };
    let (words, environment) = (pointers(command), pointers(environment));
    // SAFETY: lists of C strings that end with null, and live here.
    unsafe {
        libc::execve(
            c"/proc/self/exe".as_ptr(),
            words.as_ptr(),
            environment.as_ptr(),
        )
    };
}

/// The strings of a list of the guest's; none for a null.
fn list(state: &State, address: u64) -> Option<Vec<CString>> {
    let mut strings = Vec::new();
    if address == 0 {
        return Some(strings);
    }
    for i in 0..WORDS {
        match kernel::word(state, address + i * 8)? {
            0 => return Some(strings),
            at => strings.push(CString::new(kernel::text(state, at)?).ok()?),
        }
    }
    None
}

/// QEMU's command for a program, if there is one that can be recorded.
fn command(state: &State, path: &CStr, words: u64) -> Option<Vec<CString>> {
    let mut file = PathBuf::from(OsString::from_vec(path.to_bytes().to_vec()));
    // The program asks for itself, and the kernel would say QEMU.
    let emulator = std::fs::read_link("/proc/self/exe").ok();
    if file.starts_with("/proc") && std::fs::canonicalize(&file).ok() == emulator {
        // SAFETY: QEMU's variable, set before any code of the guest ran; a C string.
        let own = unsafe { CStr::from_ptr(*state.api.exec_path) };
        file = PathBuf::from(OsString::from_vec(own.to_bytes().to_vec()));
    }
    let words = list(state, words)?;
    let words = words
        .into_iter()
        .map(|word| OsString::from_vec(word.into_bytes()));
    let (program, words) = program::through_scripts(file, words.collect()).ok()?;
    match program::kind(&program) {
        Ok(Kind::Elf { loader }) if loader.as_deref().is_none_or(Path::exists) => {}
        _ => return None,
    }
    // As this QEMU was started, up to the plugin.
    let own = std::fs::read("/proc/self/cmdline").ok()?;
    let own: Vec<&[u8]> = own.split(|&byte| byte == 0).collect();
    let plugin = own.iter().position(|word| *word == b"-plugin")? + 1;
    let (name, arguments) = match words.split_first() {
        Some((name, arguments)) => (name.as_bytes(), arguments),
        None => (&b""[..], &[][..]),
    };
    let own = own.get(..=plugin)?.iter().copied();
    let before = own.chain([b"-0", name, b"--", program.as_os_str().as_bytes()]);
    let all = before.chain(arguments.iter().map(|word| word.as_bytes()));
    all.map(|word| CString::new(word).ok()).collect()
}

/// What a program leaves to the one that it becomes: in a file of the recorder's folder, since nothing else of it remains.
#[derive(Serialize, Deserialize)]
pub struct Left {
    /// What it becomes.
    path: CString,
    instructions: u64,
    /// Instructions at the last record.
    last: u64,
    skip: u64,
    sites: u32,
    /// Files that were mapped, in order: their device and inode.
    files: Vec<(u64, u64)>,
    /// Their first lines, of those that were copied.
    grounds: Vec<u64>,
    /// Lines of them that are not synchronized yet.
    dirty: Vec<u64>,
    /// Its memory, which goes with it.
    memory: Vec<(u64, u64)>,
}

impl Left {
    fn path(folder: &str) -> PathBuf {
        Path::new(folder).join(format!("left-{}", std::process::id()))
    }

    fn of(state: &State, path: CString) -> Left {
        let out = &state.out;
        Left {
            path,
            instructions: counters::all(),
            last: out.last,
            skip: out.skip,
            sites: out.sites.as_ref().map_or(0, Sites::next),
            files: out.maps.files().to_vec(),
            grounds: state.grounds.iter().copied().collect(),
            dirty: out.dirty.iter().copied().collect(),
            memory: (state.mappings().iter())
                .map(|m| (m.start, m.end))
                .collect(),
        }
    }

    fn keep(&self, folder: &str) -> std::io::Result<()> {
        std::fs::write(Left::path(folder), serde_json::to_vec(self)?)
    }

    /// What the program before this one left, if there was one in this process.
    pub fn take(folder: &str) -> Option<Left> {
        let path = Left::path(folder);
        let bytes = std::fs::read(&path).ok()?;
        let _ = std::fs::remove_file(path);
        serde_json::from_slice(&bytes).ok()
    }

    /// Goes on where it stopped.
    pub fn resume(self, state: &mut State) {
        counters::resume(self.instructions);
        state.grounds = self.grounds.into_iter().collect();
        let out = &mut state.out;
        (out.last, out.skip) = (self.last, self.skip);
        out.maps = Maps::of(self.files);
        out.dirty = self.dirty.into_iter().collect();
        out.sites = out.sites.take().map(|_| Sites::from(self.sites));
        out.tell(&Event::Became(self.path.into_bytes()));
        for (start, end) in self.memory {
            state.gone(start, end);
        }
    }
}
