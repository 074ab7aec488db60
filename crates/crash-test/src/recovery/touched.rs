//! The pages of some files that a command has touched, so that only these are compared afterwards. Pools can be too
//! large to be compared whole.
//!
//! The command is traced. Before a process gives up a mapping of the file, or ends, the pages that are present in it
//! are read from `/proc/PID/pagemap`: every page that it wrote is among them. If it changes the file in another way
//! (write, ftruncate ..), or does what cannot be seen, all pages count as touched. Left out: systems that swap, or that
//! fill memory files with huge pages, where a written page may leave the page table.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;

use crate::interrupt::{Interrupt, LOOK_EVERY};
use crate::recovery::ending::Ended;
use crate::recovery::registers::{self, Call};

pub const PAGE: usize = 4096;

#[derive(Clone, Debug, Default)]
pub struct TouchedPages {
    pub whole: bool,
    /// The touched pages, in order: the number of the file, and that of the page.
    pub pages: Vec<(usize, usize)>,
}

impl TouchedPages {
    pub const WHOLE: TouchedPages = TouchedPages {
        whole: true,
        pages: Vec::new(),
    };
}

/// Calls that may end a mapping, before which its pages are read.
const UNMAP: &[libc::c_long] = &[
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_execveat,
    libc::SYS_remap_file_pages,
];
const WRITE: &[libc::c_long] = &[
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_sendfile,
];
const WRITE_TO_THIRD: &[libc::c_long] = &[libc::SYS_copy_file_range, libc::SYS_splice];
/// Calls after which any memory may have been written.
const ANYTHING: &[libc::c_long] = &[
    libc::SYS_truncate,
    libc::SYS_io_submit,
    libc::SYS_io_uring_setup,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_ptrace,
    libc::SYS_userfaultfd,
    libc::SYS_vmsplice,
    libc::SYS_shmat,
];
/// Marks our own `execve`, the only one that is not stopped, by its fifth argument, which the kernel ignores.
const OURS: u32 = 0x5A4D_0001;
const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_EXITKILL;
/// Little-endian x86-64 as the audit subsystem numbers it (`AUDIT_ARCH_X86_64`).
const ARCHITECTURE: u32 = 0xC000_003E;

