//! The functions that QEMU calls. The state is one static: while the program has one thread nothing else can touch it,
//! and from its second thread on (`threads`) everything except a look at a core's own L1 happens under one lock.
//!
//! QEMU translates all code again when a program gets its second thread, so each callback knows which of the two it is
//! in.

mod access;
mod api;
mod counters;
mod exec;
mod ground;
mod grouped;
mod guest;
mod kernel;
mod lists;
mod out;
mod plan;
mod sites;
mod state;
mod threads;
mod translate;
mod verify;
mod word;

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::atomic::Ordering;

use api::{Id, Info, api};
use exec::ExecState;
use out::Out;
use state::PluginState;
use threads::{lock, unlock};
use verify::CheckCounts;

use crate::codec::RecorderEvent;
use crate::options::{CHECK, PluginOptions, READY};
use crate::ring::{FIRST, Ring};

/// The version of the interface; QEMU looks at it before anything else.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static qemu_plugin_version: c_int = api::VERSION;

struct Global(UnsafeCell<MaybeUninit<PluginState>>);

// SAFETY: see the head of this file; only `state` touches it.
unsafe impl Sync for Global {}

static STATE: Global = Global(UnsafeCell::new(MaybeUninit::uninit()));

/// Returns the state.
///
/// # Safety
/// The caller is the program's only thread or holds the lock, and keeps no other reference.
#[inline(always)]
unsafe fn state() -> &'static mut PluginState {
    // SAFETY: `qemu_plugin_install` has written it before any callback; exclusive by the caller's promise.
    unsafe { (*STATE.0.get()).assume_init_mut() }
}

fn with<T>(work: impl FnOnce(&mut PluginState) -> T) -> T {
    lock();
    // SAFETY: the lock is held, and the only user of the state without it runs while there is no other thread.
    let result = work(unsafe { state() });
    unlock();
    result
}

extern "C" fn before_fork() {
    lock();
    // SAFETY: the lock is held.
    unsafe { state() }.forks();
}

extern "C" fn after_fork_in_parent() {
    // SAFETY: the lock is held since before the fork.
    unsafe { state() }.count_child();
    unlock();
}

extern "C" fn after_fork_in_child() {
    // SAFETY: a new process has one thread, and its parent's lock is ours.
    unsafe { state() }.restart_in_child();
    unlock();
}

extern "C" fn at_exit(_: Id, _: *mut c_void) {
    let areas = guest::areas();
    with(|state| state.finish(&RecorderEvent::End, &areas));
}

/// Installs the plugin; QEMU's first call.
///
/// # Safety
/// QEMU calls it once, with `argc` C strings in `argv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: as promised by QEMU.
    let (target, arguments) = unsafe {
        let arguments: Vec<String> = (0..argc as usize)
            .map(|i| CStr::from_ptr(*argv.add(i)).to_string_lossy().into_owned())
            .collect();
        (CStr::from_ptr((*info).target_name), arguments)
    };
    match install(id, target, &arguments) {
        Ok(()) => 0,
        Err(problem) => {
            eprintln!("sardonyx-recorder: {problem}");
            1
        }
    }
}

/// Has the kernel end this process, the parent's child, when the recorder dies. The program's own children end as they
/// would without a recorder.
fn die_with(recorder: u32) -> Result<(), String> {
    // SAFETY: system calls without memory.
    let parent = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::getppid()
    };
    match parent as u32 == recorder || Ring::lives(recorder) {
        true => Ok(()),
        false => Err("the recorder is dead".to_owned()),
    }
}

fn install(id: Id, target: &CStr, arguments: &[String]) -> Result<(), String> {
    if target != c"x86_64" {
        return Err(format!("it runs programs for {}", target.to_string_lossy()));
    }
    api::find()?;
    if !guest::is_readable((&raw const STATE).addr() as u64) {
        return Err(
            "the kernel refuses process_vm_readv, by which it reads memory; allow it here"
                .to_owned(),
        );
    }
    if arguments == [CHECK] {
        println!("{READY}");
        std::process::exit(0);
    }
    let options = PluginOptions::parse(arguments)?;
    let left = ExecState::take(&options.folder);
    // A child that has become another program has a ring of its own, and ends as it would without a recorder.
    let own = Path::new(&options.folder).join(Ring::name(std::process::id()));
    let first = Path::new(&options.folder).join(FIRST);
    let child = left.as_ref().is_some_and(ExecState::is_of_child);
    let path = match own.exists() {
        true => own,
        false if child => first,
        false => {
            die_with(options.reader)?;
            first
        }
    };
    let ring = Ring::open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let header = ring.header();
    if header.shared.load(Ordering::Acquire) != 0 {
        // The program before this one in this process had forked. A shared ring is never unmapped.
        // SAFETY: see `Out::close`.
        unsafe { threads::share(&raw const header.lock) };
    }
    if !child {
        header.writer.store(std::process::id(), Ordering::Relaxed);
    }
    header.begun.store(1, Ordering::Release);
    let ring = ring.resumed();
    let out = Out::new(ring, &options);
    let mut state = PluginState::new(options, out)?;
    state.checked = std::env::var_os(verify::VARIABLE).map(|_| CheckCounts::default());
    if let Some(left) = left {
        left.resume(&mut state);
    }
    if threads::shared() {
        threads::unlock();
    }
    // SAFETY: no callback is registered yet, so no other code reads it.
    unsafe { (*STATE.0.get()).write(state) };
    // SAFETY: the handlers are functions that live as long as the process.
    unsafe {
        libc::pthread_atfork(
            Some(before_fork),
            Some(after_fork_in_parent),
            Some(after_fork_in_child),
        );
    }
    (api().on_vcpu_init)(id, translate::vcpu_begins);
    (api().on_translation)(id, translate::block);
    (api().on_syscall)(id, kernel::call);
    (api().on_return)(id, kernel::returned);
    (api().on_exit)(id, at_exit, std::ptr::null_mut());
    Ok(())
}
