//! What the callbacks of a block's groups are given, and the callbacks of their leaders.
//!
//! A leader looks up its group's lines before its other members happen. That is right for loads. A store to come finds its
//! line marked, unless an access between the two evicts the line: then its bytes went too soon. So each callback that may
//! evict knows which groups still have stores to come ([`Site`]), and the state owes their lines a second mark.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;

use super::access;
use super::api::{MemInfo, OnAccess, READS_AND_WRITES, STORES};
use super::state::State;
use super::{counters, state, threaded};
use crate::flow::Use;
use crate::group::{self, Group, Member};

/// What a group is to its leader's callback. Blocks share them: of one block no two groups have the same, and one block runs
/// at a time.
#[repr(C)]
pub struct Leader {
    /// From the leader's address to the group's lowest.
    low: u64,
    /// From the lowest address to the last.
    last: u64,
    /// Whether any member stores.
    stores: bool,
    /// From the lowest address to the first that is stored.
    first_store: u64,
    /// From the lowest address to the end of what is stored.
    end_store: u64,
    /// The leader's address at its latest use.
    at: Cell<u64>,
    /// Instructions before the block's end at that use.
    when: Cell<u64>,
    site: Site,
}

/// Groups whose stores are not over at an access.
pub type Site = &'static [&'static Leader];

#[derive(Clone, PartialEq, Eq, Hash)]
struct Shape {
    ordinal: usize,
    low: u64,
    last: u64,
    stores: Option<(u64, u64)>,
    site: Vec<usize>,
}

/// All leaders and sites there are.
#[derive(Default)]
pub struct Known {
    leaders: HashMap<Shape, &'static Leader>,
    sites: HashMap<Vec<usize>, &'static Site>,
}

/// A callback to ask for.
pub struct Request {
    pub callback: OnAccess,
    /// `QEMU_PLUGIN_MEM_R`, `QEMU_PLUGIN_MEM_W` or both.
    pub sides: c_uint,
    pub data: *mut c_void,
}