/// Whether touched pages can be followed: the file must be in memory, nothing may swap, and pages must be small.
pub fn can_follow(file: &File) -> bool {
    // SAFETY: zeros are a valid value, and the call fills it or fails.
    let in_memory = unsafe {
        let mut told: libc::statfs = std::mem::zeroed();
        libc::fstatfs(file.as_raw_fd(), &raw mut told) == 0 && told.f_type == libc::TMPFS_MAGIC
    };
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let swaps = read("/proc/swaps").is_none_or(|text| text.lines().count() > 1);
    let huge = read("/proc/self/mounts").is_none_or(|text| {
        let tmpfs = text.lines().filter(|line| line.starts_with("tmpfs "));
        tmpfs
            .into_iter()
            .any(|line| line.contains("huge=") && !line.contains("huge=never"))
    });
    let forced = read("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
        .is_some_and(|text| text.contains("[force]"));
    in_memory && !swaps && !huge && !forced && cfg!(target_arch = "x86_64")
}

fn filter() -> Vec<libc::sock_filter> {
    let one = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let load = |at: u32| one(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at);
    let equal =
        |k: u32, jt: u8, jf: u8| one(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, jt, jf, k);
    let any_of =
        |k: u32, jt: u8, jf: u8| one(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, jt, jf, k);
    let end = |k: u32| one(libc::BPF_RET | libc::BPF_K, 0, 0, k);
    let (stop, go) = (end(libc::SECCOMP_RET_TRACE), end(libc::SECCOMP_RET_ALLOW));
    // In `seccomp_data` the call's number is at 0, the architecture at 4, and the arguments follow from 16 on, their
    // lower halves first.
    let argument = |number: u32| load(16 + 8 * number);
    let mut program = vec![load(4), equal(ARCHITECTURE, 1, 0), stop, load(0)];
    let all = [UNMAP, WRITE, WRITE_TO_THIRD, ANYTHING].concat();
    for call in all {
        program.extend([equal(call as u32, 0, 1), stop]);
    }
    // A mapping at a fixed address may replace one of the file.
    let fixed = libc::MAP_FIXED as u32;
    program.extend([
        equal(libc::SYS_mmap as u32, 0, 4),
        argument(3),
        any_of(fixed, 0, 1),
        stop,
        go,
    ]);
    // The recovery's own `execve` ends its mappings; ours comes before there are any.
    program.extend([
        equal(libc::SYS_execve as u32, 0, 4),
        argument(4),
        equal(OURS, 1, 0),
        stop,
        go,
    ]);
    program.push(go);
    program
}

fn program(word: &OsStr) -> Result<PathBuf> {
    let runs = |path: &Path| {
        path.metadata()
            .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    let found = match word.as_bytes().contains(&b'/') {
        true => Some(PathBuf::from(word)),
        false => std::env::var_os("PATH").and_then(|all| {
            let mut places = std::env::split_paths(&all).map(|place| place.join(word));
            places.find(|path| runs(path))
        }),
    };
    found.ok_or_else(|| Error::from(ErrorKind::NotFound))
}

/// Arguments of [`become_it`], made before the process is cloned, because the child may not allocate.
struct Child {
    program: CString,
    words: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    files: [libc::c_int; 3],
    filter: libc::sock_fprog,
    problem: libc::c_int,
}

/// Becomes the command, traced. It runs in the parent's memory, and the parent waits.
extern "C" fn become_it(child: *mut libc::c_void) -> libc::c_int {
    // SAFETY: system calls only, on what the parent has made; the parent waits until the new program is there.
    unsafe {
        let child = &mut *child.cast::<Child>();
        libc::setpgid(0, 0);
        for (number, &file) in child.files.iter().enumerate() {
            libc::dup2(file, number as libc::c_int);
        }
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, null_mut());
        let traced = libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const child.filter,
            ) == 0;
        if traced {
            libc::syscall(
                libc::SYS_execve,
                child.program.as_ptr(),
                child.words.as_ptr(),
                child.environment.as_ptr(),
                0usize,
                OURS as usize,
            );
        }
        child.problem = *libc::__errno_location();
        libc::_exit(127)
    }
}

/// Starts the command, stopped at its first instruction.
fn start(
    (words, environment): (&[OsString], &[OsString]),
    output: &File,
    errors: &File,
) -> Result<libc::pid_t> {
    let text = |word: &OsStr| CString::new(word.as_bytes()).map_err(Error::from);
    let texts = |words: &[OsString]| -> Result<Vec<CString>> {
        words.iter().map(|word| text(word)).collect()
    };
    let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
        let all = texts.iter().map(|text| text.as_ptr());
        all.chain([null()]).collect()
    };
    let (all, environment) = (texts(words)?, texts(environment)?);
    let nothing = File::open("/dev/null")?;
    let mut code = filter();
    let mut child = Child {
        program: text(program(&words[0])?.as_os_str())?,
        words: pointers(&all),
        environment: pointers(&environment),
        files: [nothing.as_raw_fd(), output.as_raw_fd(), errors.as_raw_fd()],
        filter: libc::sock_fprog {
            len: code.len() as u16,
            filter: code.as_mut_ptr(),
        },
        problem: 0,
    };
    let mut stack = vec![0u8; 64 << 10];
    // SAFETY: the child has a stack of its own, and this thread waits until it has left our memory; the values that it
    // reads live here. Signals are kept from it while it is in our memory.
    let process = unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let top = stack.as_mut_ptr().add(stack.len() & !15).cast();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let process = libc::clone(become_it, top, flags, (&raw mut child).cast());
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut());
        process
    };
    if process < 0 {
        return Err(Error::last_os_error());
    }
    let mut status = 0;
    // SAFETY: our own child.
    let waited = unsafe { libc::waitpid(process, &raw mut status, libc::__WALL) };
    match waited == process && libc::WIFSTOPPED(status) {
        true => Ok(process),
        false => Err(Error::from_raw_os_error(child.problem)),
    }
}

