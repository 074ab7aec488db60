//! System calls: the kernel's reads and writes for the program, which no memory callback sees, and its changes of the
//! address space. Mappings are handled before the call, while the old contents can still be read.
//!
//! Sizes are those of the x86-64 system call interface (man 2 of each call, `include/uapi` of Linux 6.1). Marking more
//! than was written costs a record that is true; marking less would lose a write.

#![allow(non_upper_case_globals)] // SYS_read and its like

use std::ffi::c_uint;
use std::os::unix::ffi::OsStrExt;

use libc::*;

use super::api::Id;
use super::guest::{self, Area, word};
use super::state::{PluginState, Vacated};
use super::{counters, exec, ground, with};
use crate::codec::{LONGEST_TEXT, RecorderEvent};
use crate::frames::FirstContents;
use crate::maps::{FILE_LINES, FILES};
use crate::options::Level;

const PAGE: u64 = 4096;
/// The most that a buffer list of readv may have (`IOV_MAX`).
const VECTORS: u64 = 1024;
/// More bytes than any argument of an ioctl that programs commonly use.
const IOCTL: u64 = 256;

/// Calls that QEMU answers with ENOSYS though Linux has them, and why programs call them. Those that C libraries try
/// first and do without are left out.
const ABSENT: [(i64, &str); 7] = [
    (SYS_io_uring_setup, "io_uring"),
    (SYS_io_setup, "AIO"),
    (SYS_userfaultfd, "userfaultfd"),
    (SYS_ptrace, "ptrace"),
    (SYS_process_vm_readv, "process_vm_readv"),
    (SYS_process_vm_writev, "process_vm_writev"),
    (SYS_perf_event_open, "perf_event_open"),
];

fn page_up(address: u64) -> u64 {
    address.saturating_add(PAGE - 1) & !(PAGE - 1)
}

#[allow(clippy::too_many_arguments)] // QEMU's
pub extern "C" fn call(
    _: Id,
    vcpu: c_uint,
    number: i64,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    f: u64,
    _: u64,
    _: u64,
) {
    // The calls of System V's shared memory do not say how long it is.
    let b = if number == SYS_shmdt { attached(a) } else { b };
    let d = match number == SYS_shmat && c & SHM_REMAP as u64 != 0 {
        true => segment(a as i32),
        false => d,
    };
    let arguments = [a, b, c, d, e, f];
    // QEMU is asked what is mapped before our lock is taken.
    let unmaps = match number {
        SYS_munmap | SYS_mremap | SYS_shmdt => true,
        SYS_mmap => d & MAP_FIXED as u64 != 0,
        _ => false,
    };
    let end = page_up(a.saturating_add(b));
    let code = unmaps && with(|state| state.has_run(a, end));
    let areas = if number == SYS_execve || code {
        guest::areas()
    } else {
        Vec::new()
    };
    with(|state| {
        state.settle(vcpu);
        if code {
            state.unmaps_code(a, end, &areas);
        }
        let vacated = before(state, vcpu, number, arguments, &areas);
        state.calls.insert(vcpu, (arguments, vacated));
        if orders(number) {
            state.calls_system(vcpu);
        }
    });
}

/// The bytes that are mapped from this address on as one piece; 0 if nothing is.
fn attached(address: u64) -> u64 {
    let mut bytes = 0;
    guest::each_area(|area, _, _| {
        if area.start == address {
            bytes = area.end - area.start;
        }
    });
    bytes
}

/// The bytes of a segment of System V's shared memory; 0 if there is none.
fn segment(number: i32) -> u64 {
    // SAFETY: zeros are a valid `shmid_ds`, and the call fills it or fails.
    unsafe {
        let mut told: shmid_ds = std::mem::zeroed();
        match shmctl(number, IPC_STAT, &raw mut told) {
            0 => told.shm_segsz as u64,
            _ => 0,
        }
    }
}

