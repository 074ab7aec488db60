//! Records a program that becomes another by exec: when it asks the kernel for that, this process becomes QEMU again,
//! with the same plugin and the new program. Process, descriptors and working directory stay, as they do without a
//! recorder. The kernel gets the calls that it would refuse, and those for programs that are not x86-64.

use std::collections::HashSet;
use std::ffi::{CStr, CString, OsString, c_char, c_int};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::counters;
use super::guest::{self, Area};
use super::sites::Sites;
use super::state::PluginState;
use crate::codec::RecorderEvent;
use crate::frames::Stock;
use crate::maps::Maps;
use crate::options::{Level, PluginOptions};
use crate::program::{self, Executable};
use crate::ring::{FIRST, Ring};

/// At most this many words of a list are read (`MAX_ARG_STRINGS` is more than fit).
const WORDS: u64 = 1 << 20;

/// Handles an `execve` with these arguments. It returns if the kernel is to do the call.
pub fn before(state: &mut PluginState, [path, words, environment, ..]: [u64; 6], areas: &[Area]) {
    let Some(path) = guest::text(path).and_then(|path| CString::new(path).ok()) else {
        return;
    };
    // SAFETY: a C string.
    let refused = unsafe { libc::access(path.as_ptr(), libc::X_OK) } != 0;
    if refused || !state.out.on() {
        return;
    }
    let unopened = unopened(state);
    if unopened.is_none()
        && let Some(command) = command(&path, words)
        && let Some(environment) = list(environment)
    {
        state.capture_all();
        let left = ExecState::new(state, path.clone(), areas);
        state.remark(areas);
        if left.keep(state).is_ok() {
            become_it(&command, &environment);
            let _ = ExecState::take(&state.options.folder);
        }
    }
    let path = path.to_string_lossy();
    let lost = match unopened {
        None => format!(
            "{path} by exec, which is not an x86-64 program that can be read, and ran unrecorded; \
             have it call an x86-64 program instead"
        ),
        Some(file) => format!(
            "{path} by exec as another user, who cannot open {file}, and ran unrecorded; \
             let all users open that, or start the recorder as that user"
        ),
    };
    state.finish(&RecorderEvent::Lost(lost.into_bytes()), areas);
}

/// A file that the recording needs after the exec and that this process may not open, because it gave up its rights.
fn unopened(state: &PluginState) -> Option<String> {
    let own = Path::new(&state.options.folder).join(Ring::name(std::process::id()));
    let ring = match own.exists() {
        true => own,
        false => Path::new(&state.options.folder).join(FIRST),
    };
    let opens = |file: &str, how: c_int| {
        let file = CString::new(file).unwrap_or_default();
        // The file must open both for the real user and for the effective one.
        // SAFETY: a C string.
        [0, libc::AT_EACCESS]
            .into_iter()
            .all(|whose| unsafe { libc::faccessat(libc::AT_FDCWD, file.as_ptr(), how, whose) == 0 })
    };
    let ring = ring.to_string_lossy().into_owned();
    let needed = [
        (ring, libc::R_OK | libc::W_OK),
        (state.options.plugin.clone(), libc::R_OK),
    ];
    let mut needed = needed.into_iter().filter(|(file, how)| !opens(file, *how));
    needed.next().map(|(file, _)| file)
}

/// Gives the files that are opened after an exec to the user that this process is about to become, which only root's
/// processes can.
pub fn hand_over(options: &PluginOptions, user: u32) {
    // SAFETY: a call without memory.
    if user == 0 || user == u32::MAX || unsafe { libc::geteuid() } != 0 {
        return;
    }
    for folder in [Some(&options.folder), options.ground.as_ref()] {
        let Some(folder) = folder else { continue };
        let within = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for path in within.map(|entry| entry.path()).chain([folder.into()]) {
            let _ = std::os::unix::fs::chown(path, Some(user), None);
        }
    }
}

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

/// The strings of a list of the guest's; `None` for a null.
fn list(address: u64) -> Option<Vec<CString>> {
    let mut strings = Vec::new();
    if address == 0 {
        return Some(strings);
    }
    for i in 0..WORDS {
        match guest::word(address + i * 8)? {
            0 => return Some(strings),
            at => strings.push(CString::new(guest::text(at)?).ok()?),
        }
    }
    None
}

