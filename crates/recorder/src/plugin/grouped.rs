//! The callbacks of groups of accesses.
//!
//! A group is looked up at its first member, before the others happen. That is right for loads. A store to come finds its line
//! marked, unless an access between the two evicts the line: then the bytes went too soon. So each callback knows which
//! groups have stores to come ([`Open`]), and their lines are marked again when they were evicted ([`State::settle`]).

use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::access;
use super::api::MemInfo;
use super::state::State;
use super::{counters, state, threaded, with};
use crate::caches::LINE_BYTES;

/// Groups in a block.
pub const GROUPS: usize = 1 << ORDINAL;

/// The lowest address of each group of the block that runs, if it has stores to come. One block runs at a time.
pub static LOW: [AtomicU64; GROUPS] = [const { AtomicU64::new(0) }; GROUPS];
/// The instructions counted when each group was looked up last.
static WHEN: [AtomicU64; GROUPS] = [const { AtomicU64::new(0) }; GROUPS];

/// Begins anew, in a child, whose instructions are counted from 0.
pub fn reset() {
    for when in &WHEN {
        when.store(0, Relaxed);
    }
}

/// Bits of a number below a line's bytes.
const BYTE: u32 = 6;
/// Bits of a group's number in its block.
const ORDINAL: u32 = 8;

/// A group as its callback is given it, in the one word that there is: to load more would cost as much as the look.
/// From the lowest bit on: how far it reaches from its lowest address to its last byte, to the first byte that is
/// stored, and to the last; how far the first member is from the lowest address; whether any member stores; the group's
/// number in the block; and the number of the list of groups with stores to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(u64);

/// What a [`Group`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// To the last byte.
    pub last: u8,
    /// To the first byte and the last that are stored.
    pub stored: Option<(u8, u8)>,
    /// To the first member.
    pub first: u8,
    /// In the block.
    pub ordinal: u8,
    /// See [`super::plan::Known::open`].
    pub open: u32,
}

impl Group {
    pub fn new(parts: Parts) -> Group {
        let (first_store, last_store) = parts.stored.unwrap_or_default();
        let mut word = u64::from(parts.open);
        word = word << ORDINAL | u64::from(parts.ordinal);
        word = word << 1 | u64::from(parts.stored.is_some());
        for byte in [parts.first, last_store, first_store, parts.last] {
            word = word << BYTE | u64::from(byte);
        }
        Group(word)
    }

    pub fn data(self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.0 as usize)
    }

    #[inline(always)]
    fn of(data: *mut c_void) -> Group {
        Group(data.addr() as u64)
    }

    #[inline(always)]
    fn byte(self, number: u32) -> u64 {
        self.0 >> (number * BYTE) & (LINE_BYTES - 1)
    }

    #[inline(always)]
    fn last(self) -> u64 {
        self.byte(0)
    }

    #[inline(always)]
    fn stores(self) -> bool {
        self.0 >> (4 * BYTE) & 1 != 0
    }

    /// Whether it stores below `split`, and from there on.
    #[inline(always)]
    fn stores_at(self, split: u64) -> (bool, bool) {
        let stores = self.stores();
        (
            stores & (self.byte(1) < split),
            stores & (self.byte(2) >= split),
        )
    }

    #[inline(always)]
    fn ordinal(self) -> usize {
        (self.0 >> (4 * BYTE + 1)) as usize % GROUPS
    }

    fn open(self) -> usize {
        (self.0 >> (4 * BYTE + 1 + ORDINAL)) as usize
    }

    /// The lowest address, from the first member's.
    #[inline(always)]
    fn low(self, address: u64) -> u64 {
        address.wrapping_sub(self.byte(3))
    }

    /// The one or two lines: an address and a number of bytes in each, and whether any of it is stored.
    fn lines(self, low: u64) -> impl Iterator<Item = (u64, u64, bool)> {
        let (split, all) = (LINE_BYTES - low % LINE_BYTES, self.last() + 1);
        let (below, above) = self.stores_at(split);
        let first = (low, split.min(all), below);
        let second = (low.wrapping_add(split), all.saturating_sub(split), above);
        [first, second].into_iter().filter(|line| line.1 > 0)
    }

    /// Tells that it has stores to come.
    pub fn expect(self, vcpu: c_uint, state: &mut State) {
        let low = LOW[self.ordinal()].load(Relaxed);
        for (start, _, store) in self.lines(low) {
            if store {
                let line = state.place(vcpu, start, true);
                state.out.to_come.push(line);
            }
        }
    }
}