pub extern "C" fn returned(_: Id, vcpu: c_uint, number: i64, result: i64) {
    with(|state| {
        if let Some((arguments, vacated)) = state.calls.remove(&vcpu) {
            // The kernel has no instruction of the program's, but the calls that led to it are known.
            state.out.now = Some((vcpu, 0, false));
            if number == SYS_futex {
                state.looked_at_by_system(vcpu, arguments[0]);
            }
            if is_fork(number, arguments[0]) {
                state.forked(result);
            }
            after(state, vcpu, number, arguments, result, vacated);
            state.out.now = None;
            if orders(number) {
                state.calls_system(vcpu);
            }
        }
    });
}

fn before(
    state: &mut PluginState,
    vcpu: c_uint,
    number: i64,
    a: [u64; 6],
    areas: &[Area],
) -> Vec<Vacated> {
    let end = page_up(a[0].saturating_add(a[1]));
    let vacates = match number {
        SYS_munmap | SYS_mremap | SYS_shmdt => true,
        SYS_mmap => a[3] & MAP_FIXED as u64 != 0,
        SYS_madvise => drops(state.options.level, a[2]),
        _ => false,
    };
    let mut vacated = Vec::new();
    if vacates {
        vacated.push(state.vacate(vcpu, a[0], end));
    }
    match number {
        SYS_mremap if a[3] & MREMAP_FIXED as u64 != 0 => {
            vacated.push(state.vacate(vcpu, a[4], page_up(a[4].saturating_add(a[2]))));
        }
        SYS_shmat if a[2] & SHM_REMAP as u64 != 0 => {
            vacated.push(state.vacate(vcpu, a[1], page_up(a[1].saturating_add(a[3]))));
        }
        SYS_brk if a[0] != 0 && a[0] < state.heap => {
            vacated.push(state.vacate(vcpu, page_up(a[0]), page_up(state.heap)));
        }
        SYS_mprotect if a[2] & PROT_READ as u64 == 0 => state.hide(vcpu, a[0], end),
        SYS_clone if a[0] & CLONE_VM as u64 != 0 => {
            if !is_fork(number, a[0]) {
                state.more_threads();
            }
            if a[0] & CLONE_CHILD_CLEARTID as u64 != 0 {
                state.cleared.insert(a[3]);
            }
        }
        SYS_set_tid_address => {
            state.cleared.insert(a[0]);
        }
        SYS_rt_sigaction if a[1] != 0 => {
            if let Some(handler) = word(a[1]) {
                state.code.handlers.insert(handler);
            }
        }
        SYS_setuid => exec::hand_over(&state.options, a[0] as u32),
        SYS_setreuid | SYS_setresuid => exec::hand_over(&state.options, a[1] as u32),
        SYS_exit => state.thread_ends(vcpu),
        SYS_execve => exec::before(state, a, areas),
        SYS_write | SYS_pwrite64 | SYS_sendto => {
            state.touch(vcpu, a[1], a[2], false);
        }
        _ => {}
    }
    vacated
}

/// Whether a thread may wait for another by such a call, or learn from it what another did.
fn orders(number: i64) -> bool {
    !matches!(
        number,
        SYS_sched_yield
            | SYS_getpid
            | SYS_gettid
            | SYS_getcpu
            | SYS_time
            | SYS_gettimeofday
            | SYS_clock_gettime
            | SYS_nanosleep
            | SYS_clock_nanosleep
    )
}

/// Whether a call makes a process: QEMU makes CLONE_VM with CLONE_VFORK a fork.
fn is_fork(number: i64, flags: u64) -> bool {
    let vfork = flags & CLONE_VFORK as u64 != 0;
    matches!(number, SYS_fork | SYS_vfork)
        || number == SYS_clone && (vfork || flags & CLONE_VM as u64 == 0)
}

/// Whether pages lose their contents. The kernel takes pages that were freed with MADV_FREE when it needs some, which
/// never happens here or in QEMU.
fn drops(level: Level, advice: u64) -> bool {
    const FREE: u64 = 8;
    const REMOVE: u64 = 9;
    let at_the_core = level == Level::Cpu && (advice == FREE || advice == REMOVE);
    advice == MADV_DONTNEED as u64 || at_the_core
}

