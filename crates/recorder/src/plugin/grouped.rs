//! The callbacks of groups of accesses.
//!
//! A group is looked up at its first member, before the others happen. That is right for loads. A later store finds its
//! line marked dirty already, unless an access between the two evicts the line: then its bytes left too soon. So each
//! callback knows which groups have stores to come ([`GroupLists`](super::lists::GroupLists)), and their lines are marked again
//! if they were evicted ([`PluginState::settle`]).

use std::ffi::{c_uint, c_void};

use super::access;
use super::api::MemInfo;
use super::state::PluginState;
use super::threads::threaded;
use super::word::Word;
use super::{state, with};
use crate::caches::LINE_BYTES;

pub extern "C" fn at_first(vcpu: c_uint, info: MemInfo, address: u64, data: *mut c_void) {
    let group = Word::from_pointer(data);
    let low = group.low(address);
    group.looked_up(low);
    if low % LINE_BYTES + group.last() >= LINE_BYTES {
        return in_two(vcpu, info, low, data);
    }
    if !access::hit(low, group.stores()) {
        miss(vcpu, info, low, data);
    }
}

#[inline(never)]
extern "C" fn in_two(vcpu: c_uint, info: MemInfo, low: u64, data: *mut c_void) {
    let group = Word::from_pointer(data);
    let split = LINE_BYTES - low % LINE_BYTES;
    let (below, above) = group.stores_at(split);
    if !(access::hit(low, below) && access::hit(low.wrapping_add(split), above)) {
        miss(vcpu, info, low, data);
    }
}

#[inline(never)]
extern "C" fn miss(vcpu: c_uint, _: MemInfo, low: u64, data: *mut c_void) {
    let group = Word::from_pointer(data);
    if threaded() {
        return with(|state| {
            look(state, vcpu, low, group);
            // Blocks from before should not begin after a second thread has, because QEMU compares what blocks are made
            // for. If one does, other threads could evict the line before the stores have happened, so it goes into the
            // trace at the end.
            for (start, _, _) in group.lines(low).filter(|line| line.2) {
                state.late.insert(start);
            }
        });
    }
    // SAFETY: there is no other thread.
    let state = unsafe { state() };
    let one = group.open() == 0 && low % LINE_BYTES + group.last() < LINE_BYTES;
    if one && state.alone(vcpu, low, group.stores(), group.stores()) {
        return;
    }
    if !group
        .lines(low)
        .all(|(start, _, store)| state.again(start, store))
    {
        look(state, vcpu, low, group);
    }
}

fn look(state: &mut PluginState, vcpu: c_uint, low: u64, group: Word) {
    state.begin(vcpu);
    state.expect(vcpu, group.open());
    if group.stores() {
        state.expect_stores(vcpu, group);
    }
    for (start, bytes, store) in group.lines(low) {
        state.access(vcpu, start, bytes, store);
    }
    state.out.to_come.clear();
}
