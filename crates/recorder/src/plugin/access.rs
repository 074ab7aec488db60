//! The callback of every load and store, and of the few instructions that have none.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{Ordering, fence};

use iced_x86::Register;

use super::api::{GByteArray, MemInfo, OnAccess, READS_AND_WRITES, STORES};
use super::state::{Flush, State};
use super::threads::{lock, threaded, unlock};
use super::{guest, state, with};
use crate::codec::Event;
use crate::group::Member;
use crate::insn;

/// QEMU 7.2 keeps in these bits of an access's description whether it stores, and the logarithm of its size; asking the
/// API each time costs as much as the rest. [`checked`] holds both against it.
#[inline(always)]
pub fn stores(info: MemInfo) -> bool {
    info & 1 << 17 != 0
}

#[inline(always)]
pub fn size(info: MemInfo) -> u64 {
    1 << (info >> 4 & 7)
}

#[inline(always)]
fn crosses(info: MemInfo, address: u64) -> bool {
    address % 64 + size(info) > 64
}

#[inline(always)]
fn checked(state: &mut State, info: MemInfo) -> (u64, bool) {
    if state.is_to_check() {
        check(state, info);
    }
    (size(info), stores(info))
}

#[cold]
fn check(state: &State, info: MemInfo) {
    let (bytes, store) = (
        1 << (state.api.size_shift)(info),
        (state.api.is_store)(info),
    );
    if (bytes, store) != (size(info), stores(info)) {
        otherwise();
    }
}

/// Ends the recording: QEMU does not behave as this was written for.
#[cold]
pub fn otherwise() -> ! {
    eprintln!("sardonyx-recorder: this QEMU describes accesses otherwise than 7.2 does");
    std::process::abort();
}

/// Whether an access of the only thread needs no more than the first core's L1; see [`First::hit`](crate::caches::First::hit).
#[inline(always)]
pub fn hit(address: u64, store: bool) -> bool {
    // SAFETY: it was written once before any callback, and later by the only thread; the caches do not move.
    unsafe {
        (*super::STATE.0.get())
            .assume_init_ref()
            .first()
            .hit(address, store)
    }
}

/// The callback of code that was translated while the program had one thread. QEMU drops such code at the second
/// thread, but not in the same moment: from then on the look at the first core's L1 finds nothing.
///
/// Nearly every access ends here, and what it costs is what a recording costs, so it asks one question only. Lines of
/// mapped files are not in the caches by their address.
pub extern "C" fn alone(vcpu: c_uint, info: MemInfo, address: u64, data: *mut c_void) {
    if crosses(info, address) || !hit(address, stores(info)) {
        slow_alone(vcpu, info, address, data);
    }
}

/// As [`alone`], for an access whose size and kind the instruction says.
extern "C" fn known<const SIZE: u64, const STORE: bool>(
    vcpu: c_uint,
    info: MemInfo,
    address: u64,
    data: *mut c_void,
) {
    if address % 64 + SIZE > 64 || !hit(address, STORE) {
        slow_alone(vcpu, info, address, data);
    }
}

/// As [`alone`], for the store of an instruction that loads before.
extern "C" fn store_after_load(vcpu: c_uint, info: MemInfo, address: u64, data: *mut c_void) {
    if !stores(info) {
        otherwise();
    }
    alone(vcpu, info, address, data);
}

/// The callback of an ungrouped access of one part, and whether it is for the loads or the stores of its instruction.
pub fn one(member: Member) -> (OnAccess, c_uint) {
    if member.loads && member.stores {
        return (store_after_load, STORES);
    }
    let callback: OnAccess = match (member.access.size, member.stores) {
        (1, false) => known::<1, false>,
        (2, false) => known::<2, false>,
        (4, false) => known::<4, false>,
        (8, false) => known::<8, false>,
        (1, true) => known::<1, true>,
        (2, true) => known::<2, true>,
        (4, true) => known::<4, true>,
        (8, true) => known::<8, true>,
        _ => alone,
    };
    (callback, READS_AND_WRITES)
}

#[inline(never)]
extern "C" fn slow_alone(vcpu: c_uint, info: MemInfo, address: u64, data: *mut c_void) {
    if threaded() {
        return among_others(vcpu, info, address, data);
    }
    // SAFETY: there is no other thread.
    let state = unsafe { state() };
    // `plan` hands over the number of a list of groups with stores to come.
    let quick = !crosses(info, address) && data.is_null();
    if quick && state.alone(vcpu, address, stores(info), false) {
        return;
    }
    if !crosses(info, address) && state.again(address, stores(info)) {
        return;
    }
    state.begin(vcpu);
    state.expect(vcpu, data.addr());
    slow(state, vcpu, info, address);
    state.out.to_come.clear();
}

#[inline(always)]
fn slow(state: &mut State, vcpu: c_uint, info: MemInfo, address: u64) {
    let (size, store) = checked(state, info);
    state.access(vcpu, address, size, store);
}

/// The callback of a load or store from the second thread on.
pub extern "C" fn among_others(vcpu: c_uint, info: MemInfo, address: u64, _: *mut c_void) {
    if stores(info) {
        // The store comes before the look at the tag, as the eviction's look at the bytes after the tag went.
        fence(Ordering::SeqCst);
    }
    // SAFETY: the list is set once, and the caches do not move.
    let first = unsafe { (*super::STATE.0.get()).assume_init_ref().first_of(vcpu) };
    // SAFETY: as above.
    if !crosses(info, address) && unsafe { first.hit(address, stores(info)) } {
        return;
    }
    lock();
    // SAFETY: the lock is held.
    slow(unsafe { state() }, vcpu, info, address);
    unlock();
}