fn store(state: &mut PluginState, vcpu: c_uint, address: u64, bytes: u64) {
    state.touch(vcpu, address, bytes, true);
}

/// Marks stores of `total` bytes over the `count` buffers listed at `list`.
fn store_list(state: &mut PluginState, vcpu: c_uint, list: u64, count: u64, mut total: u64) {
    for i in 0..count.min(VECTORS) {
        let at = list + i * 16;
        let (Some(base), Some(length)) = (word(at), word(at + 8)) else {
            return;
        };
        store(state, vcpu, base, length.min(total));
        total -= length.min(total);
        if total == 0 {
            return;
        }
    }
}

fn store_message(state: &mut PluginState, vcpu: c_uint, header: u64, total: u64) {
    let field = |offset| word(header + offset).unwrap_or(0);
    let (list, count) = (field(16), field(24));
    store_list(state, vcpu, list, count, total);
    let (name, length) = (field(0), field(8) & 0xFFFF_FFFF);
    store(state, vcpu, name, length);
    let (control, length) = (field(32), field(40));
    store(state, vcpu, control, length);
    store(state, vcpu, header, 56);
}

fn after(
    state: &mut PluginState,
    vcpu: c_uint,
    number: i64,
    a: [u64; 6],
    result: i64,
    vacated: Vec<Vacated>,
) {
    let interrupted = matches!(number, SYS_nanosleep | SYS_clock_nanosleep);
    if (-4095..0).contains(&result) && !interrupted {
        for vacated in vacated {
            state.put_back(vacated);
        }
        if result == -i64::from(ENOSYS) {
            state
                .refused
                .extend(ABSENT.iter().find(|(call, _)| *call == number));
        }
        return;
    }
    let got = result as u64;
    let promises = state.options.acks.filter(|acks| *acks as u64 == a[0]);
    if promises.is_some_and(|acks| state.out.promises(acks)) {
        acknowledged(state, number, a, got);
    }
    fixed(number, a, got, |argument, bytes| {
        store(state, vcpu, a[argument], bytes);
    });
    match number {
        SYS_readv | SYS_preadv | SYS_preadv2 | SYS_process_vm_readv => {
            store_list(state, vcpu, a[1], a[2], got);
        }
        SYS_recvfrom => {
            store(state, vcpu, a[1], got);
            store(state, vcpu, a[4], 128);
            store(state, vcpu, a[5], 4);
        }
        SYS_recvmsg => store_message(state, vcpu, a[1], got),
        SYS_recvmmsg => {
            for i in 0..got.min(VECTORS) {
                let header = a[1] + i * 64;
                let length = word(header + 56).unwrap_or(0) & 0xFFFF_FFFF;
                store_message(state, vcpu, header, length);
                store(state, vcpu, header, 64);
            }
        }
        SYS_getsockopt => {
            let length = word(a[4]).unwrap_or(0) & 0xFFFF_FFFF;
            store(state, vcpu, a[3], length);
            store(state, vcpu, a[4], 4);
        }
        // MS_ASYNC starts nothing, and the program cannot wait for it.
        SYS_msync if a[2] & MS_SYNC as u64 != 0 => {
            let end = page_up(a[0].saturating_add(a[1]));
            let synced = state.out.maps.clone().remove(a[0], end);
            let lines = synced
                .iter()
                .map(|(_, length, first)| (*first, length / 64));
            state.synced(vcpu, lines);
        }
        SYS_sync => state.synced(vcpu, [(FILES, u64::MAX - FILES)]),
        // A syncfs counts only for its own file, because files of the same file system are not known.
        SYS_fsync | SYS_fdatasync | SYS_syncfs => {
            if let Some(first) = file_of(state, a[0] as i32) {
                state.synced(vcpu, [(first, FILE_LINES)]);
            }
        }
        _ => mapping(state, vcpu, number, a, got, vacated),
    }
}

