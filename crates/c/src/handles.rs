//! Handles and errors: the table of all memories of the process, and the one way in. A handle is a number, so
//! that one that is none, or that was destroyed, is an error and no crash; no panic gets out.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::memory::Hosting;

/// Memories that a process may have at a time.
const SLOTS: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 12;

struct Slot {
    /// How many have lived here: part of the handle, so that no two are alike.
    generation: u64,
    hosting: Option<Box<Hosting>>,
}

static TABLE: [Mutex<Slot>; SLOTS] = [const {
    Mutex::new(Slot {
        generation: 0,
        hosting: None,
    })
}; SLOTS];

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// What went wrong, in words.
pub struct Problem(pub String);

impl<E: std::error::Error> From<E> for Problem {
    fn from(error: E) -> Problem {
        Problem(error.to_string())
    }
}

/// An error of our own.
pub fn problem<T>(what: impl Into<String>) -> Result<T, Problem> {
    Err(Problem(what.into()))
}

/// What the calling thread's last failed call says.
pub fn last_error() -> *const c_char {
    ERROR.with_borrow(|error| error.as_ptr())
}

/// Keeps what went wrong for the calling thread.
pub fn fail(problem: Problem) {
    let text = problem.0.replace('\0', "\u{fffd}");
    ERROR.set(CString::new(text).unwrap_or_default());
}

/// Runs `call`; an error, or a panic, becomes `failed`, and its words are kept.
pub fn guarded<T>(failed: T, call: impl FnOnce() -> Result<T, Problem>) -> T {
    let done = catch_unwind(AssertUnwindSafe(call));
    match done.unwrap_or_else(|panic| Err(bug(&*panic))) {
        Ok(value) => value,
        Err(problem) => {
            fail(problem);
            failed
        }
    }
}

fn bug(panic: &(dyn Any + Send)) -> Problem {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
    Problem(format!("a bug in Sardonyx: {}", said.unwrap_or("a panic")))
}

/// Gives the memory a handle.
pub fn enter(hosting: Hosting) -> Result<u64, Problem> {
    let mut hosting = Some(Box::new(hosting));
    for (index, slot) in TABLE.iter().enumerate() {
        let Ok(mut slot) = lock(slot) else { continue };
        if slot.hosting.is_none() {
            slot.generation += 1;
            slot.hosting = hosting.take();
            return Ok(slot.generation << INDEX_BITS | index as u64);
        }
    }
    problem(format!("there are {SLOTS} memories; destroy one"))
}

/// Ends the memory.
pub fn leave(handle: u64) -> Result<Box<Hosting>, Problem> {
    let mut slot = find(handle)?;
    slot.hosting.take().ok_or_else(none)
}

/// Has `call` work on the memory of `handle`; `failed` if it cannot.
pub fn with<T>(handle: u64, failed: T, call: impl FnOnce(&mut Hosting) -> Result<T, Problem>) -> T {
    guarded(failed, || {
        let mut slot = find(handle)?;
        let hosting = slot.hosting.as_mut().ok_or_else(none)?;
        if hosting.broken {
            return problem("an earlier call met a bug in Sardonyx; destroy the memory");
        }
        let done = catch_unwind(AssertUnwindSafe(|| call(hosting)));
        done.unwrap_or_else(|panic| {
            hosting.broken = true;
            Err(bug(&*panic))
        })
    })
}

fn find(handle: u64) -> Result<MutexGuard<'static, Slot>, Problem> {
    let index = handle as usize % SLOTS;
    let slot = lock(&TABLE[index])?;
    match slot.generation == handle >> INDEX_BITS && handle >> INDEX_BITS > 0 {
        true => Ok(slot),
        false => Err(none()),
    }
}

fn lock(slot: &'static Mutex<Slot>) -> Result<MutexGuard<'static, Slot>, Problem> {
    match slot.try_lock() {
        Ok(slot) => Ok(slot),
        Err(TryLockError::Poisoned(slot)) => Ok(slot.into_inner()),
        Err(TryLockError::WouldBlock) => {
            problem("another thread is using this memory; one thread at a time")
        }
    }
}

fn none() -> Problem {
    Problem("there is no such memory: it was never created, or destroyed".to_owned())
}
