//! The files that a recovery opens besides its copies of the pools, which copies it opens, and what it reads of them: seen
//! once, from its system calls, before anything else.
//!
//! Many recoveries run at a time, each on a copy of its own. One that writes to a shared file would disturb the others,
//! and one that writes to the user's own pool would spoil it.

use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use rustc_hash::FxHashSet;

use crate::interrupt::Interrupt;
use crate::recovery::registers;
use crate::recovery::touched::waits;

/// `PTRACE_O_*`: stops at system calls are told apart, children are followed, and all end with us.
const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_EXITKILL;
const AT_CALL: libc::c_int = libc::SIGTRAP | 0x80;
/// Calls that open a file; the older two exist only on x86-64.
#[cfg(target_arch = "x86_64")]
const OPENING: [libc::c_long; 4] = [
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_open,
    libc::SYS_creat,
];
#[cfg(not(target_arch = "x86_64"))]
const OPENING: [libc::c_long; 2] = [libc::SYS_openat, libc::SYS_openat2];
pub const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub struct Opened {
    /// Files outside of the recovery's folder that it opened for writing.
    pub written: Vec<PathBuf>,
    pub own: Vec<PathBuf>,
    /// Whether each copy was opened; `None` if the command may not be traced.
    pub copies: Option<Vec<bool>>,
    /// The bytes of each copy that it asked to read, or mapped.
    pub read: Vec<Vec<Range<u64>>>,
    /// Whether the file of acknowledgements was opened; `None` if it was not given, or if that cannot be seen.
    pub acks: Option<bool>,
}

/// Starts the command in a group of its own, stopped before its first instruction.
fn spawn_traced(words: &[std::ffi::OsString]) -> std::io::Result<Child> {
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    // SAFETY: the calls between fork and exec are system calls without memory.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    command.spawn()
}

/// Runs the command within some time, or until the user wants an end, and finds the files that it opens; `own` are the program's pools,
/// `copies` their copies in a folder, and `acks` is the file of acknowledgements if the command is given one.
pub fn opened(
    words: &[std::ffi::OsString],
    own: &[&Path],
    (folder, copies): (&Path, &[PathBuf]),
    acks: Option<&Path>,
    (time, interrupt): (Duration, &Interrupt),
) -> Opened {
    let mut told = Opened::default();
    let Ok(child) = spawn_traced(words) else {
        return told;
    };
    told.copies = Some(vec![false; copies.len()]);
    told.read = vec![Vec::new(); copies.len()];
    told.acks = acks.map(|_| false);
    let name = |metadata: &Metadata| (metadata.dev(), metadata.ino());
    let names = |path: &&Path| path.metadata().ok().map(|metadata| name(&metadata));
    let own: Vec<_> = own.iter().map(names).collect();
    let copies: Vec<_> = copies.iter().map(|path| names(&path.as_path())).collect();
    let acks = acks.and_then(|path| names(&path));
    let first = child.id() as libc::pid_t;
    std::thread::scope(|scope| {
        let (over, wait) = channel::<()>();
        scope.spawn(move || {
            if waits(&wait, time, interrupt) {
                // SAFETY: the group of our own child, which leads it.
                unsafe { libc::kill(-first, libc::SIGKILL) };
            }
        });
        follow(first, &own, folder, (&copies, acks), &mut told);
        drop(over);
    });
    told
}

type FileName = (u64, u64);

