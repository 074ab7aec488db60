//! Whether the program has more than one thread, and the lock that its threads then take.

use std::sync::atomic::{AtomicBool, Ordering};

static SEVERAL: AtomicBool = AtomicBool::new(false);
static LOCK: AtomicBool = AtomicBool::new(false);

/// Whether the program has, or had, more than one thread.
#[inline(always)]
pub fn threaded() -> bool {
    SEVERAL.load(Ordering::Relaxed)
}

/// Another thread is about to begin.
pub fn more() {
    SEVERAL.store(true, Ordering::SeqCst);
}

/// Takes the lock. It spins: a callback that waits holds up one thread of the program, and none of QEMU's locks.
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
}

/// Gives it back; in a child its parent's.
pub fn unlock() {
    LOCK.store(false, Ordering::Release);
}