/// Sends the text that the program wrote to the descriptor of acknowledgements.
fn acknowledged(state: &mut PluginState, number: i64, a: [u64; 6], got: u64) {
    match number {
        SYS_write | SYS_pwrite64 | SYS_sendto => printed(state, a[1], got),
        SYS_writev | SYS_pwritev | SYS_pwritev2 => printed_list(state, a[1], a[2], got),
        SYS_sendmsg => printed_message(state, a[1], got),
        SYS_sendmmsg => {
            for i in 0..got.min(VECTORS) {
                let header = a[1] + i * 64;
                let sent = word(header + 56).unwrap_or(0) & 0xFFFF_FFFF;
                printed_message(state, header, sent);
            }
        }
        _ => {}
    }
}

fn printed_list(state: &mut PluginState, list: u64, vectors: u64, bytes: u64) {
    let mut left = bytes;
    for i in 0..vectors.min(VECTORS) {
        let at = list + i * 16;
        let (Some(base), Some(length)) = (word(at), word(at + 8)) else {
            break;
        };
        printed(state, base, length.min(left));
        left -= length.min(left);
    }
}

fn printed_message(state: &mut PluginState, header: u64, bytes: u64) {
    if let (Some(list), Some(vectors)) = (word(header + 16), word(header + 24)) {
        printed_list(state, list, vectors, bytes);
    }
}

/// Handles buffers whose size follows from the call's number: calls `give` with the argument that points there, and the
/// number of bytes.
fn fixed(number: i64, a: [u64; 6], got: u64, mut give: impl FnMut(usize, u64)) {
    let fixed: &[(usize, u64)] = match number {
        SYS_read | SYS_pread64 | SYS_readlink | SYS_getdents64 | SYS_getdents => &[(1, got)],
        SYS_listxattr | SYS_flistxattr => &[(1, got)],
        SYS_getrandom | SYS_getcwd => &[(0, got)],
        SYS_readlinkat | SYS_sched_getaffinity => &[(2, got)],
        SYS_getxattr | SYS_lgetxattr | SYS_fgetxattr => &[(2, got)],
        SYS_stat | SYS_fstat | SYS_lstat | SYS_getrusage => &[(1, 144)],
        SYS_newfstatat => &[(2, 144)],
        SYS_statx => &[(4, 256)],
        SYS_statfs | SYS_fstatfs => &[(1, 120)],
        SYS_uname => &[(0, 390)],
        SYS_sysinfo => &[(0, 112)],
        SYS_times => &[(0, 32)],
        SYS_gettimeofday => &[(0, 16), (1, 8)],
        SYS_clock_gettime | SYS_clock_getres | SYS_nanosleep | SYS_getrlimit => &[(1, 16)],
        SYS_clock_nanosleep | SYS_prlimit64 => &[(3, 16)],
        SYS_time | SYS_pipe | SYS_pipe2 => &[(0, 8)],
        SYS_socketpair => &[(3, 8)],
        SYS_accept | SYS_accept4 | SYS_getsockname | SYS_getpeername => &[(1, 128), (2, 4)],
        SYS_select | SYS_pselect6 => &[(1, 128), (2, 128), (3, 128), (4, 16)],
        SYS_rt_sigaction | SYS_setitimer => &[(2, 32)],
        SYS_rt_sigprocmask | SYS_sendfile => &[(2, 8)],
        SYS_rt_sigpending => &[(0, 8)],
        SYS_sigaltstack | SYS_capget => &[(1, 24)],
        SYS_rt_sigtimedwait => &[(1, 128)],
        SYS_wait4 => &[(1, 4), (3, 144)],
        SYS_waitid => &[(2, 128), (4, 144)],
        SYS_timer_create => &[(2, 4)],
        SYS_getitimer | SYS_timer_gettime | SYS_timerfd_gettime => &[(1, 32)],
        SYS_timer_settime | SYS_timerfd_settime => &[(3, 32)],
        SYS_sched_getparam => &[(1, 4)],
        SYS_getcpu => &[(0, 4), (1, 4)],
        SYS_getresuid | SYS_getresgid => &[(0, 4), (1, 4), (2, 4)],
        SYS_ioctl => &[(2, IOCTL)],
        SYS_fcntl if a[1] as i32 == F_GETLK => &[(2, 32)],
        SYS_arch_prctl => &[(1, 8)],
        SYS_prctl if a[0] as i32 == PR_GET_NAME => &[(1, 16)],
        SYS_clone if a[0] as i32 & CLONE_PARENT_SETTID != 0 => &[(2, 4)],
        SYS_poll | SYS_ppoll => &[(0, a[1].saturating_mul(8))],
        SYS_epoll_wait | SYS_epoll_pwait => &[(1, got.saturating_mul(12))],
        SYS_getgroups => &[(1, got.saturating_mul(4))],
        SYS_msgrcv => &[(1, got.saturating_add(8))],
        SYS_mincore => &[(2, a[1].div_ceil(PAGE))],
        _ => &[],
    };
    for &(argument, bytes) in fixed {
        give(argument, bytes);
    }
}