/// Follows a group of processes until all have ended, and notes the files that they open, by name.
///
/// A stop of a process that was unknown is its first one; one at a system call may have opened a file; any other is a
/// signal, which is passed on.
fn follow(
    first: libc::pid_t,
    own: &[Option<FileName>],
    folder: &Path,
    (copies, acks): (&[Option<FileName>], Option<FileName>),
    told: &mut Opened,
) {
    let mut known: FxHashSet<libc::pid_t> = FxHashSet::default();
    loop {
        let mut status = 0;
        // SAFETY: waits for the group of our own child only, which it leads.
        let process = unsafe { libc::waitpid(-first, &raw mut status, libc::__WALL) };
        if process < 0 {
            break;
        }
        if !libc::WIFSTOPPED(status) {
            known.remove(&process);
            if process == first {
                // The recovery's descendants end with it, as after every recovery.
                // SAFETY: the group of our own child, which led it.
                unsafe { libc::kill(-first, libc::SIGKILL) };
            }
            continue;
        }
        let signal = libc::WSTOPSIG(status);
        let mut pass = 0;
        if known.insert(process) {
            // SAFETY: it is stopped and ours.
            unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, process, 0, OPTIONS) };
        } else if signal == AT_CALL {
            if let Some((file, range)) = reading(process)
                && let Some(copy) = copy(process, file, copies)
            {
                told.read[copy].push(range);
            }
            if let Some(file) = just_opened(process)
                && let Ok(metadata) = std::fs::metadata(format!("/proc/{process}/fd/{file}"))
            {
                let this = Some((metadata.dev(), metadata.ino()));
                if acks.is_some() && acks == this {
                    told.acks = Some(true);
                }
                if let (Some(copy), Some(seen)) = (
                    copies.iter().position(|copy| *copy == this),
                    &mut told.copies,
                ) {
                    seen[copy] = true;
                }
                let path = written_to(process, file, folder);
                let path = path.filter(|path| !told.written.contains(path));
                told.written.extend(path);
                if own.contains(&this)
                    && let Ok(path) = std::fs::read_link(format!("/proc/{process}/fd/{file}"))
                {
                    told.own.push(path);
                }
            }
        } else if status >> 16 == 0 && signal != libc::SIGTRAP {
            pass = signal;
        }
        // SAFETY: it is stopped and ours.
        unsafe { libc::ptrace(libc::PTRACE_SYSCALL, process, 0, pass) };
    }
}

/// The copy behind a descriptor.
fn copy(process: libc::pid_t, file: u64, copies: &[Option<FileName>]) -> Option<usize> {
    let metadata = std::fs::metadata(format!("/proc/{process}/fd/{file}")).ok()?;
    let this = Some((metadata.dev(), metadata.ino()));
    copies.iter().position(|copy| *copy == this)
}

/// The descriptor from which a call that begins may read, and the bytes.
fn reading(process: libc::pid_t) -> Option<(u64, Range<u64>)> {
    let (number, [first, second, third, fourth, fifth, sixth]) = registers::begun(process)?;
    let some = |from: u64, length: u64| from..from.saturating_add(length);
    Some(match number {
        libc::SYS_read => (first, some(position(process, first)?, third)),
        libc::SYS_readv => (first, position(process, first)?..u64::MAX),
        libc::SYS_pread64 => (first, some(fourth, third)),
        libc::SYS_preadv | libc::SYS_preadv2 => (first, fourth..u64::MAX),
        libc::SYS_mmap if fourth & libc::MAP_ANONYMOUS as u64 == 0 => (fifth, some(sixth, second)),
        libc::SYS_copy_file_range | libc::SYS_splice => (first, 0..u64::MAX),
        libc::SYS_sendfile => (second, 0..u64::MAX),
        _ => return None,
    })
}

fn position(process: libc::pid_t, file: u64) -> Option<u64> {
    let info = std::fs::read_to_string(format!("/proc/{process}/fdinfo/{file}")).ok()?;
    let position = info.lines().find_map(|line| line.strip_prefix("pos:"))?;
    position.trim().parse().ok()
}

/// The descriptor that a system call has just opened, if the process is at the end of such a call.
fn just_opened(process: libc::pid_t) -> Option<u64> {
    let call = registers::call(process)?;
    // At the beginning of a call the answer is -ENOSYS.
    (OPENING.contains(&call.number) && (call.answer as i64) >= 0).then_some(call.answer)
}

fn written_to(process: libc::pid_t, file: u64, folder: &Path) -> Option<PathBuf> {
    let info = std::fs::read_to_string(format!("/proc/{process}/fdinfo/{file}")).ok()?;
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = i32::from_str_radix(flags.trim(), 8).ok()?;
    if flags & libc::O_ACCMODE == libc::O_RDONLY {
        return None;
    }
    let link = format!("/proc/{process}/fd/{file}");
    let metadata = std::fs::metadata(&link).ok()?;
    let path = std::fs::read_link(&link).ok()?;
    let harmless = !metadata.is_file()
        || metadata.file_type().is_char_device()
        || metadata.nlink() == 0
        || path.starts_with("/proc")
        || path.starts_with("/sys")
        || path.starts_with(folder);
    (!harmless).then_some(path)
}
