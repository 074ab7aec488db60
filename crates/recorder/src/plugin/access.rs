//! The callbacks of every load and store, and of the few instructions that have none. Loads and stores have callbacks
//! of their own, so that no callback has to check which it is.

use std::cell::Cell;
use std::ffi::{CStr, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, fence};

use iced_x86::Register;

use super::api::{GArray, MemInfo, OnAccess, api};
use super::state::{Flush, PluginState};
use super::threads::{lock, threaded, unlock};
use super::{guest, state, with};
use crate::codec::RecorderEvent;
use crate::group::Member;
use crate::insn;

/// The largest access that has one callback, in bytes.
const LARGEST: u64 = 16;

#[inline(always)]
pub fn size(info: MemInfo) -> u64 {
    1 << (api().size_shift)(info)
}

/// Whether an access reaches into the next line; QEMU is asked for the size only if that matters.
#[inline(always)]
fn crosses(info: MemInfo, address: u64) -> bool {
    address % 64 > 64 - LARGEST && address % 64 + size(info) > 64
}

/// Whether an access of the only thread is a hit in the first core's L1; see
/// [`FirstLevel::hit`](crate::caches::FirstLevel::hit).
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
/// Nearly every access ends here, and its cost is the cost of a recording, so it makes one check only. Lines of mapped
/// files are not in the caches by their address.
pub extern "C" fn alone<const STORE: bool>(
    vcpu: c_uint,
    info: MemInfo,
    address: u64,
    data: *mut c_void,
) {
    if crosses(info, address) || !hit(address, STORE) {
        slow_alone::<STORE>(vcpu, info, address, data);
    }
}

/// The callback [`alone`] for an access whose size follows from the instruction.
extern "C" fn known<const SIZE: u64, const STORE: bool>(
    vcpu: c_uint,
    info: MemInfo,
    address: u64,
    data: *mut c_void,
) {
    if address % 64 + SIZE > 64 || !hit(address, STORE) {
        slow_alone::<STORE>(vcpu, info, address, data);
    }
}

/// The callback of an ungrouped access of at most 8 bytes. For an instruction that loads and then stores it is the
/// store's.
pub fn one(member: Member) -> OnAccess {
    match (member.access.size, member.stores) {
        (1, false) => known::<1, false>,
        (2, false) => known::<2, false>,
        (4, false) => known::<4, false>,
        (_, false) => known::<8, false>,
        (1, true) => known::<1, true>,
        (2, true) => known::<2, true>,
        (4, true) => known::<4, true>,
        (_, true) => known::<8, true>,
    }
}

#[inline(never)]
extern "C" fn slow_alone<const STORE: bool>(
    vcpu: c_uint,
    info: MemInfo,
    address: u64,
    data: *mut c_void,
) {
    if threaded() {
        return among_others::<STORE>(vcpu, info, address, data);
    }
    // SAFETY: there is no other thread.
    let state = unsafe { state() };
    // `plan` passes the number of a list of groups with stores to come.
    let quick = !crosses(info, address) && data.is_null();
    if quick && state.alone(vcpu, address, STORE, false) {
        return;
    }
    if !crosses(info, address) && state.again(address, STORE) {
        return;
    }
    state.begin(vcpu);
    state.expect(vcpu, data.addr());
    state.access(vcpu, address, size(info), STORE);
    state.out.to_come.clear();
}

/// The callback of a load or store from the second thread on.
pub extern "C" fn among_others<const STORE: bool>(
    vcpu: c_uint,
    info: MemInfo,
    address: u64,
    _: *mut c_void,
) {
    if STORE {
        // The store comes before the look at the tag, just as the eviction reads the bytes after the tag went.
        fence(Ordering::SeqCst);
    }
    // SAFETY: the list is set once, and the caches do not move.
    let first = unsafe { (*super::STATE.0.get()).assume_init_ref().first_of(vcpu) };
    // SAFETY: the list is set once, and the caches do not move.
    if !crosses(info, address) && unsafe { first.hit(address, STORE) } {
        return;
    }
    lock();
    // SAFETY: the lock is held.
    unsafe { state() }.access(vcpu, address, size(info), STORE);
    unlock();
}

/// The callback at level `cpu`, where every access is a record. An instruction that loads and stores at once loads
/// first.
pub extern "C" fn at_core<const STORE: bool>(
    vcpu: c_uint,
    info: MemInfo,
    address: u64,
    _: *mut c_void,
) {
    with(|state| state.access(vcpu, address, size(info), STORE));
}

/// The bit in an instruction's word that says that it is locked; addresses of programs end at 2^47.
pub const LOCKED: u64 = 1 << 62;

fn at_site(vcpu: c_uint, word: *mut c_void, work: impl FnOnce(&mut PluginState)) {
    let word = word.addr() as u64;
    let rest = with(|state| {
        state.out.now = Some((vcpu, word & !LOCKED, word & LOCKED != 0));
        work(state);
        state.out.now = None;
        std::mem::take(&mut state.out.rest).then_some(state.out.resting)
    });
    if let Some(rest) = rest {
        std::thread::sleep(rest);
    }
}

/// The callback [`at_core`] with sites: `word` has the instruction's address, and whether it is locked.
pub extern "C" fn at_core_site<const STORE: bool>(
    vcpu: c_uint,
    info: MemInfo,
    address: u64,
    word: *mut c_void,
) {
    at_site(vcpu, word, |state| {
        if STORE && word.addr() as u64 & LOCKED != 0 {
            state.fence(vcpu);
        }
        state.access(vcpu, address, size(info), STORE);
    });
}

