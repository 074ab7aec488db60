//! The callbacks of groups of accesses, and what they are given.
//!
//! A group is looked up before its members happen: at the beginning of its block if its address comes from the registers
//! there, else at its first member. That is right for loads. A store to come finds its line marked, unless an access between
//! the two evicts the line: then the bytes went too soon. So each callback knows which groups have stores to come after it
//! ([`Extent::stores`]), and their lines are marked again when they were evicted ([`State::settle`]).

use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::access;
use super::api::MemInfo;
use super::state::State;
use super::{counters, state, threaded};

/// Groups in a block.
pub const GROUPS: usize = 256;
/// No register.
pub const NONE: u8 = 16;

const ZERO: AtomicU64 = AtomicU64::new(0);
/// The lowest address of each group of the block that runs.
pub static LOW: [AtomicU64; GROUPS] = [ZERO; GROUPS];
/// The instructions counted when each group was looked up last.
static WHEN: [AtomicU64; GROUPS] = [ZERO; GROUPS];

/// How far a group reaches from its lowest address, and its number in the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Extent {
    /// To its last byte: less than a line.
    pub last: u8,
    /// To the first byte that is stored; more than a line if none is.
    pub first_store: u8,
    /// To the end of what is stored.
    pub end_store: u8,
    pub ordinal: u8,
}

impl Extent {
    fn stores(self) -> bool {
        self.end_store > 0
    }

    /// The one or two lines: an address and a number of bytes in each, and whether any of it is stored.
    fn lines(self, low: u64) -> impl Iterator<Item = (u64, u64, bool)> {
        let split = 64 - low % 64;
        let all = u64::from(self.last) + 1;
        let first = (low, split.min(all), u64::from(self.first_store) < split);
        let second = (
            low.wrapping_add(split),
            all.saturating_sub(split),
            u64::from(self.end_store) > split,
        );
        [first, second].into_iter().filter(|line| line.1 > 0)
    }

    /// Whether the group needs no more than a look.
    #[inline(always)]
    fn hit(self, low: u64) -> bool {
        // SAFETY: written once before any callback, and later by the only thread; the caches do not move.
        let first = unsafe { (*super::STATE.0.get()).assume_init_ref().first };
        LOW[usize::from(self.ordinal)].store(low, Relaxed);
        // SAFETY: as above.
        unsafe {
            if low % 64 + u64::from(self.last) < 64 {
                first.hit(low, self.stores())
            } else {
                let split = 64 - low % 64;
                first.hit(low, u64::from(self.first_store) < split)
                    && first.hit(low.wrapping_add(split), u64::from(self.end_store) > split)
            }
        }
    }

    fn miss(self, state: &mut State, vcpu: c_uint, low: u64) {
        self.expect(state);
        for (start, bytes, store) in self.lines(low) {
            state.access(vcpu, start, bytes, store);
        }
        state.out.to_come.clear();
    }

    /// Tells that the group has stores to come.
    fn expect(self, state: &mut State) {
        let low = LOW[usize::from(self.ordinal)].load(Relaxed);
        for (start, _, store) in self.lines(low) {
            if store {
                let line = state.out.maps.line(start);
                state.out.to_come.push(line);
            }
        }
    }
}

/// Groups that were looked up and have stores to come.
pub type Open = &'static [Extent];

/// Tells that they have stores to come.
pub fn expect(state: &mut State, open: Open) {
    for extent in open {
        extent.expect(state);
    }
}

/// A group that is looked up at the beginning of its block, and where it is: base and shifted index by their numbers, and
/// a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Entry {
    pub plus: u64,
    pub extent: Extent,
    pub base: u8,
    pub index: u8,
    pub shift: u8,
    /// The block has another after this.
    pub more: bool,
}

/// Before a block: all groups whose addresses are known there. `data` is the first of their entries.
pub extern "C" fn at_start(vcpu: c_uint, data: *mut c_void) {
    let from = data.cast::<Entry>().cast_const();
    let mut at = from;
    // SAFETY: `plan` made the entries and where QEMU keeps the registers was found before; the block has not begun.
    unsafe {
        let registers = (*super::STATE.0.get()).assume_init_ref().registers;
        loop {
            let entry = &*at;
            let mut low = entry.plus;
            if entry.base != NONE {
                low = low.wrapping_add(*registers.add(usize::from(entry.base)));
            }
            if entry.index != NONE {
                low = low.wrapping_add(*registers.add(usize::from(entry.index)) << entry.shift);
            }
            if !entry.extent.hit(low) {
                miss_at_start(vcpu, from, at, low);
            }
            if !entry.more {
                return;
            }
            at = at.add(1);
        }
    }
}

#[inline(never)]
unsafe fn miss_at_start(vcpu: c_uint, from: *const Entry, at: *const Entry, low: u64) {
    // SAFETY: see `at_start`; there is no other thread.
    unsafe {
        if threaded() { eprintln!("STALE start"); }
        let state = state();
        for before in 0..at.offset_from(from) {
            let extent = (*from.offset(before)).extent;
            if extent.stores() {
                extent.expect(state);
            }
        }
        (*at).extent.miss(state, vcpu, low);
    }
}

/// A group that is looked up at its first member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leader {
    /// From the member's address to the group's lowest.
    pub to_low: u64,
    pub extent: Extent,
    pub open: Open,
}

/// The callback of a group's first member.
pub extern "C" fn at_first(vcpu: c_uint, _: MemInfo, address: u64, data: *mut c_void) {
    // SAFETY: `plan` hands over a leader, which lives on.
    let leader = unsafe { &*data.cast::<Leader>() };
    let low = address.wrapping_add(leader.to_low);
    if !leader.extent.hit(low) {
        miss_at_first(vcpu, low, leader);
    }
}

#[inline(never)]
fn miss_at_first(vcpu: c_uint, low: u64, leader: &Leader) {
    if threaded() { eprintln!("STALE"); }
    // SAFETY: there is no other thread.
    let state = unsafe { state() };
    expect(state, leader.open);
    leader.extent.miss(state, vcpu, low);
}

/// The same for the store of an instruction that loads before.
pub extern "C" fn at_first_store(vcpu: c_uint, info: MemInfo, address: u64, data: *mut c_void) {
    if !access::stores(info) {
        access::otherwise();
    }
    at_first(vcpu, info, address, data);
}

/// The same for one that QEMU makes in parts: the first of a block's run is the one.
pub extern "C" fn at_first_part(vcpu: c_uint, info: MemInfo, address: u64, data: *mut c_void) {
    // SAFETY: as above.
    let leader = unsafe { &*data.cast::<Leader>() };
    let now = counters::alone();
    if WHEN[usize::from(leader.extent.ordinal)].swap(now, Relaxed) != now {
        at_first(vcpu, info, address, data);
    }
}
