//! Handles and errors: the table of all memories of the process, through which every call goes. A handle is a number,
//! so an unknown or destroyed one is an error and not a crash; no panic leaves the library.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::memory::Hosting;
use crate::problem::{Problem, problem};

const SLOTS: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 12;

struct MemorySlot {
    /// The number of memories that have lived in the slot: part of the handle, so that no two are alike.
    generation: u64,
    hosting: Option<Box<Hosting>>,
}

static TABLE: [Mutex<MemorySlot>; SLOTS] = [const {
    Mutex::new(MemorySlot {
        generation: 0,
        hosting: None,
    })
}; SLOTS];

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// The error of the calling thread's last failed call.
pub fn last_error() -> *const c_char {
    ERROR.with_borrow(|error| error.as_ptr())
}

/// Keeps the error for the calling thread.
pub fn fail(problem: Problem) {
    let text = problem.0.replace('\0', "\u{fffd}");
    ERROR.set(CString::new(text).unwrap_or_default());
}

/// Runs `call`; if it fails or panics, keeps the error and returns `failed`.
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

/// Destroys the memory, even if one of its calls has panicked.
pub fn leave(handle: u64) -> Result<Box<Hosting>, Problem> {
    let place = &TABLE[handle as usize % SLOTS];
    let mut slot = match place.try_lock() {
        Ok(slot) => slot,
        Err(TryLockError::Poisoned(slot)) => slot.into_inner(),
        Err(TryLockError::WouldBlock) => return problem(BUSY),
    };
    let hosting = check(&slot, handle).and_then(|()| slot.hosting.take().ok_or_else(none))?;
    drop(slot);
    place.clear_poison();
    Ok(hosting)
}

/// Runs `call` on the memory of `handle`; returns `failed` if it cannot. After a panic the lock stays poisoned, because
/// it is unknown what the call left undone.
pub fn with<T>(handle: u64, failed: T, call: impl FnOnce(&mut Hosting) -> Result<T, Problem>) -> T {
    guarded(failed, || {
        let mut slot = lock(&TABLE[handle as usize % SLOTS])?;
        check(&slot, handle)?;
        call(slot.hosting.as_mut().ok_or_else(none)?)
    })
}

const BUSY: &str = "another thread is using this memory; one thread at a time";

fn check(slot: &MemorySlot, handle: u64) -> Result<(), Problem> {
    match slot.generation == handle >> INDEX_BITS && handle >> INDEX_BITS > 0 {
        true => Ok(()),
        false => Err(none()),
    }
}

fn lock(slot: &'static Mutex<MemorySlot>) -> Result<MutexGuard<'static, MemorySlot>, Problem> {
    slot.try_lock().map_err(|why| match why {
        TryLockError::WouldBlock => Problem(BUSY.to_owned()),
        TryLockError::Poisoned(_) => {
            Problem("an earlier call met a bug in Sardonyx; destroy the memory".to_owned())
        }
    })
}

fn none() -> Problem {
    Problem("there is no such memory: it was never created, or destroyed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_the_memory_can_still_be_destroyed() {
        let memory = || Hosting::new("esd", "baseline", &[]).map_err(|problem| problem.0);
        let handle = enter(memory().unwrap())
            .map_err(|problem| problem.0)
            .unwrap();
        assert_eq!(with(handle, -1, |_| Ok(1)), 1);
        assert_eq!(with(handle, -1, |_| panic!("by a test")), -1);
        let said = || ERROR.with_borrow(|error| error.to_string_lossy().into_owned());
        assert_eq!(said(), "a bug in Sardonyx: by a test");
        assert_eq!(with(handle, -1, |_| Ok(1)), -1);
        assert!(said().contains("destroy the memory"), "{}", said());
        assert!(leave(handle).is_ok() && leave(handle).is_err());
        let next = enter(memory().unwrap())
            .map_err(|problem| problem.0)
            .unwrap();
        assert_ne!(next, handle);
        assert_eq!(with(next, -1, |_| Ok(1)), 1);
        assert!(leave(next).is_ok());
    }
}