/// Waits until the other end is dropped; true if the time is over first, or the user wants an end.
pub(crate) fn waits(wait: &Receiver<()>, time: Duration, interrupt: &Interrupt) -> bool {
    let began = Instant::now();
    loop {
        let left = time.saturating_sub(began.elapsed());
        match wait.recv_timeout(left.min(LOOK_EVERY)) {
            Err(RecvTimeoutError::Timeout) if left <= LOOK_EVERY || interrupt.is_set() => {
                return true;
            }
            Err(RecvTimeoutError::Timeout) => {}
            _ => return false,
        }
    }
}

struct TracedRun {
    files: Vec<((u64, u64), usize)>,
    seen: TouchedPages,
    known: FxHashSet<libc::pid_t>,
}

impl TracedRun {
    fn is_ours(&self, metadata: &Metadata) -> bool {
        let name = (metadata.dev(), metadata.ino());
        self.files.iter().any(|(file, _)| *file == name)
    }

    /// Adds the pages that are present where the process has mapped the file.
    fn look(&mut self, process: libc::pid_t) -> Result<()> {
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps"))?;
        let ours = self.files.iter();
        let ours: Vec<_> = ours
            .map(|((_, inode), at)| (inode.to_string(), *at))
            .collect();
        let mut pagemap = None;
        for line in maps.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(range), Some(_), Some(offset), Some(_), Some(number)) = (
                words.next(),
                words.next(),
                words.next(),
                words.next(),
                words.next(),
            ) else {
                continue;
            };
            let Some(&(_, which)) = ours.iter().find(|(inode, _)| inode == number) else {
                continue;
            };
            let hex = |text: &str| u64::from_str_radix(text, 16).map_err(Error::other);
            let (from, to) = range.split_once('-').ok_or(ErrorKind::InvalidData)?;
            let (from, to, offset) = (hex(from)?, hex(to)?, hex(offset)?);
            let file = match &mut pagemap {
                Some(file) => file,
                none => none.insert(File::open(format!("/proc/{process}/pagemap"))?),
            };
            self.present(file, which, (from, to), offset)?;
        }
        Ok(())
    }

    fn present(
        &mut self,
        pagemap: &File,
        which: usize,
        (from, to): (u64, u64),
        offset: u64,
    ) -> Result<()> {
        let page = PAGE as u64;
        let mut buffer = [0u8; 64 << 10];
        let (mut at, end, first) = (from / page, to / page, offset / page);
        while at < end {
            let wanted = ((end - at) as usize * 8).min(buffer.len());
            let read = pagemap.read_at(&mut buffer[..wanted], at * 8)?;
            if read < 8 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            for (number, entry) in buffer[..read / 8 * 8].chunks_exact(8).enumerate() {
                let entry = u64::from_le_bytes(entry.try_into().expect("8 bytes"));
                // Bit 63 says that the page is present, and bit 62 that it is swapped, which a page under migration
                // counts as too.
                if entry >> 62 != 0 {
                    let page = first + at - from / page + number as u64;
                    self.seen.pages.push((which, page as usize));
                }
            }
            at += (read / 8) as u64;
        }
        Ok(())
    }

    fn at_call(&mut self, process: libc::pid_t) -> Result<()> {
        let Call {
            number: call,
            arguments: [first, _, third],
            ..
        } = registers::call(process).ok_or_else(Error::last_os_error)?;
        let descriptor = match () {
            () if WRITE.contains(&call) => first,
            () if WRITE_TO_THIRD.contains(&call) => third,
            () if UNMAP.contains(&call) || [libc::SYS_mmap, libc::SYS_execve].contains(&call) => {
                return self.look(process);
            }
            () => {
                self.seen.whole = true;
                return Ok(());
            }
        };
        let there = std::fs::metadata(format!("/proc/{process}/fd/{}", descriptor as i32));
        self.seen.whole |= there.is_ok_and(|metadata| self.is_ours(&metadata));
        Ok(())
    }

    /// Follows everything that the command starts until all has ended. Returns the status of the first process.
    fn follow(&mut self, first: libc::pid_t) -> Result<libc::c_int> {
        let (mut ended, mut looked) = (None, false);
        self.known.insert(first);
        loop {
            let mut status = 0;
            // SAFETY: waits for what this thread started or traces, and for nothing else.
            let process =
                unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
            if process < 0 {
                match Error::last_os_error() {
                    e if e.kind() == ErrorKind::Interrupted => continue,
                    _ => break,
                }
            }
            if !libc::WIFSTOPPED(status) {
                self.known.remove(&process);
                if process == first {
                    ended = Some(status);
                    // Its descendants end with it. A process that was killed may end without its exit stop, and then
                    // its pages were not seen.
                    self.seen.whole |= !looked || !self.known.is_empty();
                    for &other in &self.known {
                        // SAFETY: it is traced by us and has not been waited for.
                        unsafe { libc::kill(other, libc::SIGKILL) };
                    }
                }
                continue;
            }
            let mut pass = 0;
            match status >> 16 {
                libc::PTRACE_EVENT_SECCOMP => self.seen.whole |= self.at_call(process).is_err(),
                libc::PTRACE_EVENT_EXIT => {
                    looked |= process == first;
                    self.seen.whole |= self.look(process).is_err();
                }
                // A new child's first stop is the tracer's own SIGSTOP, which is not passed on.
                0 if self.known.insert(process) && libc::WSTOPSIG(status) == libc::SIGSTOP => {}
                0 => pass = libc::WSTOPSIG(status),
                _ => {}
            }
            // SAFETY: it is stopped and ours.
            unsafe { libc::ptrace(libc::PTRACE_CONT, process, 0, pass) };
        }
        ended.ok_or_else(|| Error::from(ErrorKind::NotFound))
    }
}

