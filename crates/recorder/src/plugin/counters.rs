//! The instructions of each thread. While there is one thread, QEMU itself adds to a counter of its own, which is not
//! read any more once there are several threads, because QEMU then moves it.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::api::{self, api};
use super::threads::threaded;

/// The number of threads that are counted separately; later ones count with the last.
pub const THREADS: usize = 1 << 14;

#[repr(align(64))]
struct Counter(AtomicU64);

static COUNTERS: [Counter; THREADS] = [const { Counter(AtomicU64::new(0)) }; THREADS];
static KERNEL: Counter = Counter(AtomicU64::new(0));
static IN_USE: AtomicU32 = AtomicU32::new(1);
static BOARD: AtomicPtr<std::ffi::c_void> = AtomicPtr::new(std::ptr::null_mut());
static NONE: AtomicU64 = AtomicU64::new(0);
static ALONE: AtomicPtr<AtomicU64> = AtomicPtr::new((&raw const NONE).cast_mut());

#[inline(always)]
pub fn number(vcpu: u32) -> u16 {
    vcpu.min(THREADS as u32 - 1) as u16
}

pub fn begin(vcpu: u32) {
    IN_USE.fetch_max(u32::from(number(vcpu)) + 1, Ordering::Relaxed);
    if vcpu == 0 {
        let counter = (api().counter)(alone().score, 0);
        ALONE.store(counter.cast(), Ordering::Relaxed);
    }
}

/// The only thread's counter, for QEMU to add to.
pub fn alone() -> api::Counter {
    if BOARD.load(Ordering::Relaxed).is_null() {
        let board = (api().new_scoreboard)(size_of::<u64>());
        BOARD.store(board, Ordering::Relaxed);
    }
    api::Counter {
        score: BOARD.load(Ordering::Relaxed),
        offset: 0,
    }
}

#[inline(always)]
fn counted() -> &'static AtomicU64 {
    // SAFETY: QEMU moves its counters when there are more threads than 16; this is called while there is one.
    unsafe { &*ALONE.load(Ordering::Relaxed) }
}

pub fn take() {
    if !threaded() {
        add(0, counted().swap(0, Ordering::Relaxed));
    }
}

/// Adds to a thread's counter; only that thread does so.
#[inline(always)]
pub fn add(vcpu: u32, instructions: u64) {
    let counter = &COUNTERS[usize::from(number(vcpu))].0;
    counter.store(
        counter.load(Ordering::Relaxed) + instructions,
        Ordering::Relaxed,
    );
}

pub fn each() -> impl Iterator<Item = u64> {
    take();
    let in_use = IN_USE.load(Ordering::Relaxed) as usize;
    COUNTERS[..in_use]
        .iter()
        .map(|c| c.0.load(Ordering::Relaxed))
}

pub fn add_kernel(instructions: u64) {
    KERNEL.0.fetch_add(instructions, Ordering::Relaxed);
}

#[inline(always)]
pub fn all() -> u64 {
    let kernel = KERNEL.0.load(Ordering::Relaxed);
    if !threaded() {
        let before = COUNTERS[0].0.load(Ordering::Relaxed);
        return before + counted().load(Ordering::Relaxed) + kernel;
    }
    each().sum::<u64>() + kernel
}

/// Begins with the instructions of the programs before this one in this process.
pub fn resume(instructions: u64) {
    KERNEL.0.store(0, Ordering::Relaxed);
    COUNTERS[0].0.store(instructions, Ordering::Relaxed);
}

pub fn reset() {
    take();
    KERNEL.0.store(0, Ordering::Relaxed);
    for counter in &COUNTERS[..IN_USE.load(Ordering::Relaxed) as usize] {
        counter.0.store(0, Ordering::Relaxed);
    }
}