fn file_of(state: &PluginState, descriptor: i32) -> Option<u64> {
    // SAFETY: zeros are a valid `stat`, and the call fills it or fails.
    let stat = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (libc::fstat(descriptor, &raw mut stat) == 0).then_some(stat)
    }?;
    state.out.maps.known(stat.st_dev, stat.st_ino)
}

fn printed(state: &mut PluginState, address: u64, bytes: u64) {
    let end = address.saturating_add(bytes);
    let mut at = address;
    while at < end {
        // A piece is within a page, and no longer than an event.
        let next = end.min((at | (PAGE - 1)) + 1).min(at + LONGEST_TEXT as u64);
        if !guest::is_readable(at) {
            return;
        }
        // SAFETY: the page is the guest's and readable, and the guest waits for its call.
        let text = unsafe { std::slice::from_raw_parts(guest::host(at), (next - at) as usize) };
        let text = text.to_vec();
        state.out.tell(&RecorderEvent::Printed(text));
        at = next;
    }
}

/// Notes what a call did to the address space, from which it removed `vacated`.
fn mapping(
    state: &mut PluginState,
    vcpu: c_uint,
    number: i64,
    a: [u64; 6],
    got: u64,
    vacated: Vec<Vacated>,
) {
    state.out.thread = counters::number(vcpu);
    match number {
        SYS_mremap => {
            return moved(state, [a[0], page_up(a[1])], [got, page_up(a[2])], vacated);
        }
        SYS_brk if got >= state.heap => {
            // The mapping grew, or the call did not do what was asked.
            for vacated in vacated {
                state.put_back(vacated);
            }
            grown(state, got);
            return;
        }
        _ => {}
    }
    for mut vacated in vacated {
        if number == SYS_madvise {
            // Pages of a shared file come back as they were.
            for (start, length, line) in std::mem::take(&mut vacated.files) {
                state.out.maps.add(start, length, line);
            }
        }
        state.free(&vacated);
    }
    match number {
        SYS_munmap | SYS_shmdt => state.gone(a[0], page_up(a[0].saturating_add(a[1]))),
        SYS_mmap => {
            let end = page_up(got.saturating_add(a[1]));
            if a[3] & MAP_FIXED as u64 != 0 {
                state.gone(got, end);
            }
            let shared = a[3] & MAP_TYPE as u64 != MAP_PRIVATE as u64;
            let anonymous = a[3] & MAP_ANONYMOUS as u64 != 0;
            let contents = match (shared, anonymous) {
                (false, true) => FirstContents::Zeros,
                (true, true) => FirstContents::SharedZeros,
                (false, false) => FirstContents::Copied,
                (true, false) => FirstContents::Shared,
            };
            state.regions.set(got, end, contents);
            if shared && !anonymous {
                map_file(state, got, end - got, a[4] as i32, a[5]);
            }
        }
        SYS_mprotect if a[2] & PROT_READ as u64 != 0 => {
            state.show(a[0], page_up(a[0].saturating_add(a[1])));
        }
        SYS_madvise if drops(state.options.level, a[2]) => {
            // Pages of a shared file come back as they were.
            let end = page_up(a[0].saturating_add(a[1]));
            if state.out.maps.clone().remove(a[0], end).is_empty() {
                state.gone(a[0], end);
            }
        }
        SYS_brk => {
            state.gone(page_up(got), page_up(state.heap));
            state.heap = got;
        }
        _ => {}
    }
}