/// Runs a command, its words and its environment, within some time and memory, or until the user wants an end. Returns how it ended and the pages that
/// it touched in the given files.
///
/// # Errors
/// It cannot be started or traced.
pub fn run(
    command: (&[OsString], &[OsString]),
    (output, errors): (&File, &File),
    files: &[Option<Metadata>],
    (time, memory, interrupt): (Duration, u64, &Interrupt),
) -> Result<(Ended, TouchedPages)> {
    let first = start(command, output, errors)?;
    let limit = libc::rlimit {
        rlim_cur: memory,
        rlim_max: memory,
    };
    // SAFETY: it is stopped and ours; the limit lives through the call.
    unsafe {
        libc::prlimit(first, libc::RLIMIT_AS, &raw const limit, null_mut());
        libc::ptrace(libc::PTRACE_SETOPTIONS, first, 0, OPTIONS);
        libc::ptrace(libc::PTRACE_CONT, first, 0, 0);
    }
    let late = AtomicBool::new(false);
    let named = files.iter().enumerate();
    let named = named.filter_map(|(at, file)| Some((file.as_ref()?, at)));
    let named = named.map(|(file, at)| ((file.dev(), file.ino()), at));
    let mut run = TracedRun {
        files: named.collect(),
        seen: TouchedPages::default(),
        known: FxHashSet::default(),
    };
    let status = std::thread::scope(|scope| {
        let (over, wait) = channel::<()>();
        let late = &late;
        scope.spawn(move || {
            if waits(&wait, time, interrupt) {
                late.store(true, Ordering::Relaxed);
                // SAFETY: the group of our own child, which leads it.
                unsafe { libc::kill(-first, libc::SIGKILL) };
            }
        });
        let status = run.follow(first);
        drop(over);
        status
    })?;
    let ended = match (late.load(Ordering::Relaxed), libc::WIFEXITED(status)) {
        (true, _) => Ended::TimedOut,
        (_, true) => Ended::Status(libc::WEXITSTATUS(status)),
        (_, false) => Ended::Signal(libc::WTERMSIG(status)),
    };
    run.seen.pages.sort_unstable();
    run.seen.pages.dedup();
    Ok((ended, run.seen))
}