impl Known {
    fn site(&mut self, open: &[&'static Leader]) -> *mut c_void {
        if open.is_empty() {
            return null_mut();
        }
        let key = open.iter().map(|l| std::ptr::from_ref(*l) as usize);
        let site = self.sites.entry(key.collect()).or_insert_with(|| {
            let site: Site = Box::leak(open.to_vec().into());
            Box::leak(Box::new(site))
        });
        std::ptr::from_ref(*site).cast_mut().cast()
    }

    fn leader(
        &mut self,
        ordinal: usize,
        group: &Group,
        open: &[&'static Leader],
    ) -> &'static Leader {
        let stored = group.members.iter().filter(|m| m.stores);
        let from = |m: &Member| m.access.distance.wrapping_sub(group.low);
        let first = stored.clone().map(from).min();
        let end = stored.map(|m| from(m) + u64::from(m.access.size)).max();
        let shape = Shape {
            ordinal,
            low: group.low.wrapping_sub(group.members[0].access.distance),
            last: group.span - 1,
            stores: first.zip(end),
            site: open.iter().map(|l| std::ptr::from_ref(*l) as usize).collect(),
        };
        self.leaders.entry(shape).or_insert_with_key(|shape| {
            Box::leak(Box::new(Leader {
                low: shape.low,
                last: shape.last,
                stores: first.is_some(),
                first_store: first.unwrap_or(u64::MAX),
                end_store: end.unwrap_or(0),
                at: Cell::new(0),
                when: Cell::new(u64::MAX),
                site: Box::leak(open.to_vec().into()),
            }))
        })
    }

    /// The callback of each instruction of a block, if it has one.
    pub fn plan(&mut self, block: &[Use], apart: bool) -> Vec<Option<Request>> {
        let groups = group::groups(block, apart);
        let mut rest = groups.iter().enumerate().peekable();
        let mut led: Vec<(usize, &'static Leader)> = Vec::new();
        let mut grouped = vec![false; block.len()];
        for member in groups.iter().flat_map(|group| &group.members) {
            grouped[member.insn] = true;
        }
        let mut plan = Vec::new();
        for insn in 0..block.len() {
            let open: Vec<&'static Leader> =
                led.iter().filter(|(last, _)| insn <= *last).map(|l| l.1).collect();
            let single = |first: &Member| if first.loads && first.stores {
                (access::alone_store as OnAccess, STORES)
            } else {
                (access::alone as OnAccess, READS_AND_WRITES)
            };
            let led_here = rest.next_if(|(_, group)| group.members[0].insn == insn);
            plan.push(match led_here {
                None if grouped[insn] => None,
                None => Some(Request { callback: access::alone, sides: READS_AND_WRITES, data: self.site(&open) }),
                Some((_, group)) if group.members.len() == 1 && group.members[0].access.parts() == 1 => {
                    let (callback, sides) = single(&group.members[0]);
                    Some(Request { callback, sides, data: self.site(&open) })
                }
                Some((ordinal, group)) => {
                    let first = group.members[0];
                    let leader = self.leader(ordinal, group, &open);
                    if let Some(last) = group.last_store() {
                        led.push((last, leader));
                    }
                    let (callback, sides): (OnAccess, _) = match (first.access.parts(), first.loads && first.stores) {
                        (1, true) => (led_by_store, STORES),
                        (1, false) => (led_by_one, READS_AND_WRITES),
                        _ => (led_by_parts, READS_AND_WRITES),
                    };
                    Some(Request { callback, sides, data: std::ptr::from_ref(leader).cast_mut().cast() })
                }
            });
        }
        plan
    }
}

impl Leader {
    /// The lines from `at` on: an address and a number of bytes in each, and whether any of it is stored.
    fn lines(&self, at: u64) -> impl Iterator<Item = (u64, u64, bool)> {
        let low = at.wrapping_add(self.low);
        let split = 64 - low % 64;
        let first = (low, split.min(self.last + 1), self.first_store < split);
        let second = (low.wrapping_add(split), (self.last + 1).saturating_sub(split), self.end_store > split);
        [first, second].into_iter().filter(|line| line.1 > 0)
    }
}

/// The callback of a group whose leader is one access.
pub extern "C" fn led_by_one(vcpu: c_uint, info: MemInfo, address: u64, data: *mut c_void) {
    // SAFETY: `plan` hands over a leader, which lives on.
    let leader = unsafe { &*data.cast::<Leader>() };
    // SAFETY: written once before any callback, and later by the only thread; the caches do not move.
    let first = unsafe { (*super::STATE.0.get()).assume_init_ref().first };
    leader.at.set(address);
    let low = address.wrapping_add(leader.low);
    let within = low % 64 + leader.last;
    // SAFETY: as above.
    let hit = unsafe {
        if within < 64 {
            first.hit(low, leader.stores)
        } else {
            let split = 64 - low % 64;
            first.hit(low, leader.first_store < split)
                && first.hit(low.wrapping_add(split), leader.end_store > split)
        }
    };
    if !hit {
        slow(vcpu, info, address, data);
    }
}

/// The same for the store of an instruction that loads before.
pub extern "C" fn led_by_store(vcpu: c_uint, info: MemInfo, address: u64, data: *mut c_void) {
    if !access::stores(info) {
        access::otherwise();
    }
    led_by_one(vcpu, info, address, data);
}

/// The same for one that QEMU makes in parts: the first of a block's run is the one.
pub extern "C" fn led_by_parts(vcpu: c_uint, info: MemInfo, address: u64, data: *mut c_void) {
    // SAFETY: as above.
    let leader = unsafe { &*data.cast::<Leader>() };
    let now = counters::alone();
    if leader.when.replace(now) != now {
        led_by_one(vcpu, info, address, data);
    }
}

#[inline(never)]
extern "C" fn slow(vcpu: c_uint, _: MemInfo, address: u64, data: *mut c_void) {
    // SAFETY: as above.
    let leader = unsafe { &*data.cast::<Leader>() };
    if threaded() {
        eprintln!("STALE");
    }
    // SAFETY: there is no other thread.
    let state = unsafe { state() };
    expect(state, leader.site);
    for (start, bytes, _) in leader.lines(address) {
        let line = state.out.maps.line(start);
        let _ = bytes;
        state.out.to_come.push(line);
    }
    for (start, bytes, store) in leader.lines(address) {
        state.access(vcpu, start, bytes, store);
    }
    state.out.to_come.clear();
}

/// Tells which lines have stores to come.
pub fn expect(state: &mut State, site: Site) {
    for leader in site {
        for (start, _, store) in leader.lines(leader.at.get()) {
            if store {
                let line = state.out.maps.line(start);
                state.out.to_come.push(line);
            }
        }
    }
}