fn grown(state: &mut PluginState, end: u64) {
    if state.heap != 0 {
        (state.regions).set(page_up(state.heap), page_up(end), FirstContents::Zeros);
    }
    state.heap = end;
}

/// Moves a range from `old` to `new`: each an address and a length.
fn moved(
    state: &mut PluginState,
    [old, old_length]: [u64; 2],
    [new, new_length]: [u64; 2],
    mut vacated: Vec<Vacated>,
) {
    let target = vacated.split_off(vacated.len().min(1));
    for vacated in &target {
        state.free(vacated);
    }
    let mut left = vacated.pop().unwrap_or_default();
    let (first, kept) = (old / PAGE, new_length / PAGE);
    (state.out.frames).move_inherited(first, left.range.1, new / PAGE, kept);
    left.range = (first, first);
    let pages = std::mem::take(&mut left.pages);
    let (stay, go): (Vec<_>, Vec<_>) = pages.into_iter().partition(|(page, _)| page - first < kept);
    left.pages = go;
    state.free(&left);
    for (page, place) in stay {
        state.settle_in(page - first + new / PAGE, place);
    }
    let files = match state.options.level {
        Level::Memory => left.files,
        Level::Cpu => state.out.maps.remove(old, old + old_length),
    };
    if !files.is_empty() {
        for (at, length, line) in files {
            let length = length.min(new_length.saturating_sub(at - old));
            if length > 0 {
                state.out.maps.add(new + (at - old), length, line);
            }
        }
        // A file's mapping that grew continues in the file.
        if new_length > old_length {
            let line = state.out.maps.line(new);
            state.out.maps.remove(new, new + new_length);
            state.out.maps.add(new, new_length, line);
        }
        return;
    }
    if state.options.level == Level::Memory {
        return;
    }
    if new != old {
        let kept = old_length.min(new_length) / 64;
        state.gone(new, new + new_length);
        let (line, from) = (new / 64, old / 64);
        if !state.out.child {
            state.out.tell(&RecorderEvent::Moved {
                line,
                lines: kept,
                from,
            });
        }
        state.gone(old, old + old_length);
    } else if new_length < old_length {
        state.gone(old + new_length, old + old_length);
    }
}

/// Names the lines of a shared mapping by the file behind `descriptor`, which the guest shares with us.
fn map_file(state: &mut PluginState, start: u64, length: u64, descriptor: i32, offset: u64) {
    // SAFETY: zeros are a valid `stat`, and the call fills it or fails.
    let (stat, failed) = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        let failed = libc::fstat(descriptor, &raw mut stat) != 0;
        (stat, failed)
    };
    if failed || stat.st_mode & S_IFMT != S_IFREG {
        return;
    }
    let Some((line, new)) = state.out.maps.file(stat.st_dev, stat.st_ino) else {
        return;
    };
    let identity = (stat.st_dev, stat.st_ino);
    if new {
        let path = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).unwrap_or_default();
        state.out.tell(&RecorderEvent::File {
            line,
            bytes: stat.st_size as u64,
            identity,
            path: path.as_os_str().as_bytes().to_vec(),
        });
    }
    if let Some(folder) = &state.options.ground
        && let Err(e) = ground::keep(&mut state.grounds, descriptor, folder, identity)
    {
        let note = format!("a mapped file could not be copied before it was written: {e}");
        state.out.tell(&RecorderEvent::Note(note.into_bytes()));
    }
    state.out.tell(&RecorderEvent::Mapped {
        line: line + offset / 64,
        address: start,
        bytes: length,
    });
    state.out.maps.add(start, length, line + offset / 64);
}
