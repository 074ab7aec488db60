//! Which callbacks a block of one-threaded code gets.

use std::collections::HashMap;
use std::ffi::{c_uint, c_void};

use super::access;
use super::api::{OnAccess, READS_AND_WRITES, STORES};
use super::grouped::{self, GROUPS, Group, Open, Parts};
use crate::flow::Use;
use crate::group::{self, Member};

/// Lists of groups with stores to come that a callback's word can name.
const LISTS: usize = 1 << 31;

/// A callback to ask for at an instruction.
pub struct Request {
    pub callback: OnAccess,
    pub sides: c_uint,
    pub data: *mut c_void,
}

/// See [`Known::plan`].
pub type Plan = (Vec<Option<Request>>, Vec<group::Group>);

/// What the callbacks of translated blocks are given.
pub struct Known {
    lists: Vec<Open>,
    numbers: HashMap<Vec<u64>, u32>,
}

impl Default for Known {
    fn default() -> Known {
        Known {
            lists: vec![Vec::new()],
            numbers: HashMap::new(),
        }
    }
}

fn parts(ordinal: usize, group: &group::Group, open: u32) -> Parts {
    let stored = || group.members.iter().filter(|m| m.stores);
    let from = |m: &Member| m.access.distance.wrapping_sub(group.low) as u8;
    let first = stored().map(from).min();
    Parts {
        last: (group.span - 1) as u8,
        stored: first.zip(stored().map(|m| from(m) + m.access.size - 1).max()),
        first: from(&group.members[0]),
        ordinal: ordinal as u8,
        open,
    }
}

impl Known {
    /// The groups of a list.
    pub fn open(&self, number: usize) -> &[Group] {
        &self.lists[number]
    }

    /// The number of a list; 0 is the empty one.
    fn number(&mut self, open: &[Group]) -> Option<u32> {
        if open.is_empty() {
            return Some(0);
        }
        let key = open
            .iter()
            .map(|group| group.data().addr() as u64)
            .collect();
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        let number = self.lists.len();
        (number < LISTS).then(|| {
            self.lists.push(open.to_vec());
            self.numbers.insert(key, number as u32);
            number as u32
        })
    }

    /// The callback of each instruction of a block, if it has one, and the block's groups. With `apart`, loads and stores of one instruction are looked
    /// up apart.
    pub fn plan(&mut self, block: &[Use], apart: bool) -> Plan {
        let groups = match group::groups(block, apart) {
            groups if groups.len() <= GROUPS => groups,
            _ => Vec::new(),
        };
        match self.requests(block.len(), &groups) {
            Some(requests) => (requests, groups),
            None => (
                (0..block.len()).map(|_| Some(plain())).collect(),
                Vec::new(),
            ),
        }
    }

    fn requests(&mut self, insns: usize, groups: &[group::Group]) -> Option<Vec<Option<Request>>> {
        let mut grouped = vec![false; insns];
        for member in groups.iter().flat_map(|group| &group.members) {
            grouped[member.insn] = true;
        }
        let mut led: Vec<(usize, Group)> = Vec::new();
        let mut rest = groups.iter().enumerate().peekable();
        let mut requests = Vec::new();
        for (insn, grouped) in grouped.into_iter().enumerate() {
            let open: Vec<Group> = led
                .iter()
                .filter(|(last, _)| insn <= *last)
                .map(|(_, group)| *group)
                .collect();
            let number = self.number(&open)?;
            let alone = |(callback, sides): (OnAccess, c_uint)| Request {
                callback,
                sides,
                data: std::ptr::without_provenance_mut(number as usize),
            };
            let here = rest.next_if(|(_, group)| group.members[0].insn == insn);
            requests.push(match here {
                None if grouped => None,
                None => Some(alone((access::alone, READS_AND_WRITES))),
                Some((ordinal, group)) => {
                    let first = group.members[0];
                    if group.members.len() == 1 && first.access.parts() == 1 {
                        Some(alone(access::one(first)))
                    } else {
                        let word = Group::new(parts(ordinal, group, number));
                        if let Some(last) = group.last_store() {
                            led.push((last, word));
                        }
                        let (callback, sides): (OnAccess, c_uint) = match first {
                            Member { access, .. } if access.parts() > 1 => {
                                (grouped::at_first_part, READS_AND_WRITES)
                            }
                            Member {
                                loads: true,
                                stores: true,
                                ..
                            } => (grouped::at_first_store, STORES),
                            _ => (grouped::at_first, READS_AND_WRITES),
                        };
                        Some(Request {
                            callback,
                            sides,
                            data: word.data(),
                        })
                    }
                }
            });
        }
        Some(requests)
    }
}

/// The callback of whatever QEMU says.
fn plain() -> Request {
    Request {
        callback: access::alone,
        sides: READS_AND_WRITES,
        data: std::ptr::null_mut(),
    }
}
