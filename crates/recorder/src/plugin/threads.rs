//! The number of threads, one or more, and the lock that several take; and the lock between processes, if the program
//! forked and its processes are recorded in one order.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::ring::Lock;

static SEVERAL: AtomicBool = AtomicBool::new(false);
static LOCK: AtomicBool = AtomicBool::new(false);
/// The lock of the ring, once several processes write to it.
static BETWEEN: AtomicPtr<Lock> = AtomicPtr::new(null_mut());

#[inline(always)]
pub fn threaded() -> bool {
    SEVERAL.load(Ordering::Relaxed)
}

pub fn more() {
    SEVERAL.store(true, Ordering::SeqCst);
}

/// Takes the lock. It spins, because a callback that waits holds up one thread of the program, and none of QEMU's
/// locks.
pub fn lock() {
    let mut spins = 0u32;
    while LOCK.swap(true, Ordering::Acquire) {
        while LOCK.load(Ordering::Relaxed) {
            spins += 1;
            if spins.is_multiple_of(256) {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
    if let Some(between) = between() {
        between.take();
    }
}

/// Releases the lock; in a child, the lock that its parent held.
pub fn unlock() {
    if let Some(between) = between() {
        between.give_back();
    }
    LOCK.store(false, Ordering::Release);
}

fn between() -> Option<&'static Lock> {
    // SAFETY: `share` was given one that is never unmapped.
    unsafe { BETWEEN.load(Ordering::Relaxed).as_ref() }
}

pub fn shared() -> bool {
    between().is_some()
}

/// Has several processes write to the ring from now on. The caller holds the threads' lock, and now this one too.
///
/// # Safety
/// The lock is never unmapped.
pub unsafe fn share(lock: *const Lock) {
    BETWEEN.store(lock.cast_mut(), Ordering::Relaxed);
    take_between();
}

/// Takes the lock between processes in a child, which has only its parent's lock of threads.
pub fn take_between() {
    if let Some(between) = between() {
        between.take();
    }
}
