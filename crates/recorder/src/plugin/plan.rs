//! Which callbacks a block of one-threaded code gets.

use std::collections::HashMap;
use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;

use super::access;
use super::api::{MemInfo, OnAccess, READS_AND_WRITES, STORES};
use super::grouped::{self, Entry, Extent, GROUPS, Leader, NONE, Open};
use crate::flow::Use;
use crate::group::{self, Group, Member};

/// A callback to ask for at an instruction.
pub struct Request {
    pub callback: OnAccess,
    pub sides: c_uint,
    pub data: *mut c_void,
}

/// The callbacks of a block.
pub struct Plan {
    /// The data of [`grouped::at_start`].
    pub start: Option<*mut c_void>,
    /// Each instruction's.
    pub insns: Vec<Option<Request>>,
    /// The groups, for those who check.
    pub groups: Vec<Group>,
}

/// What callbacks are given; blocks share it, and it is never freed.
#[derive(Default)]
pub struct Known {
    starts: HashMap<Vec<Entry>, &'static [Entry]>,
    opens: HashMap<Vec<Extent>, &'static Open>,
    leaders: HashMap<Leader, &'static Leader>,
}

fn data<T>(kept: &'static T) -> *mut c_void {
    std::ptr::from_ref(kept).cast_mut().cast()
}

fn extent(ordinal: usize, group: &Group) -> Extent {
    let stored = || group.members.iter().filter(|m| m.stores);
    let from = |m: &Member| m.access.distance.wrapping_sub(group.low) as u8;
    Extent {
        last: (group.span - 1) as u8,
        first_store: stored().map(from).min().unwrap_or(u8::MAX),
        end_store: stored().map(|m| from(m) + m.access.size).max().unwrap_or(0),
        ordinal: ordinal as u8,
    }
}

impl Known {
    fn open(&mut self, extents: &[Extent]) -> &'static Open {
        self.opens
            .entry(extents.to_vec())
            .or_insert_with_key(|key| {
                let list: Open = Box::leak(key.clone().into());
                Box::leak(Box::new(list))
            })
    }

    fn start(&mut self, mut entries: Vec<Entry>) -> Option<*mut c_void> {
        entries.last_mut()?.more = false;
        let kept = *self
            .starts
            .entry(entries)
            .or_insert_with_key(|key| Box::leak(key.clone().into()));
        Some(kept.as_ptr().cast_mut().cast())
    }

    /// A block's callbacks. With `apart`, loads and stores of one instruction are looked up apart; `early` allows looks at the
    /// block's beginning.
    pub fn plan(&mut self, block: &[Use], apart: bool, early: bool) -> Plan {
        let groups = match group::groups(block, apart) {
            groups if groups.len() <= GROUPS => groups,
            _ => Vec::new(),
        };
        let mut grouped = vec![false; block.len()];
        for member in groups.iter().flat_map(|group| &group.members) {
            grouped[member.insn] = true;
        }
        let (mut entries, mut led) = (Vec::new(), Vec::new());
        let mut rest = Vec::new();
        for (ordinal, group) in groups.iter().enumerate() {
            let extent = extent(ordinal, group);
            match group.origin().registers() {
                Some((base, index, shift)) if early && group.from_start => {
                    entries.push(Entry {
                        plus: group.low,
                        extent,
                        base: base.unwrap_or(NONE),
                        index: index.unwrap_or(NONE),
                        shift,
                        more: true,
                    });
                    if let Some(last) = group.members.iter().rev().find(|m| m.stores) {
                        led.push((last.insn, extent));
                    }
                }
                _ => rest.push((group, extent)),
            }
        }
        let mut rest = rest.into_iter().peekable();
        let mut insns = Vec::new();
        for insn in 0..block.len() {
            let open: Vec<Extent> = led
                .iter()
                .filter(|(last, _)| insn <= *last)
                .map(|(_, extent)| *extent)
                .collect();
            let here = rest.next_if(|(group, _)| group.members[0].insn == insn);
            insns.push(match here {
                None if grouped[insn] => None,
                None => Some(self.single(access::alone, READS_AND_WRITES, &open)),
                Some((group, _)) if group.members.len() == 1 && group.members[0].access.parts() == 1 => {
                    let (callback, sides) = access::one(group.members[0]);
                    Some(self.single(callback, sides, &open))
                }
                Some((group, extent)) => {
                    if let Some(last) = group.last_store() {
                        led.push((last, extent));
                    }
                    Some(self.first(group, extent, &open))
                }
            });
        }
        Plan { start: self.start(entries), insns, groups }
    }

    /// The callback of an access of its own.
    fn single(&mut self, callback: OnAccess, sides: c_uint, open: &[Extent]) -> Request {
        let data = if open.is_empty() { null_mut() } else { data(self.open(open)) };
        Request { callback, sides, data }
    }

    /// The callback of a group's first member.
    fn first(&mut self, group: &Group, extent: Extent, open: &[Extent]) -> Request {
        let first = group.members[0];
        let leader = Leader {
            to_low: group.low.wrapping_sub(first.access.distance),
            extent,
            open: self.open(open),
        };
        let kept = *self
            .leaders
            .entry(leader)
            .or_insert_with_key(|key| Box::leak(Box::new(key.clone())));
        type Callback = extern "C" fn(c_uint, MemInfo, u64, *mut c_void);
        let (callback, sides): (Callback, c_uint) = if first.access.parts() > 1 {
            (grouped::at_first_part, READS_AND_WRITES)
        } else if first.loads && first.stores {
            (grouped::at_first_store, STORES)
        } else {
            (grouped::at_first, READS_AND_WRITES)
        };
        Request { callback, sides, data: data(kept) }
    }
}