/// At level `cpu`: every access is a record.
pub extern "C" fn at_core(vcpu: c_uint, info: MemInfo, address: u64, _: *mut c_void) {
    with(|state| {
        let (size, store) = checked(state, info);
        if info & 1 << 16 != 0 && store {
            state.access(vcpu, address, size, false); // an atomic read and write
        }
        state.access(vcpu, address, size, store);
    });
}

/// The bit in an instruction's word that says that it is locked; addresses of programs end at 2^47.
pub const LOCKED: u64 = 1 << 62;

/// Says which instruction does what `work` does.
fn at_site(vcpu: c_uint, word: *mut c_void, work: impl FnOnce(&mut State)) {
    let word = word.addr() as u64;
    with(|state| {
        state.out.now = Some((vcpu, word & !LOCKED, word & LOCKED != 0));
        work(state);
        state.out.now = None;
    });
}

/// As [`at_core`], with sites: `word` is the instruction's address, and whether it is locked.
pub extern "C" fn at_core_site(vcpu: c_uint, info: MemInfo, address: u64, word: *mut c_void) {
    at_site(vcpu, word, |state| {
        let (size, store) = checked(state, info);
        if store && word.addr() as u64 & LOCKED != 0 {
            state.fence(vcpu);
        }
        if info & 1 << 16 != 0 && store {
            state.access(vcpu, address, size, false); // an atomic read and write
        }
        state.access(vcpu, address, size, store);
    });
}

/// As [`at_core_site`], of a call.
pub extern "C" fn at_call(vcpu: c_uint, info: MemInfo, address: u64, word: *mut c_void) {
    if stores(info) {
        with(|state| {
            if let Some(sites) = &mut state.out.sites {
                sites.call(vcpu, word.addr() as u64, address);
            }
        });
    }
    at_core(vcpu, info, address, word);
}

/// As [`at_core_site`], of a return.
pub extern "C" fn at_return(vcpu: c_uint, info: MemInfo, address: u64, word: *mut c_void) {
    with(|state| {
        if let Some(sites) = &mut state.out.sites {
            sites.returned(vcpu, address);
        }
    });
    at_core(vcpu, info, address, word);
}

/// At a mark of `sardonyx.h`: the text is where rax points to.
pub extern "C" fn at_mark(vcpu: c_uint, _: *mut c_void) {
    with(|state| {
        let text = read(state, vcpu, Register::RAX);
        if let Some(text) = guest::text(&state.api, text) {
            state.out.tell(&Event::Mark(text));
        }
    });
}

/// As [`past_caches`], with sites.
pub extern "C" fn past_caches_site(vcpu: c_uint, info: MemInfo, address: u64, word: *mut c_void) {
    at_site(vcpu, word, |state| match checked(state, info) {
        (size, true) => state.past_caches(vcpu, address, size),
        (size, false) => state.access(vcpu, address, size, false),
    });
}

/// A store of an instruction that goes past the caches.
pub extern "C" fn past_caches(vcpu: c_uint, info: MemInfo, address: u64, _: *mut c_void) {
    with(|state| match checked(state, info) {
        (size, true) => state.past_caches(vcpu, address, size),
        (size, false) => state.access(vcpu, address, size, false),
    });
}

/// Before sfence and mfence.
pub extern "C" fn at_fence(vcpu: c_uint, word: *mut c_void) {
    at_site(vcpu, word, |state| state.fence(vcpu));
}

/// Before clwb, clflush and clflushopt.
pub extern "C" fn at_flush(vcpu: c_uint, flush: *mut c_void) {
    // SAFETY: `translate` hands over one that is leaked.
    let flush = unsafe { &*flush.cast::<Flush>() };
    let word = std::ptr::without_provenance_mut(flush.pc as usize);
    at_site(vcpu, word, |state| {
        let address = insn::operand(&flush.instruction, |register| read(state, vcpu, register));
        state.flush(vcpu, flush.code, address);
    });
}

/// Bytes of a signal's frame with the vector registers that QEMU has (3,200 seen), rounded up.
const FRAME: u64 = 4096;

/// Before the first block of a signal handler: a frame has just been written above its stack pointer.
pub extern "C" fn at_handler(vcpu: c_uint, _: *mut c_void) {
    with(|state| {
        let stack = read(state, vcpu, Register::RSP);
        state.touch(vcpu, stack, FRAME, true);
        state.calls_system(vcpu); // another thread may have sent the signal
    });
}

/// A thread's register or a segment's base, through the interface that QEMU has for debuggers.
fn read(state: &State, vcpu: c_uint, register: Register) -> u64 {
    // GDB's order is rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8..r15 (gdb/features/i386/64bit-core.xml);
    // gdb/features/i386/64bit-segments.xml follows the 16 registers, rip, eflags and six selectors.
    const GDB: [c_int; 8] = [0, 2, 3, 1, 7, 6, 4, 5];
    let number = match register {
        Register::FS => 24,
        Register::GS => 25,
        general => (GDB.get(general.number()).copied()).unwrap_or(general.number() as c_int),
    };
    thread_local!(static BYTES: Cell<*mut GByteArray> = const { Cell::new(null_mut()) });
    let api = &state.api;
    BYTES.with(|bytes| {
        if bytes.get().is_null() {
            bytes.set((api.new_bytes)());
        }
        (api.set_length)(bytes.get(), 0);
        (api.read_register)((api.cpu)(vcpu as c_int), bytes.get(), number);
        // SAFETY: the array is this thread's; QEMU has appended a register of at least 8 bytes if the length says so.
        unsafe {
            match (*bytes.get()).len {
                8.. => (*bytes.get()).data.cast::<u64>().read_unaligned(),
                _ => 0,
            }
        }
    })
}