/// Groups that were looked up and have stores to come.
pub type Open = Vec<Group>;

/// The callback of a group's first member.
pub extern "C" fn at_first(vcpu: c_uint, info: MemInfo, address: u64, data: *mut c_void) {
    let group = Group::of(data);
    let low = group.low(address);
    LOW[group.ordinal()].store(low, Relaxed);
    if low % LINE_BYTES + group.last() >= LINE_BYTES {
        return in_two(vcpu, info, low, data);
    }
    if !access::hit(low, group.stores()) {
        miss(vcpu, info, low, data);
    }
}

/// A group in two lines.
#[inline(never)]
extern "C" fn in_two(vcpu: c_uint, info: MemInfo, low: u64, data: *mut c_void) {
    let group = Group::of(data);
    let split = LINE_BYTES - low % LINE_BYTES;
    let (below, above) = group.stores_at(split);
    if !(access::hit(low, below) && access::hit(low.wrapping_add(split), above)) {
        miss(vcpu, info, low, data);
    }
}

#[inline(never)]
extern "C" fn miss(vcpu: c_uint, _: MemInfo, low: u64, data: *mut c_void) {
    let group = Group::of(data);
    if threaded() {
        return with(|state| {
            look(state, vcpu, low, group);
            // No block from before begins once there is a second thread: QEMU compares what blocks are made for. Should one,
            // others could evict the line before the stores have happened, so it goes into the trace at the end.
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

fn look(state: &mut State, vcpu: c_uint, low: u64, group: Group) {
    state.begin(vcpu);
    state.expect(vcpu, group.open());
    if group.stores() {
        group.expect(vcpu, state);
    }
    for (start, bytes, store) in group.lines(low) {
        state.access(vcpu, start, bytes, store);
    }
    state.out.to_come.clear();
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
    let now = counters::alone();
    if WHEN[Group::of(data).ordinal()].swap(now, Relaxed) != now {
        at_first(vcpu, info, address, data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_what_it_was_given_and_which_lines_are_stored() {
        for (last, from, to) in [
            (0, 0, 0),
            (7, 0, 7),
            (63, 0, 63),
            (63, 40, 47),
            (31, 8, 8),
            (17, 9, 16),
        ] {
            for stores in [false, true] {
                let parts = Parts {
                    last,
                    stored: stores.then_some((from, to)),
                    first: last / 2,
                    ordinal: 201,
                    open: (1 << 31) - 1,
                };
                let group = Group::of(Group::new(parts).data());
                assert_eq!((group.ordinal(), group.open()), (201, (1 << 31) - 1));
                for low in 1000..1064u64 {
                    assert_eq!(group.low(low + u64::from(last / 2)), low);
                    let mut lines: Vec<(u64, bool)> = Vec::new();
                    for byte in low..=low + u64::from(last) {
                        let stored =
                            stores && (low + u64::from(from)..=low + u64::from(to)).contains(&byte);
                        match lines.last_mut() {
                            Some((line, any)) if *line == byte / 64 => *any |= stored,
                            _ => lines.push((byte / 64, stored)),
                        }
                    }
                    let said: Vec<(u64, bool)> = group
                        .lines(low)
                        .map(|(start, _, store)| (start / 64, store))
                        .collect();
                    assert_eq!(said, lines);
                    let bytes: u64 = group.lines(low).map(|line| line.1).sum();
                    assert_eq!(bytes, u64::from(last) + 1);
                }
            }
        }
    }
}