/// The callback [`at_core_site`] for the store of a call.
pub extern "C" fn at_call(vcpu: c_uint, info: MemInfo, address: u64, word: *mut c_void) {
    with(|state| {
        if let Some(sites) = &mut state.out.sites {
            sites.call(vcpu, word.addr() as u64, address);
        }
    });
    at_core::<true>(vcpu, info, address, word);
}

/// The callback [`at_core_site`] for the load of a return.
pub extern "C" fn at_return(vcpu: c_uint, info: MemInfo, address: u64, word: *mut c_void) {
    with(|state| {
        if let Some(sites) = &mut state.out.sites {
            sites.returned(vcpu, address);
        }
    });
    at_core::<false>(vcpu, info, address, word);
}

/// The callback at a mark of `sardonyx.h`: rax points to the text.
pub extern "C" fn at_mark(_: c_uint, _: *mut c_void) {
    with(|state| {
        if let Some(text) = guest::text(read(Register::RAX)) {
            state.out.tell(&RecorderEvent::Mark(text));
        }
    });
}

pub extern "C" fn past_caches_site(vcpu: c_uint, info: MemInfo, address: u64, word: *mut c_void) {
    at_site(vcpu, word, |state| {
        state.past_caches(vcpu, address, size(info));
    });
}

pub extern "C" fn past_caches(vcpu: c_uint, info: MemInfo, address: u64, _: *mut c_void) {
    with(|state| state.past_caches(vcpu, address, size(info)));
}

pub extern "C" fn at_fence(vcpu: c_uint, word: *mut c_void) {
    at_site(vcpu, word, |state| state.fence(vcpu));
}

pub extern "C" fn at_flush(vcpu: c_uint, flush: *mut c_void) {
    // SAFETY: `translate` passes a reference that is leaked.
    let flush = unsafe { &*flush.cast::<Flush>() };
    let word = std::ptr::without_provenance_mut(flush.pc as usize);
    at_site(vcpu, word, |state| {
        let address = insn::operand(&flush.instruction, read);
        state.flush(vcpu, flush.code, address);
    });
}

pub extern "C" fn at_unseen(vcpu: c_uint, flush: *mut c_void) {
    // SAFETY: `translate` passes a reference that is leaked.
    let Flush {
        instruction, pc, ..
    } = unsafe { &*flush.cast::<Flush>() };
    let word = std::ptr::without_provenance_mut(*pc as usize);
    at_site(vcpu, word, |state| {
        let address = insn::operand(instruction, read);
        let mask = read(Register::RDX) << 32 | read(Register::RAX) & 0xFFFF_FFFF;
        let bytes = insn::unseen_bytes(instruction, mask);
        match insn::kind(instruction) {
            insn::InstructionKind::Unseen { stores: true } => {
                state.will_store(vcpu, address, bytes)
            }
            _ => state.touch(vcpu, address, bytes, false),
        }
    });
}

/// Bytes of a signal's frame with the vector registers that QEMU has (3,200 seen), rounded up.
const FRAME: u64 = 4096;

/// The callback before the first block of a signal handler: a frame has just been written above its stack pointer.
pub extern "C" fn at_handler(vcpu: c_uint, _: *mut c_void) {
    with(|state| {
        state.touch(vcpu, read(Register::RSP), FRAME, true);
        state.calls_system(vcpu); // another thread may have sent the signal
    });
}

const NAMES: [&CStr; 18] = [
    c"rax", c"rcx", c"rdx", c"rbx", c"rsp", c"rbp", c"rsi", c"rdi", c"r8", c"r9", c"r10", c"r11",
    c"r12", c"r13", c"r14", c"r15", c"fs_base", c"gs_base",
];

/// QEMU's handles of the registers, 0 for a missing one.
static HANDLES: OnceLock<[usize; NAMES.len()]> = OnceLock::new();

/// Finds the registers, once there is a thread that has them.
pub fn find_registers() {
    HANDLES.get_or_init(|| {
        // SAFETY: QEMU makes an array for us, with names that live on; no other code has it.
        let registers = unsafe {
            let array = &*(api().registers)();
            std::slice::from_raw_parts(array.data, array.len as usize)
        };
        NAMES.map(|name| {
            // SAFETY: the array's names are C strings that live on.
            let named = registers
                .iter()
                .find(|r| unsafe { CStr::from_ptr(r.name) } == name);
            named.map_or(0, |register| register.handle.expose_provenance())
        })
    });
}

fn read(register: Register) -> u64 {
    let number = match register {
        Register::FS => 16,
        Register::GS => 17,
        general => general.number(),
    };
    let handle = HANDLES.get().map_or(0, |handles| handles[number]);
    thread_local!(static BYTES: Cell<*mut GArray<u8>> = const { Cell::new(null_mut()) });
    let bytes = BYTES.get();
    let bytes = if bytes.is_null() {
        (api().new_bytes)()
    } else {
        bytes
    };
    BYTES.set(bytes);
    (api().set_length)(bytes, 0);
    (api().read_register)(std::ptr::with_exposed_provenance_mut(handle), bytes);
    // SAFETY: the array is this thread's; QEMU has appended a register of at least 8 bytes if the length says so.
    unsafe {
        match (*bytes).len {
            8.. => (*bytes).data.cast::<u64>().read_unaligned(),
            _ => 0,
        }
    }
}
