//! Instructions of each thread. While there is one thread, QEMU adds to the first counter itself.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The number of threads that are told apart; later ones count with the last.
pub const THREADS: usize = 1 << 14;

#[repr(align(64))]
struct Counter(AtomicU64);

static COUNTERS: [Counter; THREADS] = [const { Counter(AtomicU64::new(0)) }; THREADS];
/// What the kernel ran for the program's pages; apart, because by the first thread's counter a block's run is told from the next.
static KERNEL: Counter = Counter(AtomicU64::new(0));
static IN_USE: AtomicU32 = AtomicU32::new(1);

/// The index under which a thread is kept.
#[inline(always)]
pub fn number(vcpu: u32) -> u16 {
    vcpu.min(THREADS as u32 - 1) as u16
}

/// Notes a new thread.
pub fn begin(vcpu: u32) {
    IN_USE.fetch_max(u32::from(number(vcpu)) + 1, Ordering::Relaxed);
}

/// The first thread's counter, for QEMU to add to.
pub fn first() -> *mut u64 {
    COUNTERS[0].0.as_ptr()
}

/// The first thread's instructions, which are all while it is alone.
#[inline(always)]
pub fn alone() -> u64 {
    COUNTERS[0].0.load(Ordering::Relaxed)
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

/// The instructions of each thread.
pub fn each() -> impl Iterator<Item = u64> {
    let in_use = IN_USE.load(Ordering::Relaxed) as usize;
    COUNTERS[..in_use]
        .iter()
        .map(|c| c.0.load(Ordering::Relaxed))
}

/// Adds the kernel's instructions.
pub fn add_kernel(instructions: u64) {
    KERNEL.0.fetch_add(instructions, Ordering::Relaxed);
}

/// The instructions of all threads and of the kernel.
#[inline(always)]
pub fn all() -> u64 {
    let kernel = KERNEL.0.load(Ordering::Relaxed);
    if !super::threads::threaded() {
        return COUNTERS[0].0.load(Ordering::Relaxed) + kernel;
    }
    each().sum::<u64>() + kernel
}

/// Begins with the instructions of the programs before this one in this process.
pub fn resume(instructions: u64) {
    KERNEL.0.store(0, Ordering::Relaxed);
    COUNTERS[0].0.store(instructions, Ordering::Relaxed);
}

/// Begins with zero, in a child.
pub fn reset() {
    KERNEL.0.store(0, Ordering::Relaxed);
    for counter in &COUNTERS[..IN_USE.load(Ordering::Relaxed) as usize] {
        counter.0.store(0, Ordering::Relaxed);
    }
}