/// QEMU's command for a program, if there is one that can be recorded.
fn command(path: &CStr, words: u64) -> Option<Vec<CString>> {
    let mut file = PathBuf::from(OsString::from_vec(path.to_bytes().to_vec()));
    // The command is as this QEMU was started: its words up to the plugin's, and then the program's.
    let own = std::fs::read("/proc/self/cmdline").ok()?;
    let own: Vec<&[u8]> = own.split(|&byte| byte == 0).collect();
    let plugin = own.iter().position(|word| *word == b"-plugin")? + 1;
    // The program asks for its own path, and the kernel would answer QEMU's.
    let emulator = std::fs::read_link("/proc/self/exe").ok();
    if file.starts_with("/proc") && std::fs::canonicalize(&file).ok() == emulator {
        let started = match own.get(plugin + 1..)? {
            [b"-0", _, b"--", started, ..] | [started, ..] => started,
            [] => return None,
        };
        file = PathBuf::from(OsString::from_vec(started.to_vec()));
    }
    let words = list(words)?;
    let words = words
        .into_iter()
        .map(|word| OsString::from_vec(word.into_bytes()));
    let (program, words) = program::through_scripts(file, words.collect()).ok()?;
    match program::executable(&program) {
        Ok(Executable::Elf { loader }) if loader.as_deref().is_none_or(Path::exists) => {}
        _ => return None,
    }
    let (name, arguments) = match words.split_first() {
        Some((name, arguments)) => (name.as_bytes(), arguments),
        None => (&b""[..], &[][..]),
    };
    let own = own.get(..=plugin)?.iter().copied();
    let before = own.chain([b"-0", name, b"--", program.as_os_str().as_bytes()]);
    let all = before.chain(arguments.iter().map(|word| word.as_bytes()));
    all.map(|word| CString::new(word).ok()).collect()
}

/// The state that a program leaves to the next one: in a file of the recorder's folder, because nothing else of it
/// remains.
#[derive(Serialize, Deserialize)]
pub struct ExecState {
    path: CString,
    /// Set if it is not the first process in a ring of several.
    child: bool,
    promised: Option<(u64, u64)>,
    execs: u32,
    instructions: u64,
    last: u64,
    skip: u64,
    sites: u32,
    /// The device and inode of mapped files, in order.
    files: Vec<(u64, u64)>,
    grounds: HashSet<(u64, u64)>,
    memory: Vec<(u64, u64)>,
    stock: Stock,
}

impl ExecState {
    fn path(folder: &str) -> PathBuf {
        Path::new(folder).join(format!("left-{}", std::process::id()))
    }

    fn new(state: &PluginState, path: CString, areas: &[Area]) -> ExecState {
        let out = &state.out;
        ExecState {
            path,
            child: out.child,
            promised: out.promised,
            execs: out.execs,
            instructions: counters::all(),
            last: out.last,
            skip: out.skip,
            sites: out.sites.as_ref().map_or(0, Sites::next),
            files: out.maps.files().to_vec(),
            grounds: state.grounds.clone(),
            memory: areas.iter().map(|m| (m.start, m.end)).collect(),
            stock: out.frames.stock(),
        }
    }

    /// Whether it is of a child that continues in its parent's ring.
    pub fn is_of_child(&self) -> bool {
        self.child
    }

    fn caches(folder: &str) -> PathBuf {
        ExecState::path(folder).with_extension("caches")
    }

    fn keep(&self, state: &PluginState) -> std::io::Result<()> {
        let folder = &state.options.folder;
        let mut words = state.caches.save();
        words.insert(0, words.len() as u64);
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        for (line, held) in &state.out.captured {
            bytes.extend(line.to_le_bytes());
            bytes.extend(held);
        }
        std::fs::write(ExecState::caches(folder), bytes)?;
        std::fs::write(ExecState::path(folder), serde_json::to_vec(self)?)
    }

    fn fill(state: &mut PluginState) -> Option<()> {
        let path = ExecState::caches(&state.options.folder);
        let bytes = std::fs::read(&path).ok()?;
        let _ = std::fs::remove_file(path);
        let (words, _) = bytes.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let count = words.next()? as usize;
        let caches: Vec<u64> = words.by_ref().take(count).collect();
        state.caches.restore(&caches).then_some(())?;
        let (lines, _) = bytes[8 * (1 + count)..].as_chunks::<72>();
        for line in lines {
            let (number, held) = line.split_first_chunk::<8>()?;
            let number = u64::from_le_bytes(*number);
            state.out.captured.insert(number, held.try_into().ok()?);
        }
        Some(())
    }

    /// The state that the program before this one left, if there was one in this process.
    pub fn take(folder: &str) -> Option<ExecState> {
        let path = ExecState::path(folder);
        let bytes = std::fs::read(&path).ok()?;
        let _ = std::fs::remove_file(path);
        serde_json::from_slice(&bytes).ok()
    }

    pub fn resume(self, state: &mut PluginState) {
        counters::resume(self.instructions);
        state.grounds = self.grounds;
        if state.options.level == Level::Memory && ExecState::fill(state).is_none() {
            let note = "what the caches held of the program before was lost";
            state.out.tell(&RecorderEvent::Note(note.into()));
        }
        let out = &mut state.out;
        (out.last, out.skip) = (self.last, self.skip);
        (out.child, out.execs) = (self.child, self.execs + 1);
        out.promised = self.promised.or(out.promised);
        out.maps = Maps::from_files(self.files);
        out.frames.resume(self.stock);
        out.sites = out.sites.take().map(|_| Sites::from(self.sites));
        out.tell(&RecorderEvent::Became(self.path.into_bytes()));
        for (start, end) in self.memory {
            state.gone(start, end);
        }
    }
}
